"""A review history as it is served, and what the tests of its faces send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola import ManualClock
from tavola.apps.terraform_review.web import create
from tests.apps.conftest import Target
from tests.apps.terraform_review.conftest import NOON

Served = Callable[[FastAPI], TestClient]

SECRET = b"a secret of the tests, 32 bytes."
LARGE = "".join(
    f'resource "aws_sqs_queue" "q{number}" {{}}\n' for number in range(6_000)
)  # it is no part of an item
CODE = 'resource "aws_s3_bucket" "one" {\n  acl = "public-read"\n}\n'


def result_json(run: str = "run-1", *titles: str, **more: Any) -> dict[str, Any]:
    """Return the JSON of a result; each title is a finding, whose id is `f-` and its place."""
    findings = [
        {
            "finding_id": f"{run}-f{place}",
            "category": "security",
            "severity": "high",
            "title": title,
            "file_path": "main.tf",
            "line_number": place,
            "confidence_score": 0.95,
        }
        for place, title in enumerate(titles, 1)
    ]
    return {
        "spacelift_run_id": run,
        "stack_id": "prod-net",
        "created_by": "eng-01",
        "overall_risk_score": 0.72,
        "terraform_code": CODE,
        "findings": findings,
        **more,
    }


class Client:
    """Asks a served review history, and can wait for its numbers."""

    def __init__(self, http: TestClient, clock: ManualClock) -> None:
        self.http = http
        self.clock = clock

    def post(self, run: str = "run-1", *titles: str, **more: Any) -> Any:
        """Record a result and return the review."""
        response = self.http.post("/reviews", json=result_json(run, *titles, **more))
        assert response.status_code == 201, response.text
        return response.json()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return what is told at an address."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def page(self, path: str, expected: int = 200, query: Mapping[str, Any] | None = None) -> str:
        """Return a page."""
        answer = self.http.get(path, params=query, headers={"Accept": "text/html"})
        assert answer.status_code == expected, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return str(answer.text)

    def counted(self) -> None:
        """Wait until all is counted that was written."""
        portal = self.http.portal
        assert portal is not None
        application: Any = self.http.app
        portal.call(application.state.follower.catch_up)


def start(
    served: Served,
    target: Target,
    *,
    at_s: float = NOON.timestamp(),
    caller_header: str | None = None,
    **more: Any,
) -> Client:
    """Return a review history on a target, at noon of a Monday in March unless said."""
    clock = ManualClock(at_s)
    settings = target.settings(secret=SECRET, clock=clock, poll_s=0.02, **more)
    return Client(served(create(settings, caller_header=caller_header)), clock)


def problem(answer: Any, status: int, slug: str) -> Any:
    """Return the problem that an answer is, once it is known to be this one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert (found["type"], found["status"]) == (f"urn:tavola:problem:{slug}", status)
    assert found["detail"]
    return found
