"""Statements in the engine: guards, what is noted, and the past."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, ItemAccess, RequestContext
from tavola.protocol.arns import Scope
from tavola.protocol.faults import AccessDeniedFault, ValidationFault

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def engine() -> Engine:
    """An engine with a table and two items."""
    made = Engine.open()
    made.call("CreateTable", TABLE)
    for key in "ab":
        made.call("PutItem", {"TableName": "tab", "Item": {"pk": {"S": key}, "v": {"N": "1"}}})
    return made


class _Guard:
    """Denies the statements of a batch that mention a key."""

    def __init__(self, denied: str) -> None:
        self.denied = denied

    def check(self, operation: str, request: Any, resources: Any) -> None:
        assert operation == "BatchExecuteStatement"

    def check_statement(self, operation: str, place: int, request: Any, resources: Any) -> None:
        assert resources.facts("tab").hash == "pk"
        if self.denied in request.statements[place].statement:
            raise AccessDeniedFault("not for you")


def test_access_is_denied_by_statement(engine: Engine) -> None:
    """A statement of a batch that is denied is reported so by itself, and the others are carried out."""
    context = RequestContext(guard=_Guard("'a'"))
    statements = [{"Statement": f"UPDATE tab SET v = 2 WHERE pk = '{key}'"} for key in "ab"]

    answer = engine.call("BatchExecuteStatement", {"Statements": statements}, context=context)

    assert answer["Responses"] == [
        {"Error": {"Code": "AccessDenied", "Message": "not for you"}},
        {"TableName": "tab"},
    ]
    kept = engine.call("GetItem", {"TableName": "tab", "Key": {"pk": {"S": "a"}}})
    assert kept["Item"]["v"] == {"N": "1"}


def test_what_is_touched_is_noted(engine: Engine) -> None:
    """Statements note what they access and consume as native requests do."""

    def touched(operation: str, request: dict[str, Any]) -> list[tuple[str | None, bool, float, float]]:
        noted: list[ItemAccess] = []
        engine.call(operation, request, context=RequestContext(accesses=noted))
        return [(each.index_name, each.key is None, each.reads, each.writes) for each in noted]

    query = {"Statement": "SELECT * FROM tab WHERE pk IN ['a', 'b']"}
    update = "UPDATE tab SET v = v + 1 WHERE pk = 'a'"
    read = "SELECT * FROM tab WHERE pk = 'a'"

    assert touched("ExecuteStatement", query) == [(None, False, 0.5, 0.0)] * 2
    assert touched("ExecuteStatement", {"Statement": "SELECT * FROM tab"}) == [(None, True, 0.5, 0.0)]
    assert touched("ExecuteStatement", {"Statement": update}) == [(None, False, 0.0, 1.0)]
    assert touched("BatchExecuteStatement", {"Statements": [{"Statement": read}]}) == [
        (None, False, 0.5, 0.0)
    ]
    assert touched("ExecuteTransaction", {"TransactStatements": [{"Statement": update}]}) == [
        (None, False, 0.0, 2.0)
    ]
    assert touched("ExecuteTransaction", {"TransactStatements": [{"Statement": read}]}) == [
        (None, False, 2.0, 0.0)
    ]


def test_a_token_is_for_its_own_account(engine: Engine) -> None:
    """A page token handed to another account is no token."""
    other = Scope("222222222222", "us-east-1")
    engine.call("CreateTable", TABLE, other)
    first = engine.call("ExecuteStatement", {"Statement": "SELECT * FROM tab", "Limit": 1})

    with pytest.raises(ValidationFault, match="Invalid NextToken"):
        engine.call(
            "ExecuteStatement", {"Statement": "SELECT * FROM tab", "NextToken": first["NextToken"]}, other
        )


def test_tokens_survive_a_restart(tmp_path: Any) -> None:
    """A page token is good after the engine was closed and opened again."""
    path = tmp_path / "store"
    with Engine.open(path) as first:
        first.call("CreateTable", TABLE)
        for key in "ab":
            first.call("PutItem", {"TableName": "tab", "Item": {"pk": {"S": key}}})
        page = first.call("ExecuteStatement", {"Statement": "SELECT * FROM tab", "Limit": 1})
    with Engine.open(path) as second:
        rest = second.call(
            "ExecuteStatement", {"Statement": "SELECT * FROM tab", "NextToken": page["NextToken"]}
        )

    assert sorted(each["pk"]["S"] for each in page["Items"] + rest["Items"]) == ["a", "b"]


def test_the_past_is_only_read() -> None:
    """A statement as of a time reads what stood then and writes nothing."""
    clock = ManualClock()
    engine = Engine.open(clock=clock)
    engine.call("CreateTable", TABLE)
    specification = {"PointInTimeRecoveryEnabled": True}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "tab", "PointInTimeRecoverySpecification": specification}
    )
    clock.advance(10)
    engine.call("ExecuteStatement", {"Statement": "INSERT INTO tab VALUE {'pk': 'a', 'v': 1}"})
    clock.advance(10)
    context = RequestContext(as_of_us=int(clock.now() * 1_000_000))
    clock.advance(10)
    engine.call("ExecuteStatement", {"Statement": "UPDATE tab SET v = 2 WHERE pk = 'a'"})

    past = engine.call("ExecuteStatement", {"Statement": "SELECT v FROM tab WHERE pk = 'a'"}, context=context)
    with pytest.raises(ValidationFault, match="cannot write"):
        engine.call("ExecuteStatement", {"Statement": "DELETE FROM tab WHERE pk = 'a'"}, context=context)

    assert past["Items"] == [{"v": {"N": "1"}}]
    assert engine.call("ExecuteStatement", {"Statement": "SELECT v FROM tab"})["Items"] == [{"v": {"N": "2"}}]
