"""A phone number is never stored or logged in clear, and what a person wrote is only in their ticket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.service_desk import service
from tavola.apps.service_desk.web import create
from tavola.apps.shell import AppSettings, running_server
from tests.apps.conftest import Run
from tests.apps.service_desk.conftest import SECRET, Desk

NUMBER = "+39 06 9876 5432"
SPELLINGS = [NUMBER, "+390698765432", "0039 06-98765432", "(0039) 06 9876 5432"]
HIDDEN = [
    "0698765432x12",
    "sms:0698765432",
    "phone-0698765432",
    "0698765432;ext=5",
    "39_06_98765432",
    "01139698765432",
]
TRACES = ["98765432", "9876 5432", "9876%205432", "9876+5432", "0698765432"]
WORDS = "the-description-of-a-caller"
REMARK = "the-comment-of-a-caller"


def _leaks(text: str, *more: str) -> list[str]:
    return [trace for trace in (*TRACES, *more) if trace in text]


def _use_everything(client: TestClient) -> list[Any]:
    """Use every operation with the number in each spelling, correctly and incorrectly; return the responses."""
    answers = []
    for number in SPELLINGS:
        made = client.post(
            "/tickets",
            json={"caller_id": number, "issue_description": WORDS},
            headers={"Idempotency-Key": number},
        )
        answers.append(made)
        where = made.headers["location"]
        answers.append(client.post(f"{where}/comments", json={"comment_text": REMARK}))
        answers.append(client.get(where))
        answers.append(client.get(f"/tickets?caller={quote(number)}"))
        answers.append(client.get(f"/ui{where}", headers={"Accept": "text/html"}))
        answers.append(client.post("/ui/callers", data={"whose": number}))
    answers += [
        client.post("/tickets", json={"caller_id": NUMBER, "issue_description": f"{n}"}) for n in range(9)
    ]
    answers.append(client.get(f"/tickets?caller={quote(NUMBER)}"))
    answers.append(client.get("/metrics"))
    return answers


def _use_wrongly(client: TestClient) -> list[Any]:
    """Use every operation incorrectly, with the number and the text in the invalid parts; return the responses."""
    json = {"Content-Type": "application/json"}
    return [
        client.post("/tickets", json={"caller_id": "06 9876 5432", "issue_description": WORDS}),
        client.post("/tickets", json={"caller_id": f"sip:{NUMBER}@pbx", "issue_description": WORDS}),
        *(
            client.post("/tickets", json={"caller_id": hidden, "issue_description": WORDS})
            for hidden in HIDDEN
        ),
        client.post("/tickets", json={"caller_id": [NUMBER], "issue_description": {"x": WORDS}}),
        client.post("/tickets", json={"caller_id": NUMBER, "issue_description": WORDS, "telephone": NUMBER}),
        client.post("/tickets", json={"caller_id": NUMBER, "issue_description": WORDS * 20_000}),
        client.post("/tickets", json=[NUMBER, WORDS]),
        client.post("/tickets", content=f'{{"caller_id": "{NUMBER}" "{WORDS}"'.encode(), headers=json),
        client.post("/tickets", content=f"{NUMBER} {WORDS}".encode(), headers={"Content-Type": WORDS}),
        client.get(f"/tickets?caller={quote('06 9876 5432')}"),
        client.get(f"/tickets?caller={quote(NUMBER)}&caller={quote(NUMBER)}"),
        client.get(f"/tickets?caller={quote(NUMBER)}&cursor={WORDS}"),
        client.get(f"/tickets?caller={quote(NUMBER)}&cursor=" + "x" * 9_000),
        client.delete(f"/tickets?caller={quote(NUMBER)}"),
        client.get(f"/nothing?caller={quote(NUMBER)}"),
        client.get(f"/tickets/?caller={quote(NUMBER)}", follow_redirects=False),
        client.get(f"/ui/tickets/?caller={quote(NUMBER)}", follow_redirects=False),
        client.post("/tickets/unknown/comments", json={"comment_text": REMARK}),
        client.post("/tickets/unknown/comments", json={"comment_text": [REMARK]}),
    ]


def _logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return the log without the lines of the test's own client."""
    lines = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    formatter = logging.Formatter("%(name)s %(message)s")
    return "\n".join(formatter.format(record) for record in lines)


def test_a_number_is_in_no_response_and_no_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Neither responses nor logs contain the number, in a body, a header or a link."""
    caplog.set_level(logging.DEBUG)

    good, bad = _use_everything(desk.client), _use_wrongly(desk.client)

    assert all(answer.status_code < 400 for answer in good), [answer.text for answer in good]
    assert all(400 <= answer.status_code < 500 for answer in bad), [answer.text for answer in bad]
    for answer in (*good, *bad):
        assert not _leaks(answer.text + str(answer.headers)), answer.text
    assert any("link" in answer.headers for answer in good)
    assert not _leaks(_logged(caplog), WORDS, REMARK)


def test_a_redirect_drops_the_query(desk: Desk) -> None:
    """The query of a URL without its trailing slash is not repeated in the redirect."""
    answer = desk.client.get(f"/ui?caller={quote(NUMBER)}", follow_redirects=False)

    assert answer.status_code == 303
    assert answer.headers["location"].endswith("/ui/")


def test_a_problem_does_not_repeat_the_value(desk: Desk) -> None:
    """Invalid input is named by its location, not by its value."""
    for answer in _use_wrongly(desk.client):
        assert not _leaks(answer.text, WORDS, REMARK), answer.text


def test_a_number_is_in_no_byte_of_the_store(tmp_path: Path, served: Callable[[FastAPI], TestClient]) -> None:
    """The store's files contain the text of tickets, as intended, but not the number."""
    client = served(create(AppSettings(target=f"file:{tmp_path / 'desk.db'}")))
    _use_everything(client)
    _use_wrongly(client)

    stored_bytes = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())

    assert WORDS.encode() in stored_bytes, "the files were looked at"
    assert b"tel:" in stored_bytes
    for trace in TRACES:
        assert trace.encode() not in stored_bytes


def test_an_unexpected_error_reveals_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A 500 has an incident ID; the log says where it happened, without the data."""

    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{NUMBER} {WORDS}")

    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(service, "report_issue", broken)
    answer = desk.report(caller=NUMBER, issue=WORDS)

    assert answer.status_code == 500
    assert not _leaks(answer.text, WORDS)
    assert answer.json()["incident"] in caplog.text
    assert not _leaks(_logged(caplog), WORDS)


def test_a_server_does_not_log_queries(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """On a real port, a list by number leaves no log line that contains it."""
    caplog.set_level(logging.DEBUG)

    async def work() -> bytes:
        async with running_server(create(AppSettings(secret=SECRET))) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
            request = f"GET /tickets?caller={quote(NUMBER)} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    answer = run(work())

    assert answer.startswith(b"HTTP/1.1 200")
    assert not _leaks(answer.decode())
    assert not _leaks(_logged(caplog))


def test_the_secret_beside_the_store_is_reused(
    tmp_path: Path, served: Callable[[FastAPI], TestClient]
) -> None:
    """A second start finds the callers of the first: the secret is stored beside the file, readable by its owner only."""
    settings = AppSettings(target=f"file:{tmp_path / 'desk.db'}")
    with TestClient(create(settings), base_url="http://127.0.0.1") as first:
        made = first.post("/tickets", json={"caller_id": NUMBER, "issue_description": "x"}).json()
    again = served(create(settings))

    listed = again.get(f"/tickets?caller={quote(NUMBER)}").json()

    assert listed["items"] == [made]
    (secret,) = tmp_path.rglob("secret")
    assert secret.stat().st_mode & 0o077 == 0


def test_reprs_contain_neither_caller_nor_text(desk: Desk) -> None:
    """The repr of a ticket has its ID, status and times."""
    ticket_id = desk.report(caller=NUMBER, issue=WORDS).json()["ticket_id"]
    desk.comment(ticket_id, REMARK)
    assert desk.client.portal is not None

    text = repr(desk.client.portal.call(service.ticket_status, desk.application.state.desk, ticket_id))

    assert ticket_id in text
    assert not _leaks(text, WORDS, REMARK, "tel:")
