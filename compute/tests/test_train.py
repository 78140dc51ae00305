"""The train and evaluate handlers: training, resuming and the report."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compute_support import make_job, read, write_rows

pytest.importorskip("torch")

import torch

from forge_compute import train as train_module
from forge_compute import training
from forge_compute.evaluate import evaluate
from forge_compute.examples import split
from forge_compute.failures import FatalError, TransientError
from forge_compute.language_model import load_model
from forge_compute.rows import Row
from forge_compute.train import train

COLOURS = ("red", "green", "blue", "white", "black", "amber", "pink", "grey")
ROWS = [
    {"instruction": f"Say {colour} {number}.", "response": f"{colour}"}
    for colour in COLOURS
    for number in range(6)
]


Rows = list[dict[str, Any]]


def _train(
    folder: Path,
    rows: Rows = ROWS,
    epochs: int = 4,
    params: dict[str, Any] | None = None,
    model: str = "builtin:tiny",
    resume_from: Path | None = None,
) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    path = write_rows(folder / "rows.parquet", rows)
    return train(
        make_job(
            folder,
            "train",
            {"dataset_id": "ds_1", "model": model, "epochs": epochs},
            inputs={"dataset_id": path},
            params={"seed": 1, "batch_size": 16, **(params or {})},
            resume_from=resume_from,
        )
    )


def _evaluate(folder: Path, checkpoint: Path, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    payload = {"checkpoint_id": "ckpt_1", **fields.pop("payload", {})}
    inputs = {"checkpoint_id": checkpoint, **fields.pop("inputs", {})}
    return evaluate(make_job(folder, "evaluate", payload, inputs=inputs, **fields))


def _metrics(folder: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((folder / "output" / "metrics.json").read_text())
    return metrics


def test_learns_and_writes_all_files_of_a_checkpoint(tmp_path: Path) -> None:
    content = _train(tmp_path / "trained", epochs=25)
    result, output = content["result"], tmp_path / "trained" / "output"
    assert {path.name for path in output.iterdir()} == {
        "model.pt",
        "tokenizer",
        "config.json",
        "metrics.json",
        "heldout.parquet",
    }
    assert result["checkpoint_id"] == "ckpt_out"
    assert result["train_metrics_uri"] == "forge://artifacts/x/metrics.json"
    assert result["gpu_hours"] == content["metrics"]["gpu_hours"]
    assert (result["gpu_hours"] > 0) == (result["device"] == "cuda")
    steps = 25 * -(-result["dataset_size"] // 16)
    assert result["training_steps"] == content["metrics"]["num_steps"] == steps
    held_out = read(output / "heldout.parquet")
    assert len(held_out) + result["dataset_size"] == len(ROWS)
    before, after = (
        _metrics(tmp_path / "trained")["held_out"][when] for when in ("before", "after")
    )
    assert before["exact_match"] == 0 < after["exact_match"]
    assert after["loss"] < before["loss"]
    curve = _metrics(tmp_path / "trained")["loss_curve"]
    assert curve[0][1] > 4 > 1 > curve[-1][1]

    report = _evaluate(tmp_path / "eval", output)
    assert report["result"]["scores"]["overall"] == after["exact_match"]
    assert report["result"]["datasets"] == ["ckpt_1/heldout.parquet"]
    assert report["metrics"]["samples_evaluated"] == len(held_out)
    assert report["metrics"]["tokens_used"] > 0
    assert report["result"]["perplexity"] == pytest.approx(after["perplexity"], rel=1e-3)

    write_rows(tmp_path / "bench.parquet", ROWS[:20])
    report = _evaluate(
        tmp_path / "bench",
        output,
        payload={"benchmark": "ds_b"},
        inputs={"benchmark": tmp_path / "bench.parquet"},
        params={"limit": 10},
    )
    assert report["result"]["datasets"] == ["ds_b"]
    assert report["metrics"]["samples_evaluated"] == 10
    shown = json.loads((tmp_path / "bench" / "output" / "report.json").read_text())["examples"]
    assert shown[0]["instruction"] == "Say red 0."
    assert (shown[0]["expected"], shown[0]["answer"]) == ("red", "red")


def test_an_interrupted_training_has_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _train(tmp_path / "whole")

    class Lost(Exception):
        pass

    def lose_the_worker(*arguments: Any) -> None:  # noqa: ANN401
        save_state(*arguments)
        if arguments[0].step == 7:
            raise Lost

    save_state = training.save_state
    monkeypatch.setattr(training, "save_state", lose_the_worker)
    with pytest.raises(Lost):
        _train(tmp_path / "lost", params={"checkpoint_every_s": 0})
    monkeypatch.undo()
    kept = list((tmp_path / "lost" / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["step-00000007.pt"]
    monkeypatch.setenv("FORGE_PROGRESS", str(tmp_path / "progress"))

    _train(tmp_path / "resumed", resume_from=kept[0])
    assert "resuming after step 7 of 12" in capsys.readouterr().out
    whole, resumed = _metrics(tmp_path / "whole"), _metrics(tmp_path / "resumed")
    assert len(whole["loss_curve"]) == 12
    assert resumed["loss_curve"] == whole["loss_curve"]
    assert resumed["held_out"] == whole["held_out"]
    weights = [
        load_model(tmp_path / name / "output").module.state_dict() for name in ("whole", "resumed")
    ]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


def test_a_resumed_training_reports_the_gpu_time_of_its_own_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates a GPU, and the checkpoint of a first attempt that has trained for ten hours."""
    monkeypatch.setattr(train_module, "device_of", lambda _: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100")
    _train(tmp_path / "first", params={"checkpoint_every_s": 0, "max_steps": 3})
    checkpoint = next((tmp_path / "first" / "checkpoints").iterdir())
    state = torch.load(checkpoint, weights_only=True)
    state["state"]["seconds"] = 36_000.0
    torch.save(state, checkpoint)
    resumed = _train(tmp_path / "resumed", params={"max_steps": 3}, resume_from=checkpoint)
    metrics = resumed["metrics"]
    assert metrics["gpu_type"] == "NVIDIA H100"
    assert metrics["gpu_hours"] == pytest.approx(metrics["duration_sec"] / 3600, abs=1e-3)
    assert resumed["result"]["gpu_hours"] < 1
    assert _metrics(tmp_path / "resumed")["training_seconds"] > 36_000


@pytest.mark.parametrize("damage", ["torn", "other"])
def test_starts_over_if_a_checkpoint_cannot_be_used(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _train(tmp_path / "first", params={"checkpoint_every_s": 0, "max_steps": 3})
    checkpoint = next((tmp_path / "first" / "checkpoints").iterdir())
    if damage == "torn":
        checkpoint.write_bytes(checkpoint.read_bytes()[:5_000])
    result = _train(tmp_path / "second", params={"max_steps": 4}, resume_from=checkpoint)
    assert "starting over" in capsys.readouterr().out
    assert result["result"]["training_steps"] == 4


def test_a_loss_that_explodes_is_fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss_of = training.loss_of

    def explode(*arguments: Any) -> Any:  # noqa: ANN401
        loss = loss_of(*arguments)
        return replace(loss, total=loss.total * float("nan"))

    monkeypatch.setattr(training, "loss_of", explode)
    with pytest.raises(FatalError, match="the loss is nan after step 1; try a smaller lr"):
        _train(tmp_path)


def test_zero_steps_save_the_untrained_model(tmp_path: Path) -> None:
    content = _train(tmp_path / "untrained", params={"max_steps": 0})
    assert content["result"]["training_steps"] == 0
    report = _evaluate(
        tmp_path / "eval",
        tmp_path / "untrained" / "output",
        payload={"benchmark": "builtin:sums"},
        params={"limit": 20},
    )
    assert report["result"]["scores"]["overall"] == 0
    assert report["result"]["perplexity"] > 100
    assert report["metrics"]["samples_evaluated"] == 20


def test_holds_out_instructions_regardless_of_word_order() -> None:
    rows = [Row(f"What is {a} + {b}?", str(a + b)) for a in range(40) for b in range(40)]
    parts = split(iter([*rows, *rows]), 0.2)
    asked = {tuple(sorted(row.instruction.split())) for row in parts.train}
    assert asked.isdisjoint(tuple(sorted(row.instruction.split())) for row in parts.held_out)
    assert 0.15 < len(parts.held_out) / (2 * len(rows)) < 0.25


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        (ROWS, {"model": "builtin:huge"}, "unknown model builtin:huge; use one of builtin:tiny"),
        (ROWS, {"params": {"lr": "fast"}}, "params.lr must be a number"),
        ([{"instruction": "x", "response": " "}], {}, "no row to train on"),
        ([{"instruction": "x" * 999, "response": "y"}], {}, "fits into 256 tokens"),
    ],
)
def test_reports_errors_of_dataset_and_params(
    tmp_path: Path, rows: Rows, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(FatalError, match=message):
        _train(tmp_path, rows, **fields)


def test_reports_missing_files_of_a_checkpoint(tmp_path: Path) -> None:
    _train(tmp_path, params={"max_steps": 0, "holdout": 0})
    output = tmp_path / "output"
    assert _metrics(tmp_path)["held_out"]["after"]["exact_match"] is None
    with pytest.raises(FatalError, match=r"heldout\.parquet has no rows"):
        _evaluate(tmp_path, output)
    (output / "heldout.parquet").unlink()
    with pytest.raises(FatalError, match=r"no heldout\.parquet; set benchmark"):
        _evaluate(tmp_path, output)
    whole = (output / "model.pt").read_bytes()
    (output / "model.pt").write_bytes(whole[:1_000])
    with pytest.raises(FatalError, match="can't be read"):
        _evaluate(tmp_path, output)
    (output / "model.pt").write_bytes(whole)
    config = json.loads((output / "config.json").read_text())
    config["shape"]["width"] = 48
    (output / "config.json").write_text(json.dumps(config))
    with pytest.raises(FatalError, match=r"don't match config\.json"):
        _evaluate(tmp_path, output)
    shutil.rmtree(output)
    with pytest.raises(FatalError, match=r"has no config\.json"):
        _evaluate(tmp_path, output)


def test_a_worker_with_an_unusable_gpu_does_not_train_on_its_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_GPU_COUNT", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(TransientError, match="PyTorch can't use this worker's GPU"):
        _train(tmp_path, epochs=1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert _train(tmp_path, epochs=1)["result"]["device"] == "cpu"
