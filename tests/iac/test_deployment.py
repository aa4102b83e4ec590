"""Deployment: changes made in the order that DynamoDB takes, nothing lost, and nothing fought over with whoever else sets a table up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tavola import Connection, Engine, Scaling, connect
from tavola.client.table_changes import KmsKeyMissing, TableUnusable
from tavola.iac import DeployError, Deployment, DeployPermissions, backfill_progress, compare_live
from tavola.model.document import Design, IndexDesign
from tavola.protocol.faults import ResourceNotFoundFault
from tests.iac.test_changes import KEY, TABLE, keyed_otherwise

PLAIN = replace(TABLE, entities=(), collections=(), consumers=())
(LISTING,) = (index for index in TABLE.indexes if index.name == "listing")


def table(*indexes: IndexDesign, types: dict[str, str] | None = None, **settings: Any) -> Design:
    """Return a design of one table with these indexes and settings."""
    key_types: Any = {"pk": "S", "sk": "S", **(types or {})}
    told = replace(PLAIN, indexes=indexes, key_types=key_types, settings=replace(PLAIN.settings, **settings))
    return Design((told,))


def gsi(name: str, *attributes: str) -> IndexDesign:
    """Return a global index of attributes of its own."""
    return replace(LISTING, name=name, label=name, hash=attributes[:1], range=attributes[1:])


def deploy(db: Any, design: Design, **allowed: bool) -> list[str]:
    """Make all that is allowed, and return what is left, each with what it needs."""
    work = Deployment(db, design, allowed=DeployPermissions(**allowed))
    changes = [change for each in work.compare() for change in each.changes]
    work.apply(*(change for change in changes if work.required_option(change) is None))
    return [
        f"{change.kind}: {work.required_option(change)}" for each in work.compare() for change in each.changes
    ]


@pytest.fixture
def db() -> Any:
    """A database of this process."""
    with Engine.open() as engine, connect(engine) as made:
        yield made


def described(db: Any) -> dict[str, Any]:
    """Return what is told of the table."""
    found: dict[str, Any] = db.call("DescribeTable", {"TableName": "shop"})["Table"]
    return found


def test_billing_is_settled_before_an_index_is_added(db: Any) -> None:
    """A new index has units if the table has: provisioned first, where that is allowed; on demand without them, where it is not."""
    types = {"a": "S", "b": "S"}
    deploy(db, table(gsi("one", "a"), types={"a": "S"}))
    now = table(gsi("one", "a"), gsi("two", "b"), types=types, read_units=5, write_units=5)

    assert deploy(db, now) == ["billing: --drop"]
    assert {index["IndexName"] for index in described(db)["GlobalSecondaryIndexes"]} == {"one", "two"}
    assert deploy(db, now, drop=True) == []
    units = [
        index["ProvisionedThroughput"]["ReadCapacityUnits"]
        for index in described(db)["GlobalSecondaryIndexes"]
    ]
    assert units == [5, 5]


def test_an_index_is_added_with_the_units_that_a_table_is_changed_to(db: Any) -> None:
    """Both in one go: this design was never deployed by halves."""
    deploy(db, table(gsi("one", "a"), types={"a": "S"}))

    now = table(gsi("one", "a"), gsi("two", "b"), types={"a": "S", "b": "S"}, read_units=5, write_units=5)
    assert deploy(db, now, drop=True) == []


def test_an_index_goes_before_another_comes(db: Any) -> None:
    """A table with as many indexes as there may be gives one up before it gets one."""
    types = {f"a{number}": "S" for number in range(21)}
    indexes = [gsi(f"index{number}", f"a{number}") for number in range(21)]
    deploy(db, table(*indexes[:20], types=types))

    assert deploy(db, table(*indexes[1:], types=types), drop=True) == []


def test_indexes_that_share_an_attribute_go_before_either_comes_anew(db: Any) -> None:
    """An attribute has one type in a table: none of its indexes is made anew while another still has the old one."""
    indexes = (gsi("one", "day"), gsi("two", "day", "sk"))
    deploy(db, table(*indexes, types={"day": "S"}))

    assert deploy(db, table(*indexes, types={"day": "N"}), replace=True) == []
    assert {index["IndexName"] for index in described(db)["GlobalSecondaryIndexes"]} == {"one", "two"}


def test_indexes_that_share_an_attribute_are_not_changed_apart(db: Any) -> None:
    """One of them alone would be dropped and could not be made anew: it is refused, and nothing is lost."""
    indexes = (gsi("one", "day"), gsi("two", "day", "sk"))
    deploy(db, table(*indexes, types={"day": "S"}))
    work = Deployment(db, table(*indexes, types={"day": "N"}), allowed=DeployPermissions(replace=True))
    (found,) = work.compare()

    with pytest.raises(DeployError, match="apply it together with the change of two"):
        work.apply(found.changes[0])
    assert len(described(db)["GlobalSecondaryIndexes"]) == 2


def test_an_index_is_not_dropped_to_be_made_anew_where_it_cannot_be(db: Any) -> None:
    """An index that stays, for nobody allows it to go, holds the attribute to its type: the other stays as well."""
    deploy(db, table(gsi("one", "day"), gsi("two", "day", "sk"), types={"day": "S"}))
    now = table(gsi("one", "day"), types={"day": "N"})

    assert sorted(deploy(db, now, replace=True)) == ["drop index: --drop", "replace index: --drop"]
    assert len(described(db)["GlobalSecondaryIndexes"]) == 2
    assert deploy(db, now, drop=True) == []


def test_a_table_is_never_deleted(db: Any) -> None:
    """Whatever is allowed, a table of another key is somebody's to copy: it is the one change told of it, and none is made."""
    db.call("CreateTable", _made())
    db.call("PutItem", {"TableName": "shop", "Item": {"pk": {"S": "1"}, "sk": {"S": "1"}}})
    work = Deployment(db, keyed_otherwise(), allowed=DeployPermissions(drop=True, replace=True))
    changes = [change for each in work.compare() for change in each.changes]

    assert [(change.kind, work.required_option(change)) for change in changes] == [
        ("replace table", "a manual copy")
    ]
    with pytest.raises(DeployError, match=r"needs a manual copy\. Deploy never deletes a table"):
        work.apply(*changes)
    assert db.call("Scan", {"TableName": "shop"})["Count"] == 1


def test_what_is_not_allowed_is_refused_before_anything_is_done(db: Any) -> None:
    """Changes that are asked for together are made together, or none of them is."""
    deploy(db, table(gsi("one", "a"), types={"a": "S"}))
    work = Deployment(db, table(gsi("two", "b"), types={"b": "S"}))
    changes = [change for each in work.compare() for change in each.changes]

    with pytest.raises(DeployError, match="--drop"):
        work.apply(*changes)
    assert [index["IndexName"] for index in described(db)["GlobalSecondaryIndexes"]] == ["one"]


def _made() -> dict[str, Any]:
    return {
        "TableName": "shop",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    }


@pytest.mark.parametrize("key", ["alias/aws/dynamodb", "alias/mine", KEY, KEY.rpartition("/")[2]])
def test_a_key_settles(db: Any, key: str) -> None:
    """However a key is named, a table that has it is as the design says; AWS's own is named by naming none."""
    asked: list[dict[str, Any]] = []
    call = db.backend.call

    def watched(operation: str, request: dict[str, Any]) -> Any:
        asked.append(request)
        return call(operation, request)

    db.backend.call = watched
    assert deploy(db, table(encryption=key)) == []
    assert deploy(db, table(encryption=key)) == []
    told = [request["SSESpecification"] for request in asked if "SSESpecification" in request]
    assert [each.get("KMSMasterKeyId") for each in told] == [None if key == "alias/aws/dynamodb" else key]


@pytest.mark.parametrize("key", ["new", "${TableKey.Arn}"])
def test_a_key_that_nobody_has_made_is_refused(db: Any, key: str) -> None:
    """A key that infrastructure makes is no key id: the table is not made without it; one that has a key of KMS is as the design says."""
    with pytest.raises(KmsKeyMissing, match="create a KMS key and use"):
        Deployment(db, table(encryption=key)).compare()
    assert db.call("ListTables", {})["TableNames"] == []

    deploy(db, table(encryption=KEY))
    assert deploy(db, table(encryption=key)) == []


@pytest.mark.parametrize("units", [5, 50, 400, 500])
def test_units_that_scaling_has_set_are_its_own_affair(db: Any, units: int) -> None:
    """Between the bounds of its scaling a table is as the design says, at night and at noon."""
    design = table(read_units=50, write_units=50, scaling=Scaling(500, 500, 5, 5))
    deploy(db, design)
    if units != 50:
        throughput = {"ReadCapacityUnits": units, "WriteCapacityUnits": 50}
        db.call("UpdateTable", {"TableName": "shop", "ProvisionedThroughput": throughput})

    (found,) = compare_live(db, design)

    assert found.changes == ()
    assert "Auto scaling is neither compared nor deployed here" in found.notes[0]


def test_units_outside_the_bounds_of_scaling_are_brought_to_them(db: Any) -> None:
    """Too few are raised at once, too many lowered when that is allowed."""
    deploy(db, table(read_units=2, write_units=900))
    design = table(read_units=50, write_units=50, scaling=Scaling(500, 500, 5, 5))

    assert deploy(db, design) == ["billing: --drop"]
    assert deploy(db, design, drop=True) == []
    told = described(db)["ProvisionedThroughput"]
    assert (told["ReadCapacityUnits"], told["WriteCapacityUnits"]) == (5, 500)


def test_a_table_with_replicas_has_the_stream_that_they_need(db: Any) -> None:
    """It is made with both images, as infrastructure makes it, and a plan does not take that away; the replica is left to it."""
    design = table(replicas=("eu-west-1",), stream=None)

    assert deploy(db, design) == ["replica: infrastructure"]
    assert described(db)["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"


class Answering:
    """A backend that tells one thing of a table after another."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)

    def call(self, operation: str, request: Any) -> dict[str, Any]:
        """Return the next state; none is left: there is no table."""
        assert operation == "DescribeTable"
        if not self._states:
            raise ResourceNotFoundFault("Requested resource not found: Table: shop not found")
        return {"Table": {"TableName": "shop", "TableStatus": self._states.pop(0)}}

    def close(self) -> None:
        """Leave nothing open."""


def test_a_table_that_is_being_deleted_is_made_again() -> None:
    """Waited for and gone, it is a table that is not there."""
    work = Deployment(Connection(Answering("DELETING", "DELETING")), table())

    (found,) = work.compare()

    assert [change.kind for change in found.changes] == ["create"]


def _polled(state: str) -> None:
    Deployment(Connection(Answering(state, state)), table()).compare()


def _followed(state: str) -> None:
    backfill_progress({"TableName": "shop", "TableStatus": state})


@pytest.mark.parametrize("state", ["ARCHIVED", "INACCESSIBLE_ENCRYPTION_CREDENTIALS"])
@pytest.mark.parametrize("wait", [_polled, _followed])
def test_a_state_that_never_ends_is_not_waited_for(state: str, wait: Callable[[str], None]) -> None:
    """A table that becomes active by no waiting is told at once, with what to do."""
    with pytest.raises(
        TableUnusable, match=f"The table shop is {state}, and does not become active by itself"
    ):
        wait(state)


def test_several_indexes_are_several_updates_of_a_stack(db: Any) -> None:
    """CloudFormation takes one index an update, which is told where there is more than one."""
    deploy(db, table())

    (found,) = compare_live(db, table(gsi("one", "a"), gsi("two", "b"), types={"a": "S", "b": "S"}))

    assert "2 updates" in found.notes[0]


def test_a_design_of_tables_knows_them_by_their_other_names(db: Any) -> None:
    """A table that goes by another name there is made and compared under it."""
    work = Deployment(db, table(), names={"shop": "store"})
    work.apply(*(change for each in work.compare() for change in each.changes))

    assert db.call("ListTables", {})["TableNames"] == ["store"]
    assert [each.changes for each in work.compare()] == [()]
