"""Table: where entities live, with its indexes and settings, declared as a class.

    class Desk(Table, name="prod-tickets", ttl="expires_at"):
        by_customer = Gsi(pk="GSI1PK", sk="GSI1SK")
        queue = Gsi(pk=("queue", "status"), sk=("priority", "created_at"))

An index whose key is one attribute is fed by the templates of the access patterns on it; one whose key is a
tuple of names is fed by the attributes of those names themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tavola.limits import MULTI_KEY_ATTRIBUTES_MAX
from tavola.model.errors import ModelError

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
StreamView = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
TableClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
ShardKind = Literal["hash", "random", "time"]

BUCKETS = ("minute", "hour", "day", "month", "year")
SHARDS_MAX = 10_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")


@dataclass(frozen=True, slots=True)
class Shards:
    """How the items under one partition key are spread over several, and found again.

    `by="hash"` takes the shard from the item's key, or from the fields in `of`; `by="random"` takes any. To
    change the count while live, write with the new one and read with the larger of the two (`reading`)
    until the items are rewritten.
    """

    count: int
    by: ShardKind = "hash"
    of: tuple[str, ...] = ()
    reading: int | None = None
    bucket: str = ""  # of the time that shards: minute, hour, day, month or year

    def __post_init__(self) -> None:
        if self.by == "time":
            if len(self.of) != 1 or self.bucket not in BUCKETS:
                raise ModelError("Shards", f"by time they need one field and a bucket: {', '.join(BUCKETS)}")
            return
        if self.by not in ("hash", "random"):
            raise ModelError("Shards", f"by={self.by!r} is no way to shard; give hash, random or time")
        for told in (self.count, self.reads):
            if not 1 <= told <= SHARDS_MAX:
                raise ModelError("Shards", f"{told} shards are outside 1 to {SHARDS_MAX}")
        if self.reads < self.count:
            raise ModelError("Shards", f"reading={self.reading} shards would miss items of {self.count}")

    @staticmethod
    def by_time(field_name: str, bucket: str) -> Shards:
        """Return shards that are stretches of time, from a field: `Shards.by_time("created_at", "day")`."""
        return Shards(0, "time", (field_name,), bucket=bucket)

    @property
    def reads(self) -> int:
        """How many shards a read asks."""
        return self.count if self.reading is None else self.reading


class Index:
    """A secondary index of a table; what is common to global and local ones."""

    local: ClassVar[bool]

    def __init__(
        self, hash_: tuple[str, ...], range_: tuple[str, ...], projection: Projection, name: str, native: bool
    ) -> None:
        if not (projection in ("ALL", "KEYS_ONLY") or isinstance(projection, tuple)):
            raise ModelError(
                name or type(self).__name__,
                f"projection={projection!r} is none; give ALL, KEYS_ONLY or a tuple of attributes",
            )
        self.hash = hash_
        self.range = range_
        self.projection = projection
        self.native = native  # its key is made of entities' own attributes
        self.name = name
        self.label = ""
        self.table: type[Table] | None = None

    def __set_name__(self, owner: type[Table], label: str) -> None:
        self.label = label
        self.name = self.name or label
        self.table = owner

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return self.hash + self.range

    def __repr__(self) -> str:
        owner = "?" if self.table is None else self.table.__name__
        return f"<{type(self).__name__} {owner}.{self.label}>"


class Gsi(Index):
    """A global secondary index: any key, read eventually."""

    local = False

    def __init__(
        self,
        pk: str | tuple[str, ...],
        sk: str | tuple[str, ...] | None = None,
        *,
        projection: Projection = "ALL",
        name: str = "",
    ) -> None:
        """Declare an index; tuples of names make a key of several attributes, each with its own type."""
        native = isinstance(pk, tuple) or isinstance(sk, tuple)
        hash_ = pk if isinstance(pk, tuple) else (pk,)
        range_ = () if sk is None else sk if isinstance(sk, tuple) else (sk,)
        if not 1 <= len(hash_) <= MULTI_KEY_ATTRIBUTES_MAX or len(range_) > MULTI_KEY_ATTRIBUTES_MAX:
            raise ModelError(
                name or "Gsi",
                f"a key has 1 to {MULTI_KEY_ATTRIBUTES_MAX} partition attributes and up to "
                f"{MULTI_KEY_ATTRIBUTES_MAX} sort attributes, not {len(hash_)} and {len(range_)}",
            )
        super().__init__(hash_, range_, projection, name, native)


class Lsi(Index):
    """A local secondary index: the table's partition key, another sort key, consistent reads possible."""

    local = True

    def __init__(self, sk: str, *, projection: Projection = "ALL", name: str = "") -> None:
        super().__init__((), (sk,), projection, name, False)

    def __set_name__(self, owner: type[Table], label: str) -> None:
        super().__set_name__(owner, label)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Everything about a table but its entities."""

    name: str
    hash: str
    range: str | None
    ttl: str | None
    tag: str | None  # the attribute that holds an item's entity; None: entities are told by their keys
    delimiter: str
    stream: StreamView | None
    recovery: bool
    recovery_days: int
    encryption: str | None  # a KMS key; None: AWS's own
    table_class: TableClass
    deletion_protection: bool
    read_units: int | None  # None: on demand
    write_units: int | None
    tags: Mapping[str, str] = field(default_factory=dict)


class Table:
    """A table of the design; subclass it, with indexes as its attributes."""

    settings: ClassVar[TableSettings]
    indexes: ClassVar[tuple[Index, ...]] = ()
    entities: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        pk: str = "pk",
        sk: str | None = "sk",
        ttl: str | None = None,
        tag: str | None = "_entity",
        delimiter: str = "#",
        stream: StreamView | None = None,
        recovery: bool = False,
        recovery_days: int = 35,
        encryption: str | None = None,
        table_class: TableClass = "STANDARD",
        deletion_protection: bool = False,
        read_units: int | None = None,
        write_units: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Declare a table: its name and key, then what `tavola` sets up with it.

        `tag` is where an item says which entity it is; None leaves it out, and entities are told by their
        keys. `recovery` is point-in-time recovery; without `read_units` and `write_units` it is billed on demand.
        """
        super().__init_subclass__()
        told = name or cls.__name__
        if not _NAME.fullmatch(told):
            raise ModelError(cls.__name__, f"{told!r} is no table name; 3 to 255 of a-z A-Z 0-9 _ . -")
        if (read_units is None) != (write_units is None):
            raise ModelError(
                cls.__name__, "read_units and write_units go together; without both it is on demand"
            )
        cls.settings = TableSettings(
            told, pk, sk, ttl, tag, delimiter, stream, recovery, recovery_days, encryption, table_class,
            deletion_protection, read_units, write_units, dict(tags or {}),
        )  # fmt: skip
        cls.indexes = tuple(found for found in vars(cls).values() if isinstance(found, Index))
        cls.entities = {}
        cls._check_indexes()

    @classmethod
    def _check_indexes(cls) -> None:
        settings = cls.settings
        seen: dict[str, str] = {}
        for index in cls.indexes:
            if index.local:
                if settings.range is None:
                    raise ModelError(
                        f"{cls.__name__}.{index.label}", "a local index needs a table with a sort key (sk=…)"
                    )
                index.hash = (settings.hash,)
            if not _NAME.fullmatch(index.name):
                raise ModelError(
                    f"{cls.__name__}.{index.label}",
                    f"{index.name!r} is no index name; give name= with 3 to 255 of a-z A-Z 0-9 _ . -",
                )
            if index.name in seen:
                raise ModelError(
                    f"{cls.__name__}.{index.label}", f"{seen[index.name]} is called {index.name!r} as well"
                )
            seen[index.name] = index.label
        if settings.ttl is not None and settings.ttl in (settings.hash, settings.range):
            raise ModelError(cls.__name__, f"ttl={settings.ttl!r} is a key attribute; give it its own")


def table_of(index_or_table: Any) -> type[Table] | None:
    """Return the table that an `on=` names, None if it names none."""
    if isinstance(index_or_table, Index):
        return index_or_table.table
    if isinstance(index_or_table, type) and issubclass(index_or_table, Table):
        return index_or_table
    return None
