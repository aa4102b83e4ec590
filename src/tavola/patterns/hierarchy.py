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

from tavola.client.connection import Transaction
from tavola.client.errors import ConditionFailed, ItemExists, TransactionRefused, UpdateContended
from tavola.client.stored import as_stored, get_stored, read_stored
from tavola.client.transactions import TransactionCancelled
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
    query_slice,
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
            f"{what} must wait: in the tree {tree!r}, {work.description}. If that program has stopped, call finish({tree!r})"
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
        raise RecipeRefused("Tree", f"{path!r} is not a path; use non-empty names separated by {SEPARATOR}")
    return path


MOVED_TOGETHER = 25  # nodes per transaction (two actions each, at most 100); fewer if they are too large
REMOVED_TOGETHER = 50
_ATTEMPTS_MAX = 20

N = TypeVar("N", bound=Node)
W = TypeVar("W", bound=TreeWork)

BatchResult: TypeAlias = Literal["done", "overtaken", "too many", "over"]


@dataclass(frozen=True, slots=True)
class _ReadNode(Generic[N]):
    """A node as read, with the condition that it has not changed since."""

    node: N
    same: Condition[N]


class Tree(Recipe[D_co], Generic[D_co, N, W]):
    """Trees of one type of node, each in a partition of its own.

    `work` records a move or removal while it is in progress. `under` is a query class on the entity's key with the argument
    tree; `children` is one on an index with the arguments tree and parent. Both have path as their sort part.
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
        """Return a new node for a path, with your own fields, without storing it."""
        return self.entity(
            tree=tree, path=check_path(path), parent=parent_of(path), depth=depth_of(path), **more
        )

    @recipe_method
    def add(self, node: N) -> PatternProgram[N]:
        """Store a node under its parent, which must exist (top-level nodes have none).

        While a subtree is moved or removed, adding a node in it or at its destination raises `TreeBusy`.
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
        """Return the node at a path, None if it does not exist."""
        return (yield from self._get(tree, path))

    @recipe_method
    def subtree(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[N]]:
        """Return all nodes below a path, at any depth, by path: all, or with `limit` one page and a cursor for the next."""
        return (yield from query_slice(self._below(tree, path), limit, cursor, consistent=True))

    @recipe_method
    def children(
        self, tree: str, path: str = TOP, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[N]]:
        """Return the nodes directly below a path; from the index, if there is one, where a change shows a moment later.

        Without an index the whole subtree is read, and paid for.
        """
        if self.children_class is None:
            nodes = yield from query_all(lambda db, cursor: db.query(self._below(tree, path), cursor=cursor))
            depth = 1 if path == TOP else depth_of(path) + 1
            return Slice(tuple(node for node in nodes if node.depth == depth), None)
        return (yield from query_slice(self.children_class(tree=tree, parent=path), limit, cursor))

    @recipe_method
    def ancestors(self, tree: str, path: str) -> PatternProgram[list[N]]:
        """Return the nodes above a path, from the top down, in one batch read."""
        names = check_path(path).split(SEPARATOR)
        keys = [self.key(tree=tree, path=SEPARATOR.join(names[:end])) for end in range(1, len(names))]
        if not keys:
            return []
        items = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return [node for node in items if node is not None]

    @recipe_method
    def under_way(self, tree: str) -> PatternProgram[W | None]:
        """Return the unfinished move or removal of a tree, None if there is none."""
        return (yield from self._work(tree))

    @recipe_method
    def finish(self, tree: str) -> PatternProgram[bool]:
        """Complete the unfinished move or removal of a tree; return whether there was one."""
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
        """Delete a node and everything below it, from the bottom up; return how many nodes this call deleted.

        After a crash, repeat the call to delete the rest.
        """
        head = None if path == TOP else (yield from self._get(tree, check_path(path)))
        if head is None and not (yield from self._some(tree, path, 1)):
            return 0
        new_work = self.work(tree=tree, path=path, fence=self.entropy.uuid())
        try:
            work = yield from call_client(lambda db: db.create(new_work))
        except ItemExists as exists:
            work = yield from self._join_work(new_work, exists.found, f"Removing {path!r}")
        return (yield from self._remove_all(work))

    @recipe_method
    def move(self, tree: str, path: str, to: str) -> PatternProgram[Moved]:
        """Move a node and everything below it to another path, under an existing parent.

        The node itself moves first. Meanwhile, reads find each node at exactly one of the two paths. After a crash, repeat the
        call to move the rest.
        """
        check_path(path)
        check_path(to)
        if within(to, path):
            raise MoveRefused(path, to, "that is inside it; move it elsewhere")
        new_work = self.work(tree=tree, path=path, to=to, fence=self.entropy.uuid())
        work = (yield from self._work(tree)) or (yield from self._move_head(new_work, to))
        if (work.path, work.to) != (path, to):
            raise TreeBusy(tree, f"Moving {path!r}", work)
        nodes, transactions = yield from self._move_all(work, to)
        begun = work.fence == new_work.fence
        return Moved(nodes + begun, transactions + begun)

    # Moving.

    def _move_head(self, work: W, to: str) -> PatternProgram[W]:
        """Record a move and move its root; return the recorded work, or the one already in progress."""
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
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))  # then move its new state
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
        """Move the remaining nodes and delete the work item; return the numbers of nodes and transactions."""
        moved = transactions = fruitless = 0
        size = MOVED_TOGETHER
        while page := (yield from self._some(work.tree, work.path, size)):
            nodes = yield from self._read_nodes([self.key(tree=work.tree, path=node.path) for node in page])
            outcome: BatchResult = (yield from self._move_some(work, nodes, to)) if nodes else "overtaken"
            if outcome == "over":
                return moved, transactions  # another caller has finished the same move
            if outcome == "done":
                moved += len(nodes)
                transactions += 1
                fruitless = 0
                size = min(2 * size, MOVED_TOGETHER)
                continue
            size = max(1, len(page) // 2)
            if outcome == "overtaken":
                fruitless += 1
                if fruitless == _ATTEMPTS_MAX:
                    raise UpdateContended(f"the node {page[0].path!r}", fruitless)
                yield from sleep(self.retry_policy.pause_s(min(fruitless, 6)))
        yield from self._delete_work(work)
        return moved, transactions

    def _move_some(self, work: W, nodes: Sequence[_ReadNode[N]], to: str) -> PatternProgram[BatchResult]:
        """Move nodes in one transaction, on condition that each is unchanged."""
        targets = [to + node.node.path[len(work.path) :] for node in nodes]

        def fill(writes: Transaction) -> None:
            writes.check(self.work_key(tree=work.tree), when=self._still(work))
            for node, target in zip(nodes, targets, strict=True):
                writes.delete(self.key(tree=work.tree, path=node.node.path), when=node.same)
                writes.create(self._at(node.node, target))

        try:
            yield from write_together(fill)
        except TransactionCancelled as cancelled:
            begun, *others = cancelled.reasons
            if begun is not None and begun.kind == "condition":
                return "over"
            if any(reason is not None and reason.kind == "condition" for reason in others[::2]):
                return "overtaken"
            for target, reason in zip(targets, others[1::2], strict=True):
                if reason is not None and reason.kind == "exists":
                    problem = (
                        f"there is a node {target!r} that was written past the tree; delete it, and ask again"
                    )
                    raise MoveRefused(work.path, to, problem) from cancelled
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
        """Delete the remaining nodes, children before parents, and then the work item; return how many nodes."""
        removed = 0
        size = REMOVED_TOGETHER
        while nodes := (yield from self._some(work.tree, work.path, size, last=True)):
            outcome = yield from self._remove_some(work, [node.path for node in nodes], last=False)
            if outcome == "over":
                return removed
            if outcome == "done":
                removed += len(nodes)
            else:
                size = max(1, len(nodes) // 2)
        head = None if work.path == TOP else (yield from self._get(work.tree, work.path))
        paths = [] if head is None else [head.path]
        outcome = yield from self._remove_some(work, paths, last=True)
        return removed + (len(paths) if outcome == "done" else 0)

    def _remove_some(self, work: W, paths: list[str], *, last: bool) -> PatternProgram[BatchResult]:
        def fill(writes: Transaction) -> None:
            key = self.work_key(tree=work.tree)
            if last:
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

    # Work in progress.

    def _work(self, tree: str) -> PatternProgram[W | None]:
        key = self.work_key(tree=tree)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    def _still(self, work: W | None) -> Condition[W]:
        """Return the condition that this work is still in progress; for None, that no work is."""
        return self.work.fence.not_exists() if work is None else self.work.fence == work.fence

    def _join_work(self, new_work: W, current: W | None, what: str) -> PatternProgram[W]:
        """Return the work in progress if it is the same as the new one; else raise `TreeBusy`."""
        if current is None:
            current = yield from self._work(new_work.tree)
        if current is None:  # it has just been finished
            raise UpdateContended(f"the tree {new_work.tree!r}", 1)
        if (current.path, current.to) != (new_work.path, new_work.to):
            raise TreeBusy(new_work.tree, what, current)
        return current

    def _delete_work(self, work: W) -> PatternProgram[None]:
        key, mine = self.work_key(tree=work.tree), self._still(work)
        try:
            yield from call_client(lambda db: db.delete(key, when=mine))
        except ConditionFailed:
            pass  # another caller has finished the same work

    # Nodes.

    def _some(self, tree: str, path: str, count: int, *, last: bool = False) -> PatternProgram[list[N]]:
        """Return at most `count` nodes below a path, parents before children; with `last`, in reverse order."""
        question = self._below(tree, path)
        page = yield from call_client(
            lambda db: db.query(question, limit=count, consistent=True, newest_first=last)
        )
        return page.items

    def _read_nodes(self, keys: Sequence[Any]) -> PatternProgram[list[_ReadNode[N]]]:
        """Return the nodes that exist under these keys, each with the condition that its item is unchanged.

        The condition compares stored attributes, because a field's value may differ from what is stored: an absent attribute
        reads as the default.
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
        query: Any = self.under(tree=tree)
        return query if path == TOP else query.path.begins_with(check_path(path) + SEPARATOR)


def _too_many(error: Exception) -> bool:
    """Return whether fewer nodes in the transaction might work: it had too many actions or bytes."""
    if isinstance(error, TransactionCancelled):
        return any(reason is not None and reason.kind in ("too_large", "invalid") for reason in error.reasons)
    return isinstance(error, TransactionRefused) or (
        isinstance(error, Fault) and error.code == "ValidationException"
    )
