"""The vertical split: one thing, two items, one query, and a change that costs what is hot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tavola import (
    Attr,
    Collection,
    Connection,
    Entity,
    ItemExists,
    ItemMissing,
    PrimaryKey,
    Table,
    attr,
    connect,
    member,
)
from tavola.patterns import RecipeRefused, Split, saving


class Site(Table):
    """The one table."""


class Profile(Entity, table=Site):
    """The long part."""

    user_id: Attr[str]
    name: Attr[str]
    bio: Attr[str]

    class Key(PrimaryKey["Profile"], pk="USER#{user_id}", sk="PROFILE"):
        user_id: str


class Stats(Entity, table=Site):
    """The part that changes."""

    user_id: Attr[str]
    views: Attr[int] = attr(default=0)
    likes: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Stats"], pk="USER#{user_id}", sk="STATS"):
        user_id: str


class Needy(Entity, table=Site):
    """A part that cannot begin by itself."""

    user_id: Attr[str]
    views: Attr[int]

    class Key(PrimaryKey["Needy"], pk="USER#{user_id}", sk="NEEDY"):
        user_id: str


class User(Collection, pk="USER#{user_id}"):
    """Both parts."""

    user_id: str
    profile: Profile | None = member()
    stats: Stats | None = member()


class Wider(Collection, pk="USER#{user_id}"):
    """A profile and what cannot begin."""

    user_id: str
    profile: Profile | None = member()
    needy: Needy | None = member()


ADA = Profile(user_id="ada", name="Ada", bio="x" * 9_700)


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    made = opened()
    made.create_tables(Site)
    return made


@pytest.fixture
def users(db: Connection, made: Callable[..., Any]) -> Any:
    """Users in two parts, one of them there."""
    split = made(Split, db, User, cold=Profile, hot=Stats)
    split.create(ADA)
    return split


def test_one_query_reads_both(users: Any, db: Connection) -> None:
    """Both parts come with one query, and cost what one item of their size would."""
    users.change(Stats.views.add(3), Stats.likes.add(1), user_id="ada")
    with db.measure() as spent:
        whole = users.read(user_id="ada")

    assert (whole.profile, whole.stats) == (ADA, Stats(user_id="ada", views=3, likes=1))
    assert spent.operations == {"Query": 1}
    assert spent.reads == 3  # 10 KB, read consistently


def test_a_change_costs_what_is_hot(users: Any, db: Connection) -> None:
    """A view counted apart takes one unit, in the whole item ten; the same as `saving` foretells."""
    with db.measure() as apart:
        users.change(Stats.views.add(1), user_id="ada")
    with db.measure() as in_one:
        db.update(Profile.Key(user_id="ada"), Profile.name.set("Ada L."))

    assert (apart.writes, in_one.writes) == (1, 10)
    told = saving(9_800, 100)
    assert (told.together, told.apart, told.times) == (10, 1, 10.0)


def test_the_parts_come_and_go_together(users: Any) -> None:
    """Both are created, or neither; a count without its thing is refused; replaced and deleted likewise."""
    with pytest.raises(ItemExists):
        users.create(ADA)
    with pytest.raises(ItemMissing):
        users.change(Stats.views.add(1), user_id="bob")
    with pytest.raises(ItemMissing):
        users.replace(Profile(user_id="bob", name="Bob", bio=""))
    assert users.read(user_id="bob").profile is None

    users.change(Stats.views.add(5), user_id="ada")
    users.replace(Profile(user_id="ada", name="Countess", bio=""))
    whole = users.read(user_id="ada")
    assert (whole.profile.name, whole.stats.views) == ("Countess", 5)
    users.delete(user_id="ada")
    whole = users.read(user_id="ada")
    assert (whole.profile, whole.stats) == (None, None)


def test_parts_that_do_not_fit_are_refused() -> None:
    """A part that the collection lacks, and one that cannot begin by itself, are refused with what to do."""
    with connect("memory:") as db:
        with pytest.raises(RecipeRefused, match="has no member Needy"):
            Split(db, User, cold=Profile, hot=Needy)
        with pytest.raises(RecipeRefused, match=r"Needy\.views: it has no default"):
            Split(db, Wider, cold=Profile, hot=Needy)
