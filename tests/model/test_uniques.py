"""Unique fields as they are declared: what can be one, and that no two values meet in one key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola import Attr, Entity, ModelError, PrimaryKey, Table, attr
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.model import Unique, shape_of


class Rank(Enum):
    """Two ranks."""

    LOW = "low"
    HIGH = "high"


class Hall(Table):
    """A table with text keys."""


class Guest(Entity, table=Hall):
    """Somebody with a unique value of every kind."""

    guest_id: Attr[str]
    name: Attr[str] = attr(unique=True)
    seat: Attr[int] = attr(unique=True, within=("name",))
    price: Attr[Decimal] = attr(unique=True)
    since: Attr[datetime] = attr(unique=True)
    rank: Attr[Rank] = attr(unique=True, within=("name", "seat"))
    vip: Attr[bool] = attr(unique=True)

    class Key(PrimaryKey["Guest"], pk="GUEST#{guest_id}", sk="GUEST"):
        guest_id: str


def unique(name: str) -> Unique:
    """Return a unique field of the guest."""
    return next(found for found in shape_of(Guest).uniques if found.field == name)


def test_equal_values_have_one_key() -> None:
    """Values that are equal in Python make the same key, however they are written."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert unique("price").text({"price": Decimal(1)}) == unique("price").text({"price": Decimal("1.00")})
    assert unique("since").text({"since": noon}) == unique("since").text(
        {"since": noon.astimezone(timezone(timedelta(hours=2)))}
    )
    assert unique("rank").text({"rank": Rank.LOW, "name": "a", "seat": 1}) == unique("rank").text(
        {"rank": "low", "name": "a", "seat": 1}
    )
    assert unique("name").text({"name": None}) is None
    assert unique("seat").text({"name": None, "seat": 1}) is None


def test_long_values_stand_by_their_digest() -> None:
    """A key is never longer than DynamoDB takes, and a long value meets no short one."""
    long, longer = unique("name").text({"name": "x" * 2000}), unique("name").text({"name": "x" * 2001})
    assert long is not None
    assert longer is not None

    assert len(long.encode()) <= RANGE_KEY_BYTES_MAX
    assert long != longer
    assert unique("name").text({"name": long}) not in (long, longer)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\U0010ffff"), max_size=6)
near = st.text("#$a\x00UNIQE", max_size=6)


@given(st.lists(st.tuples(texts | near, st.integers(-20, 20)), min_size=2, max_size=6, unique=True))
def test_no_two_values_meet(values: list[tuple[str, int]]) -> None:
    """Different values of a field, or the same in different company, have different keys."""
    told = [unique("seat").text({"name": name, "seat": seat}) for name, seat in values]
    names = {name for name, _ in values}

    assert len(set(told)) == len(values)
    assert len({unique("name").text({"name": name}) for name in names} | set(told)) == len(values) + len(
        names
    )


@given(st.lists(st.decimals(-1000, 1000, allow_nan=False, places=4), min_size=2, max_size=5, unique=True))
def test_no_digit_is_dropped(values: list[Decimal]) -> None:
    """Different numbers have different keys, to the last digit; so have different moments."""
    moments = {datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(v * 10_000)) for v in values}

    assert len({unique("price").text({"price": value}) for value in values}) == len(values)
    assert len({unique("since").text({"since": moment}) for moment in moments}) == len(moments)


def test_what_cannot_be_unique_is_refused() -> None:
    """A field that no key can hold, one within an unknown field, and within without unique are errors in words."""
    with pytest.raises(ModelError, match="it cannot be unique; only key types can"):

        class Bad1(Entity, table=Hall):
            bad_id: Attr[str]
            tags: Attr[set[str]] = attr(unique=True)

            class Key(PrimaryKey["Bad1"], pk="BAD1#{bad_id}", sk="BAD"):
                bad_id: str

    with pytest.raises(ModelError, match=r"Bad2.name: within= names 'clb', but Bad2 has no such field"):

        class Bad2(Entity, table=Hall):
            bad_id: Attr[str]
            name: Attr[str] = attr(unique=True, within=("clb",))

            class Key(PrimaryKey["Bad2"], pk="BAD2#{bad_id}", sk="BAD"):
                bad_id: str

    with pytest.raises(ModelError, match=r"Bad3.name: within= requires unique=True"):

        class Bad3(Entity, table=Hall):
            bad_id: Attr[str]
            name: Attr[str] = attr(within=("bad_id",))

            class Key(PrimaryKey["Bad3"], pk="BAD3#{bad_id}", sk="BAD"):
                bad_id: str


def test_a_table_without_text_keys_has_no_place_for_guards() -> None:
    """Guards are items of the entity's table, so its keys are text."""

    class Numbers(Table, pk="number", sk=None):
        """A table by numbers."""

    with pytest.raises(
        ModelError, match="unique=True needs a table with string keys, but a key of Numbers is not a"
    ):

        class Bad4(Entity, table=Numbers):
            number: Attr[int]
            name: Attr[str] = attr(unique=True)

            class Key(PrimaryKey["Bad4"]):
                number: int


def test_keys_that_could_be_a_guards_are_refused() -> None:
    """An entity whose template could make a guard's key is refused, its own guards' or another's, in either order."""

    class Open(Table, sk=None):
        """A table of one key."""

    with pytest.raises(
        ModelError,
        match=r"its items could have the key of a guard, 'UNIQUE#\{entity\}#\{unique\}#\{part0\}',",
    ):

        class Bad5(Entity, table=Open):
            one: Attr[str]
            two: Attr[str] = attr(unique=True)
            three: Attr[str]
            four: Attr[str]

            class Key(PrimaryKey["Bad5"], pk="{one}#{three}#{four}"):
                one: str
                three: str
                four: str

    class First(Entity, table=Open):
        """It has a unique value."""

        first_id: Attr[str]
        name: Attr[str] = attr(unique=True)

        class Key(PrimaryKey["First"], pk="FIRST#{first_id}"):
            first_id: str

    with pytest.raises(ModelError, match=r"keeps First.name unique"):

        class Bad6(Entity, table=Open):
            bad_id: Attr[str]

            class Key(PrimaryKey["Bad6"], pk="UNIQUE#{bad_id}"):
                bad_id: str

    class Shut(Table, sk=None):
        """Another."""

    class Second(Entity, table=Shut):
        """It has a key that begins as guards do, and no unique value beside it yet."""

        second_id: Attr[str]

        class Key(PrimaryKey["Second"], pk="UNIQUE#{second_id}"):
            second_id: str

    with pytest.raises(ModelError, match=r"Second.Key: its items could have the key of a guard"):

        class Bad7(Entity, table=Shut):
            bad_id: Attr[str]
            name: Attr[str] = attr(unique=True)

            class Key(PrimaryKey["Bad7"], pk="BAD#{bad_id}"):
                bad_id: str


def test_names_of_guards_are_theirs() -> None:
    """No entity has the tag or an attribute of guards."""
    with pytest.raises(ModelError, match="'UNIQUE' is reserved for the guards of unique values; set tag=…"):

        class Bad8(Entity, table=Hall, tag="UNIQUE"):
            bad_id: Attr[str]

            class Key(PrimaryKey["Bad8"], pk="BAD8#{bad_id}", sk="BAD"):
                bad_id: str

    with pytest.raises(ModelError, match="'_unique' is an attribute of guards"):

        class Bad9(Entity, table=Hall):
            bad_id: Attr[str]
            odd: Attr[str] = attr(name="_unique")

            class Key(PrimaryKey["Bad9"], pk="BAD9#{bad_id}", sk="BAD"):
                bad_id: str
