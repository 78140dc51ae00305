"""What training, evaluation and serving need of a model, whichever library it comes from."""

import json
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .failures import FatalError

BUILTIN_PREFIX = "builtin:"

_WORTH_SEVERAL_CORES = 1_000_000
"""Parameters. A smaller model gains little by a second core, and where another process wants that
core too, the threads wait for each other: 30 times slower was measured."""


class LanguageModel(Protocol):
    name: str
    """As jobs name it."""
    architecture: str
    context: int
    """Longest sequence that it can read, in tokens."""
    end: int
    """The token that ends a response."""
    default_lr: float

    @property
    def module(self) -> nn.Module: ...

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens after which it writes its response; of each message, role and content."""

    def response(self, text: str) -> list[int]:
        """The tokens of a whole response, with its end."""

    def decode(self, tokens: list[int]) -> str: ...

    def logits(
        self,
        ids: Tensor,
        cache: Any = None,  # noqa: ANN401 - each library has its own
        keep: bool = False,
    ) -> tuple[Tensor, Any]:
        """Token ids (batch, length) to logits (batch, length, vocabulary), and a cache if kept.

        With a cache, `ids` (batch, 1) go on from it.
        """

    def config(self) -> dict[str, Any]: ...

    def save_tokenizer(self, folder: Path) -> None: ...


def create_model(name: str, weights: bool = True) -> LanguageModel:
    """A model to train: `builtin:<size>` from scratch, else one of Hugging Face's form.

    Without `weights` it can only turn text into tokens, and back.
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
    """What `save_model` wrote, on the device at hand; FatalError for anything else."""
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
        raise FatalError(f"the checkpoint's weights don't fit its config.json: {error}") from error
    place(model).module.eval()
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
            raise FatalError(f"the checkpoint is of kind {kind!r}, not of one made by Forge")


def parameter_count(model: LanguageModel) -> int:
    return sum(parameter.numel() for parameter in model.module.parameters())


def place(model: LanguageModel) -> LanguageModel:
    """Brings it to a GPU where there is one; else decides how many cores it may use."""
    if torch.cuda.is_available():
        model.module.to("cuda")
    elif parameter_count(model) < _WORTH_SEVERAL_CORES:
        torch.set_num_threads(1)
    return model


def device_of(model: LanguageModel) -> torch.device:
    return next(model.module.parameters()).device
