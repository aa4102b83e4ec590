"""What every client is asked to do, and how it is timed; needs nothing but Python, so that each peer's own can run it.

A script hands its operations to `report`. Alone it times each for a while and prints the numbers; with `--turns` it
waits to be told on stdin, a line a turn ("put 1.5"), so that several clients can take turns and none starts anew.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

TABLE = "Entities"
CREATED_AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
TAGS = ["network", "vpn", "laptop", "urgent", "berlin"]
ADDRESS = {"street": "12 Long Lane", "city": "Berlin", "floor": "3", "room": "312"}
BODY = "The connection drops after some minutes, and comes back when the cable is pulled. " * 7
ENTITIES = 50
"""So many are stored, and the clock is read once for so many calls."""

_marks = ["t"]

Ask = Callable[[int], object]
Lap = Callable[[int], object]
"""Does the calls of `ENTITIES` numbers, from one on."""


def name_of(number: int) -> str:
    """Return the id of the entity that a call is about."""
    return f"{_marks[0]}{number % ENTITIES:06}"


def fields(number: int) -> dict[str, Any]:
    """Return the fields of one entity of about 1 KB: eight texts, three numbers, two times, a list and a map.

    Its replies are the call's own number, so that no put stores what is there already.
    """
    return {
        "ticket_id": name_of(number),
        "customer_id": f"c{number % ENTITIES:03}",
        "subject": "The VPN drops every few minutes",
        "body": BODY,
        "status": "open",
        "channel": "mail",
        "language": "en",
        "assignee": "agent-007",
        "priority": 3,
        "replies": number,
        "score": 87,
        "created_at": CREATED_AT,
        "updated_at": CREATED_AT,
        "tags": TAGS,
        "address": ADDRESS,
    }


def create_table_request() -> dict[str, Any]:
    """Return the table that every client works on, as CreateTable wants it."""
    names = ("pk", "sk", "gsi1pk", "gsi1sk")
    return {
        "TableName": TABLE,
        "KeySchema": _schema("pk", "sk"),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_customer",
                "KeySchema": _schema("gsi1pk", "gsi1sk"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def _schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def arguments() -> argparse.Namespace:
    """Return what the caller wants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", help="what to work on; without it, something within this process")
    parser.add_argument("--create", action="store_true", help="the table first; an endpoint may have it")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each operation (default 2)")
    parser.add_argument("--turns", action="store_true", help='take turns from stdin, such as "put 1.5"')
    parser.add_argument("--first", action="store_true", help="one get, and how long it took to get there")
    parser.add_argument("--mark", default="t", help="what its ids begin with: none reads what another wrote")
    parser.add_argument("--at-once", type=int, default=1, help="calls under way at a time, on an event loop")
    told = parser.parse_args()
    _marks[0] = told.mark
    return told


def each(ask: Ask) -> Lap:
    """Return calls one after another."""

    def lap(first: int) -> None:
        for number in range(first, first + ENTITIES):
            ask(number)

    return lap


def report(told: argparse.Namespace, put: Ask, get: Ask, /, **laps: Lap) -> None:
    """Check that what is put is what is got, then time it; `laps` are other operations, or the same done otherwise."""
    if told.first:
        get(0)
        print("answered", flush=True)
        return
    for number in range(ENTITIES):
        put(number)
        check(get(number), number)
    timed = {"put": each(put), "get": each(get)} | laps
    if told.turns:
        _take_turns(timed)
    else:
        print(json.dumps({name: timing(lap, told.seconds) for name, lap in timed.items()}))


def check(found: object, number: int) -> None:
    """Refuse a client that does not give back what was stored; a time may come as the text it was stored as."""
    wanted = fields(number)
    for name in ("ticket_id", "body", "replies", "score", "tags", "created_at"):
        value = found[name] if isinstance(found, Mapping) else getattr(found, name)
        if isinstance(value, str) and isinstance(wanted[name], datetime):
            value = datetime.fromisoformat(value)
        if value != wanted[name]:
            raise SystemExit(f"entity {number} came back with {name} = {value!r}, and not {wanted[name]!r}")


def _take_turns(timed: dict[str, Lap]) -> None:
    print(json.dumps(sorted(timed)), flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        print(json.dumps(timing(timed[name], float(seconds))), flush=True)


_reached = 0


def timing(lap: Lap, seconds: float) -> dict[str, float]:
    """Return how long a call took, how much of this process's time, all threads, and how many there were."""
    global _reached  # noqa: PLW0603 - a number is put once, whoever asks
    calls = 0
    began, began_cpu = time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - began) < seconds:
        _reached += ENTITIES
        lap(_reached)
        calls += ENTITIES
    cpu = time.process_time() - began_cpu
    return {"took_us": took / calls * 1e6, "cpu_us": cpu / calls * 1e6, "calls": calls}
