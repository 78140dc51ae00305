"""The train handler: trains a model on a dataset. Resumes from an earlier attempt's checkpoint."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch.optim import Optimizer

from .answers import is_exact
from .datasets import Dataset
from .decoding import write_all
from .examples import Split, encode, fitting, split
from .failures import FatalError
from .job import Job, report_progress
from .language_model import (
    LanguageModel,
    create_model,
    device_of,
    parameter_count,
    save_model,
    to_device,
)
from .loss import mean_loss, perplexity
from .rows import Row, read_rows
from .rows_file import RowsFile
from .training import OPTIMIZER, Plan, make_optimizer, steps_per_epoch, train_model
from .training_state import TrainingState, load_state

_HELD_OUT_SCHEMA = pa.schema({"instruction": pa.string(), "response": pa.string()})
_SPARE_TOKENS = 8


def train(job: Job) -> dict[str, Any]:
    """Writes model.pt, tokenizer/, config.json, metrics.json and heldout.parquet.

    Params: lr, batch_size, seed, holdout (share of the instructions, 0.1), max_steps (0: saves the
    untrained model), checkpoint_every_s, eval_rows (held-out rows to evaluate before and after
    the training). Keeps the dataset in memory.
    """
    started = time.monotonic()
    params = job.params
    seed = params.integer("seed", 0, 0, 2**31)
    torch.manual_seed(seed)
    name = str(job.payload["model"])
    model = to_device(create_model(name))
    kind = device_of(model).type
    rows = split(
        read_rows(Dataset(job.input("dataset_id", "dataset_uri"))),
        params.number("holdout", 0.1, 0, 0.9),
    )
    examples = fitting(model, rows.train)
    if not examples:
        raise FatalError(f"no row of the dataset fits into {model.context} tokens")
    plan = _plan(job, model, len(examples), seed)
    held_out = HeldOut(model, rows.held_out[: params.integer("eval_rows", 200, 0, 100_000)])
    print(
        f"{name}, {parameter_count(model):,} parameters on {kind}; {len(examples)} rows "
        f"({len(rows.train) - len(examples)} too long), {len(rows.held_out)} held out"
    )

    optimizer = make_optimizer(model, plan.lr)
    state = _resume(job, model, optimizer, _fingerprint(name, plan, rows), plan.steps)
    if not state.before:
        state.before = held_out.measure()
        print(f"before: {state.before}")

    def metrics() -> dict[str, Any]:
        # The hours of this attempt on one GPU. An earlier attempt has reported its own hours.
        seconds = time.monotonic() - started
        hours = seconds / 3600 if kind == "cuda" else 0.0
        return {
            "gpu_hours": round(hours, 6),
            "gpu_type": torch.cuda.get_device_name() if kind == "cuda" else "cpu",
            "num_steps": state.step,
            "dataset_size": len(examples),
            "duration_sec": round(seconds, 3),
        }

    def latest_loss() -> dict[str, float]:
        return {"loss": state.curve[-1][1]} if state.curve else {}

    train_model(
        model,
        optimizer,
        examples,
        plan,
        state,
        lambda now: report_progress(now.step / max(1, plan.steps), {**metrics(), **latest_loss()}),
    )
    after = held_out.measure()
    print(f"after: {after}")
    save_model(model, job.output_dir)
    _write_held_out(rows.held_out, job.output_dir / "heldout.parquet")
    curve = {"loss_curve": state.curve, "held_out": {"before": state.before, "after": after}}
    times = {
        "training_seconds": round(state.seconds, 3),
        "training_cpu_seconds": round(state.cpu_seconds, 3),
    }
    content = {**curve, **times, **metrics()}
    (job.output_dir / "metrics.json").write_text(json.dumps(content, indent=2))
    return {
        "result": {
            "checkpoint_id": job.output_ids["checkpoint_id"],
            "checkpoint_uri": job.artifacts_uri,
            "train_metrics_uri": job.uri("metrics.json"),
            "gpu_hours": metrics()["gpu_hours"],
            "parameter_count": parameter_count(model),
            "architecture": model.architecture,
            "training_steps": state.step,
            "optimizer": OPTIMIZER,
            "lr": plan.lr,
            "dataset_size": len(examples),
            "held_out_rows": len(rows.held_out),
            "too_long_rows": len(rows.train) - len(examples),
            "device": kind,
        },
        "metrics": {
            **metrics(),
            **{f"heldout_{key}": value for key, value in after.items() if value is not None},
        },
    }


class HeldOut:
    """Held-out rows, to measure the model on data that it was not trained on."""

    def __init__(self, model: LanguageModel, rows: list[Row]) -> None:
        self._model = model
        self._rows = rows
        self._examples = [encode(model, row) for row in rows]
        self._fitting = fitting(model, rows)
        self._longest = max((len(example.response) for example in self._examples), default=0)

    def measure(self) -> dict[str, Any]:
        """Loss in nats per token, perplexity and share of exact answers. None without rows."""
        loss = mean_loss(self._model, self._fitting)
        prompts = [example.prompt for example in self._examples]
        answers = write_all(self._model, prompts, self._longest + _SPARE_TOKENS)
        exact = sum(
            answer.is_finished and is_exact(row.response, self._model.decode(answer.tokens))
            for row, answer in zip(self._rows, answers, strict=True)
        )
        return {
            "loss": None if loss is None else round(loss, 6),
            "perplexity": perplexity(loss),
            "exact_match": round(exact / len(self._rows), 4) if self._rows else None,
        }


def _plan(job: Job, model: LanguageModel, examples: int, seed: int) -> Plan:
    params = job.params
    batch_size = params.integer("batch_size", 32, 1, 65_536)
    steps = int(job.payload.get("epochs", 3)) * steps_per_epoch(examples, batch_size)
    return Plan(
        steps=min(steps, params.integer("max_steps", steps, 0, 10**9)),
        batch_size=batch_size,
        lr=params.number("lr", model.default_lr, 0, 1),
        seed=seed,
        checkpoint_every_s=params.number("checkpoint_every_s", 30, 0, 86_400),
        checkpoint_dir=job.checkpoint_dir,
    )


def _fingerprint(name: str, plan: Plan, rows: Split) -> str:
    """A hash of the model's name, the plan and the rows.

    All attempts of a job have the same hash. An attempt does not resume from a checkpoint with
    another hash.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((name, plan.steps, plan.batch_size, plan.lr, plan.seed)).encode())
    for row in (*rows.train, None, *rows.held_out):
        digest.update(repr(row).encode())
    return digest.hexdigest()


def _resume(
    job: Job, model: LanguageModel, optimizer: Optimizer, fingerprint: str, steps: int
) -> TrainingState:
    if job.resume_from:
        state = load_state(job.resume_from, fingerprint, model, optimizer)
        if state:
            print(f"resuming after step {state.step} of {steps}")
            return state
        print("starting over")
    return TrainingState(fingerprint)


def _write_held_out(rows: list[Row], path: Path) -> None:
    with RowsFile(path, _HELD_OUT_SCHEMA) as file:
        for row in rows:
            file.add({"instruction": row.instruction, "response": row.response})
