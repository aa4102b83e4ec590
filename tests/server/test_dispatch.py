"""From a request to the engine, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.protocol.arns import Scope
from tavola.protocol.operations import OPERATIONS
from tavola.server.callers import Peer
from tavola.server.dispatch import READS, TARGETS, Dispatch, OpenCallers
from tavola.server.responses import ResponseEncoder
from tests.server.standin import StandIn

FIELDS = {b"x-amz-target": b"DynamoDB_20120810.GetItem", b"content-type": b"application/x-amz-json-1.0"}


@pytest.fixture
def engine() -> StandIn:
    return StandIn()


@pytest.fixture
def dispatch(engine: StandIn) -> Dispatch:
    return Dispatch(engine, ResponseEncoder(ManualClock(), SeededEntropy(1)), engine.collect_writes)


def _dispatch(
    dispatch: Dispatch,
    body: bytes = b'{"key":"k"}',
    *,
    method: bytes = b"POST",
    url: bytes = b"/",
    **changed: bytes | None,
) -> tuple[int, dict[bytes, bytes], bytes]:
    fields: dict[bytes, bytes] = dict(FIELDS)
    for name, value in changed.items():
        key = name.replace("_", "-").encode()
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value
    payload = dispatch.answer(method, url, fields, body, False, Peer())
    assert isinstance(payload, bytes | tuple)
    head, _, answer = (payload if isinstance(payload, bytes) else b"".join(payload)).partition(b"\r\n\r\n")
    first, *rest = head.split(b"\r\n")
    return int(first.split()[1]), dict(line.split(b": ", 1) for line in rest), answer


def test_every_operation_has_its_target() -> None:
    """Both services are served, each under its own prefix."""
    assert set(TARGETS.values()) == set(OPERATIONS)
    assert TARGETS[b"DynamoDB_20120810.PutItem"] == "PutItem"
    assert TARGETS[b"DynamoDBStreams_20120810.GetRecords"] == "GetRecords"
    assert b"DynamoDB_20120810.GetRecords" not in TARGETS


@pytest.mark.parametrize("result", [b"application/x-amz-json-1.0", b"application/json"])
def test_an_answer_has_the_content_type_of_the_request(dispatch: Dispatch, result: bytes) -> None:
    """Both content types of AWS are accepted, and echoed."""
    status, headers, _ = _dispatch(dispatch, content_type=result)

    assert status == 200
    assert headers[b"Content-Type"] == result


def test_a_content_type_may_have_parameters(dispatch: Dispatch) -> None:
    """A charset after the content type changes nothing."""
    status, headers, _ = _dispatch(dispatch, content_type=b"Application/JSON; charset=utf-8")

    assert status == 200
    assert headers[b"Content-Type"] == b"application/json"


def test_the_scope_reaches_the_engine(dispatch: Dispatch, engine: StandIn) -> None:
    """The engine is reported whose tables are meant."""
    _dispatch(
        dispatch,
        authorization=b"AWS4-HMAC-SHA256 Credential=111122223333/d/eu-west-3/dynamodb/aws4_request, x",
    )

    assert engine.calls == [("GetItem", Scope("111122223333", "eu-west-3"))]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            b"DeleteItem",
            {
                "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
                "message": "The conditional request failed",
            },
        ),
        (
            b"Query",
            {
                "__type": "com.amazon.coral.validate#ValidationException",
                "message": "The table has no such index",
            },
        ),
    ],
)
def test_a_fault_is_answered_as_aws_writes_it(
    dispatch: Dispatch, operation: bytes, expected: dict[str, Any]
) -> None:
    """A fault has its status and its body, and the content type of the request."""
    status, headers, body = _dispatch(dispatch, x_amz_target=b"DynamoDB_20120810." + operation)

    assert status == 400
    assert headers[b"Content-Type"] == b"application/x-amz-json-1.0"
    assert json.loads(body) == expected


def test_our_own_mistake_is_an_internal_error(dispatch: Dispatch, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception is a 500 with an id alone; the log has the rest under that id."""
    status, headers, body = _dispatch(dispatch, x_amz_target=b"DynamoDB_20120810.ListTables")

    assert status == 500
    assert json.loads(body)["__type"] == "com.amazonaws.dynamodb.v20120810#InternalServerError"
    assert b"secret" not in body
    assert "secret of the inside" in caplog.text
    assert headers[b"x-amzn-RequestId"].decode() in caplog.text


@pytest.mark.parametrize(
    "changed",
    [
        {"method": b"PUT"},
        {"method": b"DELETE"},
        {"method": b"OPTIONS", "url": b"*"},
        {"content_type": b"text/plain"},
        {"content_type": None},
        {"content_type": b"\xff\xfe"},
        {"url": b"/somewhere"},
        {"url": b"//"},
        {"url": b"http://"},
        {"method": b"GET", "url": b"/somewhere"},
    ],
)
def test_other_requests_are_not_found(dispatch: Dispatch, changed: dict[str, Any]) -> None:
    """Another method, content type or path is a 404 with AWS's odd body."""
    status, _, body = _dispatch(dispatch, **changed)

    assert status == 404
    assert body == b"<UnknownOperationException/>\n"


@pytest.mark.parametrize(
    "target", [None, b"", b"DynamoDB_20120810.Nothing", b"DynamoDB_20120810.GetRecords", b"GetItem", b"\xff"]
)
def test_an_unknown_target_is_reported_after_the_json(dispatch: Dispatch, target: bytes | None) -> None:
    """A body that is no JSON is refused before a target that is no operation."""
    status, _, body = _dispatch(dispatch, b"{}", x_amz_target=target)
    assert (status, json.loads(body)) == (
        400,
        {"__type": "com.amazon.coral.service#UnknownOperationException"},
    )

    for broken in (b"", b"{", b"\xff", b"[" * 100_000, b'"\\ud800"'):
        status, _, body = _dispatch(dispatch, broken, x_amz_target=target)
        assert (status, json.loads(body)) == (
            400,
            {"__type": "com.amazon.coral.service#SerializationException"},
        )


def test_only_writes_open_a_commit_group(engine: StandIn) -> None:
    """A read needs no group; every operation that may write has one."""
    opened: list[str] = []

    def begin() -> None:
        engine.collect_writes()
        opened.append("group")

    dispatch = Dispatch(engine, ResponseEncoder(ManualClock(), SeededEntropy(1)), begin)
    _dispatch(dispatch)
    assert opened == []
    _dispatch(dispatch, x_amz_target=b"DynamoDB_20120810.PutItem")
    assert opened == ["group"]
    assert READS.isdisjoint({"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems", "CreateTable"})


def test_an_empty_body_needs_no_content_type(dispatch: Dispatch) -> None:
    """Without a body the content type is not checked: the refusal is about the JSON."""
    status, headers, body = _dispatch(dispatch, b"", content_type=None, x_amz_target=None)

    assert status == 400
    assert headers[b"Content-Type"] == b"application/x-amz-json-1.0"
    assert json.loads(body)["__type"].endswith("#SerializationException")


def test_the_root_reports_health(dispatch: Dispatch) -> None:
    """GET / responds as DynamoDB does, trailing space included, with the region of the credential."""
    assert _dispatch(dispatch, b"", method=b"GET")[::2] == (
        200,
        b"healthy: dynamodb.us-east-1.amazonaws.com ",
    )

    authorization = b"AWS4-HMAC-SHA256 Credential=a/b/eu-west-1/dynamodb/aws4_request,"
    _, _, body = _dispatch(dispatch, b"", method=b"GET", authorization=authorization)
    assert body == b"healthy: dynamodb.eu-west-1.amazonaws.com "


def test_probes_are_answered_in_json(dispatch: Dispatch, engine: StandIn) -> None:
    """The process is alive while it answers, and ready while it takes writes."""
    assert _dispatch(dispatch, b"", method=b"GET", url=b"/healthz")[::2] == (200, b'{"status":"ok"}')
    assert _dispatch(dispatch, b"", method=b"GET", url=b"/readyz?x=1")[::2] == (200, b'{"status":"ok"}')

    engine.unready_reason = "the disk did not sync"
    status, _, body = _dispatch(dispatch, b"", method=b"GET", url=b"/readyz")
    assert (status, json.loads(body)) == (503, {"status": "failing", "reason": "the disk did not sync"})
    assert _dispatch(dispatch, b"", method=b"GET", url=b"/healthz")[0] == 200


def test_a_strict_server_reports_only_the_status_to_probes(engine: StandIn) -> None:
    """Any client can probe it; the cause of a failure is only in the server's own log."""
    strict = Dispatch(
        engine, ResponseEncoder(ManualClock(), SeededEntropy(1)), engine.collect_writes, callers=OpenCallers()
    )
    engine.unready_reason = "the disk of /srv/secret failed"

    assert _dispatch(strict, b"", method=b"GET", url=b"/readyz")[::2] == (503, b'{"status":"failing"}')


def test_a_proxy_may_send_the_whole_url(dispatch: Dispatch) -> None:
    """A URL with scheme and host before the path, or with a query behind it, is understood."""
    assert _dispatch(dispatch, url=b"http://localhost:8000/")[0] == 200
    assert _dispatch(dispatch, url=b"http://localhost:8000")[0] == 200
    assert _dispatch(dispatch, url=b"/?X-Amz-Credential=a")[0] == 200


def test_head_of_a_probe_has_no_body(dispatch: Dispatch) -> None:
    """HEAD is answered with the headers of GET."""
    assert _dispatch(dispatch, b"", method=b"HEAD", url=b"/healthz")[::2] == (200, b"")
    assert _dispatch(dispatch, b"", method=b"HEAD", url=b"/x")[::2] == (404, b"")
