"""Forge for Python: `Forge` and `AsyncForge`, their results and their errors.

The names are imported lazily, so that `forge --help` does not load the HTTP library.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        is_special = name.startswith("_") and name != "__all__"
        if not is_special and find_spec(f".{name}", __name__):
            return import_module(f".{name}", __name__)
        found = None if is_special else import_module("._api", __name__)
        if not hasattr(found, name):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(found, name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *import_module("._api", __name__).__all__})
