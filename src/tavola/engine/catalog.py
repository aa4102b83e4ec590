"""Catalog: table and index definitions, their states and their counters.

A `TableDefinition` is frozen and stored; a `StoredTable` is a definition at run time, with schemas, columns and rows. A
changed definition creates a new `StoredTable`, so a reader never sees half of a change. Each table has a number that is
never reused: a table that is created again under an old name inherits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from tavola.engine.history import HistoryCache
from tavola.engine.journal import Journal
from tavola.engine.storage import Store, StoreDamaged, TableStore
from tavola.engine.store_time import StoreTime
from tavola.engine.vectors import Vector, VectorDefinition
from tavola.keys import KeyAttribute, KeySchema
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.resources import TableFacts

_KIND = "table"
_COUNTS = "counts"
_SEQUENCE = ("sequence", "table")
KEPT_LOG = "kept-log"  # the kind of record that keeps a log, named by its number
NEVER_S = 1e15  # as the time when a table is ready: a job makes it ACTIVE, not the time
_DAY_S = 86_400
_PAST_CAPACITIES_MAX = 500

Projection = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
IndexKind = Literal["local", "global"]


class Throughput(msgspec.Struct, frozen=True):
    """Provisioned units, and when they were last increased and decreased."""

    reads: int
    writes: int
    increased_at_s: float | None = None
    decreased_at_s: float | None = None
    decreases: int = 0  # decreases on the UTC day of the last one

    def decreases_today(self, now_s: float) -> int:
        """Return how often the units were decreased on the day of `now_s`."""
        last_s = self.decreased_at_s
        return self.decreases if last_s is not None and last_s // _DAY_S == now_s // _DAY_S else 0


class StreamSettings(msgspec.Struct, frozen=True):
    """The settings of a stream; the label is the time when it was enabled, and part of its ARN."""

    view: str
    label: str
    enabled: bool = True


class TimeToLive(msgspec.Struct, frozen=True):
    """The attribute that says when an item expires, and when the setting was last changed."""

    attribute: str
    enabled: bool
    changed_at_s: float
    column: str | None = None  # the column that orders items by expiry time
    filled_to: int | None = None  # the row up to which the column is filled; None: complete


class PastCapacity(msgspec.Struct, frozen=True):
    """The capacity that a table had until it was changed; a restore to an earlier time brings it back."""

    until_s: float  # in log time, as the time of a restore
    billing: str
    throughput: Throughput
    on_demand: dict[str, int] | None
    indexes: dict[str, Throughput | None]

    @classmethod
    def of(cls, definition: TableDefinition, until_s: float) -> PastCapacity:
        """Return the capacity of a definition."""
        indexes = {index.name: index.throughput for index in definition.indexes}
        return cls(until_s, definition.billing, definition.throughput, definition.on_demand, indexes)


class Recovery(msgspec.Struct, frozen=True):
    """Point-in-time recovery: when it was enabled, and how many days it reaches back."""

    enabled_at_s: float
    days: int
    since: int = 0  # the last change of the log when it was enabled; earlier changes cannot be undone
    past: tuple[PastCapacity, ...] = ()  # the earliest first

    def with_past_capacity(self, old: TableDefinition, new: TableDefinition, time: StoreTime) -> Recovery:
        """Return the setting with the capacity that the table had before a change."""
        time.tick()
        until_s = time.now_us / 1_000_000
        had, has = PastCapacity.of(old, until_s), PastCapacity.of(new, until_s)
        if had == has:
            return self
        since_s = time.log_us_ago(self.days * _DAY_S) / 1_000_000
        recent = [capacity for capacity in self.past if capacity.until_s >= since_s]
        return msgspec.structs.replace(self, past=(*recent, had)[-_PAST_CAPACITIES_MAX:])


class Restored(msgspec.Struct, frozen=True):
    """The source of a table that is being restored; removed once the restore is complete."""

    at_s: float  # the time it is restored to
    table_arn: str | None = None
    backup_arn: str | None = None


class InsightsSettings(msgspec.Struct, frozen=True):
    """Contributor Insights of a table or index: which keys are watched, and since when by which rules."""

    mode: str
    enabled: bool
    changed_at_s: float
    rules_since_ms: int  # the stamp in the names of its rules


class StoredPolicy(msgspec.Struct, frozen=True):
    """A resource policy in its normalized text; None if this revision removed it."""

    text: str | None
    revision: str  # epoch milliseconds


class Destination(msgspec.Struct, frozen=True):
    """A Kinesis stream that was configured as the destination of a table's changes."""

    stream: str
    precision: str | None = None


class IndexDefinition(msgspec.Struct, frozen=True):
    """The stored definition of a secondary index."""

    name: str
    kind: IndexKind
    slot: int  # names its columns; never used again in this table
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: Projection
    named: tuple[str, ...] = ()  # the attributes that INCLUDE names
    throughput: Throughput | None = None
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    ready_at_s: float = 0.0  # in store time
    filled_to: int | None = None  # the row up to which it is backfilled; None: complete


class TableDefinition(msgspec.Struct, frozen=True):
    """The stored definition of a table."""

    number: int
    account: str
    region: str
    name: str
    uuid: str
    created_at_s: float
    ready_at_s: float  # in store time
    types: dict[str, str]
    hash: str
    range: str | None
    indexes: tuple[IndexDefinition, ...] = ()
    slots: int = 0  # number of slots ever used
    billing: str = "PROVISIONED"
    on_demand_since_s: float | None = None
    throughput: Throughput = Throughput(0, 0)
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    table_class: str | None = None
    class_changed_at_s: float | None = None
    protected: bool = False
    stream: StreamSettings | None = None
    ttl: TimeToLive | None = None
    tags: dict[str, str] = {}
    encryption: dict[str, str] | None = None
    recovery: Recovery | None = None
    insights: dict[int, InsightsSettings] = {}  # by index slot; 0 is the table itself
    restored: Restored | None = None
    pins: int = 0  # running jobs that need the past of this table
    vectors: tuple[VectorDefinition, ...] = ()
    kinesis: tuple[Destination, ...] = ()
    settings_replication: str | None = None
    policy: StoredPolicy | None = None

    @property
    def scope(self) -> Scope:
        """Return the account and region of the table."""
        return Scope(self.account, self.region)

    def with_types(self, types: Mapping[str, str]) -> TableDefinition:
        """Return the definition with those of the attribute types that a key or vector search uses."""
        used = {self.hash, self.range}
        used |= {name for index in self.indexes for name in (*index.hash, *index.range)}
        used |= {name for vector in self.vectors for name, _ in vector.schema}
        used_types = {name: type_ for name, type_ in types.items() if name in used}
        return msgspec.structs.replace(self, types=used_types)


class StoredIndex:
    """A secondary index at run time: its key schema, columns and projection."""

    __slots__ = ("column", "definition", "name", "projected", "schema", "size_column")

    def __init__(self, definition: IndexDefinition, table: TableDefinition) -> None:
        self.definition = definition
        self.name = definition.name
        ties = _key_names(table) if definition.kind == "global" else ()
        self.schema = _schema(definition.hash, definition.range, table.types, ties)
        self.column = f"x{definition.slot}"
        self.projected: frozenset[str] | None = None  # None: everything
        self.size_column = "size"
        if definition.projection != "ALL":
            self.projected = frozenset((*_key_names(table), *self.schema.names, *definition.named))
            self.size_column = f"s{definition.slot}"

    @property
    def is_global(self) -> bool:
        """Whether the index is global, with its own partition key."""
        return self.definition.kind == "global"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of this index: its key, and its entry size if that differs from the item size."""
        return (self.column,) if self.projected is None else (self.column, self.size_column)

    def is_ordered(self, column: str) -> bool:
        """Return whether a column of this index is its key, and therefore ordered."""
        return column == self.column


class TableCounts:
    """The number of rows, and their size in bytes, of a table and of each of its indexes."""

    __slots__ = ("bytes", "index_bytes", "index_items", "items")

    def __init__(self, items: int = 0, bytes_: int = 0) -> None:
        self.items = items
        self.bytes = bytes_
        self.index_items: dict[int, int] = {}
        self.index_bytes: dict[int, int] = {}

    def encode(self) -> bytes:
        """Return the counts in their stored form."""
        return msgspec.json.encode((self.items, self.bytes, self.index_items, self.index_bytes))

    @classmethod
    def decode(cls, data: bytes) -> TableCounts:
        """Return counts from their stored form."""
        items, size, index_items, index_bytes = msgspec.json.decode(
            data, type=tuple[int, int, dict[int, int], dict[int, int]]
        )
        counts = cls(items, size)
        counts.index_items, counts.index_bytes = index_items, index_bytes
        return counts


class StoredTable:
    """A table at run time: its definition with schema, indexes, rows and journal."""

    __slots__ = (
        "arn",
        "by_name",
        "columns",
        "counts",
        "definition",
        "expiry",
        "facts",
        "has_local",
        "indexed",
        "indexes",
        "journal",
        "key_names",
        "name",
        "rows",
        "schema",
        "scope",
        "settled",
        "vectors",
    )

    def __init__(
        self, definition: TableDefinition, store: Store, counts: TableCounts, journal: Journal | None = None
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.scope = definition.scope
        self.arn = table_arn(self.scope, self.name)
        self.schema = _schema(
            (definition.hash,), (definition.range,) if definition.range else (), definition.types
        )
        self.key_names = frozenset(self.schema.names)
        self.indexes = tuple(StoredIndex(index, definition) for index in definition.indexes)
        self.by_name: Mapping[str, StoredIndex] = {index.name: index for index in self.indexes}
        self.has_local = any(not index.is_global for index in self.indexes)
        # The attributes that index entries depend on; an update of others leaves the entries unchanged.
        self.indexed = frozenset(
            name for index in self.indexes for name in (*index.schema.names, *(index.projected or ()))
        )
        self.settled = False  # known to be past CREATING
        self.facts: TableFacts | None = None  # cached for guards, while valid
        self.columns = tuple(column for index in self.indexes for column in index.columns)
        self.vectors: tuple[Vector, ...] = ()
        for vector_definition in definition.vectors:
            vector = Vector(vector_definition, self.schema.names, definition.types, len(self.columns))
            self.vectors += (vector,)
            self.columns += vector.columns
            self.indexed |= vector.watched
        self.expiry: str | None = None  # the attribute that says when an item expires
        ttl = definition.ttl
        if ttl is not None and ttl.enabled and ttl.column is not None:
            self.expiry = ttl.attribute
            self.indexed |= {ttl.attribute}
            self.columns += (ttl.column,)
        self.journal = journal  # None: no stream and no recovery
        self.rows: TableStore = store.table(definition.number, self.columns)
        self.counts = counts


class Catalog:
    """All tables of all accounts and regions in one store."""

    def __init__(self, store: Store, time: StoreTime, *, keeps_all_history: bool = False) -> None:
        """Read the catalog of a store; with `keeps_all_history`, the past of every table is kept."""
        self._store = store
        self.time = time
        self.keeps_all_history = keeps_all_history
        self._logs: set[int] = set()
        self.as_of_read_at_s: dict[
            int, float
        ] = {}  # by table number, the store time of the last read of its past
        self.history = HistoryCache()
        self.has_changed = True  # a change may have created background work
        self._tables: dict[tuple[str, str, str], StoredTable] = {}
        self._counts_changed: set[StoredTable] = set()
        self.load()

    def load(self) -> None:
        """Reload everything from the store, dropping uncommitted changes."""
        counts = dict(self._store.records(_COUNTS))
        self._logs = set(self._store.log_numbers())
        self.has_changed = True
        tables: dict[tuple[str, str, str], StoredTable] = {}
        for number, data in self._store.records(_KIND):
            stored = counts.get(number)
            try:
                definition = msgspec.json.decode(data, type=TableDefinition)
                table_counts = TableCounts.decode(stored) if stored else TableCounts()
                table = StoredTable(definition, self._store, table_counts, self._journal(definition))
            except (msgspec.DecodeError, KeyError) as error:
                raise StoreDamaged(
                    f"the store is damaged (the definition of a table cannot be read: {error}); restore it "
                    "from a backup"
                ) from error
            tables[definition.account, definition.region, definition.name] = table
        if self._logs:
            self.time.tick()  # continues after the latest change of any log
        self._counts_changed.clear()
        self._tables = tables
        self.history.forget()

    def find(self, scope: Scope, name: str) -> StoredTable | None:
        """Return the table of this name, whatever its state."""
        return self._tables.get((scope.account, scope.region, name))

    def names(self, scope: Scope) -> list[str]:
        """Return the names of a scope's tables in byte order."""
        return sorted(
            name
            for account, region, name in self._tables
            if (account, region) == (scope.account, scope.region)
        )

    def tables(self) -> Iterator[StoredTable]:
        """Return all tables."""
        return iter(self._tables.values())

    def of_number(self, number: int) -> StoredTable | None:
        """Return the table of this number."""
        return next((table for table in self._tables.values() if table.definition.number == number), None)

    def next_number(self) -> int:
        """Return a number that has never been used for a table."""
        kind, name = _SEQUENCE
        number = int(self._store.get_record(kind, name) or b"0") + 1
        self._store.put_record(kind, name, str(number).encode())
        return number

    def create(self, definition: TableDefinition) -> StoredTable:
        """Create a table."""
        self._store.create_table(definition.number)
        for index in definition.indexes:
            self.add_columns(definition, index)
        for vector in definition.vectors:
            self.add_vector(definition, vector)
        table = StoredTable(definition, self._store, TableCounts(), self._journal(definition))
        self._save(table)
        return table

    def change(self, table: StoredTable, definition: TableDefinition) -> StoredTable:
        """Replace the definition of a table and return the new `StoredTable`."""
        if definition.recovery is not None:
            recovery = definition.recovery.with_past_capacity(table.definition, definition, self.time)
            definition = msgspec.structs.replace(definition, recovery=recovery)
        changed = StoredTable(definition, self._store, table.counts, self._journal(definition))
        changed.settled = table.settled and definition.ready_at_s == table.definition.ready_at_s
        for vector in changed.vectors:
            vector.adopt_copy(table.vectors)
        self._counts_changed.discard(table)
        self._save(changed)
        return changed

    def drop(self, table: StoredTable, *, keep_rows: bool = False) -> None:
        """Remove a table, and its rows unless a backup takes them over.

        Its log is kept: a stream can be read for a day after its table was deleted.
        """
        definition = table.definition
        if not keep_rows:
            self._store.drop_table(definition.number)
        self.has_changed = True
        self._store.delete_record(_KIND, _number(definition))
        self._store.delete_record(_COUNTS, _number(definition))
        self._counts_changed.discard(table)
        del self._tables[definition.account, definition.region, definition.name]

    def add_columns(self, table: TableDefinition, index: IndexDefinition) -> None:
        """Add the columns of a new index to the table's rows."""
        added = StoredIndex(index, table)
        for column in added.columns:
            self._store.add_column(table.number, column, ordered=added.is_ordered(column))

    def drop_columns(self, table: TableDefinition, index: IndexDefinition) -> None:
        """Drop the columns of an index."""
        dropped = StoredIndex(index, table)
        for column in dropped.columns:
            self._store.drop_column(table.number, column, ordered=dropped.is_ordered(column))

    def add_vector(self, table: TableDefinition, vector: VectorDefinition) -> None:
        """Add the columns of a new vector index to the table's rows."""
        for column in Vector(vector, (), table.types, 0).columns:
            self._store.add_column(table.number, column, ordered=False)

    def drop_vector(self, table: TableDefinition, vector: VectorDefinition) -> None:
        """Drop the columns of a vector index."""
        for column in Vector(vector, (), table.types, 0).columns:
            self._store.drop_column(table.number, column, ordered=False)

    def add_column(self, number: int, column: str) -> None:
        """Add an ordered column that belongs to no index."""
        self._store.add_column(number, column, ordered=True)

    def drop_column(self, number: int, column: str) -> None:
        """Drop an ordered column that belongs to no index."""
        self._store.drop_column(number, column, ordered=True)

    @property
    def has_logs(self) -> bool:
        """Whether any table has a change log."""
        return bool(self._logs)

    def logs(self) -> frozenset[int]:
        """Return the numbers of all change logs, including those of deleted tables."""
        return frozenset(self._logs)

    def kept_logs(self) -> frozenset[int]:
        """Return the numbers of logs of deleted tables that backups still need in full."""
        return frozenset(int(name) for name, _ in self._store.records(KEPT_LOG))

    def drop_log(self, number: int) -> None:
        """Remove a log that is no longer needed."""
        self._store.drop_log(number)
        self._logs.discard(number)
        self.history.forget(number)

    def mark_counts_changed(self, table: StoredTable) -> None:
        """Mark a table's counts as changed, to be saved with this transaction."""
        self._counts_changed.add(table)

    def save_counts(self) -> None:
        """Write the changed counts; the last step of a transaction."""
        for table in self._counts_changed:
            self._store.put_record(_COUNTS, _number(table.definition), table.counts.encode())
        self._counts_changed.clear()

    def is_active(self, table: StoredTable) -> bool:
        """Return whether a table is past CREATING."""
        if not table.settled:
            table.settled = table.definition.ready_at_s <= self.time.elapsed_s()
        return table.settled

    def _journal(self, definition: TableDefinition) -> Journal | None:
        """Return the journal of a table with a stream or recovery, creating its log if needed; None without either."""
        view = definition.stream.view if definition.stream is not None and definition.stream.enabled else None
        history = self.keeps_all_history or definition.recovery is not None or definition.pins > 0
        if view is None and not history:
            return None
        log = self._store.log(definition.number)
        if definition.number not in self._logs:
            self.time.tick()  # the first log of a store may begin in the middle of a call
            self._store.create_log(definition.number)
            self._logs.add(definition.number)
        return Journal(
            log,
            self.time,
            view,
            history=history,
            key_names=_key_names(definition),
            brief=not self._store.in_memory,
        )

    def _save(self, table: StoredTable) -> None:
        self.has_changed = True
        definition = table.definition
        self._store.put_record(_KIND, _number(definition), msgspec.json.encode(definition))
        self._tables[definition.account, definition.region, definition.name] = table
        self._counts_changed.add(table)


def _number(definition: TableDefinition) -> str:
    return f"{definition.number:010d}"


def _key_names(table: TableDefinition) -> tuple[str, ...]:
    return (table.hash, table.range) if table.range else (table.hash,)


def _schema(
    hash_: tuple[str, ...], range_: tuple[str, ...], types: Mapping[str, str], ties: tuple[str, ...] = ()
) -> KeySchema:
    return KeySchema(
        tuple(KeyAttribute(name, types[name]) for name in hash_),
        tuple(KeyAttribute(name, types[name]) for name in range_),
        tuple(KeyAttribute(name, types[name]) for name in ties),
    )
