"""Shapes: what a declaration comes to, as data that the client and the tools read.

A shape knows how an entity's values become the attributes of its keys, from which fields each key is made,
and when an item is in an index at all. It holds no item and asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import force_setattr
from pydantic import ValidationError

from tavola.keys import BoundTemplate, KeyPartMissing
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.model.checks import Check, summarize_errors
from tavola.model.converters import Converter
from tavola.model.errors import ItemUnreadable, ModelError, ValueNotStorable
from tavola.model.tables import Index, Shards, Table
from tavola.values import Item, Value

if TYPE_CHECKING:
    from tavola.model.access import AccessPattern, WritePattern


SHARD = "__shard__"  # the field of a sharded template, whose name no entity can have
VERSION_ATTRIBUTE = "_version"  # of an item whose entity's schema is past its first version


class FieldShape:
    """A field of an entity: its name in Python and in the table, and how its values are written."""

    __slots__ = (
        "__dict__", "absent", "annotation", "attribute", "converter", "decode", "default", "encode", "entity",
        "lock", "name", "nullable", "required", "unique", "within",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        attribute: str,
        annotation: Any,
        converter: Converter,
        *,
        required: bool,
        lock: bool = False,
        unique: bool = False,
        within: tuple[str, ...] = (),
        default: Any = None,
    ) -> None:
        self.name = name
        self.entity: Any = None  # whose it is, once that is known
        self.attribute = attribute
        self.annotation = annotation
        self.converter = converter
        self.encode: Callable[[Any], Value] = converter.encode
        self.decode: Callable[[Value], Any] = converter.decode
        self.nullable = converter.nullable
        self.absent = converter.absent
        self.required = required
        self.lock = lock
        self.unique = unique
        self.within = within
        self.default = (
            default  # what an item reads as that lacks it; None also where that is made when asked for
        )

    @property
    def place(self) -> str:
        """How errors name it."""
        return self.name if self.entity is None else f"{self.entity.__name__}.{self.name}"

    @cached_property
    def _check(self) -> Check:
        return Check(self.entity, self.name, self.annotation)

    @cached_property
    def hidden(self) -> bool:
        """Whether its values are kept out of messages and of reprs (`attr(repr=False)`)."""
        fields = getattr(self.entity, "__pydantic_fields__", {})
        return self.name in fields and not fields[self.name].repr

    def show(self, value: Any) -> str:
        """Return a value as messages tell it."""
        return "…" if self.hidden else repr(value)

    @property
    def bare(self) -> bool:
        """Whether its values are all that its type has, so that whoever knows the type need not ask."""
        return self._check.bare

    @cached_property
    def has_default_factory(self) -> bool:
        """Whether its default is made each time, so that nobody knows what an absent one will read as."""
        fields = getattr(self.entity, "__pydantic_fields__", {})
        return self.name in fields and fields[self.name].default_factory is not None

    @property
    def is_required(self) -> bool:
        """Whether an item that lacks it cannot be read."""
        return self.required and not self.nullable and self.absent is None

    def new_default(self, others: dict[str, Any]) -> Any:
        """Return its default for a new item, None where it has none; `others` are fields that are known."""
        if not self.has_default_factory:
            return self.default
        return self.entity.__pydantic_fields__[self.name].get_default(
            call_default_factory=True, validated_data=others
        )

    def validate(self, value: Any) -> Any:
        """Return a value as an entity would hold it; refuse one that no entity could."""
        if self._check.bare:
            return value
        try:
            return self._check(value)
        except ValidationError as error:
            raise ValueNotStorable(
                self.place, f"{value!r} does not fit it: {summarize_errors(error)}"
            ) from error

    def coerce_operand(self, value: Any) -> Any:
        """Return a value to be compared with: as an entity would hold it, or as it is where none could."""
        if self._check.bare:
            return value
        try:
            return self._check(value)
        except ValidationError:
            return value

    def value_in(self, item: Item) -> Any:
        """Return the field's value in an item as Python has it; its default if it is absent."""
        stored = item.get(self.attribute)
        if stored is None:
            return self.default
        try:
            return self._check(self.decode(stored))
        except ValidationError as error:
            raise ItemUnreadable(
                self.place, f"a stored item does not fit it: {summarize_errors(error)}"
            ) from error

    def accepts(self, value: Any) -> bool:
        """Return whether a value, or an enum's plain one, is one that it can have."""
        try:
            self._check(value)
        except ValidationError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<Field {self.name}>"


def enum_value(value: Any) -> Any:
    """Return an enum's member as its value; anything else as it is. Keys are made of plain values."""
    return value.value if isinstance(value, Enum) else value


class KeySource(Struct, frozen=True):
    """Where one key attribute comes from: a field itself, or a template over fields."""

    attribute: str
    fields: tuple[str, ...]
    tag: str  # S, N or B
    field: FieldShape | None  # it is this field's own attribute
    template: BoundTemplate | None

    def value(self, values: Mapping[str, Any]) -> Value | None:
        """Return the attribute for an entity's values, None where one that it needs is absent."""
        if self.field is not None:
            found = values.get(self.field.name)
            return None if found is None else self.field.encode(found)
        assert self.template is not None
        for name in self.fields:
            if isinstance(values.get(name), Enum):
                values = {each: enum_value(values.get(each)) for each in self.fields}
                break
        try:
            return {"S": self.template.render(values)}
        except KeyPartMissing:
            return None


class KeyShape(Struct, frozen=True):
    """A key of an entity, in its table or in an index: its attributes, and what they depend on."""

    index: Index | None  # None: the table's own
    hash: tuple[KeySource, ...]
    range: tuple[KeySource, ...]
    sparse: bool
    members: tuple[tuple[str, tuple[Any, ...]], ...]  # only items whose field is one of the values are in
    shards: Shards | None
    fields: frozenset[str]  # every field that decides about the key
    written: tuple[KeySource, ...]  # the attributes that Tavola writes: no fields of their own, no table keys
    needed: frozenset[str] = frozenset()  # derived: the fields without which there is no key

    def __post_init__(self) -> None:
        names = {name for source in self.sources for name in source.fields if name != SHARD}
        names |= set(() if self.shards is None else self.shards.of)
        force_setattr(self, "needed", frozenset(names))

    @property
    def sources(self) -> tuple[KeySource, ...]:
        """The key's attributes in order."""
        return self.hash + self.range

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether an item with these values is a member."""
        return all(enum_value(values.get(name)) in allowed for name, allowed in self.members)


class Pattern(Struct, frozen=True):
    """A key or query class, compiled: what it asks with and what it reads."""

    name: str
    owner: type[Any]  # an Entity
    key: KeyShape
    partition: tuple[str, ...]  # the arguments that fix the partition
    sorts: tuple[str, ...]  # the parts of the sort key after those, in order
    access: AccessPattern | None
    hydrate: bool
    result: str  # the entity that comes back, by name

    @property
    def place(self) -> str:
        """How errors name it."""
        return f"{self.owner.__name__}.{self.name}"


class Unique(Struct, frozen=True):
    """A field whose value only one item of an entity may have, among those alike in other fields."""

    entity: str  # the entity's tag
    field: str
    within: tuple[str, ...]
    template: BoundTemplate  # of the guards' keys
    long: BoundTemplate  # the same for values that no key could hold

    @property
    def fields(self) -> frozenset[str]:
        """The fields that decide about the guard's key."""
        return frozenset((self.field, *self.within))

    def text(self, values: Mapping[str, Any]) -> str | None:
        """Return the key of the guard for an entity's values; None where one is absent: nobody has None."""
        members: dict[str, Any] = {"entity": self.entity, "unique": self.field}
        for number, name in enumerate((*self.within, self.field)):
            value = enum_value(values.get(name))
            if value is None:
                return None
            members[f"part{number}"] = value
        text = self.template.render(members)
        if len(text.encode()) <= RANGE_KEY_BYTES_MAX:
            return text
        return self.long.render({**members, "digest": sha256(text.encode()).hexdigest()})


class Shape(Struct):
    """An entity, compiled."""

    name: str  # the tag of its items
    entity: type[Any]  # an Entity
    table: type[Table] | None  # None: it is a view, read from an index
    fields: dict[str, FieldShape]
    key: Pattern | None
    patterns: dict[str, Pattern]
    version: int
    upgrades: dict[int, Callable[[dict[str, Any]], dict[str, Any]]]
    policy: str  # of updates that must know more than they are told: read or refuse
    writes: tuple[WritePattern, ...]
    immutable: bool = False  # its items are created, and never written again
    keys: tuple[KeyShape, ...] = ()  # of the indexes, each once
    lock: FieldShape | None = None
    uniques: tuple[Unique, ...] = ()
    by_attribute: dict[str, FieldShape] = field(default_factory=dict)
    absences: tuple[
        tuple[str, Callable[[], Any] | None], ...
    ] = ()  # fields that read otherwise than their default
    told_by_keys: tuple[
        tuple[str, tuple[KeySource, ...]], ...
    ] = ()  # fields that an item which lacks them has in its keys
    readers: tuple[tuple[str, str, Callable[[Value], Any]], ...] = ()  # derived: name, attribute, decoder

    def __post_init__(self) -> None:
        for found in self.fields.values():
            found.entity = self.entity
        self.readers = tuple((name, each.attribute, each.decode) for name, each in self.fields.items())

    def read(self, item: Mapping[str, Value]) -> dict[str, Any]:
        """Return the fields that stand in an item under their own attributes, as pydantic then validates them."""
        values: dict[str, Any] = {}
        for name, attribute, decode in self.readers:
            stored = item.get(attribute)
            if stored is not None:
                values[name] = decode(stored)
        return values

    @property
    def key_fields(self) -> frozenset[str]:
        """The fields of the table's key."""
        assert self.key is not None
        return self.key.key.fields

    @property
    def home(self) -> type[Table]:
        """The entity's table; an error for a view."""
        if self.table is None or self.key is None:
            raise ModelError(
                self.entity.__name__,
                "it has no table and no Key, so it can only be what a query returns; "
                "give it table=… and a PrimaryKey class",
            )
        return self.table

    def primary(self, values: Mapping[str, Any]) -> Item:
        """Return the table key of an entity with these values."""
        assert self.key is not None
        item: Item = {}
        key = self.key.key
        if key.shards is not None:
            values = {**values, SHARD: shard_of(key.shards, self, values)}
        for source in key.sources:
            found = source.value(values)
            if found is None:
                absent = [name for name in source.fields if values.get(name) is None]
                raise ModelError(f"{self.entity.__name__}.Key", f"{', '.join(absent)} must have a value")
            item[source.attribute] = found
        return item

    def index_attributes(
        self, key: KeyShape, values: Mapping[str, Any], primary: Item, chance: Callable[[int], int]
    ) -> Item | None:
        """Return what an index's key is for an entity's values, None if the item is not in the index."""
        if key.members and not key.holds(values):
            return None
        if key.shards is not None and key.shards.by != "time":
            shard = (
                chance(key.shards.count)
                if key.shards.by == "random"
                else shard_of(key.shards, self, values, primary)
            )
            values = {**values, SHARD: shard}
        item: Item = {}
        for source in key.written:
            found = source.value(values)
            if found is None:
                return None
            item[source.attribute] = found
        if key.sparse and any(values.get(name) is None for name in key.needed):
            return None
        return item


def shard_of(shards: Shards, shape: Shape, values: Mapping[str, Any], primary: Item | None = None) -> int:
    """Return the shard of an item by its key, or by the fields that the shards name."""
    if shards.of or primary is None:
        names = shards.of or tuple(sorted(shape.key_fields))
        identity = "\x00".join(
            f"{name}={_stored_text(shape.fields[name], values.get(name))}" for name in names
        )
    else:
        identity = "\x00".join(next(iter(value.values())) for value in primary.values())
    return crc32(identity.encode()) % shards.count


def _stored_text(field: FieldShape, value: Any) -> str:
    """Return a value as it is stored, which is one text for equal values: moments of two zones, 1 and 1.0."""
    return "" if value is None else str(next(iter(field.encode(value).values()), ""))
