"""Checks for values that JSON or the control plane can't represent."""

import json


def require_sendable(value: object) -> None:
    """Raises ValueError for NaN, infinities, unpaired surrogates and NUL."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    if "\\u0000" in text:
        raise ValueError("text may not contain NUL")


def sendable_text(text: str) -> str:
    """Replaces every character that can't be sent."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
