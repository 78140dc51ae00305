"""The login that `forge login` saves in a file. Only the user can read the file."""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import ForgeError


@dataclass(frozen=True)
class SavedLogin:
    base_url: str
    api_key: str = field(repr=False)


def path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "forge" / "credentials.json"


def read() -> SavedLogin | None:
    """Returns the saved login, or None if the file does not exist.

    Raises ForgeError if the file can't be read or is invalid.
    """
    try:
        found = json.loads(path().read_text("utf-8-sig"))
        return SavedLogin(str(found["base_url"]), str(found["api_key"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise ForgeError(f"{path()} can't be read; log in again, or remove it") from None


def write(login: SavedLogin) -> None:
    """Writes the file atomically."""
    target = path()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(login), file)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove() -> bool:
    """Deletes the saved login. Returns whether there was one."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True
