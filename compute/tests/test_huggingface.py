"""Hugging Face models, tested with a very small one that needs no download."""

import os
from pathlib import Path
from typing import Any

import pytest
from compute_support import make_job, write_rows

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is first imported
pytest.importorskip("torch")
pytest.importorskip("transformers")

import tokenizers
import transformers

from forge_compute.distill import distill
from forge_compute.evaluate import evaluate
from forge_compute.failures import FatalError
from forge_compute.train import train

ROWS = [{"instruction": f"Say it {n}.", "response": "so it is"} for n in range(40)]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FORGE_MODELS_DIR with one model, `team/little`."""
    letters = sorted({letter for row in ROWS for text in row.values() for letter in text} | {"\n"})
    vocabulary = {token: number for number, token in enumerate(["<unk>", "<end>", *letters])}
    characters = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, merges=[], unk_token="<unk>")
    )
    characters.decoder = tokenizers.decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=characters, eos_token="<end>", unk_token="<unk>"
    )
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        eos_token_id=1,
        bos_token_id=1,
    )
    folder = tmp_path / "models" / "team" / "little"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    monkeypatch.setenv("FORGE_MODELS_DIR", str(tmp_path / "models"))


def _train(folder: Path, model: str) -> dict[str, Any]:
    path = write_rows(folder / "rows.parquet", ROWS)
    payload = {"dataset_id": "ds", "model": model, "epochs": 40}
    params = {"lr": 1e-2, "batch_size": 16}
    return train(make_job(folder, "train", payload, inputs={"dataset_id": path}, params=params))


@pytest.mark.usefixtures("models")
def test_trains_and_evaluates_a_local_model(tmp_path: Path) -> None:
    content = _train(tmp_path, "team/little")
    assert content["result"]["architecture"] == "LlamaForCausalLM"
    payload = {"checkpoint_id": "ckpt"}
    job = make_job(
        tmp_path / "eval", "evaluate", payload, inputs={"checkpoint_id": tmp_path / "output"}
    )
    assert evaluate(job)["result"]["scores"]["overall"] == 1


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("name", ["team/absent", "../models/team"])
def test_refuses_an_unknown_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(FatalError, match=f"model {name}"):
        _train(tmp_path, name)


@pytest.mark.usefixtures("models")
def test_names_a_file_that_the_jobs_user_can_not_read(tmp_path: Path) -> None:
    """transformers writes the weights with mode 600, and reports an unreadable file as missing."""
    file = tmp_path / "models" / "team" / "little" / "model.safetensors"
    file.unlink()
    file.symlink_to("gone")  # root could read a file with any mode
    with pytest.raises(FatalError, match=f"user {os.geteuid()} can't read {file}"):
        _train(tmp_path, "team/little")


@pytest.mark.parametrize("name", ["/etc", "./models", "..", "models/team/little", "a/b/c", "~root"])
def test_does_not_read_folders_outside_of_the_models_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("FORGE_MODELS_DIR", raising=False)
    with pytest.raises(FatalError, match="is neither a hub model"):
        _train(tmp_path, name)


@pytest.mark.usefixtures("models")
def test_a_local_student_uses_its_own_tokenizer(tmp_path: Path) -> None:
    long = {"instruction": "Say it 7." + " so" * 30, "response": "so it is"}
    path = write_rows(tmp_path / "rows.parquet", [ROWS[0], long])
    payload = {"dataset_id": "ds", "teacher": "builtin:mixed", "student_model": "team/little"}
    job = make_job(
        tmp_path, "distill", payload, inputs={"dataset_id": path}, params={"min_score": 0}
    )
    result = distill(job)["result"]
    assert (result["num_pairs"], result["too_long_rows"]) == (1, 1)
