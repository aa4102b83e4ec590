"""Signing in to the studio beside a strict server: who gets a session, what it is worth to others, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tavola.protocol.faults import ExpiredTokenFault
from tavola.studio import StudioSignIn, create
from tavola.studio.sign_in import (
    CLIENT_FAILURES_MAX,
    FAILURES_WINDOW_S,
    IDLE_S,
    KEY_FAILURES_MAX,
    LIFETIME_S,
    SESSIONS_MAX,
)
from tests.server.directories import SESSION, SESSION_ENDS_S, user
from tests.studio.strict_studio import ADMIN, CLERK, NOVICE, USERS, StrictStudio, strict_studio


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[StrictStudio]:
    """A studio whose users sign in, on an engine without tables."""
    with strict_studio(tmp_path, stocked=False) as result:
        yield result


def _cookie(response: Any) -> Any:
    (morsel,) = SimpleCookie(response.headers["set-cookie"]).values()
    return morsel


def _problem(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["problem"]["code"]


# Who gets a session.


def test_a_key_and_its_secret_open_a_session(strict: StrictStudio) -> None:
    """Before sign-in every request is refused; afterwards the page knows the person, and requests are answered."""
    browser = strict.browser()
    before = browser.call("GET /session")
    response = browser.sign_in(ADMIN)

    assert _problem(before) == (401, "sign-in-required")
    assert "sign in" in before.json()["problem"]["remedy"]
    assert response.json()["name"] == "admin"
    assert response.json()["arn"].endswith(":user/admin")
    assert browser.call("GET /session").status_code == 200
    assert browser.client.get("/api/sign-in").json() == response.json()


def test_a_role_session_signs_in_with_its_token(strict: StrictStudio) -> None:
    """Temporary credentials need their token, and open a session of the role; a long-term key must not have one."""
    browser = strict.browser()

    assert _problem(browser.sign_in(SESSION[:2])) == (401, "sign-in-refused")
    assert _problem(browser.sign_in((*ADMIN, "token"))) == (401, "sign-in-refused")
    assert browser.sign_in(SESSION).json()["arn"].endswith(":assumed-role/batch/nightly")


@pytest.mark.parametrize(
    "key",
    [
        ("AKIDADMIN", "wrong"),
        ("AKIDADMIN", ""),
        ("AKIDUNKNOWN", "admin/secret"),
        ("", ""),
        ("AKIDADMIN", "admin/secret" * 200),
        ("AKID\0é😀", "é"),
        ("AKIDASLEEP", "asleep/secret"),
    ],
)
def test_a_wrong_key_says_nothing_about_why(strict: StrictStudio, key: tuple[str, str]) -> None:
    """An unknown key, a wrong secret and an inactive key get the same response, and no cookie."""
    strict.change_users(asleep=user(("AKIDASLEEP", "asleep/secret"), active=False))
    response = strict.browser().sign_in(key)
    reference = strict.browser().sign_in(("AKIDNOBODY", "x"))

    assert response.status_code == 401
    assert response.json() == reference.json()
    assert "set-cookie" not in response.headers


def test_expired_credentials_are_named_only_to_their_owner(strict: StrictStudio) -> None:
    """That credentials have expired is said only if their secret and token are right."""
    strict.clock.set(SESSION_ENDS_S + 1)

    assert _problem(strict.browser().sign_in(SESSION)) == (401, "sign-in-expired")
    assert _problem(strict.browser().sign_in((SESSION[0], "wrong", SESSION[2]))) == (401, "sign-in-refused")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"key_id": 5}', b'{"key_id": "a"}', b"\xff", b"[" * 5000])
def test_a_malformed_sign_in_is_refused_without_its_content(strict: StrictStudio, body: bytes) -> None:
    """What is not a key and a secret is refused, and the refusal quotes nothing."""
    browser = strict.browser()
    headers = {"X-Tavola-Token": browser.token, "Content-Type": "application/json"}
    response = browser.client.post("/api/sign-in", content=body, headers=headers)

    assert _problem(response) == (400, "request-malformed")
    assert "key_id and secret" in response.json()["problem"]["detail"]


def test_sign_in_needs_the_pages_token_and_origin(strict: StrictStudio) -> None:
    """Another site cannot sign a browser in: the request needs the page's token and comes from its origin."""
    browser = strict.browser()
    foreign = browser.sign_in(ADMIN, Origin="https://evil.example")
    browser.page_token = "0" * 64

    assert _problem(foreign) == (403, "origin-refused")
    assert _problem(browser.sign_in(ADMIN)) == (403, "token-refused")
    assert not browser.client.cookies


def test_a_secret_is_not_taken_over_an_unencrypted_network(strict: StrictStudio) -> None:
    """From another machine sign-in is refused unless the connection is encrypted."""
    assert _problem(strict.browser("192.168.1.20").sign_in(ADMIN)) == (403, "connection-insecure")


def test_the_page_is_the_same_for_all(strict: StrictStudio) -> None:
    """The index says that users sign in; it contains nothing of a person, signed in or not."""
    browser = strict.signed_in(ADMIN)
    page = browser.client.get("/").text

    assert '<meta name="tavola-sign-in" content="yes">' in page
    assert page == strict.browser().client.get("/").text
    assert browser.token not in page


# What the cookie is worth.


def test_the_cookie_is_for_the_browser_alone(strict: StrictStudio) -> None:
    """The id is in a cookie that no script reads, no other site sends and no disk keeps; over TLS it stays there."""
    cookie = _cookie(strict.browser().sign_in(ADMIN))
    secure = TestClient(create(strict.sign_in), base_url="https://127.0.0.1", client=("127.0.0.1", 1))
    token = secure.get("/").text.partition('tavola-token" content="')[2].partition('"')[0]
    body = {"key_id": ADMIN[0], "secret": ADMIN[1]}
    over_tls = _cookie(secure.post("/api/sign-in", json=body, headers={"X-Tavola-Token": token}))

    assert (cookie.key, cookie["path"], cookie["httponly"]) == ("tavola-studio-80", "/", True)
    assert cookie["samesite"].lower() == "strict"
    assert not cookie["secure"]
    assert not any(cookie[name] for name in ("expires", "max-age", "domain"))
    assert len(cookie.value) == 64
    assert over_tls["secure"]


def test_the_cookie_is_limited_to_the_base_path(strict: StrictStudio) -> None:
    """Below a base path, the browser sends the cookie to that path only."""
    application = create(strict.sign_in, base_path="/tools/studio")
    client = TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 1))
    page = client.get("/tools/studio/").text
    token = page.partition('tavola-token" content="')[2].partition('"')[0]
    body = {"key_id": ADMIN[0], "secret": ADMIN[1]}
    response = client.post("/tools/studio/api/sign-in", json=body, headers={"X-Tavola-Token": token})

    assert _cookie(response)["path"] == "/tools/studio/"


def test_an_id_that_was_planted_is_not_adopted(strict: StrictStudio) -> None:
    """Session fixation: sign-in makes a new id, whatever cookie the browser had, and each one is different."""
    browser = strict.browser()
    browser.client.cookies.set("tavola-studio-80", "0" * 64, domain="127.0.0.1", path="/")
    ids = [_cookie(browser.sign_in(ADMIN)).value for _ in range(3)]

    assert len({*ids, "0" * 64}) == 4
    browser.client.cookies.clear()
    for planted in ("0" * 64, ids[0], ids[1], ""):
        browser.client.cookies.set("tavola-studio-80", planted, domain="127.0.0.1", path="/")
        assert _problem(browser.call("GET /session")) == (401, "sign-in-required")
        browser.client.cookies.clear()


def test_an_id_is_not_stored(strict: StrictStudio) -> None:
    """The process has only the hash of an id."""
    browser = strict.browser()
    value = _cookie(browser.sign_in(ADMIN)).value

    assert value not in repr(vars(strict.sign_in))
    assert value not in repr([vars(session.caller) for session in strict.sign_in._sessions.values()])


def test_a_session_belongs_to_its_address(strict: StrictStudio) -> None:
    """A cookie that comes from another address is refused: policies may depend on the address."""
    browser = strict.signed_in(ADMIN)
    other = strict.browser("127.0.0.2")
    other.client.cookies = browser.client.cookies

    assert _problem(other.call("GET /session")) == (401, "sign-in-required")
    assert browser.call("GET /session").status_code == 200


def test_changes_need_the_sessions_own_token(strict: StrictStudio) -> None:
    """The token of the page is not enough, nor is that of another session."""
    first, second = strict.signed_in(ADMIN), strict.signed_in(ADMIN)
    own = first.token
    first.token = second.token
    stolen = first.call("POST /samples")
    first.token = strict.browser().token
    anonymous = first.call("POST /samples")
    first.token = own

    assert _problem(stolen) == _problem(anonymous) == (403, "token-refused")
    assert first.call("POST /samples").status_code == 200


def test_two_people_work_at_once(strict: StrictStudio) -> None:
    """Each browser acts as its own person, with that person's rights, and stays so."""
    admin, novice = strict.signed_in(ADMIN), strict.signed_in(NOVICE)

    for _ in range(2):
        assert admin.call("POST /samples").status_code in (200, 409)
        assert novice.call("POST /samples").status_code == 403
        assert admin.client.get("/api/sign-in").json()["name"] == "admin"
        assert novice.client.get("/api/sign-in").json()["name"] == "novice"


# When it ends.


def test_signing_out_ends_the_session(strict: StrictStudio) -> None:
    """After sign-out the cookie is gone, and a copy of it is worthless; other sessions go on."""
    browser, other = strict.signed_in(ADMIN), strict.signed_in(ADMIN)
    copy = dict(browser.client.cookies)
    response = browser.sign_out()

    assert response.status_code == 200
    assert not browser.client.cookies
    browser.client.cookies.update(copy)
    assert _problem(browser.call("GET /session")) == (401, "sign-in-required")
    assert other.call("GET /session").status_code == 200


def test_signing_out_needs_the_token(strict: StrictStudio) -> None:
    """Another page cannot sign a person out."""
    browser = strict.signed_in(ADMIN)
    browser.token = "0" * 64

    assert browser.sign_out().status_code == 403
    assert browser.call("GET /session").status_code == 200


def test_signing_in_again_ends_the_session_before(strict: StrictStudio) -> None:
    """A browser has one session: the next person in the same browser ends that of the one before."""
    browser = strict.signed_in(ADMIN)
    copy = dict(browser.client.cookies)
    browser.sign_in(CLERK)
    later = strict.browser()
    later.client.cookies.update(copy)

    assert later.call("GET /session").status_code == 401
    assert browser.client.get("/api/sign-in").json()["name"] == "clerk"


def test_an_idle_session_ends(strict: StrictStudio) -> None:
    """Each request extends the session; without one it ends."""
    browser = strict.signed_in(ADMIN)
    for _ in range(3):
        strict.clock.advance(IDLE_S - 1)
        assert browser.call("GET /session").status_code == 200
    strict.clock.advance(IDLE_S)

    assert browser.call("GET /session").status_code == 401


def test_no_session_lasts_for_ever(strict: StrictStudio) -> None:
    """A session that is used without a pause ends all the same."""
    browser = strict.signed_in(ADMIN)
    uses = int(LIFETIME_S / (IDLE_S / 2))
    answers = []
    for _ in range(uses):
        strict.clock.advance(IDLE_S / 2)
        answers.append(browser.call("GET /session").status_code)

    assert answers == [200] * (uses - 1) + [401]


def test_temporary_credentials_end_the_session_with_them(strict: StrictStudio) -> None:
    """A session opened with temporary credentials ends when they expire."""
    strict.clock.set(SESSION_ENDS_S - 60)
    browser = strict.signed_in(SESSION)
    strict.clock.advance(59)
    assert browser.call("GET /session").status_code == 200
    strict.clock.advance(1)

    assert browser.call("GET /session").status_code == 401


@pytest.mark.parametrize(
    "changed",
    [
        user(("AKIDADMIN", "admin/secret"), active=False),
        user(("AKIDADMIN", "another/secret")),
        user(("AKIDOTHER", "admin/secret")),
        {},
    ],
    ids=["deactivated", "replaced", "removed", "user removed"],
)
def test_a_session_ends_with_its_key(strict: StrictStudio, changed: dict[str, Any]) -> None:
    """A key that is deactivated, replaced or removed ends the sessions that were opened with it; others go on."""
    browser, other = strict.signed_in(ADMIN), strict.signed_in(CLERK)
    strict.change_users(admin=changed)

    assert _problem(browser.call("GET /session")) == (401, "sign-in-required")
    assert other.call("GET /session").status_code == 200


def test_changed_policies_apply_at_once(strict: StrictStudio) -> None:
    """A right that is taken away or given applies to the next request of an open session, as over HTTP."""
    browser = strict.signed_in(NOVICE)
    before = browser.call("POST /samples").status_code
    strict.change_users(novice={**USERS["admin"], "keys": USERS["novice"]["keys"]})
    given = browser.call("POST /samples").status_code
    strict.change_users(novice=USERS["novice"])
    taken = browser.call("POST /samples").status_code

    assert (before, given, taken) == (403, 200, 403)


def test_the_oldest_sessions_end_beyond_a_number(strict: StrictStudio) -> None:
    """Sign-ins cannot fill the memory: beyond a number the oldest session ends."""
    oldest = strict.signed_in(ADMIN)
    next_oldest = strict.signed_in(ADMIN)
    for _ in range(SESSIONS_MAX - 1):
        strict.browser().sign_in(CLERK)

    assert oldest.call("GET /session").status_code == 401
    assert next_oldest.call("GET /session").status_code == 200


def test_the_studio_ends_its_sessions(strict: StrictStudio) -> None:
    """When the application stops, every session ends."""
    with TestClient(strict.application):
        browser = strict.signed_in(ADMIN)

    assert browser.call("GET /session").status_code == 401


# Guessing.


def test_guessing_one_key_is_slow(strict: StrictStudio) -> None:
    """After some failures a key is blocked for a while, with the right secret too; other keys are not."""
    browser = strict.browser()
    guesses = [browser.sign_in((ADMIN[0], f"guess {n}")).status_code for n in range(KEY_FAILURES_MAX)]
    blocked = browser.sign_in(ADMIN)

    assert guesses == [401] * KEY_FAILURES_MAX
    assert _problem(blocked) == (429, "sign-in-throttled")
    assert int(blocked.headers["retry-after"]) == FAILURES_WINDOW_S
    assert browser.sign_in(CLERK).status_code == 200
    strict.clock.advance(FAILURES_WINDOW_S)
    assert browser.sign_in(ADMIN).status_code == 200


def test_guessing_from_one_address_is_slow(strict: StrictStudio) -> None:
    """Trying many keys blocks the address; another address is not blocked."""
    browser = strict.browser()
    guesses = [browser.sign_in((f"AKID{n}", "x")).status_code for n in range(CLIENT_FAILURES_MAX)]

    assert guesses == [401] * CLIENT_FAILURES_MAX
    assert browser.sign_in(ADMIN).status_code == 429
    assert strict.browser("127.0.0.2").sign_in(ADMIN).status_code == 200


def test_a_blocked_attempt_is_not_verified(strict: StrictStudio) -> None:
    """A blocked attempt does not reach the keys, so it neither tells whether a secret is right nor fills the log."""
    browser = strict.browser()
    for number in range(KEY_FAILURES_MAX + 20):
        browser.sign_in((ADMIN[0], f"guess {number}"))

    assert len(strict.log.calls) == KEY_FAILURES_MAX


def test_a_success_clears_the_failures_of_the_key(strict: StrictStudio) -> None:
    """Typing errors of a person who then signs in do not add up."""
    for _ in range(3):
        browser = strict.browser()
        for number in range(KEY_FAILURES_MAX - 1):
            browser.sign_in((ADMIN[0], f"guess {number}"))
        assert browser.sign_in(ADMIN).status_code == 200
        strict.clock.advance(FAILURES_WINDOW_S)


# What the log says.


def test_sign_ins_are_logged(strict: StrictStudio) -> None:
    """Each sign-in is a record with the person, each refused one a record with the key that it names, and no secret."""
    strict.signed_in(CLERK)
    strict.browser().sign_in((ADMIN[0], "a guess"))
    strict.browser().sign_in(("AKID\n<b>", "another guess"))
    records = strict.records()
    text = (strict.folder / "access.log").read_text()

    assert [record["eventName"] for record in records] == ["ConsoleLogin"] * 3
    assert {record["eventSource"] for record in records} == {"signin.amazonaws.com"}
    assert [record["additionalEventData"]["decision"] for record in records] == [
        "allowed",
        "unauthenticated",
        "unauthenticated",
    ]
    assert records[0]["userIdentity"]["userName"] == "clerk"
    assert records[1]["userIdentity"]["accessKeyId"] == ADMIN[0]
    assert "accessKeyId" not in records[2]["userIdentity"]
    assert {record["additionalEventData"]["source"] for record in records} == {"studio"}
    assert "guess" not in text
    assert "clerk/secret" not in text


# Streams end with the session.


async def _listen(
    strict: StrictStudio, browser: Any, path: str, query: str, during: Any
) -> tuple[int, list[bytes]]:
    """Return status and parts of a streamed response; `during` is called after each part."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
    status, parts = 0, []
    finished = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await finished.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message.get("body"):
            parts.append(message["body"])
            during(len(parts))

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"cookie", cookie.encode())],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 50_000),
        "http_version": "1.1",
    }
    await asyncio.wait_for(strict.application(scope, receive, send), 10)
    return status, parts


@pytest.mark.parametrize("ending", ["sign out", "idle", "key", "stop"])
def test_an_event_stream_ends_with_its_session(tmp_path: Path, ending: str) -> None:
    """Live changes stop when their session ends: at once on sign-out, and with the next message on expiry."""
    with strict_studio(tmp_path) as strict:
        browser = strict.signed_in(ADMIN)
        browser.call("POST /changes/stream", {"table": "readings"})
        (session,) = strict.sign_in._sessions.values()

        def during(count: int) -> None:
            if count > 1:
                raise AssertionError("a message after the end")
            match ending:
                case "sign out":
                    strict.sign_in.end(session)
                case "idle":
                    strict.clock.advance(IDLE_S)
                case "key":
                    strict.change_users(admin={})
                case _:
                    strict.sign_in.end_all()
            strict.engine.call(  # the next message
                "PutItem",
                {"TableName": "readings", "Item": {"meter": {"S": "1"}, "at": {"S": "9"}}},
                _scope(),
            )

        status, parts = asyncio.run(_listen(strict, browser, "/api/changes", "table=readings", during))

    assert status == 200
    assert [part.partition(b"\n")[0] for part in parts] == [b"event: hello"]


def _scope() -> Any:
    from tavola.protocol.arns import Scope
    from tests.studio.strict_studio import ACCOUNT, REGION

    return Scope(ACCOUNT, REGION)


def test_a_stream_without_an_end_of_session_is_whole(strict: StrictStudio) -> None:
    """What a session reads to its end is not shortened, and its source is closed."""
    strict.signed_in(ADMIN)
    (session,) = strict.sign_in._sessions.values()
    closed = []

    async def chunks() -> AsyncIterator[int]:
        try:
            for number in range(5):
                yield number
        finally:
            closed.append(True)

    async def read() -> list[int]:
        return [chunk async for chunk in strict.sign_in.until_end(session, chunks())]

    assert asyncio.run(read()) == [0, 1, 2, 3, 4]
    assert closed == [True]


@pytest.mark.parametrize("when", ["while a part is awaited", "after a part was sent"])
def test_a_part_of_an_ended_session_is_not_sent(strict: StrictStudio, when: str) -> None:
    """A session that expires while its stream waits gets no further part, and one that expires between parts causes no read."""
    strict.signed_in(ADMIN)
    (session,) = strict.sign_in._sessions.values()
    reads = 0

    async def chunks() -> AsyncIterator[int]:
        nonlocal reads
        for number in range(3):
            reads += 1
            if number == 1 and when == "while a part is awaited":
                strict.clock.advance(IDLE_S)
            yield number

    async def read() -> list[int]:
        parts = []
        async for chunk in strict.sign_in.until_end(session, chunks()):
            parts.append(chunk)
            if when == "after a part was sent":
                strict.clock.advance(IDLE_S)
        return parts

    assert asyncio.run(read()) == [0]
    assert reads == (2 if when == "while a part is awaited" else 1)


def test_a_verifier_that_says_expired_is_believed() -> None:
    """The studio repeats what the server says about a key, in its own words."""

    class Verifier:
        def sign_in(self, *_: Any) -> Any:
            raise ExpiredTokenFault

    client = TestClient(
        create(StudioSignIn(Verifier(), lambda caller: pytest.fail("no session"))),
        base_url="http://127.0.0.1",
        client=("127.0.0.1", 1),
    )
    token = client.get("/").text.partition('tavola-token" content="')[2].partition('"')[0]
    body = {"key_id": "AKID", "secret": "x"}
    response = client.post("/api/sign-in", json=body, headers={"X-Tavola-Token": token})

    assert _problem(response) == (401, "sign-in-expired")
