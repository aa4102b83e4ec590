"""Table: a DynamoDB table with its indexes and settings, declared as a class.

    class Desk(Table, name="prod-tickets", ttl="expires_at"):
        by_customer = Gsi(pk="GSI1PK", sk="GSI1SK")
        queue = Gsi(pk=("queue", "status"), sk=("priority", "created_at"))

An index whose key is one attribute gets its values from the templates of the access patterns on it; an index whose key is a
tuple of names uses the attributes of those names directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from tavola.limits import (
    GLOBAL_INDEXES_MAX,
    LOCAL_INDEXES_MAX,
    MULTI_KEY_ATTRIBUTES_MAX,
    SCALING_TARGET_MAX,
    SCALING_TARGET_MIN,
)
from tavola.model.errors import ModelError

if TYPE_CHECKING:
    from tavola.model.consumers import Consumer


Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
# In the order of AWS's messages, as in `protocol.fields`: typing caches `Literal[…] | None` by equality, which ignores order, so
# of two orders the one imported first would win everywhere.
StreamView = Literal["OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"]
TableClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
ShardKind = Literal["hash", "random", "time"]
KeyTag = Literal["B", "N", "S"]

KEY_TAGS: frozenset[str] = frozenset(get_args(KeyTag))  # the types that a key attribute may have

BUCKETS = ("minute", "hour", "day", "month", "year")
SHARDS_MAX = 10_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")


@dataclass(frozen=True, slots=True)
class Shards:
    """How the items of one partition key are spread over several partition keys, and read again.

    `by="hash"` takes the shard from the item's key, or from the fields in `of`; `by="random"` takes any. To
    change the count of an index while live, write with the new one and read with the larger of the two (`reading`)
    until the items are rewritten. The count of a table's own key is for ever: an item cannot move to another key,
    so it would no longer be found by its own, and be put a second time.
    """

    count: int
    by: ShardKind = "hash"
    of: tuple[str, ...] = ()
    reading: int | None = None
    bucket: str = ""  # of the time that shards: minute, hour, day, month or year

    def __post_init__(self) -> None:
        if self.by == "time":
            if len(self.of) != 1 or self.bucket not in BUCKETS:
                raise ModelError(
                    "Shards", f"shards by time need one field and a bucket: {', '.join(BUCKETS)}"
                )
            return
        if self.by not in ("hash", "random"):
            raise ModelError("Shards", f"by={self.by!r} is not a sharding strategy; use hash, random or time")
        for count in (self.count, self.reads):
            if not 1 <= count <= SHARDS_MAX:
                raise ModelError("Shards", f"{count} is not a number of shards; use 1 to {SHARDS_MAX}")
        if self.reads < self.count:
            raise ModelError(
                "Shards",
                f"reading={self.reading} shards would miss items in {self.count} shards; read the larger "
                "number",
            )

    @staticmethod
    def by_time(field_name: str, bucket: str) -> Shards:
        """Return shards by time, from a field: `Shards.by_time("created_at", "day")`."""
        return Shards(0, "time", (field_name,), bucket=bucket)

    @property
    def reads(self) -> int:
        """The number of shards that a read queries."""
        return self.count if self.reading is None else self.reading


@dataclass(frozen=True, slots=True)
class Scaling:
    """The auto scaling of a provisioned table and its indexes: minimum and maximum units, and the target utilization."""

    read_max: int
    write_max: int
    read_min: int = 1
    write_min: int = 1
    target: int = 70  # per cent of the units, which Application Auto Scaling aims at

    def __post_init__(self) -> None:
        for word, least, most in (
            ("read", self.read_min, self.read_max), ("write", self.write_min, self.write_max)
        ):  # fmt: skip
            if not 1 <= least <= most:
                raise ModelError(
                    "Scaling", f"{word} units from {least} to {most} are no range; give 1 or more"
                )
        if not SCALING_TARGET_MIN <= self.target <= SCALING_TARGET_MAX:
            raise ModelError(
                "Scaling",
                f"target={self.target} is out of range; use {SCALING_TARGET_MIN} to {SCALING_TARGET_MAX} "
                "percent",
            )


class Index:
    """A secondary index of a table; the base of `Gsi` and `Lsi`."""

    local: ClassVar[bool]

    def __init__(
        self, hash_: tuple[str, ...], range_: tuple[str, ...], projection: Projection, name: str, native: bool
    ) -> None:
        self.hash = hash_
        self.range = range_
        self.projection = projection
        self.native = native  # its key is made of entities' own attributes
        self.name = name
        self.label = ""
        self.table: type[Table] | None = None

    def __set_name__(self, owner: type[Table], label: str) -> None:
        if self.table is None:  # another table would take it away from its own; that is refused by the table
            self.label = label
            self.name = self.name or label
            self.table = owner

    def holds(self, attribute: str) -> bool:
        """Return whether the index projects an attribute; the table's key is not considered."""
        if self.projection == "ALL" or attribute in self.attributes:
            return True
        return self.projection != "KEYS_ONLY" and attribute in self.projection

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return self.hash + self.range

    def __repr__(self) -> str:
        owner = "?" if self.table is None else self.table.__name__
        return f"<{type(self).__name__} {owner}.{self.label}>"


class Gsi(Index):
    """A global secondary index: any key, eventually consistent reads."""

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
        super().__init__(hash_, range_, projection, name, native)


class Lsi(Index):
    """A local secondary index: the table's partition key, another sort key, consistent reads possible."""

    local = True

    def __init__(self, sk: str, *, projection: Projection = "ALL", name: str = "") -> None:
        super().__init__((), (sk,), projection, name, False)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings of a table."""

    name: str
    hash: str
    range: str | None
    ttl: str | None
    tag: str | None  # the attribute that holds an item's entity; None: entities are recognized by their keys
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
    replicas: tuple[str, ...] = ()  # other regions that hold the table too
    scaling: Scaling | None = None  # of provisioned units
    unknown: tuple[str, ...] = ()  # settings that only the deployment knows, by their names here

    @property
    def key_names(self) -> tuple[str, ...]:
        """The attributes of the table's key."""
        return (self.hash,) if self.range is None else (self.hash, self.range)


class Table:
    """A table of the design; subclass it, with indexes as its attributes."""

    settings: ClassVar[TableSettings]
    indexes: ClassVar[tuple[Index, ...]] = ()
    entities: ClassVar[dict[str, type[Any]]]
    consumers: ClassVar[tuple[Consumer, ...]] = ()

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
        replicas: tuple[str, ...] = (),
        scaling: Scaling | None = None,
        consumers: tuple[Consumer, ...] = (),
    ) -> None:
        """Declare a table: its name and key, then what `tavola` sets up with it.

        `tag` is where an item says which entity it is; None leaves it out, and entities are recognized by their
        keys. `recovery` is point-in-time recovery; without `read_units` and `write_units` it is billed on demand.
        `consumers` read its stream. `replicas` and `scaling` are for AWS alone, as what is written for it.
        """
        super().__init_subclass__()
        if any(base is not Table and issubclass(base, Table) for base in cls.__bases__):
            raise ModelError(cls.__name__, "tables cannot be subclassed; declare each as class …(Table)")
        cls.settings = TableSettings(
            name or cls.__name__, pk, sk, ttl, tag, delimiter, stream, recovery, recovery_days, encryption, table_class,
            deletion_protection, read_units, write_units, dict(tags or {}), replicas, scaling,
        )  # fmt: skip
        cls.indexes = tuple(value for value in vars(cls).values() if isinstance(value, Index))
        cls.entities = {}
        cls.consumers = consumers
        _check_settings(cls.__name__, cls.settings)
        _check_indexes(cls)


def _check_settings(place: str, settings: TableSettings) -> None:
    if not _NAME.fullmatch(settings.name):
        raise ModelError(
            place,
            f"{settings.name!r} is not a valid table name; set name= with 3 to 255 characters of a-z "
            "A-Z 0-9 _ . -",
        )
    if (settings.read_units is None) != (settings.write_units is None):
        raise ModelError(
            place, "read_units and write_units must be set together; without both, the table is on demand"
        )
    if settings.scaling is not None and settings.read_units is None:
        raise ModelError(
            place, "scaling= needs provisioned capacity; set read_units and write_units as the initial values"
        )
    if settings.hash == settings.range:
        raise ModelError(
            place,
            f"pk and sk are both {settings.hash!r}; use two names, or sk=None for no sort key",
        )
    if not settings.delimiter:
        raise ModelError(
            place, "delimiter='' cannot separate the parts of a key; use a character such as '#'"
        )
    for word, attribute in (("ttl", settings.ttl), ("tag", settings.tag)):
        if attribute is not None and attribute in (settings.hash, settings.range):
            raise ModelError(place, f"{word}={attribute!r} is a key attribute; use another attribute")
    if settings.ttl is not None and settings.ttl == settings.tag:
        raise ModelError(place, f"ttl and tag are both {settings.ttl!r}; use two attributes")


def _check_indexes(table: type[Table]) -> None:
    settings = table.settings
    seen: dict[str, str] = {}
    for index in table.indexes:
        place = f"{table.__name__}.{index.label}"
        if index.table is not table:
            raise ModelError(place, f"it already belongs to {index!r}; declare one index per table")
        if index.label in ("settings", "indexes", "entities", "consumers"):
            raise ModelError(place, "Table already has an attribute with this name; rename the index")
        if index.local:
            if settings.range is None:
                raise ModelError(place, "a local index needs a table with a sort key (sk=…)")
            index.hash = (settings.hash,)
        if not _NAME.fullmatch(index.name):
            raise ModelError(
                place,
                f"{index.name!r} is not a valid index name; set name= with 3 to 255 characters of a-z A-Z 0-9 _ . -",
            )
        if index.name in seen:
            raise ModelError(
                place, f"{seen[index.name]} is also named {index.name!r}; set name=… on one of them"
            )
        seen[index.name] = index.label
        _check_attributes(place, index, settings)
    for kind, most in ((True, LOCAL_INDEXES_MAX), (False, GLOBAL_INDEXES_MAX)):
        count = sum(index.local is kind for index in table.indexes)
        if count > most:
            word = "local" if kind else "global"
            raise ModelError(
                table.__name__,
                f"it has {count} {word} indexes; a table has at most {most}, so overload some",
            )


def _check_attributes(place: str, index: Index, settings: TableSettings) -> None:
    attributes, projection = index.attributes, index.projection
    most = MULTI_KEY_ATTRIBUTES_MAX
    if not 1 <= len(index.hash) <= most or len(index.range) > most:
        raise ModelError(
            place,
            f"a key has 1 to {most} partition attributes and up to {most} sort attributes, not "
            f"{len(index.hash)} and {len(index.range)}; combine some in a template",
        )
    if not (projection in ("ALL", "KEYS_ONLY") or isinstance(projection, tuple)):
        raise ModelError(
            place, f"projection={projection!r} is not valid; use ALL, KEYS_ONLY or a tuple of attributes"
        )
    if projection == ():
        raise ModelError(place, "projection=() adds nothing to the keys; use KEYS_ONLY")
    if not all(attributes):
        raise ModelError(place, "'' is not an attribute name; name each part of the key")
    twice = sorted({name for name in attributes if attributes.count(name) > 1})
    if twice:
        raise ModelError(
            place, f"its key contains {', '.join(twice)} twice; use a different attribute for each part"
        )
    if attributes == (settings.hash, settings.range):
        raise ModelError(
            place, "it has the same key as the table; use on=Key for its queries, and remove the index"
        )
    if settings.tag in attributes:
        raise ModelError(place, f"{settings.tag!r} is the table's tag; use another attribute for the index")


def table_of(index_or_table: Any) -> type[Table] | None:
    """Return the table that an `on=` refers to; None if it refers to none."""
    if isinstance(index_or_table, Index):
        return index_or_table.table
    if isinstance(index_or_table, type) and issubclass(index_or_table, Table):
        return index_or_table
    return None


def declared_tables() -> list[type[Table]]:
    """Return all declared tables; of a table that was declared again, only the latest."""
    return list(
        {
            (subclass.__module__, subclass.__qualname__): subclass for subclass in Table.__subclasses__()
        }.values()
    )


def require_table(value: Any) -> type[Table]:
    """Return `table` if it is a table class; refuse other objects, and say what to pass."""
    if isinstance(value, type) and issubclass(value, Table) and value is not Table:
        return value
    name = value.__name__ if isinstance(value, type) else repr(value)
    shape = getattr(value, "__shape__", None)
    table = getattr(shape, "table", None)
    if table is not None:
        raise ModelError(name, f"it is an entity; use its table, {table.__name__}")
    raise ModelError(name, "it is not a table; use a class such as class Desk(Table)")
