"""Sweeps beside concurrent writers report the items they gave up on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, Gsi, PrimaryKey, Query, RetryPolicy, Table, attr, connect


class Yard(Table, name="busy-yard"):
    """Where jobs are counted all the time."""

    by_owner = Gsi(pk="g1pk", sk="g1sk")


class Job(Entity, table=Yard):
    """A job with a count that others raise."""

    job_id: Attr[str]
    owner: Attr[str]
    runs: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
        job_id: str

    class ByOwner(Query["Job"], on=Yard.by_owner, pk="OWNER#{owner}", sk="{runs:06}"):
        owner: str


class Restless:
    """A backend that increments the count of the one job before every write."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def call(self, operation: str, request: Any) -> Any:
        """Return the answer of the other, after the count was raised."""
        if operation == "UpdateItem" and request["Key"]["pk"] == {"S": "JOB#j1"}:
            raised = {"UpdateExpression": "ADD runs :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
            self._inner.call(operation, {"TableName": request["TableName"], "Key": request["Key"], **raised})
        return self._inner.call(operation, request)

    def close(self) -> None:
        """Leave the other open."""


@pytest.fixture
def memory() -> Iterator[Connection]:
    """Two jobs whose keys in the index are not what they should be."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0.0)) as db:
        db.create_tables(Yard)
        for number in (1, 2):
            db.put(Job(job_id=f"j{number}", owner="ann"))
            key = {"pk": {"S": f"JOB#j{number}"}, "sk": {"S": "JOB"}}
            stale = {"UpdateExpression": "SET g1sk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}
            db.call("UpdateItem", {"TableName": "busy-yard", "Key": key, **stale})
        yield db


def restless(memory: Connection) -> Connection:
    """Return a connection beside which another writer changes the item."""
    return Connection(Restless(memory.backend), "a busy table", memory.context)


def test_a_backfill_reports_skipped_items(memory: Connection) -> None:
    """An item that changes before each of its rewrites is skipped and reported."""
    report = restless(memory).backfill(Yard)

    assert (report.written, report.left_count) == (1, 1)
    assert report.left[0].key["pk"] == {"S": "JOB#j1"}
    assert "other writers changed it" in report.left[0].reason
    assert "1 could not be rewritten" in str(report)


def test_a_repair_reports_skipped_items(memory: Connection) -> None:
    """Repairs of keys likewise."""
    report = restless(memory).verify_keys(Yard, repair=True)

    assert (report.repaired, report.counts["left"]) == (1, 1)
    assert "1 left" in str(report)
    assert [fault.key["pk"]["S"] for fault in memory.verify_keys(Yard).problems] == ["JOB#j1"]
