"""Long reads are computed in slices, and other clients are served between them."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tavola.clock import monotonic
from tavola.engine import Engine, ItemAccess, PendingCall
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.server.listener import running
from tests.server.raw import Raw, request, served
from tests.server.standin import StandIn

TABLE = "Readings"
ITEMS = 6_000
NO_MATCH = " OR ".join(f"contains(label, :v{number})" for number in range(100))
VALUES = {f":v{number}": {"S": f"missing {number}"} for number in range(100)}
SCAN = {"TableName": TABLE, "FilterExpression": NO_MATCH, "ExpressionAttributeValues": VALUES}
SLICE_S = 0.0  # every step ends a slice


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine in a file with a table of small items."""
    with Engine.open(tmp_path / "store.db", sync="off") as opened:
        opened.call(
            "CreateTable",
            {
                "TableName": TABLE,
                "KeySchema": [
                    {"AttributeName": "sensor", "KeyType": "HASH"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "sensor", "AttributeType": "S"},
                    {"AttributeName": "at", "AttributeType": "N"},
                    {"AttributeName": "label", "AttributeType": "S"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by_label",
                        "KeySchema": [{"AttributeName": "label", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
                "LocalSecondaryIndexes": [
                    {
                        "IndexName": "local",
                        "KeySchema": [
                            {"AttributeName": "sensor", "KeyType": "HASH"},
                            {"AttributeName": "label", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
            },
        )
        for first in range(0, ITEMS, 25):
            writes = [{"PutRequest": {"Item": _item(number)}} for number in range(first, first + 25)]
            opened.call("BatchWriteItem", {"RequestItems": {TABLE: writes}})
        yield opened


def _item(number: int) -> dict[str, Any]:
    return {
        "sensor": {"S": f"s{number % 3}"},
        "at": {"N": str(number)},
        "label": {"S": f"label {number % 2}"},
        "more": {"S": "x"},
    }


def _start(engine: Engine, operation: str, body: dict[str, Any]) -> PendingCall:
    read = engine.execute(operation, msgspec.json.encode(body), slice_s=SLICE_S)
    assert isinstance(read, PendingCall)
    return read


def _finish(engine: Engine, read: PendingCall) -> dict[str, Any]:
    while (response := engine.resume(read, SLICE_S)) is None:
        pass
    found: dict[str, Any] = json.loads(response)
    return found


QUERY = {
    "TableName": TABLE,
    "KeyConditionExpression": "sensor = :s",
    "ExpressionAttributeValues": {":s": {"S": "s1"}},
    "ReturnConsumedCapacity": "INDEXES",
}
BY_LABEL = {
    "TableName": TABLE,
    "IndexName": "by_label",
    "KeyConditionExpression": "label = :l",
    "ExpressionAttributeValues": {":l": {"S": "label 1"}},
}
LOCAL = QUERY | {"IndexName": "local", "Select": "ALL_ATTRIBUTES", "ScanIndexForward": False}


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        pytest.param("Scan", SCAN, id="scan with a filter"),
        pytest.param("Scan", {"TableName": TABLE}, id="scan"),
        pytest.param("Scan", {"TableName": TABLE, "Limit": 1_500}, id="scan with a limit"),
        pytest.param("Scan", {"TableName": TABLE, "Segment": 1, "TotalSegments": 2}, id="segment"),
        pytest.param("Query", QUERY, id="query"),
        pytest.param("Query", QUERY | {"ScanIndexForward": False}, id="query backwards"),
        pytest.param("Query", BY_LABEL, id="query of a global index with ties"),
        pytest.param("Query", BY_LABEL | {"ScanIndexForward": False, "Limit": 1_400}, id="backwards"),
        pytest.param("Query", LOCAL, id="query of a local index that fetches"),
        pytest.param("ExecuteStatement", {"Statement": f'SELECT * FROM "{TABLE}"'}, id="statement"),
    ],
)
def test_the_response_is_the_same_in_slices(engine: Engine, operation: str, body: dict[str, Any]) -> None:
    """A read that is interrupted after every step returns what the same read at once returns."""
    whole = engine.call(operation, body)

    response = _finish(engine, _start(engine, operation, body))

    assert response == whole


NO_INDEX = {"TableName": TABLE, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_label"}}]}
STATEMENT = {"Statement": f'SELECT * FROM "{TABLE}"'}


@pytest.mark.parametrize(
    ("operation", "body", "change", "changed"),
    [
        pytest.param("Query", BY_LABEL, "DeleteTable", {"TableName": TABLE}, id="query, table deleted"),
        pytest.param("Query", BY_LABEL, "UpdateTable", NO_INDEX, id="query, index deleted"),
        pytest.param(
            "ExecuteStatement", STATEMENT, "DeleteTable", {"TableName": TABLE}, id="statement, table deleted"
        ),
    ],
)
def test_a_page_ends_where_its_table_or_index_does(
    engine: Engine, operation: str, body: dict[str, Any], change: str, changed: dict[str, Any]
) -> None:
    """If what is read is deleted between two slices, the page ends there, with the key to continue from."""
    read = _start(engine, operation, body)
    engine.call(change, changed)

    response = _finish(engine, read)

    assert 0 < len(response["Items"]) < ITEMS / 2
    assert response["LastEvaluatedKey"]["at"] == response["Items"][-1]["at"]


RANGES = {"Statement": f"SELECT * FROM \"{TABLE}\" WHERE sensor IN ['l0','l1','l2'] AND contains(more, 'x')"}


@pytest.mark.parametrize("slices", [0, 1, 2, 3, 10, 30, 90])
@pytest.mark.parametrize(("operation", "body"), [("Query", LOCAL), ("ExecuteStatement", RANGES)])
def test_no_step_reads_a_deleted_table(
    engine: Engine, operation: str, body: dict[str, Any], slices: int
) -> None:
    """Whenever the table is deleted, fetches of a local index and further ranges of a statement end."""
    for number in range(9):
        large = _item(number) | {"sensor": {"S": f"l{number % 3}"}, "more": {"S": "x" * 20_000}}
        engine.call("PutItem", {"TableName": TABLE, "Item": large})
    read = _start(engine, operation, body)
    for _ in range(slices):
        if engine.resume(read, SLICE_S) is not None:
            return
    engine.call("DeleteTable", {"TableName": TABLE})

    response = _finish(engine, read)

    assert response["Items"]


def test_a_page_does_not_end_where_only_a_setting_changes(engine: Engine) -> None:
    """A change that the read does not depend on, such as a tag, leaves its page and its units as they are."""
    whole = engine.call("Query", LOCAL)
    read = _start(engine, "Query", LOCAL)
    arn = engine.call("DescribeTable", {"TableName": TABLE})["Table"]["TableArn"]
    engine.call("TagResource", {"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})

    assert _finish(engine, read) == whole


def test_items_written_between_two_slices_are_read_as_they_are_then(engine: Engine) -> None:
    """A scan in slices is not a snapshot: what it has not reached yet is read as it is when it gets there."""
    last = engine.call("Query", QUERY | {"ScanIndexForward": False, "Limit": 1})["Items"][0]
    read = _start(engine, "Query", QUERY)
    engine.call("PutItem", {"TableName": TABLE, "Item": last | {"more": {"S": "changed"}}})

    response = _finish(engine, read)

    assert response["Items"][-1]["more"] == {"S": "changed"}


def test_an_observer_is_notified_once_with_what_the_whole_read_consumed(engine: Engine) -> None:
    """The observer hears of a read in slices when it ends, with the same units as of a read at once."""
    observer = _Observer()
    engine.observe(observer)
    engine.call("Scan", SCAN)

    _finish(engine, _start(engine, "Scan", SCAN))

    at_once, in_slices = observer.notes
    assert in_slices == at_once
    assert in_slices[0] == "Scan"
    assert in_slices[1] > 10


class _Observer:
    def __init__(self) -> None:
        self.notes: list[tuple[str, float, Fault | None]] = []

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        self.notes.append((operation, sum(access.reads for access in accesses), fault))


class _PacedEngine:
    """An engine whose long reads make no progress until the test lets them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.may_advance = False

    def resume(self, read: PendingCall, slice_s: float) -> bytes | None:
        return self._engine.resume(read, slice_s) if self.may_advance else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def test_others_are_served_while_a_scan_is_computed(engine: Engine) -> None:
    """A GetItem that arrives after a long scan has begun is answered before the scan is."""
    get = {"TableName": TABLE, "Key": {"sensor": {"S": "s0"}, "at": {"N": "0"}}}
    paced = _PacedEngine(engine)
    with running(paced) as endpoint, Raw(endpoint) as slow, Raw(endpoint) as fast:
        slow.send(request("Scan", json.dumps(SCAN).encode()))
        for _ in range(3):
            fast.send(request("GetItem", json.dumps(get).encode()))
            assert fast.answer().status == 200
        slow.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.socket.recv(1)
        slow.socket.settimeout(30)
        paced.may_advance = True

        assert json.loads(slow.answer().body) == {"Items": [], "Count": 0, "ScannedCount": ITEMS}


@pytest.mark.parametrize("write_first", [True, False])
def test_the_responses_of_one_connection_keep_their_order(write_first: bool) -> None:
    """A request that follows a long read is answered after it, also if the read waits for a commit with an earlier write."""
    engine = StandIn()
    put, get = request("PutItem", b'{"key":"long"}'), request("GetItem", b'{"key":"long"}')
    item = json.dumps({"key": "long"}, separators=(",", ":"))
    with served(engine) as endpoint, Raw(endpoint) as client:
        client.send((put if write_first else b"") + request("ExecuteStatement") + put + get)
        bodies = [client.answer().body for _ in range(4 if write_first else 3)]

    seen = json.dumps([item if write_first else "-"] * 3).encode()
    assert bodies == [*([b"{}"] if write_first else []), seen, b"{}", item.encode()]


def test_a_long_read_fails_with_the_writes_that_it_has_seen(caplog: pytest.LogCaptureFixture) -> None:
    """A read whose slice saw a write that was then rolled back is an error, not a response."""
    engine = StandIn()
    engine.commit_error = OSError("the disk is gone")
    with served(engine) as endpoint, Raw(endpoint) as client, Raw(endpoint) as other:
        client.send(request("PutItem", b'{"key":"long"}') + request("ExecuteStatement"))
        assert [client.answer().status for _ in range(2)] == [500, 500]
        other.send(request("ExecuteStatement"))

        assert other.answer().body == b'["-", "-", "-"]'
    assert "the disk is gone" in caplog.text


def test_a_read_ends_with_its_connection() -> None:
    """If the connection is reset during a long read, the rest of it is not executed; others are served."""
    engine = StandIn()
    engine.read_slices = 100_000
    with served(engine) as endpoint, Raw(endpoint) as other:
        with Raw(endpoint) as client:
            client.send(request("ExecuteStatement"))
            other.send(request())
            assert other.answer().status == 200
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        deadline_s = monotonic() + 10
        while engine.reads_ended == 0 and monotonic() < deadline_s:
            other.send(request())
            assert other.answer().status == 200

    assert engine.reads_ended == 1
    assert engine.slices_run < engine.read_slices


def test_few_long_reads_are_in_progress_at_a_time() -> None:
    """Each holds its page in memory, so the others wait after their first slice; all are answered."""
    engine = StandIn()
    engine.read_slices = 5
    with served(engine, pending_max=2) as endpoint, ExitStack() as stack:
        clients = [stack.enter_context(Raw(endpoint)) for _ in range(6)]
        for client in clients:
            client.send(request("ExecuteStatement"))
        statuses = [client.answer().status for client in clients]

    assert statuses == [200] * 6
    # In its first slice every read begins; beyond that only two advance until one of them ends.
    assert engine.most_reads_advanced <= 3


def test_a_failing_slice_stops_no_other_read(caplog: pytest.LogCaptureFixture) -> None:
    """A read that fails unexpectedly in a later slice is answered with an error, and the others go on."""
    engine = StandIn()
    with served(engine) as endpoint, Raw(endpoint) as failing, Raw(endpoint) as other:
        engine.fails_in_slice = 2
        failing.send(request("ExecuteStatement"))
        assert failing.answer().status == 500
        engine.fails_in_slice = 0
        other.send(request("ExecuteStatement"))
        assert other.answer().status == 200
    assert "failed unexpectedly" in caplog.text
