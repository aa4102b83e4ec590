"""Profiles: a frequently updated counter in its own item, apart from long texts.

A write is billed by the size of the whole item in steps of 1 KB, however little of it changes. A profile of 10 KB that counts its views
costs 10 write units per view; with the counter in its own item, a view costs 1, the smallest write. Reading both is still one
query, because they share a partition.
"""

from __future__ import annotations

from collections.abc import Awaitable

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_collect, run_measured
from tavola.patterns import Split, saving

BIO_BYTES = 9_700


class Profiles(tv.Table, name="gallery-profiles", pk="PK", sk="SK"):
    """Users, each in one large item and, alternatively, in two items."""


class WholeProfile(tv.Entity, table=Profiles):
    """A profile that holds its counter: the design before the split."""

    user_id: tv.Attr[str]
    bio: tv.Attr[str]
    views: tv.Attr[int] = tv.attr(default=0)

    class Key(tv.PrimaryKey["WholeProfile"], pk="WHOLE#{user_id}", sk="PROFILE"):
        user_id: str


class Profile(tv.Entity, table=Profiles):
    """The long attributes, which rarely change."""

    user_id: tv.Attr[str]
    bio: tv.Attr[str]

    class Key(tv.PrimaryKey["Profile"], pk="USER#{user_id}", sk="PROFILE"):
        user_id: str


class Stats(
    tv.Entity,
    table=Profiles,
    writes=(tv.WritePattern("A view", "update", ("views",), per_second=300, item_bytes=100),),
):
    """The short attributes, which change with every view."""

    user_id: tv.Attr[str]
    views: tv.Attr[int] = tv.attr(default=0)

    class Key(tv.PrimaryKey["Stats"], pk="USER#{user_id}", sk="STATS"):
        user_id: str


class UserProfile(
    tv.Collection,
    pk="USER#{user_id}",
    access=tv.AccessPattern("A user with its statistics", per_second=50, items=2, item_bytes=5_000),
):
    """Both items, with one query."""

    user_id: str
    profile: Profile | None = tv.member()
    stats: Stats | None = tv.member()


def users() -> tuple[tv.Entity, ...]:
    """Return one user in both designs."""
    bio = ("A long text that rarely changes: where the user has worked, and on what. " * 200)[:BIO_BYTES]
    return (
        WholeProfile(user_id="user-01", bio=bio),
        Profile(user_id="user-01", bio=bio),
        Stats(user_id="user-01"),
    )


SAMPLE = Sample(
    "profiles",
    "Profiles and statistics",
    summary="A vertical split: a counter in its own item uses a tenth of the write units.",
    source="Patterns and best practices: cost optimisation, vertical sharding",
    tables=(Profiles,),
    entities=users,
)


@SAMPLE.demonstrate("views", "Count a view before and after the split", writes=True)
async def count_views(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Count a view in both designs, and read the split user."""
    split = Split(db, UserProfile, cold=Profile, hot=Stats)
    estimate = saving(BIO_BYTES, 100)
    before = db.update(WholeProfile.Key(user_id="user-01"), WholeProfile.views.add(1))
    single_item = await run_measured(db, "A view in one item of 10 KB", _views(before))
    after = split.change(Stats.views.add(1), user_id="user-01")
    apart = await run_measured(db, "A view in its own item", _views(after))
    return (
        single_item,
        apart,
        StepResult(
            "Cost factor: measured, and estimated by saving()",
            (single_item.writes / apart.writes, estimate.times),
        ),
        await run_collect(db, "Both parts with one query", UserProfile(user_id="user-01")),
    )


async def _views(change: Awaitable[WholeProfile | Stats]) -> int:
    return (await change).views
