"""Nearest: a vector index in memory, searched exactly.

The entries of an index lie in one matrix of 32-bit floats, which is read from the store at the first search
and kept in step with the writes after it. A search goes over all of it: first in 32-bit floats, with a
bound on the error of each score, then again in 64-bit floats over the few entries that the bound leaves in
question. So the answer is the true one, at about the price of a single pass. Needs numpy, which is imported when
somebody searches.
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
    Places = NDArray[np.intp]

_FLOAT_MAX = 3.4028234663852886e38  # the largest of 32 bits; a score beyond it is told as this
_UNIT = 2.0**-22  # four times the rounding of a 32-bit sum's term
_TINY = 2.0**-148
_BLOCK = 4096  # entries that are widened to 64 bits at a time


class VectorHit(NamedTuple):
    """An entry that a search has found."""

    score: float
    key: bytes


def matrix_of(table: StoredTable, vector: Vector) -> Matrix:
    """Return the index in memory, read from the store if nobody has searched it yet."""
    copy = vector.copy
    known = table.counts.index_items.get(vector.definition.slot, 0)
    if isinstance(copy, Matrix) and len(copy) == known:
        return copy
    matrix = Matrix(vector, table.rows.entries(vector.column))
    vector.copy = matrix
    return matrix


def numpy() -> Any:
    """Return numpy; say how to install it where it is missing."""
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
        found = list(entries)
        self._keys = [key for key, _ in found]
        self._rows = {key: row for row, key in enumerate(self._keys)}
        room = max(16, len(found))
        self._data: Any = np.zeros((room, vector.dimensions), dtype="<f4")
        self._squares: Any = np.zeros(room, dtype=np.float64)
        self._codes: dict[str, Any] = {name: np.full(room, -1, dtype=np.int64) for name in vector.names}
        packed = b"".join([entry[: self._width] for _, entry in found])
        self._data[: len(found)] = np.frombuffer(packed, dtype="<f4").reshape(-1, vector.dimensions)
        for start in range(0, len(found), _BLOCK):
            block = self._data[start : start + _BLOCK].astype(np.float64)
            self._squares[start : start + _BLOCK] = np.einsum("ij,ij->i", block, block)
        if vector.names:
            for row, (_, entry) in enumerate(found):
                self._set_codes(row, entry)

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: bytes, entry: bytes) -> None:
        """Take an entry in, in place of one of this key."""
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
        """Let go of the entry of a key; the last row takes its place."""
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

    def search(self, query: bytes, most: int, wanted: Mapping[str, Value]) -> list[VectorHit]:
        """Return up to `most` entries nearest to a packed vector, of those that have the wanted values.

        The nearest comes first; of equals, the one that a scan meets first.
        """
        np = self._np
        places = self._matching_rows(wanted)
        if not len(places):
            return []
        sought = np.frombuffer(query, dtype="<f4").astype(np.float64)
        places = places[self._candidates(places, sought, most)]
        ranks = np.empty(len(places), dtype=np.float64)
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK]
            ranks[start : start + _BLOCK] = self._ranks(block, sought)
        order = sorted(range(len(places)), key=lambda each: (ranks[each], self._keys[places[each]]))
        sign = -1.0 if self._distance == "DOT_PRODUCT" else 1.0
        return [
            VectorHit(self._display_score(sign * ranks[each]), self._keys[places[each]])
            for each in order[:most]
        ]

    def vector(self, key: bytes) -> list[str]:
        """Return the vector of an entry as texts, each the shortest that is this 32-bit float."""
        return [str(number) for number in self._data[self._rows[key]]]

    def _matching_rows(self, wanted: Mapping[str, Value]) -> Places:
        np = self._np
        count = len(self._keys)
        chosen = np.ones(count, dtype=bool)
        for name, value in wanted.items():
            code = self._codes_of[name].get(msgspec.json.encode(value), -2)
            chosen &= self._codes[name][:count] == code
        found: Places = np.flatnonzero(chosen)
        return found

    def _candidates(self, places: Places, sought: Floats, most: int) -> Places:
        """Return which of the places may be among the nearest, by a pass in 32-bit floats.

        A sum of n products of 32-bit floats is off by less than n units of rounding times the lengths of both
        vectors; whoever is not certainly further than the last of the nearest stays.
        """
        np = self._np
        everybody: Places = np.arange(len(places))
        if len(places) <= most:
            return everybody
        whole = len(places) == len(self._keys)
        data = self._data[: len(self._keys)] if whole else self._data[places]
        squares = self._squares[places]
        own = float(sought @ sought)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            dots = (data @ sought.astype(np.float32)).astype(np.float64)
        if not np.isfinite(dots).all():
            return everybody  # too large for 32 bits: all of them are gone through in 64
        lengths = np.sqrt(squares * own)
        error = self._dimensions * (_UNIT * lengths + _TINY)
        match self._distance:
            case "COSINE":
                with np.errstate(divide="ignore", invalid="ignore"):
                    ranks = np.where(lengths > 0, 1.0 - dots / lengths, 1.0)
                    error = np.where(lengths > 0, error / lengths, 0.0)
            case "EUCLIDEAN":
                ranks = squares + own - 2.0 * dots
                error = 2.0 * error + 2.0**-48 * (squares + own)
            case "DOT_PRODUCT":
                ranks = -dots
        last = np.partition(ranks + error, most - 1)[most - 1]
        chosen: Places = np.flatnonzero(ranks - error <= last)
        return chosen

    def _ranks(self, places: Places, sought: Floats) -> Floats:
        """Return the exact score of each place in 64-bit floats, turned so that less is nearer."""
        np = self._np
        block = self._data[places].astype(np.float64)
        ranks: Floats
        match self._distance:
            case "COSINE":
                lengths = np.sqrt(self._squares[places] * (sought @ sought))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ranks = np.where(lengths > 0, 1.0 - (block @ sought) / lengths, 1.0)
                # Rounding must tell no vector apart from itself, and none beyond its opposite.
                same = (block == sought).all(axis=1) & (lengths > 0)
                ranks = np.clip(np.where(same, 0.0, ranks), 0.0, 2.0)
            case "EUCLIDEAN":
                apart = block - sought
                ranks = np.sqrt(np.einsum("ij,ij->i", apart, apart))
            case "DOT_PRODUCT":
                ranks = -(block @ sought)
        return ranks

    def _display_score(self, score: float) -> float:
        return min(max(float(score), -_FLOAT_MAX), _FLOAT_MAX) + 0.0  # and no zero with a sign

    def _grow(self) -> None:
        np = self._np
        room = 2 * len(self._data)
        self._data = np.concatenate((self._data, np.zeros_like(self._data)))
        self._squares = np.concatenate((self._squares, np.zeros_like(self._squares)))
        for name, codes in self._codes.items():
            self._codes[name] = np.concatenate((codes, np.full(room - len(codes), -1, dtype=np.int64)))

    def _set_codes(self, row: int, entry: bytes) -> None:
        values: list[msgspec.Raw] = msgspec.json.decode(entry[self._width :], type=list[msgspec.Raw])
        for name, raw in zip(self._names, values, strict=True):
            value = bytes(raw)
            known = self._codes_of[name]
            self._codes[name][row] = -1 if value == b"null" else known.setdefault(value, len(known))


def pack(numbers: Iterable[float]) -> bytes:
    """Return numbers as 32-bit floats; OverflowError where one is too large."""
    listed = list(numbers)
    return struct.pack(f"<{len(listed)}f", *listed)
