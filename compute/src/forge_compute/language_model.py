"""The interface to a model for training, evaluation and serving, independent of its library."""

import json
import os
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .failures import FatalError, TransientError, first_line

BUILTIN_PREFIX = "builtin:"

_WORTH_SEVERAL_CORES = 1_000_000
"""A model with fewer parameters uses one core: it would gain little from a second one. If another
process used that core, the threads would wait for each other: a slowdown of 30 times was
measured."""


class LanguageModel(Protocol):
    name: str
    """The model's name, as jobs give it."""
    architecture: str
    context: int
    """Maximum length of a sequence, in tokens."""
    end: int
    """The token that ends a response."""
    default_lr: float

    @property
    def module(self) -> nn.Module: ...

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens that precede the response. Messages have a role and a content."""

    def response(self, text: str) -> list[int]:
        """The tokens of a whole response, including the end token."""

    def decode(self, tokens: list[int]) -> str: ...

    def logits(
        self,
        ids: Tensor,
        cache: Any = None,  # noqa: ANN401 - the type depends on the library
        keep: bool = False,
    ) -> tuple[Tensor, Any]:
        """Returns logits (batch, length, vocabulary) for token ids (batch, length).

        If `keep` is true, also returns a cache. To continue the sequence, pass the cache and the
        next `ids` (batch, 1).
        """

    def config(self) -> dict[str, Any]: ...

    def save_tokenizer(self, folder: Path) -> None: ...


def create_model(name: str, weights: bool = True) -> LanguageModel:
    """Creates a model for training: `builtin:<size>` from scratch, else a Hugging Face model.

    Without `weights`, a Hugging Face model can only tokenize and decode text.
    """
    if name.startswith(BUILTIN_PREFIX):
        from .builtin_model import BuiltinModel

        return BuiltinModel.create(name)
    from .huggingface_model import HuggingFaceModel

    return HuggingFaceModel.create(name, weights)


def save_model(model: LanguageModel, folder: Path) -> None:
    """Writes model.pt, config.json and tokenizer/."""
    torch.save(model.module.state_dict(), folder / "model.pt")
    model.save_tokenizer(folder / "tokenizer")
    (folder / "config.json").write_text(json.dumps(model.config(), indent=2))


def load_model(folder: Path) -> LanguageModel:
    """Loads a model written by `save_model`. Raises FatalError for anything else."""
    try:
        config = json.loads((folder / "config.json").read_text())
        weights = torch.load(folder / "model.pt", map_location="cpu", weights_only=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FatalError(f"the checkpoint has no {Path(error.filename).name}") from error
    except (ValueError, RuntimeError, EOFError) as error:
        raise FatalError(f"the checkpoint can't be read: {error}") from error
    model = _from_config(config, folder)
    try:
        model.module.load_state_dict(weights)
    except RuntimeError as error:
        raise FatalError(f"the checkpoint's weights don't match config.json: {error}") from error
    to_device(model).module.eval()
    return model


def _from_config(config: dict[str, Any], folder: Path) -> LanguageModel:
    match config.get("kind"):
        case "builtin":
            from .builtin_model import BuiltinModel

            return BuiltinModel.from_config(config, folder)
        case "huggingface":
            from .huggingface_model import HuggingFaceModel

            return HuggingFaceModel.from_config(config, folder)
        case kind:
            raise FatalError(f"the checkpoint has the unknown kind {kind!r}")


def parameter_count(model: LanguageModel) -> int:
    return sum(parameter.numel() for parameter in model.module.parameters())


def to_device(model: LanguageModel) -> LanguageModel:
    """Moves the model to a GPU if there is one. Otherwise limits a small model to one core.

    Raises TransientError if the worker has a GPU, but PyTorch can't use it. The job would take many
    times longer on this worker's CPU than on another worker's GPU.
    """
    if torch.cuda.is_available():
        model.module.to("cuda")
    elif _should_have_gpu():
        raise TransientError(f"PyTorch can't use this worker's GPU: {_why_no_gpu()}")
    elif parameter_count(model) < _WORTH_SEVERAL_CORES:
        torch.set_num_threads(1)
    return model


def find_gpu_failure(model: LanguageModel) -> str | None:
    """Returns the error if this process can no longer use its GPU, else None.

    After an error in a kernel, such as an illegal memory access, every later call of CUDA in the
    same process fails.
    """
    device = device_of(model)
    try:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except RuntimeError as error:
        return first_line(error)
    return None


def _should_have_gpu() -> bool:
    """Whether this worker has a GPU that the handler should be able to use.

    False if CUDA_VISIBLE_DEVICES is set to an empty string, which hides the GPUs on purpose.
    """
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
    return int(os.environ.get("FORGE_GPU_COUNT", "0")) > 0 and not is_hidden


def _why_no_gpu() -> str:
    try:
        torch.zeros(1, device="cuda")
    except (RuntimeError, AssertionError) as error:  # AssertionError: PyTorch without CUDA
        return first_line(error)
    return "it finds none"


def device_of(model: LanguageModel) -> torch.device:
    return next(model.module.parameters()).device
