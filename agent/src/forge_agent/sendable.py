"""Checks for values that JSON or the control plane can't represent."""

import json
import re

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""NUL in JSON text. An escaped backslash (two) before `u0000` is not NUL."""


def require_sendable(value: object) -> None:
    """Raises ValueError for NaN, infinities, unpaired surrogates and NUL."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    if _NUL.search(text):
        raise ValueError("text may not contain NUL")


def sendable_text(text: str) -> str:
    """Replaces every character that can't be sent."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
