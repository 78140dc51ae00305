"""What JSON and the control plane can carry, and what they can't."""

import json


def require_sendable(value: object) -> None:
    """Raises ValueError for NaN and infinities, half a surrogate pair, and NUL."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    if "\\u0000" in text:
        raise ValueError("text may not contain NUL")


def sendable_text(text: str) -> str:
    """The text with every character that can't be sent replaced."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
