"""`forge artifacts`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..text import moment, size
from ..verification import FileCheck, Outcome, Verification
from .connection import client_of
from .lineage import lineage_lines
from .options import ArtifactId, AsJson, Limit
from .output import console, print_all, print_fields, print_json, print_line
from .transfer import transfer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_UNVERIFIED = "verified: false: the control plane never saw these files"


@app.command("list")
def list_artifacts(
    context: typer.Context,
    artifact_type: Annotated[
        str | None, typer.Option("--type", help="dataset, checkpoint, eval or deployment.")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Created by this job.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-q", help="Beginning of an id, or part of a name.")
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List artifacts, newest first."""
    with client_of(context) as client:
        found = list(client.artifacts.list(type=artifact_type, job_id=job, q=search, limit=limit))
    rows = (
        (each.artifact_id, each.kind, each.name, size(each.size_bytes), moment(each.created_at))
        for each in found
    )
    heads = ("ARTIFACT", "KIND", "NAME", "SIZE", "CREATED")
    print_all("artifacts", found, heads, rows, nothing="No artifacts", as_json=as_json)


@app.command()
def get(context: typer.Context, artifact_id: ArtifactId, as_json: AsJson = False) -> None:
    """Show an artifact: its location, sources and files."""
    with client_of(context) as client:
        found = client.artifacts.get(artifact_id)
        files = client.artifacts.files(artifact_id)
    if as_json:
        print_json({**found.to_dict(), "files": [asdict(file) for file in files]})
        return
    print_fields(
        {
            "artifact": found.artifact_id,
            "kind": found.kind,
            "name": found.name,
            "uri": found.uri,
            "size": size(found.size_bytes),
            "made by": found.source_jobs,
            "made from": found.source_artifacts,
            "created": moment(found.created_at),
            "deleted": moment(found.deleted_at),
            "files": [f"{file.path} ({size(file.size_bytes)})" for file in files],
        }
    )


@app.command()
def verify(
    context: typer.Context,
    artifact_id: ArtifactId,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIRECTORY", help="Check local files in this directory."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare all files of an artifact with its manifest, by size and SHA-256.

    Exit code 1 if anything differs.
    """
    out = console()

    def on_check(check: FileCheck) -> None:
        if not as_json:
            outcome = check.outcome.replace("_", " ")
            detail = f"  ({check.detail})" if check.detail else ""
            style = "green" if check.outcome is Outcome.OK else "red"
            print_line(out, f"{outcome:<12}  {check.path}{detail}", style)

    with client_of(context) as client:
        found = (
            client.artifacts.verify_local(artifact_id, directory, on_check)
            if directory
            else client.artifacts.verify(artifact_id, on_check)
        )
    if as_json:
        print_json(found.as_json())
    else:
        print_line(out, _conclusion(found), "bold green" if found.ok else "bold red")
    raise typer.Exit(0 if found.ok else 1)


def _conclusion(found: Verification) -> str:
    if not found.verified:
        return f"{found.artifact_id} can't be verified: {_UNVERIFIED}"
    wrong = sum(check.outcome is not Outcome.OK for check in found.checks)
    if wrong:
        return f"{found.artifact_id} does not match its manifest: {wrong} of {_files(found)}"
    return f"{found.artifact_id} matches its manifest: {_files(found)}"


def _files(found: Verification) -> str:
    count = len(found.checks)
    return f"{count} file{'' if count == 1 else 's'}"


@app.command()
def pull(
    context: typer.Context,
    artifact_id: ArtifactId,
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIRECTORY",
            help="Target directory (default: ./ARTIFACT_ID).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download all files of an artifact, and its manifest.json.

    Skips files that are already correct.
    """
    err = console(stderr=True)
    with client_of(context) as client, transfer(as_json=as_json) as on_progress:
        pulled = client.artifacts.pull(artifact_id, directory or Path(artifact_id), on_progress)
    if as_json:
        print_json(
            {
                "artifact_id": artifact_id,
                "directory": str(pulled.directory),
                "fetched": list(pulled.fetched),
                "kept": list(pulled.kept),
                "verified": pulled.verified,
            }
        )
        raise typer.Exit(0 if pulled.verified else 1)
    kept = f", {len(pulled.kept)} already present" if pulled.kept else ""
    print_line(
        console(), f"{artifact_id}: {len(pulled.fetched)} downloaded{kept}, in {pulled.directory}"
    )
    if not pulled.verified:
        print_line(err, f"{artifact_id} is incomplete: {_UNVERIFIED}")
        raise typer.Exit(1)


@app.command()
def lineage(context: typer.Context, artifact_id: ArtifactId, as_json: AsJson = False) -> None:
    """Show an artifact's sources and everything derived from it, as a tree."""
    with client_of(context) as client:
        found = client.artifacts.lineage(artifact_id)
    if as_json:
        print_json(found.answer)
        return
    out = console()
    for line in lineage_lines(found, is_ascii=not out.encoding.startswith("utf")):
        print_line(out, line)
