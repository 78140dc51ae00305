"""Detects repeated rows."""

import hashlib

from .rows import Row


class SeenRows:
    """Keeps a digest of each row: about 100 MB per million rows."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def is_repeat(self, row: Row) -> bool:
        """Whether an earlier row was equal, ignoring letter case and spacing. Adds the row."""
        texts = (row.instruction, row.response)
        normal = "\0".join(" ".join(text.lower().split()) for text in texts)
        digest = hashlib.blake2b(normal.encode(), digest_size=12).digest()
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False
