"""OperationCall: one request being executed: how operations find tables, compile expressions, access items and respond.

Operations read and write items through the methods of their call. That is where accesses are recorded, and where
`EmulatedCall` puts throttling, conflicts and stale reads between an operation and the data; a plain call has none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec

from tavola.clock import Clock
from tavola.engine.capacity import CapacityUsage, index_entry_units, index_units_of
from tavola.engine.catalog import Catalog, StoredIndex, StoredTable
from tavola.engine.emulation import Emulation
from tavola.engine.isolation import ClientTokens, TransactionReceipt
from tavola.engine.jobs import JobStore
from tavola.engine.reads import ReadPage, ReadRange
from tavola.engine.request_context import ItemAccess, RequestContext
from tavola.engine.signed_tokens import TokenSigner
from tavola.engine.snapshots import read_only_fault, table_at
from tavola.engine.storage import ChangeLog, ChangeLogRow, ItemRow, Store
from tavola.engine.store_time import StoreTime
from tavola.engine.streams import Streams, StreamShard, read_shard
from tavola.engine.transfer import Buckets
from tavola.engine.writes import CurrentItem, ItemWrite, apply_write, condition_failure
from tavola.entropy import Entropy
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import KeyCondition
from tavola.expressions.legacy import (
    legacy_attributes,
    legacy_expected,
    legacy_filter,
    legacy_key_conditions,
    legacy_updates,
)
from tavola.expressions.plans import (
    check_placeholder_keys,
    check_placeholders,
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)
from tavola.expressions.projections import CompiledProjection, project
from tavola.expressions.updates import CompiledUpdate
from tavola.limits import EXPRESSION_SUBSTITUTION_BYTES_MAX
from tavola.protocol.arns import ResourceArn, Scope, scope_of, table_arn, table_name_of
from tavola.protocol.batches import BatchGetItemRequest
from tavola.protocol.faults import AccessDeniedFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.message_style import MessageStyle, add_error_count, layer_of
from tavola.protocol.resources import TableFacts
from tavola.values import (
    LARGE_ITEM_BYTES,
    AdmittedMap,
    Item,
    Steps,
    ValueRefused,
    admit_item,
    decode_item,
    decode_item_in_steps,
    encode_item,
    read_units,
    release_in_steps,
    write_units,
)

encode = msgspec.json.Encoder().encode
EMPTY = b"{}"
ITERATOR = "shard-iterator"
"""The purpose that shard iterator tokens are signed for."""

BatchKey = tuple[Item, bytes]  # a key as requested, and encoded
BatchWrite = tuple[str, ItemWrite, Item]  # the table as requested, the write, and its item or key
PreparedT = TypeVar("PreparedT", bound="TransactionMember")
_Plan = TypeVar("_Plan")
_NOT_SCALAR = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
_NAMES_MAX = 10_000  # our own limit: AWS limits only the body, and this work would block other requests
_UNBOUND = Bindings({}, {})
_tuple = tuple.__new__  # builds a named tuple without its slower constructor


class TransactionMember(Protocol):
    """A write or check of a transaction; `write` is None for a check."""

    current: CurrentItem
    write: ItemWrite | None


@dataclass(slots=True)
class Services:
    """The parts of the engine that operations use."""

    catalog: Catalog
    tokens: ClientTokens
    clock: Clock  # for what is shown, and for the expiry of items
    time: StoreTime  # for what is decided
    entropy: Entropy
    wording: MessageStyle
    table_delay_s: float
    begin: Callable[[], None]  # opens a transaction unless one is open
    begin_maintenance: Callable[[], None]  # the same for the engine's own bookkeeping, in read-only calls too
    store: Store
    streams: Streams
    token_signer: TokenSigner
    jobs: JobStore
    emulation: Emulation  # simulated throttling, conflicts and delays; used by calls while it is active
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
    context: RequestContext | None = None

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the facts about a table that a guard may use."""
        return self.services.facts(self.scope, name_or_arn)

    def iterator_stream(self, iterator: str) -> str | None:
        """Return the ARN of the stream that a shard iterator of this caller reads."""
        opened = self.services.token_signer.open(ITERATOR, self.scope, iterator)
        return None if opened is None else opened["stream"]

    def table(self, name_or_arn: str) -> StoredTable:
        """Return the active table with a name or ARN, as of a past time if the request asks for one."""
        catalog = self.services.catalog
        table = catalog.find(self.scope, name_or_arn)
        if table is None and name_or_arn.startswith("arn:"):
            table = catalog.find(self.check_scope(name_or_arn), table_name_of(name_or_arn))
        if table is None or not catalog.is_active(table):
            raise ResourceNotFoundFault()
        if self.context is not None and self.context.as_of_us is not None:
            return self._table_as_of(table, self.context.as_of_us)
        return table

    def _table_as_of(self, table: StoredTable, at_us: int) -> StoredTable:
        time, catalog = self.services.time, self.services.catalog
        past = table_at(table, at_us, time, self.services.begin_maintenance, catalog.history)
        catalog.as_of_read_at_s[table.definition.number] = time.elapsed_s()
        # Later writes get later times even if the clock is set back, so this read stays repeatable.
        time.reach(at_us + 1)
        return past

    def make_read_only(self) -> None:
        """Refuse every write from now on: the request reads a past state."""
        self.services = replace(self.services, begin=_refuse_write)

    def check_scope(self, name_or_arn: str) -> Scope:
        """Return the scope that an ARN names; refuse another region, and another account unless a guard allowed it.

        With a guard, access was decided before the operation runs, and tables of other accounts are possible.
        """
        scope = scope_of(name_or_arn)
        if scope is None or scope == self.scope:
            return self.scope
        self._check_other_scope(scope, table_arn(scope, table_name_of(name_or_arn)))
        return scope

    def check_own_resource(self, arn: ResourceArn) -> None:
        """Refuse a stream or a backup of another account or region."""
        if arn.scope != self.scope:
            self._check_other_scope(arn.scope, arn.text)

    @property
    def is_guarded(self) -> bool:
        """Whether a guard has decided access already, so that resources of other accounts may be used."""
        return self.context is not None and self.context.guard is not None

    def _check_other_scope(self, other: Scope, arn: str) -> None:
        if other.region != self.scope.region and other.account == self.scope.account:
            raise ResourceNotFoundFault()
        if not self.is_guarded:
            caller = f"arn:aws:iam::{self.scope.account}:root"
            raise AccessDeniedFault(
                f"User: {caller} is not authorized to perform: dynamodb:{self.operation} on resource: {arn}"
            )
        if other.region != self.scope.region:
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
            raise self.value_fault(refused, describe) from refused

    def value_fault(
        self, refused: ValueRefused, describe: Callable[[ValueRefused], str] | None = None
    ) -> ValidationFault:
        """Return the fault for a refused value; `describe` gives the message of the classic validation layer."""
        if refused.bare and describe is None:
            return ValidationFault(refused.classic)
        modern = layer_of(self.operation, self.services.wording) == "modern"
        if modern or describe is None:
            return self.validation_fault(refused.modern if modern else refused.classic)
        return self.validation_fault(describe(refused))

    def admit_values(self, values: Mapping[str, dict[str, Any]]) -> None:
        """Check the values of expression placeholders and their total size."""
        total = admit_item(values) if type(values) is AdmittedMap else 0
        for name, value in () if total else values.items():
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

    # Access to items. `EmulatedCall` overrides the methods from here on.

    def read_item(
        self,
        table: StoredTable,
        key: bytes,
        *,
        consistent: bool | None,
    ) -> ItemRow | None:
        """Return the row of an item; None if it does not exist."""
        row = table.rows.get(key)
        if self.context is not None and self.context.accesses is not None:
            units = row_units(row, consistent)
            self.context.accesses.append(_tuple(ItemAccess, (table.arn, None, key, units, 0.0, None)))
        return row

    def table_view(
        self, table: StoredTable, index: StoredIndex | None, consistent: bool | None
    ) -> StoredTable:
        """Return the state of a table that a query, a scan or a batch reads: the current one."""
        return table

    def currency_check(self, table: StoredTable, index: StoredIndex | None) -> Callable[[], bool]:
        """Return a function that says whether a table and an index of it still exist; other changes do not matter."""
        find, number = self.services.catalog.find, table.definition.number

        def is_current() -> bool:
            now = find(table.scope, table.name)
            if now is table:
                return True
            return (
                now is not None
                and now.definition.number == number
                and (index is None or any(other.column == index.column for other in now.indexes))
            )

        return is_current

    def read_rows(self, addresses: Sequence[tuple[StoredTable, bytes]]) -> list[ItemRow | None]:
        """Return the rows that a transaction reads."""
        return [table.rows.get(key) for table, key in addresses]

    def read_current(self, table: StoredTable, key: bytes) -> CurrentItem:
        """Return the item that a single write replaces."""
        return CurrentItem(table, key, table.rows.find(key))

    def check_condition(
        self, current: CurrentItem, condition: CompiledCondition | None, bindings: Bindings, show: str | None
    ) -> None:
        """Raise ConditionalCheckFailedFault unless the item that a single write replaces meets a condition."""
        if condition is not None and not current.meets(condition, bindings.values):
            raise condition_failure(current, show)

    def commit_write(self, write: ItemWrite) -> None:
        """Carry out a prepared single write."""
        if self.context is not None:
            self.record_write(write)
        self.services.begin()
        apply_write(self.services.catalog, write)

    def prepare_transaction(
        self,
        addresses: Sequence[tuple[StoredTable, bytes] | None],
        prepare: Callable[[], Steps[list[PreparedT]]],
        token: str | None,
    ) -> Steps[list[PreparedT]]:
        """Return the writes of a transaction as `prepare` returns them, or raise its cancellation.

        `addresses` has the table and key of each action, None where the key is invalid.
        """
        return (yield from prepare())

    def find_receipt(self, token: str, digest: str) -> TransactionReceipt | None:
        """Return the receipt of an earlier transaction with this token; None if the token is new."""
        return self.services.tokens.find_receipt(self.scope, token, digest)

    def take_unprocessed_keys(
        self, request: BatchGetItemRequest, tables: dict[str, StoredTable], keys: dict[str, list[BatchKey]]
    ) -> dict[str, list[Item]]:
        """Remove from `keys` those that a batch read leaves unprocessed, and return them by table: none."""
        return {}

    def take_unprocessed_writes(self, writes: list[BatchWrite]) -> list[BatchWrite]:
        """Remove from a batch the writes that it leaves unprocessed, and return them: none."""
        return []

    def read_shard(
        self, log: ChangeLog, shard: StreamShard, after: int, limit: int
    ) -> tuple[list[ChangeLogRow], int]:
        """Return up to `limit` changes of a shard after an id, and the id to continue after."""
        return read_shard(log, shard, after, limit)

    def position_before(self, log: ChangeLog, at_us: int) -> int:
        """Return the log id after which a stream reader that starts at a time reads."""
        return log.id_at(at_us - 1)

    def latest_position(self, log: ChangeLog) -> int:
        """Return the log id after which a stream reader that starts now reads."""
        return log.span()[1]

    # Recorded accesses, for the access log and observers.

    @property
    def records_accesses(self) -> bool:
        """Whether the units that the call consumes are recorded or charged."""
        return self.context is not None and self.context.accesses is not None

    def record_access(
        self,
        table: StoredTable,
        index: str | None,
        key: bytes | None,
        *,
        reads: float = 0.0,
        writes: float = 0.0,
    ) -> None:
        """Record consumed units, if the request is observed."""
        if self.context is not None and self.context.accesses is not None:
            self.context.accesses.append(ItemAccess(table.arn, index, key, reads, writes))

    def page_units(self, span: ReadRange, page: ReadPage, *, consistent: bool) -> float:
        """Return the units of reading a page from its table or index."""
        return read_units(page.bytes, consistent=consistent)

    def record_page(self, span: ReadRange, usage: CapacityUsage) -> None:
        """Record the units that a page consumed, under its partition; a scan has none."""
        key = span.partition
        if usage.reads:
            self.record_access(span.table, None, key if span.index is None else None, reads=usage.reads)
        for name, units in usage.index_reads.items():
            self.record_access(span.table, name, key, reads=units)

    def record_write(self, write: ItemWrite, factor: float = 1.0) -> None:
        """Record the units that a write consumes on the table and each index, if the request is observed."""
        if self.context is None or self.context.accesses is None:
            return
        add = self.context.accesses.append
        arn, key = write.table.arn, write.current.key
        units = factor * write_units(write.current.size, write.size)
        add(_tuple(ItemAccess, (arn, None, key, 0.0, units, None)))
        if not write.table.indexes:
            return
        if not self.context.entries:
            for name, units in index_units_of(write).items():
                add(_tuple(ItemAccess, (arn, name, key, 0.0, units, None)))
            return
        for name, units, entry in index_entry_units(write):
            add(_tuple(ItemAccess, (arn, name, key, 0.0, units, entry)))


def _refuse_write() -> NoReturn:
    raise read_only_fault()


def project_row(data: bytes, projection: CompiledProjection | None) -> bytes:
    """Return a stored item, reduced to a projection if there is one."""
    return data if projection is None else encode_item(project(projection, decode_item(data)))


def project_row_in_steps(data: bytes, projection: CompiledProjection | None) -> Steps[bytes]:
    """Return a stored item, reduced to a projection if there is one; pauses while it decodes a large item."""
    if projection is None:
        return data
    if len(data) < LARGE_ITEM_BYTES:
        return project_row(data, projection)
    item = yield from decode_item_in_steps(data)
    part = encode_item(project(projection, item))
    yield from release_in_steps(item)
    return part


def row_units(row: ItemRow | None, consistent: bool | None) -> float:
    """Return the units of reading one item, or of finding none."""
    return read_units(0 if row is None else row[1], consistent=bool(consistent))


def capacity_mode(return_consumed_capacity: str | None) -> str | None:
    """Return which form of ConsumedCapacity a request asks for; None if it asks for none."""
    return None if return_consumed_capacity == "NONE" else return_consumed_capacity


# The expressions of a request, or the legacy parameters that they replaced, compiled to plans. Both forms become the
# same plans, so the operations need not know which one a request used.


def bind_placeholders(
    call: OperationCall, names: dict[str, str] | None, values: dict[str, dict[str, Any]] | None
) -> Bindings:
    """Return a request's placeholders with their values checked."""
    if names is None and values is None:
        return _UNBOUND
    try:
        check_placeholder_keys(names, values)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    if values:
        call.admit_values(values)
    return Bindings(names or {}, values or {})


def parse_condition(call: OperationCall, request: Any, bindings: Bindings) -> CompiledCondition | None:
    """Return the condition of a write, compiled from ConditionExpression or Expected."""
    try:
        if request.condition_expression is not None:
            return compile_condition(request.condition_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    expected = getattr(request, "expected", None)
    if expected is None:
        return None
    return _compile_legacy(
        lambda: legacy_expected(_legacy_members(call, expected), request.conditional_operator)
    )


def parse_update(call: OperationCall, request: Any, bindings: Bindings) -> CompiledUpdate | None:
    """Return the update of an UpdateItem, from UpdateExpression or AttributeUpdates."""
    try:
        if request.update_expression is not None:
            return compile_update(request.update_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    updates = getattr(request, "attribute_updates", None)
    return (
        None if updates is None else _compile_legacy(lambda: legacy_updates(_legacy_members(call, updates)))
    )


def parse_projection(call: OperationCall, request: Any, bindings: Bindings) -> CompiledProjection | None:
    """Return the projection of a read, from ProjectionExpression or AttributesToGet."""
    try:
        if request.projection_expression is not None:
            return compile_projection(request.projection_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    attributes = getattr(request, "attributes_to_get", None)
    if attributes is not None and len(attributes) > _NAMES_MAX:
        raise ValidationFault(f"AttributesToGet has {len(attributes)} attributes; {_NAMES_MAX} are allowed")
    return None if attributes is None else _compile_legacy(lambda: legacy_attributes(attributes))


def parse_filter(
    call: OperationCall, request: Any, legacy: Any, bindings: Bindings
) -> CompiledCondition | None:
    """Return the filter of a query or scan, from FilterExpression or the older filter."""
    try:
        if request.filter_expression is not None:
            return compile_condition(request.filter_expression, bindings, field="FilterExpression")
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    if legacy is None:
        return None
    return _compile_legacy(lambda: legacy_filter(_legacy_members(call, legacy), request.conditional_operator))


def parse_key_condition(call: OperationCall, request: Any, bindings: Bindings) -> KeyCondition:
    """Return the key condition of a query, from KeyConditionExpression or KeyConditions."""
    try:
        if request.key_condition_expression is not None:
            return compile_key_condition(request.key_condition_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    return _compile_legacy(lambda: legacy_key_conditions(_legacy_members(call, request.key_conditions or {})))


def check_placeholders_used(call: OperationCall, bindings: Bindings, plans: Iterable[Any]) -> None:
    """Refuse placeholders that no expression uses (AWS does)."""
    if bindings is _UNBOUND:
        return
    try:
        check_placeholders(bindings, [plan for plan in plans if plan is not None])
    except ExpressionError as error:
        raise call.expression_fault(error) from error


def check_scalar_keys(
    table: StoredTable, *plans: CompiledUpdate | CompiledCondition | CompiledProjection | None
) -> None:
    """Refuse a path into a key attribute of the table or of an index."""
    for plan in plans:
        if plan is None or not plan.nested:
            continue
        for name in table.schema.names:
            if name in plan.nested:
                raise ValidationFault(f"{_NOT_SCALAR}Key: {name}")
        for index in table.indexes:
            for name in index.schema.names:
                if name in plan.nested:
                    raise ValidationFault(f"{_NOT_SCALAR}IndexKey: {name}")


def _compile_legacy(compile_: Callable[[], _Plan]) -> _Plan:
    """Compile a legacy parameter; its errors have no `1 validation error detected` prefix."""
    try:
        return compile_()
    except ExpressionError as error:
        raise ValidationFault(str(error)) from error


def _legacy_members(call: OperationCall, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a legacy parameter with AWS's member names and its values checked."""
    raw: dict[str, Any] = msgspec.to_builtins(conditions)
    for condition in raw.values():
        if condition.get("Value") is not None:
            call.admit({"Value": condition["Value"]})
        for value in condition.get("AttributeValueList") or ():
            call.admit({"Value": value})
    return raw


# Response bodies. Items are inserted as the bytes they are stored in; only the members around them are encoded.


def add_raw_member(body: bytes, name: str, content: bytes) -> bytes:
    """Return a JSON object with one more member, whose value is already encoded."""
    start = b'{"' if body == EMPTY else body[:-1] + b',"'
    return b"".join((start, name.encode(), b'":', content, b"}"))


def add_members(body: bytes, members: dict[str, Any]) -> bytes:
    """Return a JSON object with more members, which are encoded."""
    if not members:
        return body
    if body == EMPTY:
        return encode(members)
    return b"".join((body[:-1], b",", encode(members)[1:]))


def render_list(name: str, items: list[bytes], members: dict[str, Any]) -> bytes:
    """Return a JSON object with a list of encoded items and further members; copies a large body once."""
    head = b'{"' + name.encode() + b'":['
    tail = b"]," + encode(members)[1:] if members else b"]}"
    if not items:
        return head + tail
    if len(items) == 1:
        return b"".join((head, items[0], tail))
    items[0] = head + items[0]
    items[-1] = items[-1] + tail
    return b",".join(items)
