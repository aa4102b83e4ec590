"""Stages: what some requests need besides being dispatched, in slices.

    decode the body ─► dispatch ─► wait for a long read ─► admit a large response ─► compress it ─► add headers for pages

Most requests need none of it: `ClientConnection` passes them to the dispatch directly, and their small responses to the
socket. The others come here. The stages of one request are a generator that yields after each slice of time; if it ends
within its first slice the response is complete at once, otherwise `PendingWork` continues it between other requests.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TypeAlias

from tavola.limits import BATCH_GET_RESPONSE_BYTES_MAX, TRANSACTION_BYTES_MAX
from tavola.protocol.faults import Fault, SerializationFault, ServiceUnavailableFault
from tavola.server.callers import Peer
from tavola.server.codings import (
    COMPRESSED_BYTES_MIN,
    PLAIN_CODINGS,
    BodyUndecodable,
    accepted_coding,
    compress_body,
    decode_body,
)
from tavola.server.cross_origin import PREFLIGHT_METHOD, cross_origin_headers, preflight_headers
from tavola.server.dispatch import Dispatch, is_write_request
from tavola.server.memory import BufferFull, MemoryBudget
from tavola.server.responses import (
    JSON,
    TEXT,
    Payload,
    PendingPayload,
    Response,
    ResponseEncoder,
    add_headers,
    replace_body,
    request_id_of,
    response_size,
    split_payload,
)
from tavola.server.sts import is_sts_request

READ_BYTES = 512 * 1024
"""What a long read holds, roughly: a part of its page of 1 MB. The following ones hold more, an eighth for each slice of time."""

_RESULT_BYTES_MAX = {
    b"BatchGetItem": BATCH_GET_RESPONSE_BYTES_MAX,
    b"TransactGetItems": TRANSACTION_BYTES_MAX,
    b"BatchExecuteStatement": BATCH_GET_RESPONSE_BYTES_MAX,
}

_Stages: TypeAlias = Generator[None, None, Payload]


class StagedResponse:
    """A response whose stages take longer than a slice of time; implements `PendingPayload`."""

    __slots__ = ("_stages", "body_bytes", "held_bytes", "read", "request_id")

    def __init__(self, body_bytes: int) -> None:
        self.body_bytes = body_bytes
        self.held_bytes = body_bytes
        self.read: PendingPayload | None = None  # the long read that is waited for
        self.request_id = b""
        self._stages: _Stages | None = None

    def start(self, stages: _Stages) -> Response:
        """Run the first slice; return the response, or this object if it is unfinished."""
        self._stages = stages
        payload = self.resume()
        return self if payload is None else payload

    def resume(self) -> Payload | None:
        """Run one slice; return the response when it is complete."""
        assert self._stages is not None, "start comes first"
        try:
            next(self._stages)
        except StopIteration as stop:
            payload: Payload = stop.value
            return payload
        return None

    def abandon(self, fault: Fault | None) -> None:
        """End without a response; the call of a long read is logged with this fault."""
        if self._stages is not None:
            self._stages.close()
        if self.read is not None:
            self.read.abandon(fault)

    def hold(self, size: int) -> None:
        """Note what is held besides the body."""
        self.held_bytes = self.body_bytes + size


class RequestStages:
    """Runs the stages of requests, for all connections of a server."""

    __slots__ = ("_budget", "_dispatch", "_encoder", "_pressed_s")

    def __init__(
        self, dispatch: Dispatch, encoder: ResponseEncoder, budget: MemoryBudget, pressed_s: float
    ) -> None:
        self._dispatch = dispatch
        self._encoder = encoder
        self._budget = budget
        self._pressed_s = pressed_s

    def begin(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, close: bool, peer: Peer
    ) -> Response:
        """Answer a request that has a content coding or comes from a web page."""
        staged = StagedResponse(len(body))
        return staged.start(self._run(staged, method, url, fields, body, close, peer))

    def finish(self, response: Response, fields: Mapping[bytes, bytes], body: bytes, close: bool) -> Response:
        """Finish a response of the dispatch that is large or takes longer than a slice."""
        if (
            isinstance(response, bytes | tuple)
            and accepted_coding(fields.get(b"accept-encoding")) is None
            and self._budget.held_bytes + response_size(response) <= self._budget.large_bytes_max
        ):
            return response
        staged = StagedResponse(len(body))
        return staged.start(self._finish(staged, response, fields, close))

    def refuse_for_memory(self, close: bool, request_id: bytes | None = None) -> Payload:
        """Return the response to a request for which no memory is left."""
        fault = ServiceUnavailableFault(self._budget.sentence)
        return self._encoder.encode(fault.status, JSON, fault.body(), close, request_id)

    def _run(
        self,
        staged: StagedResponse,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> _Stages:
        dispatch = self._dispatch
        origin = fields.get(b"origin")
        is_admitted_page = origin is not None and dispatch.hosts.is_admitted_site(origin)
        if is_admitted_page and method == PREFLIGHT_METHOD and dispatch.hosts.refusal(fields) is None:
            payload = self._encoder.encode(200, TEXT, b"", close)
            return add_headers(payload, cross_origin_headers(origin or b"") + preflight_headers(fields))
        signed: bytes | None = None
        coding = fields.get(b"content-encoding", b"")
        response: Response
        if coding.strip(b" \t").lower() in PLAIN_CODINGS or method != b"POST":
            response = dispatch.answer(method, url, fields, body, close, peer)
        elif is_sts_request(method, url, fields):
            refusal = SerializationFault(
                "Requests of STS have no content coding here; send the body as it is."
            )
            response = dispatch.refuse(refusal, url, fields, b"", close, peer)
        elif not dispatch.is_admitted(url, fields, body, peer):  # no decoding for unknown callers
            response = dispatch.answer(method, url, fields, b"", close, peer, body)
        else:
            try:
                signed, body = (
                    body,
                    (yield from decode_body(coding, body, lambda size: self._grow(staged, size))),
                )
            except BodyUndecodable as error:
                response = dispatch.refuse(SerializationFault(str(error)), url, fields, b"", close, peer)
            except BufferFull:
                response = self.refuse_for_memory(close)
            else:
                staged.body_bytes = len(body)
                staged.hold(0)
                response = dispatch.answer(method, url, fields, body, close, peer, signed)
        payload = yield from self._finish(staged, response, fields, close)
        return add_headers(payload, cross_origin_headers(origin or b"")) if is_admitted_page else payload

    def _grow(self, staged: StagedResponse, size: int) -> None:
        """Note the size of a body that is being decoded; raise `BufferFull` if it does not fit."""
        growth = staged.body_bytes + size - staged.held_bytes
        staged.hold(size)
        if not self._budget.admit_large(growth, self._pressed_s):
            raise BufferFull

    def _finish(
        self, staged: StagedResponse, response: Response, fields: Mapping[bytes, bytes], close: bool
    ) -> _Stages:
        if not isinstance(response, bytes | tuple):
            payload = yield from self._wait(staged, response, fields, close)
        else:
            payload = response
        staged.request_id = request_id_of(payload)
        size = response_size(payload)
        if (
            isinstance(payload, tuple)
            and not self._budget.admit_large(size, self._pressed_s)
            and not is_write_request(fields)  # a write is done: its response is sent, and counted
        ):
            return self.refuse_for_memory(close, staged.request_id)
        if size >= COMPRESSED_BYTES_MIN:
            coding = accepted_coding(fields.get(b"accept-encoding"))
            body = split_payload(payload)[1]
            if coding is not None and len(body) >= COMPRESSED_BYTES_MIN:
                staged.hold(2 * size)
                return replace_body(payload, coding, (yield from compress_body(coding, body)))
        return payload

    def _wait(
        self, staged: StagedResponse, read: PendingPayload, fields: Mapping[bytes, bytes], close: bool
    ) -> _Stages:
        """Advance a long read, one slice at a time; end one for which no memory is left."""
        staged.request_id = read.request_id
        is_write = is_write_request(fields)
        operation = fields.get(b"x-amz-target", b"").strip().rpartition(b".")[2]
        result_bytes_max = _RESULT_BYTES_MAX.get(operation, READ_BYTES)
        held_bytes = 0
        while True:
            growth = min(held_bytes + max(READ_BYTES, result_bytes_max // 8), result_bytes_max) - held_bytes
            if growth and not is_write and not self._budget.admit_large(growth, self._pressed_s):
                staged.read = None
                read.abandon(ServiceUnavailableFault(self._budget.sentence))
                return self.refuse_for_memory(close, staged.request_id)
            held_bytes += growth
            staged.read = read
            staged.hold(held_bytes)
            yield
            payload = read.resume()
            if payload is not None:
                staged.read = None
                return payload
