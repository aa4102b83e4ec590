"""The desk on a target, with a client and a manual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response

from tavola import ManualClock
from tavola.apps.service_desk.web import create
from tests.apps.conftest import Target

SECRET = b"a secret of the tests, 32 bytes."
START_S = 1_770_639_625.343883  # 2026-02-09T12:20:25.343883Z


@dataclass(frozen=True, slots=True)
class Desk:
    """A running desk."""

    client: TestClient
    clock: ManualClock
    target: Target
    application: FastAPI

    def report(
        self, caller: str = "poc-user-001", issue: str = "My laptop won't turn on", **headers: str
    ) -> Response:
        """Report an issue, one second after the previous one."""
        self.clock.advance(1)
        headers_sent = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"caller_id": caller, "issue_description": issue}
        return self.client.post("/tickets", json=body, headers=headers_sent)

    def comment(self, ticket_id: str, text: str = "Tried restarting", **headers: str) -> Response:
        """Add a comment."""
        self.clock.advance(1)
        headers_sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"/tickets/{ticket_id}/comments", json={"comment_text": text}, headers=headers_sent
        )

    def items(self) -> list[dict[str, Any]]:
        """Return every item of the table, in DynamoDB's JSON."""
        store = self.application.state.desk
        assert self.client.portal is not None
        found: dict[str, Any] = self.client.portal.call(
            store.db.call, "Scan", {"TableName": self.target.prefix + "poc-itsm-tickets"}
        )
        items: list[dict[str, Any]] = found["Items"]
        return items

    def put(self, item: dict[str, Any]) -> None:
        """Put an item as another program would."""
        store = self.application.state.desk
        assert self.client.portal is not None
        request = {"TableName": self.target.prefix + "poc-itsm-tickets", "Item": item}
        self.client.portal.call(store.db.call, "PutItem", request)


@pytest.fixture
def desk(target: Target, served: Callable[[FastAPI], TestClient]) -> Desk:
    """The desk on every target."""
    clock = ManualClock(START_S)
    application = create(target.settings(secret=SECRET, clock=clock))
    return Desk(served(application), clock, target, application)
