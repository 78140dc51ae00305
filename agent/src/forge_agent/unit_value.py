"""Quotes values for a unit file, as defined in systemd.syntax(7) and systemd.service(5)."""

import re

from .settings import ConfigError

_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
# Control characters, and bytes of a path that are not UTF-8.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SPECIAL_IN_PATTERN = re.compile(r"[\\*?\[]")
_ACCOUNT = re.compile(r"[\w.@+-]+\$?", re.ASCII)


def word(value: str) -> str:
    """Quotes one word of a setting's value. Raises ConfigError if it has invalid characters."""
    if _PLAIN.fullmatch(value):
        return value
    text = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def program(path: str) -> str:
    """Quotes the first word of a command.

    Refuses `$`. systemd uses the word as the program's path and as its argv[0], but expands
    variables only in argv[0]. So neither `$` nor the escaped `$$` is right for both.
    """
    if "$" in path:
        raise _refusal(path)
    return word(path)


def argument(value: str) -> str:
    """Quotes an argument of a command. Escapes `$`: systemd expands variables in arguments."""
    return word(value).replace("$", "$$")


def pattern(path: str) -> str:
    """Converts a path to a glob pattern that matches only this file.

    The pattern has no quotes, so it must be the whole value of a setting. Backslashes are doubled:
    a single backslash at the end would join the setting's line and the next line.
    """
    text = _text(path)
    if text != text.strip():
        raise _refusal(path)  # systemd strips whitespace
    return _SPECIAL_IN_PATTERN.sub(r"\\\g<0>", text)


def account(name: str) -> str:
    """A user name that useradd accepts, or a user id."""
    if not _ACCOUNT.fullmatch(name):
        raise _refusal(name)
    return name


def _text(value: str) -> str:
    if _UNWRITABLE.search(value):
        raise _refusal(value)
    return value.replace("%", "%%")


def _refusal(value: str) -> ConfigError:
    return ConfigError(f"install: {value!r} can't be written to a unit file")
