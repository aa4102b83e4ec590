"""A support desk that tests talk to, and what they say most often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.support_desk.web import create
from tests.apps.conftest import Target

SECRET = b"a secret of tests, 32 bytes long"
TEXT = "The printer prints grey stripes.\nSince Monday, on every page."
HTML = {"accept": "text/html"}

Served = Callable[[FastAPI], TestClient]


@dataclass(frozen=True, slots=True)
class DeskClient:
    """A desk over HTTP."""

    http: TestClient

    def open(self, customer: str = "cust-001", text: str = TEXT, **more: Any) -> str:
        """Open a ticket and return its id."""
        answer = self.http.post("/tickets", json={"customer_id": customer, "symptom_text": text, **more})
        assert answer.status_code == 201, answer.text
        ticket_id: str = answer.json()["ticket_id"]
        return ticket_id

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        """Return what a path tells."""
        answer = self.http.get(path, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def change(self, ticket_id: str, expected: int = 200, **changes: Any) -> Any:
        """Change a ticket, whatever its version."""
        answer = self.http.patch(f"/tickets/{ticket_id}", json=changes, headers={"If-Match": "*"})
        assert answer.status_code == expected, answer.text
        return answer.json()

    def page(self, path: str, status: int = 200) -> str:
        """Return a page's HTML."""
        answer = self.http.get(path, headers=HTML)
        assert answer.status_code == status, answer.text
        return answer.text

    def form(self, path: str, expected: int = 303, **typed: str) -> Any:
        """Send a form as a browser does and return the answer."""
        answer = self.http.post(path, data=typed, headers=HTML, follow_redirects=False)
        assert answer.status_code == expected, answer.text[-3000:]
        return answer


def started(served: Served, target: Target, **settings: Any) -> DeskClient:
    """Start a desk on a target."""
    return DeskClient(served(create(target.settings(secret=SECRET, poll_s=0.02, **settings))))
