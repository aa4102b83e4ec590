"""The access log: one record a call, shaped as CloudTrail's, with no content in it."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import ItemAccess
from tavola.entropy import SeededEntropy
from tavola.keys import KeyAttribute, KeySchema
from tavola.protocol.arns import Scope
from tavola.protocol.operations import OPERATIONS
from tavola.server.access_log import AccessLog, hash_key, secret_path
from tavola.server.callers import Caller
from tavola.server.errors import AccessLogUnusable
from tavola.server.responses import ResponseEncoder, ResponseQueue
from tavola.server.scrubbing import texts_in
from tests.conformance.sentences import HASH, MULTI, STORED, TABLE, Row
from tests.server.attended import Attended, attended
from tests.server.standin import StandIn

ORDERS = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "status")
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
KEY = {"pk": {"S": "o#1"}, "sk": {"S": "head"}}
SCHEMA = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))


def _secret(folder: Path) -> bytes:
    return bytes.fromhex(secret_path(folder / "access.log").read_text())


def test_a_call_is_a_record_of_cloudtrail(tmp_path: Path) -> None:
    """A record has caller, time, operation, table, key, consumed capacity and decision."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        server.send_request("PutItem", {"TableName": "Orders", "Item": {**KEY, "status": {"S": "open"}}})
        server.send_request("GetItem", {"TableName": "Orders", "Key": KEY, "ConsistentRead": True})
        created, put, got = server.records()

    assert got == {
        "eventVersion": "1.11",
        "eventSource": "dynamodb.amazonaws.com",
        "eventType": "AwsApiCall",
        "eventName": "GetItem",
        "eventCategory": "Data",
        "readOnly": True,
        "awsRegion": "eu-west-1",
        "recipientAccountId": "000000000000",
        "sourceIPAddress": "192.0.2.7",
        "userAgent": "a program/1.0",
        "userIdentity": {"type": "Unknown", "accountId": "000000000000", "accessKeyId": "AKIDEXAMPLE"},
        "eventTime": "2026-11-01T09:30:00Z",
        "requestID": got["requestID"],
        "eventID": got["eventID"],
        "requestParameters": {
            "tableName": "Orders",
            "keys": [hash_key(_secret(tmp_path), SCHEMA.key_of(KEY))],
        },
        "resources": [
            {
                "accountId": "000000000000",
                "type": "AWS::DynamoDB::Table",
                "ARN": "arn:aws:dynamodb:eu-west-1:000000000000:table/Orders",
            }
        ],
        "additionalEventData": {
            "consumed": [{"table": "Orders", "reads": 1.0, "writes": 0.0}],
            "latencyMs": 0.0,
            "decision": "open",
        },
    }
    assert put["requestParameters"] == got["requestParameters"]
    assert put["additionalEventData"]["consumed"] == [
        {"table": "Orders", "reads": 0.0, "writes": 1.0},
        {"table": "Orders", "index": "by-status", "reads": 0.0, "writes": 1.0},
    ]
    assert (created["eventCategory"], created["readOnly"]) == ("Management", False)
    assert created["requestParameters"] == {"tableName": "Orders"}
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-\d{12}", got["eventID"])
    assert len({record["eventID"] for record in (created, put, got)}) == 3


def test_the_id_is_the_answers(tmp_path: Path) -> None:
    """A request can be found in the log by the id in its response."""
    with attended(tmp_path) as server:
        payload = server._dispatch.answer(
            b"POST",
            b"/",
            {b"x-amz-target": b"DynamoDB_20120810.ListTables", b"content-type": b"application/json"},
            b"{}",
            False,
            server._peer,
        )
        assert isinstance(payload, bytes)
        (record,) = server.records()

    assert f"x-amzn-RequestId: {record['requestID']}\r\n".encode() in payload


def test_reads_name_their_index_and_partition(tmp_path: Path) -> None:
    """A query has its partition's hash, a scan has none, and the index is recorded."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        condition = {"KeyConditionExpression": "#k = :v", "ExpressionAttributeValues": {":v": {"S": "open"}}}
        named = {
            "TableName": "Orders",
            "IndexName": "by-status",
            "ExpressionAttributeNames": {"#k": "status"},
        }
        server.send_request("Query", {**named, **condition})
        server.send_request("Scan", {"TableName": "Orders", "IndexName": "by-status"})
        server.send_request("Scan", {"TableName": "Orders"})
        _, query, scan, whole = server.records()

    partition = KeySchema((KeyAttribute("status", "S"),)).key_of({"status": {"S": "open"}})
    assert query["requestParameters"] == {
        "tableName": "Orders",
        "indexName": "by-status",
        "keys": [hash_key(_secret(tmp_path), partition)],
    }
    assert query["additionalEventData"]["consumed"][0]["index"] == "by-status"
    assert scan["requestParameters"] == {"tableName": "Orders", "indexName": "by-status", "keys": []}
    assert whole["requestParameters"] == {"tableName": "Orders", "keys": []}


def test_several_items_are_one_record(tmp_path: Path) -> None:
    """A batch or a transaction has every key it touched, by table, and the sum of what it consumed."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        server.send_request("CreateTable", {**ORDERS, "TableName": "Archive"})
        items = [{"pk": {"S": "o#1"}, "sk": {"S": str(number)}} for number in range(3)]
        puts = [{"PutRequest": {"Item": item}} for item in items]
        server.send_request("BatchWriteItem", {"RequestItems": {"Orders": puts, "Archive": puts[:1]}})
        server.send_request(
            "BatchGetItem", {"RequestItems": {name: {"Keys": items[:1]} for name in ("Orders", "Archive")}}
        )
        server.send_request(
            "TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Orders", "Key": k}} for k in items]}
        )
        *_, batch, same, transaction = server.records()

    hashes = [hash_key(_secret(tmp_path), SCHEMA.key_of(item)) for item in items]
    assert batch["requestParameters"] == {
        "tables": [{"tableName": "Orders", "keys": hashes}, {"tableName": "Archive", "keys": hashes[:1]}]
    }
    assert [table["keys"] for table in same["requestParameters"]["tables"]] == [hashes[:1], hashes[:1]]
    assert [unit["writes"] for unit in batch["additionalEventData"]["consumed"]] == [3.0, 1.0]
    assert transaction["requestParameters"] == {"tableName": "Orders", "keys": hashes}
    assert transaction["additionalEventData"]["consumed"] == [
        {"table": "Orders", "reads": 6.0, "writes": 0.0}
    ]


def test_refused_calls_are_records_too(tmp_path: Path) -> None:
    """A call that fails has its code and its sentence, and the table it named."""
    with attended(tmp_path) as server:
        server.send_request("GetItem", {"TableName": "Nowhere", "Key": KEY})
        server.send_request("DeleteTable", {"TableName": "x"})
        server.send_request("DynamoDB_20120810.Nothing", {})
        server.send_request("GetItem", {"TableName": "Orders", "Key": KEY}, origin=b"http://evil.example")
        missing, invalid, unknown, forbidden = server.records()

    assert (missing["errorCode"], missing["errorMessage"]) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )
    assert missing["requestParameters"] == {"tableName": "Nowhere"}
    assert missing["resources"][0]["ARN"].endswith(":table/Nowhere")
    assert invalid["errorCode"] == "ValidationException"
    assert (unknown["eventName"], unknown["errorCode"]) == ("Unknown", "UnknownOperationException")
    assert (forbidden["errorCode"], forbidden["additionalEventData"]["decision"]) == (
        "AccessDeniedException",
        "refused",
    )


# Content: no value of a request or an item may be in the log.

CANARY = "cAnArY7f3a"


def _planted(value: Any, *, allowed: frozenset[str]) -> Any:
    """Return a request whose every string is a canary, except the names that a record may contain."""
    if isinstance(value, str):
        return f"{CANARY} {value}"
    if isinstance(value, list):
        return [_planted(member, allowed=allowed) for member in value]
    if isinstance(value, dict):
        return {
            name: member if name in allowed else _planted(member, allowed=allowed)
            for name, member in value.items()
        }
    return value


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests of every operation, with canaries wherever content can be."""
    c = {"S": CANARY}
    key = {"pk": c, "sk": c}
    item = {**key, "status": c, CANARY: {"L": [c, {"M": {CANARY: {"B": "Y2FuYXJ5"}}}, {"NS": ["4242421"]}]}}
    update = {
        "Key": key,
        "UpdateExpression": f"SET #n = :v, {CANARY}2 = :v",
        "ExpressionAttributeNames": {"#n": CANARY},
        "ExpressionAttributeValues": {":v": c},
    }
    condition = {
        "ConditionExpression": "#n = :w",
        "ExpressionAttributeNames": {"#n": CANARY},
        "ExpressionAttributeValues": {":w": {"S": CANARY * 2}},
    }
    named = {"TableName": "Orders"}
    yield "PutItem", {**named, "Item": item}
    yield "PutItem", {**named, "Item": item, **condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    yield "PutItem", {**named, "Item": {**item, "pk": {"N": "4242421"}}}
    yield "PutItem", {**named, "Item": {**item, "n": {"N": CANARY}}}
    yield "PutItem", {**named, "Item": {**item, "n": {CANARY: CANARY}}}
    yield "PutItem", {**named, "Item": {**item, "status": {"N": "4242421"}}}
    yield "GetItem", {**named, "Key": key, "ProjectionExpression": CANARY}
    yield "GetItem", {**named, "Key": {"pk": c, CANARY: c}}
    yield "GetItem", {**named, "Key": key, "ProjectionExpression": f"{CANARY} {CANARY}"}
    yield "UpdateItem", {**named, **update}
    yield "UpdateItem", {**named, **update, "UpdateExpression": f"SET {CANARY} {CANARY} = :v"}
    yield "UpdateItem", {**named, **update, "UpdateExpression": "ADD #n :v"}
    yield "DeleteItem", {**named, "Key": key, **condition}
    yield (
        "Query",
        {
            **named,
            "KeyConditionExpression": "pk = :v AND begins_with(sk, :v)",
            "FilterExpression": "#n = :v",
            "ExpressionAttributeNames": {"#n": CANARY},
            "ExpressionAttributeValues": {":v": c},
        },
    )
    yield (
        "Query",
        {**named, "KeyConditionExpression": f"{CANARY} = :v", "ExpressionAttributeValues": {":v": c}},
    )
    yield "Query", {**named, "IndexName": "no-such", "KeyConditions": {"pk": {"AttributeValueList": [c]}}}
    yield "Scan", {**named, "ExclusiveStartKey": {"pk": c}}
    yield "Scan", {**named, "FilterExpression": f"{CANARY}(pk)"}
    yield "BatchGetItem", {"RequestItems": {"Orders": {"Keys": [key, {"pk": c, "sk": {"S": "x"}}]}}}
    yield "BatchGetItem", {"RequestItems": {"Orders": {"Keys": [key, key]}}}
    yield "BatchWriteItem", {"RequestItems": {"Orders": [{"PutRequest": {"Item": item}}]}}
    yield "BatchWriteItem", {"RequestItems": {"Orders": [{"DeleteRequest": {"Key": {CANARY: c}}}]}}
    yield "TransactGetItems", {"TransactItems": [{"Get": {**named, "Key": key}}]}
    yield "TransactWriteItems", {"TransactItems": [{"Update": {**named, **update}}]}
    yield "TransactWriteItems", {"TransactItems": [{"Put": {**named, "Item": item, **condition}}]}
    yield (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**named, "Item": item}}], "ClientRequestToken": CANARY},
    )
    for statement in (
        f"SELECT * FROM Orders WHERE pk = '{CANARY}'",
        f"INSERT INTO Orders VALUE {{'pk': '{CANARY}', 'sk': '{CANARY}3'}}",
        f"UPDATE Orders SET {CANARY} = '{CANARY}' WHERE pk = '{CANARY}' AND sk = '{CANARY}'",
        f"SELECT '{CANARY}' {CANARY} FROM",
    ):
        yield "ExecuteStatement", {"Statement": statement, "Parameters": [c]}
        yield "BatchExecuteStatement", {"Statements": [{"Statement": statement}]}
        yield "ExecuteTransaction", {"TransactStatements": [{"Statement": statement}]}
    yield "TagResource", {"ResourceArn": CANARY, "Tags": [{"Key": CANARY, "Value": CANARY}]}
    yield "UpdateTimeToLive", {**named, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": CANARY}}
    yield "GetRecords", {"ShardIterator": CANARY}
    yield "CreateTable", {**ORDERS, "TableName": f"{CANARY} is no name"}
    for operation in OPERATIONS:  # whatever is or will be served, with canaries in all its members
        for member in ("TableName", "ResourceArn", "StreamArn", "BackupArn", "Key", "Policy", "Statement"):
            yield operation, {member: CANARY + "!", "NextToken": CANARY, "ClientToken": CANARY}
        yield operation, {"TableName": "Orders", CANARY: CANARY, "ResourceArn": {"S": CANARY}}
        yield operation, _planted(ORDERS, allowed=frozenset({"TableName"}))


def _found(text: str) -> list[str]:
    """Return the lines in which a canary is, in any of its forms."""
    forms = (CANARY.lower(), "y2fuyxj5", "canary", "4242421")
    return [line for line in text.splitlines() if any(form in line.lower() for form in forms)]


def test_no_content_gets_into_the_log(tmp_path: Path) -> None:
    """Whatever a call holds, and however it fails, no value, attribute, expression or token is in its record."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        count = 0
        for operation, request in _requests():
            server.send_request(operation, request)
            server.send_request(operation, json.dumps(request).encode()[:-3])  # and where it is no JSON
            count += 2
        text = server.text()

    assert text.count("\n") == count + 1
    assert not _found(text), "\n".join(_found(text)[:5])


def test_content_is_found_where_it_is() -> None:
    """The look for canaries sees one that was let through."""
    assert _found(f'{{"errorMessage":"Value {CANARY} is wrong"}}\n')


def _sentences() -> Iterator[Row]:
    """Yield every refusal of the conformance suite."""
    for part in ("", "_of_batches", "_of_expressions", "_of_json", "_of_queries", "_of_tables"):
        module = importlib.import_module(f"tests.conformance.test_errors{part}")
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == "row":
                    yield from mark.args[1]


def test_no_sentence_quotes_a_request(tmp_path: Path) -> None:
    """Of AWS's sentences, which quote what they refuse, the log has no word that the request brought."""
    harmless = {TABLE, HASH, MULTI, "sentences-missing", "sentences"}
    with attended(tmp_path) as server:
        _lay_tables(server)
        rows = list(_sentences())
        for row in rows:
            server.send_request(row.operation, row.request)
        records = server.records()[4:]

    result = 0
    for row, record in zip(rows, records, strict=True):
        message = record.get("errorMessage", "")
        result += bool(message)
        request = row.request if not isinstance(row.request, bytes) else {}
        words = {word for text in texts_in(request) for word in re.findall(r"[\w-]+", text)}
        quoted = words & set(re.findall(r"[\w-]+", message)) - harmless
        assert not quoted, (row.id, message, quoted)
        assert not re.search(r"['\"\d]", message), (row.id, message)
    assert len(rows) > 800
    assert result > 700  # most still report the error


def _lay_tables(server: Attended) -> None:
    from tests.conformance.requests import table_request

    gsi, lsi = {"by-a": "a b:N | KEYS_ONLY", "by-c": "c"}, {"by-l": "pk l:N | KEYS_ONLY"}
    server.send_request("CreateTable", table_request(TABLE, "pk sk", gsi=gsi, lsi=lsi))
    server.send_request("CreateTable", table_request(HASH, "pk"))
    server.send_request("CreateTable", table_request(MULTI, "pk", gsi={"multi": "h1 h2 / r1 r2:N r3"}))
    server.send_request("PutItem", {"TableName": TABLE, "Item": STORED})


def test_a_hash_cannot_be_guessed_from_the_log_alone(tmp_path: Path) -> None:
    """Another log has another secret, so the same key has another hash there."""
    hashes: list[str] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        log = AccessLog(folder / "access.log", clock=ManualClock(), entropy=SeededEntropy(len(hashes)))
        log.note(_caller(), "GetItem", b"R" * 52, 0.0, [_touch(b"key")], b"")
        log.close()
        record = json.loads((folder / "access.log").read_text())
        hashes.append(record["requestParameters"]["keys"][0])

    assert hashes[0] != hashes[1]
    assert b"key".hex() not in hashes


def test_the_secret_stays(tmp_path: Path) -> None:
    """A server that starts again makes the same hashes; the secret is its owner's alone, and a bad one is reported."""
    path = tmp_path / "access.log"
    for _ in range(2):
        log = AccessLog(path)
        log.note(_caller(), "GetItem", b"R" * 52, 0.0, [_touch(b"key")], b"")
        log.close()
    one, two = (json.loads(line) for line in path.read_text().splitlines())
    assert one["requestParameters"] == two["requestParameters"]
    assert secret_path(path).stat().st_mode & 0o777 == 0o600

    secret_path(path).write_text("nonsense")
    with pytest.raises(AccessLogUnusable, match="does not contain a valid secret"):
        AccessLog(path)
    secret_path(path).write_text("00ff")
    with pytest.raises(AccessLogUnusable, match="does not contain a valid secret"):
        AccessLog(path)


def _caller() -> Caller:
    return Caller(Scope("000000000000", "us-east-1"), {"type": "Unknown"}, "", "", False, "open")


def _touch(key: bytes) -> ItemAccess:
    return ItemAccess("arn:aws:dynamodb:us-east-1:000000000000:table/Orders", None, key, 0.5, 0.0)


def test_a_failed_commit_is_recorded_as_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines wait for the commit of their turn;

    if it fails they record the failure, under the client's request id.
    """
    engine = StandIn()
    engine.commit_error = RuntimeError("the disk is gone")

    async def live() -> list[bytes]:
        loop = asyncio.get_running_loop()
        with attended(tmp_path, engine=engine) as server:
            encoder = ResponseEncoder(server.clock, SeededEntropy(1))
            commits = ResponseQueue(engine, encoder, loop, server.log)
            server.log.attach(loop, lambda: commits.group_is_open)
            sent: list[bytes] = []
            fields = {b"x-amz-target": b"DynamoDB_20120810.PutItem", b"content-type": b"application/json"}
            commits.open_group()
            payload = server._dispatch.answer(b"POST", b"/", fields, b'{"key":"k"}', False, server._peer)
            commits.deliver(_Client(sent), payload, False)
            server.log.flush()  # comes too early, and waits
            assert server.log._calls
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not server.log._calls
            assert not server.log._chunks
            (record,) = server.records()
            assert record["errorCode"] == "InternalServerError"
            assert record["requestID"].encode() in sent[0]
            return sent

    (answer,) = asyncio.run(live())

    assert b" 500 " in answer.partition(b"\r\n")[0]


class _Client:
    def __init__(self, sent: list[bytes]) -> None:
        self._sent = sent

    def send(self, payload: Any, close: bool) -> None:
        self._sent.append(payload)


def test_a_clock_that_jumps_back_makes_no_odd_record(tmp_path: Path) -> None:
    """A call during which the clock was set back took no time, not less than none."""
    clock = ManualClock(1_793_525_400.0)
    log = AccessLog(tmp_path / "access.log", clock=clock)
    log.note(_caller(), "GetItem", b"R" * 52, clock.now() + 50, [_touch(b"key")], b"")
    log.note(_caller(), "GetItem", b"R" * 52, clock.now() - 7.5, [_touch(b"key")], b"")
    log.close()
    early, late = (json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines())

    assert (early["eventTime"], early["additionalEventData"]["latencyMs"]) == ("2026-11-01T09:30:50Z", 0.0)
    assert (late["eventTime"], late["additionalEventData"]["latencyMs"]) == ("2026-11-01T09:29:52Z", 7500.0)


def test_caches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tables and many keys take bounded memory."""
    from tavola.server import access_log

    monkeypatch.setattr(access_log, "_TEMPLATES_MAX", 5)
    log = AccessLog(tmp_path / "access.log")
    for number in range(40):
        touch = _touch(b"%d" % number)._replace(reads=float(number))
        log.note(_caller(), "GetItem", b"R" * 52, 0.0, [touch], b"")
    log.close()

    assert len(log._templates) <= 5
    assert len((tmp_path / "access.log").read_text().splitlines()) == 40


def test_concurrent_lines_are_all_written(tmp_path: Path) -> None:
    """Lines are buffered in pieces;

    none is lost, repeated or out of order, also if a commit fails among them.
    """
    log = AccessLog(tmp_path / "access.log")
    ids = [b"%052d" % number for number in range(1000)]
    for request_id in ids:
        log.note(_caller(), "GetItem", request_id, 0.0, [_touch(request_id)], b"")
    log.mark_failed({ids[3], ids[990]})
    log.close()
    records = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]

    assert [record["requestID"].encode() for record in records] == ids
    assert [place for place, record in enumerate(records) if "errorCode" in record] == [3, 990]


def test_other_requests_are_recorded_too(tmp_path: Path) -> None:
    """Another path, method or content type is recorded as unknown, under the id of its response;

    a probe is not.
    """
    with attended(tmp_path) as server:
        responses = [
            server.send_raw(b"POST", b"/elsewhere"),
            server.send_raw(b"PUT", b"/"),
            server.send_raw(b"POST", b"/", content_type=b"text/plain"),
            server.send_raw(b"GET", b"/admin"),
            server.send_raw(b"HEAD", b"/admin"),
        ]
        probed = [server.send_raw(b"GET", path) for path in (b"/", b"/healthz", b"/readyz")]
    records = server.records()

    assert [status for status, _ in responses] == [404] * 5
    assert [status for status, _ in probed] == [200] * 3
    assert [record["requestID"] for record in records] == [id_ for _, id_ in responses]
    for record in records:
        assert (record["eventName"], record["errorCode"]) == ("Unknown", "UnknownOperationException")
        assert record["additionalEventData"]["decision"] == "refused"
