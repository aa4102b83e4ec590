"""Traversals of a tree: leaves, operands, calls and paths, in text order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tavola.expressions.nodes import (
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    Delete,
    FunctionCall,
    InList,
    Leaf,
    Literal,
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
                    case Add(_, amount) | Delete(_, amount):
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
    found: list[FunctionCall] = []
    pending: list[tuple[Operand, bool]] = [(operand, False) for operand in operands][::-1]
    while pending:
        operand, opened = pending.pop()
        if not isinstance(operand, FunctionCall):
            continue
        if opened:
            found.append(operand)
        else:
            pending.append((operand, True))
            pending.extend((inner, False) for inner in reversed(operand.operands))
    return found


def paths_of(tree: Tree) -> Iterator[Path]:
    """Yield every path of a tree."""
    return (term for term in terms_of(tree_operands(tree)) if isinstance(term, Path))
