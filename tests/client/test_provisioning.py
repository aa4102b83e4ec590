"""Tables are created as their models declare, and updated when the models change."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    Lsi,
    ModelError,
    PrimaryKey,
    Query,
    Table,
    TableMismatch,
    TableMissing,
    connect,
)
from tavola.protocol.faults import ValidationFault


def design(*, indexes: dict[str, Any], key: str = "pk", **settings: Any) -> SimpleNamespace:
    """Return a table with an entity in it and in each of its indexes."""
    depot: Any = type("Depot", (Table,), dict(indexes), name="depot", pk=key, **settings)

    class Crate(Entity, table=depot):
        """A crate in the depot."""

        crate_id: Attr[str]
        size: Attr[int]
        place: Attr[str]

        class Key(PrimaryKey["Crate"], pk="CRATE#{crate_id}", sk="CRATE"):
            crate_id: str

        if "by_size" in indexes:

            class BySize(Query["Crate"], on=depot.by_size):
                size: int

        if "by_place" in indexes:

            class ByPlace(Query["Crate"], on=depot.by_place, pk="PLACE#{place}", sk="{size:04}#{crate_id}"):
                place: str

    return SimpleNamespace(Depot=depot, Crate=Crate)


def plain() -> SimpleNamespace:
    """Return the design that the others differ from."""
    return design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")})


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Any:
    """A connection with the plain table."""
    found = opened()
    found.create_tables(plain().Depot)
    return found


def described(db: Any) -> dict[str, Any]:
    """Return the table as DynamoDB describes it."""
    name = next(name for name in db.call("ListTables")["TableNames"] if name.endswith("depot"))
    found: dict[str, Any] = db.call("DescribeTable", {"TableName": name})["Table"]
    return found


def kinds(changes: Any) -> list[str]:
    """Return the kinds of changes in order."""
    return [change.kind for change in changes.changes]


def test_a_table_as_its_model_needs_nothing(db: Any) -> None:
    """A comparison of a table with the model it was made from finds no change."""
    changes = db.table_changes(plain().Depot)

    assert not changes
    assert "matches its model" in str(changes)
    assert not db.apply_changes(plain().Depot)


def test_a_new_table_with_every_setting_needs_no_changes(opened: Any) -> None:
    """table_changes finds every setting that create_tables made."""
    db = opened()
    whole = design(
        indexes={"by_place": Gsi(pk="g1pk", sk="g1sk", projection=("size",)), "by_age": Lsi(sk="l1sk")},
        ttl="ends", stream="KEYS_ONLY", recovery=True, recovery_days=7, deletion_protection=True,
        table_class="STANDARD_INFREQUENT_ACCESS", read_units=5, write_units=6, tags={"team": "yard"},
    )  # fmt: skip
    db.create_tables(whole.Depot)

    assert not db.table_changes(whole.Depot)

    db.apply_changes(plain_with_lsi().Depot, drop=True)  # so that it can be deleted again


def plain_with_lsi() -> SimpleNamespace:
    """Return a design without settings, on the same local index."""
    return design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk"), "by_age": Lsi(sk="l1sk")})


def test_a_missing_table_is_created(opened: Any) -> None:
    """The only change of a missing table is its creation."""
    db = opened()

    assert kinds(db.table_changes(plain().Depot)) == ["create"]
    assert kinds(db.apply_changes(plain().Depot)) == ["create"]
    assert not db.table_changes(plain().Depot)


def test_indexes_come_one_at_a_time(db: Any) -> None:
    """New indexes are added one by one, waited for, and filled from the stored items."""
    db.put(plain().Crate(crate_id="c1", size=3, place="x"))
    more = design(
        indexes={
            "by_place": Gsi(pk="g1pk", sk="g1sk"), "by_size": Gsi(pk=("size",)), "other": Gsi(pk="g3pk", sk="g3sk"),
        }
    )  # fmt: skip

    assert kinds(db.table_changes(more.Depot)) == ["add index", "add index"]
    db.create_tables(more.Depot, change=True)

    assert not db.table_changes(more.Depot)
    assert [c.crate_id for c in db.query(more.Crate.BySize(size=3))] == ["c1"]


def test_removals_require_drop(db: Any) -> None:
    """An index outside the model is reported, and dropped only with drop=True."""
    bare = design(indexes={})

    assert [str(change) for change in db.table_changes(bare.Depot).changes] == [
        "drop the index by_place, which is not in the model"
    ]
    assert not db.apply_changes(bare.Depot)
    db.create_tables(bare.Depot, change=True)
    assert "GlobalSecondaryIndexes" in described(db)

    assert kinds(db.apply_changes(bare.Depot, drop=True)) == ["drop index"]
    assert "GlobalSecondaryIndexes" not in described(db)


def test_an_index_with_another_key_is_recreated(db: Any) -> None:
    """A key or projection cannot change in place: the index is dropped and added, if drop=True."""
    other = design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk", projection=("size", "place"))})
    db.put(plain().Crate(crate_id="c1", size=3, place="x"))

    assert kinds(db.table_changes(other.Depot)) == ["drop index", "add index"]
    assert not db.apply_changes(other.Depot)
    assert kinds(db.apply_changes(other.Depot, drop=True)) == ["drop index", "add index"]
    assert not db.table_changes(other.Depot)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"stream": "NEW_IMAGE"}, "stream"),
        ({"ttl": "ends"}, "ttl"),
        ({"recovery": True, "recovery_days": 9}, "recovery"),
        ({"table_class": "STANDARD_INFREQUENT_ACCESS"}, "class"),
        ({"deletion_protection": True}, "protection"),
        ({"tags": {"team": "yard"}}, "tags"),
        ({"read_units": 3, "write_units": 4}, "billing"),
    ],
)
def test_each_setting_goes_on_and_off(db: Any, settings: dict[str, Any], kind: str) -> None:
    """A setting that the model gains is enabled;

    one that it loses is disabled, if that destroys nothing at once.
    """
    changed = design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")}, **settings)

    assert kinds(db.apply_changes(changed.Depot, drop=kind == "billing")) == [kind]
    assert not db.table_changes(changed.Depot)

    assert kinds(db.apply_changes(plain().Depot, drop=True)) == [kind]
    assert not db.table_changes(plain().Depot)


def provisioned(reads: int, writes: int) -> Any:
    """Return the depot with this provisioned throughput."""
    return design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")}, read_units=reads, write_units=writes).Depot


def units(db: Any) -> list[tuple[int, int]]:
    """Return the provisioned units of the table and its index."""
    table = described(db)
    throughputs = (
        table["ProvisionedThroughput"],
        table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"],
    )
    return [(each["ReadCapacityUnits"], each["WriteCapacityUnits"]) for each in throughputs]


def test_units_are_raised_at_once_and_lowered_only_with_drop(db: Any) -> None:
    """A deployment raises units that are too low; it does not lower units that were raised by hand."""
    assert not db.apply_changes(provisioned(20, 20)), "on demand is not taken away in passing"
    db.apply_changes(provisioned(20, 20), drop=True)
    assert units(db) == [(20, 20)] * 2

    db.create_tables(provisioned(5, 30), change=True)

    assert units(db) == [(20, 30)] * 2
    (left,) = db.table_changes(provisioned(5, 30)).changes
    assert left.removes
    assert (
        "lower the table and its indexes to 5 read and 30 write units per second; one of them has 20 and 30"
        in left.what
    )
    db.apply_changes(provisioned(5, 30), drop=True)
    assert units(db) == [(5, 30)] * 2
    assert not db.table_changes(provisioned(5, 30))


def test_another_attribute_of_time_to_live_takes_two_changes() -> None:
    """DynamoDB accepts one change per hour: the second is reported until it is done, and is not an error."""
    one, other = (
        design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")}, ttl=attribute).Depot
        for attribute in ("ends", "until")
    )
    memory: Any = connect("memory:")
    memory.create_tables(one)

    class Hourly:
        """A backend that takes one change of time to live."""

        taken = False

        def call(self, operation: str, request: Any) -> Any:
            """Return the answer of the other."""
            if operation == "UpdateTimeToLive":
                if self.taken:
                    raise ValidationFault(
                        "Time to live has been modified multiple times within a fixed interval"
                    )
                self.taken = True
            return memory.backend.call(operation, request)

        def close(self) -> None:
            """Leave the other open."""

    assert not memory.apply_changes(other)
    (made,) = Connection(Hourly()).apply_changes(other, drop=True).changes

    assert "until can be enabled an hour later" in made.what
    assert [str(each) for each in memory.table_changes(other).changes] == ["enable time to live on until"]
    assert kinds(memory.apply_changes(other)) == ["ttl"]
    memory.close()


def test_the_view_of_a_stream_changes_by_a_new_stream(db: Any) -> None:
    """A stream's view cannot change: the stream is ended, which needs drop=True, and another is started."""
    for view in ("KEYS_ONLY", "NEW_AND_OLD_IMAGES"):
        changed = design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")}, stream=view)
        db.apply_changes(changed.Depot, drop=True)

    assert described(db)["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"


def test_tags_of_aws_are_left_alone() -> None:
    """Tags that AWS sets itself are no difference."""
    from tavola.client.table_changes import _tags

    steps = _tags("arn", {"team": "yard"})
    next(steps)

    with pytest.raises(StopIteration) as done:
        steps.send(
            {"Tags": [{"Key": "aws:cloudformation:stack", "Value": "x"}, {"Key": "team", "Value": "yard"}]}
        )

    assert done.value.value == []


def test_a_table_with_another_key_is_refused(db: Any) -> None:
    """A table of the same name with another key is a clear error, never silence."""
    other = design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk")}, key="id")

    with pytest.raises(TableMismatch, match=r"its key is pk \(HASH\) and sk \(RANGE\), and should be id"):
        db.create_tables(other.Depot)
    with pytest.raises(TableMismatch):
        db.apply_changes(other.Depot, drop=True)
    assert db.table_changes(other.Depot).refusals


def test_local_indexes_are_refused(db: Any) -> None:
    """A local index exists only with its table;

    a change that needs another one is refused and changes nothing.
    """
    more = design(
        indexes={"by_place": Gsi(pk="g1pk", sk="g1sk"), "by_age": Lsi(sk="l1sk")}, deletion_protection=True
    )

    with pytest.raises(TableMismatch, match="local index by_age does not exist"):
        db.apply_changes(more.Depot)
    assert described(db)["DeletionProtectionEnabled"] is False


def test_a_table_without_entities_is_refused() -> None:
    """A model whose entities were not imported would make a table of the wrong types."""

    class Empty(Table):
        """A table without entities."""

    with connect("memory:") as db, pytest.raises(ModelError, match="it has no entities yet"):
        db.create_tables(Empty)


def test_an_endpoint_without_an_operation_is_no_difference() -> None:
    """Features that a local endpoint lacks (backups, tags) are not compared there."""
    from tavola.client.provisioning import call_if_supported
    from tavola.protocol.faults import UnknownOperationFault

    steps = call_if_supported("ListTagsOfResource", {})
    next(steps)

    with pytest.raises(StopIteration) as done:
        steps.throw(UnknownOperationFault())

    assert done.value.value is None


def test_a_table_is_created_without_point_in_time_recovery(caplog: pytest.LogCaptureFixture) -> None:
    """An endpoint without point-in-time recovery still gets the table, and the log says what is missing."""
    from tavola.protocol.faults import UnknownOperationFault

    whole = design(indexes={}, recovery=True)
    with connect("memory:") as db:
        call = db.backend.call

        def local(operation: str, request: Any) -> Any:
            if "ContinuousBackups" in operation:
                raise UnknownOperationFault
            return call(operation, request)

        db.backend.call = local  # type: ignore[method-assign]
        db.create_tables(whole.Depot)
        db.create_tables(whole.Depot)

    assert [record.message for record in caplog.records] == [
        "The endpoint does not support point-in-time recovery; depot was created without it"
    ]


@pytest.mark.parametrize("last", ["UpdateTimeToLive", "UpdateContinuousBackups"])
def test_a_table_that_was_left_half_made_is_made_whole(last: str) -> None:
    """Time to live and recovery are switched on by the next create_tables, where the first was interrupted before."""
    whole = design(indexes={}, ttl="ends", recovery=True, recovery_days=7)
    with connect("memory:") as db:
        call = db.backend.call

        def interrupted(operation: str, request: Any) -> Any:
            if operation == last:
                raise KeyboardInterrupt
            return call(operation, request)

        db.backend.call = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            db.create_tables(whole.Depot)
        db.backend.call = call  # type: ignore[method-assign]
        assert db.table_changes(whole.Depot)

        db.create_tables(whole.Depot)

        assert not db.table_changes(whole.Depot)


def test_only_settings_of_the_model_are_described() -> None:
    """For a model without time to live and recovery, no request reads these settings."""
    with connect("memory:") as db:
        db.create_tables(plain().Depot)
        call, seen = db.backend.call, []

        def watched(operation: str, request: Any) -> Any:
            seen.append(operation)
            return call(operation, request)

        db.backend.call = watched  # type: ignore[method-assign]
        db.create_tables(plain().Depot)

    assert seen == ["CreateTable", "DescribeTable"]


def test_deleting_a_missing_table_is_not_an_error(db: Any) -> None:
    """Deleting returns None, for an existing and for a missing table."""
    assert db.delete_tables(plain().Depot) is None
    assert db.delete_tables(plain().Depot) is None
    assert db.call("ListTables")["TableNames"] == []


def test_a_missing_index_is_reported_at_start(db: Any) -> None:
    """After an index is added to the class, the next start reports it and how to create it."""
    more = design(indexes={"by_place": Gsi(pk="g1pk", sk="g1sk"), "by_name": Gsi(pk="g2pk", sk="g2sk")}).Depot

    with pytest.raises(
        TableMismatch, match=r"the index by_name does not exist\. create_tables\(Depot, change=True\)"
    ):
        db.create_tables(more)
    db.create_tables(more, change=True)
    db.create_tables(more)
    db.create_tables(plain().Depot)  # an index outside the model does not matter

    other = design(indexes={"by_place": Gsi(pk="g9pk", sk="g9sk")}).Depot
    for change in (False, True):
        with pytest.raises(
            TableMismatch, match=r"by_place has another key or projection\. apply_changes\(Depot, drop=True\)"
        ):
            db.create_tables(other, change=change)


def test_a_missing_table_is_named(db: Any) -> None:
    """DynamoDB's message does not name the table; the client's does, with the call that creates it."""
    db.delete_tables(plain().Depot)
    crate = plain().Crate

    for call in (
        lambda: db.put_many([crate(crate_id="c1", size=1, place="p")]),
        lambda: db.get_together([crate.Key(crate_id="c1")]),
        lambda: list(db.scan(crate)),
    ):
        with pytest.raises(
            TableMissing, match=r"table \S*depot does not exist here; create it with create_tables\(\)"
        ) as refused:
            call()
        assert refused.value.code == "ResourceNotFoundException"
