"""The builtin models' tokenizer: UTF-8 bytes, and three tokens that mark a conversation."""

import json
from collections.abc import Iterable
from pathlib import Path

from .failures import FatalError

END, INSTRUCTION, RESPONSE = 256, 257, 258
_FORMAT = {"kind": "bytes", "end": END, "instruction": INSTRUCTION, "response": RESPONSE}


class ByteTokenizer:
    """Any text in, token ids below `vocabulary` out; nothing is unknown, nothing is learned."""

    vocabulary = 259
    end = END

    def prompt(self, instruction: str) -> list[int]:
        """The tokens after which the model writes its response."""
        return [INSTRUCTION, *instruction.encode(), RESPONSE]

    def response(self, text: str) -> list[int]:
        """The tokens of a whole response, with its end."""
        return [*text.encode(), END]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text; what is not UTF-8 becomes U+FFFD, markers vanish."""
        return bytes(token for token in tokens if token < 256).decode(errors="replace")

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(_FORMAT))

    @classmethod
    def load(cls, folder: Path) -> "ByteTokenizer":
        """Raises FatalError for a tokenizer that this version does not know."""
        if json.loads((folder / "tokenizer.json").read_text()) != _FORMAT:
            raise FatalError("the checkpoint's tokenizer is of a kind that this version can't read")
        return cls()
