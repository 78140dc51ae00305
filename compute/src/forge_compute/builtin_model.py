"""Forge's builtin models: trained from scratch, without a download."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from .failures import FatalError
from .language_model import BUILTIN_PREFIX
from .transformer import Cache, Shape, Transformer

_END, _INSTRUCTION, _RESPONSE = 256, 257, 258
_VOCABULARY = 259
_TOKENIZER = {"kind": "bytes", "end": _END, "instruction": _INSTRUCTION, "response": _RESPONSE}
_SHAPES = {
    "tiny": Shape(_VOCABULARY, context=256, width=96, layers=2, heads=4),
    "small": Shape(_VOCABULARY, context=512, width=256, layers=4, heads=8),
}


class BuiltinModel:
    """A `Transformer` over UTF-8 bytes and three special tokens.

    It is trained on single instructions, so its prompt is only the last message.
    """

    architecture = "decoder-only transformer over bytes"
    end = _END
    default_lr = 3e-3

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.module = Transformer(shape)
        self.context = shape.context

    @classmethod
    def create(cls, name: str) -> "BuiltinModel":
        shape = _SHAPES.get(name.removeprefix(BUILTIN_PREFIX))
        if shape is None:
            known = ", ".join(f"{BUILTIN_PREFIX}{size}" for size in _SHAPES)
            raise FatalError(f"unknown model {name}; use one of {known}")
        return cls(name, shape)

    @classmethod
    def from_config(cls, config: dict[str, Any], folder: Path) -> "BuiltinModel":
        if json.loads((folder / "tokenizer" / "tokenizer.json").read_text()) != _TOKENIZER:
            raise FatalError("this version does not support the checkpoint's tokenizer")
        return cls(config["base_model"], Shape(**config["shape"]))

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        return [_INSTRUCTION, *messages[-1]["content"].encode(), _RESPONSE]

    def response(self, text: str) -> list[int]:
        return [*text.encode(), _END]

    def decode(self, tokens: list[int]) -> str:
        """Replaces invalid UTF-8 by U+FFFD and drops special tokens."""
        return bytes(token for token in tokens if token < 256).decode(errors="replace")

    def logits(
        self, ids: Tensor, cache: Cache | None = None, keep: bool = False
    ) -> tuple[Tensor, Cache | None]:
        if keep and cache is None:
            cache = []
        logits: Tensor = self.module(ids, cache)
        return logits, cache

    def config(self) -> dict[str, Any]:
        return {"kind": "builtin", "base_model": self.name, "shape": asdict(self.module.shape)}

    def save_tokenizer(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(_TOKENIZER))
