"""The request being executed, and the engine services that operations use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tavola.clock import Clock
from tavola.engine.catalog import Catalog, Table
from tavola.engine.emulation import Emulation
from tavola.engine.isolation import ClientTokens
from tavola.engine.jobs import Jobs
from tavola.engine.request_context import ItemAccess, RequestContext
from tavola.engine.signed_tokens import TokenSigner
from tavola.engine.snapshots import read_only_fault, table_at
from tavola.engine.storage import Store
from tavola.engine.streams import Streams
from tavola.engine.transfer import Buckets
from tavola.entropy import Entropy
from tavola.expressions.errors import ExpressionError
from tavola.limits import EXPRESSION_SUBSTITUTION_BYTES_MAX
from tavola.protocol.arns import ResourceArn, Scope, scope_of, table_arn, table_name_of
from tavola.protocol.faults import AccessDeniedFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.message_style import MessageStyle, add_error_count, layer_of
from tavola.protocol.resources import TableFacts
from tavola.values import ValueRefused, admit_item

ITERATOR = "shard-iterator"
"""The purpose that shard iterator tokens are signed for."""


@dataclass(slots=True)
class Services:
    """The parts of the engine that operations use."""

    catalog: Catalog
    tokens: ClientTokens
    clock: Clock
    entropy: Entropy
    wording: MessageStyle
    table_delay_s: float
    begin: Callable[[], None]  # opens a transaction unless one is open
    begin_maintenance: Callable[
        [], None
    ]  # the same for the engine's own bookkeeping, allowed in read-only calls too
    store: Store
    streams: Streams
    token_signer: TokenSigner
    jobs: Jobs
    emulation: Emulation | None = None  # simulated throttling, conflicts and latency; None: off
    buckets: Buckets | None = None  # the folder used as S3; None: not configured

    def facts(self, scope: Scope, name_or_arn: str) -> TableFacts | None:
        """Return the facts about a table that an access decision may depend on; None if it does not exist."""
        table = self.catalog.find(scope, name_or_arn)
        if table is None and name_or_arn.startswith("arn:"):
            table = self.catalog.find(scope_of(name_or_arn) or scope, table_name_of(name_or_arn))
        if table is None:
            return None
        if table.facts is None:
            definition = table.definition
            table.facts = TableFacts(
                arn=table.arn,
                hash=definition.hash,
                range=definition.range,
                types=definition.types,
                indexes={index.name: (index.hash, index.range) for index in definition.indexes}
                | {vector.name: (vector.hash, ()) for vector in definition.vectors},
                tags=definition.tags,
                policy=None if definition.policy is None else definition.policy.text,
                stream_policies={
                    stream.arn: stream.policy
                    for stream in self.streams.of_table(definition.number)
                    if stream.policy is not None
                },
            )
        return table.facts


@dataclass(slots=True)
class OperationCall:
    """One request being executed: operation, body, account and region, caller."""

    operation: str
    body: bytes
    scope: Scope
    services: Services
    visit: RequestContext | None = None

    @property
    def records_accesses(self) -> bool:
        """Whether accessed keys are recorded, for an observer or for emulation."""
        return self.visit is not None or self.services.emulation is not None

    def record_access(
        self, table: Table, index: str | None, key: bytes | None, *, reads: float = 0.0, writes: float = 0.0
    ) -> None:
        """Record consumed units, if the request is observed."""
        if self.visit is not None and self.visit.touches is not None:
            self.visit.touches.append(ItemAccess(table.arn, index, key, reads, writes))

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the facts about a table that a guard may use."""
        return self.services.facts(self.scope, name_or_arn)

    def iterator_stream(self, iterator: str) -> str | None:
        """Return the ARN of the stream that a shard iterator of this caller reads."""
        opened = self.services.token_signer.open(ITERATOR, self.scope, iterator)
        return None if opened is None else opened["stream"]

    def table(self, name_or_arn: str) -> Table:
        """Return the active table with a name or ARN, as of a past time if the request asks for one."""
        catalog = self.services.catalog
        table = catalog.find(self.scope, name_or_arn)
        if table is None and name_or_arn.startswith("arn:"):
            table = catalog.find(self.check_scope(name_or_arn), table_name_of(name_or_arn))
        if table is None or not catalog.is_active(table):
            raise ResourceNotFoundFault()
        if self.visit is not None and self.visit.as_of_us is not None:
            return self._table_as_of(table, self.visit.as_of_us)
        return table

    def _table_as_of(self, table: Table, at_us: int) -> Table:
        now_s = self.services.clock.now()
        catalog = self.services.catalog
        past = table_at(table, at_us, now_s, self.services.begin_maintenance, catalog.history)
        catalog.as_of_read_at_s[table.definition.number] = now_s
        catalog.timeline.reach(
            at_us + 1
        )  # later writes get later times even if the clock goes back, so this read stays repeatable
        return past

    def make_read_only(self) -> None:
        """Refuse every write from now on: the request reads a past state."""
        self.services = replace(self.services, begin=_refuse_write)

    def check_scope(self, name_or_arn: str) -> Scope:
        """Return the scope that an ARN names; refuse another region, and another account unless a guard allowed it.

        With a guard, access was decided before the operation runs, and tables of other accounts are possible.
        """
        named = scope_of(name_or_arn)
        if named is None or named == self.scope:
            return self.scope
        self._check_other_scope(named, table_arn(named, table_name_of(name_or_arn)))
        return named

    def check_own_resource(self, arn: ResourceArn) -> None:
        """Refuse a stream or a backup of another account or region."""
        if arn.scope != self.scope:
            self._check_other_scope(arn.scope, arn.text)

    def _check_other_scope(self, named: Scope, arn: str) -> None:
        if named.region != self.scope.region and named.account == self.scope.account:
            raise ResourceNotFoundFault()
        if self.visit is None or self.visit.guard is None:
            caller = f"arn:aws:iam::{self.scope.account}:root"
            raise AccessDeniedFault(
                f"User: {caller} is not authorized to perform: dynamodb:{self.operation} on resource: {arn}"
            )
        if named.region != self.scope.region:
            raise ResourceNotFoundFault()

    def validation_fault(self, text: str) -> ValidationFault:
        """Return the fault for a request that is invalid regardless of any item."""
        return ValidationFault(add_error_count(self.operation, self.services.wording, text))

    def admit(self, attributes: dict[str, Any], describe: Callable[[ValueRefused], str] | None = None) -> int:
        """Check and normalize attribute values of a request in place; return their size in bytes.

        `describe` gives the message of the classic validation layer.
        """
        try:
            return admit_item(attributes)
        except ValueRefused as refused:
            if refused.bare and describe is None:
                raise ValidationFault(refused.classic) from refused
            modern = layer_of(self.operation, self.services.wording) == "modern"
            if modern or describe is None:
                raise self.validation_fault(refused.modern if modern else refused.classic) from refused
            raise self.validation_fault(describe(refused)) from refused

    def admit_values(self, values: Mapping[str, dict[str, Any]]) -> None:
        """Check the values of expression placeholders and their total size."""
        total = 0
        for name, value in values.items():
            total += self.admit(
                {name: value},
                lambda refused, name=name: (  # type: ignore[misc]  # binds the loop variable
                    f"ExpressionAttributeValues contains invalid value: {refused.classic} for key {name}"
                ),
            )
        if total > EXPRESSION_SUBSTITUTION_BYTES_MAX:
            raise self.validation_fault(
                "ExpressionAttributeValues have exceeded the maximum allowed size of "
                f"{EXPRESSION_SUBSTITUTION_BYTES_MAX} bytes"
            )

    def expression_fault(self, error: ExpressionError) -> ValidationFault:
        """Return an expression's error as this operation reports it."""
        return self.validation_fault(str(error))


def _refuse_write() -> NoReturn:
    raise read_only_fault()
