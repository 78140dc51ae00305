"""`forge datasets`."""

from pathlib import Path
from typing import Annotated

import typer

from ..text import moment, size
from .connection import client_of
from .options import ArtifactId, AsJson, Limit
from .output import console, print_all, print_fields, print_json, print_line, print_table
from .transfer import transfer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def push(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".jsonl, .csv or .parquet.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name.")] = None,
    format: Annotated[
        str | None, typer.Option(help="jsonl, csv or parquet (default: from the file name).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a dataset, with its checksum.

    \b
    forge datasets push questions.jsonl --name questions
    """
    with client_of(context) as client, transfer(as_json=as_json) as on_progress:
        dataset = client.datasets.upload(file, name, format=format, on_progress=on_progress)
    if as_json:
        print_json(dataset.to_dict())
        return
    print_fields(
        {
            "dataset": dataset.dataset_id,
            "uri": dataset.dataset_uri,
            "rows": dataset.num_rows,
            "columns": [f"{name} ({dtype})" for name, dtype in dataset.columns.items()],
        }
    )
    err = console(stderr=True)
    if err.is_terminal:
        print_line(err, "To audit it:", "dim")
        print_line(err, f"  forge jobs submit audit --dataset {dataset.dataset_uri} --wait", "dim")


@app.command("list")
def list_datasets(context: typer.Context, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List uploaded and generated datasets, newest first."""
    with client_of(context) as client:
        found = list(client.artifacts.list(type="dataset", limit=limit))
    rows = (
        (
            each.artifact_id,
            each.name or "",
            each.kind,
            each.manifest.get("num_rows", ""),
            size(each.size_bytes),
            moment(each.created_at),
        )
        for each in found
    )
    heads = ("DATASET", "NAME", "KIND", "ROWS", "SIZE", "CREATED")
    print_all("datasets", found, heads, rows, nothing="No datasets", as_json=as_json)


@app.command()
def preview(
    context: typer.Context,
    dataset_id: ArtifactId,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, max=50, help="Number of rows.")] = 5,
    path: Annotated[str | None, typer.Option(help="Path of the table, if several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a dataset's columns and first rows."""
    with client_of(context) as client:
        found = client.artifacts.preview(dataset_id, path)
    if as_json:
        print_json(found.to_dict())
        return
    print_line(console(), f"{found.path}: {found.num_rows} rows", "bold")
    columns = [
        (each.name, each.dtype, each.null_count, each.approx_distinct) for each in found.columns
    ]
    print_table(("COLUMN", "TYPE", "NULLS", "DISTINCT"), columns, nothing="No columns")
    for number, row in enumerate(found.rows[:rows], 1):
        print_line(console(), f"row {number}", "bold")
        print_fields(row)
