"""Metrics of requests and followers in the Prometheus text format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tavola.apps.shell.metrics import BUCKETS_S, ApplicationMetrics
from tests.apps.shell.parts import sample


@dataclass(frozen=True, slots=True)
class FailingFollower:
    """A follower that fails, with a name that must be escaped."""

    name: str = 'the "desk"'
    state: str = "failing"
    changes_counted: int = 12
    failures: int = 3
    lag_s: float = 4.5


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return all samples of a metrics text by name and labels; the parser refuses malformed lines."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_method_and_status_class(
    served: Callable[[FastAPI], TestClient],
) -> None:
    """An ID never becomes a label: routes are labelled by their template, and requests without a route share one label."""
    client = served(sample())
    for path in ("/notes/1", "/notes/2", "/notes/x", "/nothing", "/else"):
        client.get(path)
    client.post(
        "/notes", json={"text": "x"}, headers={"Origin": "http://evil.example"}
    )  # refused by the guard
    response = client.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(response.text)

    def count(route: str, method: str, status: str) -> float:
        labels = frozenset({("route", route), ("method", method), ("status", status)})
        return found["tavola_app_request_seconds_count", labels]

    assert count("/notes/{note_id}", "GET", "2xx") == 2
    assert count("/notes/{note_id}", "GET", "4xx") == 1
    assert count("(none)", "any", "4xx") == 3
    assert "/notes/1" not in response.text
    assert found["tavola_app_requests_in_progress", frozenset()] == 1


def test_buckets_add_up_and_followers_are_reported() -> None:
    """The last bucket holds all requests; the followers' metrics are read when the text is rendered."""
    metrics = ApplicationMetrics()
    for seconds in (0.0001, BUCKETS_S[0], 0.003, 99.0):
        metrics.record("/x", "GET", 200, seconds)
    metrics.followers = [FailingFollower()]
    found = samples(metrics.render().decode())

    def bucket(bound: str) -> float:
        labels = frozenset({("route", "/x"), ("method", "GET"), ("status", "2xx"), ("le", bound)})
        return found["tavola_app_request_seconds_bucket", labels]

    assert (bucket(str(BUCKETS_S[0])), bucket("2.5"), bucket("+Inf")) == (2, 3, 4)
    follower = frozenset({("follower", 'the "desk"')})
    assert found["tavola_app_follower_lag_seconds", follower] == 4.5
    assert found["tavola_app_follower_changes_total", follower] == 12
    assert found["tavola_app_follower_failures_total", follower] == 3
    assert found["tavola_app_follower_up", follower] == 0
