"""Shared by the commands `forge jobs submit …` of all job types."""

import typer

from ..client import Forge
from ..declared_types import URI_ONLY
from ..job import Job
from ..request import Json
from .connection import client_of
from .job_wait import wait_for
from .output import console, print_json, print_line
from .submission_options import Payload

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_TABLES = (".jsonl", ".csv", ".parquet")


def finish(
    context: typer.Context,
    job_type: str,
    body: Json,
    idempotency_key: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    with client_of(context) as client:
        if job_type in URI_ONLY:
            body = {**body, **_located(client, body.get("dataset_uri"))}
        job = client.jobs.submit(job_type, body, idempotency_key=idempotency_key)
        after_submission(client, job, wait=wait, as_json=as_json)


def _located(client: Forge, dataset: object) -> Json:
    """If `dataset` is an id, returns the field `dataset_uri`: the URI of the dataset's only table.

    If `dataset` is a URI or missing, returns no field, because the body needs no change.
    """
    if not isinstance(dataset, str) or "://" in dataset:
        return {}
    found = client.artifacts.get(dataset)
    paths = [str(file.get("path")) for file in found.manifest.get("files") or []]
    tables = [path for path in paths if path.endswith(_TABLES)]
    if len(tables) != 1:
        raise typer.BadParameter(
            f"{dataset} has {len(tables)} tables: give the URI of one, below {found.uri}",
            param_hint="'--dataset'",
        )
    return {"dataset_uri": f"{found.uri.rstrip('/')}/{tables[0]}"}


def after_submission(client: Forge, job: Job, *, wait: bool, as_json: bool) -> None:
    err = console(stderr=True)
    if not as_json:
        for warning in job.warnings:
            print_line(err, f"Warning: {warning.message}", "yellow")
    if wait:
        if not as_json:
            print_line(err, f"Submitted {job.job_id}")
        wait_for(client, job, as_json=as_json)
    if as_json:
        print_json(job.to_dict())
        return
    print_line(console(), job.job_id)
    if err.is_terminal:
        print_line(err, f"To follow it: forge jobs wait {job.job_id}", "dim")


def by_id_or_uri(given: str | None) -> Payload:
    """Returns the payload's field for a dataset: `dataset_uri` for a URI, else `dataset_id`."""
    if given and "://" in given:
        return {"dataset_uri": given}
    return {"dataset_id": given}
