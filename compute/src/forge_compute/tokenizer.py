"""The builtin models' tokenizer: UTF-8 bytes, and three special tokens."""

import json
from collections.abc import Iterable
from pathlib import Path

from .failures import FatalError

END, INSTRUCTION, RESPONSE = 256, 257, 258
_FORMAT = {"kind": "bytes", "end": END, "instruction": INSTRUCTION, "response": RESPONSE}


class ByteTokenizer:
    """Encodes any text to token ids below `vocabulary`, without training or unknown tokens."""

    vocabulary = 259
    end = END

    def prompt(self, instruction: str) -> list[int]:
        """The tokens that precede the response."""
        return [INSTRUCTION, *instruction.encode(), RESPONSE]

    def response(self, text: str) -> list[int]:
        """The tokens of a whole response, including the end token."""
        return [*text.encode(), END]

    def decode(self, tokens: Iterable[int]) -> str:
        """Decodes to text. Replaces invalid UTF-8 by U+FFFD and drops special tokens."""
        return bytes(token for token in tokens if token < 256).decode(errors="replace")

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(_FORMAT))

    @classmethod
    def load(cls, folder: Path) -> "ByteTokenizer":
        """Raises FatalError for an unknown tokenizer."""
        if json.loads((folder / "tokenizer.json").read_text()) != _FORMAT:
            raise FatalError("this version does not support the checkpoint's tokenizer")
        return cls()
