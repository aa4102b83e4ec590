"""Laws of statements: they mean what native requests mean, and no text gets anything but an answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tavola.engine import Engine
from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Literal,
    Not,
    Operand,
    Or,
    Path,
)
from tavola.expressions.partiql import StatementError, compile_statement, parse_statement
from tavola.expressions.renderer import Renderer
from tavola.protocol.faults import Fault, ValidationFault

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}
REFUSED_HERE_ALONE = ("Overlapping conditions", "Too many decomposed", "Key attribute's data type")

PIECES = [
    *"""SELECT INSERT INTO UPDATE DELETE FROM WHERE SET REMOVE VALUE VALUES RETURNING ALL MODIFIED OLD NEW AND OR
    NOT IN BETWEEN IS NULL MISSING LIKE ORDER BY ASC DESC LIMIT GROUP EXISTS TRUE FALSE size contains set_add
    list_append attribute_exists attribute_type begins_with count tab "tab" "tab"."i" pk sk a "a b" m.k l[0] l[-1]
    'x' 'S' '' 1 -1 .5 1e3 1e126 1e99999999999 ? * = <> != < <= > >= + - / || ( ) [ ] { } << >> , . : ; @ -- /* */
    $ _ # ` \\ ' " \x00 é""".split(),
    " ",
    "\n",
    "--\n",
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    """An engine with a small table whose items meet the conditions drawn below."""
    made = Engine.open()
    made.call("CreateTable", TABLE)
    shapes: tuple[dict[str, Any], ...] = (
        {},
        {"a": {"N": "1"}},
        {"a": {"S": "x"}, "b": {"BOOL": True}},
        {"a": {"NULL": True}, "m": {"M": {"k": {"N": "2"}}}, "l": {"L": [{"S": "x"}, {"N": "1"}]}},
    )
    for hash_ in "xyz":
        for at, shape in enumerate(shapes):
            key = {"pk": {"S": hash_}, "sk": {"N": str(at - 1)}}
            made.call("PutItem", {"TableName": "tab", "Item": {**key, **shape}})
    return made


VALUES: list[dict[str, Any]] = [
    {"S": "x"},
    {"S": "y"},
    {"S": "z''w"},
    {"N": "0"},
    {"N": "1"},
    {"N": "-1"},
    {"N": "2"},
    {"BOOL": True},
    {"NULL": True},
    {"SS": ["x", "y"]},
    {"L": [{"S": "x"}, {"N": "1"}]},
    {"M": {"k": {"N": "2"}}},
]
values = st.sampled_from(VALUES).map(Literal)
paths = st.sampled_from(
    [("pk",), ("sk",), ("a",), ("b",), ("m", "k"), ("l", 0), ("nope",), ("pk",), ("sk",)]
).map(Path)
# Key conditions come often enough that queries come about, of one range and of several.
keys = st.builds(
    lambda text: Comparison("=", Path(("pk",)), Literal({"S": text})), st.sampled_from("xyzq")
) | st.builds(
    lambda operator, number: Comparison(operator, Path(("sk",)), Literal({"N": str(number)})),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
    st.integers(-2, 3),
)
operands: st.SearchStrategy[Operand] = paths | values
leaves: st.SearchStrategy[ConditionNode] = st.one_of(
    keys,
    keys,
    st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), paths, values),
    st.builds(Comparison, st.sampled_from(["=", "<>"]), operands, operands),
    st.builds(
        lambda low, high: Between(Path(("sk",)), Literal({"N": str(low)}), Literal({"N": str(low + high)})),
        st.integers(-2, 2),
        st.integers(0, 3),
    ),
    st.builds(
        lambda texts: InList(Path(("pk",)), tuple(Literal({"S": text}) for text in texts)),
        st.lists(st.sampled_from("xyzq"), min_size=1, max_size=3),
    ),
    st.builds(
        lambda path, choices: InList(path, tuple(choices)), paths, st.lists(values, min_size=1, max_size=3)
    ),
    st.builds(
        lambda name, path: FunctionCall(name, (path,)),
        st.sampled_from(["attribute_exists", "attribute_not_exists"]),
        paths,
    ),
    st.builds(
        lambda name, path, value: FunctionCall(name, (path, value)),
        st.sampled_from(["begins_with", "contains"]),
        paths,
        values,
    ),
    st.builds(
        lambda path, tag: FunctionCall("attribute_type", (path, Literal({"S": tag}))),
        paths,
        st.sampled_from(["S", "N", "M"]),
    ),
    st.builds(
        lambda path, count: Comparison(">", FunctionCall("size", (path,)), Literal({"N": str(count)})),
        paths,
        st.integers(0, 2),
    ),
)
conditions: st.SearchStrategy[ConditionNode] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=6,
)


def written(node: ConditionNode | Operand) -> str:
    """Return a condition as PartiQL writes it, in more parentheses than it needs."""
    match node:
        case And(parts):
            return "(" + " AND ".join(map(written, parts)) + ")"
        case Or(parts):
            return "(" + " OR ".join(map(written, parts)) + ")"
        case Not(part):
            return f"NOT ({written(part)})"
        case Comparison(operator, left, right):
            return f"{written(left)} {operator} {written(right)}"
        case Between(operand, lower, upper):
            return f"{written(operand)} BETWEEN {written(lower)} AND {written(upper)}"
        case InList(operand, choices):
            return f"{written(operand)} IN [{', '.join(map(written, choices))}]"
        case FunctionCall(function, inner):
            return f"{function}({', '.join(map(written, inner))})"
        case Path(steps):
            first, *rest = steps
            return f'"{first}"' + "".join(
                f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in rest
            )
        case Literal(value):
            return spelled(value)
        case _:
            raise AssertionError(f"{node} has no text")


def spelled(value: dict[str, Any]) -> str:
    """Return a value as a literal."""
    ((tag, content),) = value.items()
    match tag:
        case "S":
            return f"'{str(content).replace(chr(39), chr(39) * 2)}'"
        case "N":
            return str(content)
        case "BOOL":
            return str(content)
        case "NULL":
            return "null"
        case "SS":
            return "<<" + ", ".join(spelled({"S": member}) for member in content) + ">>"
        case "L":
            return "[" + ", ".join(map(spelled, content)) + "]"
        case _:
            return (
                "{"
                + ", ".join(f"{spelled({'S': name})}: {spelled(inner)}" for name, inner in content.items())
                + "}"
            )


def outcome(engine: Engine, statement: str, limit: int | None) -> list[Any] | str:
    """Return every item of a SELECT, in order of their keys, or the sentence it is refused with."""
    found: list[Any] = []
    request: dict[str, Any] = {"Statement": statement} | ({} if limit is None else {"Limit": limit})
    try:
        for _ in range(100):
            page = engine.call("ExecuteStatement", request)
            found += page["Items"]
            if "NextToken" not in page:
                return sorted(found, key=str)
            request["NextToken"] = page["NextToken"]
    except ValidationFault as fault:
        return str(fault)
    raise AssertionError(f"{statement} has no last page")


@given(condition=conditions, limit=st.sampled_from([None, 1, 2, 5]))
def test_select_means_what_a_filter_means(
    engine: Engine, condition: ConditionNode, limit: int | None
) -> None:
    """A SELECT gives the items that a scan with the same condition gives, each once, whatever it reads."""
    found = outcome(engine, f"SELECT * FROM tab WHERE {written(condition)}", limit)
    renderer = Renderer()
    request: dict[str, Any] = {"TableName": "tab", "FilterExpression": renderer.condition(condition)}
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    if renderer.values:
        request["ExpressionAttributeValues"] = renderer.values
    try:
        expected: list[Any] | str = sorted(engine.call("Scan", request)["Items"], key=str)
    except ValidationFault as fault:
        expected = str(fault).removeprefix("Invalid FilterExpression: ")

    if isinstance(found, str) and found.startswith(REFUSED_HERE_ALONE):
        return
    assert found == expected


changes = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "m.k", "l[0]", "l[5]", "n", "s"]),
        st.sampled_from(
            ["1", "'x'", "a", "n + 1", "1 - n", "list_append(l, [1])", "if_not_exists(n, 4)", "REMOVE"]
        ),
    ),
    min_size=1,
    max_size=3,
)
native_values = {"1": {"N": "1"}, "'x'": {"S": "x"}, "[1]": {"L": [{"N": "1"}]}, "4": {"N": "4"}}


@given(changes=changes, stored=st.sampled_from(["full", "bare"]))
def test_update_means_what_an_update_expression_means(
    engine: Engine, changes: list[tuple[str, str]], stored: str
) -> None:
    """UPDATE makes of an item what UpdateItem makes of it, or refuses with the same sentence."""
    full = {
        "a": {"N": "5"},
        "n": {"N": "1"},
        "m": {"M": {"k": {"S": "q"}}},
        "l": {"L": [{"N": "1"}, {"N": "2"}]},
    }
    before = {"pk": {"S": "u"}, "sk": {"N": "0"}} | (full if stored == "full" else {})
    key = {"pk": {"S": "u"}, "sk": {"N": "0"}}
    text = " ".join(
        f"REMOVE {path}" if value == "REMOVE" else f"SET {path} = {value}" for path, value in changes
    )
    sets = [f"{path} = {value}" for path, value in changes if value != "REMOVE"]
    removes = [path for path, value in changes if value == "REMOVE"]
    native = (f"SET {', '.join(sets)} " if sets else "") + (f"REMOVE {', '.join(removes)}" if removes else "")
    bound: dict[str, Any] = {}
    for name, (literal, value) in zip((":a", ":b", ":c", ":d"), native_values.items(), strict=True):
        for before_, after in (("= ", ""), ("+ ", ""), ("(l, ", ")"), ("(n, ", ")"), ("= ", " -")):
            if before_ + literal + after in native:
                native = native.replace(before_ + literal + after, before_ + name + after)
                bound[name] = value

    def ran(operation: str, request: dict[str, Any]) -> Any:
        engine.call("PutItem", {"TableName": "tab", "Item": before})
        try:
            engine.call(operation, request)
            return engine.call("GetItem", {"TableName": "tab", "Key": key})["Item"]
        except ValidationFault as fault:
            return (
                str(fault)
                .removeprefix("1 validation error detected: ")
                .removeprefix("Invalid UpdateExpression: ")
            )
        finally:
            engine.call("DeleteItem", {"TableName": "tab", "Key": key})

    request: dict[str, Any] = {"TableName": "tab", "Key": key, "UpdateExpression": native}
    if bound:
        request["ExpressionAttributeValues"] = bound

    assert ran("ExecuteStatement", {"Statement": f"UPDATE tab {text} WHERE pk = 'u' AND sk = 0"}) == ran(
        "UpdateItem", request
    )


texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.text(max_size=80),
    st.builds(
        lambda head, tail: head + " " + " ".join(tail),
        st.sampled_from(
            [
                "SELECT * FROM tab WHERE",
                "SELECT a FROM tab WHERE pk = 'x' AND",
                "UPDATE tab SET",
                "UPDATE tab SET a = 1 WHERE pk = 'x' AND sk =",
                "INSERT INTO tab VALUE {'pk': 'x',",
                "DELETE FROM tab WHERE pk = 'x' AND sk = 1 AND",
                "EXISTS(SELECT * FROM tab WHERE",
            ]
        ),
        st.lists(st.sampled_from(PIECES), max_size=25),
    ),
)


@given(text=texts, count=st.integers(0, 3))
@example(text="SELECT * FROM tab WHERE pk IN (", count=0)
@example(text="SELECT * FROM tab WHERE a IN", count=0)
@example(text="SELECT m, m.a, m.a.b FROM tab", count=0)
def test_any_text_is_a_statement_or_refused(text: str, count: int) -> None:
    """Parsing and checking end in a plan or in a refusal, whatever the text."""
    with suppress(StatementError):
        compile_statement(parse_statement(text), [{"S": "x"}] * count)


@given(
    text=texts.filter(bool),
    count=st.integers(0, 2),
    value=st.sampled_from([{"S": "x"}, {"N": "1"}, {"SS": ["a"]}]),
)
def test_any_text_is_answered(engine: Engine, text: str, count: int, value: dict[str, Any]) -> None:
    """No statement makes the engine fail: it is carried out, or the caller is told what is wrong."""
    given_: dict[str, Any] = {"Statement": text} | ({"Parameters": [value] * count} if count else {})

    for operation, request in (
        ("ExecuteStatement", given_),
        ("BatchExecuteStatement", {"Statements": [given_]}),
        ("ExecuteTransaction", {"TransactStatements": [given_]}),
    ):
        refusal: Fault | None = None
        try:
            engine.call(operation, request)
        except Fault as fault:
            refusal = fault

        assert refusal is None or (refusal.status == 400 and refusal.message)
