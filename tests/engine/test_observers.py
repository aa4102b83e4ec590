"""An observer is reported of every call once, when it can be answered, with what it consumed; and it can do no harm."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tavola import connect
from tavola.engine import Engine, ItemAccess, RequestContext
from tavola.engine.storage import Store, StoreFull
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault, TransactionCanceledFault
from tavola.server.listener import running
from tests.server.attended import attended

ORDERS: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "by")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "ByWhom",
            "KeySchema": [{"AttributeName": "by", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY = {"pk": {"S": "o#1"}, "sk": {"S": "line"}}
ITEM = {**KEY, "by": {"S": "ann"}, "text": {"S": "x" * 5000}}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": "Orders", "Item": ITEM}),
    ("PutItem", {"TableName": "Orders", "Item": {**ITEM, "by": {"S": "bob"}}}),
    ("GetItem", {"TableName": "Orders", "Key": KEY, "ConsistentRead": True}),
    (
        "UpdateItem",
        {
            "TableName": "Orders",
            "Key": KEY,
            "UpdateExpression": "SET seen = :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    ),
    (
        "Query",
        {
            "TableName": "Orders",
            "IndexName": "ByWhom",
            "KeyConditionExpression": "#b = :b",
            "ExpressionAttributeNames": {"#b": "by"},
            "ExpressionAttributeValues": {":b": {"S": "bob"}},
        },
    ),
    ("Scan", {"TableName": "Orders"}),
    ("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY]}}}),
    (
        "BatchWriteItem",
        {"RequestItems": {"Orders": [{"PutRequest": {"Item": {**ITEM, "sk": {"S": "two"}}}}]}},
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": "Orders", "Item": {**ITEM, "sk": {"S": "three"}}}}]},
    ),
    ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Orders", "Key": KEY}}]}),
    ("ExecuteStatement", {"Statement": "SELECT * FROM \"Orders\" WHERE pk = 'o#1'"}),
    ("DeleteItem", {"TableName": "Orders", "Key": KEY}),
]


class Notes:
    """Keeps what it is reported."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float, tuple[ItemAccess, ...], Fault | None, bytes]] = []

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
        """Keep it."""
        assert began_s > 0
        self.calls.append((operation, took_s, tuple(accesses), fault, body))

    @property
    def operations(self) -> list[str]:
        """The operations, in order."""
        return [result[0] for result in self.calls]


Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


@contextmanager
def _memory(path: Path) -> Iterator[tuple[Engine, Ask]]:
    with Engine.open() as engine:
        yield engine, engine.call


@contextmanager
def _file(path: Path) -> Iterator[tuple[Engine, Ask]]:
    with Engine.open(path / "orders.tavola") as engine:
        yield engine, engine.call


@contextmanager
def _http(path: Path) -> Iterator[tuple[Engine, Ask]]:
    with (
        Engine.open(path / "orders.tavola") as engine,
        running(engine) as where,
        connect(where.url, region="us-east-1", account="000000000000") as connection,
    ):
        yield engine, connection.call


def _units(consumed: Any) -> dict[str | None, float]:
    """Return what an answer says was consumed, by index; None: the table."""
    found: dict[str | None, float] = {}
    for each in [consumed] if isinstance(consumed, dict) else consumed:
        arms = {None: each["Table"], **each.get("GlobalSecondaryIndexes", {})}
        for place, units in arms.items():
            found[place] = found.get(place, 0.0) + units["CapacityUnits"]
    return {place: units for place, units in found.items() if units}


@pytest.mark.parametrize("place", [_memory, _file, _http], ids=["memory", "file", "http"])
def test_every_operation_is_reported_once_with_the_units_that_it_answers(place: Any, tmp_path: Path) -> None:
    """What the observer sums up is what ReturnConsumedCapacity says, by table and by index, wherever it is asked."""
    notes = Notes()
    with place(tmp_path) as (engine, send_request):
        send_request("CreateTable", ORDERS)
        engine.observe(notes)
        answers = [
            send_request(name, {**request, "ReturnConsumedCapacity": "INDEXES"}) for name, request in CALLS
        ]
        engine.observe(None)
        send_request("Scan", {"TableName": "Orders"})

    assert notes.operations == [name for name, _ in CALLS]
    for answer, (name, took_s, accesses, fault, body) in zip(answers, notes.calls, strict=True):
        result: dict[str | None, float] = {}
        for access in accesses:
            result[access.index_name] = result.get(access.index_name, 0.0) + access.reads + access.writes
        assert result == _units(answer["ConsumedCapacity"]), name
        assert fault is None
        assert took_s > 0
        assert json.loads(body)["ReturnConsumedCapacity"] == "INDEXES"


def test_a_refusal_is_reported_with_its_fault_and_reasons() -> None:
    """Faults of the request, of a condition and of a transaction are reported, and raised as before."""
    notes = Notes()
    guarded = {"TableName": "Orders", "Item": ITEM, "ConditionExpression": "attribute_not_exists(pk)"}
    with Engine.open() as engine:
        engine.call("CreateTable", ORDERS)
        engine.call("PutItem", {"TableName": "Orders", "Item": ITEM})
        engine.observe(notes)
        for name, request in (
            ("PutItem", guarded),
            ("TransactWriteItems", {"TransactItems": [{"Put": guarded}]}),
            ("GetItem", {"TableName": "Nowhere", "Key": KEY}),
            ("Nonsense", {}),
        ):
            with pytest.raises(Fault):
                engine.call(name, request)

    codes = [fault.code for _, _, _, fault, _ in notes.calls if fault is not None]
    assert codes[:3] == [
        "ConditionalCheckFailedException",
        "TransactionCanceledException",
        "ResourceNotFoundException",
    ]
    assert len(codes) == 4
    cancelled = notes.calls[1][3]
    assert isinstance(cancelled, TransactionCanceledFault)
    assert [reason.code for reason in cancelled.reasons] == ["ConditionalCheckFailed"]


def test_a_gathered_write_is_reported_when_it_is_durable() -> None:
    """Until the commit no one is answered, so no one is reported; an answer that may be lost waits too."""
    notes = Notes()
    with Engine.open() as engine:
        engine.call("CreateTable", ORDERS)
        engine.observe(notes)
        engine.collect_writes()
        engine.call("PutItem", {"TableName": "Orders", "Item": ITEM})
        engine.call("GetItem", {"TableName": "Orders", "Key": KEY})
        before = notes.operations
        engine.commit()

        assert before == []
        assert notes.operations == ["PutItem", "GetItem"]


def test_a_gathered_write_that_is_undone_is_reported_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that fails fails every call that waited for it."""
    notes = Notes()
    with Engine.open() as engine:
        engine.call("CreateTable", ORDERS)
        engine.observe(notes)
        engine.collect_writes()
        engine.call("PutItem", {"TableName": "Orders", "Item": ITEM})

        def full(self: Store) -> None:
            raise StoreFull("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", full)
            with pytest.raises(StoreFull):
                engine.commit()

    ((operation, _, _, fault, _),) = notes.calls
    assert operation == "PutItem"
    assert fault is not None
    assert fault.code == "InternalServerError"


def test_threads_and_groups_tell_each_call_once_and_lose_nothing(tmp_path: Path) -> None:
    """Threads that wait for the disk and threads that gather by name: every call is reported once, in its caller's order."""
    notes = Notes()
    path = tmp_path / "orders.tavola"
    each = 60

    def put(engine: Engine, who: str, by: object) -> None:
        for place in range(each):
            item = {"pk": {"S": who}, "sk": {"S": f"{place:03}"}}
            body = json.dumps({"TableName": "Orders", "Item": item}).encode()
            engine.execute("PutItem", body, participant=by)
            if by is not None and place % 4 == 3:
                engine.commit(by)

    with Engine.open(path) as engine:
        engine.call("CreateTable", ORDERS)
        engine.observe(notes)
        threads = [
            Thread(target=put, args=(engine, who, who if who.startswith("gathers") else None))
            for who in ("waits-a", "waits-b", "gathers-a", "gathers-b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not engine.dirty

    keys = [json.loads(body)["Item"] for _, _, _, fault, body in notes.calls if fault is None]
    result = [(key["pk"]["S"], key["sk"]["S"]) for key in keys]
    assert len(notes.calls) == len(set(result)) == 4 * each
    for who in ("waits-a", "waits-b", "gathers-a", "gathers-b"):
        mine = [sk for pk, sk in result if pk == who]
        assert mine == sorted(mine)
    with Engine.open(path) as engine:
        assert engine.call("Scan", {"TableName": "Orders", "Select": "COUNT"})["Count"] == 4 * each


def test_answers_and_contents_are_the_same_whether_someone_looks_or_not(tmp_path: Path) -> None:
    """To the byte: every answer, every refusal, and what the file has when it is opened again."""
    seen = []
    guarded = {"TableName": "Orders", "Item": ITEM, "ConditionExpression": "attribute_exists(pk)"}
    calls = [*CALLS, ("PutItem", guarded), ("Nonsense", {}), ("GetItem", {"TableName": "Gone", "Key": KEY})]
    for name, observer in (("alone", None), ("watched", Notes())):
        path = tmp_path / name
        answers: list[bytes | tuple[str, str]] = []
        with Engine.open(path) as engine:
            engine.call("CreateTable", ORDERS)
            engine.observe(observer)
            for operation, request in calls:
                body = json.dumps(
                    {**request, "ReturnConsumedCapacity": "INDEXES"} if request else {}
                ).encode()
                try:
                    answers.append(engine.execute(operation, body))
                except Fault as fault:
                    answers.append((fault.code, fault.message or ""))
        with Engine.open(path) as engine:
            answers.append(engine.execute("Scan", b'{"TableName": "Orders"}'))
        seen.append(answers)

    assert seen[0] == seen[1]


def test_an_observer_that_fails_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    """The call is answered, the failure is logged once, and the observer is reported nothing more."""
    times = []

    class Broken:
        def note(self, *result: object) -> None:
            times.append(result)
            raise ZeroDivisionError

    with Engine.open() as engine, caplog.at_level(logging.ERROR, "tavola.engine"):
        engine.observe(Broken())
        engine.call("CreateTable", ORDERS)
        engine.call("PutItem", {"TableName": "Orders", "Item": ITEM})
        answer = engine.call("GetItem", {"TableName": "Orders", "Key": KEY})

    assert answer["Item"] == ITEM
    assert len(times) == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_the_callers_own_visit_is_reported_as_if_no_one_looked() -> None:
    """A context that records accesses, as the access log's does, gets the same ones, behind those that it has."""
    seen = []
    for observer in (None, Notes()):
        with Engine.open() as engine:
            engine.call("CreateTable", ORDERS)
            engine.observe(observer)
            context = RequestContext(accesses=[])
            for name, request in CALLS:
                engine.call(name, request, context=context)
            units: dict[tuple[str, str | None, bytes | None], tuple[float, float]] = {}
            for access in context.accesses or ():
                place = access.table, access.index_name, access.key
                reads, writes = units.get(place, (0.0, 0.0))
                units[place] = reads + access.reads, writes + access.writes
            seen.append((units, context.denied))

    assert seen[0] == seen[1]
    assert seen[0][0]


def test_the_access_log_is_the_same_whether_someone_looks_or_not(tmp_path: Path) -> None:
    """To the byte, with a write that moves an index entry and a refusal among the calls."""
    written = []
    for name, observer in (("alone", None), ("watched", Notes())):
        folder = tmp_path / name
        folder.mkdir()
        with attended(folder) as server:
            server.send_request("CreateTable", ORDERS)
            assert isinstance(server.engine, Engine)
            server.engine.observe(observer)
            for operation, request in CALLS:
                server.send_request(operation, request)
            status, _ = server.send_request("GetItem", {"TableName": "Nowhere", "Key": KEY})
            written.append(server.text())
        assert status == 400

    assert written[0] == written[1]
    assert len(written[0].splitlines()) == len(CALLS) + 2
