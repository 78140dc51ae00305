"""Forge's builtin models: trained from scratch, without a download."""

from pathlib import Path
from typing import Any

from torch import Tensor

from .failures import FatalError
from .language_model import BUILTIN_PREFIX
from .tokenizer import ByteTokenizer
from .transformer import Cache, Shape, Transformer

_VOCABULARY = ByteTokenizer.vocabulary
_SHAPES = {
    "tiny": Shape(_VOCABULARY, context=256, width=96, layers=2, heads=4),
    "small": Shape(_VOCABULARY, context=512, width=256, layers=4, heads=8),
}


class BuiltinModel:
    """A `Transformer` over bytes.

    It is trained on single instructions, so its prompt is only the last message.
    """

    architecture = "decoder-only transformer over bytes"
    end = ByteTokenizer.end
    default_lr = 3e-3

    def __init__(self, name: str, shape: Shape, tokenizer: ByteTokenizer) -> None:
        self.name = name
        self.module = Transformer(shape)
        self.context = shape.context
        self._tokenizer = tokenizer

    @classmethod
    def create(cls, name: str) -> "BuiltinModel":
        shape = _SHAPES.get(name.removeprefix(BUILTIN_PREFIX))
        if shape is None:
            known = ", ".join(f"{BUILTIN_PREFIX}{size}" for size in _SHAPES)
            raise FatalError(f"unknown model {name}; use one of {known}")
        return cls(name, shape, ByteTokenizer())

    @classmethod
    def from_config(cls, config: dict[str, Any], folder: Path) -> "BuiltinModel":
        tokenizer = ByteTokenizer.load(folder / "tokenizer")
        return cls(config["base_model"], Shape(**config["shape"]), tokenizer)

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        return self._tokenizer.prompt(messages[-1]["content"])

    def response(self, text: str) -> list[int]:
        return self._tokenizer.response(text)

    def decode(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens)

    def logits(
        self, ids: Tensor, cache: Cache | None = None, keep: bool = False
    ) -> tuple[Tensor, Cache | None]:
        if keep and cache is None:
            cache = []
        logits: Tensor = self.module(ids, cache)
        return logits, cache

    def config(self) -> dict[str, Any]:
        return {"kind": "builtin", "base_model": self.name, "shape": self.module.shape.as_dict()}

    def save_tokenizer(self, folder: Path) -> None:
        self._tokenizer.save(folder)
