"""Mocking: requests of boto3 and botocore answered in this process, with no socket.

Two methods of botocore are wrapped while a mock is on, and handlers are hung on the clients that ask:

- `Endpoint.make_request`, which every call of every client goes through. Being a method of the class it is
  found by clients that were made long before; handlers that are registered for new sessions would miss those.
  It notes that the call is ours and, the first time, hangs three handlers on that client's own events:
  `choose-signer` and `before-sign`, because a request that goes nowhere needs no signature and hence no
  credentials; and `before-send`, botocore's own place to answer without sending. They are first in line,
  so another mocking library that is on at the same time answers the other services.
- `Session.create_client`, so that a client of DynamoDB can be made without a region or credentials. Those
  that are given or set in the environment are used (it is botocore that reads them); a profile, a role or
  a login is not looked up, because that may go over the network. Neither the session nor the environment is
  changed.

What a signature would have told, account and region, is read from the signer. When the last mock is over the
handlers are taken off and the methods put back. Mocks are of the process and not of a thread, so that worker
threads are inside too: the innermost answers.
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
from tavola.backends.stages import STAGES, Stage, current_stage
from tavola.protocol.accounts import account_of_key
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault

__all__ = ["Stage", "configured_region", "current_stage", "enter", "leave"]

_EVENTS = {"dynamodb": "dynamodb", "dynamodbstreams": "dynamodb-streams"}  # a service to its name in events


@dataclass(slots=True)
class _Call:
    """A request under way: who answers it, and whose tables it means."""

    stage: Stage
    scope: Scope


_call: ContextVar[_Call | None] = ContextVar("_call", default=None)


class _Interception:
    """What is on in this process: the stages, and what of botocore is changed for them."""

    def __init__(self) -> None:
        self.stages = STAGES
        self._lock = RLock()
        self._calls = 0  # requests under way; their handlers stay until they are answered
        self._listening: WeakSet[Any] = WeakSet()
        self._originals: tuple[Any, Any] | None = None

    def enter(self, stage: Stage) -> None:
        with self._lock:
            if self._originals is None:
                self._originals = Endpoint.make_request, Session.create_client
                Endpoint.make_request = self._noting(Endpoint.make_request)
                Session.create_client = _filling(Session.create_client)
            self.stages.append(stage)

    def leave(self, stage: Stage) -> None:
        with self._lock:
            self.stages.remove(stage)
            self._restore()

    def _restore(self) -> None:
        """Make botocore itself again, once no stage is on and no request under way."""
        if self.stages or self._calls or self._originals is None:
            return
        Endpoint.make_request, Session.create_client = self._originals
        self._originals = None
        for events in tuple(self._listening):
            for name, handler in _HANDLERS.items():
                for service in _EVENTS.values():
                    events.unregister(f"{name}.{service}", handler)
        self._listening.clear()

    def _noting(self, make_request: Callable[..., Any]) -> Callable[..., Any]:
        """Return `Endpoint.make_request` with calls of DynamoDB noted for the stage that answers them."""

        @wraps(make_request)
        def noted(endpoint: Any, operation_model: Any, request_dict: Any) -> Any:
            service = _EVENTS.get(operation_model.service_model.service_name)
            with self._lock:
                if service is None or not self.stages:
                    stage = None
                else:
                    stage = self.stages[-1]
                    self._listen(endpoint, service)
                    self._calls += 1
            if stage is None:
                return make_request(endpoint, operation_model, request_dict)
            token = _call.set(_Call(stage, stage.scope))
            try:
                return make_request(endpoint, operation_model, request_dict)
            finally:
                _call.reset(token)
                with self._lock:
                    self._calls -= 1
                    self._restore()

        return noted

    def _listen(self, endpoint: Any, service: str) -> None:
        """Hang the handlers on the events of a client, once."""
        events = endpoint._event_emitter
        if events in self._listening:
            return
        if inspect.iscoroutinefunction(endpoint._send):
            raise MockRefused(
                "mock() cannot answer asynchronous clients such as aiobotocore's; "
                "give them the endpoint of a server instead: `tavola serve`, or the fixture tavola_endpoint"
            )
        for name, handler in _HANDLERS.items():
            events.register_first(f"{name}.{service}", handler)
        self._listening.add(events)


_interception = _Interception()


def enter(stage: Stage) -> None:
    """Let a stage answer from now on, before those that answered so far."""
    _interception.enter(stage)


def leave(stage: Stage) -> None:
    """Take a stage away, the innermost or not; with the last one botocore is itself again."""
    _interception.leave(stage)


def _choose_no_signer(**_: Any) -> Any:
    return None if _call.get() is None else UNSIGNED


def _note_scope(request: Any, request_signer: Any, **_: Any) -> None:
    """Note the account and region that a signature would have named."""
    call = _call.get()
    if call is not None:
        signing = request.context.get("signing") or {}
        region = signing.get("region") or request_signer.region_name or call.scope.region
        credentials: Any = getattr(request_signer, "_credentials", None)
        # Other kinds of credentials may go over the network to tell their key.
        key = credentials.access_key if type(credentials) is Credentials else ""
        call.scope = Scope(account_of_key(key) or call.stage.scope.account, region)


def _answer(request: Any, **_: Any) -> AWSResponse | None:
    """Return the stage's answer to a request that is about to be sent."""
    call = _call.get()
    if call is None:
        return None
    stage = call.stage
    target = request.headers["X-Amz-Target"]
    operation = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
    body = request.body or b"{}"
    status = 200
    try:
        answer = stage.execute(operation, body.encode() if isinstance(body, str) else body, call.scope)
    except Fault as fault:
        status, answer = fault.status, fault.body()
    headers = {
        "Server": "Server",
        "Date": formatdate(stage.clock.now(), usegmt=True),
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": str(len(answer)),
        "Connection": "keep-alive",
        "x-amzn-RequestId": base64.b32hexencode(stage.entropy.bytes(32))[:52].decode(),
        "x-amz-crc32": str(zlib.crc32(answer)),
    }
    return AWSResponse(request.url, status, headers, _Body(answer))


_HANDLERS: dict[str, Callable[..., Any]] = {
    "choose-signer": _choose_no_signer,
    "before-sign": _note_scope,
    "before-send": _answer,
}


class _Body(io.BytesIO):
    """An answer's bytes with the one method that botocore asks of urllib3's response."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        """Give the bytes."""
        yield self.read()


def configured_region() -> str | None:
    """Return the region that a client gets which is given none: from the environment or the profile."""
    region: str | None = Session().get_config_variable("region")
    return region


def _filling(create_client: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Session.create_client` with a region and credentials for DynamoDB where there are none."""
    signature = inspect.signature(create_client)

    @wraps(create_client)
    def filled(session: Any, *args: Any, **kwargs: Any) -> Any:
        asked = signature.bind(session, *args, **kwargs)
        given = asked.arguments
        stage = current_stage()
        if stage is None or given["service_name"] not in _EVENTS:
            return create_client(session, *args, **kwargs)
        config = given.get("config")
        if given.get("region_name") is None and getattr(config, "region_name", None) is None:
            given["region_name"] = (
                session.instance_variables().get("region")
                or stage.region
                or session.get_config_variable("region")
                or stage.scope.region
            )
        if (
            given.get("aws_access_key_id") is None
            and given.get("aws_secret_access_key") is None
            and type(session._credentials) is not Credentials
        ):
            found = EnvProvider().load() or Credentials(stage.scope.account, "tavola")
            given["aws_access_key_id"] = found.access_key
            given["aws_secret_access_key"] = found.secret_key
        return create_client(*asked.args, **asked.kwargs)

    return filled
