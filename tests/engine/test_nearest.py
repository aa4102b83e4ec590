"""The exact search: the answer of a plain loop, whatever is in the matrix and however it came there."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.engine import Engine
from tavola.engine.nearest import Matrix, numpy
from tavola.engine.vectors import Distance, Vector, VectorDefinition
from tavola.protocol.faults import ValidationFault

FLOAT_MAX = 3.4028234663852886e38
DISTANCES: tuple[Distance, ...] = ("COSINE", "DOT_PRODUCT", "EUCLIDEAN")

_floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
_few = st.sampled_from([struct.unpack("<f", struct.pack("<f", n))[0] for n in (0, 1, -1, 0.5, 1e-20, 3e38)])
_numbers = st.one_of(_floats, _few)


def _index(distance: Distance, dimensions: int, *schema: str) -> Vector:
    definition = VectorDefinition(
        name="near",
        slot=1,
        attribute="v",
        dimensions=dimensions,
        distance=distance,
        projection="ALL",
        schema=tuple((name, "INLINE_FILTER") for name in schema),
    )
    return Vector(definition, ("pk",), dict.fromkeys(schema, "S"), 0)


def _score(distance: Distance, one: tuple[float, ...], other: tuple[float, ...]) -> float:
    dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
    match distance:
        case "COSINE":
            length = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
            return 1.0 if length == 0 else min(max(1 - dot / length, 0.0), 2.0)
        case "EUCLIDEAN":
            apart = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))
            return min(apart, FLOAT_MAX)
        case "DOT_PRODUCT":
            return min(max(dot, -FLOAT_MAX), FLOAT_MAX)


@st.composite
def _searches(draw: st.DrawFn) -> tuple[Distance, list[tuple[float, ...]], tuple[float, ...], int]:
    dimensions = draw(st.integers(1, 6))
    vectors = st.tuples(*[_numbers] * dimensions)
    return (
        draw(st.sampled_from(DISTANCES)),
        draw(st.lists(vectors, max_size=40)),
        draw(vectors),
        draw(st.integers(1, 12)),
    )


@settings(max_examples=100, deadline=None)
@given(_searches())
def test_a_search_is_exact(
    search: tuple[Distance, list[tuple[float, ...]], tuple[float, ...], int],
) -> None:
    """The scores are those of a loop over everything, in 64-bit floats, and each is the score of its entry."""
    distance, vectors, query, most = search
    pack = struct.Struct(f"<{len(query)}f").pack
    entries = {str(place).encode(): vector for place, vector in enumerate(vectors)}
    matrix = Matrix(_index(distance, len(query)), [(key, pack(*vector)) for key, vector in entries.items()])

    found = matrix.search(pack(*query), most, {})

    sign = -1 if distance == "DOT_PRODUCT" else 1
    expected = sorted(sign * _score(distance, query, vector) for vector in vectors)[:most]
    tolerance: dict[str, Any] = {"rel": 1e-9, "abs": 1e-9 if distance == "COSINE" else 1e-6}
    if distance == "DOT_PRODUCT":  # terms may cancel, so the error is measured by their size
        terms = [abs(a * b) for vector in vectors for a, b in zip(query, vector, strict=True)]
        tolerance["abs"] = 1e-12 * max(terms, default=0) + 1e-12
    assert [sign * hit.score for hit in found] == pytest.approx(expected, **tolerance)
    for hit in found:
        assert hit.score == pytest.approx(_score(distance, query, entries[hit.key]), **tolerance)
    assert len({hit.key for hit in found}) == len(found)


def test_the_nearest_among_many_is_found() -> None:
    """The pass in 32-bit floats leaves out no one who belongs to the nearest, however close they lie."""
    pack = struct.Struct("<8f").pack
    step = 2.0**-23
    vectors = [(1.0, place * step, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0) for place in range(5_000)]
    query = (1.0, 2_500 * step, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0)
    entries = [(f"{place:05d}".encode(), pack(*vector)) for place, vector in enumerate(vectors)]

    for distance in ("COSINE", "EUCLIDEAN"):
        found = Matrix(_index(distance, 8), entries).search(pack(*query), 3, {})

        assert found[0].key == b"02500"
        assert found[0].score == 0.0
        assert {hit.key for hit in found[1:]} == {b"02499", b"02501"}


def test_equals_come_in_the_order_of_their_keys() -> None:
    """An order that no one promises is still the same each time."""
    entries = [(bytes([65 + place]), struct.pack("<2f", 1, 0)) for place in reversed(range(20))]
    found = Matrix(_index("COSINE", 2), entries).search(struct.pack("<2f", 1, 0), 5, {})

    assert b"".join(hit.key for hit in found) == b"ABCDE"


_CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.tuples(_few, _few), st.sampled_from(["x", "y", None])),
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(_CHANGES, _CHANGES)
def test_a_matrix_kept_in_step_equals_one_made_again(before: Any, after: Any) -> None:
    """Entries that come, change and go leave what building it from the store would give."""
    standing: dict[bytes, bytes] = {}
    index = _index("EUCLIDEAN", 2, "kind")

    def entry(vector: tuple[float, float], kind: str | None) -> bytes:
        tail = b"[null]" if kind is None else b'[{"S":"%s"}]' % kind.encode()
        return struct.pack("<2f", *vector) + tail

    for number, vector, kind in before:
        standing.pop(b"%d" % number, None)
        if vector is not None:
            standing[b"%d" % number] = entry(vector, kind)
    kept = Matrix(index, standing.items())
    for number, vector, kind in after:
        key = b"%d" % number
        if vector is None:
            standing.pop(key, None)
            kept.remove(key)
        else:
            standing[key] = entry(vector, kind)
            kept.put(key, standing[key])
    made = Matrix(index, standing.items())

    query = struct.pack("<2f", 0.25, 0.25)
    assert len(kept) == len(made) == len(standing)
    for wanted in ({}, {"kind": {"S": "x"}}, {"kind": {"S": "z"}}):
        assert kept.search(query, 5, wanted) == made.search(query, 5, wanted)


def test_a_matrix_grows() -> None:
    """It starts with little room and takes as much as it needs."""
    matrix = Matrix(_index("COSINE", 1), [])
    for place in range(100):
        matrix.put(b"%03d" % place, struct.pack("<f", place + 1))

    assert len(matrix) == 100
    assert matrix.vector(b"041") == ["42.0"]


def test_a_copy_that_has_lost_step_is_read_again() -> None:
    """Rows that came in by another way than a write are found all the same."""
    with Engine.open() as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "notes",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                "VectorIndexes": [
                    {
                        "IndexName": "near",
                        "VectorAttribute": {"AttributeName": "v"},
                        "Dimensions": 1,
                        "DistanceFunction": "EUCLIDEAN",
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
            },
        )
        request = {"TableName": "notes", "IndexName": "near", "SearchVector": [{"N": "1"}], "TopK": 5}
        engine.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": "a"}, "v": {"L": [{"N": "1"}]}}})
        assert len(engine.call("SearchVectors", request)["SearchResults"]) == 1
        (table,) = engine._catalog.tables()
        copy = table.vectors[0].copy
        assert isinstance(copy, Matrix)

        copy.remove(next(iter(copy._keys)))

        assert len(engine.call("SearchVectors", request)["SearchResults"]) == 1


def test_without_numpy_a_search_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy is an extra; who lacks it is reported how to get it."""
    monkeypatch.setitem(sys.modules, "numpy", None)

    with pytest.raises(ValidationFault, match=r"pip install 'tavola\[vectors\]'"):
        numpy()
