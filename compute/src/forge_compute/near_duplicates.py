"""Texts that say nearly the same: most of their three-word runs in common, by MinHash and LSH."""

import re
import zlib
from collections.abc import Sequence

from datasketch import MinHash, MinHashLSH

THRESHOLD = 0.8
"""Share of common three-word runs (Jaccard), as estimated, from which two texts are alike."""

_PERMUTATIONS = 64
_BANDS = (10, 6)
"""Of the pairs at the threshold 19 in 20 are found, at 0.9 all but one in a thousand."""
_RUN = 3
_WORD = re.compile(r"\w+")


def signatures(texts: Sequence[str]) -> list[MinHash]:
    runs = [[run.encode() for run in _runs(text)] for text in texts]
    return list(MinHash.generator(runs, num_perm=_PERMUTATIONS, hashfunc=zlib.crc32))


class NearDuplicates:
    """Finds the earlier texts that are like a new one, among at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._index = MinHashLSH(num_perm=_PERMUTATIONS, params=_BANDS)
        self._known: list[tuple[MinHash, str]] = []

    @property
    def compared(self) -> int:
        """How many texts are known."""
        return len(self._known)

    @property
    def is_full(self) -> bool:
        return len(self._known) >= self._limit

    def add(self, signature: MinHash, label: str = "") -> set[str]:
        """The labels of the known texts that are like this one, which then is known too."""
        alike = {
            self._known[key][1]
            for key in self._index.query(signature)
            if signature.jaccard(self._known[key][0]) >= THRESHOLD
        }
        self._index.insert(len(self._known), signature, check_duplication=False)
        self._known.append((signature, label))
        return alike


def _runs(text: str) -> set[str]:
    words = _WORD.findall(text.lower())
    return {" ".join(words[place : place + _RUN]) for place in range(max(1, len(words) - _RUN + 1))}
