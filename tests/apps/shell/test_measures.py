"""Numbers about requests and followers, as Prometheus reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.shell.measures import BOUNDS_S, Measures
from tests.apps.shell.parts import sample

LINE = re.compile(r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? [0-9.e+-]+')


@dataclass(frozen=True, slots=True)
class Stands:
    """A follower that stands still."""

    name: str = 'the "desk"'
    state: str = "failing"
    counted: int = 12
    failures: int = 3
    lag_s: float = 4.5


def test_requests_are_counted_by_route_method_and_class(served: Callable[[FastAPI], TestClient]) -> None:
    """An id never becomes a label: routes are told by their template, and what has no route together."""
    client = served(sample())
    for path in ("/notes/1", "/notes/2", "/notes/x", "/nothing", "/else"):
        client.get(path)
    client.post(
        "/notes", json={"text": "x"}, headers={"Origin": "http://evil.example"}
    )  # refused by the guard
    answer = client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    told = answer.text
    assert 'count{route="/notes/{note_id}",method="GET",status="2xx"} 2' in told
    assert 'count{route="/notes/{note_id}",method="GET",status="4xx"} 1' in told
    assert 'count{route="(none)",method="any",status="4xx"} 3' in told
    assert "/notes/1" not in told
    assert "tavola_app_requests_under_way 1\n" in told


def test_the_text_is_well_formed() -> None:
    """Buckets add up, the last holds all, labels are escaped, and every line is one of the format's."""
    measures = Measures()
    for seconds in (0.0001, BOUNDS_S[0], 0.003, 99.0):
        measures.record("/x", "GET", 200, seconds)
    told = measures.render([Stands()])

    assert all(line.startswith("#") or LINE.fullmatch(line) for line in told.splitlines()), told
    assert f'le="{BOUNDS_S[0]:g}"}} 2' in told
    assert 'le="2.5"} 3' in told
    assert 'le="+Inf"} 4' in told
    assert 'tavola_app_follower_lag_seconds{follower="the \\"desk\\""} 4.5' in told
    assert 'tavola_app_follower_up{follower="the \\"desk\\""} 0' in told
    assert told.endswith("\n")
