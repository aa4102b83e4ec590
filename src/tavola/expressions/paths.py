"""Document paths: printing, reading, combining several into a tree, and the traversals of an expression that find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    InList,
    Leaf,
    Literal,
    NameRef,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Tree,
    Truth,
    ValueRef,
)
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


def leaves_of(condition: ConditionNode) -> Iterator[Leaf]:
    """Yield the comparisons and calls of a condition, including those inside operands."""
    pending = [condition]
    while pending:
        node = pending.pop()
        match node:
            case And(parts) | Or(parts):
                pending.extend(reversed(parts))
            case Not(part):
                pending.append(part)
            case _:
                pending.extend(
                    operand.condition for operand in operands_of(node)[::-1] if isinstance(operand, Truth)
                )
                yield node


def operands_of(leaf: Leaf) -> tuple[Operand, ...]:
    """Return the operands of a comparison or call."""
    match leaf:
        case Comparison(_, left, right):
            return (left, right)
        case Between(operand, lower, upper):
            return (operand, lower, upper)
        case InList(operand, choices):
            return (operand, *choices)
        case FunctionCall(_, operands):
            return operands


def tree_operands(tree: Tree) -> Iterator[Operand]:
    """Yield the outermost operands of any tree."""
    match tree:
        case ProjectionNode(paths):
            yield from paths
        case And() | Or() | Not() | Comparison() | Between() | InList() | FunctionCall():
            for leaf in leaves_of(tree):
                yield from operands_of(leaf)
        case _:
            for action in tree.actions:
                yield action.path
                match action:
                    case Set(_, Arithmetic(_, left, right)):
                        yield left
                        yield right
                    case Set(_, value):
                        assert not isinstance(value, Arithmetic)
                        yield value
                    case Add(_, amount) | DeleteElements(_, amount):
                        yield amount
                    case Remove():
                        pass


def terms_of(operands: Iterable[Operand]) -> Iterator[Path | ValueRef | Literal]:
    """Yield the paths and values of operands, including those inside calls."""
    pending = list(operands)[::-1]
    while pending:
        operand = pending.pop()
        if isinstance(operand, FunctionCall):
            pending.extend(reversed(operand.operands))
        elif not isinstance(operand, Truth):  # its leaves are leaves of the whole condition
            yield operand


def calls_of(operands: Iterable[Operand]) -> list[FunctionCall]:
    """Return the calls in operands, inner before outer, as they are evaluated."""
    calls: list[FunctionCall] = []
    pending: list[tuple[Operand, bool]] = [(operand, False) for operand in operands][::-1]
    while pending:
        operand, opened = pending.pop()
        if not isinstance(operand, FunctionCall):
            continue
        if opened:
            calls.append(operand)
        else:
            pending.append((operand, True))
            pending.extend((inner, False) for inner in reversed(operand.operands))
    return calls


def paths_of(tree: Tree) -> Iterator[Path]:
    """Yield every path of a tree."""
    return (term for term in terms_of(tree_operands(tree)) if isinstance(term, Path))
