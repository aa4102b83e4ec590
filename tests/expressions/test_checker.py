"""Every sentence with which an expression is refused before an item is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.plans import (
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)

VALUES: dict[str, Any] = {
    ":a": {"S": "a"},
    ":b": {"S": "b"},
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":bin": {"B": "AA=="},
    ":bool": {"BOOL": True},
    ":null": {"NULL": True},
    ":ss": {"SS": ["x"]},
    ":ns": {"NS": ["1"]},
    ":bs": {"BS": ["AA=="]},
    ":list": {"L": []},
    ":map": {"M": {}},
    ":type": {"S": "N"},
    ":dog": {"S": "DOG"},
}
NAMES = {"#a": "a", "#same": "a", "#odd": "o.dd"}


def refusal(compile_: Callable[..., object], text: str, **field: str) -> str:
    """Return the message with which an expression is refused."""
    with pytest.raises(ExpressionError) as caught:
        compile_(text, Bindings(NAMES, VALUES), **field)
    return str(caught.value)


def chain(count: int) -> str:
    """Return a condition of this many operators."""
    return " OR ".join(["a=:a"] * ((count + 1) // 2)) if count % 2 else f"NOT {chain(count - 1)}"


SYNTAX = [
    # text, token, near
    ("!!!", "!", "!!"),
    ("a", "<EOF>", "a"),
    ("(a)", "<EOF>", ")"),
    ("a =", "<EOF>", "="),
    ("a = :a AND", "<EOF>", "AND"),
    ("a = :a )", ")", ":a )"),
    ("(a = :a", "<EOF>", ":a"),
    ("a = :a :b", ":b", ":a :b"),
    ("a = :a = :b", "=", ":a = :b"),
    ("(a = :a) = :b", "=", ") = :b"),
    ("a AND b = :a", "AND", "a AND b"),
    ("(a) AND b = :a", "AND", ") AND b"),
    ("a = (b = :a)", "=", "b = :a"),
    ("NOT a", "<EOF>", "a"),
    ("NOT (a)", "<EOF>", ")"),
    ("(NOT a)", ")", "a)"),
    ("a[] = :a", "]", "[] ="),
    ("a[].b = :a", "]", "[]."),
    ("a[-1] = :a", "-", "[-1"),
    ("a[:one] = :a", ":one", "[:one]"),
    ("a. = :a", "=", ". = :a"),
    ("_a = :a", "_", "_a"),
    ("1a = :a", "1", "1a"),
    ("# = :a", "#", "# ="),
    ("a = :", ":", "= :"),
    ("a == :a", "=", "== :a"),
    ("a IN ()", ")", "()"),
    ("a IN :a", ":a", "IN :a"),
    ("a IN (:a", "<EOF>", ":a"),
    ("a BETWEEN :a", "<EOF>", ":a"),
    ("a BETWEEN :a OR :b", "OR", ":a OR :b"),
    ("and = :a", "and", "and ="),
    ("a.or = :a", "or", ".or ="),
    ("attribute_type()", ")", "()"),
    ("attribute_exists(a", "<EOF>", "a"),
    ("attribute_exists(a b)", "b", "a b)"),
    ("size(a,)", ")", ",)"),
    ("a = :a\u00e9", "\u00e9", ":a\u00e9"),
    ("   ", "<EOF>", ""),
]


@pytest.mark.parametrize(("text", "token", "near"), SYNTAX)
def test_a_syntax_error_names_the_token_and_its_neighbours(text: str, token: str, near: str) -> None:
    """The first unexpected token, with the one before and the one after it."""
    assert (
        refusal(compile_condition, text)
        == f'Invalid ConditionExpression: Syntax error; token: "{token}", near: "{near}"'
    )


@pytest.mark.parametrize(
    ("text", "token", "near"),
    [
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("ADD numx", "<EOF>", "numx"),
        ("SET", "<EOF>", "SET"),
        ("SET n = n * :one", "*", "n * :one"),
        ("SET _123 = :a", "_", "SET _123"),
        ("SET :a = :b", ":a", "SET :a ="),
        ("SET a = :a,", "<EOF>", ","),
        ("SET a = :a b = :b", "b", ":a b ="),
        ("SET a = :one + :one + :two", "+", ":one + :two"),
        ("SET a = (a + :one) + :two", "+", ") + :two"),
        ("SET a = if_not_exists(a, :one + :two)", "+", ":one + :two"),
        ("SET a = (a", "<EOF>", "a"),
        ("SET set = :a", "set", "SET set ="),
        ("SET hi-there = :a", "-", "hi-there"),
        ("REMOVE a b", "b", "a b"),
        ("ADD a b", "b", "a b"),
        ("DELETE a", "<EOF>", "a"),
    ],
)
def test_an_update_has_its_own_syntax(text: str, token: str, near: str) -> None:
    """Sections come first, and a value has at most one operator."""
    assert (
        refusal(compile_update, text)
        == f'Invalid UpdateExpression: Syntax error; token: "{token}", near: "{near}"'
    )


@pytest.mark.parametrize(
    ("text", "token", "near"),
    [
        ("a b", "b", "a b"),
        ("a,", "<EOF>", ","),
        (", a", ",", ", a"),
        ("a = :a", "=", "a = :a"),
        ("a()", "(", "a()"),
    ],
)
def test_a_projection_has_its_own_syntax(text: str, token: str, near: str) -> None:
    """Paths and commas, nothing else."""
    assert (
        refusal(compile_projection, text)
        == f'Invalid ProjectionExpression: Syntax error; token: "{token}", near: "{near}"'
    )


def test_a_syntax_error_says_where_it_is() -> None:
    """The span is on the error as data."""
    with pytest.raises(ExpressionError) as caught:
        compile_condition("a = = :a", Bindings())

    assert caught.value.span == (4, 5)


_TYPE = "Incorrect operand type for operator or function; operator or function: "
_COUNT = "Incorrect number of operands for operator or function; operator or function: "
_DISTINCT = (
    "The first operand must be distinct from the remaining operands for this operator or function; operator: "
)
_MISUSED = "The function is not allowed to be used this way in an expression; function: "
_PATH = "Operator or function requires a document path; operator or function: "
_BETWEEN = "The BETWEEN operator requires "
_RESERVED = "Attribute name is a reserved keyword; reserved keyword: "
_NAME = "An expression attribute name used in the document path is not defined; attribute name: "
_VALUE = "An expression attribute value used in expression is not defined; attribute value: "
_ALL_TYPES = (
    "{S,SS,N,NS,B,BS,BOOL,NULL,L,M,HD,DOUBLE,FLOAT,HDS,FS,DOUBLESET,DICT,DECIMAL,INT,DECIMALSET,INTSET}"
)

CONDITIONS = [
    ("", "The expression can not be empty;"),
    ("a" * 4090 + " = :a", None),
    ("a" * 4093 + " = :a", "Expression size has exceeded the maximum allowed size; expression size: 4098"),
    ("\u00e9" * 2049, "Expression size has exceeded the maximum allowed size; expression size: 4098"),
    (chain(300), None),
    (chain(301), "The expression contains too many operators; operator count: 301"),
    ("NOT " * 1000 + "a = :a", "The expression contains too many operators; operator count: 301"),
    ("((a = :a))", "The expression has redundant parentheses;"),
    ("((a)) = :a", "The expression has redundant parentheses;"),
    ("NOT ((a = :a))", "The expression has redundant parentheses;"),
    ("a = :a AND ((b = :b))", "The expression has redundant parentheses;"),
    ("size(((a))) = :one", "The expression has redundant parentheses;"),
    ("(" * 2000 + "a = :a" + ")" * 2000, "The expression has redundant parentheses;"),
    ("((a = :a) AND b = :b)", None),
    ("(a) = (:a)", None),
    ("((a) = :a)", None),
    ("(NOT (a = :a))", None),
    ("a[99999999999999] = :a", "List index is not within the allowable range; index: [99999999999999]"),
    ("a[2147483647] = :a", None),
    ("dog(a)", "Invalid function name; function: dog"),
    ("SIZE(a) = :one", "Invalid function name; function: SIZE"),
    (
        "if_not_exists(a, a) = :a",
        "The function is not allowed in a condition expression; function: if_not_exists",
    ),
    (
        "list_append(a, a) = :a",
        "The function is not allowed in a condition expression; function: list_append",
    ),
    ("size(a)", f"{_MISUSED}size"),
    ("NOT size(a)", f"{_MISUSED}size"),
    ("a = :a AND size(b)", f"{_MISUSED}size"),
    ("a = contains(b, :a)", f"{_MISUSED}contains"),
    ("attribute_exists(a) < :one", f"{_MISUSED}attribute_exists"),
    ("contains(attribute_exists(a), :a)", f"{_MISUSED}attribute_exists"),
    ("a IN (begins_with(b, :a))", f"{_MISUSED}begins_with"),
    ("a BETWEEN :a AND contains(b, :a)", f"{_MISUSED}contains"),
    ("size = :a", f"{_RESERVED}size"),
    ("a.Status = :a", f"{_RESERVED}Status"),
    ("set = :a", f"{_RESERVED}set"),
    ("#nope = :a", f"{_NAME}#nope"),
    ("a.#nope[1] = :nope", f"{_NAME}#nope"),
    ("a = :nope", f"{_VALUE}:nope"),
    ("size(a, b) = :one", f"{_COUNT}size, number of operands: 2"),
    ("attribute_exists(a, b)", f"{_COUNT}attribute_exists, number of operands: 2"),
    ("attribute_not_exists(a, b)", f"{_COUNT}attribute_not_exists, number of operands: 2"),
    ("begins_with(a)", f"{_COUNT}begins_with, number of operands: 1"),
    ("contains(a)", f"{_COUNT}contains, number of operands: 1"),
    ("attribute_type(a)", f"{_COUNT}attribute_type, number of operands: 1"),
    (f"a IN ({','.join([':a'] * 100)})", None),
    (f"a IN ({','.join([':a'] * 101)})", f"{_COUNT}IN, number of operands: 102"),
    ("attribute_exists(:a)", f"{_PATH}attribute_exists"),
    ("attribute_not_exists(size(a))", f"{_PATH}attribute_not_exists"),
    ("a = a", f"{_DISTINCT}=, first operand: [a]"),
    ("#a <> #same", f"{_DISTINCT}<>, first operand: [a]"),
    ("a.b[1] < a.b[1]", f"{_DISTINCT}<, first operand: [a, b, [1]]"),
    ("contains(a, a)", f"{_DISTINCT}contains, first operand: [a]"),
    ("begins_with(#odd, #odd)", f"{_DISTINCT}begins_with, first operand: [o.dd]"),
    ("a BETWEEN :a AND a", f"{_DISTINCT}BETWEEN, first operand: [a]"),
    ("a IN (:a, a)", f"{_DISTINCT}IN, first operand: [a]"),
    ("a = b", None),
    (":a = :a", None),
    ("a < :bool", f"{_TYPE}<, operand type: BOOL"),
    (":list >= a", f"{_TYPE}>=, operand type: L"),
    ("a <= :ss", f"{_TYPE}<=, operand type: SS"),
    ("a > :map", f"{_TYPE}>, operand type: M"),
    ("a = :map", None),
    ("a <> :null", None),
    ("a BETWEEN :list AND :list", f"{_TYPE}BETWEEN, operand type: L"),
    (":null BETWEEN :a AND :b", f"{_TYPE}BETWEEN, operand type: NULL"),
    ("begins_with(a, :one)", f"{_TYPE}begins_with, operand type: N"),
    ("begins_with(:ns, a)", f"{_TYPE}begins_with, operand type: NS"),
    ("begins_with(size(a), :a)", f"{_TYPE}begins_with, operand type: N"),
    ("begins_with(a, :bin)", None),
    ("size(:one) = :one", f"{_TYPE}size, operand type: N"),
    ("size(:bool) = :one", f"{_TYPE}size, operand type: BOOL"),
    ("size(:null) = :one", f"{_TYPE}size, operand type: NULL"),
    ("size(size(a)) = :one", f"{_TYPE}size, operand type: N"),
    ("size(:bs) = :one", None),
    ("attribute_type(a, :one)", f"{_TYPE}attribute_type, operand type: N"),
    ("attribute_type(a, b)", f"{_TYPE}attribute_type, operand type: {_ALL_TYPES}"),
    (
        "attribute_type(a, :dog)",
        "Invalid attribute type name found; type: DOG, valid types: {S,SS,N,NS,B,BS,BOOL,NULL,L,M}",
    ),
    ("attribute_type(:one, :type)", None),
    (
        "a BETWEEN :one AND :a",
        (
            f"{_BETWEEN}same data type for lower and upper bounds; lower bound operand: AttributeValue: {{N:1}}, "
            "upper bound operand: AttributeValue: {S:a}"
        ),
    ),
    (
        "a BETWEEN :b AND :a",
        (
            f"{_BETWEEN}upper bound to be greater than or equal to lower bound; lower bound operand: "
            "AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}"
        ),
    ),
    ("a BETWEEN :two AND size(b)", None),
]


@pytest.mark.parametrize(("text", "sentence"), CONDITIONS)
@pytest.mark.parametrize("field", ["ConditionExpression", "FilterExpression"])
def test_a_condition_is_refused_in_dynamodbs_words(text: str, sentence: str | None, field: str) -> None:
    """One row a rule; None is a neighbour of it that is allowed."""
    if sentence is None:
        assert compile_condition(text, Bindings(NAMES, VALUES), field=field).test is not None
    else:
        assert refusal(compile_condition, text, field=field) == f"Invalid {field}: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("((a = a)) AND dog(b)", "The expression has redundant parentheses;"),
        ("size(a) AND dog(b)", "Invalid function name; function: dog"),
        ("status = :a AND size(a)", f"{_MISUSED}size"),
        ("#nope = :a AND status = :a", f"{_RESERVED}status"),
        ("a = a AND #nope = :a", f"{_DISTINCT}=, first operand: [a]"),
        ("#nope = :a AND a = a", f"{_NAME}#nope"),
        ("contains(:nope, a, a)", f"{_VALUE}:nope"),
        ("begins_with(a, a, :one)", f"{_COUNT}begins_with, number of operands: 3"),
        ("size(a, b) = size(a, b)", f"{_COUNT}size, number of operands: 2"),
    ],
)
def test_the_refusals_of_a_condition_are_ranked(text: str, sentence: str) -> None:
    """Parentheses, unknown and misused functions and reserved words; then comparison by comparison."""
    assert refusal(compile_condition, text) == f"Invalid ConditionExpression: {sentence}"


_OVERLAP = "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
_CONFLICT = (
    "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: "
)
_AMOUNT = "Incorrect operand type for operator or function; operator: "

UPDATES = [
    ("", "The expression can not be empty;"),
    ("SET status = :a", f"{_RESERVED}status"),
    ("SET a = f(b)", "Invalid function name; function: f"),
    ("SET a = LIST_APPEND(:list, :list)", "Invalid function name; function: LIST_APPEND"),
    ("SET a = contains(b, :a)", "The function is not allowed in an update expression; function: contains"),
    ("SET a = size(b)", "The function is not allowed in an update expression; function: size"),
    ("SET a = list_append(list_append(b, c), d)", f"{_MISUSED}list_append"),
    ("SET a = if_not_exists(a, list_append(b, c))", f"{_MISUSED}list_append"),
    ("SET a = list_append(if_not_exists(a, :list), :list)", None),
    ("SET a = if_not_exists(a, if_not_exists(b, :a))", None),
    ("SET a = :a SET b = :b", 'The "SET" section can only be used once in an update expression;'),
    ("REMOVE a SET b = :b remove c", 'The "REMOVE" section can only be used once in an update expression;'),
    ("ADD a :one ADD b :one", 'The "ADD" section can only be used once in an update expression;'),
    ("DELETE a :ss DELETE b :ss", 'The "DELETE" section can only be used once in an update expression;'),
    ("SET #nope = :a", f"{_NAME}#nope"),
    ("SET a = :nope", f"{_VALUE}:nope"),
    ("ADD a :nope", f"{_VALUE}:nope"),
    ("SET a = :a REMOVE a", f"{_OVERLAP}[a], path two: [a]"),
    ("SET #a = :a, #same = :b", f"{_OVERLAP}[a], path two: [a]"),
    ("SET a.b[0] = :a REMOVE a", f"{_OVERLAP}[a, b, [0]], path two: [a]"),
    ("SET a = :a, a.b[0] = :b", f"{_OVERLAP}[a], path two: [a, b, [0]]"),
    ("SET a.b = :a, a[1] = :b", f"{_CONFLICT}[a, b], path two: [a, [1]]"),
    ("SET a.b.c = :a REMOVE a.b[2]", f"{_CONFLICT}[a, b, c], path two: [a, b, [2]]"),
    ("SET a.b = :a, a[1] = :b REMOVE a.b.c", f"{_OVERLAP}[a, b], path two: [a, b, c]"),
    ("SET a.b = :a, a.c = :b, d[0] = :a, d[1] = :b", None),
    ("SET a[99999999999999] = :a", "List index is not within the allowable range; index: [99999999999999]"),
    ("SET a = ((:a))", "The expression has redundant parentheses;"),
    ("SET a = ((a + :one))", "The expression has redundant parentheses;"),
    ("SET a = ((a) + (:one))", None),
    ("SET a = if_not_exists(a)", f"{_COUNT}if_not_exists, number of operands: 1"),
    ("SET a = list_append(a, b, c)", f"{_COUNT}list_append, number of operands: 3"),
    ("SET a = if_not_exists(:a, :b)", f"{_PATH}if_not_exists"),
    ("SET a = if_not_exists(if_not_exists(a, :a), :b)", f"{_PATH}if_not_exists"),
    ("SET a = list_append(a, :a)", f"{_TYPE}list_append, operand type: S"),
    ("SET a = :a + :one", f"{_TYPE}+, operand type: S"),
    ("SET a = a - :list", f"{_TYPE}-, operand type: L"),
    *[
        (f"{section} a {ref}", f"{_AMOUNT}{section}, operand type: {name}, typeSet: ALLOWED_FOR_ADD_OPERAND")
        for section in ("ADD", "DELETE")
        for ref, name in [
            (":a", "STRING"),
            (":bin", "BINARY"),
            (":bool", "BOOL"),
            (":null", "NULL"),
            (":list", "LIST"),
            (":map", "MAP"),
        ]
    ],
    ("DELETE a :one", f"{_AMOUNT}DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_ADD_OPERAND"),
    ("ADD a :one, b :ss, c :ns, d :bs DELETE e :ss, f :ns, g :bs", None),
    ("SET a = " + "if_not_exists(a," * 200 + ":a" + ")" * 200, None),
    (
        "SET " + ",".join(f"a{n}=:one+:one" for n in range(301)),
        "Expression size has exceeded the maximum allowed size; expression size: 4408",
    ),
    (
        "SET " + ",".join(f"a{n}=b+c" for n in range(301)),
        "The expression contains too many operators; operator count: 301",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), UPDATES)
def test_an_update_is_refused_in_dynamodbs_words(text: str, sentence: str | None) -> None:
    """One row a rule; None is a neighbour of it that is allowed."""
    if sentence is None:
        assert compile_update(text, Bindings(NAMES, VALUES)).touched
    else:
        assert refusal(compile_update, text) == f"Invalid UpdateExpression: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SET a = f(b), status = :a", f"{_RESERVED}status"),
        ("SET a = :a SET b = f(c)", "Invalid function name; function: f"),
        ("SET #nope = :a SET b = :b", 'The "SET" section can only be used once in an update expression;'),
        ("SET a = :nope, #nope = :a", f"{_NAME}#nope"),
        ("SET a = :a, a = :nope", f"{_VALUE}:nope"),
        ("ADD a :a, a :one", f"{_OVERLAP}[a], path two: [a]"),
        (
            "SET a = list_append(b) ADD c :a",
            f"{_AMOUNT}ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
    ],
)
def test_the_refusals_of_an_update_are_ranked(text: str, sentence: str) -> None:
    """Reserved words, functions, sections, names, values, overlap, conflict, ADD and DELETE, then SET."""
    assert refusal(compile_update, text) == f"Invalid UpdateExpression: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The expression can not be empty;"),
        ("a, status", f"{_RESERVED}status"),
        ("b, #nope", f"{_NAME}#nope"),
        ("#nope, status", f"{_RESERVED}status"),
        ("a, a, #nope", f"{_NAME}#nope"),
        ("a, a", f"{_OVERLAP}[a], path two: [a]"),
        ("a.b, b, a", f"{_OVERLAP}[a, b], path two: [a]"),
        ("a.c, a[1]", f"{_CONFLICT}[a, c], path two: [a, [1]]"),
        ("a.b, a[1], #a", f"{_OVERLAP}[a, b], path two: [a]"),
        ("a[99999999999]", "List index is not within the allowable range; index: [99999999999]"),
    ],
)
def test_a_projection_is_refused_in_dynamodbs_words(text: str, sentence: str) -> None:
    """Reserved words, names, overlap, conflict."""
    assert refusal(compile_projection, text) == f"Invalid ProjectionExpression: {sentence}"


_KEY = "Invalid KeyConditionExpression: "


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = :a OR b = :b", "Invalid operator used in KeyConditionExpression: OR"),
        ("not a = :a", "Invalid operator used in KeyConditionExpression: NOT"),
        ("a in (:a)", "Invalid operator used in KeyConditionExpression: IN"),
        ("a <> :a", "Invalid operator used in KeyConditionExpression: <>"),
        ("contains(a, :a)", "Invalid operator used in KeyConditionExpression: contains"),
        ("attribute_exists(a)", "Invalid operator used in KeyConditionExpression: attribute_exists"),
        ("attribute_not_exists(a)", "Invalid operator used in KeyConditionExpression: attribute_not_exists"),
        ("attribute_type(a, :type)", "Invalid operator used in KeyConditionExpression: attribute_type"),
        ("size(a) = :one", "KeyConditionExpressions cannot contain nested operations"),
        ("a = :a AND a > :b", "KeyConditionExpressions must only contain one condition per key"),
        ("#a = :a AND #same = :b", "KeyConditionExpressions must only contain one condition per key"),
        ("a.b = :a", "KeyConditionExpressions cannot have conditions on nested attributes"),
        ("a[0] = :a", "KeyConditionExpressions cannot have conditions on nested attributes"),
        (
            "a = b",
            "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
        ),
        (":a = :b", "Invalid condition in KeyConditionExpression: No key attribute specified"),
        (
            "begins_with(:a, a)",
            (
                "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as "
                "its first operand"
            ),
        ),
        (
            ":a BETWEEN a AND :b",
            (
                "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its "
                "first operand"
            ),
        ),
        ("begins_with(a, :one)", f"{_TYPE}begins_with, operand type: N"),
        ("a >= :bool", f"{_TYPE}>=, operand type: BOOL"),
        ("a BETWEEN :bool AND :bool", f"{_TYPE}BETWEEN, operand type: BOOL"),
        ("((a = :a))", "The expression has redundant parentheses;"),
        ("a = :nope", f"{_VALUE}:nope"),
    ],
)
def test_a_key_condition_is_refused_in_dynamodbs_words(text: str, sentence: str) -> None:
    """What holds of every condition, then what a key condition cannot be."""
    assert refusal(compile_key_condition, text) == f"{_KEY}{sentence}"


def nested(depth: int) -> str:
    """Return a condition this many parentheses deep, none of them redundant."""
    text = "a = :a"
    for _ in range(depth):
        text = f"NOT ({text})"
    return text


def test_the_deepest_condition_compiles_and_evaluates() -> None:
    """300 operators may all be inside one another."""
    condition = compile_condition(nested(299), Bindings({}, VALUES))

    assert condition.test({"a": {"S": "b"}}, VALUES) is True


@pytest.mark.parametrize("piece", ["(", "NOT ", "NOT (", "size(", "a = (", "a IN (", "contains(a, ", "f(f(("])
def test_depth_never_exhausts_the_stack(piece: str) -> None:
    """However deep, an expression gets a sentence."""
    text = piece * (4000 // len(piece))

    for compile_ in (compile_condition, compile_key_condition):
        assert refusal(compile_, text).startswith("Invalid ")
    assert refusal(compile_update, f"SET a = {text}").startswith("Invalid ")


def test_the_longest_path_is_as_good_as_a_short_one() -> None:
    """A path of 32 steps is read, written and projected; one of 2,000 is refused without recursion."""
    path = ".".join("a" * 32)
    bindings = Bindings({}, VALUES)
    item: Mapping[str, Any] = {"a": {"M": {"a": {"S": "x"}}}}

    assert compile_condition(f"attribute_not_exists({path})", bindings).test(dict(item), {})
    assert compile_projection(path, bindings).pick(dict(item)) == {}
    assert compile_update(f"REMOVE {path}", bindings).change({}, {}, False) == {}
    long_path = ".".join("a" * 2000)
    assert refusal(compile_projection, long_path).endswith("too many nesting levels; nesting levels: 2000")
