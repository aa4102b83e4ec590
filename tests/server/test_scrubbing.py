"""Parts of a request that may be shown to people who may not see its data."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.faults import (
    AccessDeniedFault,
    CancellationReason,
    Fault,
    IncompleteSignatureFault,
    InvalidSignatureFault,
    ResourceNotFoundFault,
    SerializationFault,
    TransactionCanceledFault,
    ValidationFault,
)
from tavola.server.scrubbing import (
    arns_in,
    decode_body,
    denying_policy,
    scrub_message,
    tables_in,
    texts_in,
)

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
DENIAL = f"User: arn:aws:iam::000000000000:user/reader is not authorized to perform: dynamodb:GetItem on resource: {ARN}"


@pytest.mark.parametrize(
    ("fault", "request_", "result"),
    [
        (ValidationFault("Type mismatch for key secret expected: S actual: N"), {"Item": {"secret": {"N": "1"}}},
         "Type mismatch for key … expected"),
        (ValidationFault("The parameter cannot be converted to a numeric value: 12x"), {}, "The parameter cannot be converted to a numeric value"),
        (ValidationFault("1 validation error detected: Invalid UpdateExpression: Syntax error; token: x"), {}, "Invalid UpdateExpression"),
        (ValidationFault("2 validation errors detected: Value 'a' at 'b' failed to satisfy constraint: Member must not be null; Value"), {},
         "Member must not be null"),
        (ValidationFault("hunter2 is wrong"), {"Key": {"pk": {"S": "hunter2"}}}, "hunter"),
        (ValidationFault("swordfish is wrong"), {"Key": {"pk": {"S": "the swordfish!"}}}, "… is wrong"),
        (ValidationFault("anything"), None, None),
        (SerializationFault(), None, None),
        (ResourceNotFoundFault.of_table("Orders"), {}, "Requested resource not found"),
        (AccessDeniedFault(DENIAL), None, DENIAL),
        (AccessDeniedFault("something 'else' entirely"), {}, "something"),
        (TransactionCanceledFault([CancellationReason("None"), CancellationReason("ValidationError", "secret")]), None,
         "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]"),
        (IncompleteSignatureFault("Authorization header requires 'Signature' parameter. Authorization=AWS4 secret"), None,
         "Authorization header requires 'Signature' parameter."),
        (IncompleteSignatureFault("Date must be in ISO-8601 'basic format'. Got 'secret'. See"), None, "Date must be in ISO-8601 'basic format'."),
        (InvalidSignatureFault("Credential should be scoped to a valid region, not 'secret'. "), None,
         "Credential should be scoped to a valid region"),
    ],
)  # fmt: skip
def test_a_sentence_is_reported_up_to_what_it_quotes(fault: Fault, request_: Any, result: str | None) -> None:
    """The kind of error is reported; the quoted value is not."""
    assert scrub_message(fault, request_) == result


def test_a_denial_reports_the_deciding_policy() -> None:
    """The end of AWS's message says whether a policy denied or none allowed."""
    why = {
        " because no identity-based policy allows the dynamodb:GetItem action": "no identity-based policy",
        " with an explicit deny in a resource-based policy": "an explicit deny in a resource-based policy",
        "": None,
    }
    for end, policy in why.items():
        assert denying_policy(AccessDeniedFault(DENIAL + end)) == policy
    assert denying_policy(AccessDeniedFault("something else")) is None


def test_tables_are_found_wherever_a_request_names_them() -> None:
    """Single, batch, transaction, restore: the tables and the index, by name, whether named or by ARN."""
    assert tables_in({"TableName": ARN, "IndexName": "by-x"}) == [("Orders", "by-x")]
    assert tables_in({"RequestItems": {"A-1": [], ARN: {}}}) == [("A-1", None), ("Orders", None)]
    assert tables_in({"TransactItems": [{"Put": {"TableName": "B-1"}}, {"Get": {"TableName": "B-1"}}]}) == [
        ("B-1", None)
    ]
    assert tables_in({"SourceTableName": "C-1", "TargetTableName": "C-2"}) == [("C-1", None), ("C-2", None)]
    assert arns_in({"ResourceArn": ARN, "StreamArn": f"{ARN}/stream/x", "BackupArn": "secret"}) == [
        ARN,
        f"{ARN}/stream/x",
    ]


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("SELECT * FROM Orders", [("Orders", None)]),
        ('select a, "b FROM c" from "Orders"."by-x" where pk = \'FROM Others\'', [("Orders", "by-x")]),
        (f'SELECT a FROM "{ARN}" WHERE a = 1', [("Orders", None)]),
        ("INSERT INTO Orders VALUE {'pk': 'UPDATE Others'}", [("Orders", None)]),
        ('UPDATE "Orders" SET a = 1', [("Orders", None)]),
        ('DELETE FROM "Orders" WHERE pk = 1', [("Orders", None)]),
        ('EXISTS(SELECT * FROM "Orders" WHERE pk = 1)', [("Orders", None)]),
        ("SELECT 'a FROM secret FROM b", []),
        ("nonsense FROM Orders", []),
        (7, []),
    ],
)
def test_the_table_of_a_statement_is_found(statement: Any, named: list[Any]) -> None:
    """It is found by its position; a value that reads like a statement names no table."""
    assert tables_in({"Statement": statement}) == named
    assert tables_in({"Statements": [{"Statement": statement}, 1]}) == named
    assert tables_in({"TransactStatements": [{"Statement": statement}]}) == named


@pytest.mark.parametrize(
    "request_",
    [
        *(None, 1, [], "x", {"TableName": 7}, {"TableName": "a secret!"}, {"TableName": "x" * 300}),
        *(
            {"RequestItems": []},
            {"TransactItems": {"a": 1}},
            {"TransactItems": [1, {"Put": 3}]},
            {"ResourceArn": ["x"]},
        ),
        {"TableCreationParameters": "x"},
    ],
)
def test_a_malformed_request_names_nothing(request_: Any) -> None:
    """An invalid name is not reported."""
    assert tables_in(request_) == []
    assert arns_in(request_) == []


def test_a_request_is_looked_into_only_so_far() -> None:
    """Invalid JSON and requests that are too deep or too large are not inspected."""
    assert decode_body(b'{"a":1}') == {"a": 1}
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'"' + b"x" * 300_000 + b'"'):
        assert decode_body(body) is None


def test_only_words_of_dynamodb_are_reported() -> None:
    """Attribute names and values belong to the sender; members of the request and types of values do not."""
    request = {
        "TableName": "Orders",
        "Key": {"Secret": {"S": "value"}},
        "ExpressionAttributeNames": {"#n": "Name"},
    }

    assert set(texts_in(request)) == {"Orders", "Secret", "value", "#n", "Name"}
