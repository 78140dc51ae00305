"""`forge jobs submit`: a command for each job type."""

from typing import Annotated

import typer

from ..client import Forge
from ..job import Job
from ..request import Json
from .connection import client_of
from .job_wait import wait_for
from .output import console, print_json, print_line
from .submission_options import Payload, submission

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
        if job_type == "audit":
            body = {**body, **_located(client, body.get("dataset_uri"))}
        job = client.jobs.submit(job_type, body, idempotency_key=idempotency_key)
        after_submission(client, job, wait=wait, as_json=as_json)


def _located(client: Forge, dataset: object) -> Json:
    """An audit takes a URI: of a dataset's id, where its one table lies."""
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
        print_line(err, f"To stay with it: forge jobs wait {job.job_id}", "dim")


def _dataset(given: str | None) -> Payload:
    """By its id or its URI, whichever it is."""
    if given and "://" in given:
        return {"dataset_uri": given}
    return {"dataset_id": given}


Dataset = Annotated[str | None, typer.Option("--dataset", help="Id or URI of a dataset.")]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", help="Id of a checkpoint, or a model's name.")
]


@submission(app, finish)
def generate(
    domain: Annotated[str | None, typer.Option(help="What it is about, e.g. law.")] = None,
    num_samples: Annotated[int | None, typer.Option(min=1, help="Rows to make.")] = None,
    task: Annotated[str | None, typer.Option(help="What is asked of the teacher.")] = None,
    teacher: Annotated[str | None, typer.Option(help="The model that writes them.")] = None,
    style: Annotated[str | None, typer.Option(help="How they are written.")] = None,
) -> Payload:
    """Make a dataset.

    \b
    forge jobs submit generate --domain law --num-samples 1000 --wait
    """
    return {
        "domain": domain,
        "num_samples": num_samples,
        "task": task,
        "teacher": teacher,
        "style": style,
    }


@submission(app, finish)
def audit(dataset: Dataset = None) -> Payload:
    """Score the rows of a dataset.

    \b
    forge jobs submit audit --dataset ds_...
    forge jobs submit audit --dataset s3://team-data/raw/questions.parquet
    """
    return {"dataset_uri": dataset}


@submission(app, finish)
def distill(
    dataset: Dataset = None,
    teacher: Annotated[str | None, typer.Option(help="The model that teaches.")] = None,
    student: Annotated[str | None, typer.Option(help="The model that will learn.")] = None,
) -> Payload:
    """Have a teacher answer a dataset's questions.

    \b
    forge jobs submit distill --dataset ds_... --teacher llama-3-70b
    """
    return {**_dataset(dataset), "teacher": teacher, "student_model": student}


@submission(app, finish)
def train(
    model: Annotated[str | None, typer.Option(help="What is trained, e.g. llama-3-8b.")] = None,
    dataset: Dataset = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data; else 3.")] = None,
) -> Payload:
    """Train a checkpoint.

    \b
    forge jobs submit train --model llama-3-8b --dataset ds_... --epochs 3 \\
      --gpu 1 --gpu-type A100 --param lr=1e-4 --tag nightly --wait
    """
    return {"model": model, **_dataset(dataset), "epochs": epochs}


@submission(app, finish)
def evaluate(
    checkpoint: Checkpoint = None,
    benchmark: Annotated[str | None, typer.Option(help="What it is measured by.")] = None,
) -> Payload:
    """Score a checkpoint.

    \b
    forge jobs submit evaluate --checkpoint ckpt_... --benchmark legalbench
    """
    return {"checkpoint_id": checkpoint, "benchmark": benchmark}


@submission(app, finish)
def deploy(
    checkpoint: Checkpoint = None,
    region: Annotated[str | None, typer.Option(help="Where it is served.")] = None,
    min_replicas: Annotated[int | None, typer.Option(min=1, help="Copies, at least.")] = None,
    max_replicas: Annotated[int | None, typer.Option(min=1, help="Copies, at most.")] = None,
) -> Payload:
    """Serve a checkpoint.

    \b
    forge jobs submit deploy --checkpoint ckpt_... --wait
    """
    return {
        "checkpoint_id": checkpoint,
        "region": region,
        "min_replicas": min_replicas,
        "max_replicas": max_replicas,
    }
