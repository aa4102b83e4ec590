"""Document paths: printing, reading, and combining several into a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import NameRef, Path
from tavola.values import Item, Value

Steps = tuple[str | int, ...]
PathTree = dict[Any, Any]  # a step leads to a subtree, or to the value that belongs to the path's end


def steps_of(path: Path) -> Steps:
    """Return the steps of a path without placeholders."""
    steps: list[str | int] = []
    for step in path.steps:
        assert not isinstance(step, NameRef), "a path is read only after its names are known"
        steps.append(step)
    return tuple(steps)


def path_text(steps: Iterable[str | int]) -> str:
    """Return a path as DynamoDB prints it: `[a, b, [1]]`."""
    return "[" + ", ".join(f"[{step}]" if isinstance(step, int) else step for step in steps) + "]"


def compile_reader(steps: Steps) -> Callable[[Item], Value | None]:
    """Return a function that reads the value at a path, None if an item has none."""
    first, *rest = steps
    assert isinstance(first, str)
    if not rest:
        return lambda item: item.get(first)
    if len(rest) == 1 and isinstance(rest[0], str):
        second = rest[0]

        def read_member(item: Item) -> Value | None:
            value = item.get(first)
            members = None if value is None else value.get("M")
            return None if members is None else members.get(second)

        return read_member

    def read(item: Item) -> Value | None:
        value = item.get(first)
        for step in rest:
            if value is None:
                return None
            if isinstance(step, int):
                elements = value.get("L")
                value = elements[step] if elements is not None and step < len(elements) else None
            else:
                members = value.get("M")
                value = None if members is None else members.get(step)
        return value

    return read


def tree_of(ends: Iterable[tuple[Steps, Any]]) -> PathTree:
    """Return non-overlapping paths as one tree, with list indexes in ascending order."""
    tree: PathTree = {}
    for steps, end in sorted(
        ends, key=lambda pair: [step if isinstance(step, int) else -1 for step in pair[0]]
    ):
        branch = tree
        for step in steps[:-1]:
            branch = branch.setdefault(step, {})
        branch[steps[-1]] = end
    return tree


class _PathFork:
    """A fork of paths: the continuations, and the first path through each."""

    __slots__ = ("branches", "end", "first", "first_by_kind")

    def __init__(self, first: Steps) -> None:
        self.branches: dict[str | int, _PathFork] = {}
        self.first = first
        self.first_by_kind: dict[type, Steps] = {}
        self.end = False


def check_disjoint(paths: Iterable[Steps], field: str) -> None:
    """Refuse two paths if one contains the other, or if they use a value both as a map and as a list."""
    root = _PathFork(())
    conflict = ""
    for steps in paths:
        branch = root
        for step in steps:
            kind = type(step)
            other = branch.first_by_kind.get(int if kind is str else str)
            if other is not None and not conflict:
                conflict = _two_paths("conflict", field, other, steps)
            branch.first_by_kind.setdefault(kind, steps)
            if step not in branch.branches:
                branch.branches[step] = _PathFork(steps)
            branch = branch.branches[step]
            if branch.end:
                raise ExpressionError(_two_paths("overlap", field, branch.first, steps))
        if branch.branches:
            raise ExpressionError(_two_paths("overlap", field, branch.first, steps))
        branch.end = True
    if conflict:
        raise ExpressionError(conflict)


def _two_paths(verb: str, field: str, one: Steps, two: Steps) -> str:
    return (
        f"Invalid {field}: Two document paths {verb} with each other; must remove or rewrite one of these "
        f"paths; path one: {path_text(one)}, path two: {path_text(two)}"
    )
