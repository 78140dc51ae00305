"""Hugging Face causal language models, through transformers."""

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .failures import FatalError, TransientError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_DEFAULT_CONTEXT = 2_048
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)


class HuggingFaceModel:
    """A model from a folder below FORGE_MODELS_DIR, or from the hub.

    Never runs code that comes with a model.
    """

    default_lr = 5e-5

    def __init__(
        self, name: str, module: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase"
    ) -> None:
        if tokenizer.eos_token_id is None:
            raise FatalError(f"the tokenizer of {name} has no end-of-text token")
        self.name = name
        self.module = module
        self.end = int(tokenizer.eos_token_id)
        self.architecture = type(module).__name__
        self.context = int(getattr(module.config, "max_position_embeddings", _DEFAULT_CONTEXT))
        self._tokenizer = tokenizer

    @classmethod
    def create(cls, name: str, weights: bool = True) -> "HuggingFaceModel":
        transformers = _transformers(name)
        source = _local_folder(name) or _hub_name(name)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source)
            models = transformers.AutoModelForCausalLM
            if weights:
                module = models.from_pretrained(source, dtype="float32")
            else:
                with torch.device("meta"):
                    module = models.from_config(transformers.AutoConfig.from_pretrained(source))
        except (OSError, ValueError) as error:
            if _is_network_error(error):
                raise TransientError(f"model {name} can't be fetched: {error}") from error
            raise FatalError(
                f"model {name} can't be used: {_unreadable(source) or error}"
            ) from error
        return cls(name, module, tokenizer)

    @classmethod
    def from_config(cls, config: dict[str, Any], folder: Path) -> "HuggingFaceModel":
        transformers = _transformers(config["base_model"])
        shape = dict(config["huggingface"])
        architecture = transformers.AutoConfig.for_model(shape.pop("model_type"), **shape)
        module = transformers.AutoModelForCausalLM.from_config(architecture)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
        return cls(config["base_model"], module, tokenizer)

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """Applies the model's chat template. Without one, joins the contents line by line."""
        if self._tokenizer.chat_template:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            return self._encode(str(text))
        return self._encode("".join(f"{message['content']}\n" for message in messages))

    def response(self, text: str) -> list[int]:
        return [*self._encode(text), self.end]

    def decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))

    def logits(
        self,
        ids: Tensor,
        cache: Any = None,  # noqa: ANN401 - a class of transformers
        keep: bool = False,
    ) -> tuple[Tensor, Any]:
        output = self.module(input_ids=ids, past_key_values=cache, use_cache=keep)
        return output.logits, output.past_key_values if keep else None

    def config(self) -> dict[str, Any]:
        shape = self.module.config.to_dict()
        return {"kind": "huggingface", "base_model": self.name, "huggingface": shape}

    def save_tokenizer(self, folder: Path) -> None:
        self._tokenizer.save_pretrained(folder)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def _transformers(name: str) -> Any:  # noqa: ANN401 - the module
    try:
        import transformers
    except ModuleNotFoundError as error:
        message = f"model {name} needs transformers: pip install forge-compute[huggingface]"
        raise FatalError(message) from error
    return transformers


def _unreadable(source: Path | str) -> str | None:
    """Returns an error message if this process can't read a file of the model, else None.

    transformers would report an unreadable file as missing. Handlers often run as a separate user,
    who may lack permissions that the agent's user has.
    """
    if isinstance(source, str):
        return None
    for path in (source, *source.rglob("*")):
        if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK):
            return f"user {os.geteuid()} can't read {path}"
    return None


def _is_network_error(error: BaseException) -> bool:
    """Whether the error or one of its causes is a network error.

    The type OSError alone does not show this: transformers raises it for many errors.
    """
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, ConnectionError | TimeoutError | socket.gaierror):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _hub_name(name: str) -> str:
    """Returns the name, if it has the form of a name on the hub.

    Raises FatalError for any other name: it could be a path, and jobs must not read files of this
    machine.
    """
    if not _HUB_NAME.fullmatch(name):
        raise FatalError(f"{name!r} is neither a hub model nor below FORGE_MODELS_DIR")
    return name


def _local_folder(name: str) -> Path | None:
    root = os.environ.get("FORGE_MODELS_DIR")
    if not root:
        return None
    folder = (Path(root) / name).resolve()
    if not folder.is_relative_to(Path(root).resolve()):
        raise FatalError(f"model {name} is not below FORGE_MODELS_DIR")
    return folder if folder.is_dir() else None
