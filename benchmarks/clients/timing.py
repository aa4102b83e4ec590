"""What every client is asked to do, and how it is timed; needs nothing but Python, so that each peer's own can run it."""

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

TABLE = "Entities"
CREATED_AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
TAGS = ["network", "vpn", "laptop", "urgent", "berlin"]
ADDRESS = {"street": "12 Long Lane", "city": "Berlin", "floor": "3", "room": "312"}
BODY = "The connection drops after some minutes, and comes back when the cable is pulled. " * 7
_SLICE = 50


def fields(number: int) -> dict[str, object]:
    """Return the fields of one entity of about 1 KB: eight texts, three numbers, two times, a list and a map."""
    return {
        "ticket_id": f"t{number:06}",
        "customer_id": f"c{number % 100:03}",
        "subject": "The VPN drops every few minutes",
        "body": BODY,
        "status": "open",
        "channel": "mail",
        "language": "en",
        "assignee": "agent-007",
        "priority": 3,
        "replies": 12,
        "score": 87,
        "created_at": CREATED_AT,
        "updated_at": CREATED_AT,
        "tags": TAGS,
        "address": ADDRESS,
    }


def arguments() -> argparse.Namespace:
    """Return what the caller wants: an endpoint, or none for a run within this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint")
    parser.add_argument("--seconds", type=float, default=2.0)
    return parser.parse_args()


def report(put: Callable[[int], object], get: Callable[[int], object], seconds: float) -> None:
    """Time puts of entities and gets of them one after another, and print rate and CPU of each as JSON."""
    for number in range(_SLICE):
        put(number)
        assert get(number) is not None
    told = {"put": _timed(put, seconds), "get": _timed(get, seconds)}
    print(json.dumps(told))


def _timed(ask: Callable[[int], object], seconds: float) -> dict[str, float]:
    calls = 0
    began, began_cpu = time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - began) < seconds:
        for number in range(_SLICE):
            ask(number)
        calls += _SLICE
    return {"rate": calls / took, "cpu_us": (time.process_time() - began_cpu) / calls * 1e6}
