"""Social graph: follows, queried from both sides.

A follow is one item in the partition of the following user. Followers are the same items in an inverted index that DynamoDB
maintains, so the two sides always agree. A design with a second item per follow, or with index keys that some writers forget to set,
loses followers.
"""

from __future__ import annotations

from datetime import date, timedelta

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, entities, run_get, run_measured
from tavola.patterns import Edges

USERS = tuple(f"user-{number:02}" for number in range(1, 9))


class Social(tv.Table, name="gallery-social", pk="PK", sk="SK"):
    """Users and follows."""

    inverted = tv.Gsi(pk="SK", sk="PK")


class SocialUser(tv.Entity, table=Social):
    """A user."""

    user_id: tv.Attr[str]
    joined: tv.Attr[date]

    class Key(
        tv.PrimaryKey["SocialUser"],
        pk="USER#{user_id}",
        sk="PROFILE#{user_id}",
        access=tv.AccessPattern("A user by id", per_second=100, items=1, item_bytes=200),
    ):
        user_id: str


class Follow(
    tv.Entity, table=Social, writes=(tv.WritePattern("A follow", "put", per_second=20, item_bytes=160),)
):
    """A follow of one user by another."""

    follower: tv.Attr[str]
    followed: tv.Attr[str]
    since: tv.Attr[date]

    class Key(tv.PrimaryKey["Follow"], pk="USER#{follower}", sk="FOLLOWS#{followed}"):
        follower: str
        followed: str

    class Following(
        tv.Query["Follow"],
        on=Key,
        access=tv.AccessPattern("Users that a user follows", per_second=40, items=50, item_bytes=160),
    ):
        follower: str
        followed: tv.Sort[str] = tv.sort()

    class Followers(
        tv.Query["Follow"],
        on=Social.inverted,
        access=tv.AccessPattern("Followers of a user", per_second=40, items=50, item_bytes=160),
    ):
        followed: str
        follower: tv.Sort[str] = tv.sort()


def graph() -> tuple[tv.Entity, ...]:
    """Return eight users; each follows the users whose number is a multiple of its own."""
    start = date(2026, 1, 1)
    entities: list[tv.Entity] = [SocialUser(user_id=user, joined=start) for user in USERS]
    for one, follower in enumerate(USERS, 1):
        for other, followed in enumerate(USERS, 1):
            if one != other and other % one == 0:
                entities.append(
                    Follow(follower=follower, followed=followed, since=start + timedelta(days=other))
                )
    return tuple(entities)


def follows(db: tv.AsyncConnection) -> Edges[tv.AsyncConnection, Follow]:
    """Return the edges of the graph."""
    return Edges(db, Follow, out=Follow.Following, into=Follow.Followers)


SAMPLE = Sample(
    "social",
    "Social graph",
    summary="An adjacency list: one item per follow serves both follows and followers.",
    source="Common patterns: adjacency list",
    tables=(Social,),
    entities=graph,
)


@SAMPLE.demonstrate("both-sides", "Query follows and followers")
async def both_sides(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query both sides, page by page."""
    edges = follows(db)
    first = await run_measured(db, "Followers of user-08, first page", edges.into("user-08", limit=2))
    return (
        await run_get(db, "user-02", SocialUser.Key(user_id="user-02")),
        await run_measured(db, "Users that user-02 follows", edges.out("user-02")),
        first,
        await run_measured(
            db, "Followers of user-08, second page", edges.into("user-08", limit=2, cursor=first.cursor)
        ),
    )


@SAMPLE.demonstrate("agreement", "Compare both sides", writes=True)
async def agreement(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Add a follow and compare both sides; remove it and compare again."""
    edges = follows(db)
    follow = Follow(follower="user-08", followed="user-03", since=date(2026, 5, 1))
    try:
        await edges.link(follow)
        stored_pairs = await _pairs(edges)
    finally:
        await edges.unlink("user-08", "user-03")
    gone = await _pairs(edges)
    return (
        StepResult(
            "Pairs after a follow, counted from each side", (len(stored_pairs[0]), len(stored_pairs[1]))
        ),
        StepResult("Pairs found on one side only", tuple(sorted(stored_pairs[0] ^ stored_pairs[1]))),
        StepResult("Pairs after unfollowing, counted from each side", (len(gone[0]), len(gone[1]))),
        StepResult("Pairs found on one side only, after unfollowing", tuple(sorted(gone[0] ^ gone[1]))),
    )


async def _pairs(
    edges: Edges[tv.AsyncConnection, Follow],
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    out, into = set(), set()
    for user in USERS:
        out |= {(edge.follower, edge.followed) for edge in (await edges.out(user)).items}
        into |= {(edge.follower, edge.followed) for edge in (await edges.into(user)).items}
    return out, into


@SAMPLE.demonstrate("in-common", "Find common follows")
async def in_common(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Find the users that two users both follow."""
    edges = follows(db)
    one = await run_measured(db, "Users that user-01 follows", edges.out("user-01"))
    other = await run_measured(db, "Users that user-02 follows", edges.out("user-02"))
    both = {follow.followed for follow in entities(one, Follow)} & {
        follow.followed for follow in entities(other, Follow)
    }
    return (one, other, StepResult("Followed by both", tuple(sorted(both))))
