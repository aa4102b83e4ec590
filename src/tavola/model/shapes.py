"""Shapes: compiled declarations, as data that the client and the tools read.

A shape knows how an entity's values become key attributes, which fields each key is made of, and whether an item is in
an index. It holds no items and sends no requests.

A `Check` validates one value as pydantic would inside the entity: the constraints of its type, normalizing types, and the
validators of the field. Validators of the whole entity, and those that use other fields, cannot judge a single value; there only
the type decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import force_setattr
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from tavola.keys import BoundTemplate, KeyPartMissing
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.model.converters import Converter
from tavola.model.converters.records import annotation_of
from tavola.model.errors import ItemUnreadable, ModelError, ValueNotStorable
from tavola.model.tables import Index, Shards, Table
from tavola.values import Item, Value

if TYPE_CHECKING:
    from tavola.model.access import AccessPattern, WritePattern


class EntityBase(BaseModel):
    """An entity as the lower modules of this package know it: a pydantic model with a shape; users subclass `Entity`."""

    # Base classes have no fields to validate; building their validators would load pydantic's plugins at import.
    model_config = ConfigDict(defer_build=True)

    __shape__: ClassVar[Any]  # an EntityShape, which refers to this class
    __options__: ClassVar[dict[str, Any]] = {}


SHARD = "__shard__"  # the shard number's field in a template; no entity can have a field of this name
VERSION_ATTRIBUTE = "_version"  # set on items of entities with a schema version above 1


class FieldShape:
    """A field of an entity: its name in Python and in the table, and how its values are encoded."""

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
        self.entity: Any = None  # set by `Shape`
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
        # The value if the attribute is absent; None if a factory makes it.
        self.default = default

    @property
    def place(self) -> str:
        """The name in error messages."""
        return self.name if self.entity is None else f"{self.entity.__name__}.{self.name}"

    @cached_property
    def _check(self) -> Check:
        return Check(self.entity, self.name, self.annotation)

    @cached_property
    def hidden(self) -> bool:
        """Whether its values are hidden in messages and reprs (`attr(repr=False)`)."""
        fields = getattr(self.entity, "__pydantic_fields__", {})
        return self.name in fields and not fields[self.name].repr

    def show(self, value: Any) -> str:
        """Return a value as messages show it."""
        return "…" if self.hidden else repr(value)

    @property
    def bare(self) -> bool:
        """Whether its type has no further constraints, so that every value of the type is valid."""
        return self._check.bare

    @cached_property
    def has_default_factory(self) -> bool:
        """Whether its default comes from a factory, so that it is not known in advance."""
        fields = getattr(self.entity, "__pydantic_fields__", {})
        return self.name in fields and fields[self.name].default_factory is not None

    @property
    def is_required(self) -> bool:
        """Whether an item without it cannot be read."""
        return self.required and not self.nullable and self.absent is None

    def new_default(self, others: dict[str, Any]) -> Any:
        """Return its default for a new item, None if it has none; `others` are the fields known so far."""
        if not self.has_default_factory:
            return self.default
        return self.entity.__pydantic_fields__[self.name].get_default(
            call_default_factory=True, validated_data=others
        )

    def validate(self, value: Any) -> Any:
        """Return a value as an entity would hold it; raise ValueNotStorable if it is invalid."""
        if self._check.bare:
            return value
        try:
            return self._check(value)
        except ValidationError as error:
            raise ValueNotStorable(
                self.place, f"{value!r} does not fit it: {summarize_errors(error)}"
            ) from error

    def coerce_operand(self, value: Any) -> Any:
        """Return an operand as an entity would hold it; an invalid one is returned unchanged."""
        if self._check.bare:
            return value
        try:
            return self._check(value)
        except ValidationError:
            return value

    def value_in(self, item: Item) -> Any:
        """Return the field's Python value in an item; its default if it is absent."""
        stored = item.get(self.attribute)
        if stored is None:
            return self.default
        try:
            return self._check(self.decode(stored))
        except ValidationError as error:
            raise ItemUnreadable(
                self.place, f"a stored item does not match it: {summarize_errors(error)}"
            ) from error

    def accepts(self, value: Any) -> bool:
        """Return whether a value (for an enum also its plain value) is valid."""
        try:
            self._check(value)
        except ValidationError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<Field {self.name}>"


def enum_value(value: Any) -> Any:
    """Return the value of an enum member, and anything else unchanged. Keys are made of plain values."""
    return value.value if isinstance(value, Enum) else value


class KeySource(Struct, frozen=True):
    """Where one key attribute comes from: a field itself, or a template over fields."""

    attribute: str
    fields: tuple[str, ...]
    tag: str  # S, N or B
    field: FieldShape | None  # set if the key attribute is this field's own
    template: BoundTemplate | None

    def value(self, values: Mapping[str, Any]) -> Value | None:
        """Return the key attribute for an entity's values; None if a field it needs is absent."""
        if self.field is not None:
            field_value = values.get(self.field.name)
            return None if field_value is None else self.field.encode(field_value)
        assert self.template is not None
        for name in self.fields:
            if isinstance(values.get(name), Enum):
                values = {field_name: enum_value(values.get(field_name)) for field_name in self.fields}
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
    # Only items whose field has one of these values are in the index
    members: tuple[tuple[str, tuple[Any, ...]], ...]
    shards: Shards | None
    fields: frozenset[str]  # every field that the key depends on
    written: tuple[KeySource, ...]  # the attributes that Tavola adds: neither fields nor table keys
    sources: tuple[KeySource, ...] = ()  # derived: the key's attributes in order
    needed: frozenset[str] = frozenset()  # derived: the fields that the key needs

    def __post_init__(self) -> None:
        force_setattr(self, "sources", self.hash + self.range)
        names = {name for source in self.sources for name in source.fields if name != SHARD}
        names |= set(() if self.shards is None else self.shards.of)
        force_setattr(self, "needed", frozenset(names))

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether an item with these values is in the index, as far as `members` decides."""
        return all(enum_value(values.get(name)) in allowed for name, allowed in self.members)


class Pattern(Struct, frozen=True):
    """A compiled key or query class: its arguments, and the key it reads."""

    name: str
    owner: type[Any]  # an Entity
    key: KeyShape
    partition: tuple[str, ...]  # the arguments that fix the partition
    sorts: tuple[str, ...]  # the fields of the sort key, in order
    access: AccessPattern | None
    hydrate: bool
    result: str  # name of the entity that is returned

    @property
    def place(self) -> str:
        """The name in error messages."""
        return f"{self.owner.__name__}.{self.name}"


class Unique(Struct, frozen=True):
    """A field whose value is unique among an entity's items, or among those with equal `within` fields."""

    entity: str  # the entity's tag
    field: str
    within: tuple[str, ...]
    template: BoundTemplate  # of the keys of guard items
    long: BoundTemplate  # the same for values too long for a key, with a digest

    @property
    def fields(self) -> frozenset[str]:
        """The fields that the guard's key depends on."""
        return frozenset((self.field, *self.within))

    def text(self, values: Mapping[str, Any]) -> str | None:
        """Return the key of the guard item for an entity's values; None if a field is absent, because None need not be unique."""
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


class EntityShape(Struct):
    """A compiled entity."""

    name: str  # the tag of its items
    entity: type[Any]  # an Entity
    table: type[Table] | None  # None: a view, only read from an index
    fields: dict[str, FieldShape]
    key: Pattern | None
    patterns: dict[str, Pattern]
    version: int
    upgrades: dict[int, Callable[[dict[str, Any]], dict[str, Any]]]
    policy: str  # for updates that lack fields of an index key: read or refuse
    writes: tuple[WritePattern, ...]
    immutable: bool = False  # items are created, but never updated
    keys: tuple[KeyShape, ...] = ()  # the distinct keys of indexes
    lock: FieldShape | None = None
    uniques: tuple[Unique, ...] = ()
    by_attribute: dict[str, FieldShape] = field(default_factory=dict)
    # Fields whose value, if absent, is not their default: made by a factory, or None without one.
    absent_values: tuple[tuple[str, Callable[[], Any] | None], ...] = ()
    # Fields that can be read from key attributes if an item has no attribute of their own.
    fields_in_keys: tuple[tuple[str, tuple[KeySource, ...]], ...] = ()
    readers: tuple[tuple[str, str, Callable[[Value], Any]], ...] = ()  # derived: name, attribute, decoder

    def __post_init__(self) -> None:
        for field_shape in self.fields.values():
            field_shape.entity = self.entity
        self.readers = tuple((name, shape.attribute, shape.decode) for name, shape in self.fields.items())

    def read(self, item: Mapping[str, Value]) -> dict[str, Any]:
        """Return the decoded fields that an item has as attributes; pydantic has not validated them yet."""
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
        """The entity's table; raises ModelError for a view."""
        if self.table is None or self.key is None:
            raise ModelError(
                self.entity.__name__,
                "it has no table and no Key, so it can only be returned by a query; add table=… and a "
                "PrimaryKey class",
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
            key_value = source.value(values)
            if key_value is None:
                absent = [name for name in source.fields if values.get(name) is None]
                raise ModelError(f"{self.entity.__name__}.Key", f"{', '.join(absent)} must have a value")
            item[source.attribute] = key_value
        return item

    def index_attributes(
        self, key: KeyShape, values: Mapping[str, Any], primary: Item, chance: Callable[[int], int]
    ) -> Item | None:
        """Return an index's key attributes for an entity's values; None if the item is not in the index."""
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
            key_value = source.value(values)
            if key_value is None:
                return None
            item[source.attribute] = key_value
        if key.sparse and any(values.get(name) is None for name in key.needed):
            return None
        return item


def shard_of(
    shards: Shards, shape: EntityShape, values: Mapping[str, Any], primary: Item | None = None
) -> int:
    """Return the shard of an item, from its key or from the fields that `shards.of` names."""
    if shards.of or primary is None:
        names = shards.of or tuple(sorted(shape.key_fields))
        identity = "\x00".join(
            f"{name}={_stored_text(shape.fields[name], values.get(name))}" for name in names
        )
    else:
        identity = "\x00".join(next(iter(value.values())) for value in primary.values())
    return crc32(identity.encode()) % shards.count


def _stored_text(field: FieldShape, value: Any) -> str:
    """Return a value's stored text, the same for equal values, such as 1 and 1.0, or one time in two zones."""
    return "" if value is None else str(next(iter(field.encode(value).values()), ""))


_SCALARS = frozenset({"bool", "bytes", "date", "datetime", "decimal", "int", "str", "timedelta", "uuid"})
_CHOICES = frozenset({"enum", "literal"})
_SILENT = frozenset({"allow_inf_nan", "metadata", "microseconds_precision", "ref", "serialization", "type"})
_SHAPELESS = frozenset({"extra_fields_behavior", "title", "validate_assignment"})  # settings of no one field


class Check:
    """The validation of one field, made once."""

    __slots__ = ("_alone", "_annotation", "_validator", "bare")

    def __init__(self, entity: Any, name: str, annotation: Any) -> None:
        fields = getattr(entity, "__pydantic_fields__", {})
        self._annotation = annotation_of(fields[name]) if name in fields else annotation
        self._alone: TypeAdapter[Any] | None = None
        self._validator: SchemaValidator | TypeAdapter[Any]
        schema, config, definitions = _schema_of(entity, name)
        # Whether the type alone decides, so that pydantic need not be called.
        self.bare = schema is not None and _is_bare(schema, config)
        if schema is None:
            self._validator = self._adapter()
        else:
            definitions_schema = {"type": "definitions", "schema": schema, "definitions": definitions}
            self._validator = SchemaValidator(definitions_schema if definitions else schema, config)

    def __call__(self, value: Any) -> Any:
        """Return a value as an entity would hold it; pydantic's ValidationError for one that none could."""
        try:
            return self._validator.validate_python(value)
        except ValidationError:
            raise
        except Exception:  # noqa: BLE001 - whatever a validator raises that misses the other fields
            return self._adapter().validate_python(value)

    def _adapter(self) -> TypeAdapter[Any]:
        if self._alone is None:
            self._alone = TypeAdapter(self._annotation)
        return self._alone


def _schema_of(entity: Any, name: str) -> tuple[Any, Any, list[Any]]:
    """Return a field's schema in its entity's, without the default, the settings around it, and what it refers to."""
    schema = getattr(entity, "__pydantic_core_schema__", None)
    config: Any = None
    definitions: list[Any] = []
    while isinstance(schema, Mapping) and schema["type"] != "model-fields":
        if schema["type"] == "definitions":
            definitions = schema["definitions"]
        if schema["type"] == "model":
            config = schema.get("config")
        if schema["type"] == "definition-ref":
            schema = next(
                (definition for definition in definitions if definition.get("ref") == schema["schema_ref"]),
                None,
            )
        else:
            schema = schema.get("schema")
    if not isinstance(schema, Mapping):
        return None, None, []
    field: Any = schema["fields"][name]["schema"]
    while field["type"] == "default":
        field = field["schema"]
    return field, config, definitions


def _is_bare(schema: Mapping[str, Any], config: Mapping[str, Any] | None) -> bool:
    if config is not None and not config.keys() <= _SHAPELESS:
        return False
    if schema["type"] == "nullable":
        schema = schema["schema"]
    kind = schema["type"]
    return kind in _CHOICES or (kind in _SCALARS and schema.keys() <= _SILENT)


def summarize_errors(error: ValidationError) -> str:
    """Return what pydantic has against a value, in a line."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, detail["loc"])), detail["msg"])))
        for detail in error.errors()[:3]
    )
