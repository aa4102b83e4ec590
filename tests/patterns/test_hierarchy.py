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
    PrimaryKey,
    Query,
    RetryPolicy,
    Sort,
    Table,
    attr,
    connect,
    sort,
)
from tavola.client.errors import UpdateContended
from tavola.patterns import (
    MoveRefused,
    Node,
    NodeExists,
    NodeMissing,
    PatternProgram,
    RecipeRefused,
    Tree,
    TreeBusy,
    TreeWork,
)
from tavola.patterns.recipe import call_client, recipe_method, write_together
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


class UnitWork(TreeWork, table=Firm):
    """What is under way in a firm."""

    class Key(PrimaryKey["UnitWork"], pk="TREE#{tree}", sk="WORK"):
        tree: str


class Badge(Node, table=Firm):
    """A node with unique values, each of which is an item more in a transaction."""

    one: Attr[str] = attr(unique=True)
    two: Attr[str] = attr(unique=True)

    class Key(PrimaryKey["Badge"], pk="BADGES#{tree}", sk="NODE#{path}"):
        tree: str
        path: str

    class Under(Query["Badge"], on=Key):
        tree: str
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
    tree = made(Tree, db, Unit, UnitWork, under=Unit.Under, children=Unit.Children)
    for path in PATHS:
        tree.add(tree.node("acme", path, head=f"head of {path}"))
    return tree


def _paths(found: Any) -> list[str]:
    return [node.path for node in found]


def test_every_level_is_one_question(units: Any, db: Connection) -> None:
    """A subtree at any depth is its nodes and no other's, however names begin; children are the next level alone."""
    with db.measure() as spent:
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
    tree = made(Tree, db, Unit, UnitWork, under=Unit.Under)
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
    with pytest.raises(RecipeRefused, match="use non-empty names"):
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
    assert units.under_way("acme") is None
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


def _planted(
    count: int, kind: type[Tree[Any, Unit, UnitWork]] = Tree
) -> tuple[Connection, Tree[Any, Unit, UnitWork]]:
    """Return a tree with a node a, so many nodes below it, and an empty b."""
    db = connect("memory:", retry_policy=RetryPolicy(base_s=0))
    db.create_tables(Firm)
    tree = kind(db, Unit, UnitWork, under=Unit.Under, children=Unit.Children)
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


MOVE: Any = Tree.move
ADD: Any = Tree.add
REMOVE: Any = Tree.remove


def _begun(db: Connection, tree: Any, path: str, to: str) -> Running:
    """Return a move whose head has gone, and nothing else."""
    running = Running(MOVE.steps(tree, "t", path, to))
    while tree.get("t", to) is None:
        running.step(db)
    return running


def test_another_move_does_not_tear_a_tree_apart() -> None:
    """While a move is under way nothing else is moved or removed in its tree: head, rest, ancestors, destination."""
    db, tree = _planted(40)
    _begun(db, tree, "a/x", "b/x")
    tree.add(tree.node("t", "c"))

    for path, to in (("b/x", "c/x"), ("a/x", "c/x"), ("a", "c/a"), ("b", "c/b"), ("c", "d")):
        with pytest.raises(TreeBusy, match="'a/x' is on its way to 'b/x'"):
            tree.move("t", path, to)
    for path in ("a", "b", "c", "/"):
        with pytest.raises(TreeBusy, match="must wait"):
            tree.remove("t", path)
    assert tree.under_way("t").path == "a/x"
    tree.move("t", "a/x", "b/x")

    assert len(tree.subtree("t", "b/x")) == 40
    assert tree.move("t", "a", "c/a").nodes == 1
    db.close()


def test_nothing_is_added_where_a_move_is_under_way() -> None:
    """At the old path, below it and at the destination an addition is refused until the move is over; elsewhere it is not."""
    db, tree = _planted(30)
    running = _begun(db, tree, "a", "b/a")

    for path in ("a", "a/new", "a/x/new", "b/a/new", "b/a/x"):
        with pytest.raises(TreeBusy, match=r"finish\('t'\)"):
            tree.add(tree.node("t", path))
    tree.add(tree.node("t", "b/new"))
    tree.add(tree.node("t", "ab"))
    while not running.done:
        running.step(db)

    assert len(tree.subtree("t", "b/a")) == 31
    tree.add(tree.node("t", "a"))
    tree.add(tree.node("t", "b/a/new"))
    db.close()


def test_what_was_left_is_finished_by_anybody() -> None:
    """A move or a removal that was left is ended without knowing what it was; then there is nothing more to finish."""
    db, tree = _planted(30)
    _begun(db, tree, "a", "b/a")
    assert tree.finish("t")
    assert len(tree.subtree("t", "b/a")) == 31

    running = Running(REMOVE.steps(tree, "t", "b"))
    while tree.under_way("t") is None:
        running.step(db)
    assert tree.finish("t")
    assert tree.subtree("t").items == ()
    assert not tree.finish("t")
    while not running.done:
        running.step(db)
    assert running.outcome == 0  # all of it was done by the other
    db.close()


def test_a_mover_that_wakes_up_late_moves_nothing() -> None:
    """What was read for a move is not written once the move is over, even if the same one has been begun again."""
    db, tree = _planted(3)
    late = _begun(db, tree, "a", "b/a")
    late.step(db)
    late.step(db)  # it knows which nodes are left, and sleeps
    tree.finish("t")
    tree.move("t", "b/a", "a")
    again = _begun(db, tree, "a", "b/a")
    while not late.done:
        late.step(db)

    assert late.outcome.nodes == 1
    assert len(tree.subtree("t", "a")) == 4
    while not again.done:
        again.step(db)
    assert len(tree.subtree("t", "b/a")) == 4
    db.close()


def _held(kind: type[Tree[Any, Unit, UnitWork]], verbs: Callable[[Any], list[Any]], most: int = 400) -> int:
    """Return in how many orders of some verbs' calls a node was left without its parent, or work was left over."""
    made: list[tuple[Connection, Tree[Any, Unit, UnitWork]]] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(_planted(2, kind))
        return made[-1][0], verbs(made[-1][1])

    torn = 0
    for _ in interleavings(make, most=most):
        db, tree = made[-1]
        paths = {"/", *_paths(tree.subtree("t"))}
        whole = all(node.parent in paths for node in tree.subtree("t"))
        torn += not (whole and tree.under_way("t") is None)
        db.close()
    return torn


class Unfenced(Tree[Any, Unit, UnitWork]):
    """The fault that the test must see: additions do not look at what is under way."""

    @recipe_method
    def add(self, node: Unit) -> PatternProgram[Unit]:
        """Add under a parent that is there."""
        above = self.key(tree=node.tree, path=node.parent)
        parents = [] if node.parent == "/" else [above]
        yield from write_together(
            lambda writes: ([writes.check(key) for key in parents], writes.create(node))
        )
        return node


def test_a_removal_leaves_no_orphan() -> None:
    """In every order of the calls of a removal and an addition below it no node is without its parent."""

    def verbs(tree: Any) -> list[Any]:
        return [REMOVE.steps(tree, "t", "a"), type(tree).add.steps(tree, tree.node("t", "a/new"))]

    assert _held(Tree, verbs) == 0
    assert _held(Unfenced, verbs) > 0


@pytest.mark.parametrize("other", [("a", "c"), ("a/x", "c"), ("b", "a/x/b"), ("a", None), ("b", None)])
def test_no_order_of_two_tears_a_tree_apart(other: tuple[str, str | None]) -> None:
    """Two moves, or a move and a removal, in every order of their calls: each node has its parent, nothing is left over."""
    path, to = other

    def verbs(tree: Any) -> list[Any]:
        second = REMOVE.steps(tree, "t", path) if to is None else MOVE.steps(tree, "t", path, to)
        return [MOVE.steps(tree, "t", "a/x", "b/x"), second]

    assert _held(Tree, verbs, most=150) == 0


def _forget(db: Connection, path: str, *attributes: str) -> None:
    key = {"pk": {"S": "TREE#t"}, "sk": {"S": f"NODE#{path}"}}
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    told = f"REMOVE {', '.join(names)}"
    db.call("UpdateItem", {"TableName": "Firm", "Key": key, "UpdateExpression": told, "ExpressionAttributeNames": names})  # fmt: skip


def test_nodes_that_lack_a_field_are_moved() -> None:
    """A field with a default that was added to the entity later is absent in older nodes, and they are moved all the same."""
    db, tree = _planted(1)
    for path in ("a", "a/x"):
        db.update(Unit.Key(tree="t", path=path), Unit.head.set("x"))
        _forget(db, path, "head")
    key = {"pk": {"S": "TREE#t"}, "sk": {"S": "NODE#a/x/000"}}
    null = {"TableName": "Firm", "Key": key, "UpdateExpression": "SET labels = :n, mine = :m"}
    db.call("UpdateItem", {**null, "ExpressionAttributeValues": {":n": {"SS": ["l"]}, ":m": {"NULL": True}}})

    with db.measure() as spent:
        assert tree.move("t", "a", "b/a").nodes == 3

    assert spent.operations["TransactWriteItems"] == 2
    assert tree.get("t", "b/a/x/000").labels == {"l"}
    db.close()


def test_a_move_that_is_always_overtaken_ends() -> None:
    """A node that somebody changes each time it is to be moved is an error after a while, and no endless loop."""
    db, tree = _planted(0)
    running = _begun(db, tree, "a", "b/a")
    number = 0
    while not running.done:
        number += 1
        assert number < 200
        db.update(Unit.Key(tree="t", path="a/x"), Unit.head.set(str(number)))
        running.step(db)

    assert isinstance(running.outcome, UpdateContended)
    assert tree.finish("t")
    db.close()


def test_nodes_that_do_not_fit_a_transaction_are_moved_in_smaller_ones() -> None:
    """Unique values and large nodes take more of a transaction than it has: fewer nodes go into each."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Firm)
        badges = Tree(db, Badge, UnitWork, under=Badge.Under)
        for path in ("a", "b", *(f"a/{number:03}" for number in range(60))):
            badges.add(badges.node("t", path, one=path, two=path))
        assert badges.move("t", "a", "b/a").nodes == 61
        assert badges.remove("t", "b") == 62
        assert badges.subtree("t").items == ()

        units = Tree(db, Unit, UnitWork, under=Unit.Under)
        for path in ("a", *(f"a/{number:03}" for number in range(25))):
            units.add(units.node("t", path, head="x" * 150_000))
        assert units.move("t", "a", "b").nodes == 26


def test_a_stranger_at_the_destination_is_named() -> None:
    """A node that was put past the tree where another is to go stops the move; once it is deleted, the move goes on."""
    db, tree = _planted(1)
    _begun(db, tree, "a", "b/a")
    db.put(tree.node("t", "b/a/x"))

    with pytest.raises(MoveRefused, match="'b/a/x' that was written past the tree"):
        tree.move("t", "a", "b/a")
    db.delete(Unit.Key(tree="t", path="b/a/x"))
    tree.move("t", "a", "b/a")
    assert len(tree.subtree("t", "b/a")) == 2
    db.close()


class Careless(Tree[Any, Unit, UnitWork]):
    """The fault that the test must see: nodes are moved as they were read, whatever became of them since."""

    def _move_some(self, work: UnitWork, nodes: Any, to: str) -> PatternProgram[Any]:
        for each in nodes:
            yield from self._carry(each.node, to + each.node.path[len(work.path) :])
        return "done"

    def _carry(self, node: Unit, path: str) -> PatternProgram[None]:
        yield from call_client(lambda db: db.put(self._at(node, path)))
        yield from call_client(lambda db: db.delete(self.key(tree=node.tree, path=node.path)))


def _change() -> PatternProgram[bool]:
    """Change a node, wherever it is; return whether it was found."""
    for path in ("a/x", "b/a/x"):
        try:
            yield from _set_head(path)
        except ItemMissing:
            continue
        return True
    return False


def _set_head(path: str) -> PatternProgram[None]:
    yield from call_client(lambda db: db.update(Unit.Key(tree="t", path=path), Unit.head.set("new")))


def _losses(kind: type[Tree[Any, Unit, UnitWork]]) -> int:
    """Return in how many orders of the calls of a move, an addition and a change one of these is lost."""
    made: list[tuple[Connection, Tree[Any, Unit, UnitWork]]] = []

    def make() -> tuple[Connection, list[Any]]:
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
