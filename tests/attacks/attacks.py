"""The attacks: requests that a client may send, and that cost the server as much work as possible.

Each attack prepares its data once through the server, and then sends the same requests in a loop. They are legal or refused; either
way other clients must be served meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
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
    burns_cpu: bool = False  # beside its requests, as a control of what competition alone does


def prepare(connection: Connection, *, tiny_items: int = TINY_ITEMS) -> None:
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
    for first in range(0, tiny_items, 25):
        items = [{"pk": {"S": "a"}, "sk": {"N": str(first + n)}, "g": {"S": "x"}} for n in range(25)]
        connection.call("BatchWriteItem", {"RequestItems": {READINGS: _puts(items)}})
    large = {"L": [{"N": "1"}] * 60_000}
    for number in range(8):
        item = {"pk": {"S": "a"}, "sk": {"N": str(number)}, "parts60": large}
        connection.call("PutItem", {"TableName": LARGE, "Item": item})


def prepare_buckets(folder: Path) -> None:
    """Write the files that attacks import, into a bucket of this folder."""
    bucket = folder / "bucket"
    bucket.mkdir(parents=True)
    names = ["pk", "sk", *(f"c{number:x}" for number in range(20_000))]
    rows = [",".join(["imported", str(number), *["x"] * 20_000]) for number in range(100)]
    (bucket / "wide.csv").write_text("\n".join([",".join(names), *rows]))
    elements = ",\n".join(['"x"'] * 20_000)
    (bucket / "large.ion").write_text(f'{{Item:{{pk:"imported",sk:1.,l:[{elements}]}}}}\n')


def attacks() -> Iterator[Attack]:
    """Yield every attack, after a control."""
    small = {"TableName": LARGE, "Key": {"pk": {"S": "good"}, "sk": {"N": "1"}}}
    yield Attack("(control: cheap requests and a busy CPU)", "GetItem", _json(small), burns_cpu=True)
    yield from _long_reads()
    yield from _large_bodies()
    yield from _large_items()
    yield from _many_parts()
    yield from _imports()


def _long_reads() -> Iterator[Attack]:
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
                "ProjectionExpression": ", ".join(f"parts60[{n}]" for n in range(0, 400, 2)),
            }
        ),
    )
    yield Attack("scans over 50 connections", "Scan", _json({"TableName": READINGS}), connections=50)


def _large_bodies() -> Iterator[Attack]:
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


def _large_items() -> Iterator[Attack]:
    """Yield legal requests that write or read items of hundreds of kilobytes with tens of thousands of elements."""
    yield Attack(
        "batch of 25 puts of lists of 35,000",
        "BatchWriteItem",
        _json({"RequestItems": {LARGE: _puts([_large("w", n, 35_000) for n in range(25)])}}),
    )
    yield Attack(
        "transaction of 100 puts of lists of 3,000",
        "TransactWriteItems",
        _json(
            {
                "TransactItems": [
                    {"Put": {"TableName": LARGE, "Item": _large("t", number, 3_000)}} for number in range(100)
                ]
            }
        ),
    )
    update = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
    keys = [{"pk": {"S": "a"}, "sk": {"N": str(number)}} for number in range(8)]
    yield Attack(
        "update of an item of 60,000", "UpdateItem", _json({"TableName": LARGE, "Key": keys[0]} | update)
    )
    yield Attack(
        "transaction of updates of 8 items of 60,000",
        "TransactWriteItems",
        _json({"TransactItems": [{"Update": {"TableName": LARGE, "Key": key} | update} for key in keys]}),
    )
    doubled = "list_append(parts60, parts60)"
    for count, name, value in ((140, "copies", "parts60"), (90, "doublings", doubled)):
        sets = ", ".join(f"a{number} = {value}" for number in range(count))
        yield Attack(
            f"update with {count} {name} of a list of 60,000",
            "UpdateItem",
            _json({"TableName": LARGE, "Key": keys[2], "UpdateExpression": f"SET {sets}"}),
        )
    condition = "contains(parts60, :no)"
    values = {":no": {"S": "no"}}
    yield Attack(
        "delete with a condition on an item of 60,000",
        "DeleteItem",
        _json(
            {
                "TableName": LARGE,
                "Key": keys[1],
                "ConditionExpression": condition,
                "ExpressionAttributeValues": values,
            }
        ),
    )
    conditions = {
        "TableName": LARGE,
        "Key": keys[3],
        "ConditionExpression": " OR ".join([condition] * 40),
        "ExpressionAttributeValues": values,
    }
    yield Attack("delete with 40 conditions on an item of 60,000", "DeleteItem", _json(conditions))
    yield Attack(
        "transaction with 40 conditions on an item of 60,000",
        "TransactWriteItems",
        _json({"TransactItems": [{"ConditionCheck": conditions}]}),
    )
    yield Attack(
        "filter of 100 contains() on lists of 60,000",
        "Query",
        _json(
            {
                "TableName": LARGE,
                "KeyConditionExpression": "pk = :a",
                "FilterExpression": " OR ".join([condition] * 100),
                "ExpressionAttributeValues": values | {":a": {"S": "a"}},
            }
        ),
    )
    yield Attack(
        "batch of 8 projected items of 60,000",
        "BatchGetItem",
        _json({"RequestItems": {LARGE: {"Keys": keys, "ProjectionExpression": "parts60[0]"}}}),
    )


def _many_parts() -> Iterator[Attack]:
    """Yield requests with many parts, or many requests, that each take little less than a slice."""
    where = " OR ".join(f"g = {number}" for number in range(290))
    statement = f"SELECT * FROM \"{READINGS}\" WHERE pk = 'a' AND sk = 1 AND ({where})"
    yield Attack(
        "PartiQL, 25 statements with 290 conditions",
        "BatchExecuteStatement",
        _json({"Statements": [{"Statement": statement}] * 25}),
    )
    put = b'{"PutRequest":{"Item":{"pk":{"S":"a"}}}},'
    yield Attack(
        "batch of 300,000 puts",
        "BatchWriteItem",
        lambda: b'{"RequestItems":{"Large":[' + put * 300_000 + b"]}}",
    )
    yield Attack(
        "a string of seven million escapes",
        "BatchWriteItem",
        lambda: b'{"RequestItems":"' + b'\\"' * 7_000_000 + b'"}',
    )
    yield Attack(
        "transaction of 4,900 attribute names",
        "TransactWriteItems",
        _json(
            {
                "TransactItems": [
                    {
                        "Delete": {
                            "TableName": LARGE,
                            "Key": {"pk": {"S": "none"}, "sk": {"N": "1"}},
                            "ConditionExpression": "#0 = #1",
                            "ExpressionAttributeNames": {f"#{number}": "a" for number in range(4_900)},
                        }
                    }
                ]
            }
        ),
    )
    yield Attack(
        "puts of lists of 900 over 50 connections",
        "PutItem",
        lambda: _put({"l": {"L": [{"N": "1"}] * 900}}),
        connections=50,
    )


def _imports() -> Iterator[Attack]:
    """Yield imports; each runs in the background once, and further requests for its table are refused."""
    definition = {
        "KeySchema": [KEY, SORT],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for name, format_ in (("wide.csv", "CSV"), ("large.ion", "ION")):
        yield Attack(
            f"import of {name}",
            "ImportTable",
            _json(
                {
                    "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": name},
                    "InputFormat": format_,
                    "TableCreationParameters": {"TableName": f"Imported-{name}"} | definition,
                }
            ),
            connections=1,
        )


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


def _large(key: str, number: int, elements: int) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"N": str(number)}, "l": {"L": [{"N": "1"}] * elements}}


def _puts(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": item}} for item in items]


def _nested(levels: int) -> bytes:
    return b'{"TableName":"Large","Item":' + b'{"a":{"M":' * levels + b"{}" + b"}}" * levels + b"}"
