"""Vectors outside of a database that can compare them: how they are kept, and the exact search among them.

numpy is imported at the first vector; the extra `vectors` brings it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactor_memory.models import BranchRange, Value


class NearQuery(Value, frozen=True, kw_only=True):
    """What in one branch means the same as `vector`: no less alike than `min_similarity`, of messages up to `until`."""

    branch: tuple[BranchRange, ...]
    until: int
    vector: tuple[float, ...]
    model: str
    min_similarity: float
    limit: int


class Near(Value, frozen=True, kw_only=True):
    """A message, and how alike it is (cosine)."""

    seq: int
    similarity: float


def packed(vector: Sequence[float]) -> bytes:
    """The vector in half precision: half the bytes to read, and cosines that differ by less than a thousandth."""
    import numpy as np

    return np.asarray(vector, dtype=np.float32).astype("<f2").tobytes()


def nearest(
    query: Sequence[float], vectors: Sequence[bytes | Sequence[float]], *, at_least: float, limit: int
) -> list[tuple[int, float]]:
    """The places of the `limit` vectors nearest to `query`, and their similarity (the inner product) of `at_least` so
    much, nearest first.
    """
    if not vectors:
        return []
    import numpy as np

    similarities = _matrix(vectors) @ np.asarray(query, dtype=np.float32)
    best = np.argsort(-similarities, kind="stable")[:limit]
    return [(int(place), float(similarities[place])) for place in best if similarities[place] >= at_least]


def _matrix(vectors: Sequence[bytes | Sequence[float]]) -> Any:
    import numpy as np

    if isinstance(vectors[0], bytes):
        joined = b"".join(vector for vector in vectors if isinstance(vector, bytes))
        return np.frombuffer(joined, dtype="<f2").reshape(len(vectors), -1).astype(np.float32)
    return np.asarray(vectors, dtype=np.float32)
