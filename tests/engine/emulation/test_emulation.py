"""What production does to requests, on purpose: stale reads, conflicts, undone batches, late expiry, hot keys."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.entropy import SeededEntropy
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.faults import (
    Fault,
    ResourceNotFoundFault,
    TransactionCanceledFault,
    TransactionConflictFault,
    TransactionInProgressFault,
)
from tests.engine.emulation.load import item, make, opened, put

KEY = {"pk": {"S": "a"}}


def _get(engine: Engine, **more: Any) -> str | None:
    found = engine.call("GetItem", {"TableName": "notes", "Key": KEY, **more})
    return found["Item"]["n"]["S"] if "Item" in found else None


def _by_status(engine: Engine) -> list[str]:
    found = engine.call(
        "Query",
        {
            "TableName": "notes",
            "IndexName": "by_status",
            "KeyConditionExpression": "#s = :s",
            "ExpressionAttributeNames": {"#s": "status"},
            "ExpressionAttributeValues": {":s": {"S": "OPEN"}},
        },
    )
    return [each["n"]["S"] for each in found["Items"]]


def test_eventually_consistent_reads_may_miss_a_write_for_a_while() -> None:
    """Within the time a read may show what was before, afterwards none does; a consistent read never does."""
    engine, clock = opened("stale-reads=100ms,seed=1")
    make(engine, "notes")
    put(engine, "notes", item("a", n="old"))
    clock.advance(1.0)
    put(engine, "notes", item("a", n="new"))
    clock.advance(0.02)
    soon = [_get(engine) for _ in range(100)]
    consistent = {_get(engine, ConsistentRead=True) for _ in range(100)}
    clock.advance(0.1)
    later = {_get(engine) for _ in range(100)}

    assert set(soon) == {"old", "new"}
    assert 35 <= soon.count("old") <= 75  # two replicas of three, each behind by more than 20 ms in 80 of 100
    assert (consistent, later) == ({"new"}, {"new"})


def test_staleness_reaches_every_eventually_consistent_read() -> None:
    """Get, batch, query and scan may miss an item and see a deleted one; transactions never do."""
    engine, clock = opened("stale-reads=10s,seed=2")
    make(engine, "notes")
    clock.advance(60.0)
    put(engine, "notes", item("a", n="here"))
    clock.advance(0.001)
    query = {
        "TableName": "notes",
        "KeyConditionExpression": "pk = :k",
        "ExpressionAttributeValues": {":k": {"S": "a"}},
    }
    got, batched, queried, scanned, transacted = set(), set(), set(), set(), set()
    for _ in range(40):
        got.add(_get(engine))
        batch = engine.call("BatchGetItem", {"RequestItems": {"notes": {"Keys": [KEY]}}})
        batched.add(len(batch["Responses"]["notes"]))
        queried.add(engine.call("Query", query)["Count"])
        scanned.add(engine.call("Scan", {"TableName": "notes"})["Count"])
        read = engine.call(
            "TransactGetItems", {"TransactItems": [{"Get": {"TableName": "notes", "Key": KEY}}]}
        )
        transacted.add(len(read["Responses"]))
        consistent = engine.call("Scan", {"TableName": "notes", "ConsistentRead": True})

    assert got == {None, "here"}
    assert batched == queried == scanned == {0, 1}
    assert (transacted, consistent["Count"]) == ({1}, 1)


def test_a_global_index_lags_and_the_table_does_not() -> None:
    """An index shows a change later than the table, old keys too; after the lag it shows all."""
    engine, clock = opened("gsi-lag=200ms,seed=3")
    make(engine, "notes", indexes={"by_status": "status pk"})
    put(engine, "notes", item("a", n="1", status="OPEN"))
    clock.advance(1.0)
    put(engine, "notes", item("a", n="1", status="DONE"))
    clock.advance(0.05)
    soon = [tuple(_by_status(engine)) for _ in range(60)]
    table = {_get(engine) for _ in range(60)}
    clock.advance(0.2)
    later = {tuple(_by_status(engine)) for _ in range(60)}

    assert set(soon) == {(), ("1",)}
    assert 30 <= soon.count(("1",)) <= 58  # behind by more than 50 of 200 ms in three of four
    assert (table, later) == ({"1"}, {()})


def test_stale_reads_repeat_from_their_seed_and_differ_between_seeds() -> None:
    """The same requests at the same times see the same; another seed sees something else."""

    def seen(emulate: str) -> list[str | None]:
        engine, clock = opened(emulate)
        make(engine, "notes")
        found = []
        for number in range(60):
            put(engine, "notes", item("a", n=f"{number}"))
            clock.advance(0.01)
            found.append(_get(engine))
        return found

    assert seen("stale-reads=100ms,seed=5") == seen("stale-reads=100ms,seed=5")
    assert seen("stale-reads=100ms,seed=5") == seen("stale-reads=100ms@5,conflicts=1ms")
    assert seen("stale-reads=100ms,seed=5") != seen("stale-reads=100ms,seed=6")
    assert seen("seed=5") == [f"{number}" for number in range(60)]


def test_staleness_works_on_tables_that_were_there_before(tmp_path: object) -> None:
    """A file that was made without the switch is read as it is, and changes from then on may be missed."""
    path = f"{tmp_path}/store.db"
    clock = ManualClock()
    with Engine.open(path, clock=clock) as plain:
        make(plain, "notes")
        put(plain, "notes", item("a", n="old"))
    clock.advance(1.0)
    with Engine.open(path, clock=clock, emulate="stale-reads=1s") as engine:
        before = {_get(engine) for _ in range(30)}
        put(engine, "notes", item("a", n="new"))
        clock.advance(0.001)
        after = {_get(engine) for _ in range(30)}
    with Engine.open(path, clock=clock) as plain:
        finally_ = {_get(plain) for _ in range(30)}

    assert (before, after, finally_) == ({"old"}, {"old", "new"}, {"new"})


def _transact(engine: Engine, *keys: str, token: str | None = None, n: str = "1") -> None:
    actions = [{"Put": {"TableName": "notes", "Item": item(key, n=n)}} for key in keys]
    request: dict[str, Any] = {"TransactItems": actions}
    if token is not None:
        request["ClientRequestToken"] = token
    engine.call("TransactWriteItems", request)


def test_a_write_that_meets_a_transaction_conflicts() -> None:
    """While a transaction holds an item, single writes of it conflict, others and reads pass, later all do."""
    engine, clock = opened("conflicts=1000s,seed=1")
    make(engine, "notes")
    _transact(engine, "a", "b")
    with pytest.raises(TransactionConflictFault, match="Transaction is ongoing for the item"):
        put(engine, "notes", item("a", n="2"))
    for operation, request in (
        ("DeleteItem", {"TableName": "notes", "Key": KEY}),
        ("UpdateItem", {"TableName": "notes", "Key": KEY}),
    ):
        with pytest.raises(TransactionConflictFault):
            engine.call(operation, request)
    put(engine, "notes", item("c", n="2"))

    assert _get(engine) == "1"
    clock.advance(1000.0)
    put(engine, "notes", item("a", n="2"))


def test_transactions_that_meet_are_cancelled_with_the_action_that_met() -> None:
    """A second transaction on an item is cancelled, with TransactionConflict where it met; a read too."""
    engine, clock = opened("conflicts=1000s,seed=1")
    make(engine, "notes")
    _transact(engine, "a")
    with pytest.raises(TransactionCanceledFault) as wrote:
        _transact(engine, "b", "a", n="2")
    gets = [{"Get": {"TableName": "notes", "Key": {"pk": {"S": key}}}} for key in "ab"]
    with pytest.raises(TransactionCanceledFault) as read:
        engine.call("TransactGetItems", {"TransactItems": gets})
    clock.advance(1000.0)
    put(engine, "notes", item("b", n="3"))
    with pytest.raises(TransactionCanceledFault) as beside:
        engine.call("TransactGetItems", {"TransactItems": gets})

    assert [reason.code for reason in wrote.value.reasons] == ["None", "TransactionConflict"]
    assert wrote.value.reasons[1].message == "Transaction is ongoing for the item"
    assert [reason.code for reason in read.value.reasons] == ["TransactionConflict", "None"]
    assert [reason.code for reason in beside.value.reasons] == ["None", "TransactionConflict"]


def test_a_token_that_is_at_work_is_in_progress_and_then_answered() -> None:
    """The same token within the time is TransactionInProgress; after it, the replay is answered."""
    engine, clock = opened("conflicts=5s,seed=1")
    make(engine, "notes")
    _transact(engine, "a", token="once")
    with pytest.raises(TransactionInProgressFault):
        _transact(engine, "a", token="once")
    clock.advance(5.0)
    _transact(engine, "a", token="once")

    assert _get(engine, ConsistentRead=True) == "1"


def test_conflicts_under_contention_come_and_go_by_the_seed() -> None:
    """Writers that come every 5 ms to an item that each holds for up to 20 ms conflict often, not always."""

    def run(emulate: str) -> list[bool]:
        engine, clock = opened(emulate)
        make(engine, "notes")
        passed = []
        for number in range(200):
            try:
                _transact(engine, "a", n=f"{number}")
                passed.append(True)
            except TransactionCanceledFault:
                passed.append(False)
            clock.advance(0.005)
        return passed

    first = run("conflicts=20ms,seed=1")

    assert 60 <= sum(first) <= 140
    assert first == run("conflicts=20ms,seed=1") != run("conflicts=20ms,seed=2")
    assert all(run("unprocessed=0.5"))


def test_a_held_item_of_a_batch_is_left_undone() -> None:
    """A batch that meets a transaction leaves that member unprocessed and does the others."""
    engine, _ = opened("conflicts=1000s,seed=1")
    make(engine, "notes")
    _transact(engine, "a")
    writes = [{"PutRequest": {"Item": item(key, n="2")}} for key in "ab"]
    answer = engine.call("BatchWriteItem", {"RequestItems": {"notes": writes}})

    assert answer["UnprocessedItems"] == {"notes": writes[:1]}


def test_members_of_batches_come_back_unprocessed() -> None:
    """About the stated share is left, one at least is done, and asking again gets everything done."""
    engine, _ = opened("unprocessed=0.4,seed=1")
    make(engine, "notes")
    left = 0
    for start in range(0, 500, 25):
        writes = [{"PutRequest": {"Item": item(f"k{number}")}} for number in range(start, start + 25)]
        pending: dict[str, Any] = {"notes": writes}
        rounds = 0
        while pending:
            answer = engine.call("BatchWriteItem", {"RequestItems": pending})
            assert answer["UnprocessedItems"] != pending
            pending = answer["UnprocessedItems"]
            left += len(pending.get("notes", [])) if not rounds else 0
            rounds += 1
    keys = [{"pk": {"S": f"k{number}"}} for number in range(100)]
    read = engine.call("BatchGetItem", {"RequestItems": {"notes": {"Keys": keys}}})

    assert 150 <= left <= 250
    assert engine.call("Scan", {"TableName": "notes"})["Count"] == 500
    assert 25 <= len(read["UnprocessedKeys"]["notes"]["Keys"]) <= 55
    assert len(read["Responses"]["notes"]) + len(read["UnprocessedKeys"]["notes"]["Keys"]) == 100


def test_even_a_share_of_one_leaves_a_way_on() -> None:
    """Where everything may be left, each batch still does one member."""
    engine, _ = opened("unprocessed=1")
    make(engine, "notes")
    writes = [{"DeleteRequest": {"Key": {"pk": {"S": f"k{number}"}}}} for number in range(3)]
    answer = engine.call("BatchWriteItem", {"RequestItems": {"notes": writes}})
    single = engine.call("BatchWriteItem", {"RequestItems": {"notes": writes[:1]}})

    assert len(answer["UnprocessedItems"]["notes"]) == 2
    assert single["UnprocessedItems"] == {}


def test_expired_items_stay_for_a_while() -> None:
    """With a delay an expired item is there past its time, and is gone once the longest delay is over."""
    clock = ManualClock(1_700_000_000.0)
    with Engine.open(clock=clock, emulate="ttl-delay=1000s,seed=1", ttl_interval_s=1.0) as engine:
        make(engine, "notes")
        engine.call(
            "UpdateTimeToLive",
            {"TableName": "notes", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}},
        )
        engine.call(
            "PutItem", {"TableName": "notes", "Item": {**KEY, "n": {"S": "1"}, "ttl": {"N": "1700000010"}}}
        )
        there: list[bool] = []
        for _ in range(1100):
            clock.advance(1.0)
            engine.call("ListTables", {})
            engine.run_background_work(50.0)
            there.append(_get(engine) is not None)

    gone_after_s = there.index(False) - 9
    assert 1 < gone_after_s <= 1001
    assert not any(there[there.index(False) :])


def test_hot_keys_are_reported_while_throughput_is_emulated() -> None:
    """The keys that took most come first with their units, and those that were refused, table and index apart."""
    engine, _ = opened("throughput")
    make(engine, "notes", "pk sk", units=(100, 30), indexes={"by_status": "status pk"}, index_units=(9, 100))
    for number in range(25):
        put(
            engine, "notes", item("hot" if number % 5 else f"cold{number}", sk=f"{number % 2}", status="OPEN")
        )
    while True:
        try:
            put(engine, "notes", item("greedy", sk="0"))
        except Fault:
            break
    found = engine.hottest("notes", count=2)
    index = engine.hottest("notes", "by_status")

    assert [(hot.key["pk"]["S"], hot.count) for hot in found.accessed] == [("hot", 20.0), ("greedy", 5.0)]
    assert set(found.accessed_items[0].key) == {"pk", "sk"}
    assert [(hot.key["pk"]["S"], hot.count) for hot in found.throttled] == [("greedy", 1.0)]
    assert [(hot.key["status"]["S"], hot.error) for hot in index.accessed] == [("OPEN", 0.0)]
    assert not index.throttled


def test_hot_keys_of_nothing_are_refused_or_none() -> None:
    """A table or index that is not there is refused as AWS does; where nothing is counted nothing is reported."""
    engine, _ = opened()
    make(engine, "notes", "pk sk", local={"by_n": "pk n"})

    assert engine.hottest("notes").accessed == ()
    with pytest.raises(ResourceNotFoundFault, match="Table: other not found"):
        engine.hottest("other")
    with pytest.raises(ResourceNotFoundFault, match="Index: by_n not found for table: notes"):
        engine.hottest("notes", "by_n")


def test_queries_count_for_their_partition_and_scans_for_nothing() -> None:
    """A query heats its partition key, no single item; a scan heats no key."""
    engine, _ = opened("throughput")
    make(engine, "notes", "pk sk", units=(100, 100))
    query = {
        "TableName": "notes",
        "KeyConditionExpression": "pk = :k AND sk > :s",
        "ExpressionAttributeValues": {":k": {"S": "a"}, ":s": {"S": "0"}},
    }
    for _ in range(3):
        engine.call("Query", query)
        engine.call("Scan", {"TableName": "notes"})
    found = engine.hottest("notes")

    assert [(hot.key, hot.count) for hot in found.accessed] == [(KEY, 1.5)]
    assert found.accessed_items == ()


ALL = (
    "throughput,gsi-lag=200ms,stale-reads=100ms,conflicts=20ms,unprocessed=0.2,interleave=50ms,ttl-delay=60s"
)


def _run(switches: str) -> list[bytes]:
    """Ask a few hundred requests of all kinds and return every answer, the refusals too."""
    chance = random.Random(8)
    clock = ManualClock()
    answers: list[bytes] = []
    with Engine.open(clock=clock, entropy=SeededEntropy(1), emulate=switches) as engine:
        make(engine, "notes", units=(60, 60), indexes={"by_status": "status pk"}, index_units=(60, 60))
        for number in range(400):
            clock.advance(chance.expovariate(50))
            key = {"pk": {"S": f"k{chance.randrange(6)}"}}
            entry = {**key, "status": {"S": chance.choice(["OPEN", "DONE"])}, "n": {"S": f"{number}"}}
            put_ = {"Put": {"TableName": "notes", "Item": entry}}
            writes = [{"PutRequest": {"Item": entry | {"pk": {"S": f"b{place}"}}}} for place in range(4)]
            operation, request = chance.choice(
                [
                    ("PutItem", {"TableName": "notes", "Item": entry}),
                    ("GetItem", {"TableName": "notes", "Key": key}),
                    ("TransactWriteItems", {"TransactItems": [put_]}),
                    ("BatchWriteItem", {"RequestItems": {"notes": writes}}),
                    ("Scan", {"TableName": "notes", "IndexName": "by_status"}),
                ]
            )
            try:
                answers.append(engine.execute(operation, msgspec.json.encode(request)))
            except Fault as fault:
                answers.append(fault.body())
    return answers


def test_a_run_with_everything_on_repeats_from_its_seed() -> None:
    """Same seed, same requests, same clock: the same responses to the last byte; another seed, others."""
    first = _run(f"{ALL},seed=1")
    kinds = {
        kind
        for kind in (b"ThroughputExceeded", b"TransactionConflict", b'"PutRequest"')
        if any(kind in answer for answer in first)
    }

    assert first == _run(f"{ALL},seed=1")
    assert first != _run(f"{ALL},seed=2")
    assert len(kinds) == 3  # the run meets each of them


def test_statements_meet_the_same_hardships() -> None:
    """PartiQL reads and writes are throttled and conflict as the operations they stand for."""
    engine, _ = opened("throughput,conflicts=1000s,seed=1")
    make(engine, "notes", units=(1, 2))
    engine.call("ExecuteStatement", {"Statement": "INSERT INTO notes VALUE {'pk': 'a'}"})
    engine.call("ExecuteStatement", {"Statement": "INSERT INTO notes VALUE {'pk': 'b'}"})
    with pytest.raises(Fault) as written:
        engine.call("ExecuteStatement", {"Statement": "INSERT INTO notes VALUE {'pk': 'c'}"})
    select = {"Statement": "SELECT * FROM notes WHERE pk = 'a'", "ConsistentRead": True}
    engine.call("ExecuteStatement", select)
    with pytest.raises(Fault) as read:
        engine.call("ExecuteStatement", select)
    make(engine, "other")
    action = {"Put": {"TableName": "other", "Item": item("a")}}
    engine.call("TransactWriteItems", {"TransactItems": [action]})
    with pytest.raises(TransactionConflictFault):
        engine.call("ExecuteStatement", {"Statement": "DELETE FROM other WHERE pk = 'a'"})

    assert written.value.code == read.value.code == "ProvisionedThroughputExceededException"


@pytest.mark.parametrize("action", ["DISABLE", "ENABLE"])
def test_whether_keys_are_watched_is_what_is_stored(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of Contributor Insights that is undone leaves a watcher where there is something to watch."""
    engine, _ = opened()
    make(engine, "notes")
    if action == "DISABLE":
        engine.call(
            "UpdateContributorInsights", {"TableName": "notes", "ContributorInsightsAction": "ENABLE"}
        )
    before = engine._services.emulation.active
    with monkeypatch.context() as broken:
        broken.setattr(engine._catalog.__class__, "save_counts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.call(
                "UpdateContributorInsights", {"TableName": "notes", "ContributorInsightsAction": action}
            )
    put(engine, "notes", item("a"))
    result = engine.call("DescribeContributorInsights", {"TableName": "notes"})

    assert engine._services.emulation.active is before
    assert result["ContributorInsightsStatus"] == ("ENABLED" if action == "DISABLE" else "DISABLED")
    if action == "DISABLE":
        assert [hot["Key"] for hot in result["TavolaHottestKeys"]["MostAccessedPartitionKeys"]] == [KEY]


def test_a_deleted_table_leaves_nothing_behind() -> None:
    """Its hot keys and its partitions go with it, those of its indexes too; another table's stay."""
    engine, _ = opened("throughput")
    for name in ("notes", "kept"):
        make(engine, name, indexes={"by_n": "n"})
        put(engine, name, item("a", n="1"))
    emulation = engine._services.emulation
    assert emulation.throughput is not None
    kept = engine._catalog.find(DEFAULT_SCOPE, "kept")
    assert kept is not None
    engine.call("DeleteTable", {"TableName": "notes"})

    numbers = {number for number, _ in (*emulation._counters, *emulation.throughput._resources)}
    assert numbers == {kept.definition.number}
    assert len(emulation._counters) == len(emulation.throughput._resources) == 2
