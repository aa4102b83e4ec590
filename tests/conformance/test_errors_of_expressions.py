"""Refusals of expressions and of the legacy parameters, each with AWS's whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.requests import ENVELOPE, OOM, n, s
from tests.conformance.sentences import (
    HASH,
    KEY,
    MISSING,
    TABLE,
    Row,
    check,
    enveloped,
    member,
    rows,
)

pytestmark = pytest.mark.usefixtures("sentences")

_STORED_VALUES: dict[str, Any] = {":n": n(1), ":set": {"SS": ["x"]}, ":ns": {"NS": ["1"]}}
_B = {":b": s("b")}
_N = {":n": n(1)}

# A condition, its values, and the message after `Invalid <field>: `. Sent as a condition and as a filter.
_CONDITIONS: list[tuple[str, str, dict[str, Any], str]] = [
    ("empty", "", {}, "The expression can not be empty;"),
    ("three signs", "!!!", {}, 'Syntax error; token: "!", near: "!!"'),
    ("no operands", "attribute_type()", {}, 'Syntax error; token: ")", near: "()"'),
    ("ends early", "a =", {}, 'Syntax error; token: "<EOF>", near: "="'),
    ("two names", "a b", {}, 'Syntax error; token: "b", near: "a b"'),
    ("starts with a digit", "1a = :b", _B, 'Syntax error; token: "1", near: "1a"'),
    ("starts with an underscore", "_a = :b", _B, 'Syntax error; token: "_", near: "_a"'),
    ("reserved", "Name = :b", _B, "Attribute name is a reserved keyword; reserved keyword: Name"),
    ("reserved segment", "a.size = :b", _B, "Attribute name is a reserved keyword; reserved keyword: size"),
    (
        "undefined name",
        "#x = :b",
        _B,
        "An expression attribute name used in the document path is not defined; attribute name: #x",
    ),
    (
        "undefined value",
        "a = :c",
        _B,
        "An expression attribute value used in expression is not defined; attribute value: :c",
    ),
    (
        "too long",
        "a" * 4092 + " = :b",
        _B,
        "Expression size has exceeded the maximum allowed size; expression size: 4097",
    ),
    (
        "too many operators",
        " OR ".join(["a = :b"] * 200),
        _B,
        "The expression contains too many operators; operator count: 301",
    ),
    ("redundant parentheses", "((a = :b))", _B, "The expression has redundant parentheses;"),
    ("unknown function", "foo(a)", {}, "Invalid function name; function: foo"),
    (
        "function in upper case",
        "ATTRIBUTE_EXISTS(a)",
        {},
        "Invalid function name; function: ATTRIBUTE_EXISTS",
    ),
    (
        "size alone",
        "size(a)",
        {},
        "The function is not allowed to be used this way in an expression; function: size",
    ),
    (
        "function as operand",
        "a = contains(b, :b)",
        _B,
        "The function is not allowed to be used this way in an expression; function: contains",
    ),
    (
        "two operands",
        "attribute_exists(a, b)",
        {},
        (
            "Incorrect number of operands for operator or function; "
            "operator or function: attribute_exists, number of operands: 2"
        ),
    ),
    (
        "one operand",
        "begins_with(a)",
        {},
        (
            "Incorrect number of operands for operator or function; "
            "operator or function: begins_with, number of operands: 1"
        ),
    ),
    (
        "value for a path",
        "attribute_exists(:b)",
        _B,
        "Operator or function requires a document path; operator or function: attribute_exists",
    ),
    (
        "begins_with a number",
        "begins_with(a, :n)",
        _N,
        "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
    ),
    (
        "less than a boolean",
        "a < :t",
        {":t": {"BOOL": True}},
        "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
    ),
    (
        "at least a list",
        "a >= :l",
        {":l": {"L": []}},
        "Incorrect operand type for operator or function; operator or function: >=, operand type: L",
    ),
    (
        "between maps",
        "a BETWEEN :m AND :m",
        {":m": {"M": {}}},
        "Incorrect operand type for operator or function; operator or function: BETWEEN, operand type: M",
    ),
    (
        "size of a number",
        "size(:n) = :n",
        _N,
        "Incorrect operand type for operator or function; operator or function: size, operand type: N",
    ),
    (
        "type that is a number",
        "attribute_type(a, :n)",
        _N,
        "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N",
    ),
    (
        "same path twice",
        "a = a",
        {},
        (
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: =, first operand: [a]"
        ),
    ),
    (
        "same long path twice",
        "a.b[1] < a.b[1]",
        {},
        (
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: <, first operand: [a, b, [1]]"
        ),
    ),
    (
        "bounds of two types",
        "a BETWEEN :n AND :b",
        {**_N, **_B},
        (
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:b}"
        ),
    ),
    (
        "bounds reversed",
        "a BETWEEN :b AND :a",
        {**_B, ":a": s("a")},
        (
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}"
        ),
    ),
    (
        "list place out of range",
        "a[99999999999999] = :b",
        _B,
        "List index is not within the allowable range; index: [99999999999999]",
    ),
    (
        "contains itself",
        "contains(a, a)",
        {},
        (
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: contains, first operand: [a]"
        ),
    ),
    ("segment that starts with a digit", "a.1b = :b", _B, 'Syntax error; token: "1", near: ".1b"'),
    ("open parenthesis", "(a = :b", _B, 'Syntax error; token: "<EOF>", near: ":b"'),
    ("closed parenthesis", "a = :b)", _B, 'Syntax error; token: ")", near: ":b)"'),
    ("two comparisons", "a = :b = c", _B, 'Syntax error; token: "=", near: ":b = c"'),
    ("value alone", ":b", _B, 'Syntax error; token: "<EOF>", near: ":b"'),
    # The order in which several faults are found.
    ("parentheses before function", "((foo(a)))", {}, "The expression has redundant parentheses;"),
    ("function before reserved", "foo(name)", {}, "Invalid function name; function: foo"),
    (
        "reserved before undefined",
        "name = :c",
        _B,
        "Attribute name is a reserved keyword; reserved keyword: name",
    ),
    (
        "undefined before count",
        "attribute_exists(#x, b)",
        {},
        "An expression attribute name used in the document path is not defined; attribute name: #x",
    ),
]


def _conditions() -> Iterator[Row]:
    for id, text, values, result in _CONDITIONS:
        bound = {"ExpressionAttributeValues": values} if values else {}
        condition, filtered = f"Invalid ConditionExpression: {result}", f"Invalid FilterExpression: {result}"
        conditional = {"TableName": TABLE, "ConditionExpression": text, **bound}
        yield Row(id, "PutItem", {**conditional, "Item": KEY}, ENVELOPE + condition)
        yield Row(id, "DeleteItem", {**conditional, "Key": KEY}, ENVELOPE + condition)
        yield Row(
            id,
            "TransactWriteItems",
            {"TransactItems": [{"ConditionCheck": {**conditional, "Key": KEY}}]},
            condition,
        )
        yield Row(id, "Scan", {"TableName": TABLE, "FilterExpression": text, **bound}, filtered)
        query = {
            "TableName": TABLE,
            "FilterExpression": text,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {**values, ":pk": s("p")},
        }
        yield Row(id, "Query", query, filtered)


# An update, its values, and the sentence after `Invalid UpdateExpression: `.
_UPDATES: list[tuple[str, str, dict[str, Any], str]] = [
    ("empty", "", {}, "The expression can not be empty;"),
    ("no section", "INVALID SYNTAX HERE", {}, 'Syntax error; token: "INVALID", near: "INVALID SYNTAX"'),
    ("ends early", "ADD numx", {}, 'Syntax error; token: "<EOF>", near: "numx"'),
    ("times", "SET n = n * :n", _N, 'Syntax error; token: "*", near: "n * :n"'),
    ("place without number", "SET a[] = :n", _N, 'Syntax error; token: "]", near: "[] ="'),
    ("negative place", "SET a[-1] = :n", _N, 'Syntax error; token: "-", near: "[-1"'),
    (
        "section twice",
        "SET a = :n SET b = :n",
        _N,
        'The "SET" section can only be used once in an update expression;',
    ),
    (
        "remove twice",
        "REMOVE a REMOVE b",
        {},
        'The "REMOVE" section can only be used once in an update expression;',
    ),
    ("reserved", "SET name = :n", _N, "Attribute name is a reserved keyword; reserved keyword: name"),
    (
        "undefined name",
        "REMOVE #x",
        {},
        "An expression attribute name used in the document path is not defined; attribute name: #x",
    ),
    (
        "undefined value",
        "SET a = :x",
        {},
        "An expression attribute value used in expression is not defined; attribute value: :x",
    ),
    ("unknown function", "SET a = foo(b)", {}, "Invalid function name; function: foo"),
    (
        "function of conditions",
        "SET a = contains(b, :n)",
        _N,
        "The function is not allowed in an update expression; function: contains",
    ),
    (
        "size in an update",
        "SET a = size(b)",
        {},
        "The function is not allowed in an update expression; function: size",
    ),
    (
        "one operand",
        "SET a = if_not_exists(a)",
        {},
        (
            "Incorrect number of operands for operator or function; "
            "operator or function: if_not_exists, number of operands: 1"
        ),
    ),
    (
        "value for a path",
        "SET a = if_not_exists(:n, :n)",
        _N,
        "Operator or function requires a document path; operator or function: if_not_exists",
    ),
    (
        "plus a string",
        "SET a = a + :b",
        _B,
        "Incorrect operand type for operator or function; operator or function: +, operand type: S",
    ),
    (
        "minus a string",
        "SET a = a - :b",
        _B,
        "Incorrect operand type for operator or function; operator or function: -, operand type: S",
    ),
    (
        "append a string",
        "SET a = list_append(a, :b)",
        _B,
        "Incorrect operand type for operator or function; operator or function: list_append, operand type: S",
    ),
    (
        "add a string",
        "ADD a :b",
        _B,
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "add a boolean",
        "ADD a :t",
        {":t": {"BOOL": True}},
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: BOOL, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "add a list",
        "ADD a :l",
        {":l": {"L": []}},
        (
            "Incorrect operand type for operator or function; operator: ADD, operand type: LIST, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "delete a number",
        "DELETE a :n",
        _N,
        (
            "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND"
        ),
    ),
    (
        "overlap",
        "SET a = :n, a.b[0] = :n",
        _N,
        (
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a], path two: [a, b, [0]]"
        ),
    ),
    (
        "same path",
        "SET a = :n REMOVE a",
        _N,
        (
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a], path two: [a]"
        ),
    ),
    (
        "conflict",
        "SET a.c = :n, a[1] = :n",
        _N,
        (
            "Two document paths conflict with each other; must remove or rewrite one of these paths; "
            "path one: [a, c], path two: [a, [1]]"
        ),
    ),
    (
        "too long",
        "SET " + "a" * 4088 + " = :n",
        _N,
        "Expression size has exceeded the maximum allowed size; expression size: 4097",
    ),
    (
        "reserved before function",
        "SET name = foo(b)",
        {},
        "Attribute name is a reserved keyword; reserved keyword: name",
    ),
    ("function before section", "SET a = foo(b) SET c = d", {}, "Invalid function name; function: foo"),
]


def _updates() -> Iterator[Row]:
    for id, text, values, result in _UPDATES:
        bound = {"ExpressionAttributeValues": values} if values else {}
        request = {"TableName": TABLE, "Key": KEY, "UpdateExpression": text, **bound}
        sentence = f"Invalid UpdateExpression: {result}"
        yield Row(id, "UpdateItem", request, ENVELOPE + sentence)
        yield Row(id, "TransactWriteItems", {"TransactItems": [{"Update": request}]}, sentence)


_PROJECTIONS: list[tuple[str, str, str]] = [
    ("empty", "", "The expression can not be empty;"),
    ("ends early", "a,", 'Syntax error; token: "<EOF>", near: ","'),
    ("place without number", "a[].b", 'Syntax error; token: "]", near: "[]."'),
    ("a value", "a, :b", 'Syntax error; token: ":b", near: ", :b"'),
    ("reserved", "a, name", "Attribute name is a reserved keyword; reserved keyword: name"),
    (
        "undefined name",
        "a, #x",
        "An expression attribute name used in the document path is not defined; attribute name: #x",
    ),
    (
        "overlap",
        "a, a.b[0]",
        (
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a], path two: [a, b, [0]]"
        ),
    ),
    (
        "conflict",
        "a.c, a[1]",
        (
            "Two document paths conflict with each other; must remove or rewrite one of these paths; "
            "path one: [a, c], path two: [a, [1]]"
        ),
    ),
    ("reserved before names", "#x, name", "Attribute name is a reserved keyword; reserved keyword: name"),
]


def _projections() -> Iterator[Row]:
    for id, text, result in _PROJECTIONS:
        sentence = f"Invalid ProjectionExpression: {result}"
        yield Row(id, "GetItem", {"TableName": TABLE, "Key": KEY, "ProjectionExpression": text}, sentence)
        yield Row(id, "Scan", {"TableName": TABLE, "ProjectionExpression": text}, sentence)
        yield Row(
            id,
            "BatchGetItem",
            {"RequestItems": {TABLE: {"Keys": [KEY], "ProjectionExpression": text}}},
            sentence,
        )
        yield Row(
            id,
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": TABLE, "Key": KEY, "ProjectionExpression": text}}]},
            sentence,
        )


def _placeholders() -> Iterator[Row]:
    put = {"TableName": TABLE, "Item": KEY}
    update = {"TableName": TABLE, "Key": KEY}
    names, values = {"#x": "x"}, {":x": s("x")}
    condition = {"ConditionExpression": "attribute_exists(a)"}
    unused_names = "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}"
    unused_values = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}"
    no_names = "ExpressionAttributeNames can only be specified when using expressions"
    no_values = "ExpressionAttributeValues can only be specified when using expressions"
    query = {
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
    }

    def both(id: str, operation: str, request: dict[str, Any], text: str) -> Row:
        return Row(id, operation, request, enveloped(operation, text))

    yield both(
        "unused names", "PutItem", {**put, **condition, "ExpressionAttributeNames": names}, unused_names
    )
    yield both(
        "unused values", "PutItem", {**put, **condition, "ExpressionAttributeValues": values}, unused_values
    )
    yield both("unused names", "Query", {**query, "ExpressionAttributeNames": names}, unused_names)
    yield both(
        "unused values",
        "Query",
        {**query, "ExpressionAttributeValues": {":p": s("p"), ":x": s("x")}},
        unused_values,
    )
    yield both(
        "unused values",
        "Scan",
        {"TableName": TABLE, "FilterExpression": "attribute_exists(a)", "ExpressionAttributeValues": values},
        unused_values,
    )
    yield both(
        "unused names",
        "GetItem",
        {"TableName": TABLE, "Key": KEY, "ProjectionExpression": "a", "ExpressionAttributeNames": names},
        unused_names,
    )
    yield both(
        "two unused names",
        "Scan",
        {
            "TableName": TABLE,
            "FilterExpression": "attribute_exists(a)",
            "ExpressionAttributeNames": {"#x": "x", "#y": "y"},
        },
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x, #y}",
    )
    yield both(
        "unused names before values",
        "PutItem",
        {**put, **condition, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values},
        unused_names,
    )
    yield both(
        "values with key conditions",
        "Query",
        {
            "TableName": TABLE,
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [s("p")]}},
            "ExpressionAttributeValues": values,
        },
        no_values,
    )
    yield both("names alone", "PutItem", {**put, "ExpressionAttributeNames": names}, no_names)
    yield both("names alone", "UpdateItem", {**update, "ExpressionAttributeNames": names}, no_names)
    yield both("names alone", "DeleteItem", {**update, "ExpressionAttributeNames": names}, no_names)
    yield both("names alone", "GetItem", {**update, "ExpressionAttributeNames": names}, no_names)
    yield both("names alone", "Scan", {"TableName": TABLE, "ExpressionAttributeNames": names}, no_names)
    yield both("values alone", "PutItem", {**put, "ExpressionAttributeValues": values}, no_values)
    yield both("values alone", "UpdateItem", {**update, "ExpressionAttributeValues": values}, no_values)
    yield both("values alone", "DeleteItem", {**update, "ExpressionAttributeValues": values}, no_values)
    yield both(
        "values alone",
        "Scan",
        {"TableName": TABLE, "ExpressionAttributeValues": values},
        f"{no_values}: FilterExpression is null",
    )
    yield both(
        "empty names",
        "PutItem",
        {**put, **condition, "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    )
    yield both(
        "empty values",
        "PutItem",
        {**put, **condition, "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    )
    yield both(
        "empty values",
        "Scan",
        {"TableName": TABLE, "FilterExpression": "attribute_exists(a)", "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    )
    for key in ("x", "#", "#a-b", ":a"):
        yield both(
            f"name {key}",
            "PutItem",
            {**put, **condition, "ExpressionAttributeNames": {key: "x"}},
            f'ExpressionAttributeNames contains invalid key: Syntax error; key: "{key}"',
        )
    for key in ("x", ":", ":a-b", "#a"):
        yield both(
            f"value {key}",
            "Scan",
            {
                "TableName": TABLE,
                "FilterExpression": "a = :b",
                "ExpressionAttributeValues": {":b": s("b"), key: s("x")},
            },
            f'ExpressionAttributeValues contains invalid key: Syntax error; key: "{key}"',
        )


def _mixtures() -> Iterator[Row]:
    def mixed(operation: str, old: dict[str, Any], new: dict[str, Any], **rest: Any) -> Row:
        return Row(
            f"{len(old)} and {len(new)}",
            operation,
            {"TableName": TABLE, **rest, **old, **new},
            enveloped(
                operation,
                "Can not use both expression and non-expression parameters in the same request: "
                f"Non-expression parameters: {{{', '.join(old)}}} Expression parameters: {{{', '.join(new)}}}",
            ),
        )

    exists = "attribute_exists(a)"
    expected = {"Expected": {"a": {"Exists": False}}}
    filtered = {"a": {"ComparisonOperator": "NOT_NULL"}}
    yield mixed("PutItem", expected, {"ConditionExpression": exists}, Item=KEY)
    yield mixed("DeleteItem", expected, {"ConditionExpression": exists}, Key=KEY)
    yield mixed("GetItem", {"AttributesToGet": ["a"]}, {"ProjectionExpression": "b"}, Key=KEY)
    yield mixed(
        "UpdateItem",
        {"AttributeUpdates": {"a": {"Action": "DELETE"}}, **expected},
        {"UpdateExpression": "REMOVE b", "ConditionExpression": exists},
        Key=KEY,
    )
    yield mixed("UpdateItem", expected, {"UpdateExpression": "REMOVE b"}, Key=KEY)
    yield mixed(
        "Query",
        {
            "AttributesToGet": ["a"],
            "QueryFilter": filtered,
            "ConditionalOperator": "AND",
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [s("p")]}},
        },
        {"ProjectionExpression": "a", "FilterExpression": exists, "KeyConditionExpression": "pk = :p"},
    )
    yield mixed(
        "Scan",
        {"AttributesToGet": ["a"], "ScanFilter": filtered, "ConditionalOperator": "AND"},
        {"ProjectionExpression": "a", "FilterExpression": exists},
    )


_LEGACY_EXPECTED: list[tuple[str, dict[str, Any], str]] = [
    (
        "operator without values",
        {"ComparisonOperator": "LT"},
        f"{OOM}Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a",
    ),
    (
        "exists and operator",
        {"Exists": True, "ComparisonOperator": "EQ", "Value": s("x")},
        f"{OOM}Exists and ComparisonOperator cannot be used together for Attribute: a",
    ),
    (
        "list without operator",
        {"AttributeValueList": [s("x")]},
        f"{OOM}AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
    ),
    (
        "value and list",
        {"ComparisonOperator": "EQ", "Value": s("x"), "AttributeValueList": [s("x")]},
        f"{OOM}Value and AttributeValueList cannot be used together for Attribute: a",
    ),
    ("nothing", {}, f"{OOM}Value must be provided when Exists is null for Attribute: a"),
    (
        "exists without value",
        {"Exists": True},
        f"{OOM}Value must be provided when Exists is true for Attribute: a",
    ),
    (
        "absent with value",
        {"Exists": False, "Value": s("x")},
        f"{OOM}Value cannot be used when Exists is false for Attribute: a",
    ),
    (
        "one bound",
        {"ComparisonOperator": "BETWEEN", "AttributeValueList": [s("x")]},
        f"{OOM}Invalid number of argument(s) for the BETWEEN ComparisonOperator",
    ),
    (
        "mixed list",
        {"ComparisonOperator": "IN", "AttributeValueList": [s("x"), n(1)]},
        f"{OOM}AttributeValues inside AttributeValueList must be of same type",
    ),
    (
        "begins with a number",
        {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [n(1)]},
        f"{OOM}ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
    ),
    (
        "less than a set",
        {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]},
        f"{OOM}ComparisonOperator LT is not valid for SS AttributeValue type",
    ),
    (
        "bounds reversed",
        {"ComparisonOperator": "BETWEEN", "AttributeValueList": [n(2), n(1)]},
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
    ),
]


def _legacy() -> Iterator[Row]:
    for id, condition, text in _LEGACY_EXPECTED:
        yield Row(id, "DeleteItem", {"TableName": TABLE, "Key": KEY, "Expected": {"a": condition}}, text)
        if "Exists" not in condition and "Value" not in condition and "ComparisonOperator" in condition:
            result = text.replace("Value or AttributeValueList must", "Invalid number")
            if "Value or" not in text:
                yield Row(id, "Scan", {"TableName": TABLE, "ScanFilter": {"a": condition}}, result)

    def updates(id: str, change: dict[str, Any], text: str) -> Row:
        return Row(
            id, "UpdateItem", {"TableName": TABLE, "Key": KEY, "AttributeUpdates": {"a2": change}}, text
        )

    alone = f"{OOM}Only DELETE action is allowed when no attribute value is specified"
    yield updates("put without value", {"Action": "PUT"}, alone)
    yield updates("add without value", {"Action": "ADD"}, alone)
    yield updates("nothing", {}, alone)
    yield updates(
        "delete a string",
        {"Action": "DELETE", "Value": s("x")},
        f"{OOM}DELETE action with value is not supported for the type S",
    )
    yield updates(
        "add a binary",
        {"Action": "ADD", "Value": {"B": "AA=="}},
        f"{OOM}ADD action is not supported for the type B",
    )
    yield updates(
        "bad action",
        {"Action": "GET", "Value": s("x")},
        member(
            "attributeUpdates.a2.member.action",
            "Member must satisfy enum value set: [ADD, PUT, DELETE]",
            value="'GET'",
        ),
    )
    yield Row(
        "duplicate attribute",
        "GetItem",
        {"TableName": TABLE, "Key": KEY, "AttributesToGet": ["a", "a"]},
        f"{OOM}Duplicate value in attribute name: a",
    )

    def keyed(id: str, conditions: dict[str, Any], text: str, **rest: Any) -> Row:
        return Row(id, "Query", {"TableName": TABLE, "KeyConditions": conditions, **rest}, text)

    def equal(value: dict[str, Any]) -> dict[str, Any]:
        return {"ComparisonOperator": "EQ", "AttributeValueList": [value]}

    yield keyed("no conditions", {}, "Conditions can be of length 1 or 2 only")
    yield keyed(
        "three conditions",
        {"pk": equal(s("p")), "sk": equal(s("s")), "x": equal(s("x"))},
        "Conditions can be of length 1 or 2 only",
    )
    yield keyed(
        "no indexable operation",
        {"pk": equal(s("p")), "sk": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [s("x")]}},
        "Attempted conditional constraint is not an indexable operation",
    )
    yield keyed(
        "key in the filter",
        {"pk": equal(s("p"))},
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk",
        QueryFilter={"sk": equal(s("s"))},
    )
    yield keyed("no hash", {"sk": equal(s("s"))}, "Query condition missed key schema element: pk")


def _executed() -> Iterator[Row]:
    """Yield errors that depend on the stored item; never enveloped."""
    data_type = "An operand in the update expression has an incorrect data type"
    absent = "The provided expression refers to an attribute that does not exist in the item"
    document = "The document path provided in the update expression is invalid for update"
    updates = [
        ("plus a stored string", "SET num = txt + :n", data_type),
        ("add to a stored string", "ADD txt :n", data_type),
        ("add a number to a set", "ADD #set :n", data_type),
        ("append to a stored string", "SET #list = list_append(txt, #list)", data_type),
        ("add strings to numbers", "ADD ns :set", data_type),
        ("delete numbers from strings", "DELETE #set :ns", data_type),
        ("minus a stored list", "SET num = num - #list", data_type),
        ("absent operand", "SET num = nobody + :n", absent),
        ("absent copy", "SET num = nobody", absent),
        ("absent list", "SET #list = list_append(nobody, #list)", absent),
        ("absent parent", "SET nobody.x = :n", document),
        ("member of a string", "SET txt.x = :n", document),
        ("place of a map", "SET #map[0] = :n", document),
        ("member of a list", "SET #list.x = :n", document),
        ("remove from an absent parent", "REMOVE nobody.x", document),
    ]
    for id, text, result in updates:
        request: dict[str, Any] = {"TableName": TABLE, "Key": KEY, "UpdateExpression": text}
        used = {
            name: value for name, value in _STORED_VALUES.items() if name in text.replace(",", " ").split()
        }
        if used:
            request["ExpressionAttributeValues"] = used
        if names := {f"#{word}": word for word in ("set", "list", "map") if f"#{word}" in text}:
            request["ExpressionAttributeNames"] = names
        yield Row(id, "UpdateItem", request, result)
    yield Row(
        "legacy add to a stored string",
        "UpdateItem",
        {"TableName": TABLE, "Key": KEY, "AttributeUpdates": {"txt": {"Action": "ADD", "Value": n(1)}}},
        "Type mismatch for attribute to update",
    )
    overflow = "Number overflow. Attempting to store a number with magnitude larger than supported range"
    yield Row(
        "sum of 39 digits",
        "UpdateItem",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "SET num = num + :n",
            "ExpressionAttributeValues": {":n": n("1E40")},
        },
        overflow,
    )
    yield Row(
        "failed condition",
        "DeleteItem",
        {"TableName": TABLE, "Key": KEY, "ConditionExpression": "attribute_exists(nobody)"},
        "The conditional request failed",
        code="ConditionalCheckFailedException",
    )


@rows(_conditions())
def test_conditions_and_filters(send_raw: Callable[..., Answer], row: Row) -> None:
    """A condition and a filter are refused for the same faults, in the same order and words."""
    check(send_raw, row)


@rows(_updates())
def test_updates(send_raw: Callable[..., Answer], row: Row) -> None:
    """An update expression is refused before the item is read."""
    check(send_raw, row)


@rows(_projections())
def test_projections(send_raw: Callable[..., Answer], row: Row) -> None:
    """A projection is refused bare by every read."""
    check(send_raw, row)


@rows(_placeholders())
def test_placeholders(send_raw: Callable[..., Answer], row: Row) -> None:
    """Names and values must be well formed, used, and sent with an expression."""
    check(send_raw, row)


@rows(_mixtures())
def test_expressions_do_not_mix_with_legacy_parameters(send_raw: Callable[..., Answer], row: Row) -> None:
    """Both generations of parameters in one request are listed in AWS's order."""
    check(send_raw, row)


@rows(_legacy())
def test_legacy_parameters(send_raw: Callable[..., Answer], row: Row) -> None:
    """The legacy parameters are refused in their own words."""
    check(send_raw, row)


@rows(_executed())
def test_errors_that_depend_on_the_stored_item(send_raw: Callable[..., Answer], row: Row) -> None:
    """Their messages have no envelope."""
    check(send_raw, row)


@pytest.mark.parametrize("function", ["if_not_exists(a, :b)", "list_append(a, :b)"])
def test_functions_of_updates_in_a_condition(send_raw: Callable[..., Answer], function: str) -> None:
    """A condition may not use a function of updates."""
    answer = send_raw(
        "DeleteItem",
        {
            "TableName": TABLE,
            "Key": KEY,
            "ConditionExpression": f"{function} = :b",
            "ExpressionAttributeValues": _B,
        },
    )

    assert answer.text == (
        f"{ENVELOPE}Invalid ConditionExpression: The function is not allowed in a condition expression; "
        f"function: {function.partition('(')[0]}"
    )


def test_an_unknown_type_name(send_raw: Callable[..., Answer]) -> None:
    """attribute_type accepts ten names, which the refusal lists in no stable order."""
    answer = send_raw(
        "Scan",
        {
            "TableName": TABLE,
            "FilterExpression": "attribute_type(a, :b)",
            "ExpressionAttributeValues": {":b": s("string")},
        },
    )

    result, _, types = (answer.text or "").partition(", valid types: ")
    assert result == "Invalid FilterExpression: Invalid attribute type name found; type: string"
    assert set(types.strip("{}").split(",")) == set("S SS N NS B BS BOOL NULL L M".split())


def test_update_item_reports_the_condition_first(send_raw: Callable[..., Answer]) -> None:
    """UpdateItem reads the condition before the update; a transaction reads the update first."""
    request = {"TableName": TABLE, "Key": KEY, "UpdateExpression": "SET", "ConditionExpression": "a"}

    alone = send_raw("UpdateItem", request)
    together = send_raw("TransactWriteItems", {"TransactItems": [{"Update": request}]})

    assert "Invalid ConditionExpression" in (alone.text or "")
    assert "Invalid UpdateExpression" in (together.text or "")


def test_expressions_come_before_the_table(send_raw: Callable[..., Answer]) -> None:
    """An invalid expression is refused even if the table is missing."""
    answer = send_raw("DeleteItem", {"TableName": MISSING, "Key": KEY, "ConditionExpression": "a ="})

    assert answer.code == "ValidationException"


def test_a_placeholder_may_be_255_bytes(send_raw: Callable[..., Answer]) -> None:
    """A placeholder has at most 255 bytes, its first sign included."""
    name = "#" + "a" * 254

    accepted = send_raw(
        "GetItem",
        {
            "TableName": HASH,
            "Key": {"pk": s("p")},
            "ProjectionExpression": name,
            "ExpressionAttributeNames": {name: "x"},
        },
    )
    refused = send_raw(
        "GetItem",
        {
            "TableName": HASH,
            "Key": {"pk": s("p")},
            "ProjectionExpression": name + "a",
            "ExpressionAttributeNames": {name + "a": "x"},
        },
    )

    assert accepted.status == 200
    assert refused.code == "ValidationException"
