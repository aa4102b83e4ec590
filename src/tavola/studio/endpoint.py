"""One typed endpoint of the API: a function and how it is called.

Request and response types are read from the function's annotations. They validate requests and generate the pages'
TypeScript types. HTTP is in `app`; here a request is data, and the command line (`tavola api`) calls the same endpoints.

What an endpoint may use is decided here and nowhere else. A read-only studio refuses writes (`Endpoint.is_write`), and an endpoint
that is not declared as a write gets a connection that passes reads only. In a studio whose users sign in, an endpoint gets the
engine, the monitor, the access log and the directory only if it names the permission for them (`Endpoint.permission`) and the
caller has it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

import msgspec
import msgspec.inspect

from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio

Method = Literal["GET", "POST"]
SEE_REQUESTS = "cloudtrail:LookupEvents"
"""The permission for what shows the requests of all callers of an account."""
SEE_POLICIES = "iam:SimulatePrincipalPolicy"
"""The permission for what shows the users, roles and policies of an account."""
Handler = Callable[[Studio, Any], Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint: `GET` with query parameters, or `POST` with a JSON body."""

    method: Method
    path: str
    handler: Handler
    is_write: bool = False  # changes tables or items
    cancel_on_disconnect: bool = False  # for long computations
    permission: str = (
        ""  # that a signed-in caller needs, because the response shows more than the caller's own requests
    )
    raw: bool = False  # the handler returns a Starlette response: a download or a stream
    body_bytes_max: int = 4 * 1024 * 1024

    @property
    def name(self) -> str:
        """The name used by the pages and the command line: `GET /tables`."""
        return f"{self.method} {self.path}"

    @property
    def request_type(self) -> type[Any]:
        """The type of the request."""
        return _handler_types(self.handler)[0]

    @property
    def response_type(self) -> Any:
        """The type of the response."""
        return _handler_types(self.handler)[1]

    @property
    def parameters(self) -> tuple[tuple[str, bool, str], ...]:
        """The fields of a request: the name, whether it is required, and the type as declared."""
        types = {
            name: str(declared)
            for base in reversed(self.request_type.__mro__)
            for name, declared in inspect.get_annotations(base).items()
        }
        info = msgspec.inspect.type_info(self.request_type)
        assert isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType)
        return tuple((field.name, field.required, types[field.name]) for field in info.fields)

    def parse_parameters(self, parameters: Mapping[str, str]) -> Any:
        """Return the request in the parameters of a URL; numbers and booleans are parsed from text."""
        try:
            return msgspec.convert(dict(parameters), self.request_type, strict=False)
        except msgspec.ValidationError as error:
            raise _parse_error(self, error) from error

    def parse_body(self, body: bytes) -> Any:
        """Return the request in a JSON body; an empty body is a request with default values."""
        try:
            return msgspec.json.decode(body or b"{}", type=self.request_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _parse_error(self, error) from error

    async def call(self, studio: Studio, request: Any) -> Any:
        """Return the handler's response to a request: a `request_type`, a JSON body, or the parameters of a URL.

        Permission is checked before the request is parsed. A handler that is not a coroutine function runs in a thread.
        """
        if not self.is_write:
            studio = studio.reads_only
        elif studio.read_only:
            raise RequestRefused(
                "read-only",
                "This studio is read-only",
                f"{self.name} changes tables or items, and the studio was started read-only.",
                "Restart it without --read-only (for AWS, with --live) to make changes.",
                status=403,
            )
        studio = studio.permit(self.permission)
        if isinstance(request, bytes):
            request = self.parse_body(request)
        elif isinstance(request, Mapping):
            request = self.parse_parameters(request)
        if inspect.iscoroutinefunction(self.handler):
            return await self.handler(studio, request)
        return await studio.run_in_thread(self.handler, studio, request)


def encode_response(response: Any) -> bytes:
    """Return a response as JSON; a Decimal becomes text, so it stays exact."""
    return msgspec.json.encode(response)


@functools.cache
def _handler_types(handler: Handler) -> tuple[type[Any], Any]:
    hints = get_type_hints(handler)
    response_type = hints.pop("return")
    (request_type,) = (hint for hint in hints.values() if hint is not Studio)
    return request_type, response_type


def _parse_error(endpoint: Endpoint, error: Exception) -> RequestRefused:
    return RequestRefused(
        "request-malformed",
        "Invalid request",
        f"{endpoint.name}: {error}",
        "Check names and types: `tavola api` lists them.",
    )
