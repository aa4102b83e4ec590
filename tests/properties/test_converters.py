"""Laws of converters: what is written is admitted, and reads back through pydantic as the same value."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, SecretStr, TypeAdapter
from typing_extensions import TypedDict

from tavola.model.converters import (
    EpochMilliseconds,
    EpochSeconds,
    Exact,
    converter_for,
    decode_plain,
    encode_plain,
)
from tavola.values import admit_value
from tests.properties.strategies import NUMBERS, TEXT

# Types of types that are known only when the test runs.
LIST: Any = list
DEQUE: Any = deque
TUPLE: Any = tuple
DICT: Any = dict
SET: Any = set
FROZENSET: Any = frozenset

Typed = tuple[Any, st.SearchStrategy[Any]]  # an annotation, and values of it


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Mood(StrEnum):
    GLAD = "glad"


class Point(NamedTuple):
    x: int
    at: datetime


class Window(TypedDict):
    opens: time
    closes: NotRequired[time]


@dataclass
class Parcel:
    weight: Decimal
    marks: set[str] = field(default_factory=set)


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    grown: Annotated[datetime, EpochSeconds]


class Branch(BaseModel):
    model_config = ConfigDict(extra="allow")

    kind: Literal["branch"] = "branch"
    length: timedelta
    note: str | None = "none yet"
    parts: list[Leaf | Branch] = []


OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC) | OFFSETS)  # noqa: DTZ001
WHOLE_MOMENTS = MOMENTS.map(lambda moment: moment.replace(microsecond=0))
MILLI_MOMENTS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: f == 0 or 1e-120 < abs(f) < 1e120)
DURATIONS = st.timedeltas()
LEAVES = st.builds(Leaf, grown=WHOLE_MOMENTS)
BRANCHES = st.recursive(
    LEAVES,
    lambda parts: st.builds(
        Branch,
        length=DURATIONS,
        note=st.none() | TEXT,
        parts=st.lists(parts, max_size=3),
        spare=st.integers(),
    ),
    max_leaves=6,
)

HASHABLE: list[Typed] = [
    (str, TEXT),
    (int, st.integers(-(10**38) + 1, 10**38 - 1)),
    (Decimal, NUMBERS.map(Decimal)),
    (bytes, st.binary(max_size=12)),
    (datetime, MOMENTS),
    (Annotated[datetime, EpochSeconds], WHOLE_MOMENTS),
    (Annotated[datetime, EpochMilliseconds], MILLI_MOMENTS),
    (date, st.dates()),
    (time, st.times()),
    (timedelta, DURATIONS),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Mood, st.sampled_from(Mood)),
    (Literal["a", "b"], st.sampled_from("ab")),
    (Annotated[float, Exact], FLOATS),
]
SCALARS: list[Typed] = [
    *HASHABLE,
    (bool, st.booleans()),
    (Literal[1, "one", True], st.sampled_from([1, "one", True])),
    (SecretStr, TEXT.map(SecretStr)),
    (Point, st.builds(Point, st.integers(-9, 9), MOMENTS)),
    (Window, st.fixed_dictionaries({"opens": st.times()}, optional={"closes": st.times()})),
    (Parcel, st.builds(Parcel, NUMBERS.map(Decimal), st.sets(TEXT, max_size=3))),
    (Leaf | Branch, BRANCHES),
    (str | int | bool, TEXT | st.integers(-9, 9) | st.booleans()),
    (int | Decimal, st.integers(-9, 9) | NUMBERS.map(Decimal)),
    (Mood | str, st.sampled_from(Mood) | TEXT),
    (str | list[bytes], TEXT | st.lists(st.binary(max_size=3), max_size=3)),
]
NAMES: list[Typed] = [
    (str, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)),
    (int, st.integers()),
    (date, st.dates()),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
]


def _containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def lists(member: Typed) -> Typed:
        return LIST[member[0]], st.lists(member[1], max_size=4)

    def queues(member: Typed) -> Typed:
        return DEQUE[member[0]], st.lists(member[1], max_size=4).map(deque)

    def rows(member: Typed) -> Typed:
        return TUPLE[member[0], ...], st.lists(member[1], max_size=4).map(tuple)

    def pairs(members: tuple[Typed, Typed]) -> Typed:
        (left, lefts), (right, rights) = members
        return TUPLE[left, right], st.tuples(lefts, rights)

    def gaps(member: Typed) -> Typed:
        return LIST[member[0] | None], st.lists(st.none() | member[1], max_size=4)

    def maps(members: tuple[Typed, Typed]) -> Typed:
        (name, names), (member, values) = members
        return DICT[name, member], st.dictionaries(names, values, max_size=4)

    return st.one_of(
        inner.map(lists),
        inner.map(queues),
        inner.map(rows),
        inner.map(gaps),
        st.tuples(inner, inner).map(pairs),
        st.tuples(st.sampled_from(NAMES), inner).map(maps),
        st.sampled_from(HASHABLE).map(lambda member: (SET[member[0]], st.sets(member[1], max_size=4))),
        st.sampled_from(HASHABLE).map(
            lambda member: (FROZENSET[member[0]], st.frozensets(member[1], max_size=4))
        ),
    )


TYPED = st.recursive(st.sampled_from(SCALARS), _containers, max_leaves=4)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | NUMBERS.map(Decimal)
    | TEXT
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES[0][1], inner, max_size=4)
        | st.sets(TEXT, min_size=1, max_size=3)
        | st.sets(st.integers(-9, 9), min_size=1, max_size=3)
    ),
    max_leaves=12,
)


def test_binaries_of_a_set_are_written_in_the_order_of_their_bytes() -> None:
    """Base64 text sorts in another order than the bytes that it stands for."""
    written = {"BS": ["AA==", "0A=="]}

    assert converter_for(set[bytes]).encode({b"\xd0", b"\x00"}) == written
    assert converter_for(Any).encode({b"\xd0", b"\x00"}) == written


@given(st.data())
def test_what_is_written_is_admitted_and_reads_back_as_the_same_value(data: st.DataObject) -> None:
    """validate(decode(encode(x))) is x for every supported type, and DynamoDB takes what encode gives."""
    annotation, values = data.draw(TYPED)
    value = data.draw(values)
    converter = converter_for(annotation)
    written = converter.encode(value)

    assert written or converter.absent is not None
    if written:
        admitted = deepcopy(written)
        admit_value(admitted)
        assert admitted == written, "what is written is canonical already"
        assert written.keys() <= converter.tags
        wired = msgspec.json.decode(msgspec.json.encode(written))
        read = converter.decode(wired)
    else:
        assert converter.absent is not None
        read = converter.absent()
    assert TypeAdapter(annotation).validate_python(read, strict=False) == value


@given(PLAIN)
def test_plain_values_read_back_as_they_were(value: Any) -> None:
    """A field that says nothing of its values gives back what it was given, numbers as int or Decimal."""
    written = encode_plain(value)
    admit_value(deepcopy(written))

    assert decode_plain(written) == value


@given(st.lists(MOMENTS, min_size=2, max_size=8))
def test_the_texts_of_moments_sort_as_the_moments_do(moments: list[datetime]) -> None:
    """Stored datetimes sort by time, whatever zone they were given in."""
    encode = converter_for(datetime).encode

    by_text = sorted(moments, key=lambda moment: str(encode(moment)["S"]))

    assert by_text == sorted(moments)
