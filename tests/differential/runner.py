"""The runner: each step asked of both, the differences judged, and the data made equal again.

Where one side accepts what the other refuses, the tables part; so after a difference the items of the
tables concerned are made Tavola's on both sides, and what follows is compared on equal ground.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.answers import Difference, Order, differences
from tests.differential.known import Row, allowing
from tests.differential.opponents import Answer, Opponent
from tests.differential.scripts import Step

_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_PAGES_MAX = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference that no row allows, and the request that shows it."""

    step: Step
    difference: Difference

    def told(self) -> str:
        """The finding in a few lines."""
        rule = f"# {self.step.rule}\n" if self.step.rule else ""
        return f"{rule}{self.step.told()[:1500]}\n  {self.difference.told()}"


@dataclass(slots=True)
class Tally:
    """What a run has seen."""

    compared: int = 0
    refused: int = 0  # of those, refused by Tavola
    findings: list[Finding] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)  # a row's `what` → differences it allowed


class Runner:
    """Asks both sides and keeps the tally."""

    def __init__(self, ours: Opponent, theirs: Opponent, rows: Sequence[Row]) -> None:
        self.tally = Tally()
        self._ours = ours
        self._theirs = theirs
        self._rows = rows
        self._keys: dict[str, tuple[str, ...]] = {}
        self._indexes: dict[tuple[str, str], tuple[str, ...]] = {}

    def run(self, steps: Iterable[Step]) -> None:
        """Ask every step of both."""
        for each in steps:
            self.ask(each)

    def ask(self, step: Step) -> Answer:
        """Ask one step of both and return Tavola's answer."""
        ours, theirs = (self._answer(side, step) for side in (self._ours, self._theirs))
        self.tally.compared += 1
        self.tally.refused += ours.status != 200
        if step.operation == "CreateTable" and ours.status == 200 and step.request:
            self._keys[step.request["TableName"]] = _names(step.request)
            local = step.request.get("LocalSecondaryIndexes", ())
            for index in (*local, *step.request.get("GlobalSecondaryIndexes", ())):
                self._indexes[step.request["TableName"], index["IndexName"]] = _names(index)
        found = differences(step.operation, ours, theirs, order=self._order(step))
        for difference in found:
            row = allowing(self._rows, difference, step.body.decode(errors="replace"))
            if row is None:
                self.tally.findings.append(Finding(step, difference))
            else:
                self.tally.seen[row.what] += 1
        if found and step.operation in _WRITES:
            for table in self._tables(step):
                self._reconcile(table)
        return ours

    def _order(self, step: Step) -> Order:
        """How far the order of Items counts: not at all in a scan, but for ties in an index."""
        if step.operation != "Query":
            return Order(strict=False)
        index = (step.request or {}).get("IndexName")
        keys = self._indexes.get((step.table, index)) if step.table and isinstance(index, str) else None
        return Order() if keys is None else Order(by=keys[1:])

    def _answer(self, side: Opponent, step: Step) -> Answer:
        if not step.follow or step.request is None:
            return side.ask(step.operation, step.body)
        total = step.request.get("TotalSegments")
        if not isinstance(total, int) or "Segment" not in step.request:
            return self._pages(side, step.operation, step.request)
        parts = [self._pages(side, step.operation, step.request | {"Segment": n}) for n in range(total)]
        return next((part for part in parts if part.status != 200), None) or _sum(parts)

    def _pages(self, side: Opponent, operation: str, request: dict[str, Any]) -> Answer:
        answer = side.ask(operation, json.dumps(request).encode())
        if answer.status != 200:
            return answer
        whole = dict(answer.body)
        whole.pop("ConsumedCapacity", None)  # where a scan's pages end is each side's own
        request = dict(request)
        for _ in range(_PAGES_MAX):
            if "LastEvaluatedKey" not in answer.body:
                break
            request["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]
            answer = side.ask(operation, json.dumps(request).encode())
            if answer.status != 200:
                return answer
            whole = _sum([Answer(200, whole), answer]).body
        whole.pop("LastEvaluatedKey", None)
        return Answer(200, whole)

    def _tables(self, step: Step) -> list[str]:
        if step.operation == "BatchWriteItem":
            items = (step.request or {}).get("RequestItems")
            named = list(items) if isinstance(items, dict) else []
        elif step.operation == "TransactWriteItems":
            elements = (step.request or {}).get("TransactItems")
            listed = elements if isinstance(elements, list) else []
            actions = [a for each in listed if isinstance(each, dict) for a in each.values()]
            named = [a.get("TableName") for a in actions if isinstance(a, dict)]
        else:
            named = [step.table]
        return sorted({name for name in named if isinstance(name, str) and name in self._keys})

    def _reconcile(self, table: str) -> None:
        """Give the other side Tavola's items; what it does not take is taken from both."""
        mine, other = (self._items(side, table) for side in (self._ours, self._theirs))
        for key in {*mine, *other}:
            if mine.get(key) == other.get(key):
                continue
            place = {"TableName": table, "Key": json.loads(key)}
            if key in mine and self._send(self._theirs, "PutItem", {"TableName": table, "Item": mine[key]}):
                continue
            for side in (self._ours, self._theirs):
                self._send(side, "DeleteItem", place)

    def _items(self, side: Opponent, table: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
        for _ in range(_PAGES_MAX):
            answer = side.ask("Scan", json.dumps(request).encode()).body
            for item in answer.get("Items", []):
                key = {name: item[name] for name in self._keys[table]}
                found[json.dumps(key, sort_keys=True)] = item
            if "LastEvaluatedKey" not in answer:
                break
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return found

    def _send(self, side: Opponent, operation: str, request: dict[str, Any]) -> bool:
        return side.ask(operation, json.dumps(request).encode()).status == 200


def _names(schema: dict[str, Any]) -> tuple[str, ...]:
    return tuple(each["AttributeName"] for each in schema["KeySchema"])


def _sum(parts: Sequence[Answer]) -> Answer:
    """The pages of one answer as one."""
    whole = dict(parts[0].body)
    whole.pop("ConsumedCapacity", None)
    for part in parts[1:]:
        if "Items" in part.body:
            whole["Items"] = [*whole.get("Items", []), *part.body["Items"]]
        for member in ("Count", "ScannedCount"):
            whole[member] += part.body[member]
    return Answer(200, whole)
