"""Finding calls in an access log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tavola.server.access_log import secret_of
from tavola.server.log_queries import AccessLogQuery, hash_of_item, parse_moment, read_records
from tests.server.attended import attended
from tests.server.test_access_log import KEY, ORDERS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of five calls, the last of them ten seconds after the others."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        server.send_request("PutItem", {"TableName": "Orders", "Item": KEY})
        server.send_request("GetItem", {"TableName": "Orders", "Key": KEY})
        server.send_request("GetItem", {"TableName": "Nowhere", "Key": KEY}, origin=b"http://evil.example")
        server.clock.advance(10)
        server.send_request(
            "Query", {"TableName": "Nowhere", "IndexName": "by-x", "KeyConditionExpression": "pk = :a"}
        )
        server.records()
    return tmp_path / "access.log"


NINE_S = 1_793_525_400.0  # 09:30:00


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (AccessLogQuery(), ["CreateTable", "PutItem", "GetItem", "GetItem", "Query"]),
        (AccessLogQuery(operation="getitem"), ["GetItem", "GetItem"]),
        (AccessLogQuery(table="Orders"), ["CreateTable", "PutItem", "GetItem"]),
        (AccessLogQuery(index="by-x"), ["Query"]),
        (AccessLogQuery(user="AKIDEXAMPLE", error="none"), ["CreateTable", "PutItem", "GetItem"]),
        (AccessLogQuery(user="000000000000", operation="PutItem"), ["PutItem"]),
        (AccessLogQuery(user="nobody"), []),
        (AccessLogQuery(error="any"), ["GetItem", "Query"]),
        (AccessLogQuery(error="AccessDenied"), ["GetItem"]),
        (AccessLogQuery(error="ValidationException"), ["Query"]),
        (AccessLogQuery(decision="refused"), ["GetItem"]),
        (AccessLogQuery(since_s=NINE_S + 5), ["Query"]),
        (AccessLogQuery(until_s=NINE_S + 5, table="Orders"), ["CreateTable", "PutItem", "GetItem"]),
        (AccessLogQuery(key="0" * 16), []),
    ],
)
def test_records_are_found(path: Path, query: AccessLogQuery, found: list[str]) -> None:
    """A query finds the records that match all its conditions, oldest first."""
    assert [record["eventName"] for _, record in read_records(path, query)] == found


def test_an_item_is_found_by_its_key(path: Path) -> None:
    """With the log's secret, the calls for one item are found; without the range attribute, its partition's."""
    secret = secret_of(path)
    hashed = hash_of_item(secret, KEY)
    assert [record["eventName"] for _, record in read_records(path, AccessLogQuery(key=hashed))] == [
        "PutItem",
        "GetItem",
    ]

    assert hash_of_item(secret, {"pk": KEY["pk"]}) != hashed
    assert hash_of_item(secret, {"pk": {"N": "1"}, "sk": {"B": "AA=="}}) is not None


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"pk": "x"},
        {"pk": {"BOOL": True}},
        {"pk": {"S": ""}},
        {"a": {"S": "1"}, "b": {"S": "1"}, "c": {"S": "1"}},
    ],
)
def test_an_invalid_key_has_no_hash(path: Path, item: dict[str, Any]) -> None:
    """A value that cannot be a key is reported, and not searched for."""
    assert hash_of_item(secret_of(path), item) is None


def test_a_torn_line_is_skipped(path: Path) -> None:
    """A line cut by a crash does not prevent reading the rest, over several files."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.with_name("access.log.1").write_bytes(b"".join(lines[:3]) + lines[3][:50] + b"\n")
    path.write_bytes(lines[4])

    names = [record["eventName"] for _, record in read_records(path, AccessLogQuery())]
    assert names == ["CreateTable", "PutItem", "GetItem", "Query"]
    assert all(json.loads(line) == record for line, record in read_records(path, AccessLogQuery()))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("15m", NINE_S - 900),
        ("2h", NINE_S - 7200),
        ("3d", NINE_S - 259_200),
        ("2026-11-01T09:30:00Z", NINE_S),
        ("2026-11-01T10:30:00+01:00", NINE_S),
        ("2026-11-01 09:30", NINE_S),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_moment_is_reported_in_two_ways(text: str, moment: float | None) -> None:
    """A time is a date and time, in UTC by default, or an age."""
    assert parse_moment(text, NINE_S) == moment
