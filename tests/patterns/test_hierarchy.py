"""Hierarchies: every level is one question, and a move leaves each node in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola import (
    Attr,
    Connection,
    Gsi,
    ItemMissing,
    Patience,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    connect,
    sort,
)
from tavola.client import Db
from tavola.patterns import MoveRefused, Node, NodeExists, NodeMissing, RecipeRefused, Steps, Tree
from tavola.patterns.recipe import ask
from tests.patterns.interleaving import Running, interleavings


class Firm(Table):
    """The one table."""

    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")


class Unit(Node, table=Firm):
    """A unit of a firm."""

    head: Attr[str] = attr(default="")
    labels: Attr[set[str]] = attr(default_factory=set)

    class Key(PrimaryKey["Unit"], pk="TREE#{tree}", sk="NODE#{path}"):
        tree: str
        path: str

    class Under(Query["Unit"], on=Key):
        tree: str
        path: Sort[str] = sort()

    class Children(Query["Unit"], on=Firm.gsi1, pk="TREE#{tree}#{parent}", sk="{path}"):
        tree: str
        parent: str
        path: Sort[str] = sort()


class Office(Node, table=Firm):
    """Known levels, each a part of the sort key, as the documents draw it; here only for its query."""

    country: Attr[str]
    state: Attr[str]
    city: Attr[str]

    class Key(PrimaryKey["Office"], pk="COUNTRY#{country}", sk="OFFICE#{state}#{city}#{path}"):
        country: str
        state: str
        city: str
        path: str

    class In(Query["Office"], on=Key):
        country: str
        state: Sort[str] = sort()
        city: Sort[str] = sort()
        path: Sort[str] = sort()


PATHS = ["emea", "emea/italy", "emea/italy/milan", "emea/italy/rome", "emea/italy-north", "emea/spain", "apac", "apac/japan"]  # fmt: skip


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Firm)
    return found


@pytest.fixture
def units(db: Connection, made: Callable[..., Any]) -> Any:
    """A firm of eight units."""
    tree = made(Tree, db, Unit, under=Unit.Under, children=Unit.Children)
    for path in PATHS:
        tree.add(tree.node("acme", path, head=f"head of {path}"))
    return tree


def _paths(found: Any) -> list[str]:
    return [node.path for node in found]


def test_every_level_is_one_question(units: Any, db: Connection) -> None:
    """A subtree at any depth is its nodes and no other's, however names begin; children are the next level alone."""
    with db.measured() as spent:
        found = units.subtree("acme", "emea/italy")

    assert spent.operations == {"Query": 1}
    assert _paths(found) == ["emea/italy/milan", "emea/italy/rome"]
    assert sorted(_paths(units.subtree("acme"))) == sorted(PATHS)
    assert _paths(units.children("acme")) == ["apac", "emea"]
    assert _paths(units.children("acme", "emea")) == ["emea/italy", "emea/italy-north", "emea/spain"]
    assert _paths(units.ancestors("acme", "emea/italy/rome")) == ["emea", "emea/italy"]
    assert units.subtree("other").items == ()


def test_children_without_an_index(db: Connection, made: Callable[..., Any]) -> None:
    """Without an index the children are found in the subtree."""
    tree = made(Tree, db, Unit, under=Unit.Under)
    for path in ("a", "a/b", "a/b/c", "d"):
        tree.add(tree.node("t", path))

    assert _paths(tree.children("t")) == ["a", "d"]
    assert _paths(tree.children("t", "a")) == ["a/b"]


def test_known_levels_are_parts_of_a_sort_key(db: Connection) -> None:
    """Country, state and city are asked left to right, each level with one query."""
    for state, city in (("CA", "LA"), ("CA", "SF"), ("NY", "NYC")):
        db.put(Office(country="US", state=state, city=city, tree="o", path=f"{city} 1", parent="/", depth=1))

    def cities(question: Any) -> list[str]:
        return [office.city for office in db.query(question)]

    assert cities(Office.In(country="US")) == ["LA", "SF", "NYC"]
    assert cities(Office.In(country="US").state.eq("CA")) == ["LA", "SF"]
    assert cities(Office.In(country="US").state.eq("CA").city.eq("SF")) == ["SF"]


def test_subtrees_page(units: Any) -> None:
    """A subtree is read a few nodes at a time, each once."""
    first = units.subtree("acme", "emea", limit=2)
    second = units.subtree("acme", "emea", limit=10, cursor=first.cursor)

    assert _paths(first) + _paths(second) == _paths(units.subtree("acme", "emea"))


def test_a_node_is_added_under_one_that_is_there(units: Any) -> None:
    """A parent that is missing, and a path that is taken, are refused by name."""
    with pytest.raises(NodeMissing, match="'emea/france'"):
        units.add(units.node("acme", "emea/france/paris"))
    with pytest.raises(NodeExists, match="'emea/italy'"):
        units.add(units.node("acme", "emea/italy"))
    with pytest.raises(NodeExists):
        units.add(units.node("acme", "emea"))
    with pytest.raises(RecipeRefused, match="none of them empty"):
        units.node("acme", "emea//italy")


def test_a_subtree_is_moved_whole(units: Any) -> None:
    """Everything below a path is below the new one, with its own fields, and nothing is left."""
    moved = units.move("acme", "emea/italy", "apac/italy")

    assert moved.nodes == 3
    assert _paths(units.subtree("acme", "apac")) == [
        "apac/italy",
        "apac/italy/milan",
        "apac/italy/rome",
        "apac/japan",
    ]
    assert units.get("acme", "apac/italy/rome").head == "head of emea/italy/rome"
    assert units.get("acme", "apac/italy").moved_from is None
    assert _paths(units.children("acme", "apac/italy")) == ["apac/italy/milan", "apac/italy/rome"]
    assert _paths(units.subtree("acme", "emea")) == ["emea/italy-north", "emea/spain"]


def test_moves_that_cannot_be_are_refused(units: Any) -> None:
    """Into itself, onto another node, under nothing, or of nothing: nothing is moved."""
    with pytest.raises(MoveRefused, match="inside it"):
        units.move("acme", "emea", "emea/italy/emea")
    with pytest.raises(NodeExists):
        units.move("acme", "emea/italy", "apac/japan")
    with pytest.raises(NodeMissing, match="'nowhere'"):
        units.move("acme", "emea/italy", "nowhere/italy")
    with pytest.raises(NodeMissing, match="'emea/france'"):
        units.move("acme", "emea/france", "apac/france")

    assert sorted(_paths(units.subtree("acme"))) == sorted(PATHS)


def test_a_removal_takes_the_subtree(units: Any) -> None:
    """A node goes with all that is below it."""
    assert units.remove("acme", "emea") == 6
    assert _paths(units.subtree("acme")) == ["apac", "apac/japan"]


def _planted(count: int, kind: type[Tree[Any, Unit]] = Tree) -> tuple[Connection, Tree[Any, Unit]]:
    """Return a tree with a node a, so many nodes below it, and an empty b."""
    db = connect("memory:", patience=Patience(base_s=0))
    db.create_tables(Firm)
    tree = kind(db, Unit, under=Unit.Under, children=Unit.Children)
    for path in ("a", "b", "a/x", *(f"a/x/{number:03}" for number in range(count))):
        tree.add(tree.node("t", path))
    return db, tree


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 12))
def test_an_interrupted_move_goes_on(stop: int) -> None:
    """A move that ends after any of its calls leaves each node once, and the same call again finishes it."""
    db, tree = _planted(60)
    move: Any = Tree.move
    running = Running(move.steps(tree, "t", "a", "b/a"))
    for _ in range(stop):
        if not running.done:
            running.step(db)
    seen = [path.removeprefix("b/") for path in _paths(tree.subtree("t")) if path != "b"]
    assert len(seen) == len(set(seen)) == 62

    if not running.done:
        tree.move("t", "a", "b/a")

    assert len(tree.subtree("t", "b/a")) == 61
    assert len(tree.subtree("t")) == 63
    with pytest.raises(NodeMissing):
        tree.move("t", "a", "b/a")
    db.close()


def test_another_move_does_not_tear_a_tree_apart() -> None:
    """While a move is under way, neither its head nor what is left can be taken elsewhere."""
    db, tree = _planted(40)
    move: Any = Tree.move
    running = Running(move.steps(tree, "t", "a", "b/a"))
    while db.get(Unit.Key(tree="t", path="b/a")) is None:
        running.step(db)
    tree.add(tree.node("t", "c"))

    with pytest.raises(MoveRefused, match="on its way from 'a'"):
        tree.move("t", "b/a", "c/a")
    with pytest.raises(NodeMissing):
        tree.move("t", "a", "c")
    tree.move("t", "a", "b/a")
    assert len(tree.subtree("t", "b/a")) == 41
    db.close()


class Careless(Tree[Any, Unit]):
    """The fault that the test must see: nodes are moved as they were read, whatever became of them since."""

    def _move_some(self, nodes: list[Unit], path: str, to: str) -> Steps[int]:
        for node in nodes:
            yield from self._carry(node, to + node.path[len(path) :])
        return len(nodes)

    def _carry(self, node: Unit, path: str) -> Steps[None]:
        yield from ask(lambda db: db.put(self._at(node, path)))
        yield from ask(lambda db: db.delete(self.key(tree=node.tree, path=node.path)))


def _change() -> Steps[bool]:
    """Change a node, wherever it is; return whether it was found."""
    for path in ("a/x", "b/a/x"):
        try:
            yield from _set_head(path)
        except ItemMissing:
            continue
        return True
    return False


def _set_head(path: str) -> Steps[None]:
    yield from ask(lambda db: db.update(Unit.Key(tree="t", path=path), Unit.head.set("new")))


def _losses(kind: type[Tree[Any, Unit]]) -> int:
    """Return in how many orders of the calls of a move, an addition and a change one of these is lost."""
    made: list[tuple[Connection, Tree[Any, Unit]]] = []

    def make() -> tuple[Db, list[Any]]:
        made.append(_planted(0, kind))
        db, tree = made[-1]
        move: Any = Tree.move
        add: Any = Tree.add
        return db, [
            move.steps(tree, "t", "a", "b/a"),
            add.steps(tree, tree.node("t", "a/x/new")),
            _change(),
        ]

    losses = 0
    for _, added, changed in interleavings(make, most=500):
        db, tree = made[-1]
        found = {node.path: node for node in tree.subtree("t")}
        whole = all(path == "b" or path.startswith("b/a") for path in found)
        kept = ("b/a/x/new" in found) == (not isinstance(added, Exception))
        held = not changed or found["b/a/x"].head == "new"
        losses += not (whole and kept and held)
        db.close()
    return losses


def test_nothing_added_or_changed_meanwhile_is_lost() -> None:
    """In every order of the calls of a move, an addition and a change all are there afterwards; a careless move loses some."""
    assert _losses(Tree) == 0
    assert _losses(Careless) > 0
