"""`forge artifacts`."""

from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar

from ..client import Forge
from ..pull import Progress
from ..verification import FileCheck, Outcome, Verification
from .lineage import lineage_lines
from .output import console, print_json, print_line, shown

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What jobs left behind: files, proofs, where they came from.",
)

_NEVER_SEEN = "verified: false: the control plane never saw these files"

ArtifactId = Annotated[str, typer.Argument(metavar="ARTIFACT_ID")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def verify(
    context: typer.Context,
    artifact_id: ArtifactId,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIRECTORY", help="Look at the files here instead."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare all files of an artifact with its manifest, by size and SHA-256.

    Exit code 1 when anything differs.
    """
    out = console()

    def on_check(check: FileCheck) -> None:
        if not as_json:
            outcome = check.outcome.replace("_", " ")
            detail = f"  ({check.detail})" if check.detail else ""
            style = "green" if check.outcome is Outcome.OK else "red"
            print_line(out, f"{outcome:<12}  {check.path}{detail}", style)

    with _connect(context) as client:
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
        return f"{found.artifact_id} is not proven: {_NEVER_SEEN}"
    wrong = sum(check.outcome is not Outcome.OK for check in found.checks)
    if wrong:
        return f"{found.artifact_id} is not as its manifest says: {wrong} of {_files(found)}"
    return f"{found.artifact_id} is as its manifest says: {_files(found)}"


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
            metavar="DIRECTORY", help="Where to; else ./ARTIFACT_ID.", show_default=False
        ),
    ] = None,
) -> None:
    """Download all files of an artifact, and its manifest.json.

    What is there and right is not downloaded again.
    """
    err = console(stderr=True)
    bar = ProgressBar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with _connect(context) as client, bar:
        task = bar.add_task("", total=None)

        def on_progress(progress: Progress) -> None:
            bar.update(
                task,
                description=shown(progress.path),
                completed=progress.done_bytes,
                total=progress.total_bytes,
            )

        pulled = client.artifacts.pull(artifact_id, directory or Path(artifact_id), on_progress)
    kept = f", {len(pulled.kept)} were there" if pulled.kept else ""
    print_line(
        console(), f"{artifact_id}: {len(pulled.fetched)} downloaded{kept}, in {pulled.directory}"
    )
    if not pulled.verified:
        print_line(err, f"{artifact_id} is not whole: {_NEVER_SEEN}")
        raise typer.Exit(1)


@app.command()
def lineage(context: typer.Context, artifact_id: ArtifactId, as_json: AsJson = False) -> None:
    """Show what an artifact was made from, back to the sources, and what was made from it."""
    with _connect(context) as client:
        found = client.artifacts.lineage(artifact_id)
    if as_json:
        print_json(found.answer)
        return
    out = console()
    for line in lineage_lines(found, is_ascii=not out.encoding.startswith("utf")):
        print_line(out, line)


def _connect(context: typer.Context) -> Forge:
    """By what the command's group was given."""
    return cast(Forge, context.obj())
