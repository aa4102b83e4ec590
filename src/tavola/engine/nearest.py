"""Exact nearest-neighbour search over a vector index in memory.

The entries of an index are one matrix of 32-bit floats, read from the store at the first search and updated by each
write. A search makes two passes:

    all entries ── 32-bit scores, each with an error bound ──► candidates ── 64-bit scores ──► the nearest, exactly

An entry stays a candidate unless its best possible score is worse than the worst possible score of the k-th best. So the
result is exact, at about the cost of one pass in 32 bits. An approximate index would be faster for millions of vectors,
and would give up exactness. Needs numpy, which is imported by the first search.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tavola.engine.catalog import StoredTable
from tavola.engine.vectors import Vector
from tavola.protocol.faults import ValidationFault
from tavola.values import Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    RowNumbers = NDArray[np.intp]

_FLOAT_MAX = 3.4028234663852886e38  # the largest 32-bit float; larger scores are shown as this
_UNIT = 2.0**-22  # four times the rounding of a 32-bit sum's term
_TINY = 2.0**-148
_BLOCK = 4096  # entries that are widened to 64 bits at a time


class VectorHit(NamedTuple):
    """A result of a search."""

    score: float
    key: bytes


def matrix_of(table: StoredTable, vector: Vector) -> Matrix:
    """Return the index in memory; the first search reads it from the store."""
    copy = vector.copy
    known = table.counts.index_items.get(vector.definition.slot, 0)
    if isinstance(copy, Matrix) and len(copy) == known:
        return copy
    matrix = Matrix(vector, table.rows.entries(vector.column))
    vector.copy = matrix
    return matrix


def numpy() -> Any:
    """Return numpy; if it is missing, raise with instructions to install it."""
    try:
        import numpy as np  # noqa: PLC0415  # an optional extra
    except ImportError:
        raise ValidationFault(
            "SearchVectors needs numpy, which is not installed where Tavola runs; install it with: "
            "pip install 'tavola[vectors]'"
        ) from None
    return np


class Matrix:
    """The entries of one vector index, as rows of a matrix that grows by doubling."""

    def __init__(self, vector: Vector, entries: Iterable[tuple[bytes, bytes]]) -> None:
        np = self._np = numpy()
        self._dimensions = vector.dimensions
        self._distance = vector.definition.distance
        self._width = 4 * vector.dimensions
        self._names = vector.names
        self._codes_of: dict[str, dict[bytes, int]] = {name: {} for name in vector.names}
        vectors = list(entries)
        self._keys = [key for key, _ in vectors]
        self._rows = {key: row for row, key in enumerate(self._keys)}
        capacity = max(16, len(vectors))
        self._data: Any = np.zeros((capacity, vector.dimensions), dtype="<f4")
        self._squares: Any = np.zeros(capacity, dtype=np.float64)
        self._codes: dict[str, Any] = {name: np.full(capacity, -1, dtype=np.int64) for name in vector.names}
        packed = b"".join([entry[: self._width] for _, entry in vectors])
        self._data[: len(vectors)] = np.frombuffer(packed, dtype="<f4").reshape(-1, vector.dimensions)
        for start in range(0, len(vectors), _BLOCK):
            block = self._data[start : start + _BLOCK].astype(np.float64)
            self._squares[start : start + _BLOCK] = np.einsum("ij,ij->i", block, block)
        if vector.names:
            for row, (_, entry) in enumerate(vectors):
                self._set_codes(row, entry)

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: bytes, entry: bytes) -> None:
        """Add an entry, or replace the one with this key."""
        row = self._rows.get(key)
        if row is None:
            row = len(self._keys)
            if row == len(self._data):
                self._grow()
            self._keys.append(key)
            self._rows[key] = row
        self._data[row] = self._np.frombuffer(entry, dtype="<f4", count=self._dimensions)
        wide = self._data[row].astype(self._np.float64)
        self._squares[row] = wide @ wide
        if self._names:
            self._set_codes(row, entry)

    def remove(self, key: bytes) -> None:
        """Remove the entry with a key; the last row moves to its position."""
        row = self._rows.pop(key, None)
        if row is None:
            return
        last = self._keys.pop()
        if last != key:
            end = len(self._keys)
            self._keys[row] = last
            self._rows[last] = row
            self._data[row] = self._data[end]
            self._squares[row] = self._squares[end]
            for codes in self._codes.values():
                codes[row] = codes[end]

    def search(self, query: bytes, count: int, filters: Mapping[str, Value]) -> list[VectorHit]:
        """Return up to `count` entries nearest to a packed vector, among those with the filtered values.

        The nearest comes first; equally near ones are in key order.
        """
        np = self._np
        rows = self._matching_rows(filters)
        if not len(rows):
            return []
        target = np.frombuffer(query, dtype="<f4").astype(np.float64)
        rows = rows[self._candidates(rows, target, count)]
        ranks = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            ranks[start : start + _BLOCK] = self._ranks(block, target)
        order = sorted(range(len(rows)), key=lambda position: (ranks[position], self._keys[rows[position]]))
        sign = -1.0 if self._distance == "DOT_PRODUCT" else 1.0
        return [
            VectorHit(self._display_score(sign * ranks[position]), self._keys[rows[position]])
            for position in order[:count]
        ]

    def vector(self, key: bytes) -> list[str]:
        """Return the vector of an entry as texts, each the shortest that reads as the same 32-bit float."""
        return [str(number) for number in self._data[self._rows[key]]]

    def _matching_rows(self, filters: Mapping[str, Value]) -> RowNumbers:
        np = self._np
        count = len(self._keys)
        chosen = np.ones(count, dtype=bool)
        for name, value in filters.items():
            code = self._codes_of[name].get(msgspec.json.encode(value), -2)
            chosen &= self._codes[name][:count] == code
        rows: RowNumbers = np.flatnonzero(chosen)
        return rows

    def _candidates(self, rows: RowNumbers, target: Floats, count: int) -> RowNumbers:
        """Return which of the rows may be among the nearest, by a pass in 32-bit floats.

        The error of a sum of n products of 32-bit floats is less than n units of rounding times the lengths of both
        vectors. A row is dropped only if it is further away than the last of the nearest whatever the errors are.
        """
        np = self._np
        everything: RowNumbers = np.arange(len(rows))
        if len(rows) <= count:
            return everything
        includes_all = len(rows) == len(self._keys)
        data = self._data[: len(self._keys)] if includes_all else self._data[rows]
        squares = self._squares[rows]
        target_square = float(target @ target)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            dots = (data @ target.astype(np.float32)).astype(np.float64)
        if not np.isfinite(dots).all():
            return everything  # too large for 32 bits: score all of them in 64
        lengths = np.sqrt(squares * target_square)
        error = self._dimensions * (_UNIT * lengths + _TINY)
        match self._distance:
            case "COSINE":
                with np.errstate(divide="ignore", invalid="ignore"):
                    ranks = np.where(lengths > 0, 1.0 - dots / lengths, 1.0)
                    error = np.where(lengths > 0, error / lengths, 0.0)
            case "EUCLIDEAN":
                ranks = squares + target_square - 2.0 * dots
                error = 2.0 * error + 2.0**-48 * (squares + target_square)
            case "DOT_PRODUCT":
                ranks = -dots
        last = np.partition(ranks + error, count - 1)[count - 1]
        chosen: RowNumbers = np.flatnonzero(ranks - error <= last)
        return chosen

    def _ranks(self, rows: RowNumbers, target: Floats) -> Floats:
        """Return the exact rank of each row in 64-bit floats: the score, negated if a higher score is nearer."""
        np = self._np
        block = self._data[rows].astype(np.float64)
        ranks: Floats
        match self._distance:
            case "COSINE":
                lengths = np.sqrt(self._squares[rows] * (target @ target))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ranks = np.where(lengths > 0, 1.0 - (block @ target) / lengths, 1.0)
                # Despite rounding, equal vectors have distance 0, and no distance exceeds 2.
                same = (block == target).all(axis=1) & (lengths > 0)
                ranks = np.clip(np.where(same, 0.0, ranks), 0.0, 2.0)
            case "EUCLIDEAN":
                difference = block - target
                ranks = np.sqrt(np.einsum("ij,ij->i", difference, difference))
            case "DOT_PRODUCT":
                ranks = -(block @ target)
        return ranks

    def _display_score(self, score: float) -> float:
        return min(max(float(score), -_FLOAT_MAX), _FLOAT_MAX) + 0.0  # turns -0.0 into 0.0

    def _grow(self) -> None:
        np = self._np
        capacity = 2 * len(self._data)
        self._data = np.concatenate((self._data, np.zeros_like(self._data)))
        self._squares = np.concatenate((self._squares, np.zeros_like(self._squares)))
        for name, codes in self._codes.items():
            self._codes[name] = np.concatenate((codes, np.full(capacity - len(codes), -1, dtype=np.int64)))

    def _set_codes(self, row: int, entry: bytes) -> None:
        values: list[msgspec.Raw] = msgspec.json.decode(entry[self._width :], type=list[msgspec.Raw])
        for name, raw in zip(self._names, values, strict=True):
            value = bytes(raw)
            known = self._codes_of[name]
            self._codes[name][row] = -1 if value == b"null" else known.setdefault(value, len(known))


def pack(numbers: Iterable[float]) -> bytes:
    """Return numbers as packed 32-bit floats; raise OverflowError if one is too large."""
    listed = list(numbers)
    return struct.pack(f"<{len(listed)}f", *listed)
