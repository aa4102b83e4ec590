"""Adjacency lists: edges between items, queried from either end.

An edge is one item. Edges out of a node are the items of its partition; edges into it are the same items in an index whose
key is the table's key inverted. There is no second copy that could disagree.

    class Social(Table):
        inverted = Gsi(pk="sk", sk="pk")

    class Follow(Entity, table=Social):
        follower: Attr[str]
        followed: Attr[str]

        class Key(PrimaryKey["Follow"], pk="USER#{follower}", sk="FOLLOWS#{followed}"):
            follower: str
            followed: str

        class Following(Query["Follow"], on=Key):
            follower: str
            followed: Sort[str] = sort()

        class Followers(Query["Follow"], on=Social.inverted):
            followed: str
            follower: Sort[str] = sort()

    follows = Edges(db, Follow, out=Follow.Following, into=Follow.Followers)
    follows.link(Follow(follower="ann", followed="ben"))
    follows.into("ben")

`Bonds` are undirected edges: two items, written and deleted in one transaction, so that each end is one query.

Cost: one write and one index write per edge; a query per node and direction. A walk costs one query per node it visits.
What it gives up: edges into a node come from an index, so they are eventually consistent.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from tavola.client.connection import Transaction
from tavola.client.errors import ItemExists
from tavola.client.transactions import TransactionCancelled
from tavola.errors import ErrorKind
from tavola.model import Entity, PrimaryKey, Query, shape_of
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
    write_together,
)

NODES_MAX = 10_000  # default limit of the nodes that a walk visits

E = TypeVar("E", bound=Entity)


class CycleFound(PatternError):
    """A walk that reached a node on its own path again."""

    code = "in-the-way"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, path: tuple[str, ...]) -> None:
        self.path = path  # from a node to itself
        super().__init__(f"{what}: {' → '.join(path)} is a cycle; delete one of its edges")


class WalkTooLong(PatternError):
    """A walk that reached more nodes than its limit."""

    code = "in-the-way"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, root: str, nodes_max: int) -> None:
        self.root = root
        self.nodes_max = nodes_max
        super().__init__(
            f"{what}: more than {nodes_max:,} nodes are below {root!r}; allow more with nodes_max=, or less deep"
        )


@dataclass(frozen=True, slots=True)
class Reached(Generic[E]):
    """A node that a walk reached."""

    node: str
    depth: int  # 1: adjacent to the root
    edge: E  # the first edge that led to it


class Edges(Recipe[D_co], Generic[D_co, E]):
    """Directed edges of one type.

    `out` is a query class on the entity's key whose argument is the source; `into` is one on an index of the inverted key
    whose argument is the target.
    """

    def __init__(self, db: D_co, entity: type[E], *, out: type[Query[E]], into: type[Query[E]]) -> None:
        super().__init__(db)
        self.entity = entity
        self.source = _argument(entity, out)
        self.target = _argument(entity, into)
        if self.source == self.target:
            raise RecipeRefused(
                entity.__name__,
                f"out and into both take {self.source}; into must take the other end",
            )
        self.key = key_class(entity, self.source, self.target)
        self.out_class = query_class(entity, out, self.source, sorts=(self.target,))
        self.into_class = query_class(entity, into, self.target, sorts=(self.source,))
        _check_complete_index(entity, into)

    @recipe_method
    def link(self, edge: E) -> PatternProgram[bool]:
        """Create an edge; return False if it exists already."""
        try:
            yield from call_client(lambda db: db.create(edge))
        except ItemExists:
            return False
        return True

    @recipe_method
    def unlink(self, source: str, target: str) -> PatternProgram[E | None]:
        """Delete an edge and return it, None if it did not exist."""
        key = self._key(source, target)
        return (yield from call_client(lambda db: db.delete(key)))

    @recipe_method
    def find(self, source: str, target: str) -> PatternProgram[E | None]:
        """Return the edge from one node to another, None if it does not exist."""
        key = self._key(source, target)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    @recipe_method
    def out(
        self, source: str, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[E]]:
        """Return the edges out of a node, by target: all, or with `limit` one page and a cursor for the next."""
        return (yield from query_slice(self.out_class(**{self.source: source}), limit, cursor))

    @recipe_method
    def into(
        self, target: str, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[E]]:
        """Return the edges into a node, by source, from the index: a change shows there a moment later."""
        return (yield from query_slice(self.into_class(**{self.target: target}), limit, cursor))

    @recipe_method
    def below(
        self, root: str, *, depth: int | None = None, nodes_max: int = NODES_MAX
    ) -> PatternProgram[list[Reached[E]]]:
        """Return every node reachable from a node, level by level: an organisation from its head.

        Each node is returned once, with its shortest path, so a cycle does no harm.
        """
        return (yield from self._walk(root, depth, nodes_max, downwards=True))

    @recipe_method
    def above(
        self, node: str, *, depth: int | None = None, nodes_max: int = NODES_MAX
    ) -> PatternProgram[list[Reached[E]]]:
        """Return every node from which this one is reachable, nearest first: a chain of managers, the uses of a part."""
        return (yield from self._walk(node, depth, nodes_max, downwards=False))

    @recipe_method
    def explode(
        self, root: str, quantity: str, *, times: int | Decimal = 1, nodes_max: int = NODES_MAX
    ) -> PatternProgram[dict[str, int | Decimal]]:
        """Return the quantity of each node in one root, from the edges' field `quantity`: a bill of materials.

        Quantities multiply along a path and add up over all paths. A node that contains itself raises `CycleFound`.
        """
        if quantity not in shape_of(self.entity).fields:
            raise RecipeRefused(self.entity.__name__, f"it has no field {quantity!r} to multiply by")
        edges: dict[str, list[tuple[str, int | Decimal]]] = {}
        waiting = deque([root])
        while waiting:
            node = waiting.popleft()
            if node in edges:
                continue
            if len(edges) > nodes_max:  # the root does not count
                raise WalkTooLong(self.entity.__name__, root, nodes_max)
            node_edges = yield from _all_edges(self.out_class(**{self.source: node}), consistent=True)
            edges[node] = [(getattr(edge, self.target), getattr(edge, quantity)) for edge in node_edges]
            waiting.extend(target for target, _ in edges[node])
        totals: dict[str, int | Decimal] = {}
        amounts: dict[str, int | Decimal] = {root: times}
        for node in _in_topological_order(self.entity.__name__, root, edges):
            for target, edge_quantity in edges[node]:
                amounts[target] = totals[target] = totals.get(target, 0) + amounts[node] * edge_quantity
        return totals

    def _walk(
        self, root: str, depth: int | None, nodes_max: int, *, downwards: bool
    ) -> PatternProgram[list[Reached[E]]]:
        query, by, other = (
            (self.out_class, self.source, self.target)
            if downwards
            else (self.into_class, self.target, self.source)
        )
        seen = {root}
        reached: list[Reached[E]] = []
        level, deep = [root], 0
        while level and (depth is None or deep < depth):
            deep += 1
            below: list[str] = []
            for node in level:
                for edge in (yield from _all_edges(query(**{by: node}), consistent=downwards)):
                    name = getattr(edge, other)
                    if name in seen:
                        continue
                    if len(seen) > nodes_max:
                        raise WalkTooLong(self.entity.__name__, root, nodes_max)
                    seen.add(name)
                    below.append(name)
                    reached.append(Reached(name, deep, edge))
            level = below
        return reached

    def _key(self, source: str, target: str) -> PrimaryKey[E]:
        return self.key(**{self.source: source, self.target: target})


class Bonds(Recipe[D_co], Generic[D_co, E]):
    """Undirected edges: friends, neighbours, paired devices.

    `of` is a query class on the entity's key, whose argument is one end; its first sort part is the other.
    """

    def __init__(self, db: D_co, entity: type[E], *, of: type[Query[E]]) -> None:
        super().__init__(db)
        self.entity = entity
        self.one = _argument(entity, of)
        pattern = of.__get_pattern__()
        if not pattern.sorts:
            raise RecipeRefused(
                pattern.place, "its sort key says nothing of the other end; declare it as a sort part"
            )
        self.other = pattern.sorts[0]
        self.key = key_class(entity, self.one, self.other)
        self.of_class = query_class(entity, of, self.one, sorts=(self.other,))

    @recipe_method
    def bind(self, bond: E) -> PatternProgram[bool]:
        """Link two nodes, in both directions or not at all; return False if they are linked already."""
        mirrored = self._mirror(bond)
        try:
            yield from write_together(lambda writes: (writes.create(bond), writes.create(mirrored)))
        except TransactionCancelled as cancelled:
            if all(reason is None or reason.kind == "exists" for reason in cancelled.reasons):
                return False
            raise
        return True

    @recipe_method
    def change(self, bond: E) -> PatternProgram[None]:
        """Replace the link of two nodes, on both sides."""
        mirrored = self._mirror(bond)
        yield from write_together(lambda writes: (writes.put(bond), writes.put(mirrored)))

    @recipe_method
    def part(self, one: str, other: str) -> PatternProgram[bool]:
        """Delete a link on both sides; return whether it existed."""

        def fill(writes: Transaction) -> None:
            for key in (self._key(one, other), self._key(other, one)):
                writes.delete(key)

        keys = [self._key(one, other), self._key(other, one)]
        items = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        if items == [None, None]:
            return False
        yield from write_together(fill)  # even if only one side exists, written without this pattern
        return True

    @recipe_method
    def find(self, one: str, other: str) -> PatternProgram[E | None]:
        """Return the link of two nodes as stored for the first, None if they are not linked."""
        key = self._key(one, other)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    @recipe_method
    def of(
        self, one: str, *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[E]]:
        """Return the links of a node: all, or with `limit` one page and a cursor for the next."""
        return (yield from query_slice(self.of_class(**{self.one: one}), limit, cursor, consistent=True))

    @recipe_method
    def find_common(self, one: str, other: str) -> PatternProgram[list[str]]:
        """Return the nodes that both are linked with, in order."""
        first = yield from _all_edges(self.of_class(**{self.one: one}), consistent=True)
        second = yield from _all_edges(self.of_class(**{self.one: other}), consistent=True)
        names = {getattr(bond, self.other) for bond in second}
        return [name for bond in first if (name := getattr(bond, self.other)) in names]

    def _mirror(self, bond: E) -> E:
        one, other = getattr(bond, self.one), getattr(bond, self.other)
        if one == other:
            raise RecipeRefused(
                self.entity.__name__, f"{one!r} cannot be linked with itself: it would be one item, not two"
            )
        return bond.model_copy(update={self.one: other, self.other: one})

    def _key(self, one: str, other: str) -> PrimaryKey[E]:
        return self.key(**{self.one: one, self.other: other})


def _argument(entity: type[Entity], query: type[Query[Any]]) -> str:
    pattern = query.__get_pattern__()
    if pattern.owner is not entity:
        raise RecipeRefused(
            pattern.place, f"the edges are {entity.__name__} items; pass a query class of {entity.__name__}"
        )
    if len(pattern.partition) != 1:
        raise RecipeRefused(pattern.place, "it takes one node; declare exactly one argument")
    return pattern.partition[0]


def _check_complete_index(entity: type[Entity], into: type[Query[Any]]) -> None:
    """Refuse an index that leaves edges out, because the two directions would disagree."""
    key = into.__get_pattern__().key
    place = into.__get_pattern__().place
    if key.index is None:
        raise RecipeRefused(
            place, 'into is asked of an index; declare one with the key turned round: Gsi(pk="sk", sk="pk")'
        )
    if key.sparse or key.members:
        raise RecipeRefused(
            place,
            f"its index leaves out some of {entity.__name__}, so that the two directions would not agree",
        )


def _all_edges(question: Query[E], *, consistent: bool) -> PatternProgram[list[E]]:
    return (yield from query_all(lambda db, cursor: db.query(question, cursor=cursor, consistent=consistent)))


def _in_topological_order(
    what: str, root: str, edges: dict[str, list[tuple[str, int | Decimal]]]
) -> list[str]:
    """Return the nodes so that each comes after all that lead to it; raise `CycleFound` if that is impossible."""
    order: list[str] = []
    done: set[str] = set()
    path: list[str] = []
    on_path: set[str] = set()
    stack: list[tuple[str, int]] = [(root, 0)]
    while stack:
        node, at = stack.pop()
        if at == 0:
            if node in done:
                continue
            if node in on_path:
                raise CycleFound(what, (*path[path.index(node) :], node))
            path.append(node)
            on_path.add(node)
        targets = edges[node]
        if at < len(targets):
            stack += [(node, at + 1), (targets[at][0], 0)]
        else:
            done.add(node)
            on_path.discard(node)
            path.pop()
            order.append(node)
    return order[::-1]
