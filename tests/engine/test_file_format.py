"""The upgrade of stores of older formats: everything reads as before, also after a kill in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext, StoreError, copies
from tavola.engine.operations import backups, restores
from tavola.engine.storage import file_format, scan_order
from tavola.engine.storage.file_format import FORMAT, FormatStep, upgrade_format
from tavola.engine.storage.files import connect_file
from tavola.engine.verification import verify
from tavola.entropy import SeededEntropy
from tests.engine.older_formats import format_of, old_key, write_format_2

START_S = 1_700_000_000.0
HASH, RANGE = "HASH", "RANGE"
ITEMS = 60


def _schema(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": HASH if at == 0 else RANGE} for at, name in enumerate(names)]


def _attributes(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()]


def _index(name: str, keys: list[dict[str, str]], projection: str = "ALL") -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": projection}}


TABLES: tuple[dict[str, Any], ...] = (
    {
        "TableName": "Texts",
        "KeySchema": _schema("pk", "sk"),
        "AttributeDefinitions": _attributes(pk="S", sk="S", g="S", n="N", b="B", l="S"),
        "LocalSecondaryIndexes": [_index("local", _schema("pk", "l"))],
        "GlobalSecondaryIndexes": [
            _index("by-g", _schema("g")),
            _index("by-g-n", _schema("g", "n"), "KEYS_ONLY"),
            _index("by-n-b", _schema("n", "b")),
            _index(
                "several",
                [
                    {"AttributeName": "g", "KeyType": HASH},
                    {"AttributeName": "n", "KeyType": HASH},
                    {"AttributeName": "b", "KeyType": RANGE},
                    {"AttributeName": "l", "KeyType": RANGE},
                ],
            ),
        ],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    },
    {
        "TableName": "Numbers",
        "KeySchema": _schema("pk", "sk"),
        "AttributeDefinitions": _attributes(pk="N", sk="B", l="S"),
        "GlobalSecondaryIndexes": [_index("by-l", _schema("l", "pk"))],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    },
    {
        "TableName": "Binaries",
        "KeySchema": _schema("pk"),
        "AttributeDefinitions": _attributes(pk="B", l="S"),
        "GlobalSecondaryIndexes": [_index("by-l", _schema("l"))],
    },
)
INDEXES = {
    "Texts": ("local", "by-g", "by-g-n", "by-n-b", "several"),
    "Numbers": ("by-l",),
    "Binaries": ("by-l",),
}


def _binary(data: bytes) -> dict[str, str]:
    return {"B": b64encode(data).decode()}


def _items(table: str, version: int) -> Iterator[dict[str, Any]]:
    for number in range(ITEMS):
        texts = ["", "\x00", "\x00\x00a", "é", "ab", "a"]
        item: dict[str, Any] = {
            "g": {"S": f"g{number % 3}"},
            "n": {"N": ("0", "-1.5", "12e20", "9")[number % 4]},
            "b": _binary(bytes([0, 255, 0][: number % 3 + 1])),
            "l": {"S": f"l{texts[number % 6]}"},
            "version": {"N": str(version)},
        }
        if table == "Texts":
            key = {"pk": {"S": f"p{number % 17}"}, "sk": {"S": f"s{number}{texts[number % 6]}"}}
        elif table == "Numbers":
            key = {
                "pk": {"N": f"{number % 13 - 6}.{number % 5}1"},
                "sk": _binary(b"\x00\xff" + bytes([number])),
            }
        else:
            key = {"pk": _binary(b"\x00" * (number % 4) + bytes([number, 255]))}
        if number % 7 == 0:
            del item["g"]  # not in the indexes of g
        yield item | key


def _fill(engine: Engine, clock: ManualClock) -> float:
    """Make the tables, write their items twice and delete some; return a time between."""
    for table in TABLES:
        engine.call("CreateTable", {**table, "BillingMode": "PAY_PER_REQUEST"})
        recovery = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": table["TableName"], "PointInTimeRecoverySpecification": recovery}
        engine.call("UpdateContinuousBackups", request)
    for table in TABLES:
        for item in _items(table["TableName"], 1):
            engine.call("PutItem", {"TableName": table["TableName"], "Item": item})
    engine.call("CreateBackup", {"TableName": "Texts", "BackupName": "kept"})
    _settle(engine)
    clock.advance(10)
    between_s = clock.now()
    clock.advance(10)
    for table in TABLES:
        names = [element["AttributeName"] for element in table["KeySchema"]]
        for number, item in enumerate(_items(table["TableName"], 2)):
            key = {name: item[name] for name in names}
            if number % 5 == 0:
                engine.call("DeleteItem", {"TableName": table["TableName"], "Key": key})
            elif number % 2:
                engine.call("PutItem", {"TableName": table["TableName"], "Item": item})
    return between_s


def _settle(engine: Engine) -> None:
    while engine.run_background_work():
        pass


def _pages(engine: Engine, request: dict[str, Any], context: RequestContext | None = None) -> list[Any]:
    found: list[Any] = []
    while True:
        page = engine.call("Scan", {**request, "Limit": 7}, context=context)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}


def _read_everything(engine: Engine, between_s: float) -> dict[str, Any]:
    """Return everything that can be read: tables, segments, indexes, the past, streams, counts."""
    found: dict[str, Any] = {}
    past = RequestContext(as_of_us=int(between_s * 1_000_000))
    for name, indexes in INDEXES.items():
        for index in (None, *indexes):
            request: dict[str, Any] = {"TableName": name} | ({"IndexName": index} if index else {})
            found[f"{name} {index}"] = _pages(engine, request)
            found[f"{name} {index} then"] = _pages(engine, request, past)
            for segment in range(3):
                part = {**request, "TotalSegments": 3, "Segment": segment}
                found[f"{name} {index} {segment}"] = _pages(engine, part)
        described = engine.call("DescribeTable", {"TableName": name})["Table"]
        found[f"{name} count"] = described["ItemCount"], described["TableSizeBytes"]
    for stream in engine.call("ListStreams", {})["Streams"]:
        arn = stream["StreamArn"]
        shards = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
        for shard in shards:
            start = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            records = engine.call("GetRecords", engine.call("GetShardIterator", start))["Records"]
            found[f"{arn} {shard['ShardId']}"] = [record["dynamodb"] for record in records]
    (backup,) = engine.call("ListBackups", {})["BackupSummaries"]
    restored = {"BackupArn": backup["BackupArn"], "TargetTableName": "Restored"}
    engine.call("RestoreTableFromBackup", restored)
    _settle(engine)
    found["restored"] = _pages(engine, {"TableName": "Restored"})
    return found


def _open(path: Path, key: str | None = None, clock: ManualClock | None = None) -> Engine:
    return Engine.open(path, key=key, clock=clock or ManualClock(START_S + 100), entropy=SeededEntropy(1))


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_order, "_SLICE_ROWS", 10)


@pytest.mark.parametrize("key", [None, "a key"])
@pytest.mark.usefixtures("small_slices")
def test_a_store_of_format_2_reads_as_one_of_now(tmp_path: Path, key: str | None) -> None:
    """Scans, segments, indexes, the past, streams, counts and backups are those of a store that was never old."""
    path = tmp_path / "store.db"
    clock = ManualClock(START_S)
    with closing(_open(path, key, clock)) as engine:
        between_s = _fill(engine, clock)
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with closing(_open(copy, key)) as engine:
        expected = _read_everything(engine, between_s)
    write_format_2(path, key)

    before = path.read_bytes()
    unchanged = verify(path, key=key)
    after_verify = path.read_bytes()
    with closing(_open(path, key)) as engine:
        found = _read_everything(engine, between_s)

    assert unchanged.problems == []
    assert after_verify == before
    assert found == expected
    assert format_of(path, key) == (FORMAT, [])
    assert verify(path, key=key).problems == []
    assert len({tuple(map(str, each)) for each in expected.values() if isinstance(each, list)}) > 20


def test_the_helper_writes_what_format_2_wrote() -> None:
    """Bytes that version 2 of the format wrote for these items: a hash of CRC-32, and open ends."""
    definition = {"types": {"a": "S", "b": "N", "c": "B", "d": "S"}}
    item = {"a": {"S": "é"}, "b": {"N": "-1.5"}, "c": _binary(b"\x00"), "d": {"S": "x"}}

    key = old_key(definition, item, ["a", "b"], ["c", "d"])

    assert key.hex() == "85777b3e0002c3a900047f7defff00ff000078"


KILLED = """
import os, signal, sys
from pathlib import Path
from tavola.engine.storage import scan_order
from tavola.engine import Engine
scan_order._SLICE_ROWS = 10
rewrite, left = scan_order._rewrite_slice, [int(sys.argv[2])]
def kill(*arguments):
    last = rewrite(*arguments)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return last
scan_order._rewrite_slice = kill
Engine.open(Path(sys.argv[1]), key=sys.argv[3] or None)
"""


@pytest.mark.parametrize(("slices", "key"), [(1, None), (2, None), (9, "a key"), (20, None)])
@pytest.mark.usefixtures("small_slices")
def test_a_kill_in_the_middle_of_an_upgrade_loses_nothing(
    tmp_path: Path, slices: int, key: str | None
) -> None:
    """The next opening continues with the slice that was interrupted, and the result is the same."""
    path = tmp_path / "store.db"
    clock = ManualClock(START_S)
    with closing(_open(path, key, clock)) as engine:
        between_s = _fill(engine, clock)
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with closing(_open(copy, key)) as engine:
        expected = _read_everything(engine, between_s)
    write_format_2(path, key)

    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(slices), key or ""], check=False)
    left = format_of(path, key)
    checked = verify(path, key=key)
    with closing(_open(path, key)) as engine:
        found = _read_everything(engine, between_s)

    assert killed.returncode == -signal.SIGKILL
    assert left[0] == (2 if slices == 1 else FORMAT)
    assert len(left[1]) == (slices > 1)
    assert checked.problems == []
    assert found == expected
    assert format_of(path, key) == (FORMAT, [])


def test_a_row_that_the_upgrade_left_out_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: keys that stay as they were differ from those of their items."""
    path = tmp_path / "store.db"
    clock = ManualClock(START_S)
    with closing(_open(path, None, clock)) as engine:
        _fill(engine, clock)
    write_format_2(path)
    monkeypatch.setattr(scan_order, "_rewrite_of_entry", lambda *_: lambda entry, _: entry)
    monkeypatch.setattr(scan_order, "_move_by", lambda _: lambda key, _: key)
    with closing(_open(path)):
        pass

    problems = [problem.what for problem in verify(path).problems]

    assert "the key of the row differs from the key of its item" in problems
    assert any("its entry in index by-g does not follow" in what for what in problems)


def test_jobs_that_were_copying_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup, a restore and an export that the upgrade interrupts are complete in the end, each item once."""
    monkeypatch.setattr(backups, "START", copies.CopyPosition(rows=4))
    monkeypatch.setattr(restores, "START", copies.CopyPosition(rows=4))
    monkeypatch.setattr(copies, "SLICE_ROWS_MAX", 4)
    path, buckets = tmp_path / "store.db", tmp_path / "buckets"
    (buckets / "exports").mkdir(parents=True)
    clock = ManualClock(START_S)
    with closing(Engine.open(path, clock=clock, buckets=buckets)) as engine:
        _fill(engine, clock)
        (kept,) = engine.call("ListBackups", {})["BackupSummaries"]
        engine.call("CreateBackup", {"TableName": "Texts", "BackupName": "interrupted"})
        engine.call(
            "RestoreTableFromBackup", {"BackupArn": kept["BackupArn"], "TargetTableName": "FromBackup"}
        )
        arn = engine.call("DescribeTable", {"TableName": "Numbers"})["Table"]["TableArn"]
        engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "exports"})
        for _ in range(6):
            engine.run_background_work(budget_ms=0)
        running = {job.kind: job.state for job in engine._services.jobs.unfinished.values()}
        expected = sorted(map(str, _pages(engine, {"TableName": "Texts"})))
        numbers = len(_pages(engine, {"TableName": "Numbers"}))
    write_format_2(path)

    with closing(Engine.open(path, clock=clock, buckets=buckets)) as engine:
        _settle(engine)
        copied = _pages(engine, {"TableName": "FromBackup"})
        (made,) = [
            each
            for each in engine.call("ListBackups", {})["BackupSummaries"]
            if each["BackupName"] == "interrupted"
        ]
        engine.call("RestoreTableFromBackup", {"BackupArn": made["BackupArn"], "TargetTableName": "Again"})
        _settle(engine)
        again = _pages(engine, {"TableName": "Again"})
        (export,) = engine.call("ListExports", {})["ExportSummaries"]
        exported = engine.call("DescribeExport", {"ExportArn": export["ExportArn"]})["ExportDescription"]

    assert set(running) == {"backup", "restore", "export"}
    assert all(running[kind]["place"]["after"] for kind in ("backup", "restore"))
    assert len(copied) == ITEMS
    assert sorted(map(str, again)) == expected
    assert (exported["ExportStatus"], exported["ItemCount"]) == ("COMPLETED", numbers)
    assert verify(path).problems == []


# The mechanism, with steps of its own


def _store(path: Path) -> apsw.Connection:
    Engine.open(path).close()
    return connect_file(str(path), None)


def test_steps_run_in_order_and_only_once(tmp_path: Path) -> None:
    """Each step above the store's format runs, the lower ones do not; at the end the format is the last one's."""
    connection = _store(tmp_path / "store.db")
    run: list[int] = []

    def step(number: int) -> FormatStep:
        def note(_: apsw.Cursor, __: Any) -> Iterator[tuple[dict[str, Any], float]]:
            run.append(number)
            yield {}, 0.5

        return FormatStep(number, "a test", note)

    steps = (step(FORMAT), step(FORMAT + 1), step(FORMAT + 2))
    upgrade_format(connection, steps=steps)
    upgrade_format(connection, steps=steps)

    assert run == [FORMAT + 1, FORMAT + 2]
    assert connection.pragma("user_version") == FORMAT + 2
    connection.close()


def test_a_step_that_fails_continues_after_its_last_slice(tmp_path: Path) -> None:
    """What a slice wrote is stored with its state or not at all, and an earlier version is kept out meanwhile."""
    connection = _store(tmp_path / "store.db")
    connection.execute("CREATE TABLE done (number INTEGER PRIMARY KEY)")
    fails = [3]

    def number_on(cursor: apsw.Cursor, state: Any) -> Iterator[tuple[dict[str, Any], float]]:
        for number in range(state["next"] if state else 0, 5):
            cursor.execute("INSERT INTO done VALUES (?)", (number,))
            if number in fails:
                raise apsw.FullError("planted")
            yield {"next": number + 1}, number / 5

    steps = (FormatStep(FORMAT + 1, "a test", number_on),)
    with pytest.raises(apsw.FullError):
        upgrade_format(connection, steps=steps)
    after_failure = connection.execute("SELECT count(*) FROM done").get, connection.pragma("user_version")
    fails.clear()
    upgrade_format(connection, steps=steps)

    assert after_failure == (3, FORMAT + 1)
    assert connection.execute("SELECT count(*) FROM done").get == 5
    assert connection.execute("SELECT count(*) FROM record WHERE kind = 'upgrade'").get == 0
    connection.close()


def test_a_long_upgrade_says_how_far_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each tenth is logged once; an upgrade of a few slices is not mentioned."""
    connection = _store(tmp_path / "store.db")

    def count_up(_: apsw.Cursor, __: Any) -> Iterator[tuple[dict[str, Any], float]]:
        for number in range(1, 101):
            yield {}, number / 100

    def finish(_: apsw.Cursor, __: Any) -> Iterator[tuple[dict[str, Any], float]]:
        for number in range(1, 6):
            yield {}, number / 6

    upgrade_format(connection, steps=(FormatStep(FORMAT + 1, "long", count_up),))
    upgrade_format(connection, steps=(FormatStep(FORMAT + 2, "short", finish),))

    assert [record.getMessage() for record in caplog.records] == [
        f"Upgrading the store to format {FORMAT + 1} (long): {tenth}0 % done; it may be interrupted"
        for tenth in range(1, 10)
    ]
    connection.close()


def test_a_newer_store_is_refused_and_unchanged(tmp_path: Path) -> None:
    """The message has both formats and what to do; verifying such a file is refused likewise."""
    path = tmp_path / "store.db"
    connection = _store(path)
    connection.pragma("user_version", FORMAT + 1)
    connection.close()
    before = path.read_bytes()

    for refuse in (Engine.open, verify):
        with pytest.raises(
            StoreError, match=rf"has format {FORMAT + 1}.* newer .* up to {FORMAT}.* later one"
        ):
            refuse(path)

    assert path.read_bytes() == before


def test_the_steps_are_numbered_one_after_the_other() -> None:
    """A gap, or a step out of order, would leave a store between two formats."""
    numbers = [step.format for step in file_format.FORMAT_STEPS]

    assert numbers == list(range(2, FORMAT + 1))
