"""One typed endpoint of the API: a function and how it is called.

Request and response types are read from the function's annotations. They validate requests and generate the pages'
TypeScript types. HTTP is in `app`; here a request is data, and the command line (`tavola api`) calls the same endpoints.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

import msgspec

from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio

Method = Literal["GET", "POST"]
Handler = Callable[[Studio, Any], Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A question: `GET` with parameters or `POST` with a JSON body; `changes` what stands, so read-only refuses it."""

    method: Method
    path: str
    handler: Handler
    is_write: bool = False
    cancel_on_disconnect: bool = (
        False  # long, and of no use once whoever asked has gone: it is cancelled then
    )
    raw: bool = False  # the handler gives a Starlette response: a download, a stream
    body_bytes_max: int = 4 * 1024 * 1024

    @property
    def name(self) -> str:
        """What the pages and the command line call it: `GET /tables`."""
        return f"{self.method} {self.path}"

    @property
    def request_type(self) -> type[Any]:
        """The type of what is asked."""
        return _handler_types(self.handler)[0]

    @property
    def response_type(self) -> Any:
        """The type of the answer."""
        return _handler_types(self.handler)[1]

    def parse_parameters(self, parameters: Mapping[str, str]) -> Any:
        """Return what is asked by the parameters of a URL; numbers and truth are read from their text."""
        try:
            return msgspec.convert(dict(parameters), self.request_type, strict=False)
        except msgspec.ValidationError as error:
            raise _malformed(self, error) from error

    def parse_body(self, body: bytes) -> Any:
        """Return what is asked by a JSON body; no body asks with what is there by default."""
        try:
            return msgspec.json.decode(body or b"{}", type=self.request_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(self, error) from error

    async def call(self, studio: Studio, request: Any) -> Any:
        """Return the handler's response to a request: a `request_type`, a JSON body, or the parameters of a URL.

        A read-only studio refuses writes, before the request is parsed. A handler that is no coroutine function runs in a thread.
        """
        if self.is_write and studio.read_only:
            raise RequestRefused(
                "read-only",
                "Nothing may be changed here",
                f"The studio was started read-only, and {self.name} changes what stands.",
                "Start it without --read-only (and with --live for AWS) to change something.",
                status=403,
            )

        if isinstance(request, bytes):
            request = self.parse_body(request)
        elif isinstance(request, Mapping):
            request = self.parse_parameters(request)
        if inspect.iscoroutinefunction(self.handler):
            return await self.handler(studio, request)
        return await studio.run_in_thread(self.handler, studio, request)


def encode_response(answer: Any) -> bytes:
    """Return an answer as JSON; a Decimal is text, so no cent is lost."""
    return msgspec.json.encode(answer)


@functools.cache
def _handler_types(handler: Handler) -> tuple[type[Any], Any]:
    hints = get_type_hints(handler)
    response_type = hints.pop("return")
    (request_type,) = (hint for hint in hints.values() if hint is not Studio)
    return request_type, response_type


def _malformed(endpoint: Endpoint, error: Exception) -> RequestRefused:
    return RequestRefused(
        "request-malformed",
        "The question is not one that can be read",
        f"{endpoint.name}: {error}",
        "Look at the names and types that `tavola api` lists.",
    )
