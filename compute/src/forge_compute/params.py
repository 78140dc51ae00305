"""Reads and validates a job's params."""

import math
from typing import Any

from .failures import FatalError


class Params(dict[str, Any]):
    """Methods return the default if the parameter is missing, and raise FatalError if invalid."""

    def integer(self, name: str, default: int, minimum: int, maximum: int) -> int:
        value = self.get(name, default)
        if isinstance(value, float) and value.is_integer():  # some JSON encoders write 5.0
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise FatalError(f"params.{name} must be an integer from {minimum} to {maximum}")
        return value

    def number(self, name: str, default: float, minimum: float, maximum: float) -> float:
        value = self.get(name, default)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric or not math.isfinite(value) or not minimum <= value <= maximum:
            raise FatalError(f"params.{name} must be a number from {minimum} to {maximum}")
        return float(value)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise FatalError(f"params.{name} must be a non-empty string")
        return value
