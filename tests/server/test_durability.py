"""No response reveals a write that is not durable, over real sockets."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tavola.engine import StoreFull
from tests.server.raw import Raw, request, send_request, served
from tests.server.standin import StandIn


def test_a_failed_commit_fails_all_that_waited_for_it(caplog: pytest.LogCaptureFixture) -> None:
    """I9 over HTTP: writes, reads and refusals of one group all fail with it, in order, and the connection lives on."""
    engine = StandIn()
    engine.commit_error = OSError("the disk is gone")
    with served(engine) as endpoint, Raw(endpoint) as client:
        client.send(
            request("PutItem", b'{"key":"lost"}') + request(body=b'{"key":"lost"}') + request("Query")
        )
        answers = [client.answer() for _ in range(3)]

        assert [answer.status for answer in answers] == [500, 500, 500]
        assert all(b"InternalServerError" in answer.body for answer in answers)
        assert len({answer.headers["x-amzn-requestid"] for answer in answers}) == 3
        client.send(request(body=b'{"key":"lost"}'))
        assert client.answer().body == b"{}"
    assert "the disk is gone" in caplog.text


def test_a_store_that_refuses_writes_says_why_and_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """I17 over HTTP: each client gets the reason; the log gets it once and without a traceback, and once more for another reason."""
    engine = StandIn()
    reason = "shop.db cannot be written: the disk is full"
    engine.commit_error, engine.unready_reason = StoreFull(reason), reason
    with served(engine) as endpoint, Raw(endpoint) as client:
        for _ in range(50):
            client.send(request("PutItem", b'{"key":"lost"}'))
            answer = client.answer()
            assert answer.status == 500
            assert reason.encode() in answer.body

    assert caplog.text.count(reason) == 1
    assert "Traceback" not in caplog.text


def test_writes_of_many_clients_share_commits() -> None:
    """Writers that arrive together need fewer commits than writes."""
    engine = StandIn()
    with served(engine) as endpoint, ExitStack() as stack:
        clients = [stack.enter_context(Raw(endpoint)) for _ in range(20)]
        for number, client in enumerate(clients):
            client.send(
                b"".join(request("PutItem", b'{"key":"%d-%d"}' % (number, each)) for each in range(20))
            )
        for client in clients:
            assert [client.answer().status for _ in range(20)] == [200] * 20

    assert len(engine.rows) == 400
    assert engine.commits < 200


def test_background_work_is_done_between_requests() -> None:
    """While background work is pending, its slices follow each other; otherwise they are rare."""
    engine = StandIn()
    engine.more_to_tend = 20
    with served(engine) as endpoint, Raw(endpoint) as client:
        while engine.more_to_tend:
            client.send(request())
            assert client.answer().status == 200

    assert engine.tended >= 19


def test_failing_background_work_disturbs_no_one(caplog: pytest.LogCaptureFixture) -> None:
    """Clients are served whatever becomes of the background work."""

    class Failing(StandIn):
        def run_background_work(self, budget_ms: float) -> bool:
            raise OSError("no room for the index")

    with served(Failing()) as endpoint:
        assert send_request(endpoint, request()).status == 200
    assert "no room for the index" in caplog.text
