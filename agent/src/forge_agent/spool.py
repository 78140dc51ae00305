"""Keeps undelivered results on disk, so that they survive a restart of the agent."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from .private_file import open_private

logger = logging.getLogger(__name__)


class Spool:
    """Keeps at most one result, because a worker has one job at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "unsent-result.json"

    def keep(self, result: dict[str, Any]) -> None:
        """Writes the result and syncs it to disk.

        Logs errors instead of raising them: the agent also has the result in memory.
        """
        partial = self._file.with_suffix(".part")
        try:
            with open(partial, "w", opener=open_private) as file:
                json.dump(result, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._file)
        except OSError as error:
            logger.error(
                "cannot store the result; it is lost if the agent ends before delivery: %s", error
            )

    def unsent(self) -> dict[str, Any] | None:
        try:
            content = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)
