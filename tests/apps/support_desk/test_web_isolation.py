"""Customers ask with their own access keys, and the store decides whose tickets they see."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tavola import Credentials, Engine, ManualClock, SeededEntropy
from tavola.apps.shell import AppSettings
from tavola.apps.support_desk import policies
from tavola.apps.support_desk.rest import callers
from tavola.apps.support_desk.web import create
from tavola.clock import SYSTEM_CLOCK
from tavola.iam import DirectoryFile
from tavola.protocol.faults import UnrecognizedClientFault
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.apps.conftest import Run, Target
from tests.apps.support_desk.desks import SECRET, DeskClient, Served, started

ADMIN = ("AKIDADMIN", "admin/secret")
KEYS = {
    "cust-001": ("AKIDONE", "one:secret"),
    "cust-002": ("AKIDTWO", "two/secret"),
    "cust-003": ("AKIDTHREE", "three"),
}
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def basic(key: str, secret: str) -> dict[str, str]:
    """Return the header of a caller."""
    return {"Authorization": "Basic " + base64.b64encode(f"{key}:{secret}".encode()).decode()}


@pytest.fixture
def guarded(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeskClient]:
    """A desk on a server that verifies callers; two customers have the policy for customers, a third has none."""

    def user(key: tuple[str, str], policy: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "inline": {"p": policy} if policy else {},
            "keys": [{"id": key[0], "secret": key[1], "active": True}],
        }

    own = policies.customer()
    users = {
        "admin": user(ADMIN, EVERYTHING),
        **{name: user(key, None if name == "cust-003" else own) for name, key in KEYS.items()},
    }
    directory = tmp_path / "iam.json"
    directory.write_text(json.dumps({"tavola_iam": 1, "accounts": {"111122223333": {"users": users}}}))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ADMIN[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ADMIN[1])
    safeguards = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK))
    with ExitStack() as stack:
        engine = stack.enter_context(Engine.open())
        endpoint = stack.enter_context(running(engine, safeguards=safeguards))
        desk = DeskClient(served(create(AppSettings(target=endpoint.url, secret=SECRET))))
        for customer in ("cust-001", "cust-002"):
            for n in range(3):
                desk.open(customer, f"{customer} {n}")
        yield desk
        desk.http.__exit__()  # before the server that it asks


def test_s10_a_customer_sees_their_own_tickets_alone(guarded: DeskClient) -> None:
    """Each sees their own, all or of a status, page by page; what is another's is denied by the store's policies."""
    for customer, key in list(KEYS.items())[:2]:
        path = f"/my/tickets?customer={customer}"
        found = guarded.get(path, headers=basic(*key))
        assert [each["subject"] for each in found["items"]] == [f"{customer} {n}" for n in (2, 1, 0)]
        assert len(guarded.get(f"{path}&status=NEW", headers=basic(*key))["items"]) == 3
        page = guarded.get(f"{path}&limit=2", headers=basic(*key))
        rest = guarded.get(f"{path}&limit=2&cursor={page['next']}", headers=basic(*key))
        assert [each["subject"] for each in rest["items"]] == [f"{customer} 0"]

    for customer, key in (
        ("cust-002", KEYS["cust-001"]),
        ("cust-001", KEYS["cust-002"]),
        ("cust-003", KEYS["cust-003"]),
    ):
        for more in ("", "&status=NEW"):
            denied = guarded.get(f"/my/tickets?customer={customer}{more}", 403, headers=basic(*key))
            assert denied["type"] == "urn:tavola:problem:forbidden"


def test_who_does_not_say_who_they_are(guarded: DeskClient) -> None:
    """Without a key, with one that nobody has, or with another secret, the answer is a 401 that says how to ask."""
    key, secret = KEYS["cust-001"]
    path = "/my/tickets?customer=cust-001"
    guarded.get(
        path, headers=basic(key, secret)
    )  # and what was opened for the right secret opens to no other

    for headers in (
        {},
        {"Authorization": "Bearer x"},
        {"Authorization": "Basic !"},
        {"Authorization": "Basic " + base64.b64encode(b"nothing").decode()},
        basic("AKIDNOBODY", "x"),
        basic(key, "another"),
        basic("AKID NE", secret),
        basic(key, ""),
    ):
        refused = guarded.http.get(path, headers=headers)
        assert refused.status_code == 401, refused.text
        assert refused.headers["www-authenticate"].startswith("Basic ")
    guarded.get(path, headers=basic(key, secret))


def test_a_secret_of_other_letters_is_another_secret(guarded: DeskClient) -> None:
    """A secret with letters that no secret has is a 401, the second time too."""
    key, secret = KEYS["cust-001"]
    path = "/my/tickets?customer=cust-001"
    guarded.get(path, headers=basic(key, secret))

    for _ in range(2):
        assert guarded.http.get(path, headers=basic(key, "pässwort")).status_code == 401
        assert guarded.http.get(path, headers=basic("AKIDNOBODY", "pässwort")).status_code == 401


def test_keys_that_end_together_are_dropped_once(run: Run[Any]) -> None:
    """Requests that come at once after a pause each drop what is over, and none stumbles over the other."""

    class Line:
        """A store whose connection takes its time to close."""

        def __init__(self, open_: bool = True) -> None:
            self.db = self
            self.open = open_

        async def close(self) -> None:
            for _ in range(3):
                await asyncio.sleep(0)
            self.open = False

        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *details: object) -> None:
            await self.close()

        async def call(self, operation: str, request: Any) -> Any:
            raise UnrecognizedClientFault

    clock = ManualClock(1_000_000.0)
    opened: list[Line] = []

    def open_as(credentials: Credentials) -> Any:
        opened.append(Line())
        return opened[-1]

    async def steps() -> list[Any]:
        connections = callers.CallerConnections(open_as, clock=clock, entropy=SeededEntropy(1))

        async def ask(key: str) -> bool:
            async with connections.store(basic(key, "s")["Authorization"]) as store:
                await asyncio.sleep(0)
                line: Any = store
                return bool(line.open)

        for key in ("K1", "K2", "K3"):
            await ask(key)
        clock.advance(callers.CONNECTION_LIFE_S + 1)
        answers = await asyncio.gather(*(ask(f"K{n}") for n in (1, 2, 3)), return_exceptions=True)
        await connections.close()
        return answers

    assert run(steps()) == [True, True, True]
    assert not any(line.open for line in opened)


def test_a_store_that_stops_verifying_is_found_out(served: Served, tmp_path: Path) -> None:
    """That the store verifies callers is asked for each new key, and again soon for those that are open."""
    directory = tmp_path / "iam.json"
    users = {
        "admin": {"inline": {"p": EVERYTHING}, "keys": [{"id": ADMIN[0], "secret": ADMIN[1], "active": True}]}
    }
    directory.write_text(json.dumps({"tavola_iam": 1, "accounts": {"000000000000": {"users": users}}}))
    safeguards = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK))
    clock = ManualClock(SYSTEM_CLOCK.now())
    path = "/my/tickets?customer=cust-001"
    with Engine.open() as engine:
        with running(engine) as first:
            port = first.port
            desk = DeskClient(served(create(AppSettings(target=first.url, secret=SECRET, clock=clock))))
        with running(engine, port=port, safeguards=safeguards):
            assert desk.http.get(path, headers=basic(*ADMIN)).status_code == 200
        with running(engine, port=port):
            nobody = desk.get(path, 403, headers=basic("AKIDNOBODY", "x"))
            assert nobody["type"] == "urn:tavola:problem:callers-not-verified"
            clock.advance(callers.VERIFIED_S)
            desk.get(path, 403, headers=basic(*ADMIN))
            desk.http.__exit__()


def test_the_list_of_another_is_not_gone_on_with(guarded: DeskClient) -> None:
    """A cursor of one customer's list leads nowhere in another's, with either's key."""
    (one, own), (two, other) = list(KEYS.items())[:2]
    page = guarded.get(f"/my/tickets?customer={one}&limit=1", headers=basic(*own))

    for key in (own, other):
        refused = guarded.http.get(
            f"/my/tickets?customer={two}&limit=1&cursor={page['next']}", headers=basic(*key)
        )
        assert refused.status_code in (400, 403)


def test_keys_are_kept_for_a_while_and_not_for_ever(
    guarded: DeskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more keys are kept open than there is room for; who comes again is let in again."""
    monkeypatch.setattr(callers, "CONNECTIONS_MAX", 1)

    for _ in range(2):
        for customer, key in list(KEYS.items())[:2]:
            guarded.get(f"/my/tickets?customer={customer}", headers=basic(*key))
    connections = guarded.http.app.state.desk.callers._connections  # type: ignore[attr-defined]
    assert list(connections) == [KEYS["cust-002"][0]]


def test_a_store_that_verifies_nobody_keeps_nobody_apart(served: Served, target: Target) -> None:
    """Where the store takes every caller at their word, the route says so instead of showing everybody everything."""
    desk = started(served, target)
    desk.open("cust-001")

    refused = desk.get("/my/tickets?customer=cust-001", 403, headers=basic("AKIDONE", "one"))
    assert refused["type"] == "urn:tavola:problem:callers-not-verified"
