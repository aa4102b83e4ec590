"""A studio beside a server that verifies its callers: users with different rights, browsers, and the log of their calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from tavola.cli.studio_beside_server import studio_of_caller
from tavola.cli.studio_options import StudioTarget, access_log_reader
from tavola.clock import ManualClock
from tavola.connections import connect
from tavola.engine import Engine, ItemAccess
from tavola.iam import DirectoryFile
from tavola.protocol.faults import Fault
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.callers import Caller
from tavola.server.local_callers import LocalCaller, LocalCallers
from tavola.studio import AccountMonitors, DeclaredDesign, Endpoint, StudioSignIn, TablesLocation, create
from tavola.studio.api import ENDPOINTS
from tests.server.directories import ACCOUNT, OTHER_ACCOUNT, allowing, user, write_directory
from tests.studio.bookshop import Numbers, Shop, bookshop_design, orders

ORIGIN = "http://127.0.0.1"
REGION = "us-east-1"
ADMIN = ("AKIDADMIN", "admin/secret")
KEEPER = ("AKIDKEEPER", "keeper/secret")  # everything of DynamoDB, and nothing else
CLERK = ("AKIDCLERK", "clerk/secret")  # reads
NOVICE = ("AKIDNOVICE", "novice/secret")  # nothing at all
BARRED = ("AKIDBARRED", "barred/secret")  # everything but writes and the past, which a policy denies

_EVERYTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
_BARS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {
            "Effect": "Deny",
            "Action": ["dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:*Backup*", "cloudtrail:*"],
            "Resource": "*",
        },
    ],
}
USERS: dict[str, dict[str, Any]] = {
    "admin": user(ADMIN, _EVERYTHING),
    "keeper": user(KEEPER, allowing("*")),
    "clerk": user(CLERK, allowing("GetItem", "Query", "Scan", "ListTables", "DescribeTable")),
    "novice": user(NOVICE),
    "barred": user(BARRED, _BARS),
}


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call as the access log was given it."""

    caller: Caller
    operation: str
    body: bytes
    fault: Fault | None


class NotingLog(AccessLog):
    """An access log that also keeps what it was given."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        super().__init__(path, clock=clock)
        self.calls: list[LoggedCall] = []
        self._is_closed = False

    def close(self) -> None:
        """Write all remaining lines, once."""
        if not self._is_closed:
            self._is_closed = True
            super().close()

    def note(
        self,
        caller: Caller,
        operation: str,
        request_id: bytes,
        began_s: float,
        accesses: Sequence[ItemAccess],
        body: bytes,
        fault: Fault | None = None,
        denied: int = 0,
        named: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the call, and log it."""
        self.calls.append(LoggedCall(caller, operation, body, fault))
        super().note(caller, operation, request_id, began_s, accesses, body, fault, denied, named)


@dataclass(frozen=True, slots=True)
class StrictStudio:
    """The studio, and what its tests change."""

    engine: Engine
    clock: ManualClock  # of dates, and of sessions
    folder: Path
    callers: StrictCallers
    log: NotingLog
    sign_in: StudioSignIn
    application: Starlette

    def browser(self, address: str = "127.0.0.1") -> Browser:
        """Return a new browser, with cookies of its own."""
        return Browser(TestClient(self.application, base_url=ORIGIN, client=(address, 50_000)))

    def signed_in(self, key: tuple[str, ...]) -> Browser:
        """Return a browser whose user signed in with a key."""
        browser = self.browser()
        assert browser.sign_in(key).status_code == 200
        return browser

    def change_users(self, **changed: dict[str, Any]) -> None:
        """Replace users in the file of users and roles, as the server sees it a second later."""
        self.clock.advance(2)
        write_directory(self.folder / "iam.json", **{**USERS, **changed})
        self.callers.refresh()

    def records(self) -> list[dict[str, Any]]:
        """Close the log, and return its records."""
        self.log.close()
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]


class Browser:
    """A browser: keeps the cookies, and sends the token of its page."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.page_token = client.get("/").text.partition('tavola-token" content="')[2].partition('"')[0]
        self.token = self.page_token  # until sign-in

    def sign_in(self, key: tuple[str, ...], **headers: str) -> Any:
        """Sign in with an access key; return the response."""
        body = {"key_id": key[0], "secret": key[1], "session_token": key[2] if len(key) > 2 else ""}
        response = self.client.post(
            "/api/sign-in", json=body, headers={"X-Tavola-Token": self.page_token, **headers}
        )
        if response.status_code == 200:
            self.token = response.json()["token"]
        return response

    def sign_out(self) -> Any:
        """Sign out; return the response."""
        return self.client.post("/api/sign-out", headers={"X-Tavola-Token": self.token})

    def call(self, endpoint: str, request: dict[str, Any] | None = None) -> Any:
        """Send a request of the API; return the response."""
        method, _, path = endpoint.partition(" ")
        if method == "GET":
            return self.client.get(f"/api{path}", params=request or {})
        return self.client.post(f"/api{path}", json=request or {}, headers={"X-Tavola-Token": self.token})


@contextmanager
def strict_studio(
    folder: Path, endpoints: Sequence[Endpoint] = ENDPOINTS, *, stocked: bool = True
) -> Iterator[StrictStudio]:
    """Give the studio of a bookshop in the account of the users, beside an engine that nothing else uses."""
    clock = ManualClock(1_790_000_000.0)
    callers = StrictCallers(DirectoryFile(write_directory(folder / "iam.json", **USERS), clock), clock)
    log = NotingLog(folder / "access.log", clock)
    engine = Engine.open(clock=clock)
    if stocked:
        with connect(engine, region=REGION, account=ACCOUNT) as db:
            db.create_tables(Shop, Numbers)
            db.put_many(orders())
        with connect(engine, region=REGION, account="444455556666") as db:
            db.create_tables(Numbers)
    design = bookshop_design()
    target = StudioTarget(
        engine,
        TablesLocation("memory", "in memory", REGION, ACCOUNT),
        REGION,
        None,
        declared=(DeclaredDesign("tests.studio.bookshop", design),),
        design=design,
        log=access_log_reader(folder / "access.log"),
    )
    monitors = AccountMonitors(clock)
    engine.observe(monitors)
    local = LocalCallers(callers, engine, region=REGION, source="studio", log=log, clock=clock)

    def open_for(caller: Any) -> Any:
        assert isinstance(caller, LocalCaller)
        return studio_of_caller(target, caller, callers, monitors)

    sign_in = StudioSignIn(local, open_for, now=clock.now)
    yield StrictStudio(
        engine, clock, folder, callers, log, sign_in, create(sign_in, endpoints=tuple(endpoints))
    )
    log.close()
    engine.close()


__all__ = ["ACCOUNT", "OTHER_ACCOUNT", "Browser", "StrictStudio", "strict_studio"]
