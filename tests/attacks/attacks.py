"""The attacks: requests that a client may send, and that cost the server as much work as possible.

Each attack prepares its data once through the server, and then sends the same requests in a loop. They are legal or refused; either
way other clients must be served meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.attacks.wire import Connection

READINGS = "Readings"  # many tiny items
LARGE = "Large"  # a few large items
KEY = {"AttributeName": "pk", "KeyType": "HASH"}
SORT = {"AttributeName": "sk", "KeyType": "RANGE"}
TINY_ITEMS = 60_000


@dataclass(frozen=True, slots=True)
class Attack:
    """An operation and a body, sent again and again over some connections."""

    name: str
    operation: str
    body: Callable[[], bytes]  # made by the attacker, because it may be large
    connections: int = 2
    strict: bool = False  # sent unsigned to a server with --auth strict


def prepare(connection: Connection) -> None:
    """Create the tables that attacks read."""
    for name in (READINGS, LARGE):
        connection.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [KEY, SORT],
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "N"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    for first in range(0, TINY_ITEMS, 25):
        items = [{"pk": {"S": "a"}, "sk": {"N": str(first + n)}, "g": {"S": "x"}} for n in range(25)]
        connection.call("BatchWriteItem", {"RequestItems": {READINGS: _puts(items)}})
    large = {"L": [{"N": "1"}] * 60_000}
    for number in range(8):
        item = {"pk": {"S": "a"}, "sk": {"N": str(number)}, "list": large}
        connection.call("PutItem", {"TableName": LARGE, "Item": item})


def attacks() -> Iterator[Attack]:
    """Yield every attack."""
    digits = "1" * 8_000
    yield Attack(
        "PartiQL, 25 statements with long numbers",
        "BatchExecuteStatement",
        _json({"Statements": [{"Statement": f'SELECT * FROM "{READINGS}" WHERE pk = {digits}'}] * 25}),
    )
    yield Attack(
        "PartiQL, a transaction of 100 long numbers",
        "ExecuteTransaction",
        _json({"TransactStatements": [{"Statement": f'SELECT * FROM "x" WHERE pk = {digits}'}] * 100}),
    )
    operands = {f":v{number}": {"S": f"no {number}"} for number in range(100)}
    in_list = f"g IN ({', '.join(operands)})"
    yield _scan("filter of 12 IN with 100 operands", " OR ".join([in_list] * 2), operands)
    yield _scan(
        "filter of 100 contains()", " OR ".join(f"contains(g, {name})" for name in operands), operands
    )
    yield _scan(
        "filter of 300 comparisons",
        " AND ".join(["NOT g > :v0", "NOT g < :v0"][n % 2] for n in range(148)),
        {":v0": {"S": "x"}},
    )
    yield Attack("scan of tiny items", "Scan", _json({"TableName": READINGS}))
    yield Attack(
        "scan of tiny items, only their number", "Scan", _json({"TableName": READINGS, "Select": "COUNT"})
    )
    yield Attack(
        "PartiQL scan with a filter",
        "ExecuteStatement",
        _json({"Statement": f"SELECT * FROM \"{READINGS}\" WHERE contains(g, 'no') OR g > 'z'"}),
    )
    yield Attack(
        "projection of large items",
        "Query",
        _json(
            {
                "TableName": LARGE,
                "KeyConditionExpression": "pk = :a",
                "ExpressionAttributeValues": {":a": {"S": "a"}},
                "ProjectionExpression": ", ".join(f"list[{n}]" for n in range(0, 400, 2)),
            }
        ),
    )
    yield Attack(
        "put of 700,000 attributes", "PutItem", lambda: _put({f"{n:x}": {"S": ""} for n in range(700_000)})
    )
    yield Attack(
        "put of a list of 1,600,000", "PutItem", lambda: _put({"l": {"L": [{"N": "1"}] * 1_600_000}})
    )
    yield Attack(
        "put of a legal list of 60,000", "PutItem", lambda: _put({"l": {"L": [{"N": "1"}] * 60_000}})
    )
    yield Attack("put of a string of 15 MB", "PutItem", lambda: _put({"s": {"S": "x" * 15_000_000}}))
    yield Attack(
        "900,000 attribute names",
        "GetItem",
        lambda: json.dumps(
            {
                "TableName": LARGE,
                "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}},
                "ExpressionAttributeNames": {f"#{n}": "a" for n in range(900_000)},
            }
        ).encode(),
    )
    yield Attack("15 MB that are not JSON", "PutItem", lambda: b"{" * 15_000_000)
    yield Attack(
        "unsigned 15 MB to a strict server",
        "PutItem",
        lambda: _put({"l": {"L": [{"N": "1"}] * 1_500_000}}),
        strict=True,
    )
    yield Attack("deep nesting", "PutItem", lambda: _nested(900))
    yield Attack("scans over 50 connections", "Scan", _json({"TableName": READINGS}), connections=50)


def _scan(name: str, text: str, values: Mapping[str, Any]) -> Attack:
    return Attack(
        name,
        "Scan",
        _json({"TableName": READINGS, "FilterExpression": text, "ExpressionAttributeValues": dict(values)}),
    )


def _json(body: Mapping[str, Any]) -> Callable[[], bytes]:
    return lambda: json.dumps(body).encode()


def _put(attributes: Mapping[str, Any]) -> bytes:
    item = {"pk": {"S": "b"}, "sk": {"N": "1"}, **attributes}
    return json.dumps({"TableName": LARGE, "Item": item}, separators=(",", ":")).encode()


def _puts(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": item}} for item in items]


def _nested(levels: int) -> bytes:
    return b'{"TableName":"Large","Item":' + b'{"a":{"M":' * levels + b"{}" + b"}}" * levels + b"}"
