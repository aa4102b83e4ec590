"""Answers: what came back over HTTP, as the response or the fault that it stands for.

A fault from afar is of the same class as one from the engine, so that nobody who catches it can tell where
it came from. AWS knows more codes than the engine raises; those come as a `Fault` with the code, status and
text that were sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from tavola.backends.errors import AnswerDamaged, AnswerUnreadable
from tavola.errors import ErrorKind
from tavola.protocol.faults import (
    AUTHENTICATION_CODES,
    CancellationReason,
    ConditionalCheckFailedFault,
    Fault,
    TransactionCanceledFault,
)

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RESPONSE = msgspec.json.Decoder(dict[str, Any])
_NOT_EXTRA = frozenset({"__type", "message", "Message"})


class _Reason(msgspec.Struct, rename="pascal"):
    """A reason of a cancelled transaction as AWS writes it; null stands for absent."""

    code: str | None = None
    message: str | None = None
    item: msgspec.Raw = msgspec.Raw()

    def told(self) -> CancellationReason:
        """Return the reason as the engine tells it."""
        item = None if bytes(self.item) in {b"", b"null"} else self.item
        return CancellationReason(self.code or "None", self.message, item)


def read_answer(endpoint: str, status: int, body: bytes, checksum: str | None) -> dict[str, Any]:
    """Return the response in an answer; raise the fault in it, or an error if there is neither."""
    if checksum is not None and checksum != str(zlib.crc32(body)):
        raise AnswerDamaged(endpoint)
    if status == 200:
        try:
            return _RESPONSE.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise AnswerUnreadable(endpoint, status) from error
    raise _fault_of(endpoint, status, body)


def _fault_of(endpoint: str, status: int, body: bytes) -> Fault:
    try:
        members = _MEMBERS.decode(body)
        kind = msgspec.json.decode(members["__type"], type=str)
        text = members.get("message") or members.get("Message")
        message = None if text is None else msgspec.json.decode(text, type=str | None)
        reasons = msgspec.json.decode(members.get("CancellationReasons") or b"[]", type=list[_Reason])
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise AnswerUnreadable(endpoint, status) from error
    namespace, _, code = kind.rpartition("#")
    extra: dict[str, Any] = {name: raw for name, raw in members.items() if name not in _NOT_EXTRA}
    fault: Fault
    if code == ConditionalCheckFailedFault.code:
        fault = ConditionalCheckFailedFault(members.get("Item"))
    elif code == TransactionCanceledFault.code and reasons:
        fault = TransactionCanceledFault([reason.told() for reason in reasons])
        extra = fault.extra
    else:
        known = _KNOWN.get(code) or _unknown(namespace, code, status)
        fault = known.__new__(known)  # their texts are defaults of our own; the one that was sent is wanted
    Fault.__init__(fault, message, extra)
    return fault


def _with_codes(kind: type[Fault]) -> Iterator[type[Fault]]:
    """Give the classes under one that stand for a code of AWS's."""
    for child in kind.__subclasses__():
        if "code" in vars(child):
            yield child
        yield from _with_codes(child)


_KNOWN: dict[str, type[Fault]] = {kind.code: kind for kind in _with_codes(Fault)}


@lru_cache(maxsize=256)
def _unknown(namespace: str, code: str, status: int) -> type[Fault]:
    """Return a new class for a code that has none: code and status are class attributes of a fault."""
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
