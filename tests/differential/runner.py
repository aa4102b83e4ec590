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

from tests.differential.answers import Difference, differences
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
            schema = step.request["KeySchema"]
            self._keys[step.request["TableName"]] = tuple(each["AttributeName"] for each in schema)
        found = differences(step.operation, ours, theirs, ordered=step.operation != "Scan")
        for difference in found:
            row = allowing(self._rows, difference)
            if row is None:
                self.tally.findings.append(Finding(step, difference))
            else:
                self.tally.seen[row.what] += 1
        if found and step.operation in _WRITES:
            for table in self._tables(step):
                self._reconcile(table)
        return ours

    def _answer(self, side: Opponent, step: Step) -> Answer:
        answer = side.ask(step.operation, step.body)
        if not step.follow or answer.status != 200 or step.request is None:
            return answer
        whole = dict(answer.body)
        whole.pop("ConsumedCapacity", None)  # where a scan's pages end is each side's own
        request = dict(step.request)
        for _ in range(_PAGES_MAX):
            if "LastEvaluatedKey" not in answer.body:
                break
            request["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]
            answer = side.ask(step.operation, json.dumps(request).encode())
            if answer.status != 200:
                return answer
            whole["Items"] = [*whole.get("Items", []), *answer.body.get("Items", [])]
            for member in ("Count", "ScannedCount"):
                whole[member] += answer.body[member]
        whole.pop("LastEvaluatedKey", None)
        return Answer(200, whole)

    def _tables(self, step: Step) -> list[str]:
        if step.operation == "BatchWriteItem":
            named = list((step.request or {}).get("RequestItems") or {})
        elif step.operation == "TransactWriteItems":
            elements = (step.request or {}).get("TransactItems") or []
            actions = [a for each in elements if isinstance(each, dict) for a in each.values()]
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
