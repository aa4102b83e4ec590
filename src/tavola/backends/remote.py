"""Remote: what the blocking and the asynchronous HTTP backend share: the route of each operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tavola.backends.configuration import Address, Configuration
from tavola.backends.mock_state import MockTarget
from tavola.backends.signatures import Signer
from tavola.client.backend import AsOfUnsupported, decode_response
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.protocol.arns import Scope
from tavola.protocol.faults import UnknownOperationFault
from tavola.protocol.instants import AS_OF_HEADER, instant_text
from tavola.protocol.operations import OPERATIONS, Operation, Service

_READS = ("BatchGet", "Describe", "Get", "List", "Query", "Scan", "Search", "TransactGet")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperationRoute(Generic[T]):
    """How one operation is sent."""

    url: str
    target: bytes
    repeatable: bool
    signer: Signer
    transport: T


class Remote(Generic[T]):
    """The part of an HTTP backend that does no I/O; `T` is its kind of transport."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout_s: float,
        as_of_us: int | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.configuration = configuration
        self.timeout_s = timeout_s
        self.as_of_us = as_of_us
        self.clock = clock
        self.routes: dict[str, OperationRoute[T]] = {}
        self.services: dict[Service, tuple[str, Signer, T]] = {}

    def find_operation(self, name: str) -> Operation:
        """Return an operation by its name; refuse unknown ones, and those of Tavola on AWS."""
        operation = OPERATIONS.get(name)
        if operation is None:
            raise UnknownOperationFault()
        if operation.service == "tavola" and self.configuration.endpoint is None:
            raise AsOfUnsupported("AWS")
        return operation

    def route(self, operation: Operation) -> OperationRoute[T] | None:
        """Return the route of an operation, None until its service is resolved."""
        service = self.services.get(operation.service)
        if service is None:
            return None
        url, signer, transport = service
        route = OperationRoute(url, operation.target.encode(), is_read(operation.name), signer, transport)
        self.routes[operation.name] = route
        return route

    def signer(self, address: Address) -> Signer:
        """Return the signer for an endpoint."""
        headers = {} if self.as_of_us is None else {AS_OF_HEADER: instant_text(self.as_of_us)}
        return Signer(address.header, self.configuration.region, headers, path=address.path, clock=self.clock)

    def call_mock(self, mock: MockTarget, name: str, body: bytes) -> dict[str, Any]:
        """Return the response of a mock: inside one, nothing is sent."""
        self.find_operation(name)
        if self.as_of_us is not None:
            raise AsOfUnsupported("A mock")
        scope = Scope(self.configuration.account or mock.scope.account, self.configuration.region)
        return decode_response(mock.execute(name, body, scope))

    def check_as_of_support(self) -> str:
        """Return the endpoint, which may support reads as of a time; AWS does not."""
        if self.configuration.endpoint is None:
            raise AsOfUnsupported("AWS")
        return self.configuration.endpoint


def is_read(operation: str) -> bool:
    """Return whether an operation only reads, so it may be repeated."""
    return operation.startswith(_READS)
