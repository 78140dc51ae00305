"""`forge jobs submit`: a command for each job type."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

from typing import Annotated

import typer

from .submission_options import Payload, submission
from .submit import app, by_id_or_uri, finish

__all__ = ["app"]


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
def audit(
    dataset: Annotated[str | None, typer.Option(help="Id or URI of a dataset.")] = None,
) -> Payload:
    """Score the rows of a dataset.

    \b
    forge jobs submit audit --dataset ds_...
    forge jobs submit audit --dataset s3://team-data/raw/questions.parquet
    """
    return {
        "dataset_uri": dataset,
    }


@submission(app, finish)
def distill(
    dataset: Annotated[str | None, typer.Option(help="Id or URI of a dataset.")] = None,
    teacher: Annotated[str | None, typer.Option(help="The model that teaches.")] = None,
    student: Annotated[str | None, typer.Option(help="The model that will learn.")] = None,
) -> Payload:
    """Have a teacher answer a dataset's questions.

    \b
    forge jobs submit distill --dataset ds_... --teacher llama-3-70b
    """
    return {
        **by_id_or_uri(dataset),
        "teacher": teacher,
        "student_model": student,
    }


@submission(app, finish)
def train(
    model: Annotated[str | None, typer.Option(help="What is trained, e.g. llama-3-8b.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Id or URI of a dataset.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data; else 3.")] = None,
) -> Payload:
    """Train a checkpoint.

    \b
    forge jobs submit train --model llama-3-8b --dataset ds_... --epochs 3 \\
      --gpu 1 --gpu-type A100 --param lr=1e-4 --tag nightly --wait
    """
    return {
        "model": model,
        **by_id_or_uri(dataset),
        "epochs": epochs,
    }


@submission(app, finish)
def evaluate(
    checkpoint: Annotated[
        str | None, typer.Option(help="Id of a checkpoint, or a model's name.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="What it is measured by.")] = None,
) -> Payload:
    """Score a checkpoint.

    \b
    forge jobs submit evaluate --checkpoint ckpt_... --benchmark legalbench
    """
    return {
        "checkpoint_id": checkpoint,
        "benchmark": benchmark,
    }


@submission(app, finish)
def deploy(
    checkpoint: Annotated[
        str | None, typer.Option(help="Id of a checkpoint, or a model's name.")
    ] = None,
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
