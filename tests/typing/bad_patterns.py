"""Mistakes with patterns, one a line; nothing here is ever run."""

from __future__ import annotations

from tavola import AsyncConnection, Connection
from tavola.patterns import Cache, Counters, Edges, Sequences, Sessions, Split, Tree
from tests.typing.ok_patterns import (
    Answers,
    Follow,
    Login,
    Numbers,
    Profile,
    Stats,
    Unit,
    UnitWork,
    User,
    Visits,
    seven,
)


def called(db: Connection) -> None:
    """Verbs take what they say, and patterns the entities that fit them."""
    Counters(db, Login)  # error: a session is no counter
    Counters(db, Visits).add(3)  # error: a name is text
    Counters(db, Visits).add("home", "2")  # error: an amount is a number
    Counters(db, Visits).ad("home")  # error: no such verb
    Sequences(db, Numbers, every="week")  # error: no such period
    Sessions(db, Login).use("s").role  # error: None is not handled
    Cache(db, Answers, int).get_or_compute("k", lambda: "text")  # error: the answer is of another type
    edges = Edges(db, Follow, out=Follow.Following, into=Follow.Followers)
    edges.link(Profile(user_id="u", name="n"))  # error: no edge
    users = Split(db, User, cold=Profile, hot=Stats)
    users.change(Profile.name.set("x"), user_id="u")  # error: not the hot part
    Tree(db, Profile, UnitWork, under=Unit.Under)  # error: a profile is no node


async def awaited(db: AsyncConnection) -> None:
    """What is awaited is not the result itself."""
    numbers: list[int] = []
    numbers.append(Counters(db, Visits).total("home"))  # error: it is not awaited
    await Cache(db, Answers, int).get_or_compute("k", lambda: 3)  # error: compute is not awaitable
    await Cache(db, Answers, str).get_or_compute("k", seven)  # error: the answer is of another type
