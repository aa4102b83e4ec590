"""Backend: an operation's name and its request in, its response out. The port.

Requests and responses are DynamoDB JSON in Python's own types: `{"S": "text"}`, numbers as text, binary as
base64 text. Where a request holds bytes for a B, they are written as base64; a response is always text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from tavola.errors import ErrorKind, TavolaError


class RequestMalformed(TavolaError):
    """A request that holds what JSON cannot, such as an object of a class of one's own."""

    def __init__(self, operation: str, reason: str) -> None:
        self.operation = operation
        self.reason = reason
        super().__init__(
            f"The request of {operation} cannot be written as JSON: {reason}. "
            f'Give attribute values as DynamoDB JSON, such as {{"S": "text"}} or {{"N": "42"}}.'
        )


class Unanswered(TavolaError):
    """No answer could be had, or none that can be read: whether the request was done is not known.

    Where `sent` is false it is known: the other end cannot have had all of the request, and has not done it.
    """

    code = "unanswered"
    kind = ErrorKind.UNAVAILABLE

    sent: bool = True


class Backend(Protocol):
    """Whatever answers DynamoDB's operations: an engine in this process, a server, AWS."""

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to an operation; raise the `Fault` that DynamoDB answers instead."""
        ...

    def close(self) -> None:
        """Let go of what the backend holds; a second time does nothing."""
        ...


class AsyncBackend(Protocol):
    """The same port for a program that runs on an event loop."""

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to an operation; raise the `Fault` that DynamoDB answers instead."""
        ...

    async def close(self) -> None:
        """Let go of what the backend holds; a second time does nothing."""
        ...


@runtime_checkable
class Gathering(Protocol):
    """A backend that can have several calls under way at once."""

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response, or the fault or error that came instead, in the order of the calls.

        All are made, whatever becomes of one, so nothing that was done is lost sight of.
        """
        ...


@runtime_checkable
class AsyncGathering(Protocol):
    """A backend on an event loop that can have several calls under way at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response, fault or error, in the order of the calls, as `Gathering` does."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A backend that can also be asked what was: the port's second door, which AWS does not have."""

    def as_of(self, at_us: int) -> Backend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        ...


@runtime_checkable
class AsyncRemembering(Protocol):
    """A backend on an event loop that can also be asked what was."""

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        ...


def encode_request(operation: str, request: Mapping[str, Any]) -> bytes:
    """Return the body of a request; every backend writes it here, so all take the same Python types."""
    try:
        return _encode(request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RequestMalformed(operation, str(error)) from error


def _plain(found: object) -> object:
    """Return a mapping that is no dict as one; msgspec writes dicts alone."""
    if isinstance(found, Mapping):
        return dict(found)
    raise TypeError(f"it holds {found!r} of type {type(found).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
