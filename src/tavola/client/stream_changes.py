"""Stream changes: the records of a table's stream as changes of entities.

    for change in changes_of(Desk, event):
        match change:
            case EntityChange(new=Ticket() as ticket, kind="inserted"): …
            case EntityChange(old=Session(), expired=True): …
            case RawChange(): …

The entity of an item is identified by its tag or key, as when it is read, and items of older schemas are upgraded. An item
that belongs to no entity, or cannot be read as its entity, is a `RawChange`. Only the guards of unique values are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from tavola.client.marshalling import as_json, entity_of, fields_in_key, identify_entity
from tavola.client.streams import RecordMalformed, StreamError, sequence_number
from tavola.model import UNIQUE_ATTRIBUTE, Entity, ItemUnreadable, PrimaryKey, Table, shape_of
from tavola.values import Item

E = TypeVar("E", bound=Entity)
E_co = TypeVar("E_co", bound=Entity, covariant=True)

ChangeKind: TypeAlias = Literal["inserted", "modified", "removed"]

_KINDS: dict[str, ChangeKind] = {"INSERT": "inserted", "MODIFY": "modified", "REMOVE": "removed"}
_SERVICE = "dynamodb.amazonaws.com"


class ImageMissing(StreamError):
    """The old or new image of an item is needed, and the stream does not contain it."""

    def __init__(self, what: str, view: str | None) -> None:
        self.what = what
        self.view = view
        images = "does not contain both" if view is None else f"has the view type {view}"
        super().__init__(
            f"{what}: finding what changed needs the old and the new image, and the stream {images}; declare the "
            f'table with stream="NEW_AND_OLD_IMAGES"'
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """The position of a change in its stream, and its time."""

    sequence: str  # increases with each change of an item, across shards too
    event_id: str
    at: datetime  # approximate, in seconds
    stream: str | None  # its ARN, if the record contains it
    shard: str | None  # None in a Lambda event
    view: str | None  # the stream view type


@dataclass(frozen=True, slots=True)
class EntityChange(Generic[E_co]):
    """One change of an entity; `old` is None if it was inserted, `new` if it was removed.

    An image that the stream view type leaves out is None too.
    """

    kind: ChangeKind
    old: E_co | None
    new: E_co | None
    entity: type[E_co]
    expired: bool  # removed because its time to live was over
    keys: Item  # the item's key as DynamoDB JSON
    origin: Origin

    @property
    def at(self) -> datetime:
        """When the change was made, in seconds."""
        return self.origin.at

    @property
    def sequence(self) -> str:
        """Its sequence number in the stream."""
        return self.origin.sequence

    @property
    def changed(self) -> frozenset[str]:
        """The fields whose value changed; all fields with a value if the entity was inserted or removed."""
        old, new = self.old, self.new
        if self.kind == "modified" and (old is None or new is None):
            raise ImageMissing(f"A change of {self.entity.__name__}", self.origin.view)
        before: dict[str, Any] = {} if old is None else old.__dict__
        after: dict[str, Any] = {} if new is None else new.__dict__
        return frozenset(name for name in shape_of(self.entity).fields if before.get(name) != after.get(name))

    @property
    def key(self) -> PrimaryKey[E_co]:
        """The entity's key, available with every stream view type."""
        return key_of(self.entity, self.keys, self.new or self.old)

    def became(self, name: str, value: object) -> bool:
        """Return whether a field changed to a value: `change.became("status", "closed")`."""
        if self.new is None or getattr(self.new, name) != value:
            return False
        if self.old is None and self.kind == "modified":
            raise ImageMissing(f"A change of {self.entity.__name__}", self.origin.view)
        return self.old is None or getattr(self.old, name) != value


@dataclass(frozen=True, slots=True)
class RawChange:
    """One change of an item that belongs to no entity, or cannot be read as its entity; images are DynamoDB JSON."""

    kind: ChangeKind
    old: Item | None
    new: Item | None
    expired: bool
    keys: Item
    origin: Origin
    entity: type[Entity] | None = None  # the entity it cannot be read as
    problem: ItemUnreadable | None = field(default=None, compare=False)  # why it cannot be read
    found: Entity | None = None  # the new entity, if only the old image cannot be read

    @property
    def at(self) -> datetime:
        """When the change was made, in seconds."""
        return self.origin.at

    @property
    def sequence(self) -> str:
        """Its sequence number in the stream."""
        return self.origin.sequence


AnyChange: TypeAlias = EntityChange[Any] | RawChange


def changes_of(
    table: type[Table] | None,
    event: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    stream: str | None = None,
    shard: str | None = None,
) -> Iterator[AnyChange]:
    """Yield the changes in a Lambda event, a GetRecords response, or one or several records, in their order.

    An item overwritten by one of another entity gives two changes with one sequence number: removed, then inserted. `stream`
    and `shard` are the origin of records that do not contain it. Without a table, every change is a `RawChange`, and guards
    are included.
    """
    for record in records_in(event):
        yield from _changes(table, record, stream, shard)


def records_in(event: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Return the records of an event, a response, or an iterable."""
    if not isinstance(event, Mapping):
        return event
    if "dynamodb" in event:
        return (event,)
    records = event.get("Records")
    if isinstance(records, list | tuple):
        return records
    raise RecordMalformed("it has no Records")


def is_expiry(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a deletion by time to live, which the service makes itself."""
    identity = record.get("userIdentity") or {}
    who = identity.get("principalId", identity.get("PrincipalId"))
    kind = identity.get("type", identity.get("Type"))
    return kind == "Service" and who == _SERVICE


def key_of(entity: type[E], keys: Item, instance: Entity | None = None) -> PrimaryKey[E]:
    """Return the key of an entity, from the entity itself if known, otherwise from the item's key."""
    shape = shape_of(entity)
    assert shape.key is not None, "a stored entity has a key"
    values: dict[str, Any] = {} if instance is None else instance.__dict__
    if instance is None:
        for source in shape.key.key.sources:
            values = {**values, **fields_in_key(source, keys)}
    absent = [name for name in shape.key.partition if values.get(name) is None]
    if absent:
        raise ItemUnreadable(
            entity.__name__, f"its key does not contain {', '.join(absent)}, and the stream has no image"
        )
    key: type[PrimaryKey[E]] = getattr(entity, shape.key.name)
    return key(**{name: values[name] for name in shape.key.partition})


def _changes(
    table: type[Table] | None, record: Mapping[str, Any], stream: str | None, shard: str | None
) -> Iterator[AnyChange]:
    try:
        data = record["dynamodb"]
        kind = _KINDS[record["eventName"]]
        origin = _origin(record, stream, shard)
        keys, old, new = data.get("Keys", {}), data.get("OldImage"), data.get("NewImage")
    except (KeyError, TypeError, ValueError) as error:
        raise RecordMalformed(f"a record lacks {error}") from error
    if isinstance(data.get("ApproximateCreationDateTime"), datetime):  # parsed by botocore: binary as bytes
        keys, old, new = (None if item is None else as_json(item) for item in (keys, old, new))
    expired = is_expiry(record)
    if table is None:
        yield RawChange(kind, old, new, expired, keys, origin)
        return
    if UNIQUE_ATTRIBUTE in (new or old or {}):
        return
    before, after = (identify_entity(table, keys if image is None else image) for image in (old, new))
    if old is not None and new is not None and before is not after:
        yield _change(before, "removed", old, None, expired, keys, origin)
        yield _change(after, "inserted", None, new, False, keys, origin)
    else:
        entity = after if new is not None else before
        yield _change(entity, kind, old, new, expired, keys, origin)


def _change(
    entity: type[Entity] | None,
    kind: ChangeKind,
    old: Item | None,
    new: Item | None,
    expired: bool,
    keys: Item,
    origin: Origin,
) -> AnyChange:
    if entity is None:
        return RawChange(kind, old, new, expired, keys, origin)
    after: Entity | None = None
    try:
        after = None if new is None else entity_of(entity, new)
        before = None if old is None else entity_of(entity, old)
    except ItemUnreadable as problem:
        return RawChange(kind, old, new, expired, keys, origin, entity, problem, after)
    return EntityChange(kind, before, after, entity, expired, keys, origin)


def _origin(record: Mapping[str, Any], stream: str | None, shard: str | None) -> Origin:
    data = record["dynamodb"]
    at = data.get("ApproximateCreationDateTime", 0)
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(float(at), UTC)
    return Origin(
        sequence_number(record),
        record.get("eventID") or "",
        moment,
        record.get("eventSourceARN") or stream,
        shard,
        data.get("StreamViewType"),
    )
