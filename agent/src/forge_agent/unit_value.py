"""Words in a unit file, by the rules of systemd.syntax(7) and systemd.service(5)."""

import re

from .settings import ConfigError

_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def word(value: str) -> str:
    """One word of a list of words. Raises ConfigError for what can't be written."""
    if _PLAIN.fullmatch(value):
        return value
    text = line(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def argument(value: str) -> str:
    """A word of a command but the first, in which variables are replaced."""
    return word(value).replace("$", "$$")


def line(value: str) -> str:
    """All that is right of the equals sign, where that is one value and not a list."""
    if _CONTROL.search(value):
        raise ConfigError(f"install: {value!r} can't be written to a unit file")
    return value.replace("%", "%%")
