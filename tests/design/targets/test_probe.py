"""The probe: what a server can do, found out; each fault of a server is seen by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tavola.client.connection import Connection
from tavola.clock import SYSTEM_CLOCK
from tavola.connections import connect
from tavola.design.targets import CapabilityAnswer, ProbeError, capabilities, probe, targets
from tavola.entropy import SeededEntropy
from tavola.protocol.faults import (
    AccessDeniedFault,
    BackupInUseFault,
    ExpiredTokenFault,
    Fault,
    InternalServerFault,
    LimitExceededFault,
    ResourceInUseFault,
    ServiceUnavailableFault,
    ThrottlingFault,
    ValidationFault,
)

UNPROBED = {"provisioned-throttling", "export", "iam.leading-keys", "global-tables"}


@pytest.fixture
def db() -> Iterator[Connection]:
    """An engine of our own."""
    with connect("memory:") as connection:
        yield connection


class Faulty:
    """A real engine with a fault: what it is asked, or what it answers, passes through a function first."""

    def __init__(self, inner: Any, change: Callable[[str, dict[str, Any], Any], dict[str, Any]]) -> None:
        self.inner = inner
        self.change = change

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.change(operation, dict(request), self.inner)

    def close(self) -> None:
        self.inner.close()


def probed(backend: Any) -> Mapping[str, CapabilityAnswer]:
    """Return what a probe finds of a server."""
    found, left = probe(
        backend, "a server", clock=SYSTEM_CLOCK, entropy=SeededEntropy(1), wait_s=0.2, clear_s=5
    )
    assert left == ()
    return found.answers


def test_our_engine_does_what_its_file_says(db: Connection) -> None:
    """The probe of our own engine agrees with the file of it, and leaves no table behind."""
    answers = probed(db.backend)

    told = targets()["tavola"]
    for name in set(capabilities()) - UNPROBED - {"table-class"}:
        assert answers[name].value == told.answer(name).value, name
    assert {name for name in capabilities() if answers[name].value == "unknown"} == UNPROBED
    assert db.call("ListTables", {})["TableNames"] == []


def without(*operations: str) -> Callable[[str, dict[str, Any], Any], dict[str, Any]]:
    """A server that lacks operations."""

    def change(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
        if operation in operations:
            raise ValidationFault("Unsupported operation.")
        return inner.call(operation, request)  # type: ignore[no-any-return]

    return change


def faulty(fault: type[Fault], *operations: str) -> Callable[[str, dict[str, Any], Any], dict[str, Any]]:
    """A server that answers some operations with a fault."""

    def change(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
        if operation in operations:
            raise fault("not now")
        return inner.call(operation, request)  # type: ignore[no-any-return]

    return change


@pytest.mark.parametrize(
    ("fault", "operation", "name"),
    [
        (AccessDeniedFault, "ExecuteStatement", "partiql"),
        (ThrottlingFault, "TransactWriteItems", "transactions.write"),
        (InternalServerFault, "TransactGetItems", "transactions.read"),
        (ServiceUnavailableFault, "BatchWriteItem", "batch-write"),
        (ResourceInUseFault, "UpdateTable", "table-class"),
        (LimitExceededFault, "UpdateTable", "index.add-later"),
        (AccessDeniedFault, "DescribeTimeToLive", "ttl"),
        (ExpiredTokenFault, "TagResource", "tags"),
        (ThrottlingFault, "CreateBackup", "backups"),
        (ValidationFault, "GetItem", "numbers"),  # which is not what is to be found out
    ],
)
def test_what_is_denied_or_busy_is_unknown(
    db: Connection, fault: type[Fault], operation: str, name: str
) -> None:
    """A denial, a throttle, an outage and a busy table prove nothing: the answer is unknown, with the fault."""
    found, _ = probe(
        Faulty(db.backend, faulty(fault, operation)),
        "a server",
        clock=SYSTEM_CLOCK,
        entropy=SeededEntropy(1),
        wait_s=0.1,
        clear_s=2,
    )

    assert found.answer(name).value == "unknown"
    assert fault.code in found.answer(name).remark


def test_a_conditional_write_that_is_throttled_is_unknown(db: Connection) -> None:
    """A fault that is no failed condition does not say that conditions are ignored."""

    def change(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
        if "ConditionExpression" in request:
            raise ThrottlingFault("too much")
        return inner.call(operation, request)  # type: ignore[no-any-return]

    assert probed(Faulty(db.backend, change))["conditional-writes"].value == "unknown"


def busy(
    times: int, fault: type[Fault], *operations: str
) -> Callable[[str, dict[str, Any], Any], dict[str, Any]]:
    """A server that is busy the first times that it is asked to remove something."""
    asked: dict[str, int] = {}

    def change(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
        if operation in operations:
            what = str(request)
            asked[what] = asked.get(what, 0) + 1
            if asked[what] <= times:
                raise fault("still busy")
        return inner.call(operation, request)  # type: ignore[no-any-return]

    return change


@pytest.mark.parametrize(
    ("fault", "operation"),
    [
        (ResourceInUseFault, "DeleteTable"),
        (BackupInUseFault, "DeleteBackup"),
        (ThrottlingFault, "DeleteTable"),
    ],
)
def test_what_is_busy_is_removed_with_patience(db: Connection, fault: type[Fault], operation: str) -> None:
    """A table or a backup that cannot be removed at once is removed when it can be, however short the waits are."""
    _, left = probe(
        Faulty(db.backend, busy(2, fault, operation)),
        "a server",
        clock=SYSTEM_CLOCK,
        entropy=SeededEntropy(1),
        wait_s=0.1,
        clear_s=20,
    )

    assert left == ()
    assert db.call("ListTables", {})["TableNames"] == []
    assert db.call("ListBackups", {})["BackupSummaries"] == []


def test_a_backup_that_stays_is_told(db: Connection) -> None:
    """A backup that cannot be removed is named, and was made all the same."""
    found, left = probe(
        Faulty(db.backend, faulty(BackupInUseFault, "DeleteBackup")),
        "a server",
        clock=SYSTEM_CLOCK,
        entropy=SeededEntropy(1),
        wait_s=0.1,
        clear_s=0.2,
    )

    assert found.answer("backups").value == "yes"
    assert left == tuple(each["BackupArn"] for each in db.call("ListBackups", {})["BackupSummaries"])
    assert len(left) == 1


def test_a_kept_setting_is_said_to_be_no_more(db: Connection) -> None:
    """Where only a setting was seen to be kept, the answer says what was not tried."""
    answers = probed(db.backend)

    for name in ("ttl", "recovery", "encryption", "table-class", "backups"):
        assert answers[name].value == "yes"
        assert "not" in answers[name].remark


def all_projected(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
    """A server whose indexes hold everything."""
    if operation == "CreateTable":
        for index in request.get("GlobalSecondaryIndexes", []):
            index["Projection"] = {"ProjectionType": "ALL"}
    return inner.call(operation, request)  # type: ignore[no-any-return]


def conditions_ignored(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
    """A server that does not look at conditions."""
    request.pop("ConditionExpression", None)
    return inner.call(operation, request)  # type: ignore[no-any-return]


def floats(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
    """A server that keeps numbers as floats."""
    answer = inner.call(operation, request)
    item = answer.get("Item", {})
    if "n" in item:
        item["n"] = {"N": repr(float(item["n"]["N"]))}
    return answer  # type: ignore[no-any-return]


def modified_only(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
    """A server that tells every change as MODIFY."""
    answer = inner.call(operation, request)
    for record in answer.get("Records", []):
        record["eventName"] = "MODIFY"
    return answer  # type: ignore[no-any-return]


def halves(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
    """A server whose transactions are plain puts, one after the other."""
    if operation != "TransactWriteItems":
        return inner.call(operation, request)  # type: ignore[no-any-return]
    for member in request["TransactItems"]:
        inner.call("PutItem", member["Put"])
    return {}


@pytest.mark.parametrize(
    ("fault", "name", "value"),
    [
        (without("TransactWriteItems"), "transactions.write", "no"),
        (halves, "transactions.write", "partial"),
        (without("TransactGetItems"), "transactions.read", "no"),
        (without("ExecuteStatement"), "partiql", "no"),
        (without("GetRecords"), "streams", "no"),
        (without("CreateBackup"), "backups", "no"),
        (without("UpdateContinuousBackups"), "recovery", "no"),
        (without("SearchVectors"), "vectors", "no"),
        (all_projected, "index.projection", "partial"),
        (conditions_ignored, "conditional-writes", "partial"),
        (floats, "numbers", "partial"),
        (modified_only, "streams.events", "partial"),
    ],
)
def test_a_fault_is_seen(
    db: Connection, fault: Callable[[str, dict[str, Any], Any], dict[str, Any]], name: str, value: str
) -> None:
    """A server that lacks something or does it otherwise is found out, and the rest is as it was."""
    answers = probed(Faulty(db.backend, fault))

    assert answers[name].value == value
    assert answers[name].remark
    assert answers["ttl"].value == "yes"
    assert db.call("ListTables", {})["TableNames"] == []


def test_a_strange_answer_is_unknown(db: Connection) -> None:
    """An answer of another form proves nothing."""

    def strange(operation: str, request: dict[str, Any], inner: Any) -> dict[str, Any]:
        answer = inner.call(operation, request)
        return {"Other": answer} if operation == "TransactGetItems" else answer

    assert probed(Faulty(db.backend, strange))["transactions.read"].value == "unknown"


def test_a_server_without_tables_cannot_be_probed(db: Connection) -> None:
    """Where cannot create a table nothing can be found out, and it says so."""
    with pytest.raises(ProbeError, match="cannot create a table"):
        probed(Faulty(db.backend, without("CreateTable")))


def test_a_table_that_stays_is_told(db: Connection) -> None:
    """What could not be removed is named, for its owner to remove."""
    _, left = probe(
        Faulty(db.backend, without("DeleteTable")),
        "a server",
        clock=SYSTEM_CLOCK,
        entropy=SeededEntropy(1),
        wait_s=0.1,
        clear_s=0.1,
    )

    assert set(left) == set(db.call("ListTables", {})["TableNames"])
    assert left
