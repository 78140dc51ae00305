"""A job's free parameters, read with their bounds."""

import math
from typing import Any

from .failures import FatalError


class Params(dict[str, Any]):
    """Every reader takes the value if there is none, and raises FatalError for a wrong one."""

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        value = self.get(name, default)
        if isinstance(value, float) and value.is_integer():  # a JSON writer may say 5.0
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise FatalError(f"params.{name} must be an integer from {least} to {most}")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self.get(name, default)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric or not math.isfinite(value) or not least <= value <= most:
            raise FatalError(f"params.{name} must be a number from {least} to {most}")
        return float(value)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise FatalError(f"params.{name} must be text")
        return value
