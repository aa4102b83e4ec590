"""Nodes: the places of a tree, what is being done to it, and what can be wrong with that."""

from __future__ import annotations

from dataclasses import dataclass

from tavola.errors import ErrorKind
from tavola.model import Attr, Entity, attr
from tavola.patterns.recipe import PatternError, RecipeRefused

SEPARATOR = "/"
TOP = SEPARATOR  # the parent of the nodes at the top


class Node(Entity):
    """A place in a tree; subclass it with a table, a key of tree and path, and what you want to know of it."""

    tree: Attr[str]
    path: Attr[str]  # "emea/italy/rome"
    parent: Attr[str]  # "emea/italy"; "/" at the top
    depth: Attr[int]  # 1 at the top


class TreeWork(Entity):
    """A move or a removal under way in a tree, one at a time; subclass it with a table and a key of tree."""

    tree: Attr[str]
    path: Attr[str]  # what is moved, or removed
    to: Attr[str | None] = attr(default=None)  # where it goes; None: it is removed
    fence: Attr[str]  # by which one work is told from the next

    @property
    def told(self) -> str:
        """What is done, in words."""
        return (
            f"{self.path!r} is being removed"
            if self.to is None
            else f"{self.path!r} is on its way to {self.to!r}"
        )

    def concerns(self, path: str) -> bool:
        """Return whether a path is in what is moved or removed, at the old place or the new one."""
        return any(within(path, place) for place in (self.path, self.to) if place is not None)


class NodeMissing(PatternError):
    """A path at which there is no node."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(f"There is no node {path!r} in the tree {tree!r}; add it first")


class NodeExists(PatternError):
    """A path at which there is a node already."""

    code = "exists"
    kind = ErrorKind.CONFLICT

    def __init__(self, tree: str, path: str) -> None:
        self.tree = tree
        self.path = path
        super().__init__(
            f"There is a node {path!r} in the tree {tree!r} already; remove it, or take another path"
        )


class MoveRefused(PatternError):
    """A move that would take a subtree into itself, or that something stands in the way of."""

    code = "in-the-way"
    kind = ErrorKind.CONFLICT

    def __init__(self, path: str, to: str, reason: str) -> None:
        self.path = path
        self.to = to
        super().__init__(f"{path!r} cannot be moved to {to!r}: {reason}")


class TreeBusy(PatternError):
    """A change that must wait for a move or a removal of the tree to be over."""

    code = "contended"
    kind = ErrorKind.CONFLICT

    def __init__(self, tree: str, what: str, work: TreeWork) -> None:
        self.tree = tree
        self.work = work
        super().__init__(
            f"{what} must wait: in the tree {tree!r}, {work.told}. If nobody is at it any more, finish({tree!r}) ends it"
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did."""

    nodes: int  # that this call moved
    transactions: int


def parent_of(path: str) -> str:
    """Return the path above a path, "/" at the top."""
    return path.rpartition(SEPARATOR)[0] or TOP


def depth_of(path: str) -> int:
    """Return how many names a path has."""
    return path.count(SEPARATOR) + 1


def within(path: str, place: str) -> bool:
    """Return whether a path is a place, or below it."""
    return place in (TOP, path) or path.startswith(place + SEPARATOR)


def checked(path: str) -> str:
    """Return a path, refusing what is none."""
    if not path or any(not name for name in path.split(SEPARATOR)):
        raise RecipeRefused(
            "Tree", f"{path!r} is no path; give names with {SEPARATOR} between them, none of them empty"
        )
    return path
