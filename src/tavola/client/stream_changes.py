"""Changes: what a stream tells of a table, as changes of entities.

    for change in changes_of(Desk, event):
        match change:
            case EntityChange(new=Ticket() as ticket, kind="inserted"): …
            case EntityChange(old=Session(), expired=True): …
            case RawChange(): …

A record is of an item, and an item is an entity by its tag or its key, as when it is read; items of older
schemas are upgraded. What is of no entity, or cannot be read as the one that it is, comes as it is: nothing
is left out but the guards of unique values, which are Tavola's own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from tavola.client.marshalling import entity_of, read_source, recognised
from tavola.client.streams import StreamError, sequence_number
from tavola.model import UNIQUE_ATTRIBUTE, Entity, ItemUnreadable, PrimaryKey, Table, shape_of
from tavola.values import Item, Value

E = TypeVar("E", bound=Entity)
E_co = TypeVar("E_co", bound=Entity, covariant=True)

ChangeKind: TypeAlias = Literal["inserted", "modified", "removed"]

_KINDS: dict[str, ChangeKind] = {"INSERT": "inserted", "MODIFY": "modified", "REMOVE": "removed"}
_SERVICE = "dynamodb.amazonaws.com"


class RecordMalformed(StreamError):
    """An event or record that is none of a DynamoDB stream."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"That is no event of a DynamoDB stream: {problem}; give what Lambda or GetRecords gives"
        )


class ImageMissing(StreamError):
    """A question that needs what an item was before or is after, of a stream that does not tell it."""

    def __init__(self, what: str, view: str | None) -> None:
        self.what = what
        self.view = view
        told = "does not tell both" if view is None else f"has the view {view}"
        super().__init__(
            f"{what}: what changed is known from the item before and after, and the stream {told}; give the "
            f'table stream="NEW_AND_OLD_IMAGES"'
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in a stream a change stands, and when it was made."""

    sequence: str  # increases over the changes of an item, across shards too
    event_id: str
    at: datetime  # to the second, about
    stream: str | None  # its ARN, where the record tells it
    shard: str | None  # where the reader knows it; Lambda does not tell
    view: str | None  # the images that the stream has


@dataclass(frozen=True, slots=True)
class EntityChange(Generic[E_co]):
    """One change of an entity; `old` is None where it was inserted, `new` where it was removed.

    A stream whose view leaves an image out has None for that too.
    """

    kind: ChangeKind
    old: E_co | None
    new: E_co | None
    entity: type[E_co]
    expired: bool  # removed because its time to live was over
    keys: Item  # the item's key, as DynamoDB has it
    origin: Origin

    @property
    def at(self) -> datetime:
        """When it was made, to the second."""
        return self.origin.at

    @property
    def sequence(self) -> str:
        """Its number in the stream."""
        return self.origin.sequence

    @property
    def changed(self) -> frozenset[str]:
        """The fields whose value is another; all that have one where the entity came or went."""
        old, new = self.old, self.new
        if self.kind == "modified" and (old is None or new is None):
            raise ImageMissing(f"A change of {self.entity.__name__}", self.origin.view)
        before: dict[str, Any] = {} if old is None else old.__dict__
        after: dict[str, Any] = {} if new is None else new.__dict__
        return frozenset(name for name in shape_of(self.entity).fields if before.get(name) != after.get(name))

    @property
    def key(self) -> PrimaryKey[E_co]:
        """The entity's key, to get it as it is now; it is there whatever the stream's view."""
        return key_of(self.entity, self.keys, self.new or self.old)

    def became(self, name: str, value: object) -> bool:
        """Return whether a field has a value now, and had another: `change.became("status", "closed")`."""
        if self.new is None or getattr(self.new, name) != value:
            return False
        if self.old is None and self.kind == "modified":
            raise ImageMissing(f"A change of {self.entity.__name__}", self.origin.view)
        return self.old is None or getattr(self.old, name) != value


@dataclass(frozen=True, slots=True)
class RawChange:
    """One change of an item that is of no entity here, or that its entity cannot read; images as they are."""

    kind: ChangeKind
    old: Item | None
    new: Item | None
    expired: bool
    keys: Item
    origin: Origin
    entity: type[Entity] | None = None  # the one that cannot read it
    problem: ItemUnreadable | None = field(default=None, compare=False)  # why not
    found: Entity | None = None  # what it is now, where only what it was cannot be read

    @property
    def at(self) -> datetime:
        """When it was made, to the second."""
        return self.origin.at

    @property
    def sequence(self) -> str:
        """Its number in the stream."""
        return self.origin.sequence


AnyChange: TypeAlias = EntityChange[Any] | RawChange


def changes_of(
    table: type[Table] | None,
    event: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    stream: str | None = None,
    shard: str | None = None,
) -> Iterator[AnyChange]:
    """Give the changes in an event of Lambda, an answer of GetRecords, one record or several, in their order.

    An item that was overwritten by one of another entity was removed as the one and inserted as the other,
    with one sequence number. `stream` and `shard` say where records are from that do not tell it. Without a table
    every change is one of an item, the guards' too.
    """
    for record in records_in(event):
        yield from _changes(table, record, stream, shard)


def records_in(event: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Return the records of whatever holds some."""
    if not isinstance(event, Mapping):
        return event
    if "dynamodb" in event:
        return (event,)
    found = event.get("Records")
    if isinstance(found, list | tuple):
        return found
    raise RecordMalformed("it has no Records")


def is_expiry(record: Mapping[str, Any]) -> bool:
    """Return whether a record tells of a deletion by time to live: by its deleter, which is the service."""
    identity = record.get("userIdentity") or {}
    who = identity.get("principalId", identity.get("PrincipalId"))
    kind = identity.get("type", identity.get("Type"))
    return kind == "Service" and who == _SERVICE


def key_of(entity: type[E], keys: Item, found: Entity | None = None) -> PrimaryKey[E]:
    """Return the key of an entity out of an item's, or of the entity where that is known."""
    shape = shape_of(entity)
    assert shape.key is not None, "what is in a table has a key"
    values: dict[str, Any] = {} if found is None else found.__dict__
    if found is None:
        for source in shape.key.key.sources:
            values = {**values, **read_source(source, keys)}
    absent = [name for name in shape.key.partition if values.get(name) is None]
    if absent:
        raise ItemUnreadable(
            entity.__name__, f"its key does not tell {', '.join(absent)}, and the stream has no image"
        )
    key: type[PrimaryKey[E]] = getattr(entity, shape.key.name)
    return key(**{name: values[name] for name in shape.key.partition})


def _changes(
    table: type[Table] | None, record: Mapping[str, Any], stream: str | None, shard: str | None
) -> Iterator[AnyChange]:
    try:
        told = record["dynamodb"]
        kind = _KINDS[record["eventName"]]
        origin = _origin(record, stream, shard)
        keys, old, new = told.get("Keys", {}), told.get("OldImage"), told.get("NewImage")
    except (KeyError, TypeError, ValueError) as error:
        raise RecordMalformed(f"a record lacks {error}") from error
    if isinstance(told.get("ApproximateCreationDateTime"), datetime):  # botocore's parsing: binary as bytes
        keys, old, new = (None if item is None else as_json(item) for item in (keys, old, new))
    expired = is_expiry(record)
    if table is None:
        yield RawChange(kind, old, new, expired, keys, origin)
        return
    if UNIQUE_ATTRIBUTE in (new or old or {}):
        return
    before, after = _side(table, keys, old), _side(table, keys, new)
    if old is not None and new is not None and before is not after:
        yield _change(before, "removed", old, None, expired, keys, origin)
        yield _change(after, "inserted", None, new, False, keys, origin)
    else:
        entity = after if new is not None else before
        yield _change(entity, kind, old, new, expired, keys, origin)


def _side(table: type[Table], keys: Item, image: Item | None) -> type[Entity] | None:
    return recognised(table, keys if image is None else image)


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
    told = record["dynamodb"]
    at = told.get("ApproximateCreationDateTime", 0)
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(float(at), UTC)
    return Origin(
        sequence_number(record),
        record.get("eventID") or "",
        moment,
        record.get("eventSourceARN") or stream,
        shard,
        told.get("StreamViewType"),
    )


def as_json(item: Mapping[str, Any]) -> Item:
    """Return an item as DynamoDB JSON where botocore's parsing has bytes in it."""
    return {name: _value_as_json(value) for name, value in item.items()}


def _value_as_json(value: Mapping[str, Any]) -> Value:
    ((tag, held),) = value.items()
    match tag:
        case "B" if isinstance(held, bytes):
            held = b64encode(held).decode()
        case "BS":
            held = [b64encode(each).decode() if isinstance(each, bytes) else each for each in held]
        case "L":
            held = [_value_as_json(each) for each in held]
        case "M":
            held = as_json(held)
        case _:
            pass
    return {tag: held}
