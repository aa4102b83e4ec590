"""Hierarchies: trees whose sort key is the path, so that every subtree is a range of keys.

For a few known levels, declare them as parts of a sort key and query a prefix: `sk="{state}#{city}#{office}"`.
A `Tree` has any depth: a node stores its path, a subtree is one query, and the children of a node are one index query.

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

    class UnitWork(TreeWork, table=Firm):
        class Key(PrimaryKey["UnitWork"], pk="TREE#{tree}", sk="WORK"):
            tree: str

    units = Tree(db, Unit, UnitWork, under=Unit.Under, children=Unit.Children)
    units.add(units.node("acme", "emea/italy/rome", head="ann"))
    units.subtree("acme", "emea")
    units.move("acme", "emea/italy", "south/italy")

A node can only be added under an existing one. Moving or removing a subtree takes many transactions, so the operation is
recorded first as a `TreeWork` item, at most one per tree. Every addition checks that item in its own transaction and is refused if
it concerns the subtree in motion, so no node is left behind. If a process stops midway, calling the method again continues.

Cost: a move rewrites every node of the subtree. What it gives up: while a move runs, readers see part of it at either place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from tavola.client.cancellations import TransactionCancelled
from tavola.client.db import Transaction
from tavola.client.errors import ConditionFailed, ItemExists, TransactionRefused, UpdateContended
from tavola.client.stored import as_stored, get_stored, read_stored
from tavola.errors import ErrorKind
from tavola.model import Attr, Condition, Entity, Query, attr
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Slice,
    call_client,
    key_class,
    query_all,
    query_class,
    recipe_method,
    sleep,
    write_together,
)
from tavola.protocol.faults import Fault

SEPARATOR = "/"
TOP = SEPARATOR  # the parent of the nodes at the top


class Node(Entity):
    """A node of a tree; subclass it with a table, a key of tree and path, and your own fields."""

    tree: Attr[str]
    path: Attr[str]  # "emea/italy/rome"
    parent: Attr[str]  # "emea/italy"; "/" at the top
    depth: Attr[int]  # 1 at the top


class TreeWork(Entity):
    """The move or removal in progress in a tree; subclass it with a table and a key of tree."""

    tree: Attr[str]
    path: Attr[str]  # root of the subtree that is moved or removed
    to: Attr[str | None] = attr(default=None)  # its new path; None: it is removed
    fence: Attr[str]  # distinguishes one operation from the next

    @property
    def description(self) -> str:
        """The operation in words."""
        return (
            f"{self.path!r} is being removed"
            if self.to is None
            else f"{self.path!r} is on its way to {self.to!r}"
        )

    def concerns(self, path: str) -> bool:
        """Return whether a path is in the subtree, at its old or its new location."""
        return any(within(path, place) for place in (self.path, self.to) if place is not None)


class NodeMissing(PatternError):
    """A path without a node."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(f"There is no node {path!r} in the tree {tree!r}; add it first")


class NodeExists(PatternError):
    """A path that has a node already."""

    code = "exists"
    kind = ErrorKind.CONFLICT

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(
            f"There is a node {path!r} in the tree {tree!r} already; remove it, or take another path"
        )


class MoveRefused(PatternError):
    """A move of a subtree into itself, or onto existing nodes."""

    code = "in-the-way"
    kind = ErrorKind.CONFLICT

    def __init__(self, path: str, to: str, reason: str) -> None:
        self.path = path
        self.to = to
        super().__init__(f"{path!r} cannot be moved to {to!r}: {reason}")


class TreeBusy(PatternError):
    """A change that must wait until a move or removal in the tree is complete."""

    code = "contended"
    kind = ErrorKind.CONFLICT

    def __init__(self, tree: str, what: str, work: TreeWork) -> None:
        self.tree = tree
        self.work = work
        super().__init__(
            f"{what} must wait: in the tree {tree!r}, {work.description}. If nobody is at it any more, finish({tree!r}) ends it"
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a move."""

    nodes: int  # moved by this call
    transactions: int


def parent_of(path: str) -> str:
    """Return the parent of a path, "/" for a root."""
    return path.rpartition(SEPARATOR)[0] or TOP


def depth_of(path: str) -> int:
    """Return the number of names in a path."""
    return path.count(SEPARATOR) + 1


def within(path: str, place: str) -> bool:
    """Return whether a path is in the subtree of `place`."""
    return place in (TOP, path) or path.startswith(place + SEPARATOR)


def check_path(path: str) -> str:
    """Return a path; refuse one that is malformed."""
    if not path or any(not name for name in path.split(SEPARATOR)):
        raise RecipeRefused(
            "Tree", f"{path!r} is no path; give names with {SEPARATOR} between them, none of them empty"
        )
    return path


MOVED_TOGETHER = 25  # nodes to a transaction, of at most 100 actions; fewer where they do not fit
REMOVED_TOGETHER = 50
_ATTEMPTS_MAX = 20

N = TypeVar("N", bound=Node)
W = TypeVar("W", bound=TreeWork)

Outcome: TypeAlias = Literal["done", "overtaken", "too many", "over"]


@dataclass(frozen=True, slots=True)
class _ReadNode(Generic[N]):
    """A node as it was read, and the condition that it still is so."""

    node: N
    same: Condition[N]


class Tree(Recipe[D_co], Generic[D_co, N, W]):
    """Trees of one kind of node, each in a partition of its own.

    `work` is where a move or a removal is written down while it is under way. `under` is a query class on the entity's key with
    the argument tree; `children` one on an index with the arguments tree and parent. Both have path as their sort part.
    """

    def __init__(
        self,
        db: D_co,
        entity: type[N],
        work: type[W],
        *,
        under: type[Query[N]],
        children: type[Query[N]] | None = None,
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.work = work
        self.key = key_class(entity, "tree", "path")
        self.work_key = key_class(work, "tree")
        self.under = query_class(entity, under, "tree", sorts=("path",))
        self.children_class = (
            None if children is None else query_class(entity, children, "tree", "parent", sorts=("path",))
        )

    def node(self, tree: str, path: str, **more: Any) -> N:
        """Return a new node for a path, with your own fields; it is not stored yet."""
        return self.entity(
            tree=tree, path=check_path(path), parent=parent_of(path), depth=depth_of(path), **more
        )

    @recipe_method
    def add(self, node: N) -> PatternProgram[N]:
        """Store a node under its parent, which must be there; at the top there need be none.

        While a subtree is moved or removed, nothing is added at the places that this concerns: `TreeBusy`.
        """
        placed = self._at(node, check_path(node.path))
        above = None if placed.parent == TOP else self.key(tree=node.tree, path=placed.parent)
        work_key = self.work_key(tree=node.tree)
        current: W | None = None

        def fill(writes: Transaction) -> None:
            writes.check(work_key, when=self._still(current))
            writes.create(placed)
            if above is not None:
                writes.check(above)

        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                yield from write_together(fill)
            except TransactionCancelled as cancelled:
                begun, taken, orphaned = (*cancelled.reasons, None)[:3]
                if begun is not None and begun.kind == "condition":
                    current = begun.item
                    if current is not None and current.concerns(node.path):
                        raise TreeBusy(node.tree, f"Adding {node.path!r}", current) from cancelled
                elif orphaned is not None and orphaned.kind == "missing":
                    raise NodeMissing(node.tree, placed.parent) from cancelled
                elif taken is not None and taken.kind == "exists":
                    raise NodeExists(node.tree, node.path) from cancelled
                else:
                    raise
            else:
                return placed
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))
        raise UpdateContended(f"the tree {node.tree!r}", _ATTEMPTS_MAX)

    @recipe_method
    def get(self, tree: str, path: str) -> PatternProgram[N | None]:
        """Return the node at a path, None if there is none."""
        return (yield from self._get(tree, path))

    @recipe_method
    def subtree(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[N]]:
        """Return everything below a path, at any depth, in the order of paths: so many and a cursor, or all of it."""
        question = self._below(tree, path)
        if limit is None and cursor is None:
            found = yield from query_all(
                lambda db, cursor: db.query(question, cursor=cursor, consistent=True)
            )
            return Slice(tuple(found), None)
        page = yield from call_client(
            lambda db: db.query(question, limit=limit or 100, cursor=cursor, consistent=True)
        )
        return Slice(tuple(page.items), page.cursor)

    @recipe_method
    def children(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[N]]:
        """Return the nodes just below a path; from the index, if there is one, where a change shows a moment later.

        Without an index the whole subtree is read, and paid for.
        """
        if self.children_class is None:
            found = yield from query_all(lambda db, cursor: db.query(self._below(tree, path), cursor=cursor))
            depth = 1 if path == TOP else depth_of(path) + 1
            return Slice(tuple(node for node in found if node.depth == depth), None)
        question = self.children_class(tree=tree, parent=path)
        if limit is None and cursor is None:
            return Slice(
                tuple((yield from query_all(lambda db, cursor: db.query(question, cursor=cursor)))), None
            )
        page = yield from call_client(lambda db: db.query(question, limit=limit or 100, cursor=cursor))
        return Slice(tuple(page.items), page.cursor)

    @recipe_method
    def ancestors(self, tree: str, path: str) -> PatternProgram[list[N]]:
        """Return the nodes above a path, from the top down: one batch read, however deep."""
        names = check_path(path).split(SEPARATOR)
        keys = [self.key(tree=tree, path=SEPARATOR.join(names[:end])) for end in range(1, len(names))]
        if not keys:
            return []
        found = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return [node for node in found if node is not None]

    @recipe_method
    def under_way(self, tree: str) -> PatternProgram[W | None]:
        """Return the move or the removal that was begun in a tree and is not over, None if there is none."""
        return (yield from self._work(tree))

    @recipe_method
    def finish(self, tree: str) -> PatternProgram[bool]:
        """Go on with the move or the removal that was begun in a tree, to its end; return whether there was one."""
        work = yield from self._work(tree)
        if work is None:
            return False
        if work.to is None:
            yield from self._remove_all(work)
        else:
            yield from self._move_all(work, work.to)
        return True

    @recipe_method
    def remove(self, tree: str, path: str) -> PatternProgram[int]:
        """Delete a node with everything below it, from the bottom up, and return how many nodes this call deleted.

        After a crash, the same call goes on with what is left.
        """
        head = None if path == TOP else (yield from self._get(tree, check_path(path)))
        if head is None and not (yield from self._some(tree, path, 1)):
            return 0
        wanted = self.work(tree=tree, path=path, fence=self.entropy.uuid())
        try:
            work = yield from call_client(lambda db: db.create(wanted))
        except ItemExists as exists:
            work = yield from self._join_work(wanted, exists.found, f"Removing {path!r}")
        return (yield from self._remove_all(work))

    @recipe_method
    def move(self, tree: str, path: str, to: str) -> PatternProgram[Moved]:
        """Take a node with everything below it to another path, under a parent that is there.

        The node itself goes first. Reads meanwhile find each node at one of the places. After a crash, the same call goes on with
        what is left.
        """
        check_path(path)
        check_path(to)
        if within(to, path):
            raise MoveRefused(path, to, "that is inside it; move it elsewhere")
        wanted = self.work(tree=tree, path=path, to=to, fence=self.entropy.uuid())
        work = (yield from self._work(tree)) or (yield from self._move_head(wanted, to))
        if (work.path, work.to) != (path, to):
            raise TreeBusy(tree, f"Moving {path!r}", work)
        nodes, transactions = yield from self._move_all(work, to)
        begun = work.fence == wanted.fence
        return Moved(nodes + begun, transactions + begun)

    # Moving.

    def _move_head(self, work: W, to: str) -> PatternProgram[W]:
        """Write a move down and take its head along; return it, or what is under way instead."""
        tree, path, parent = work.tree, work.path, parent_of(to)
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            heads = yield from self._read_nodes([self.key(tree=tree, path=path)])
            if not heads:
                raise NodeMissing(tree, path)
            cancelled = yield from self._begin(work, heads[0], to, parent)
            if cancelled is None:
                return work
            begun, gone, taken, orphaned = (*cancelled.reasons, None)[:4]
            if begun is not None and begun.kind == "exists":
                current: W | None = begun.item
                if current is not None:
                    return current
            elif orphaned is not None and orphaned.kind == "missing":
                raise NodeMissing(tree, parent) from cancelled
            elif taken is not None and taken.kind == "exists":
                raise NodeExists(tree, to) from cancelled
            elif gone is None:
                raise cancelled
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))  # it is moved as it is then
        raise UpdateContended(f"the node {path!r}", _ATTEMPTS_MAX)

    def _begin(
        self, work: W, head: _ReadNode[N], to: str, parent: str
    ) -> PatternProgram[TransactionCancelled | None]:
        def fill(writes: Transaction) -> None:
            writes.create(work)
            writes.delete(self.key(tree=work.tree, path=work.path), when=head.same)
            writes.create(self._at(head.node, to))
            if parent != TOP:
                writes.check(self.key(tree=work.tree, path=parent))

        try:
            yield from write_together(fill)
        except TransactionCancelled as cancelled:
            return cancelled
        return None

    def _move_all(self, work: W, to: str) -> PatternProgram[tuple[int, int]]:
        """Move what is left of a move, and note that it is over; return how many nodes, in how many transactions."""
        moved = transactions = fruitless = 0
        size = MOVED_TOGETHER
        while found := (yield from self._some(work.tree, work.path, size)):
            nodes = yield from self._read_nodes([self.key(tree=work.tree, path=node.path) for node in found])
            outcome: Outcome = (yield from self._move_some(work, nodes, to)) if nodes else "overtaken"
            if outcome == "over":
                return moved, transactions  # others who asked for the same have finished it
            if outcome == "done":
                moved += len(nodes)
                transactions += 1
                fruitless = 0
                size = min(2 * size, MOVED_TOGETHER)
                continue
            size = max(1, len(found) // 2)
            if outcome == "overtaken":
                fruitless += 1
                if fruitless == _ATTEMPTS_MAX:
                    raise UpdateContended(f"the node {found[0].path!r}", fruitless)
                yield from sleep(self.retry_policy.pause_s(min(fruitless, 6)))
        yield from self._over(work)
        return moved, transactions

    def _move_some(self, work: W, nodes: Sequence[_ReadNode[N]], to: str) -> PatternProgram[Outcome]:
        """Move nodes in one transaction, each as it was read."""
        places = [to + each.node.path[len(work.path) :] for each in nodes]

        def fill(writes: Transaction) -> None:
            writes.check(self.work_key(tree=work.tree), when=self._still(work))
            for each, place in zip(nodes, places, strict=True):
                writes.delete(self.key(tree=work.tree, path=each.node.path), when=each.same)
                writes.create(self._at(each.node, place))

        try:
            yield from write_together(fill)
        except TransactionCancelled as cancelled:
            begun, *others = cancelled.reasons
            if begun is not None and begun.kind == "condition":
                return "over"
            if any(reason is not None and reason.kind == "condition" for reason in others[::2]):
                return "overtaken"
            for place, reason in zip(places, others[1::2], strict=True):
                if reason is not None and reason.kind == "exists":
                    told = (
                        f"there is a node {place!r} that was written past the tree; delete it, and ask again"
                    )
                    raise MoveRefused(work.path, to, told) from cancelled
            if len(nodes) == 1 or not _too_many(cancelled):
                raise
            return "too many"
        except (TransactionRefused, Fault) as error:
            if len(nodes) == 1 or not _too_many(error):
                raise
            return "too many"
        return "done"

    # Removing.

    def _remove_all(self, work: W) -> PatternProgram[int]:
        """Delete what is left of a removal, children before their parents, and note that it is over."""
        removed = 0
        size = REMOVED_TOGETHER
        while found := (yield from self._some(work.tree, work.path, size, last=True)):
            outcome = yield from self._remove_some(work, [node.path for node in found], over=False)
            if outcome == "over":
                return removed
            if outcome == "done":
                removed += len(found)
            else:
                size = max(1, len(found) // 2)
        head = None if work.path == TOP else (yield from self._get(work.tree, work.path))
        paths = [] if head is None else [head.path]
        outcome = yield from self._remove_some(work, paths, over=True)
        return removed + (len(paths) if outcome == "done" else 0)

    def _remove_some(self, work: W, paths: list[str], *, over: bool) -> PatternProgram[Outcome]:
        def fill(writes: Transaction) -> None:
            key = self.work_key(tree=work.tree)
            if over:
                writes.delete(key, when=self._still(work))
            else:
                writes.check(key, when=self._still(work))
            for path in paths:
                writes.delete(self.key(tree=work.tree, path=path))

        try:
            yield from write_together(fill)
        except TransactionCancelled as cancelled:
            if cancelled.reasons[0] is not None and cancelled.reasons[0].kind == "condition":
                return "over"
            if len(paths) <= 1 or not _too_many(cancelled):
                raise
            return "too many"
        except (TransactionRefused, Fault) as error:
            if len(paths) <= 1 or not _too_many(error):
                raise
            return "too many"
        return "done"

    # Work under way.

    def _work(self, tree: str) -> PatternProgram[W | None]:
        key = self.work_key(tree=tree)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    def _still(self, work: W | None) -> Condition[W]:
        """Return the condition that a work is under way, or none."""
        return self.work.fence.not_exists() if work is None else self.work.fence == work.fence

    def _join_work(self, wanted: W, current: W | None, what: str) -> PatternProgram[W]:
        """Return the same work that others have begun; any other is in the way."""
        if current is None:
            current = yield from self._work(wanted.tree)
        if current is None:  # it was over in this moment
            raise UpdateContended(f"the tree {wanted.tree!r}", 1)
        if (current.path, current.to) != (wanted.path, wanted.to):
            raise TreeBusy(wanted.tree, what, current)
        return current

    def _over(self, work: W) -> PatternProgram[None]:
        key, mine = self.work_key(tree=work.tree), self._still(work)
        try:
            yield from call_client(lambda db: db.delete(key, when=mine))
        except ConditionFailed:
            pass  # others who asked for the same were first to finish it

    # Nodes.

    def _some(self, tree: str, path: str, count: int, *, last: bool = False) -> PatternProgram[list[N]]:
        """Return some nodes that are below a path, parents before their children, or those that come last first."""
        question = self._below(tree, path)
        page = yield from call_client(
            lambda db: db.query(question, limit=count, consistent=True, newest_first=last)
        )
        return page.items

    def _read_nodes(self, keys: Sequence[Any]) -> PatternProgram[list[_ReadNode[N]]]:
        """Return the nodes that are under keys, each with the condition that its item is as it stands now.

        That is a condition on attributes, for what a field reads as need not be what is stored: an absent one has its default.
        """
        items = yield from call_client(lambda db: db.run(get_stored(db.context, keys)))
        return [
            _ReadNode(read_stored(self.entity, item), as_stored(self.entity, item))
            for item in items
            if item is not None
        ]

    def _at(self, node: N, path: str) -> N:
        return node.model_copy(update={"path": path, "parent": parent_of(path), "depth": depth_of(path)})

    def _get(self, tree: str, path: str) -> PatternProgram[N | None]:
        key = self.key(tree=tree, path=path)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    def _below(self, tree: str, path: str) -> Any:
        asked: Any = self.under(tree=tree)
        return asked if path == TOP else asked.path.begins_with(check_path(path) + SEPARATOR)


def _too_many(error: Exception) -> bool:
    """Return whether fewer nodes to a transaction may do: more actions, or more bytes, than it takes."""
    if isinstance(error, TransactionCancelled):
        return any(reason is not None and reason.kind in ("too_large", "invalid") for reason in error.reasons)
    return isinstance(error, TransactionRefused) or (
        isinstance(error, Fault) and error.code == "ValidationException"
    )
