"""Social graph: who follows whom, asked from both sides.

A follow is one item. Those that a user follows are in the user's own partition; the followers are the same items in an index with the key turned
round, which DynamoDB keeps. So the two sides cannot disagree. A design with a second item for the other side, or with index keys that
some writers forget, loses followers.
"""

from __future__ import annotations

from datetime import date, timedelta

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, entities, got, measured
from tavola.patterns import Edges

USERS = tuple(f"user-{number:02}" for number in range(1, 9))


class Social(Table, name="gallery-social", pk="PK", sk="SK"):
    """Users and what is between them."""

    inverted = Gsi(pk="SK", sk="PK")


class Member(Entity, table=Social):
    """A user."""

    user_id: Attr[str]
    joined: Attr[date]

    class Key(
        PrimaryKey["Member"],
        pk="USER#{user_id}",
        sk="PROFILE#{user_id}",
        access=AccessPattern("A user by id", per_second=100, items=1, item_bytes=200),
    ):
        user_id: str


class Follow(Entity, table=Social, writes=(WritePattern("A follow", "put", per_second=20, item_bytes=160),)):
    """That one user follows another."""

    follower: Attr[str]
    followed: Attr[str]
    since: Attr[date]

    class Key(PrimaryKey["Follow"], pk="USER#{follower}", sk="FOLLOWS#{followed}"):
        follower: str
        followed: str

    class Following(
        Query["Follow"],
        on=Key,
        access=AccessPattern("Whom a user follows", per_second=40, items=50, item_bytes=160),
    ):
        follower: str
        followed: Sort[str] = sort()

    class Followers(
        Query["Follow"],
        on=Social.inverted,
        access=AccessPattern("Who follows a user", per_second=40, items=50, item_bytes=160),
    ):
        followed: str
        follower: Sort[str] = sort()


def graph() -> tuple[Entity, ...]:
    """Return eight users, of whom each follows those whose numbers divide evenly."""
    start = date(2026, 1, 1)
    made: list[Entity] = [Member(user_id=user, joined=start) for user in USERS]
    for one, follower in enumerate(USERS, 1):
        for other, followed in enumerate(USERS, 1):
            if one != other and other % one == 0:
                made.append(Follow(follower=follower, followed=followed, since=start + timedelta(days=other)))
    return tuple(made)


def follows(db: AsyncConnection) -> Edges[AsyncConnection, Follow]:
    """Return the edges of the graph."""
    return Edges(db, Follow, out=Follow.Following, into=Follow.Followers)


async def both_sides(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask from either side, page by page."""
    edges = follows(db)
    first = await measured(db, "Who follows user-08: the first two", edges.into("user-08", limit=2))
    return (
        await got(db, "user-02", Member.Key(user_id="user-02")),
        await measured(db, "Whom user-02 follows", edges.out("user-02")),
        first,
        await measured(db, "And the rest", edges.into("user-08", limit=2, cursor=first.cursor)),
    )


async def agreement(db: AsyncConnection) -> tuple[Told, ...]:
    """Follow, look from both sides; stop following, look again."""
    edges = follows(db)
    follow = Follow(follower="user-08", followed="user-03", since=date(2026, 5, 1))
    try:
        await edges.link(follow)
        there = await _pairs(edges)
    finally:
        await edges.unlink("user-08", "user-03")
    gone = await _pairs(edges)
    return (
        Told(
            "After a follow: pairs told from the one side, and from the other", (len(there[0]), len(there[1]))
        ),
        Told("Pairs that only one side tells", tuple(sorted(there[0] ^ there[1]))),
        Told("After it was taken back", (len(gone[0]), len(gone[1]))),
        Told("Pairs that only one side tells then", tuple(sorted(gone[0] ^ gone[1]))),
    )


async def _pairs(
    edges: Edges[AsyncConnection, Follow],
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    out, into = set(), set()
    for user in USERS:
        out |= {(edge.follower, edge.followed) for edge in (await edges.out(user)).items}
        into |= {(edge.follower, edge.followed) for edge in (await edges.into(user)).items}
    return out, into


async def in_common(db: AsyncConnection) -> tuple[Told, ...]:
    """Find whom two users both follow."""
    edges = follows(db)
    one = await measured(db, "Whom user-01 follows", edges.out("user-01"))
    other = await measured(db, "Whom user-02 follows", edges.out("user-02"))
    both = {each.followed for each in entities(one, Follow)} & {
        each.followed for each in entities(other, Follow)
    }
    return (one, other, Told("Both", tuple(sorted(both))))


SAMPLE = Sample(
    name="social",
    title="Social graph",
    shows="An adjacency list: follows and followers from one item, so that both sides always agree.",
    source="Common patterns: adjacency list",
    tables=(Social,),
    entities=graph,
    demonstrations=(
        Demonstration("both-sides", "Follows and followers", both_sides),
        Demonstration("agreement", "Both sides agree", agreement, writes=True),
        Demonstration("in-common", "Followed by both", in_common),
    ),
)
