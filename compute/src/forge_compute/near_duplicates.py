"""Finds texts that share most of their shingles (three-word sequences). Uses MinHash and LSH."""

import re
import zlib
from collections.abc import Sequence

from datasketch import MinHash, MinHashLSH

THRESHOLD = 0.8
"""Texts with at least this estimated Jaccard similarity of their shingles are near-duplicates."""

_PERMUTATIONS = 64
_BANDS = (10, 6)
"""Bands of the LSH index, and hash values per band. The index finds 95% of the pairs whose
similarity is THRESHOLD, and 99.9% of those with 0.9."""
_WORDS_PER_SHINGLE = 3
_WORD = re.compile(r"\w+")


def signatures(texts: Sequence[str]) -> list[MinHash]:
    shingles = [[shingle.encode() for shingle in _shingles(text)] for text in texts]
    return list(MinHash.generator(shingles, num_perm=_PERMUTATIONS, hashfunc=zlib.crc32))


class NearDuplicates:
    """Finds earlier texts that are similar to a new one.

    Keeps the signatures of all added texts in memory. When `is_full` is true, the caller must not
    add more texts.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._index = MinHashLSH(num_perm=_PERMUTATIONS, params=_BANDS)
        self._known: list[tuple[MinHash, str]] = []

    @property
    def compared(self) -> int:
        """Number of added texts."""
        return len(self._known)

    @property
    def is_full(self) -> bool:
        return len(self._known) >= self._limit

    def add(self, signature: MinHash, label: str = "") -> set[str]:
        """Adds a text by its signature. Returns the labels of similar texts that were added before.

        `label`: chosen by the caller, for example the text's split.
        """
        similar = {
            self._known[key][1]
            for key in self._index.query(signature)
            if signature.jaccard(self._known[key][0]) >= THRESHOLD
        }
        self._index.insert(len(self._known), signature, check_duplication=False)
        self._known.append((signature, label))
        return similar


def _shingles(text: str) -> set[str]:
    words = _WORD.findall(text.lower())
    starts = range(max(1, len(words) - _WORDS_PER_SHINGLE + 1))
    return {" ".join(words[start : start + _WORDS_PER_SHINGLE]) for start in starts}
