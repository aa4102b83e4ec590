"""Backend: the interface between the client and whatever executes DynamoDB operations.

Requests and responses are DynamoDB JSON in Python's own types: `{"S": "text"}`, numbers as text, binary as base64 text.
Bytes in a request are encoded as base64; a response always holds text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from tavola.errors import ErrorKind, TavolaError


class RequestMalformed(TavolaError):
    """A request with a value that JSON cannot represent, such as an object of your own class."""

    def __init__(self, operation: str, reason: str) -> None:
        self.operation = operation
        self.reason = reason
        super().__init__(
            f"The {operation} request cannot be encoded as JSON: {reason}. "
            f'Write attribute values as DynamoDB JSON, such as {{"S": "text"}} or {{"N": "42"}}.'
        )


class ResponseMissing(TavolaError):
    """No response came, or none that can be read, so it is unknown whether the request was executed.

    If `sent` is false, the endpoint cannot have received the whole request, so it was not executed.
    """

    code = "unanswered"
    kind = ErrorKind.UNAVAILABLE

    sent: bool = True


class BackendError(TavolaError):
    """A backend cannot be created or reached; an error response of DynamoDB is a `Fault` instead."""


class AsOfUnsupported(BackendError):
    """The backend cannot read tables as they were at a time."""

    kind = ErrorKind.CONFLICT

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} does not support reads as of a time; restore the table with RestoreTableToPointInTime, and read the "
            "restored table"
        )


class Backend(Protocol):
    """Executes DynamoDB operations: an engine in this process, a server, or AWS."""

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to an operation; raise the `Fault` that DynamoDB responds with."""
        ...

    def close(self) -> None:
        """Release the backend's resources; a second call does nothing."""
        ...


class AsyncBackend(Protocol):
    """The same interface for programs on an event loop."""

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to an operation; raise the `Fault` that DynamoDB responds with."""
        ...

    async def close(self) -> None:
        """Release the backend's resources; a second call does nothing."""
        ...


@runtime_checkable
class ConcurrentBackend(Protocol):
    """A backend that can make several calls at once."""

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response, fault or error, in the order of the calls; one failure does not stop the others."""
        ...


@runtime_checkable
class AsyncConcurrentBackend(Protocol):
    """A backend on an event loop that can make several calls at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response, fault or error, as `ConcurrentBackend` does."""
        ...


@runtime_checkable
class AsOfBackend(Protocol):
    """A backend that can also read tables as they were at a time, which AWS cannot."""

    def as_of(self, at_us: int) -> Backend:
        """Return a read-only backend of the same tables as they were at a time."""
        ...


@runtime_checkable
class AsyncAsOfBackend(Protocol):
    """A backend on an event loop that can also read tables as they were at a time."""

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return a read-only backend of the same tables as they were at a time."""
        ...


def decode_response(body: bytes) -> dict[str, Any]:
    """Return a response body as Python's types; TagResource and UntagResource respond without a body."""
    return _decode(body) if body else {}


def encode_request(operation: str, request: Mapping[str, Any]) -> bytes:
    """Return the body of a request; all backends use this, so all accept the same Python types."""
    try:
        return _encode(request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RequestMalformed(operation, str(error)) from error


def _encode_mapping(value: object) -> object:
    """Return a mapping as a dict, because msgspec encodes only dicts."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it contains {value!r} of type {type(value).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_encode_mapping).encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
