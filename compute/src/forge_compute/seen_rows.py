"""Which rows stood before."""

import hashlib

from .rows import Row


class SeenRows:
    """Keeps a digest of each row: a million take some 100 MB."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def repeats(self, row: Row) -> bool:
        """Whether it is an earlier row again, letter case and spacing aside."""
        texts = (row.instruction, row.response)
        normal = "\0".join(" ".join(text.lower().split()) for text in texts)
        digest = hashlib.blake2b(normal.encode(), digest_size=12).digest()
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False
