"""Formats values as text."""

import re
from datetime import datetime

_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tab, characters that change the text direction, and surrogates."""


def shown(text: str) -> str:
    """Escapes control characters in untrusted text, so that it is safe for a terminal."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def legible(line: str) -> str:
    """Escapes control characters in one line of output of a program or model.

    Does not escape combined emoji, tabs and unusual spaces. The function `shown` escapes them.
    """
    # A progress bar rewrites its line with carriage returns. Keep only the last version.
    last = next((part for part in reversed(line.split("\r")) if part), "")
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], last)


def duration(seconds: float) -> str:
    """Formats a duration: `0:07`, `12:30`, `3:00:00`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(at: datetime | None) -> str:
    """Formats a time as local time, to the minute. Empty for None."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M") if at else ""


def usd(amount: float | None) -> str:
    """Formats an amount: `$1.25`. Below one cent, up to six decimals. Empty for None."""
    if amount is None:
        return ""
    return f"${amount:.2f}" if amount == 0 or abs(amount) >= 0.01 else f"${amount:.6f}".rstrip("0")


def size(count: int | None) -> str:
    """Formats a number of bytes: `512 bytes`, `1.5 kB`, `20 GB`. Empty for None."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} bytes"
    amount, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        del units[0]
    return f"{amount:.1f} {units[0]}" if amount < 9.95 else f"{amount:.0f} {units[0]}"
