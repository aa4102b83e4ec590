"""Remote: what every backend over HTTP knows, whichever way it waits: how an operation is asked and what may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from tavola.backends.configuration import Address, Configuration
from tavola.backends.errors import PastUnavailable
from tavola.backends.signatures import Signer
from tavola.backends.stages import Stage
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.protocol.arns import Scope
from tavola.protocol.faults import UnknownOperationFault
from tavola.protocol.instants import AS_OF_HEADER, instant_text
from tavola.protocol.operations import OPERATIONS, Operation, Service

_READS = ("BatchGet", "Describe", "Get", "List", "Query", "Scan", "Search", "TransactGet")

_decode = msgspec.json.Decoder(dict[str, Any]).decode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asking(Generic[T]):
    """How one operation is asked."""

    url: str
    target: bytes
    repeatable: bool
    signer: Signer
    transport: T


class Remote(Generic[T]):
    """The part of a backend over HTTP that neither sends nor waits; `T` is its kind of transport."""

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
        self.askings: dict[str, Asking[T]] = {}
        self.lines: dict[Service, tuple[str, Signer, T]] = {}

    def known(self, name: str) -> Operation:
        """Return an operation by its name; refuse one that nobody knows, or that AWS does not."""
        operation = OPERATIONS.get(name)
        if operation is None:
            raise UnknownOperationFault()
        if operation.service == "tavola" and self.configuration.endpoint is None:
            raise PastUnavailable("AWS")
        return operation

    def asking(self, operation: Operation) -> Asking[T] | None:
        """Return how an operation is asked, once the line to its service is there."""
        line = self.lines.get(operation.service)
        if line is None:
            return None
        url, signer, transport = line
        asking = Asking(url, operation.target.encode(), is_read(operation.name), signer, transport)
        self.askings[operation.name] = asking
        return asking

    def signer(self, address: Address) -> Signer:
        """Return what signs for an endpoint."""
        moment = {} if self.as_of_us is None else {AS_OF_HEADER: instant_text(self.as_of_us)}
        return Signer(address.header, self.configuration.region, moment, path=address.path, clock=self.clock)

    def staged(self, stage: Stage, name: str, body: bytes) -> dict[str, Any]:
        """Return the answer of a mock: inside of one nothing leaves the process."""
        self.known(name)
        if self.as_of_us is not None:
            raise PastUnavailable("What boto3 is mocked with")
        scope = Scope(self.configuration.account or stage.scope.account, self.configuration.region)
        return _decode(stage.execute(name, body, scope))

    def check_past(self) -> str:
        """Return the endpoint that may keep a past; AWS keeps none that can be read."""
        if self.configuration.endpoint is None:
            raise PastUnavailable("AWS")
        return self.configuration.endpoint


def is_read(operation: str) -> bool:
    """Tell whether an operation changes nothing, so that to ask twice is to ask once."""
    return operation.startswith(_READS)
