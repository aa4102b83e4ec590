"""Hierarchies: trees whose sort key is the way down, so that every level is a prefix of it.

Where the levels are known and few, declare them as parts of a sort key and ask each with `eq`: `sk="{state}#{city}#{office}"`.
A `Tree` is for any depth: its nodes know their path, a subtree is one query, and children are one query of an index.

    class Unit(Node, table=Firm):
        head: Attr[str]

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

    units = Tree(db, Unit, under=Unit.Under, children=Unit.Children)
    units.add(units.node("acme", "emea/italy/rome", head="ann"))
    units.subtree("acme", "emea")
    units.move("acme", "emea/italy", "south/italy")

A node is added only under one that is there. A move is made in transactions of a few nodes each; every node is at its old or its new
place at any moment, and never at both. One that was interrupted is finished by asking for it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tavola.client import ConditionFailed, ItemExists, Transaction, TransactionCancelled
from tavola.model import Attr, Condition, Entity, Query, attr, shape_of
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    Recipe,
    RecipeRefused,
    Slice,
    Steps,
    ask,
    every,
    key_class,
    query_class,
    together,
    verb,
    wait,
)

SEPARATOR = "/"
TOP = SEPARATOR  # the parent of the nodes at the top
MOVED_TOGETHER = 25  # nodes to a transaction, of at most 100 actions
_ATTEMPTS_MAX = 20


class Node(Entity):
    """A place in a tree; subclass it with a table, a key of tree and path, and what you want to know of it."""

    tree: Attr[str]
    path: Attr[str]  # "emea/italy/rome"
    parent: Attr[str]  # "emea/italy"; "/" at the top
    depth: Attr[int]  # 1 at the top
    moved_from: Attr[str | None] = attr(default=None)  # while what was below it there is on its way


class NodeMissing(PatternError):
    """A path at which there is no node."""

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(f"There is no node {path!r} in the tree {tree!r}; add it first")


class NodeExists(PatternError):
    """A path at which there is a node already."""

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(
            f"There is a node {path!r} in the tree {tree!r} already; remove it, or take another path"
        )


class MoveRefused(PatternError):
    """A move that would take a subtree into itself, or apart."""

    def __init__(self, path: str, to: str, reason: str) -> None:
        self.path = path
        self.to = to
        super().__init__(f"{path!r} cannot be moved to {to!r}: {reason}")


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did."""

    nodes: int  # that this call moved
    transactions: int


N = TypeVar("N", bound=Node)


class Tree(Recipe[D_co], Generic[D_co, N]):
    """Trees of one kind of node, each in a partition of its own.

    `under` is a query class on the entity's key with the argument tree; `children` one on an index with the arguments tree and
    parent. Both have path as their sort part.
    """

    def __init__(
        self, db: D_co, entity: type[N], *, under: type[Query[N]], children: type[Query[N]] | None = None
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "tree", "path")
        self.under = query_class(entity, under, "tree", sorts=("path",))
        self.children_class = (
            None if children is None else query_class(entity, children, "tree", "parent", sorts=("path",))
        )

    def node(self, tree: str, path: str, **more: Any) -> N:
        """Return a new node for a path, with your own fields; it is not stored yet."""
        return self.entity(
            tree=tree, path=_checked(path), parent=parent_of(path), depth=depth_of(path), **more
        )

    @verb
    def add(self, node: N) -> Steps[N]:
        """Store a node under its parent, which must be there; at the top there need be none."""
        placed = node.model_copy(update={"parent": parent_of(node.path), "depth": depth_of(node.path)})
        _checked(node.path)
        if placed.parent == TOP:
            try:
                return (yield from ask(lambda db: db.create(placed)))
            except ItemExists as error:
                raise NodeExists(node.tree, node.path) from error
        above = self.key(tree=node.tree, path=placed.parent)
        try:
            yield from together(lambda writes: (writes.check(above), writes.create(placed)))
        except TransactionCancelled as cancelled:
            if cancelled.reasons[0] is not None and cancelled.reasons[0].kind == "missing":
                raise NodeMissing(node.tree, placed.parent) from cancelled
            if cancelled.reasons[1] is not None and cancelled.reasons[1].kind == "exists":
                raise NodeExists(node.tree, node.path) from cancelled
            raise
        return placed

    @verb
    def get(self, tree: str, path: str) -> Steps[N | None]:
        """Return the node at a path, None if there is none."""
        return (yield from self._get(tree, path))

    @verb
    def subtree(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> Steps[Slice[N]]:
        """Return everything below a path, at any depth, in the order of paths: so many and a cursor, or all of it."""
        question = self._below(tree, path)
        if limit is None and cursor is None:
            found = yield from every(lambda db, cursor: db.query(question, cursor=cursor, consistent=True))
            return Slice(tuple(found), None)
        page = yield from ask(
            lambda db: db.query(question, limit=limit or 100, cursor=cursor, consistent=True)
        )
        return Slice(tuple(page.items), page.cursor)

    @verb
    def children(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> Steps[Slice[N]]:
        """Return the nodes just below a path; from the index, if there is one, where a change shows a moment later.

        Without an index the whole subtree is read, and paid for.
        """
        if self.children_class is None:
            found = yield from every(lambda db, cursor: db.query(self._below(tree, path), cursor=cursor))
            depth = 1 if path == TOP else depth_of(path) + 1
            return Slice(tuple(node for node in found if node.depth == depth), None)
        question = self.children_class(tree=tree, parent=path)
        if limit is None and cursor is None:
            return Slice(
                tuple((yield from every(lambda db, cursor: db.query(question, cursor=cursor)))), None
            )
        page = yield from ask(lambda db: db.query(question, limit=limit or 100, cursor=cursor))
        return Slice(tuple(page.items), page.cursor)

    @verb
    def ancestors(self, tree: str, path: str) -> Steps[list[N]]:
        """Return the nodes above a path, from the top down: one batch read, however deep."""
        names = _checked(path).split(SEPARATOR)
        keys = [self.key(tree=tree, path=SEPARATOR.join(names[:end])) for end in range(1, len(names))]
        if not keys:
            return []
        found = yield from ask(lambda db: db.get_many(keys, consistent=True))
        return [node for node in found if node is not None]

    @verb
    def remove(self, tree: str, path: str) -> Steps[int]:
        """Delete a node with everything below it, from the bottom up, and return how many nodes; asking again goes on."""
        question = self._below(tree, path)
        below = yield from every(lambda db, cursor: db.query(question, cursor=cursor, consistent=True))
        keys = [self.key(tree=tree, path=node.path) for node in reversed(below)]
        standing = yield from self._get(tree, path)
        if standing is not None:
            keys.append(self.key(tree=tree, path=path))
        yield from ask(lambda db: db.delete_many(keys))
        return len(keys)

    @verb
    def move(self, tree: str, path: str, to: str) -> Steps[Moved]:
        """Take a node with everything below it to another path, under a parent that is there.

        The node itself goes first, so nothing can be added at the old place any more. Reads meanwhile find each node at one
        of the places. After a crash, the same call goes on with what is left.
        """
        _checked(path)
        _checked(to)
        if to == path or to.startswith(path + SEPARATOR):
            raise MoveRefused(path, to, "that is inside it; move it elsewhere")
        head = yield from self._get(tree, path)
        moved = transactions = 0
        if head is not None:
            yield from self._move_head(head, to)
            moved = transactions = 1
        else:
            begun = yield from self._get(tree, to)
            if begun is None or begun.moved_from != path:
                raise NodeMissing(tree, path)
        while nodes := (yield from self._next(tree, path)):
            moved += yield from self._move_some(nodes, path, to)
            transactions += 1
        arrived = self.key(tree=tree, path=to)
        mine = self.entity.moved_from == path
        try:
            yield from ask(lambda db: db.update(arrived, self.entity.moved_from.remove(), when=mine))
        except ConditionFailed:
            pass  # another that asked for the same move was first to finish it
        return Moved(moved, transactions)

    def _next(self, tree: str, path: str) -> Steps[list[N]]:
        """Return some nodes that are still below a path, those nearest to the top first among their kin."""
        question = self._below(tree, path)
        page = yield from ask(lambda db: db.query(question, limit=MOVED_TOGETHER, consistent=True))
        return page.items

    def _move_head(self, head: N, to: str) -> Steps[None]:
        tree, parent = head.tree, parent_of(to)
        if head.moved_from is not None:
            raise MoveRefused(
                head.path,
                to,
                f"it is on its way from {head.moved_from!r}; finish that by asking for it again",
            )

        def fill(writes: Transaction) -> None:
            writes.delete(self.key(tree=tree, path=head.path), when=unchanged(head))
            writes.create(self._at(head, to, moved_from=head.path))
            if parent != TOP:
                writes.check(self.key(tree=tree, path=parent))

        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                yield from together(fill)
            except TransactionCancelled as cancelled:
                gone, taken, orphaned = (*cancelled.reasons, None)[:3]
                if orphaned is not None and orphaned.kind == "missing":
                    raise NodeMissing(tree, parent) from cancelled
                if taken is not None and taken.kind == "exists":
                    raise NodeExists(tree, to) from cancelled
                if gone is None or attempt == _ATTEMPTS_MAX:
                    raise
                found = yield from self._get(tree, head.path)
                if found is None:
                    raise NodeMissing(tree, head.path) from cancelled
                head = found  # it was changed meanwhile, and is moved as it is now
                yield from wait(self.patience.pause_s(min(attempt, 6)))
            else:
                return

    def _move_some(self, nodes: list[N], path: str, to: str) -> Steps[int]:
        """Move nodes in one transaction; return 0 if some of them changed meanwhile, and are to be read again."""

        def fill(writes: Transaction) -> None:
            for node in nodes:
                writes.delete(self.key(tree=node.tree, path=node.path), when=unchanged(node))
                writes.create(self._at(node, to + node.path[len(path) :]))
            writes.check(self.key(tree=nodes[0].tree, path=to), when=self.entity.moved_from == path)

        try:
            yield from together(fill)
        except TransactionCancelled as cancelled:
            *others, head = cancelled.reasons
            if head is not None and head.kind == "condition":
                raise MoveRefused(
                    path, to, "its head was moved on meanwhile; ask with where it is now"
                ) from cancelled
            for number, reason in enumerate(others):
                if reason is not None and reason.kind == "exists":
                    node = nodes[number // 2]
                    raise NodeExists(node.tree, to + node.path[len(path) :]) from cancelled
            if not any(reason is not None and reason.kind == "condition" for reason in others):
                raise
            return 0
        return len(nodes)

    def _at(self, node: N, path: str, **more: Any) -> N:
        return node.model_copy(
            update={"path": path, "parent": parent_of(path), "depth": depth_of(path), **more}
        )

    def _get(self, tree: str, path: str) -> Steps[N | None]:
        key = self.key(tree=tree, path=path)
        return (yield from ask(lambda db: db.get(key, consistent=True)))

    def _below(self, tree: str, path: str) -> Any:
        asked: Any = self.under(tree=tree)
        return asked if path == TOP else asked.path.begins_with(_checked(path) + SEPARATOR)


def parent_of(path: str) -> str:
    """Return the path above a path, "/" at the top."""
    return path.rpartition(SEPARATOR)[0] or TOP


def depth_of(path: str) -> int:
    """Return how many names a path has."""
    return path.count(SEPARATOR) + 1


def unchanged(entity: N) -> Condition[N]:
    """Return the condition that an item is what was read, field by field."""
    kind: Any = type(entity)
    shape = shape_of(type(entity))
    made: Any = None
    for name in shape.fields:
        if name in shape.key_fields or shape.fields[name].lock:
            continue
        value, operand = getattr(entity, name), getattr(kind, name)
        absent = value is None or not shape.fields[name].encode(value)  # an empty set is not stored
        same = operand.not_exists() if absent else operand.eq(value)
        made = same if made is None else made & same
    assert made is not None, "a node has a parent and a depth"
    return made  # type: ignore[no-any-return]


def _checked(path: str) -> str:
    if not path or any(not name for name in path.split(SEPARATOR)):
        raise RecipeRefused(
            "Tree", f"{path!r} is no path; give names with {SEPARATOR} between them, none of them empty"
        )
    return path
