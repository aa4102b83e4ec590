"""Laws of expressions: round trips, a second opinion on every condition, and nothing but refusals."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tavola.expressions.bindings import Bindings, bind
from tavola.expressions.conditions import evaluate
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
    Literal,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
)
from tavola.expressions.parser import parse_condition, parse_projection, parse_update
from tavola.expressions.plans import (
    check_placeholders,
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)
from tavola.expressions.projections import project
from tavola.expressions.renderer import Renderer
from tavola.expressions.updates import INVALID_PATH, NO_ATTRIBUTE, WRONG_TYPE, apply, written_part
from tavola.values import canonical_number, tag_of

# Few names and few values, so that paths meet items and values meet each other.
NAMES = ("a", "b", "c", "status", "x.y", "and")
texts = st.sampled_from(["", "a", "ab", "b", "\u00e9", "\U0001d11e", "\uffff"])
numbers = st.sampled_from(["0", "1", "2", "-1", "10", "1.5", "0.001"]) | st.integers(-(10**6), 10**6).map(
    lambda number: canonical_number(str(number))
)
binaries = st.sampled_from([b"", b"a", b"ab", b"b", b"\x00\xff"]).map(lambda raw: b64encode(raw).decode())
strings_ = st.builds(lambda text: {"S": text}, texts)
numbers_ = st.builds(lambda number: {"N": number}, numbers)
binaries_ = st.builds(lambda raw: {"B": raw}, binaries)
ordered = strings_ | numbers_ | binaries_
sets = (
    st.builds(lambda members: {"SS": members}, st.lists(texts, min_size=1, max_size=3, unique=True))
    | st.builds(lambda members: {"NS": members}, st.lists(numbers, min_size=1, max_size=3, unique=True))
    | st.builds(lambda members: {"BS": members}, st.lists(binaries, min_size=1, max_size=3, unique=True))
)
scalars = ordered | st.builds(lambda truth: {"BOOL": truth}, st.booleans()) | st.just({"NULL": True})
values = st.recursive(
    scalars | sets,
    lambda inner: (
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3))
        | st.builds(
            lambda members: {"M": members}, st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        )
    ),
    max_leaves=6,
)
items = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
paths = st.builds(
    lambda first, rest: Path((first, *rest)),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES) | st.integers(0, 3), max_size=2),
)
literals = st.builds(Literal, values)
sizes = st.builds(lambda path: FunctionCall("size", (path,)), paths)
operands: st.SearchStrategy[Operand] = paths | literals | sizes
sortable: st.SearchStrategy[Operand] = paths | st.builds(Literal, ordered) | sizes
prefixes: st.SearchStrategy[Operand] = paths | st.builds(Literal, strings_ | binaries_)


def bounds(pair: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """Tell whether two literals may bound a BETWEEN."""
    low, high = map(plain, pair)
    return bool(low[0] == high[0] and low[1] <= high[1])


ranges: st.SearchStrategy[tuple[Operand, Operand]] = st.tuples(paths, sortable) | st.one_of(
    st.tuples(strings_, strings_), st.tuples(numbers_, numbers_), st.tuples(binaries_, binaries_)
).filter(bounds).map(lambda pair: (Literal(pair[0]), Literal(pair[1])))
leaves: st.SearchStrategy[ConditionNode] = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<>"]), operands, operands),
    st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">="]), sortable, sortable),
    st.builds(lambda operand, pair: Between(operand, *pair), sortable, ranges),
    st.builds(InList, operands, st.lists(operands, min_size=1, max_size=3).map(tuple)),
    st.builds(
        lambda function, path: FunctionCall(function, (path,)),
        st.sampled_from(["attribute_exists", "attribute_not_exists"]),
        paths,
    ),
    st.builds(lambda left, right: FunctionCall("begins_with", (left, right)), prefixes, prefixes),
    st.builds(lambda left, right: FunctionCall("contains", (left, right)), operands, operands),
    st.builds(
        lambda operand, tag: FunctionCall("attribute_type", (operand, Literal({"S": tag}))),
        paths | literals,
        st.sampled_from(["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"]),
    ),
)
conditions: st.SearchStrategy[ConditionNode] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)

fallbacks: st.SearchStrategy[Operand] = paths | literals
lists: st.SearchStrategy[Operand] = paths | st.builds(
    lambda members: Literal({"L": members}), st.lists(values, max_size=2)
)
amounts: st.SearchStrategy[Operand] = paths | st.builds(Literal, numbers_)
set_values: st.SearchStrategy[Operand | Arithmetic] = st.one_of(
    fallbacks,
    st.builds(lambda path, other: FunctionCall("if_not_exists", (path, other)), paths, fallbacks),
    st.builds(lambda head, tail: FunctionCall("list_append", (head, tail)), lists, lists),
    st.builds(Arithmetic, st.sampled_from("+-"), amounts, amounts),
)
updates: st.SearchStrategy[UpdateNode] = st.builds(
    lambda *sections: UpdateNode(tuple(action for section in sections for action in section)),
    st.lists(st.builds(Set, paths, set_values), min_size=1, max_size=3),
    st.lists(st.builds(Remove, paths), max_size=2),
    st.lists(st.builds(Add, paths, st.builds(Literal, numbers_ | sets)), max_size=2),
    st.lists(st.builds(DeleteElements, paths, st.builds(Literal, sets)), max_size=2),
)
projections = st.builds(lambda found: ProjectionNode(tuple(found)), st.lists(paths, min_size=1, max_size=4))


T = TypeVar("T")
RUN_TIME_REFUSALS = (INVALID_PATH, WRONG_TYPE, NO_ATTRIBUTE)


def outcome(act: Callable[[], T]) -> tuple[T | None, str]:
    """Return what an act gives, or the sentence with which it is refused; any other error is a defect."""
    try:
        return act(), ""
    except ExpressionError as error:
        return None, str(error)


@given(conditions)
def test_a_rendered_condition_parses_to_its_tree(tree: ConditionNode) -> None:
    """parse(render(tree)) == tree, whatever names and values are in it."""
    renderer = Renderer()

    text = renderer.condition(tree)

    assert bind(parse_condition(text).tree, Bindings(renderer.names, renderer.values)) == tree


@given(updates, projections)
def test_a_rendered_update_and_projection_parse_to_their_trees(
    update: UpdateNode, paths: ProjectionNode
) -> None:
    """One renderer for both, as in one request."""
    renderer = Renderer()

    texts = renderer.update(update), renderer.projection(paths)

    bindings = Bindings(renderer.names, renderer.values)
    assert bind(parse_update(texts[0]).tree, bindings) == update
    assert bind(parse_projection(texts[1]).tree, bindings) == paths


# The second opinion: plain Python over plain values, one line a rule.


def plain(value: dict[str, Any]) -> Any:
    """Return a value as something Python compares as DynamoDB does."""
    tag = tag_of(value)
    content = value[tag]
    match tag:
        case "S":
            return tag, content.encode()
        case "N":
            return tag, Decimal(content)
        case "B":
            return tag, b64decode(content)
        case "SS" | "NS" | "BS":
            return tag, frozenset(plain({tag[0]: member}) for member in content)
        case "L":
            return tag, tuple(map(plain, content))
        case "M":
            return tag, frozenset((name, plain(member)) for name, member in content.items())
        case _:
            return tag, content


def looked_up(path: Path, item: dict[str, Any]) -> dict[str, Any] | None:
    """Return what stands at a path."""
    value: dict[str, Any] | None = {"M": item}
    for step in path.steps:
        try:
            assert value is not None
            value = value["L"][step] if isinstance(step, int) else value["M"][step]
        except (KeyError, IndexError, AssertionError):
            return None
    return value


def worth(operand: Operand, item: dict[str, Any]) -> dict[str, Any] | None:
    """Return what an operand is worth."""
    if isinstance(operand, Literal):
        return operand.value
    if isinstance(operand, Path):
        return looked_up(operand, item)
    assert isinstance(operand, FunctionCall)
    value = worth(operand.operands[0], item)
    match value:
        case None | {"N": _} | {"BOOL": _} | {"NULL": _}:
            return None
        case {"S": text}:
            return {"N": str(len(text.encode("utf-16-le")) // 2)}
        case {"B": raw}:
            return {"N": str(len(b64decode(raw)))}
        case _:
            return {"N": str(len(value[tag_of(value)]))}


def holds(node: ConditionNode, item: dict[str, Any]) -> bool:
    """Decide a condition naively."""
    match node:
        case And(parts):
            return all(holds(part, item) for part in parts)
        case Or(parts):
            return any(holds(part, item) for part in parts)
        case Not(part):
            return not holds(part, item)
        case Comparison(operator, left, right):
            return related(operator, worth(left, item), worth(right, item))
        case Between(operand, lower, upper):
            value = worth(operand, item)
            return related(">=", value, worth(lower, item)) and related("<=", value, worth(upper, item))
        case InList(operand, choices):
            return any(related("=", worth(operand, item), worth(choice, item)) for choice in choices)
        case FunctionCall(function, operands):
            return called(function, [worth(operand, item) for operand in operands])


def related(operator: str, left: dict[str, Any] | None, right: dict[str, Any] | None) -> bool:
    """Decide a comparison."""
    if left is None or right is None:
        return operator == "<>"
    (left_tag, a), (right_tag, b) = plain(left), plain(right)
    same = left_tag == right_tag and bool(a == b)
    if operator in ("=", "<>"):
        return same is (operator == "=")
    if left_tag != right_tag or left_tag not in ("S", "N", "B"):
        return False
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator])


def called(function: str, operands: list[dict[str, Any] | None]) -> bool:
    """Decide a call."""
    first = operands[0]
    if function == "attribute_exists":
        return first is not None
    if function == "attribute_not_exists":
        return first is None
    second = operands[1]
    if first is None or second is None:
        return False
    (tag, content), (sought_tag, sought) = plain(first), plain(second)
    match function:
        case "attribute_type":
            return bool(tag == second["S"])
        case "begins_with":
            return tag == sought_tag and tag in ("S", "B") and content.startswith(sought)
        case _:
            if tag == "L":
                return (sought_tag, sought) in content
            if tag in ("S", "B"):
                return tag == sought_tag and sought in content
            return tag in ("SS", "NS", "BS") and (sought_tag, sought) in content


@given(conditions, items)
def test_a_condition_is_decided_as_a_second_opinion_decides_it(
    tree: ConditionNode, item: dict[str, Any]
) -> None:
    """Compiled functions and a naive walk agree on every item."""
    renderer = Renderer()
    text = renderer.condition(tree)
    bindings = Bindings(renderer.names, renderer.values)
    # A generated comparison may name one path twice, or take the size of a number.
    condition, refusal = outcome(lambda: compile_condition(text, bindings))
    assert "must be distinct" in refusal or "Incorrect operand type" in refusal or not refusal
    assume(condition is not None)
    assert condition is not None
    check_placeholders(bindings, [condition])

    assert evaluate(condition, item, bindings.values) is holds(tree, item)
    assert compile_condition(text, bindings) is condition


@given(updates, items)
def test_an_update_never_changes_what_it_is_given(tree: UpdateNode, item: dict[str, Any]) -> None:
    """Neither the item nor the values, applied or refused; and each SET can be read back."""
    renderer = Renderer()
    bindings = Bindings(renderer.names, renderer.values)
    text = renderer.update(tree)
    before = deepcopy(item), deepcopy(renderer.values)

    applied, refusal = outcome(lambda: apply(compile_update(text, bindings), item, bindings.values))

    assert refusal == "" or refusal.startswith("Invalid UpdateExpression: ") or refusal in RUN_TIME_REFUSALS
    assert (item, renderer.values) == before
    if applied is not None:
        assert (written_part(applied.item, applied) or {}).keys() <= applied.item.keys()
        for action in tree.actions:
            if isinstance(action, Set) and isinstance(action.value, Literal) and len(action.path.steps) == 1:
                assert looked_up(action.path, applied.item) == action.value.value


@given(projections, items)
def test_a_projection_gives_exactly_what_its_paths_find(tree: ProjectionNode, item: dict[str, Any]) -> None:
    """A path of names gives the value that stands there; without a match there is nothing at all."""
    renderer = Renderer()
    projection, refusal = outcome(
        lambda: compile_projection(renderer.projection(tree), Bindings(renderer.names))
    )
    assert projection is not None or "with each other" in refusal
    assume(projection is not None)
    assert projection is not None

    found = project(projection, item)

    for path in tree.paths:
        if all(isinstance(step, str) for step in path.steps):
            assert looked_up(path, found) == looked_up(path, item)
    if not any(looked_up(path, item) for path in tree.paths):
        assert found == {}


PIECES = [
    *(
        "a",
        "b.c",
        "#n",
        "#m",
        ":v",
        ":w",
        "(",
        ")",
        "[",
        "]",
        "0",
        "99999999999",
        ",",
        ".",
        "=",
        "<",
        ">",
        "<>",
    ),
    *("<=", "+", "-", "*", "!", "_", "#", ":", "AND", "or", "NOT", "between", "IN", "SET", "remove", "ADD"),
    *(
        "DELETE",
        "size(",
        "contains(",
        "attribute_exists(",
        "if_not_exists(",
        "list_append(",
        "f(",
        "status",
        " ",
    ),
    *("\u00e9", "\n", "attribute_type(a, :v)", "a = :v", "(a)", "begins_with(a, :w)", "a IN (:v)"),
]
COMPILERS: list[Callable[[str, Bindings], object]] = [
    compile_condition,
    compile_key_condition,
    compile_update,
    compile_projection,
]


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
    | st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
    | st.text(max_size=40),
    values,
)
@example("\ud800 = :v", {"S": "\ud800"})
@example("SET a = " + "(" * 4000, {"S": ""})
def test_any_text_compiles_or_is_refused(text: str, value: dict[str, Any]) -> None:
    """Whatever is written, the answer is a plan or a sentence, and the sentence names its field."""
    bindings = Bindings({"#n": "status"}, {":v": value, ":w": {"S": "a"}})

    for compile_ in COMPILERS:
        plan, refusal = outcome(lambda compile_=compile_: compile_(text, bindings))  # type: ignore[misc]

        assert plan is not None or refusal.startswith("Invalid ")


@pytest.mark.parametrize("levels", [1, 10, 99])
def test_a_tree_as_deep_as_dynamodb_allows_goes_all_the_way(levels: int) -> None:
    """Three operators a level make 298 of the 300: rendered, parsed, bound, compiled and evaluated."""
    tree: ConditionNode = Comparison("=", Path(("a",)), Literal({"S": "x"}))
    for level in range(levels):
        tree = Not(Or((tree, FunctionCall("attribute_exists", (Path((f"b{level}",)),)))))
    renderer = Renderer()

    text = renderer.condition(tree)

    bindings = Bindings(renderer.names, renderer.values)
    assert Renderer().condition(bind(parse_condition(text).tree, bindings)) == text
    assert evaluate(compile_condition(text, bindings), {}, bindings.values) is holds(tree, {})
