"""Projection of items through document paths."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tavola.expressions.nodes import ProjectionNode
from tavola.expressions.paths import PathTree, Steps, tree_of
from tavola.values import Item, Value

Pick = Callable[[Item], Item]


class CompiledProjection(Struct, frozen=True):
    """Compiled paths, and the attributes and placeholders they use."""

    tree: ProjectionNode
    pick: Pick
    attributes: frozenset[str]  # top-level attributes used
    nested: frozenset[str]  # attributes that a path goes into with `.` or `[]`
    names_used: frozenset[str]
    values_used: frozenset[str] = frozenset()


def project(projection: CompiledProjection, item: Item) -> Item:
    """Return the values at the paths, each within its containers; an empty item if there are none."""
    return projection.pick(item)


def compile_picker(paths: tuple[Steps, ...]) -> Pick:
    """Return the function that projects through non-overlapping paths."""
    if all(len(steps) == 1 for steps in paths):
        names = tuple(str(steps[0]) for steps in paths)

        def pick(item: Item) -> Item:
            return {name: item[name] for name in names if name in item}

        return pick
    tree = tree_of((steps, None) for steps in paths)
    return lambda item: _members(item, tree)


def _members(members: dict[str, Value], tree: PathTree) -> dict[str, Value]:
    projected = {}
    for name, branch in tree.items():
        value = members.get(name)
        if value is not None and branch is not None:
            value = _inside(value, branch)
        if value is not None:
            projected[name] = value
    return projected


def _inside(value: Value, tree: PathTree) -> Value | None:
    """Return the part of a container that the tree selects; None if it has none of it."""
    content = value.get("M")
    if content is not None:
        members = _members(content, tree)
        return {"M": members} if members else None
    content = value.get("L")
    if content is None:
        return None
    elements = []
    for index, branch in tree.items():
        if isinstance(index, int) and index < len(content):
            element = content[index]
            part = element if branch is None else _inside(element, branch)
            if part is not None:
                elements.append(part)
    return {"L": elements} if elements else None
