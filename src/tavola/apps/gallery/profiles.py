"""Profiles: what is counted all the time apart from what is long.

A write is paid by the size of the whole item, in steps of 1 KB, however little of it changes. A profile of 10 KB that counts its views costs
10 write units a view; with the count in an item of its own, a view costs 1. Not a hundredth, as the sizes suggest: no write is
smaller than 1 KB. Reading both is still one query, for they share a partition.
"""

from __future__ import annotations

from collections.abc import Awaitable

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Collection,
    Entity,
    PrimaryKey,
    Table,
    WritePattern,
    attr,
    found,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, fetched, measured
from tavola.patterns import Split, saving

BIO_BYTES = 9_700


class Profiles(Table, name="gallery-profiles", pk="PK", sk="SK"):
    """Users, each in one item as it was, and in two as it is better."""


class WholeProfile(Entity, table=Profiles):
    """A profile that counts in itself: the design before."""

    user_id: Attr[str]
    bio: Attr[str]
    views: Attr[int] = attr(default=0)

    class Key(PrimaryKey["WholeProfile"], pk="WHOLE#{user_id}", sk="PROFILE"):
        user_id: str


class Profile(Entity, table=Profiles):
    """What is long and seldom changes."""

    user_id: Attr[str]
    bio: Attr[str]

    class Key(PrimaryKey["Profile"], pk="USER#{user_id}", sk="PROFILE"):
        user_id: str


class Stats(
    Entity,
    table=Profiles,
    writes=(WritePattern("A view", "update", ("views",), per_second=300, item_bytes=100),),
):
    """What is short and changes with each view."""

    user_id: Attr[str]
    views: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Stats"], pk="USER#{user_id}", sk="STATS"):
        user_id: str


class User(
    Collection,
    pk="USER#{user_id}",
    access=AccessPattern("A user with its statistics", per_second=50, items=2, item_bytes=5_000),
):
    """Both, with one query."""

    user_id: str
    profile: Profile | None = found()
    stats: Stats | None = found()


def users() -> tuple[Entity, ...]:
    """Return one user in both designs."""
    bio = ("A long text that seldom changes: where the user has worked, and on what. " * 200)[:BIO_BYTES]
    return (
        WholeProfile(user_id="user-01", bio=bio),
        Profile(user_id="user-01", bio=bio),
        Stats(user_id="user-01"),
    )


async def count_views(db: AsyncConnection) -> tuple[Told, ...]:
    """Count a view in either design, and read what was split."""
    split = Split(db, User, cold=Profile, hot=Stats)
    foretold = saving(BIO_BYTES, 100)
    before = db.update(WholeProfile.Key(user_id="user-01"), WholeProfile.views.add(1))
    whole = await measured(db, "A view in one item of 10 KB", _views(before))
    after = split.change(Stats.views.add(1), user_id="user-01")
    apart = await measured(db, "A view in an item of its own", _views(after))
    return (
        whole,
        apart,
        Told(
            "Times cheaper: measured, and foretold by saving()", (whole.writes / apart.writes, foretold.times)
        ),
        await fetched(db, "Both parts with one query", User(user_id="user-01")),
    )


async def _views(change: Awaitable[WholeProfile | Stats]) -> int:
    return (await change).views


SAMPLE = Sample(
    name="profiles",
    title="Profiles and statistics",
    shows="A vertical split: a count in an item of its own, at a tenth of the write units, measured.",
    source="Patterns and best practices: cost optimisation, vertical sharding",
    tables=(Profiles,),
    entities=users,
    demonstrations=(Demonstration("views", "A view before and after the split", count_views, writes=True),),
)
