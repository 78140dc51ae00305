"""Results that the control plane does not have yet, on disk: they outlive the agent."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from .private_file import open_private

logger = logging.getLogger(__name__)


class Spool:
    """At most one result: a worker has one job at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "unsent-result.json"

    def keep(self, result: dict[str, Any]) -> None:
        """It is on the disk when this returns; a full disk does not keep it from being sent."""
        partial = self._file.with_suffix(".part")
        try:
            with open(partial, "w", opener=open_private) as file:
                json.dump(result, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._file)
        except OSError as error:
            logger.error(
                "the result is not kept on disk, and would be lost with the agent: %s", error
            )

    def unsent(self) -> dict[str, Any] | None:
        try:
            content = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)
