"""The engine against a plain dict: every write, every read, on every kind of key and index."""

from __future__ import annotations

import os
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Failed
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tavola.clock import ManualClock
from tavola.engine import Engine, capacity, isolation, writes
from tavola.engine.storage import SqliteTableStore
from tavola.entropy import SeededEntropy
from tavola.protocol.faults import ConditionalCheckFailedFault, TransactionCanceledFault
from tests.durability.state import faults_in, scan
from tests.properties.model import SHAPES, Cost, Model, add_request, create_request, page_units
from tests.properties.naive import Item, identity, item_bytes, plain, read_units, satisfies, sort_key
from tests.properties.strategies import base64_text

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "campaign"

# Few values, so that keys meet and index keys change; some are prefixes of others, some are large.
TEXTS = st.sampled_from(["a", "a\x00", "a\x00b", "b", "\uffff", "\U0001f600", "ab"])
NUMBERS = st.sampled_from(["0", "1", "-1", "1.5", "100", "-0.01", "9" * 38])
BINARIES = st.sampled_from([b"\x00", b"\x00\x00", b"\x00\x01", b"\xff", b"\xff\xff", b"a"]).map(base64_text)
SCALARS = {"S": TEXTS, "N": NUMBERS, "B": BINARIES}
NOTES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from(
        [{"S": "x" * 1100}, {"S": "y" * 5000}, {"SS": ["p", "q"]}, {"SS": ["q", "p"]}, {"BOOL": True}]
    ),
    st.integers(0, 3).map(lambda number: {"N": str(number)}),
)
OPERATORS = ["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]


def _typed(type_: str) -> st.SearchStrategy[dict[str, Any]]:
    return SCALARS[type_].map(lambda content: {type_: content})


@st.composite
def keys_of(draw: st.DrawFn, model: Model) -> Item:
    """Draw the key of an item, there or not."""
    known_share: int = draw(st.integers(0, 3))
    if known_share and model.items:
        known = draw(st.sampled_from(list(model.items.values())))
        return {name: known[name] for name in model.shape.keys}
    return {name: draw(_typed(model.shape.types[name])) for name in model.shape.keys}


@st.composite
def items_of(draw: st.DrawFn, model: Model) -> Item:
    """Draw an item; it lacks some index attributes, and so is in some indexes."""
    item = draw(keys_of(model))
    for name, type_ in model.shape.types.items():
        if name not in item and draw(st.integers(0, 3)):
            item[name] = draw(_typed(type_))
    if draw(st.booleans()):
        item["note"] = draw(NOTES)
    return item


def _free_value(model: Model, name: str) -> st.SearchStrategy[dict[str, Any]]:
    return NOTES if name == "note" else _typed(model.shape.types[name])


@st.composite
def updates_of(draw: st.DrawFn, model: Model) -> tuple[dict[str, Any], list[str], int]:
    """Draw an update as attributes to set, a number to add, and attributes to remove."""
    free = [name for name in ("a", "b", "c", "note") if name not in model.shape.keys]
    chosen = draw(st.lists(st.sampled_from(free), max_size=3, unique=True))
    removed = [name for name in chosen if draw(st.booleans())]
    given = {n: draw(_free_value(model, n)) for n in chosen if n not in removed}
    return given, removed, draw(st.integers(-3, 3))


class EngineAgainstDict(RuleBasedStateMachine):
    """An engine and a dict do the same, and are asked the same."""

    folder: Path | None = None

    @initialize(shape=st.sampled_from(SHAPES), on_file=st.booleans())
    def open(self, shape: Any, on_file: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tavola-")) if on_file else None
        self.model = Model(shape)
        self.clock = ManualClock()
        self.engine = self._open()
        self.engine.call("CreateTable", create_request(shape))
        self.tokens: list[dict[str, Any]] = []

    def _open(self) -> Engine:
        path = self.folder / "store.db" if self.folder else None
        return Engine.open(path, clock=self.clock, entropy=SeededEntropy(1), sync="off", cache_mb=1)

    @precondition(lambda self: self.folder is not None)
    @rule()
    def reopen(self) -> None:
        self.engine.close()
        self.engine = self._open()

    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        item = data.draw(items_of(self.model))
        old = self.model.get(item)

        answer = self._call("PutItem", Item=item, ReturnValues="ALL_OLD")

        assert plain(answer.get("Attributes")) == plain(old)
        self._check_cost(answer["ConsumedCapacity"], self.model.put(item))

    @rule(data=st.data(), wanted=st.sampled_from(["there", "gone", "same"]), shown=st.booleans())
    def put_if(self, data: st.DataObject, wanted: str, shown: bool) -> None:
        item = data.draw(items_of(self.model))
        old = self.model.get(item)
        condition, values = self._condition(wanted, data, item)
        holds = self._holds(wanted, old, values)
        request = {"Item": item, **condition}
        if shown:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"

        if holds:
            self._check_cost(self._call("PutItem", **request)["ConsumedCapacity"], self.model.put(item))
        else:
            with pytest.raises(ConditionalCheckFailedFault) as caught:
                self._call("PutItem", **request)
            assert (caught.value.item is not None) == (shown and old is not None)

    @rule(data=st.data(), wanted=st.sampled_from(["", "there", "gone"]))
    def delete(self, data: st.DataObject, wanted: str) -> None:
        key = data.draw(keys_of(self.model))
        old = self.model.get(key)
        condition, values = self._condition(wanted, data, key)

        if self._holds(wanted, old, values):
            answer = self._call("DeleteItem", Key=key, ReturnValues="ALL_OLD", **condition)
            assert plain(answer.get("Attributes")) == plain(old)
            self._check_cost(answer["ConsumedCapacity"], self.model.delete(key))
        else:
            with pytest.raises(ConditionalCheckFailedFault):
                self._call("DeleteItem", Key=key, **condition)

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        key = data.draw(keys_of(self.model))
        request, new = self._update(data, key)
        old = self.model.get(key)

        answer = self._call("UpdateItem", ReturnValues="ALL_NEW", **request)

        assert plain(answer["Attributes"]) == plain(new)
        self.model.items[self.model.key(new)] = new
        self._check_cost(answer["ConsumedCapacity"], self.model.cost(old, new))

    @rule(data=st.data())
    def batch(self, data: st.DataObject) -> None:
        writes: list[dict[str, Any]] = []
        cost = Cost()
        for item in self._distinct(data, 6):
            if data.draw(st.booleans()):
                writes.append({"PutRequest": {"Item": item}})
                cost.add(self.model.put(item))
            else:
                key = {name: item[name] for name in self.model.shape.keys}
                writes.append({"DeleteRequest": {"Key": key}})
                cost.add(self.model.delete(key))

        answer = self.engine.call(
            "BatchWriteItem",
            {"RequestItems": {self.model.shape.name: writes}, "ReturnConsumedCapacity": "INDEXES"},
        )

        assert answer["UnprocessedItems"] == {}
        self._check_cost(answer["ConsumedCapacity"][0], cost)

    @rule(data=st.data(), spoiled=st.booleans())
    def transact(self, data: st.DataObject, spoiled: bool) -> None:
        name = self.model.shape.name
        actions: list[dict[str, Any]] = []
        after: list[tuple[Item, Item | None]] = []
        cost = Cost()
        for item in self._distinct(data, 4):
            key = {each: item[each] for each in self.model.shape.keys}
            match data.draw(st.sampled_from(["Put", "Update", "Delete", "ConditionCheck"])):
                case "Put":
                    actions.append({"Put": {"TableName": name, "Item": item}})
                    after.append((key, item))
                case "Update":
                    request, new = self._update(data, key)
                    actions.append({"Update": {"TableName": name, **request}})
                    after.append((key, new))
                case "Delete":
                    actions.append({"Delete": {"TableName": name, "Key": key}})
                    after.append((key, None))
                case _:
                    there = self.model.get(key) is not None
                    function = "attribute_exists" if there else "attribute_not_exists"
                    check = {
                        "TableName": name,
                        "Key": key,
                        "ConditionExpression": f"{function}({next(iter(key))})",
                    }
                    actions.append({"ConditionCheck": check})
                    cost.table += 2 * max(1, -(-item_bytes(self.model.get(key) or {}) // 1024))
        if spoiled:
            self._spoil(actions)
        request = {
            "TransactItems": actions,
            "ClientRequestToken": f"token {len(self.tokens)}",
            "ReturnConsumedCapacity": "INDEXES",
        }

        if spoiled:
            with pytest.raises(TransactionCanceledFault):
                self.engine.call("TransactWriteItems", request)
            return
        answer = self.engine.call("TransactWriteItems", request)
        for key, image in after:
            cost.add(self.model.cost(self.model.get(key), image), 2.0)
            if image is None:
                self.model.items.pop(self.model.key(key), None)
            else:
                self.model.items[self.model.key(key)] = image
        self._check_cost(answer["ConsumedCapacity"][0], cost)
        self.tokens.append(request)

    @precondition(lambda self: self.tokens)
    @rule()
    def transact_again(self) -> None:
        answer = self.engine.call("TransactWriteItems", self.tokens[-1])

        assert "WriteCapacityUnits" not in answer["ConsumedCapacity"][0]

    @rule(data=st.data())
    def index_comes_or_goes(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(self.model.shape.late))
        if index.name in self.model.indexes:
            gone = {"Delete": {"IndexName": index.name}}
            self.engine.call(
                "UpdateTable", {"TableName": self.model.shape.name, "GlobalSecondaryIndexUpdates": [gone]}
            )
            del self.model.indexes[index.name]
        else:
            self.engine.call("UpdateTable", add_request(self.model.shape, index))
            self.model.indexes[index.name] = index

    @rule(data=st.data(), consistent=st.booleans())
    def get(self, data: st.DataObject, consistent: bool) -> None:
        key = data.draw(keys_of(self.model))
        item = self.model.get(key)

        answer = self._call("GetItem", Key=key, ConsistentRead=consistent)

        assert plain(answer.get("Item")) == plain(item)
        units = read_units(item_bytes(item or {}), consistent=consistent)
        assert answer["ConsumedCapacity"]["CapacityUnits"] == units

    @rule(data=st.data())
    def get_many(self, data: st.DataObject) -> None:
        keys = [{n: item[n] for n in self.model.shape.keys} for item in self._distinct(data, 5)]
        name = self.model.shape.name

        together = self.engine.call(
            "TransactGetItems", {"TransactItems": [{"Get": {"TableName": name, "Key": key}} for key in keys]}
        )
        batch = self.engine.call("BatchGetItem", {"RequestItems": {name: {"Keys": keys}}})

        expected = [self.model.get(key) for key in keys]
        assert [plain(each.get("Item")) for each in together["Responses"]] == [
            plain(item) for item in expected
        ]
        there = [item for item in expected if item is not None]
        assert self._same(batch["Responses"][name], there)

    @rule(data=st.data(), reverse=st.booleans(), limit=st.integers(1, 4))
    def query(self, data: st.DataObject, reverse: bool, limit: int) -> None:
        index = data.draw(st.sampled_from([None, *self.model.indexes]))
        rows = self.model.rows(index)
        assume(rows)
        near = data.draw(st.sampled_from(rows))
        hashes, ranges = self.model.names(index)
        terms = [(name, "=", (near[name],)) for name in hashes]
        equal = ranges[: data.draw(st.integers(0, len(ranges)))]
        terms += [(name, "=", (near[name],)) for name in equal]
        named = len(equal)
        if named < len(ranges) and data.draw(st.booleans()):
            terms.append(self._range_term(data, ranges[named], rows))
        expected = [
            row
            for row in rows
            if all(satisfies(row[name], operator, given) for name, operator, given in terms)
        ]
        request = self._key_condition(index, terms) | {"ScanIndexForward": not reverse}

        whole = self._pages("Query", request, None, index)
        paged = self._pages("Query", request, limit, index)

        assert whole == paged
        assert self._same(whole, expected)
        order = [self.model.order(index, item) for item in whole]
        assert order == sorted(order, reverse=reverse)
        other_way = self._pages("Query", request | {"ScanIndexForward": reverse}, None, index)
        assert other_way == whole[::-1]

    @rule(data=st.data(), segments=st.integers(1, 4), limit=st.integers(1, 5))
    def scan(self, data: st.DataObject, segments: int, limit: int) -> None:
        index = data.draw(st.sampled_from([None, *self.model.indexes]))
        found: list[Item] = []
        for segment in range(segments):
            part = {"Segment": segment, "TotalSegments": segments} if segments > 1 else {}
            found += self._pages("Scan", {**({"IndexName": index} if index else {}), **part}, limit, index)

        assert self._same(found, self.model.rows(index))

    @rule()
    def indexes_equal_a_rebuild(self) -> None:
        """I4 and I13: indexes and counts are what a rebuild from the table gives; here and at each end."""
        assert faults_in(self.engine) == []

    def teardown(self) -> None:
        try:
            if hasattr(self, "engine"):
                self.indexes_equal_a_rebuild()
                assert self._same(scan(self.engine, self.model.shape.name), self.model.rows(None))
                self.engine.close()
        finally:
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.engine.call(
            operation, {"TableName": self.model.shape.name, "ReturnConsumedCapacity": "INDEXES", **request}
        )

    def _condition(
        self, wanted: str, data: st.DataObject, item: Item
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        name = self.model.shape.hash
        match wanted:
            case "there":
                return {"ConditionExpression": f"attribute_exists({name})"}, {}
            case "gone":
                return {"ConditionExpression": f"attribute_not_exists({name})"}, {}
            case "same":
                old = self.model.get(item) or {}
                value = old.get("note") or data.draw(NOTES)
                values = {":v": value if data.draw(st.booleans()) else data.draw(NOTES)}
                return {"ConditionExpression": "note = :v", "ExpressionAttributeValues": values}, values
            case _:
                return {}, {}

    def _holds(self, wanted: str, old: Item | None, values: dict[str, Any]) -> bool:
        match wanted:
            case "there":
                return old is not None
            case "gone":
                return old is None
            case "same":
                return bool(plain((old or {}).get("note")) == plain(values[":v"]))
            case _:
                return True

    def _update(self, data: st.DataObject, key: Item) -> tuple[dict[str, Any], Item]:
        given, removed, added = data.draw(updates_of(self.model))
        new = {
            name: value for name, value in (self.model.get(key) or key).items() if name not in removed
        } | given
        counted = Decimal(new.get("hits", {"N": "0"})["N"]) + added
        new["hits"] = {"N": str(counted)}
        parts = [f"ADD hits :add{' ' if given or removed else ''}"]
        if given:
            parts.append("SET " + ", ".join(f"#{name} = :{name}" for name in given))
        if removed:
            parts.append("REMOVE " + ", ".join(f"#{name}" for name in removed))
        request: dict[str, Any] = {
            "Key": key,
            "UpdateExpression": " ".join(parts),
            "ExpressionAttributeValues": {":add": {"N": str(added)}} | {f":{n}": v for n, v in given.items()},
        }
        if given or removed:
            request["ExpressionAttributeNames"] = {f"#{name}": name for name in (*given, *removed)}
        return request, new

    def _spoil(self, actions: list[dict[str, Any]]) -> None:
        """Make one action of a transaction fail on its condition."""
        ((_, action),) = actions[-1].items()
        key = action.get("Key") or {name: action["Item"][name] for name in self.model.shape.keys}
        there = self.model.get(key) is not None
        function = "attribute_not_exists" if there else "attribute_exists"
        action["ConditionExpression"] = f"{function}({self.model.shape.hash})"

    def _distinct(self, data: st.DataObject, most: int) -> list[Item]:
        drawn = data.draw(st.lists(items_of(self.model), min_size=1, max_size=most))
        return list({self.model.key(item): item for item in drawn}.values())

    def _range_term(
        self, data: st.DataObject, name: str, rows: list[Item]
    ) -> tuple[str, str, tuple[Any, ...]]:
        type_ = self.model.shape.types[name]
        operator = data.draw(st.sampled_from([o for o in OPERATORS if o != "begins_with" or type_ != "N"]))
        given = [
            data.draw(st.one_of(_typed(type_), st.sampled_from([row[name] for row in rows])))
            for _ in range(2 if operator == "BETWEEN" else 1)
        ]
        return name, operator, tuple(sorted(given, key=sort_key))

    def _key_condition(
        self, index: str | None, terms: list[tuple[str, str, tuple[Any, ...]]]
    ) -> dict[str, Any]:
        clauses: list[str] = []
        values: dict[str, Any] = {}
        for place, (name, operator, given) in enumerate(terms):
            marks = [f":v{place}_{which}" for which in range(len(given))]
            values |= dict(zip(marks, given, strict=True))
            match operator:
                case "BETWEEN":
                    clauses.append(f"{name} BETWEEN {marks[0]} AND {marks[1]}")
                case "begins_with":
                    clauses.append(f"begins_with({name}, {marks[0]})")
                case _:
                    clauses.append(f"{name} {operator} {marks[0]}")
        request = {"KeyConditionExpression": " AND ".join(clauses), "ExpressionAttributeValues": values}
        return request | ({"IndexName": index} if index else {})

    def _pages(
        self, operation: str, request: dict[str, Any], limit: int | None, index: str | None
    ) -> list[Item]:
        """Read to the end, page after page, checking each page's price."""
        asked = {**request, **({"Limit": limit} if limit else {})}
        found: list[Item] = []
        while True:
            page = self._call(operation, **asked)
            assert page["Count"] == page["ScannedCount"] == len(page["Items"])
            assert limit is None or len(page["Items"]) <= limit
            units = page_units(page["Items"], consistent=False)
            consumed = page["ConsumedCapacity"]
            assert consumed["CapacityUnits"] == units
            assert consumed["Table"]["CapacityUnits"] == (0 if index else units)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            hashes, ranges = self.model.names(index)
            assert page["LastEvaluatedKey"].keys() == {*self.model.shape.keys, *hashes, *ranges}
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _same(self, found: list[Item], expected: list[Item]) -> bool:
        def by_key(items: list[Item]) -> dict[Any, Any]:
            return {identity(item, self.model.shape.keys): plain(item) for item in items}

        return len(found) == len(expected) and by_key(found) == by_key(expected)

    def _check_cost(self, consumed: dict[str, Any], cost: Cost) -> None:
        told = {
            name: arm["CapacityUnits"]
            for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
            for name, arm in consumed.get(member, {}).items()
        }
        assert consumed["Table"]["CapacityUnits"] == cost.table
        assert told == cost.indexes
        assert consumed["CapacityUnits"] == cost.table + sum(cost.indexes.values())


EngineAgainstDict.TestCase.settings = settings(
    max_examples=2000 if LONG else 60,
    stateful_step_count=50 if LONG else 25,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
TestEngineAgainstDict = pytest.mark.timeout(3600 if LONG else 60)(EngineAgainstDict.TestCase)


def _keeps_old_entries(rack: Any, row: int, size: int, item: bytes, old: Any, entries: Any) -> None:
    _replace(rack, row, size, item, old, old)


_replace = SqliteTableStore.replace

PLANTED: dict[str, tuple[Any, str, Any]] = {
    "an index entry is not rewritten": (SqliteTableStore, "replace", _keeps_old_entries),
    "counts are not kept up": (writes, "recount", lambda *_: None),
    "a write costs one unit more": (capacity, "write_units", lambda *_: 7.0),
    "a condition always holds": (writes, "evaluate", lambda *_: True),
    "a token is not kept": (isolation.ClientTokens, "save_receipt", lambda *_: None),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine disagrees with an engine that has a defect."""
    owner, name, defect = PLANTED[fault]
    monkeypatch.setattr(owner, name, defect)

    with pytest.raises((AssertionError, Failed, ExceptionGroup)):
        run_state_machine_as_test(
            EngineAgainstDict,
            settings=settings(
                max_examples=100,
                stateful_step_count=25,
                suppress_health_check=list(HealthCheck),
                deadline=None,
                database=None,
                derandomize=True,
                print_blob=False,
                phases=[Phase.generate],
            ),
        )
