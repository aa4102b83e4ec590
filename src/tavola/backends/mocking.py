"""Mocking: requests of boto3 and botocore answered in this process, without sockets.

While a mock is active, two methods of botocore are wrapped, and handlers are registered on the clients that make calls:

- `Endpoint.make_request`, which every call of every client passes through. As a method of the class, it also affects clients
  that were created before; handlers registered for new sessions would miss those. It marks the call and, the first time,
  registers three handlers on the client's own events: `choose-signer` and `before-sign`, because a request that is not sent
  needs no signature and hence no credentials; and `before-send`, botocore's hook to respond without sending. They are
  registered first, so another active mocking library handles the other services.
- `Session.create_client`, so that a DynamoDB client can be created without a region or credentials. Those that are passed or
  set in the environment are used; a profile, role or login is not resolved, because that may use the network. Neither the
  session nor the environment is changed.

The account and region that a signature would contain are read from the signer. After the last mock, the handlers are
unregistered and the methods restored. Mocks apply to the process and not to a thread, so worker threads are included; the
innermost mock responds.
"""

from __future__ import annotations

import base64
import inspect
import io
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import formatdate
from functools import wraps
from threading import RLock
from typing import Any
from weakref import WeakSet

from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.credentials import Credentials, EnvProvider
from botocore.endpoint import Endpoint
from botocore.session import Session

from tavola.backends.errors import MockRefused
from tavola.backends.mock_state import ACTIVE_MOCKS, MockTarget, current_mock
from tavola.protocol.arns import Scope, account_of_key
from tavola.protocol.faults import Fault

__all__ = ["MockTarget", "configured_region", "current_mock", "enter", "leave"]

_EVENTS = {"dynamodb": "dynamodb", "dynamodbstreams": "dynamodb-streams"}  # a service to its name in events


@dataclass(slots=True)
class _MockedCall:
    """A request in progress: the mock that responds, and its scope."""

    mock: MockTarget
    scope: Scope


_call: ContextVar[_MockedCall | None] = ContextVar("_call", default=None)


class _Interception:
    """The active mocks of this process, and the changes to botocore for them."""

    def __init__(self) -> None:
        self.mocks = ACTIVE_MOCKS
        self._lock = RLock()
        self._calls = 0  # requests in progress; their handlers stay registered
        self._registered: WeakSet[Any] = WeakSet()
        self._originals: tuple[Any, Any] | None = None

    def enter(self, mock: MockTarget) -> None:
        with self._lock:
            if self._originals is None:
                self._originals = Endpoint.make_request, Session.create_client
                Endpoint.make_request = self._mark_calls(Endpoint.make_request)
                Session.create_client = _fill_defaults(Session.create_client)
            self.mocks.append(mock)

    def leave(self, mock: MockTarget) -> None:
        with self._lock:
            self.mocks.remove(mock)
            self._restore()

    def _restore(self) -> None:
        """Restore botocore, once no mock is active and no request in progress."""
        if self.mocks or self._calls or self._originals is None:
            return
        Endpoint.make_request, Session.create_client = self._originals
        self._originals = None
        for events in tuple(self._registered):
            for name, handler in _HANDLERS.items():
                for service in _EVENTS.values():
                    events.unregister(f"{name}.{service}", handler)
        self._registered.clear()

    def _mark_calls(self, make_request: Callable[..., Any]) -> Callable[..., Any]:
        """Return `Endpoint.make_request` that marks DynamoDB calls with the mock that responds to them."""

        @wraps(make_request)
        def make_marked_request(endpoint: Any, operation_model: Any, request_dict: Any) -> Any:
            service = _EVENTS.get(operation_model.service_model.service_name)
            with self._lock:
                if service is None or not self.mocks:
                    mock = None
                else:
                    mock = self.mocks[-1]
                    self._register(endpoint, service)
                    self._calls += 1
            if mock is None:
                return make_request(endpoint, operation_model, request_dict)
            token = _call.set(_MockedCall(mock, mock.scope))
            try:
                return make_request(endpoint, operation_model, request_dict)
            finally:
                _call.reset(token)
                with self._lock:
                    self._calls -= 1
                    self._restore()

        return make_marked_request

    def _register(self, endpoint: Any, service: str) -> None:
        """Register the handlers on the events of a client, once."""
        events = endpoint._event_emitter
        if events in self._registered:
            return
        if inspect.iscoroutinefunction(endpoint._send):
            raise MockRefused(
                "mock() does not support asynchronous clients such as aiobotocore's; "
                "use the endpoint of a server instead: `tavola serve`, or the fixture tavola_endpoint"
            )
        for name, handler in _HANDLERS.items():
            events.register_first(f"{name}.{service}", handler)
        self._registered.add(events)


_interception = _Interception()


def enter(mock: MockTarget) -> None:
    """Activate a mock, as the innermost one."""
    _interception.enter(mock)


def leave(mock: MockTarget) -> None:
    """Deactivate a mock; after the last one, botocore is restored."""
    _interception.leave(mock)


def _choose_no_signer(**_: Any) -> Any:
    return None if _call.get() is None else UNSIGNED


def _set_scope(request: Any, request_signer: Any, **_: Any) -> None:
    """Set the account and region that a signature would contain."""
    call = _call.get()
    if call is not None:
        signing = request.context.get("signing") or {}
        region = signing.get("region") or request_signer.region_name or call.scope.region
        credentials: Any = getattr(request_signer, "_credentials", None)
        # Other kinds of credentials may use the network to get their key.
        key = credentials.access_key if type(credentials) is Credentials else ""
        call.scope = Scope(account_of_key(key) or call.mock.scope.account, region)


def _respond(request: Any, **_: Any) -> AWSResponse | None:
    """Return the mock's response to a request that would be sent now."""
    call = _call.get()
    if call is None:
        return None
    mock = call.mock
    target = request.headers["X-Amz-Target"]
    operation = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
    body = request.body or b"{}"
    status = 200
    try:
        response = mock.execute(operation, body.encode() if isinstance(body, str) else body, call.scope)
    except Fault as fault:
        status, response = fault.status, fault.body()
    headers = {
        "Server": "Server",
        "Date": formatdate(mock.clock.now(), usegmt=True),
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": str(len(response)),
        "Connection": "keep-alive",
        "x-amzn-RequestId": base64.b32hexencode(mock.entropy.bytes(32))[:52].decode(),
        "x-amz-crc32": str(zlib.crc32(response)),
    }
    return AWSResponse(request.url, status, headers, _Body(response))


_HANDLERS: dict[str, Callable[..., Any]] = {
    "choose-signer": _choose_no_signer,
    "before-sign": _set_scope,
    "before-send": _respond,
}


class _Body(io.BytesIO):
    """An response's bytes with the one method that botocore asks of urllib3's response."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        """Yield the bytes."""
        yield self.read()


def configured_region() -> str | None:
    """Return the default region of clients, from the environment or the profile."""
    region: str | None = Session().get_config_variable("region")
    return region


def _fill_defaults(create_client: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Session.create_client` that adds a region and credentials for DynamoDB if there are none."""
    signature = inspect.signature(create_client)

    @wraps(create_client)
    def create_filled_client(session: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(session, *args, **kwargs)
        arguments = bound.arguments
        mock = current_mock()
        if mock is None or arguments["service_name"] not in _EVENTS:
            return create_client(session, *args, **kwargs)
        config = arguments.get("config")
        if arguments.get("region_name") is None and getattr(config, "region_name", None) is None:
            arguments["region_name"] = (
                session.instance_variables().get("region")
                or mock.region
                or session.get_config_variable("region")
                or mock.scope.region
            )
        if (
            arguments.get("aws_access_key_id") is None
            and arguments.get("aws_secret_access_key") is None
            and type(session._credentials) is not Credentials
        ):
            credentials = EnvProvider().load() or Credentials(mock.scope.account, "tavola")
            arguments["aws_access_key_id"] = credentials.access_key
            arguments["aws_secret_access_key"] = credentials.secret_key
        return create_client(*bound.args, **bound.kwargs)

    return create_filled_client
