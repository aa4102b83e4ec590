"""Load: requests offered to an engine at a rate, on a clock that the test moves, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.protocol.faults import Fault

KB = 1024


@dataclass
class Outcome:
    """How many requests were done and refused, the reasons of the refusals, and both second by second."""

    done: int = 0
    refused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    done_by_second: list[int] = field(default_factory=list)


def opened(emulate: str | None = None, clock: ManualClock | None = None) -> tuple[Engine, ManualClock]:
    """Return an engine in memory and the clock it goes by."""
    clock = clock or ManualClock()
    return Engine.open(clock=clock, emulate=emulate), clock


def make(
    engine: Engine,
    name: str,
    keys: str = "pk",
    *,
    units: tuple[int, int] | None = None,
    indexes: Mapping[str, str] | None = None,
    index_units: tuple[int, int] | None = None,
    local: Mapping[str, str] | None = None,
    **more: Any,
) -> None:
    """Make a table: keys by name, `units` provisioned or on demand without, global and local indexes by key."""
    names = list(dict.fromkeys(" ".join([keys, *(indexes or {}).values(), *(local or {}).values()]).split()))
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
        "KeySchema": _schema(keys),
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }
    if units is not None:
        request |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": _units(units)}
    for member, found in (("GlobalSecondaryIndexes", indexes), ("LocalSecondaryIndexes", local)):
        if found:
            request[member] = [
                {"IndexName": index, "KeySchema": _schema(key), "Projection": {"ProjectionType": "ALL"}}
                for index, key in found.items()
            ]
            if member == "GlobalSecondaryIndexes" and index_units is not None:
                for each in request[member]:
                    each["ProvisionedThroughput"] = _units(index_units)
    engine.call("CreateTable", request)


def item(pk: str, size_kb: int = 0, **more: str) -> dict[str, Any]:
    """Return an item of just under this many KB."""
    found: dict[str, Any] = {"pk": {"S": pk}, **{name: {"S": text} for name, text in more.items()}}
    if size_kb:
        found["body"] = {"S": "x" * (size_kb * KB - 200)}
    return found


def put(engine: Engine, table: str, found: dict[str, Any]) -> None:
    """Put an item."""
    engine.call("PutItem", {"TableName": table, "Item": found})


def offer(
    clock: ManualClock,
    seconds: int,
    per_second: int,
    ask: Callable[[int], object],
    outcome: Outcome | None = None,
) -> Outcome:
    """Ask this many times in each of this many seconds, evenly, and return what became of it."""
    outcome = outcome or Outcome()
    number = outcome.done + outcome.refused
    for _ in range(seconds):
        before = outcome.done
        for _ in range(per_second):
            try:
                ask(number)
                outcome.done += 1
            except Fault as fault:
                outcome.refused += 1
                reasons = fault.extra.get("ThrottlingReasons") or fault.extra.get("throttlingReasons") or []
                outcome.reasons.update(reason["reason"] for reason in reasons)
            number += 1
            clock.advance(1 / per_second)
        outcome.done_by_second.append(outcome.done - before)
    return outcome


def _schema(keys: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(keys.split(), kinds, strict=False)]


def _units(units: tuple[int, int]) -> dict[str, int]:
    return {"ReadCapacityUnits": units[0], "WriteCapacityUnits": units[1]}
