"""Forge for Python: `Forge` and `AsyncForge`, and what they return and raise.

It is imported when the first of its names is asked for: `forge --help` needs no HTTP library.
"""

from typing import TYPE_CHECKING

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import _api

        value = getattr(_api, name, None)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        from . import _api

        return sorted({*globals(), *_api.__all__})
