"""Snapshots, backups and restores where the suite of every backend cannot look: slices, restarts, the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext, StoreError, copies, history, snapshots
from tavola.engine.backups import Backups
from tavola.engine.catalog import StoredIndex
from tavola.engine.operations import backups, restores
from tavola.engine.snapshots import AsOfTableStore
from tavola.engine.storage.files import connect_file
from tavola.entropy import SeededEntropy
from tavola.keys import Bounds
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import (
    BackupInUseFault,
    BackupNotFoundFault,
    Fault,
    InvalidRestoreTimeFault,
    PointInTimeRecoveryUnavailableFault,
    ResourceInUseFault,
    ResourceNotFoundFault,
    TableInUseFault,
    TableNotFoundFault,
    ValidationFault,
)

DAY_S = 86_400
STEP_MS = 0.05
DESCRIBED: dict[str, Any] = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine(clock: ManualClock) -> Iterator[Engine]:
    with closing(Engine.open(clock=clock, entropy=SeededEntropy(1))) as opened:
        opened.call("CreateTable", DESCRIBED)
        yield opened


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a few rows at a time, so that there is a middle to stop in."""
    start = copies.CopyPosition(rows=4)
    monkeypatch.setattr(backups, "START", start)
    monkeypatch.setattr(restores, "START", start)
    monkeypatch.setattr(copies, "SLICE_ROWS_MAX", 4)


def recover(engine: Engine, *, on: bool = True, **more: Any) -> None:
    specification = {"PointInTimeRecoveryEnabled": on, **more}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "things", "PointInTimeRecoverySpecification": specification}
    )


def put(engine: Engine, pk: str, table: str = "things", **more: str) -> None:
    item = {name: {"S": text} for name, text in {"pk": pk, **more}.items()}
    engine.call("PutItem", {"TableName": table, "Item": item})


def remove(engine: Engine, pk: str) -> None:
    engine.call("DeleteItem", {"TableName": "things", "Key": {"pk": {"S": pk}}})


def keys(
    engine: Engine, table: str = "things", index: str | None = None, at_s: float | None = None
) -> set[str]:
    request = {"TableName": table} | ({} if index is None else {"IndexName": index})
    context = None if at_s is None else RequestContext(as_of_us=round(at_s * 1_000_000))
    found: list[dict[str, Any]] = engine.call("Scan", request, context=context)["Items"]
    return {item["pk"]["S"] for item in found}


def status(engine: Engine, table: str) -> str:
    result: str = engine.call("DescribeTable", {"TableName": table})["Table"]["TableStatus"]
    return result


def count(engine: Engine, table: str) -> int:
    result: int = engine.call("DescribeTable", {"TableName": table})["Table"]["ItemCount"]
    return result


def back_up(engine: Engine) -> str:
    answer = engine.call("CreateBackup", {"TableName": "things", "BackupName": "backup"})
    arn: str = answer["BackupDetails"]["BackupArn"]
    return arn


def backup_status(engine: Engine, arn: str) -> str:
    described = engine.call("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
    result: str = described["BackupDetails"]["BackupStatus"]
    return result


def restore(engine: Engine, arn: str, target: str = "new") -> None:
    engine.call("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": target})


def restore_to(engine: Engine, target: str, at_s: float | None = None) -> None:
    when = {"UseLatestRestorableTime": True} if at_s is None else {"RestoreDateTime": at_s}
    engine.call("RestoreTableToPointInTime", {"SourceTableName": "things", "TargetTableName": target, **when})


def step_until(engine: Engine, reached: Callable[[], bool]) -> None:
    """Do background work a step at a time until something is so."""
    for _ in range(1000):
        if reached():
            return
        engine.run_background_work(STEP_MS)
    raise AssertionError("the work does not get there")


def finish(engine: Engine) -> None:
    while engine.run_background_work(100):
        pass


def tables_in(engine: Engine) -> set[str]:
    """Return the names of the store's own tables, which no request shows."""
    found = engine._store._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {str(name) for (name,) in found}


def test_reads_as_of_a_time(engine: Engine, clock: ManualClock) -> None:
    """Everything written after the time is undone: items put, changed and deleted."""
    recover(engine)
    put(engine, "kept", g="x")
    put(engine, "changed", g="x")
    put(engine, "removed", g="x")
    then_s = clock.now()
    clock.advance(1)
    put(engine, "changed", g="y")
    remove(engine, "removed")
    put(engine, "new", g="x")

    assert keys(engine, at_s=then_s) == {"kept", "changed", "removed"}
    assert keys(engine, index="by-g", at_s=then_s) == {"kept", "changed", "removed"}
    assert keys(engine) == {"kept", "changed", "new"}
    context = RequestContext(as_of_us=int(then_s * 1_000_000))
    got = engine.call("GetItem", {"TableName": "things", "Key": {"pk": {"S": "changed"}}}, context=context)
    assert got["Item"]["g"] == {"S": "x"}


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"TableName": "things", "Item": {"pk": {"S": "p"}}}),
        ("DeleteItem", {"TableName": "things", "Key": {"pk": {"S": "p"}}}),
        ("UpdateItem", {"TableName": "things", "Key": {"pk": {"S": "p"}}}),
        ("BatchWriteItem", {"RequestItems": {"things": [{"DeleteRequest": {"Key": {"pk": {"S": "p"}}}}]}}),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "things", "Item": {"pk": {"S": "p"}}}}]},
        ),
        ("ExecuteStatement", {"Statement": "INSERT INTO things VALUE {'pk': 'p'}"}),
        ("CreateBackup", {"TableName": "things", "BackupName": "backup"}),
        ("DeleteTable", {"TableName": "things"}),
        ("TagResource", {"ResourceArn": "", "Tags": [{"Key": "k", "Value": "v"}]}),
    ],
)
def test_the_past_is_not_written(
    engine: Engine, clock: ManualClock, operation: str, request_: dict[str, Any]
) -> None:
    """Whatever would write is refused in a sentence, and nothing is begun."""
    recover(engine)
    if operation == "TagResource":
        request_["ResourceArn"] = engine.call("DescribeTable", {"TableName": "things"})["Table"]["TableArn"]

    with pytest.raises(ValidationFault, match="as of a past time cannot write"):
        engine.call(operation, request_, context=RequestContext(as_of_us=int(clock.now() * 1_000_000)))

    assert not engine.dirty
    assert keys(engine) == set()


def test_a_time_outside_of_what_is_kept(engine: Engine, clock: ManualClock) -> None:
    """Before recovery was switched on, before its days, and in the future there is nothing to read."""
    begun_s = clock.now()
    recover(engine, RecoveryPeriodInDays=2)
    for at_s in (begun_s - 1, begun_s + 10):
        with pytest.raises(
            InvalidRestoreTimeFault, match=r"Table 'things' can be read as of times from .* to "
        ):
            keys(engine, at_s=at_s)
        with pytest.raises(InvalidRestoreTimeFault, match="must be within"):
            restore_to(engine, "new", at_s)
    assert keys(engine, at_s=begun_s) == set()

    clock.advance(3 * DAY_S)

    with pytest.raises(InvalidRestoreTimeFault):
        keys(engine, at_s=begun_s)
    assert keys(engine, at_s=begun_s + 1.5 * DAY_S) == set()


def test_a_table_whose_past_is_not_kept(engine: Engine, clock: ManualClock) -> None:
    """Without recovery there is no reading of the past, and switching it off forgets what there was."""
    with pytest.raises(PointInTimeRecoveryUnavailableFault):
        keys(engine, at_s=clock.now())
    recover(engine)
    put(engine, "p")
    then_s = clock.now()
    recover(engine, on=False)
    clock.advance(10)
    put(engine, "q")
    recover(engine)

    with pytest.raises(InvalidRestoreTimeFault):
        keys(engine, at_s=then_s)


def test_a_whole_second_at_the_beginning(engine: Engine, clock: ManualClock) -> None:
    """SDKs cut a time to its second, so the second in which recovery began is inside, from the beginning on."""
    clock.advance(0.7)
    put(engine, "before")
    recover(engine)
    clock.advance(0.1)
    put(engine, "after")

    assert keys(engine, at_s=int(clock.now())) == {"before"}


def test_the_days_are_forgotten(engine: Engine, clock: ManualClock) -> None:
    """What is older than the period goes from the log; what is younger stays readable to the change."""
    recover(engine, RecoveryPeriodInDays=1)
    for day in range(4):
        put(engine, "p", g=f"day{day}")
        clock.advance(DAY_S)
        engine.run_background_work(100)
    log = engine._catalog.find(DEFAULT_SCOPE, "things").journal.log  # type: ignore[union-attr]

    assert log.span()[0] > 1
    assert keys(engine, at_s=clock.now() - 0.5 * DAY_S) == {"p"}


@pytest.mark.parametrize("jump_s", [-1, -3600, -10 * 365 * DAY_S, 10 * 365 * DAY_S])
def test_a_clock_that_jumps_reorders_nothing(engine: Engine, clock: ManualClock, jump_s: float) -> None:
    """What was read as of a time stays what it was, and later changes come later, wherever the clock goes."""
    recover(engine)
    put(engine, "first")
    then_s = clock.now()
    assert keys(engine, at_s=then_s) == {"first"}

    clock.advance(jump_s)
    put(engine, "second")
    result = engine.call("DescribeContinuousBackups", {"TableName": "things"})["ContinuousBackupsDescription"]
    latest_s = result["PointInTimeRecoveryDescription"]["LatestRestorableDateTime"]
    assert keys(engine, at_s=latest_s) == {"first", "second"}
    put(engine, "third")

    assert latest_s >= then_s
    if jump_s < 0:
        assert keys(engine, at_s=then_s) == {"first"}
    assert keys(engine, at_s=latest_s) == {"first", "second"}
    restore_to(engine, "new")
    assert keys(engine, "new") == {"first", "second", "third"}


def test_a_transaction_is_seen_whole(engine: Engine, clock: ManualClock) -> None:
    """I12: as of any microsecond, either all of a transaction is there or nothing of it, also over two tables."""
    recover(engine)
    engine.call("CreateTable", DESCRIBED | {"TableName": "others"})
    other = {"TableName": "others", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    engine.call("UpdateContinuousBackups", other)
    clock.advance(5)
    put(engine, "late")
    clock.advance(-4)
    actions = [{"Put": {"TableName": name, "Item": {"pk": {"S": "t"}}}} for name in ("things", "others")]
    begun_us = int(clock.now() * 1_000_000)
    engine.call("TransactWriteItems", {"TransactItems": actions})
    clock.advance(100)

    for at_us in range(begun_us + 3_999_990, begun_us + 4_000_010):
        seen = [keys(engine, name, at_s=at_us / 1_000_000) for name in ("things", "others")]
        assert ("t" in seen[0]) == ("t" in seen[1])


def test_an_index_that_came_later(engine: Engine, clock: ManualClock) -> None:
    """An index is read as of a time before it was made, with what it would have held; what it cannot take is out."""
    recover(engine)
    put(engine, "text", h="x")
    engine.call("PutItem", {"TableName": "things", "Item": {"pk": {"S": "number"}, "h": {"N": "1"}}})
    then_s = clock.now()
    clock.advance(1)
    for pk in ("text", "number"):
        put(engine, pk, h="changed")
    created = {
        "IndexName": "by-h",
        "KeySchema": [{"AttributeName": "h", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    engine.call(
        "UpdateTable",
        {
            "TableName": "things",
            "AttributeDefinitions": [{"AttributeName": "h", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": created}],
        },
    )

    assert keys(engine, index="by-h", at_s=then_s) == {"text"}
    restore_to(engine, "new", then_s)
    assert keys(engine, "new", index="by-h") == {"text"}
    assert keys(engine, "new") == {"text", "number"}


def test_statements_and_vectors_see_the_past(engine: Engine, clock: ManualClock) -> None:
    """Whatever reads a table reads it as of the time: PartiQL's SELECT, and the nearest vectors of then."""
    pytest.importorskip("numpy")
    described: dict[str, Any] = {
        "TableName": "arrows",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "VectorIndexes": [
            {
                "IndexName": "near",
                "VectorAttribute": {"AttributeName": "v"},
                "Projection": {"ProjectionType": "ALL"},
                "Dimensions": 2,
                "DistanceFunction": "EUCLIDEAN",
            }
        ],
    }
    engine.call("CreateTable", described)
    on = {"PointInTimeRecoveryEnabled": True}
    engine.call("UpdateContinuousBackups", {"TableName": "arrows", "PointInTimeRecoverySpecification": on})

    def point(pk: str, *numbers: int) -> None:
        vector = {"L": [{"N": str(number)} for number in numbers]}
        engine.call("PutItem", {"TableName": "arrows", "Item": {"pk": {"S": pk}, "v": vector}})

    def nearest(table: str, context: RequestContext | None = None) -> list[str]:
        query = {"TableName": table, "IndexName": "near", "SearchVector": [{"N": "0"}, {"N": "0"}], "TopK": 1}
        answer = engine.call("SearchVectors", query, context=context)
        return [found["Item"]["pk"]["S"] for found in answer["SearchResults"]]

    point("a", 1, 1)
    point("b", 5, 5)
    then = RequestContext(as_of_us=int(clock.now() * 1_000_000))
    clock.advance(1)
    point("b", 0, 0)
    assert nearest("arrows") == ["b"]

    assert nearest("arrows", then) == ["a"]
    statement = {"Statement": "SELECT v FROM arrows WHERE pk = 'b'"}
    assert engine.call("ExecuteStatement", statement, context=then)["Items"][0]["v"]["L"][0] == {"N": "5"}
    assert nearest("arrows") == ["b"]
    request = {"SourceTableName": "arrows", "TargetTableName": "old", "RestoreDateTime": clock.now() - 1}
    engine.call("RestoreTableToPointInTime", request)
    assert nearest("old") == ["a"]


@pytest.mark.usefixtures("small_slices")
def test_a_backup_is_of_the_moment_it_was_asked_for(engine: Engine) -> None:
    """What is written while it is made is not in it, whether the copy has passed the place or not."""
    for number in range(40):
        put(engine, f"p{number}", g="x")
    engine.run_background_work(0)
    arn = back_up(engine)
    step_until(engine, lambda: _held(engine, arn) > 8)
    for number in range(0, 40, 2):
        remove(engine, f"p{number}")
        put(engine, f"new{number}", g="x")
        put(engine, f"p{number + 1}", g="y")
    assert backup_status(engine, arn) == "CREATING"
    with pytest.raises(BackupInUseFault, match="being created"):
        restore(engine, arn)
    with pytest.raises(BackupInUseFault, match="being created"):
        engine.call("DeleteBackup", {"BackupArn": arn})
    finish(engine)

    restore(engine, arn)
    finish(engine)

    assert keys(engine, "new") == {f"p{number}" for number in range(40)}
    found = engine.call("Scan", {"TableName": "new"})["Items"]
    assert {item["g"]["S"] for item in found} == {"x"}
    assert engine._catalog.find(DEFAULT_SCOPE, "things").journal is None  # type: ignore[union-attr]


def _held(engine: Engine, arn: str) -> int:
    described = engine.call("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
    held: int = described["SourceTableDetails"]["ItemCount"]
    return held


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("recovery", [False, True])
def test_a_table_deleted_while_it_is_copied(engine: Engine, recovery: bool) -> None:
    """The backup, and a restore of its past, go on to their end; nothing of the table is left behind then."""
    if recovery:
        recover(engine)
    for number in range(40):
        put(engine, f"p{number}", g="x")
    engine.run_background_work(0)
    arn = back_up(engine)
    if recovery:
        restore_to(engine, "copy")
    step_until(engine, lambda: _held(engine, arn) > 8)

    engine.call("DeleteTable", {"TableName": "things"})
    finish(engine)

    restore(engine, arn)
    finish(engine)
    assert keys(engine, "new", index="by-g") == {f"p{number}" for number in range(40)}
    if recovery:
        assert keys(engine, "copy") == {f"p{number}" for number in range(40)}
    assert ("rack1" in tables_in(engine)) == recovery  # the system's backup


@pytest.mark.usefixtures("small_slices")
def test_a_restore_shows_how_far_it_has_come(engine: Engine) -> None:
    """While it runs the table is CREATING, its items are counted as they come, and it cannot be used."""
    for number in range(40):
        put(engine, f"p{number}", g="x")
    arn = back_up(engine)
    engine.run_background_work(0)
    restore(engine, arn)
    seen: list[int] = []
    while status(engine, "new") == "CREATING":
        seen.append(count(engine, "new"))
        described = engine.call("DescribeTable", {"TableName": "new"})["Table"]
        assert described["RestoreSummary"]["RestoreInProgress"] is True
        refusals: list[tuple[str, dict[str, Any], type[Fault]]] = [
            ("DeleteTable", {"TableName": "new"}, ResourceInUseFault),
            ("CreateBackup", {"TableName": "new", "BackupName": "backup"}, TableNotFoundFault),
            ("DescribeContinuousBackups", {"TableName": "new"}, TableNotFoundFault),
            ("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "another"}, BackupInUseFault),
            ("DeleteBackup", {"BackupArn": arn}, BackupInUseFault),
        ]
        for operation, request, fault in refusals:
            with pytest.raises(fault):
                engine.call(operation, request)
        engine.run_background_work(STEP_MS)

    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert count(engine, "new") == 40
    assert "RestoreSummary" not in engine.call("DescribeTable", {"TableName": "new"})["Table"]


@pytest.mark.usefixtures("small_slices")
def test_one_name_is_restored_once(engine: Engine) -> None:
    """The name of a table that is being restored is taken."""
    put(engine, "p")
    recover(engine)
    arn = back_up(engine)
    engine.run_background_work(0)
    restore_to(engine, "new")

    with pytest.raises(TableInUseFault, match="Table: new is already being restored"):
        restore(engine, arn)


@pytest.mark.usefixtures("small_slices")
def test_a_restart_in_the_middle(tmp_path: Path, clock: ManualClock) -> None:
    """A backup and a restore that were under way when the process ended go on where they were."""
    path = tmp_path / "store.db"
    wanted = {f"p{number}" for number in range(40)}
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", DESCRIBED)
        recover(engine)
        for pk in wanted:
            put(engine, pk, g="x")
        engine.run_background_work(0)
        arn = back_up(engine)
        restore_to(engine, "past")
        step_until(engine, lambda: _held(engine, arn) > 8 and count(engine, "past") > 8)
        put(engine, "later")
        assert status(engine, "past") == "CREATING"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.run_background_work(0)
        assert (status(engine, "past"), backup_status(engine, arn)) == ("CREATING", "CREATING")
        put(engine, "later still")
        finish(engine)
        restore(engine, arn)
        finish(engine)

        assert keys(engine, "past") == wanted
        assert keys(engine, "past", index="by-g") == wanted
        assert count(engine, "past") == 40
        assert keys(engine, "new") == wanted
        assert keys(engine, at_s=clock.now()) == wanted | {"later", "later still"}


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("kind", ["backup", "restore", "recovery"])
def test_a_copy_that_fails_is_taken_back(
    engine: Engine, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake of our own in the middle leaves no table that is CREATING for ever, and nothing in use."""
    recover(engine)
    for number in range(40):
        put(engine, f"p{number}", g="x")
    arn = back_up(engine)
    room = backups if kind == "backup" else restores

    def broken(source: Any, target: Any, place: copies.CopyPosition) -> copies.CopyPosition | None:
        if target.counts.items > 8:
            raise RuntimeError("planted")
        return copies.copy_slice(source, target, place)

    with monkeypatch.context() as patch:
        patch.setattr(room, "copy_slice", broken)
        if kind == "backup":
            back_up(engine)
        elif kind == "restore":
            restore(engine, arn)
        else:
            restore_to(engine, "new")

    assert "planted" in caplog.text
    assert engine.call("ListTables", {})["TableNames"] == ["things"]
    assert [each["BackupArn"] for each in engine.call("ListBackups", {})["BackupSummaries"]] == [arn]
    restore(engine, arn)
    restore_to(engine, "recovered")
    assert keys(engine, "new") == keys(engine, "recovered") == {f"p{number}" for number in range(40)}
    definition = engine._catalog.find(DEFAULT_SCOPE, "things").definition  # type: ignore[union-attr]
    assert definition.pins == 0


def test_a_system_backup_expires(engine: Engine, clock: ManualClock) -> None:
    """It is there for 35 days, then it is found no more and its rows go with the next upkeep."""
    recover(engine)
    put(engine, "p")
    engine.call("DeleteTable", {"TableName": "things"})
    (backup,) = engine.call("ListBackups", {"BackupType": "SYSTEM"})["BackupSummaries"]
    clock.advance(35 * DAY_S - 1)
    restore(engine, backup["BackupArn"])
    assert keys(engine, "new") == {"p"}

    clock.advance(2)

    assert engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"] == []
    with pytest.raises(BackupNotFoundFault):
        engine.call("DescribeBackup", {"BackupArn": backup["BackupArn"]})
    assert "rack1" in tables_in(engine)
    Backups(engine._store).drop_expired(clock.now())
    assert "rack1" not in tables_in(engine)


def test_the_same_name_deleted_twice(engine: Engine) -> None:
    """Two tables of one name, deleted in the same millisecond, leave two backups."""
    for _ in range(2):
        recover(engine)
        engine.call("DeleteTable", {"TableName": "things"})
        engine.call("CreateTable", DESCRIBED)

    found = engine.call("ListBackups", {"BackupType": "SYSTEM"})["BackupSummaries"]

    assert len({backup["BackupArn"] for backup in found}) == 2
    assert len({backup["TableId"] for backup in found}) == 2


def test_the_throughput_of_then(engine: Engine, clock: ManualClock) -> None:
    """A table restored to a time before its throughput was changed has what it had."""
    units = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
    described = DESCRIBED | {
        "TableName": "paid",
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units,
    }
    described["GlobalSecondaryIndexes"] = [
        described["GlobalSecondaryIndexes"][0] | {"ProvisionedThroughput": units}
    ]
    engine.call("CreateTable", described)
    on = {"PointInTimeRecoveryEnabled": True}
    engine.call("UpdateContinuousBackups", {"TableName": "paid", "PointInTimeRecoverySpecification": on})
    then_s = clock.now()
    clock.advance(100)
    less = {"ReadCapacityUnits": 50, "WriteCapacityUnits": 60}
    engine.call("UpdateTable", {"TableName": "paid", "ProvisionedThroughput": less})

    restored = []
    for target, at_s in (("then", then_s), ("now", clock.now())):
        request = {"SourceTableName": "paid", "TargetTableName": target, "RestoreDateTime": at_s}
        engine.call("RestoreTableToPointInTime", request)
        result = engine.call("DescribeTable", {"TableName": target})["Table"]["ProvisionedThroughput"]
        restored.append((result["ReadCapacityUnits"], result["WriteCapacityUnits"]))

    assert restored == [(100, 100), (50, 60)]


def test_another_region(engine: Engine) -> None:
    """A backup is restored in another region if the request says how it is encrypted there."""
    elsewhere = Scope(DEFAULT_SCOPE.account, "eu-west-1")
    put(engine, "p")
    arn = back_up(engine)
    request: dict[str, Any] = {"BackupArn": arn, "TargetTableName": "new"}
    with pytest.raises(ValidationFault, match="sseSpecificationOverride must be provided"):
        engine.call("RestoreTableFromBackup", request, elsewhere)

    engine.call(
        "RestoreTableFromBackup", request | {"SSESpecificationOverride": {"Enabled": False}}, elsewhere
    )

    assert engine.call("Scan", {"TableName": "new"}, elsewhere)["Count"] == 1


def test_every_version_of_an_item(engine: Engine, clock: ManualClock) -> None:
    """Versions come from the beginning of what is kept to now, each with its time, in pages."""
    put(engine, "p", g="before")
    recover(engine)
    times: list[float] = []
    for text in ("a", "b", "c"):
        clock.advance(10)
        put(engine, "p", g=text)
        times.append(clock.now())
    clock.advance(10)
    remove(engine, "p")
    times.append(clock.now())
    asked = {"TableName": "things", "Key": {"pk": {"S": "p"}}}

    whole = engine.call("ListItemVersions", asked)["Versions"]
    pages: list[dict[str, Any]] = []
    request: dict[str, Any] = asked | {"Limit": 1}
    while True:
        answer = engine.call("ListItemVersions", request)
        pages += answer["Versions"]
        if "NextToken" not in answer:
            break
        request = request | {"NextToken": answer["NextToken"]}

    assert [version.get("Item", {}).get("g") for version in whole] == [
        *({"S": text} for text in ("before", "a", "b", "c")),
        None,
    ]
    assert [version.get("Since") for version in whole] == [None, *times]
    assert pages == whole
    shown = engine.call("ListItemVersions", asked | {"ProjectionExpression": "g"})["Versions"]
    assert shown[1]["Item"] == {"g": {"S": "a"}}
    with pytest.raises(ValidationFault, match="NextToken"):
        engine.call(
            "ListItemVersions", asked | {"Key": {"pk": {"S": "q"}}, "NextToken": request["NextToken"]}
        )


def test_an_item_that_expired(engine: Engine, clock: ManualClock) -> None:
    """A version that ended because its time was over says so."""
    recover(engine)
    setting = {"Enabled": True, "AttributeName": "ends"}
    engine.call("UpdateTimeToLive", {"TableName": "things", "TimeToLiveSpecification": setting})
    item = {"pk": {"S": "p"}, "ends": {"N": str(int(clock.now()) + 5)}}
    engine.call("PutItem", {"TableName": "things", "Item": item})
    clock.advance(3600)
    engine.run_background_work(100)

    result = engine.call("ListItemVersions", {"TableName": "things", "Key": {"pk": {"S": "p"}}})["Versions"]

    assert [version.get("Expired") for version in result] == [None, None, True]


def test_a_log_is_ordered_by_key_while_its_past_is_read(engine: Engine, clock: ManualClock) -> None:
    """No one pays for the order until the past is read, and not for longer than an hour after."""
    recover(engine)
    then_s = clock.now()
    clock.advance(1)
    for number in range(600):
        put(engine, f"p{number}")
    log = engine._catalog.find(DEFAULT_SCOPE, "things").journal.log  # type: ignore[union-attr]
    assert not log.has_key_index

    assert keys(engine, at_s=then_s) == set()
    assert log.has_key_index
    assert not engine.dirty

    clock.advance(4000)
    engine.run_background_work(100)
    assert not log.has_key_index


def _spoilt(path: Path, statement: str) -> None:
    """Change a store behind its back."""
    connection = connect_file(str(path), None)
    connection.execute(statement)
    connection.close(True)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "DELETE FROM rack2 WHERE id = 3",
            "the copy has 19 items of 95 bytes, expected 20 of 100",
        ),
        ("UPDATE rack2 SET size = size + 1 WHERE id = 3", "expected 20 of 100"),
        ("UPDATE rack2 SET item = x'7b7d' WHERE id = 3", "the checksum of an item does not match"),
    ],
)
def test_a_backup_that_is_damaged_is_not_restored(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture, statement: str, why: str
) -> None:
    """The table goes away, as on AWS; why is logged, and reported for a day to anyone who asks for the table."""
    path = tmp_path / "s.db"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", DESCRIBED)
        for number in range(20):
            put(engine, f"p{number:02}")
        arn = back_up(engine)
    _spoilt(path, statement)
    with closing(Engine.open(path, clock=clock)) as engine:
        restore(engine, arn)
        (logged,) = [each.getMessage() for each in caplog.records if "The restore of" in each.getMessage()]
        with pytest.raises(
            ResourceNotFoundFault, match=r"Table: new not found. The restore of table new"
        ) as raised:
            status(engine, "new")
        clock.advance(DAY_S)
        with pytest.raises(ResourceNotFoundFault, match=r"Table: new not found$"):
            status(engine, "new")
        freed = engine.call("DescribeBackup", {"BackupArn": arn})

    for sentence in (logged, str(raised.value)):
        assert "table new" in sentence
        assert arn in sentence
        assert why in sentence
    assert freed["BackupDescription"]["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    assert "ERROR" in {each.levelname for each in caplog.records}


def test_why_a_restore_failed_is_forgotten_with_the_next(tmp_path: Path, clock: ManualClock) -> None:
    """A table that came about is what is reported of, also after it was deleted."""
    path = tmp_path / "s.db"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", DESCRIBED)
        put(engine, "p")
        spoilt, sound = back_up(engine), back_up(engine)
    _spoilt(path, "DELETE FROM rack2")
    with closing(Engine.open(path, clock=clock)) as engine:
        restore(engine, spoilt)
        restore(engine, sound)
        assert keys(engine, "new") == {"p"}
        engine.call("DeleteTable", {"TableName": "new"})

        with pytest.raises(ResourceNotFoundFault, match=r"Table: new not found$"):
            status(engine, "new")


def test_a_backup_of_a_damaged_table_is_taken_back(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not there, and anyone who asks for it is reported why."""
    path = tmp_path / "s.db"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", DESCRIBED)
        put(engine, "p")
    _spoilt(path, "UPDATE rack1 SET sum = sum + 1")
    with closing(Engine.open(path, clock=clock)) as engine:
        arn = back_up(engine)
        with pytest.raises(BackupNotFoundFault, match="Backup backup of table things failed"):
            backup_status(engine, arn)

    assert any("the checksum of an item does not match" in each.getMessage() for each in caplog.records)


def _paged(engine: Engine, at_s: float, *, reverse: bool = False, limit: int = 3) -> list[str]:
    """Return the keys of a partition of the index as of a time, page by page."""
    request: dict[str, Any] = {
        "TableName": "things",
        "IndexName": "by-g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
        "ScanIndexForward": not reverse,
        "Limit": limit,
    }
    found: list[str] = []
    while True:
        answer = engine.call("Query", request, context=RequestContext(as_of_us=round(at_s * 1_000_000)))
        found += [item["pk"]["S"] for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def test_an_index_of_the_past_is_undone_once(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first page goes through the changes; the next ones, also after further writes, only through new ones."""
    recover(engine)
    for number in range(20):
        put(engine, f"p{number:02}", g="x")
    then_s = clock.now()
    clock.advance(1)
    for number in range(0, 20, 2):
        put(engine, f"p{number:02}", g="y")
    looked_at: list[bytes] = []
    made = snapshots._entry

    def noted(index: StoredIndex, image: bytes) -> tuple[bytes, int] | None:
        looked_at.append(image)
        return made(index, image)

    monkeypatch.setattr(snapshots, "_entry", noted)

    first = _paged(engine, then_s)
    after_first = len(looked_at)
    remove(engine, "p01")
    put(engine, "p00", g="z")
    backwards = _paged(engine, then_s, reverse=True)

    assert sorted(first) == [f"p{number:02}" for number in range(20)]
    assert backwards == first[::-1]
    assert after_first == 10
    assert len(looked_at) == 11


def test_what_is_kept_of_the_past_is_undone_with_its_writes(engine: Engine, clock: ManualClock) -> None:
    """A write that was taken back leaves nothing in what a read between has kept."""
    recover(engine)
    put(engine, "p", g="x")
    then_s = clock.now()
    clock.advance(1)
    engine.collect_writes()
    remove(engine, "p")
    assert _paged(engine, then_s) == ["p"]
    engine._group.roll_back(StoreError("planted"))
    with pytest.raises(StoreError, match="planted"):
        engine.commit()
    put(engine, "q", g="x")

    assert _paged(engine, then_s) == ["p"]


def test_too_many_changes_for_an_index_of_the_past(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that would take seconds is refused with what to do instead; the table itself is read nevertheless."""
    recover(engine)
    put(engine, "p", g="x")
    then_s = clock.now()
    clock.advance(1)
    monkeypatch.setattr(history, "PAST_CHANGES_MAX", 5)
    for number in range(6):
        put(engine, "p", g=f"{number}")

    with pytest.raises(ValidationFault, match=r"changed 6 times since then.*RestoreTableToPointInTime"):
        keys(engine, index="by-g", at_s=then_s)
    assert keys(engine, at_s=then_s) == {"p"}


def test_the_pasts_that_are_kept_are_bound(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever was read the longest ago is let go, so that they hold no more changes than one may."""
    recover(engine)
    times: list[float] = []
    for number in range(6):
        put(engine, f"p{number}", g="x")
        times.append(clock.now())
        clock.advance(1)
    monkeypatch.setattr(history, "PAST_CHANGES_MAX", 6)

    for at_s in (*times, times[0]):
        _paged(engine, at_s)

    kept = engine._catalog.history._kept
    assert sum(len(past.changed) for past in kept.values()) <= 6
    assert [position for _, _, position in kept][-1] == 1


def test_the_past_has_whole_rows(engine: Engine) -> None:
    """What copies read has keys and entries, in both directions, and the sums are those of then."""
    recover(engine)
    for number in range(5):
        put(engine, f"p{number}", g="x")
    table = engine._catalog.find(DEFAULT_SCOPE, "things")
    assert table is not None
    assert table.journal is not None
    wanted = table.rows.rows(Bounds(b"", None), 9)
    total = table.rows.total("key", "size", Bounds(b"", None))
    past = AsOfTableStore(table, table.journal.log, table.journal.position)
    for number in range(5):
        put(engine, f"p{number}", g="y")
    put(engine, "new", g="x")

    assert past.rows(Bounds(b"", None), 9) == wanted
    assert past.rows(Bounds(b"", None), 9, reverse=True) == wanted[::-1]
    assert past.index_rows("x1", Bounds(b"", None), 9, after=None, reverse=False) == wanted
    assert past.total("key", "size", Bounds(b"", None)) == total
    assert past.total("x1", "s1", Bounds(b"", None)) == 5 * (2 + 2 + 1 + 1)
    assert [row[0] for row in past.entries("x1")] == [row[0] for row in wanted]
    found = past.find(wanted[0][0])
    assert found is not None
    assert found[4:] == wanted[0][4:]
