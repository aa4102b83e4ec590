"""Adjacency lists: both directions always agree."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola import Attr, Connection, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, connect, sort
from tavola.patterns import Bonds, CycleFound, Edges, PatternProgram, RecipeRefused, WalkTooLong
from tavola.patterns.recipe import call_client
from tests.patterns.interleaving import interleavings


class Social(Table):
    """The one table, with its key turned round."""

    inverted = Gsi(pk="sk", sk="pk")
    other = Gsi(pk="gsi1pk", sk="gsi1sk")


class Follow(Entity, table=Social):
    """Who follows whom."""

    follower: Attr[str]
    followed: Attr[str]
    since: Attr[int] = attr(default=2026)
    muted: Attr[str | None] = attr(default=None)

    class Key(PrimaryKey["Follow"], pk="USER#{follower}", sk="FOLLOWS#{followed}"):
        follower: str
        followed: str

    class Following(Query["Follow"], on=Key):
        follower: str
        followed: Sort[str] = sort()

    class Followers(Query["Follow"], on=Social.inverted):
        followed: str
        follower: Sort[str] = sort()


class Part(Entity, table=Social):
    """What a thing is made of."""

    whole: Attr[str]
    part: Attr[str]
    quantity: Attr[Decimal] = attr(default=Decimal(1))

    class Key(PrimaryKey["Part"], pk="WHOLE#{whole}", sk="PART#{part}"):
        whole: str
        part: str

    class Of(Query["Part"], on=Key):
        whole: str
        part: Sort[str] = sort()

    class UsedIn(Query["Part"], on=Social.inverted):
        part: str
        whole: Sort[str] = sort()

    class Sparse(
        Query["Part"], on=Social.other, pk="P#{part}", sk="{whole}", members={"quantity": Decimal(1)}
    ):
        part: str
        whole: Sort[str] = sort()


class Friend(Entity, table=Social):
    """Who is whose friend."""

    one: Attr[str]
    other: Attr[str]
    since: Attr[int] = attr(default=2026)

    class Key(PrimaryKey["Friend"], pk="FRIENDS#{one}", sk="FRIEND#{other}"):
        one: str
        other: str

    class Of(Query["Friend"], on=Key):
        one: str
        other: Sort[str] = sort()


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Social)
    return found


@pytest.fixture
def follows(db: Connection, made: Callable[..., Any]) -> Any:
    """The follow graph."""
    return made(Edges, db, Follow, out=Follow.Following, into=Follow.Followers)


@pytest.fixture
def parts(db: Connection, made: Callable[..., Any]) -> Any:
    """A bill of materials."""
    return made(Edges, db, Part, out=Part.Of, into=Part.UsedIn)


def test_the_inverted_query_misses_no_follower(follows: Any) -> None:
    """Pitfall 18: each follow is found from both sides, with nothing to be written for it besides."""
    for follower, followed in (("alice", "bob"), ("alice", "carol"), ("bob", "alice"), ("carol", "alice")):
        assert follows.link(Follow(follower=follower, followed=followed)) is True

    assert [edge.followed for edge in follows.out("alice")] == ["bob", "carol"]
    assert [edge.follower for edge in follows.into("alice")] == ["bob", "carol"]
    assert [edge.follower for edge in follows.into("bob")] == ["alice"]


def test_a_link_is_made_once_and_taken_once(follows: Any) -> None:
    """A second link changes nothing and says so; what is unlinked is gone from both sides."""
    first = Follow(follower="alice", followed="bob", since=2020)

    assert follows.link(first) is True
    assert follows.link(Follow(follower="alice", followed="bob", since=2021)) is False
    assert follows.find("alice", "bob") == first
    assert follows.unlink("alice", "bob") == first
    assert follows.unlink("alice", "bob") is None
    assert follows.into("bob").items == ()


def test_both_sides_page(follows: Any) -> None:
    """Either direction is read a few at a time, each edge once, in order."""
    names = [f"u{number:02}" for number in range(7)]
    for name in names:
        follows.link(Follow(follower=name, followed="star"))
        follows.link(Follow(follower="fan", followed=name))

    for ask_, end, found in ((follows.into, "star", "follower"), (follows.out, "fan", "followed")):
        seen: list[str] = []
        cursor = None
        while True:
            page = ask_(end, limit=3, cursor=cursor)
            seen += [getattr(edge, found) for edge in page]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == names


EDGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans()), max_size=40)


@settings(max_examples=40, deadline=None)
@given(EDGES)
def test_directions_agree_after_any_changes(changes: list[tuple[str, str, bool]]) -> None:
    """After any links and unlinks, what leads out and what leads in tell the same edges."""
    with connect("memory:") as db:
        db.create_tables(Social)
        follows = Edges(db, Follow, out=Follow.Following, into=Follow.Followers)
        expected = set()
        for source, target, link in changes:
            if link:
                follows.link(Follow(follower=source, followed=target))
                expected.add((source, target))
            else:
                follows.unlink(source, target)
                expected.discard((source, target))

        out = {(edge.follower, edge.followed) for node in "abcd" for edge in follows.out(node)}
        into = {(edge.follower, edge.followed) for node in "abcd" for edge in follows.into(node)}
        assert out == into == expected


def test_an_organisation_is_walked_down_and_up(follows: Any) -> None:
    """A walk tells each node once with its depth, down from the head and up from the ranks, and stops where it is told."""
    for head, member in (
        ("ceo", "cto"),
        ("ceo", "cfo"),
        ("cto", "dev1"),
        ("cto", "dev2"),
        ("dev1", "intern"),
    ):
        follows.link(Follow(follower=head, followed=member))

    assert [(found.node, found.depth) for found in follows.below("ceo")] == [
        ("cfo", 1), ("cto", 1), ("dev1", 2), ("dev2", 2), ("intern", 3),
    ]  # fmt: skip
    assert [found.node for found in follows.below("ceo", depth=1)] == ["cfo", "cto"]
    assert [found.node for found in follows.above("intern")] == ["dev1", "cto", "ceo"]
    follows.link(Follow(follower="intern", followed="ceo"))
    assert len(follows.below("ceo")) == 5
    with pytest.raises(WalkTooLong, match="more than 3 nodes"):
        follows.below("ceo", nodes_max=3)


def test_a_bill_of_materials_multiplies_along_and_adds_across(parts: Any) -> None:
    """What a thing takes of each part is the sum over all ways of the products along them."""
    for whole, part, quantity in (
        ("bike", "wheel", "2"), ("bike", "frame", "1"), ("wheel", "spoke", "32"), ("wheel", "bolt", "1"),
        ("frame", "bolt", "6"), ("frame", "tube", "2.5"),
    ):  # fmt: skip
        parts.link(Part(whole=whole, part=part, quantity=Decimal(quantity)))

    assert parts.explode("bike", "quantity", times=2) == {
        "wheel": 4, "frame": 2, "spoke": 128, "bolt": 16, "tube": Decimal("5.0"),
    }  # fmt: skip
    assert parts.explode("tube", "quantity") == {}
    assert [found.node for found in parts.above("bolt")] == ["frame", "wheel", "bike"]


def test_a_thing_made_of_itself_is_found(parts: Any) -> None:
    """A cycle is an error that shows it, however long it is; a diamond is none."""
    for whole, part in (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("e", "c")):
        parts.link(Part(whole=whole, part=part))

    with pytest.raises(CycleFound) as found:
        parts.explode("a", "quantity")
    assert set(found.value.path) == {"c", "d", "e"}
    assert found.value.path[0] == found.value.path[-1]
    parts.unlink("e", "c")
    assert parts.explode("a", "quantity")["d"] == 2


def test_bonds_are_seen_from_both_sides(db: Connection, made: Callable[..., Any]) -> None:
    """A bond is there for both or for neither, whatever is done to it."""
    friends = made(Bonds, db, Friend, of=Friend.Of)

    assert friends.bind(Friend(one="ann", other="ben", since=2020)) is True
    assert friends.bind(Friend(one="ben", other="ann")) is False
    friends.bind(Friend(one="ann", other="eve"))
    friends.bind(Friend(one="ben", other="eve"))
    assert [bond.other for bond in friends.of("ann")] == ["ben", "eve"]
    assert friends.find("ben", "ann").since == 2020
    assert friends.find_common("ann", "ben") == ["eve"]
    friends.change(Friend(one="ben", other="ann", since=1999))
    assert friends.find("ann", "ben").since == 1999
    assert friends.part("ben", "ann") is True
    assert friends.part("ben", "ann") is False
    assert [bond.other for bond in friends.of("ann")] == ["eve"]


def test_half_a_bond_is_parted_from_either_side(db: Connection, made: Callable[..., Any]) -> None:
    """One side that was written past the pattern is a link to be taken away, whoever asks."""
    bonds = made(Bonds, db, Friend, of=Friend.Of)
    for one, other in (("ann", "ben"), ("ben", "ann")):
        db.put(Friend(one="ann", other="ben"))

        assert bonds.part(one, other)
        assert not bonds.part(one, other)
        assert bonds.of("ann").items == ()


def test_walks_of_one_size_are_allowed_alike(parts: Any) -> None:
    """A walk and a bill of materials count the nodes below a root, and not the root."""
    for child in ("b", "c"):
        parts.link(Part(whole="a", part=child))

    assert len(parts.below("a", nodes_max=2)) == 2
    assert len(parts.explode("a", "quantity", nodes_max=2)) == 2
    with pytest.raises(WalkTooLong):
        parts.below("a", nodes_max=1)
    with pytest.raises(WalkTooLong):
        parts.explode("a", "quantity", nodes_max=1)


def _sides(
    binding: Callable[[Bonds[Any, Friend]], PatternProgram[Any]],
    parting: Callable[[Bonds[Any, Friend]], PatternProgram[Any]],
) -> set[int]:
    """Return how many sides of one bond are left, over all orders of the calls of a bind and a part."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:"))
        made[-1].create_tables(Social)
        friends = Bonds(made[-1], Friend, of=Friend.Of)
        friends.bind(Friend(one="ann", other="ben"))
        return made[-1], [parting(friends), binding(friends)]

    found = set()
    for _ in interleavings(make):
        sides = [("ann", "ben"), ("ben", "ann")]
        found.add(sum(made[-1].get(Friend.Key(one=a, other=b)) is not None for a, b in sides))
        made[-1].close()
    return found


def test_a_bond_is_never_half() -> None:
    """In every order of the calls of a bind and a part there are two sides or none; written one by one, there may be one."""
    bond = Friend(one="ben", other="ann")
    bind: Any = Bonds.bind

    def whole(friends: Bonds[Any, Friend]) -> PatternProgram[Any]:
        return bind.steps(friends, bond)  # type: ignore[no-any-return]

    def halves(friends: Bonds[Any, Friend]) -> PatternProgram[Any]:
        yield from call_client(lambda db: db.put(bond))
        yield from call_client(lambda db: db.put(Friend(one="ann", other="ben")))

    def parting(friends: Bonds[Any, Friend]) -> PatternProgram[Any]:
        return Bonds.part.steps(friends, "ann", "ben")

    assert _sides(whole, parting) <= {0, 2}
    assert 1 in _sides(halves, parting)


def test_directions_that_could_not_agree_are_refused() -> None:
    """A table query for into, an index that leaves edges out, and a node linked with itself are refused."""
    with connect("memory:") as db:
        with pytest.raises(RecipeRefused, match="into must take the other end"):
            Edges(db, Follow, out=Follow.Following, into=Follow.Following)
        with pytest.raises(RecipeRefused, match="two directions would not agree"):
            Edges(db, Part, out=Part.Of, into=Part.Sparse)
        with pytest.raises(RecipeRefused, match=r"Follow\.Followers: the edges are Part items"):
            Edges(db, Part, out=Part.Of, into=Follow.Followers)
        with pytest.raises(RecipeRefused, match="has no field"):
            Edges(db, Part, out=Part.Of, into=Part.UsedIn).explode("a", "weight")
        with pytest.raises(RecipeRefused, match="with itself"):
            Bonds(db, Friend, of=Friend.Of).bind(Friend(one="ann", other="ann"))
