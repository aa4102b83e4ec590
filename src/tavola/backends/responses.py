"""Responses: an HTTP reply as the response or the fault that it contains.

A fault from an endpoint has the same class as one from the engine, so handlers do not depend on the backend. AWS has more error
codes than the engine raises; those become a `Fault` with the code, status and message that were sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from tavola.backends.errors import ResponseCorrupted, ResponseUnreadable
from tavola.client.backend import decode_response
from tavola.errors import ErrorKind
from tavola.protocol.faults import (
    AUTHENTICATION_CODES,
    CancellationReason,
    ConditionalCheckFailedFault,
    Fault,
    TransactionCanceledFault,
)

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOT_EXTRA = frozenset({"__type", "message", "Message"})


class _ReasonBody(msgspec.Struct, rename="pascal"):
    """A cancellation reason as AWS encodes it; null stands for absent."""

    code: str | None = None
    message: str | None = None
    item: msgspec.Raw = msgspec.Raw()

    def reason(self) -> CancellationReason:
        """Return the reason as the engine represents it."""
        item = None if bytes(self.item) in {b"", b"null"} else self.item
        return CancellationReason(self.code or "None", self.message, item)


def parse_response(endpoint: str, status: int, body: bytes, checksum: str | None) -> dict[str, Any]:
    """Return the response in a reply; raise the fault in it, or an error if there is neither."""
    if checksum is not None and checksum != str(zlib.crc32(body)):
        raise ResponseCorrupted(endpoint)
    if status == 200:
        try:
            return decode_response(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ResponseUnreadable(endpoint, status) from error
    raise _parse_fault(endpoint, status, body)


def _parse_fault(endpoint: str, status: int, body: bytes) -> Fault:
    try:
        members = _MEMBERS.decode(body)
        kind = msgspec.json.decode(members["__type"], type=str)
        text = members.get("message") or members.get("Message")
        message = None if text is None else msgspec.json.decode(text, type=str | None)
        reasons = msgspec.json.decode(members.get("CancellationReasons") or b"[]", type=list[_ReasonBody])
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise ResponseUnreadable(endpoint, status) from error
    namespace, _, code = kind.rpartition("#")
    extra: dict[str, Any] = {name: raw for name, raw in members.items() if name not in _NOT_EXTRA}
    fault: Fault
    if code == ConditionalCheckFailedFault.code:
        fault = ConditionalCheckFailedFault(members.get("Item"))
    elif code == TransactionCanceledFault.code and reasons:
        fault = TransactionCanceledFault([reason.reason() for reason in reasons])
        extra = fault.extra
    else:
        fault_class = _KNOWN.get(code) or _unknown_class(namespace, code, status)
        # __init__ would set a default message instead of the one sent
        fault = fault_class.__new__(fault_class)
    Fault.__init__(fault, message, extra)
    return fault


def _fault_classes(kind: type[Fault]) -> Iterator[type[Fault]]:
    """Yield the subclasses that have an AWS error code."""
    for child in kind.__subclasses__():
        if "code" in vars(child):
            yield child
        yield from _fault_classes(child)


_KNOWN: dict[str, type[Fault]] = {kind.code: kind for kind in _fault_classes(Fault)}


@lru_cache(maxsize=256)
def _unknown_class(namespace: str, code: str, status: int) -> type[Fault]:
    """Return a new class for an unknown code, because code and status are class attributes of a fault."""
    kind = ErrorKind.INTERNAL if status >= 500 else ErrorKind.INVALID
    if code in AUTHENTICATION_CODES:
        kind = ErrorKind.UNAUTHENTICATED
    attributes = {
        "code": code,
        "status": status,
        "namespace": namespace,
        "retryable": status >= 500,
        "kind": kind,
    }
    return type("UnknownFault", (Fault,), attributes)
