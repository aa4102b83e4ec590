"""The patterns on both clients: what is called with one is awaited with the other, and the types are the user's own."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import assert_type

from tavola import (
    AsyncConnection,
    Attr,
    Collection,
    Connection,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    member,
    sort,
)
from tavola.patterns import (
    Bonds,
    Cache,
    CacheEntry,
    Counter,
    Counters,
    Edges,
    Node,
    OwnWrites,
    Reached,
    Sequence,
    Sequences,
    Session,
    Sessions,
    Slice,
    Split,
    Tree,
    TreeWork,
)


class Site(Table, ttl="expires_at"):
    """The one table."""

    inverted = Gsi(pk="sk", sk="pk")
    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")


TABLES = (Site,)


class Visits(Counter, table=Site):
    """A counter."""

    class Key(PrimaryKey["Visits"], pk="VISITS#{name}#{part}", sk="COUNTER"):
        name: str
        part: int


class Numbers(Sequence, table=Site):
    """A sequence."""

    class Key(PrimaryKey["Numbers"], pk="SEQUENCE#{scope}", sk="{period}"):
        scope: str
        period: str


class Login(Session, table=Site):
    """A session with a field of one's own."""

    role: Attr[str] = attr(default="agent")

    class Key(PrimaryKey["Login"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str

    class OfUser(Query["Login"], on=Site.gsi1, pk="USER#{user_id}", sk="SESSION#{created_at}"):
        user_id: str
        created_at: Sort[datetime] = sort()


class Answers(CacheEntry, table=Site):
    """A cache."""

    class Key(PrimaryKey["Answers"], pk="CACHE#{cache_key}", sk="CACHE"):
        cache_key: str


class Follow(Entity, table=Site):
    """An edge."""

    follower: Attr[str]
    followed: Attr[str]
    weight: Attr[Decimal] = attr(default=Decimal(1))

    class Key(PrimaryKey["Follow"], pk="FOLLOWER#{follower}", sk="FOLLOWS#{followed}"):
        follower: str
        followed: str

    class Following(Query["Follow"], on=Key):
        follower: str
        followed: Sort[str] = sort()

    class Followers(Query["Follow"], on=Site.inverted):
        followed: str
        follower: Sort[str] = sort()


class Unit(Node, table=Site):
    """A node."""

    head: Attr[str]

    class Key(PrimaryKey["Unit"], pk="TREE#{tree}", sk="NODE#{path}"):
        tree: str
        path: str

    class Under(Query["Unit"], on=Key):
        tree: str
        path: Sort[str] = sort()


class UnitWork(TreeWork, table=Site):
    """What is under way in a tree."""

    class Key(PrimaryKey["UnitWork"], pk="TREE#{tree}", sk="WORK"):
        tree: str


class Profile(Entity, table=Site):
    """What is cold."""

    user_id: Attr[str]
    name: Attr[str]

    class Key(PrimaryKey["Profile"], pk="USER#{user_id}", sk="PROFILE"):
        user_id: str


class Stats(Entity, table=Site):
    """What is hot."""

    user_id: Attr[str]
    views: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Stats"], pk="USER#{user_id}", sk="STATS"):
        user_id: str


class User(Collection, pk="USER#{user_id}"):
    """Both."""

    user_id: str
    profile: Profile | None = member()
    stats: Stats | None = member()


def profile_of(number: int) -> Profile:
    """Return the entity of a number."""
    return Profile(user_id=str(number), name="n")


def use(db: Connection) -> None:
    """Call each once."""
    counters = Counters(db, Visits)
    counters.add("home", 2)
    assert_type(counters.total("home"), int)

    numbers = Sequences(db, Numbers, every="day")
    assert_type(numbers.next("a"), int)
    assert_type(numbers.reserve("a", 10), range)
    assert_type(numbers.create_numbered("b", profile_of), Profile)

    sessions = Sessions(db, Login, of_user=Login.OfUser)
    begun = sessions.start("ann", role="lead")
    assert_type(begun, Login)
    assert_type(begun.role, str)
    assert_type(sessions.use(begun.session_id), Login | None)
    assert_type(sessions.of_user("ann"), list[Login])

    cache = Cache(db, Answers, int)
    assert_type(cache.get_or_compute("k", lambda: 3), int | None)
    assert_type(cache.peek("k"), int | None)

    edges = Edges(db, Follow, out=Follow.Following, into=Follow.Followers)
    assert_type(edges.link(Follow(follower="a", followed="b")), bool)
    assert_type(edges.out("a", limit=3), Slice[Follow])
    assert_type(edges.below("a"), list[Reached[Follow]])
    assert_type(edges.explode("a", "weight"), dict[str, int | Decimal])
    bonds = Bonds(db, Follow, of=Follow.Following)
    assert_type(bonds.of("a"), Slice[Follow])

    tree = Tree(db, Unit, UnitWork, under=Unit.Under)
    assert_type(tree.add(tree.node("t", "a", head="h")), Unit)
    assert_type(tree.subtree("t", "a"), Slice[Unit])
    assert_type(tree.get("t", "a"), Unit | None)
    assert_type(tree.under_way("t"), UnitWork | None)

    users = Split(db, User, cold=Profile, hot=Stats)
    users.create(Profile(user_id="u", name="n"))
    assert_type(users.change(Stats.views.add(1), user_id="u"), Stats)
    assert_type(users.read(user_id="u"), User)

    own = OwnWrites(db)
    assert_type(own.query(Follow.Followers(followed="b"), own.receipt(begun)), Slice[Follow])


async def seven() -> int | None:
    """Work something out."""
    return 7


async def use_async(db: AsyncConnection) -> None:
    """Await each once."""
    counters = Counters(db, Visits)
    await counters.add("home", amount=2)
    assert_type(await counters.total("home"), int)

    numbers = Sequences(db, Numbers)
    assert_type(await numbers.next("a"), int)
    assert_type(await numbers.create_numbered("b", profile_of), Profile)

    sessions = Sessions(db, Login, of_user=Login.OfUser)
    begun = await sessions.start("ann", role="lead")
    assert_type(await sessions.use(begun.session_id), Login | None)

    cache = Cache(db, Answers, int)
    assert_type(await cache.get_or_compute("k", seven), int | None)

    edges = Edges(db, Follow, out=Follow.Following, into=Follow.Followers)
    await edges.link(Follow(follower="a", followed="b"))
    assert_type(await edges.out("a"), Slice[Follow])

    tree = Tree(db, Unit, UnitWork, under=Unit.Under)
    assert_type(await tree.add(tree.node("t", "a", head="h")), Unit)

    users = Split(db, User, cold=Profile, hot=Stats)
    await users.create(Profile(user_id="u", name="n"))
    assert_type(await users.read(user_id="u"), User)

    own = OwnWrites(db)
    assert_type(await own.query(Follow.Followers(followed="b")), Slice[Follow])
