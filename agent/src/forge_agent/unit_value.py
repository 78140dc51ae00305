"""Words in a unit file, by the rules of systemd.syntax(7) and systemd.service(5)."""

import re

from .settings import ConfigError

_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
# Control characters, and bytes of a path that are no UTF-8.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SPECIAL_IN_PATTERN = re.compile(r"[\\*?\[]")
_ACCOUNT = re.compile(r"[\w.@+-]+\$?", re.ASCII)


def word(value: str) -> str:
    """One word of a list of words. Raises ConfigError for what can't be written."""
    if _PLAIN.fullmatch(value):
        return value
    text = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def program(path: str) -> str:
    """The first word of a command. systemd replaces variables in it only in part."""
    if "$" in path:
        raise _refusal(path)
    return word(path)


def argument(value: str) -> str:
    """A word of a command but the first, in which variables are replaced."""
    return word(value).replace("$", "$$")


def pattern(path: str) -> str:
    """The pattern of one file, which is all that is right of the equals sign.

    A backslash must not be the last character: it would join the next line.
    """
    text = _text(path)
    if text != text.strip():
        raise _refusal(path)  # systemd cuts blanks off
    return _SPECIAL_IN_PATTERN.sub(r"\\\g<0>", text)


def account(name: str) -> str:
    """The name of a user, as useradd takes it, or a number."""
    if not _ACCOUNT.fullmatch(name):
        raise _refusal(name)
    return name


def _text(value: str) -> str:
    if _UNWRITABLE.search(value):
        raise _refusal(value)
    return value.replace("%", "%%")


def _refusal(value: str) -> ConfigError:
    return ConfigError(f"install: {value!r} can't be written to a unit file")
