"""Saves and loads the state of a training, so that a later attempt can resume."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from .language_model import LanguageModel


@dataclass
class TrainingState:
    plan: str
    """Fingerprint of model, data and settings. A state with another plan can't be used."""
    step: int = 0
    seconds: float = 0.0
    """Duration of all steps, including earlier attempts."""
    cpu_seconds: float = 0.0
    """CPU time of the training thread. Unlike `seconds`, excludes waiting for a core."""
    curve: list[list[float]] = field(default_factory=list)
    """[step, loss in nats per token]."""
    before: dict[str, Any] = field(default_factory=dict)
    """Measurements of the untrained model."""


def save_state(
    state: TrainingState, model: LanguageModel, optimizer: Optimizer, folder: Path
) -> None:
    """Writes step-<n>.pt atomically, then removes older files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{state.step:08}.pt"
    partial = folder / f".{path.name}.part"
    content = {
        "state": asdict(state),
        "model": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
        "rng_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    torch.save(content, partial)
    partial.replace(path)
    for older in folder.glob("step-*.pt"):
        if older != path:
            older.unlink()


def load_state(
    path: Path, plan: str, model: LanguageModel, optimizer: Optimizer
) -> TrainingState | None:
    """Restores model, optimizer and random number generators.

    `plan`: the fingerprint of this training. Returns None and changes nothing if the file can't be
    read or has another fingerprint.
    """
    if path.is_dir():
        path = max(path.glob("step-*.pt"), default=path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        state = TrainingState(**content["state"])
    except Exception as error:  # a corrupt file can raise any exception
        print(f"the checkpoint {path.name} can't be read: {error}")
        return None
    if state.plan != plan:
        print(f"the checkpoint {path.name} belongs to another training")
        return None
    model.module.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    torch.set_rng_state(content["rng"])
    if content["rng_cuda"] and torch.cuda.device_count() == len(content["rng_cuda"]):
        torch.cuda.set_rng_state_all(content["rng_cuda"])
    return state
