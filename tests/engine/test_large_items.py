"""Requests on large items pause, and take effect as if they had not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tavola.engine import Engine, PendingCall
from tavola.limits import ITEM_BYTES_MAX
from tavola.protocol.faults import (
    ConditionalCheckFailedFault,
    ResourceNotFoundFault,
    TransactionCanceledFault,
    ValidationFault,
)
from tavola.values import Value, admission

TABLE = {
    "TableName": "large",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ELEMENTS = 4_000
SET = {"UpdateExpression": "SET n = n + :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as opened:
        opened.call("CreateTable", TABLE)
        for name in ("a", "b"):
            opened.call("PutItem", {"TableName": "large", "Item": _item(name)})
        yield opened


def _item(name: str, n: int = 0) -> dict[str, Any]:
    return {"pk": {"S": name}, "n": {"N": str(n)}, "l": {"L": [{"N": "1"}] * ELEMENTS}}


def _key(name: str) -> dict[str, Any]:
    return {"TableName": "large", "Key": {"pk": {"S": name}}}


def _in_slices(
    engine: Engine,
    operation: str,
    request: dict[str, Any],
    between: Callable[[int], object] = lambda slice_: None,
) -> tuple[dict[str, Any], int]:
    """Return the response and the number of slices; `between` is called after each slice."""
    answer = engine.execute(operation, json.dumps(request).encode(), slice_s=0.0)
    slices = 0
    while isinstance(answer, PendingCall):
        between(slices)
        slices += 1
        resumed = engine.resume(answer, 0.0)
        if engine.dirty:
            engine.commit()
        answer = answer if resumed is None else resumed
    return json.loads(answer), slices


def _get(engine: Engine, name: str) -> dict[str, Any]:
    item: dict[str, Any] = engine.call("GetItem", _key(name))["Item"]
    return item


PROJECTED = {"ProjectionExpression": "l[0]"}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("GetItem", _key("a") | PROJECTED),
    ("PutItem", {"TableName": "large", "Item": _item("c") | {"x": {"N": "1.50"}}}),
    ("UpdateItem", _key("a") | SET | {"ReturnValues": "ALL_NEW"}),
    ("DeleteItem", _key("a") | {"ConditionExpression": "attribute_exists(l[1])"}),
    ("BatchGetItem", {"RequestItems": {"large": {"Keys": [_key(n)["Key"] for n in "ab"]} | PROJECTED}}),
    (
        "BatchWriteItem",
        {"RequestItems": {"large": [{"PutRequest": {"Item": _item(name)}} for name in "cdefg"]}},
    ),
    ("TransactGetItems", {"TransactItems": [{"Get": _key(name) | PROJECTED} for name in "ab"]}),
    ("TransactWriteItems", {"TransactItems": [{"Update": _key(name) | SET} for name in "ab"]}),
    ("ExecuteStatement", {"Statement": "UPDATE large SET n = n + 1 WHERE pk = 'a' RETURNING ALL NEW *"}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT n FROM large WHERE pk = 'a'"}] * 1}),
    (
        "ExecuteTransaction",
        {"TransactStatements": [{"Statement": f"UPDATE large SET n = n + 1 WHERE pk = '{n}'"} for n in "ab"]},
    ),
    (
        "Scan",
        {
            "TableName": "large",
            "FilterExpression": "contains(l, :one) AND NOT (n > :one OR l = :one)",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ProjectionExpression": "pk, l[2]",
        },
    ),
]


@pytest.mark.parametrize(("operation", "request_"), REQUESTS)
def test_the_response_in_slices_is_the_response_at_once(operation: str, request_: dict[str, Any]) -> None:
    """Every operation on large items pauses, answers the same, and leaves the same items."""
    answers = []
    for in_slices in (False, True):
        with Engine.open() as engine:
            engine.call("CreateTable", TABLE)
            for name in ("a", "b"):
                engine.call("PutItem", {"TableName": "large", "Item": _item(name)})
            if in_slices:
                answer, slices = _in_slices(engine, operation, request_)
                assert slices
            else:
                answer = engine.call(operation, request_)
            items = engine.call("Scan", {"TableName": "large"})
            answers.append((answer, items["Items"], items.get("LastEvaluatedKey")))

    assert answers[0] == answers[1]


def test_an_update_applies_to_the_item_as_it_is_at_the_end(engine: Engine) -> None:
    """Another update during a pause is not lost: the item is decoded again."""

    def add(slice_: int) -> None:
        if slice_ == 0:
            engine.call("UpdateItem", _key("a") | SET)

    _in_slices(engine, "UpdateItem", _key("a") | SET, add)

    assert _get(engine, "a")["n"] == {"N": "2"}


def test_an_item_that_changes_all_the_time_is_updated_all_the_same(engine: Engine) -> None:
    """After some attempts in steps the update is made in one piece."""
    others = 0

    def add(slice_: int) -> None:
        nonlocal others
        others += 1
        engine.call("UpdateItem", _key("a") | SET)

    _in_slices(engine, "UpdateItem", _key("a") | SET, add)

    assert others > 3
    assert _get(engine, "a")["n"] == {"N": str(others + 1)}


def test_a_condition_is_checked_against_the_item_at_the_end(engine: Engine) -> None:
    """A condition that another request made false during a pause fails."""
    request = _key("a") | {
        "ConditionExpression": "n = :zero",
        "ExpressionAttributeValues": {":zero": {"N": "0"}},
    }

    with pytest.raises(ConditionalCheckFailedFault):
        _in_slices(engine, "DeleteItem", request, lambda _: engine.call("UpdateItem", _key("a") | SET))

    assert _get(engine, "a")


@pytest.mark.parametrize("always", [False, True])
def test_a_transaction_takes_effect_at_one_moment(engine: Engine, always: bool) -> None:
    """Items that change during a pause are prepared again, so no update is lost, even if they change in every pause."""
    others = 0

    def add(slice_: int) -> None:
        nonlocal others
        if always or slice_ == 2:
            others += 1
            engine.call("UpdateItem", _key("a") | SET)

    request = {"TransactItems": [{"Update": _key(name) | SET} for name in "ab"]}
    _in_slices(engine, "TransactWriteItems", request, add)

    assert others
    assert _get(engine, "a")["n"] == {"N": str(others + 1)}
    assert _get(engine, "b")["n"] == {"N": "1"}


def test_a_token_that_is_used_during_a_pause_counts(engine: Engine) -> None:
    """The same transaction twice at the same time is carried out once."""
    request = {
        "TransactItems": [{"Update": _key(name) | SET} for name in "ab"],
        "ClientRequestToken": "once",
    }

    def repeat(slice_: int) -> None:
        if slice_ == 0:
            engine.call("TransactWriteItems", request)

    _in_slices(engine, "TransactWriteItems", request, repeat)

    assert _get(engine, "a")["n"] == {"N": "1"}


def test_a_cancelled_transaction_writes_nothing(engine: Engine) -> None:
    """A condition that fails after pauses cancels the actions before it too."""
    failing = _key("b") | {"ConditionExpression": "attribute_not_exists(l)"}
    request = {"TransactItems": [{"Update": _key("a") | SET}, {"Delete": failing}]}

    with pytest.raises(TransactionCanceledFault):
        _in_slices(engine, "TransactWriteItems", request)

    assert _get(engine, "a")["n"] == {"N": "0"}


def test_a_batch_meets_the_items_as_they_are(engine: Engine) -> None:
    """An item that another request wrote during a pause is replaced, and counted once."""
    request = {"RequestItems": {"large": [{"PutRequest": {"Item": _item(name, 7)}} for name in "cdefghi"]}}
    others: list[int] = []

    def put(slice_: int) -> None:
        is_written = {name: "Item" in engine.call("GetItem", _key(name)) for name in "ci"}
        if is_written == {
            "c": True,
            "i": False,
        }:  # the batch has prepared all of its writes, and made the first
            others.append(slice_)
            engine.call("PutItem", {"TableName": "large", "Item": _item("i")})

    _in_slices(engine, "BatchWriteItem", request, put)

    assert others
    assert _get(engine, "i")["n"] == {"N": "7"}
    count = sum(1 for name in "abcdefghi" if _get(engine, name))
    assert engine.call("DescribeTable", {"TableName": "large"})["Table"]["ItemCount"] == count


@pytest.mark.parametrize(("operation", "request_"), REQUESTS)
def test_a_table_that_is_replaced_during_a_pause_is_not_written(
    engine: Engine, operation: str, request_: dict[str, Any]
) -> None:
    """A table of the same name with other keys never gets what was prepared for the one before."""
    other = TABLE | {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "N"}],
    }

    def replace(slice_: int) -> None:
        if slice_ == 0:
            engine.call("DeleteTable", {"TableName": "large"})
            engine.call("CreateTable", other)

    refusals = (ResourceNotFoundFault, ValidationFault, TransactionCanceledFault)
    with suppress(*refusals):
        _in_slices(engine, operation, request_, replace)

    assert engine.call("Scan", {"TableName": "large"})["Items"] == []


def test_a_refused_large_request_changes_nothing(engine: Engine) -> None:
    """A value that is invalid is found before anything is written, wherever it is."""
    bad = _item("c") | {"x": {"L": [{"N": "1"}] * ELEMENTS + [{"N": "no"}]}}
    request = {"RequestItems": {"large": [{"PutRequest": {"Item": item}} for item in (_item("d"), bad)]}}

    with pytest.raises(ValidationFault, match="cannot be converted to a numeric value"):
        _in_slices(engine, "BatchWriteItem", request)

    assert "Item" not in engine.call("GetItem", _key("d"))


COPIES = [
    ", ".join(f"a{number} = l" for number in range(280)),
    ", ".join(f"a{number} = list_append(l, l)" for number in range(140)),
    ", ".join(f"m.a{number} = l" for number in range(140)),
    ", ".join(f"l[{number}] = l" for number in range(140)),
    ", ".join(f"a{number} = m" for number in range(140)),
]


@pytest.mark.parametrize("changes", COPIES)
def test_copies_of_a_list_are_measured_once(
    engine: Engine, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that copies a list hundreds of times is refused after measuring as much as an item can hold."""
    engine.call("PutItem", {"TableName": "large", "Item": _item("a") | {"m": {"M": {"l": _item("a")["l"]}}}})
    measured = 0
    measure = admission.value_size

    def count(value: Value) -> int:
        nonlocal measured
        measured += 1
        return measure(value)

    monkeypatch.setattr(admission, "value_size", count)

    with pytest.raises(ValidationFault, match="Item size to update has exceeded"):
        engine.call("UpdateItem", _key("a") | {"UpdateExpression": f"SET {changes}"})

    assert measured < ITEM_BYTES_MAX // 2  # 140 copies have 560,000 elements


@pytest.mark.parametrize("path", ["z", "m.z", "l[0]"])
def test_another_reason_comes_before_the_size(engine: Engine, path: str) -> None:
    """A part that cannot be evaluated is reported even if the lists before it are too long for an item."""
    engine.call("PutItem", {"TableName": "large", "Item": _item("a") | {"m": {"M": {}}}})
    changes = f"{COPIES[1]}, {path} = list_append(l, n)"

    with pytest.raises(ValidationFault, match="incorrect data type"):
        engine.call("UpdateItem", _key("a") | {"UpdateExpression": f"SET {changes}"})


def test_what_an_update_removes_makes_room(engine: Engine) -> None:
    """Only the final size counts: a list of 300 KB moves to another attribute, and two of them do not fit."""
    long = {"L": [{"N": "1"}] * 100_000}
    engine.call("PutItem", {"TableName": "large", "Item": {"pk": {"S": "a"}, "l": long}})

    with pytest.raises(ValidationFault, match="Item size to update has exceeded"):
        engine.call("UpdateItem", _key("a") | {"UpdateExpression": "SET b = l"})
    engine.call("UpdateItem", _key("a") | {"UpdateExpression": "SET b = l REMOVE l"})

    assert _get(engine, "a") == {"pk": {"S": "a"}, "b": long}


def test_copies_that_fit_count_as_much_as_written_ones(engine: Engine) -> None:
    """The size of an item with copies of a list is that of the same item put at once."""
    changes = "a = l, b = list_append(l, l), m.x = l, m.y = m"
    copied = _key("a") | {"UpdateExpression": f"SET {changes}", "ReturnValues": "ALL_NEW"}
    engine.call("PutItem", {"TableName": "large", "Item": _item("a") | {"m": {"M": {"l": _item("a")["l"]}}}})

    item = engine.call("UpdateItem", copied)["Attributes"]
    updated = _stored_bytes(engine)
    engine.call("DeleteItem", _key("a"))
    engine.call("PutItem", {"TableName": "large", "Item": item})

    assert _stored_bytes(engine) == updated


def _stored_bytes(engine: Engine) -> int:
    bytes_: int = engine.call("DescribeTable", {"TableName": "large"})["Table"]["TableSizeBytes"]
    return bytes_


_PARTS = 50
_MANY = {
    "ConditionExpression": " AND ".join(["NOT contains(l, :two)"] * _PARTS + ["n = :zero"]),
    "ExpressionAttributeValues": {":two": {"N": "2"}, ":zero": {"N": "0"}},
}
_UPDATE = {"UpdateExpression": "SET x = :zero"}
_WHERE = " AND ".join(["NOT contains(l, 2)"] * _PARTS + ["n = 0"])
CONDITIONAL: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": "large", "Item": {"pk": {"S": "a"}}} | _MANY),
    ("UpdateItem", _key("a") | _UPDATE | _MANY),
    ("DeleteItem", _key("a") | _MANY),
    ("ExecuteStatement", {"Statement": f"DELETE FROM large WHERE pk = 'a' AND {_WHERE}"}),
    (
        "TransactWriteItems",
        {"TransactItems": [{"ConditionCheck": _key("a") | _MANY}, {"Delete": _key("b")}]},
    ),
    (
        "ExecuteTransaction",
        {"TransactStatements": [{"Statement": f"DELETE FROM large WHERE pk='a' AND {_WHERE}"}]},
    ),
]


@pytest.mark.parametrize(("operation", "request_"), CONDITIONAL)
def test_a_condition_with_many_parts_pauses_within_an_item(
    engine: Engine, operation: str, request_: dict[str, Any]
) -> None:
    """The condition of a write pauses after each part, and the write takes effect if the item stays as it was."""
    _, slices = _in_slices(engine, operation, request_)

    assert slices > _PARTS


@pytest.mark.parametrize(("operation", "request_"), CONDITIONAL)
@pytest.mark.parametrize("always", [False, True])
def test_a_condition_with_many_parts_holds_at_the_write(
    engine: Engine, operation: str, request_: dict[str, Any], always: bool
) -> None:
    """A change in a pause, before the last part or in every one, is seen by the condition: the write is refused."""
    before = engine.call("Scan", {"TableName": "large"})["Items"]
    changes = 0

    def change(slice_: int) -> None:
        nonlocal changes
        if always or slice_ == _PARTS:
            changes += 1
            engine.call("UpdateItem", _key("a") | SET)

    with pytest.raises((ConditionalCheckFailedFault, TransactionCanceledFault)):
        _in_slices(engine, operation, request_, change)

    after = engine.call("Scan", {"TableName": "large"})["Items"]
    assert [item | {"n": None} for item in after] == [item | {"n": None} for item in before]
    assert changes
