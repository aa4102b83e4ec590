"""Collections: several entities that one query fetches together, as one typed object.

    class TicketFile(Collection, pk="TICKET#{ticket_id}"):
        ticket_id: str
        ticket: Ticket | None = member()
        events: list[Event] = member()

Its members share a partition: of the table, or of the index that `on` names.
"""

from __future__ import annotations

import types
from inspect import get_annotations
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from tavola.keys import Template
from tavola.model.access import AccessPattern
from tavola.model.entity import Entity, entities_in_module, shape_of
from tavola.model.errors import ModelError, QueryRefused
from tavola.model.part_types import check_part_types
from tavola.model.shapes import EntityShape, KeyShape
from tavola.model.tables import Index, Table
from tavola.model.views import is_projected, is_recoverable


class CollectionMember(Struct, frozen=True):
    """One attribute of a collection: which entity, and one or all of them."""

    name: str
    entity: type[Entity]
    many: bool
    key: KeyShape  # the key by which it is in the collection


class _MemberField:
    """What `member()` puts on a collection class."""


if TYPE_CHECKING:

    def member(*, init: Literal[False] = False) -> Any:
        """Declare a member of a collection: a list of entities, or one that may be None."""
else:

    def member() -> _MemberField:
        """Declare a member of a collection: a list of entities, or one that may be None."""
        return _MemberField()


@dataclass_transform(kw_only_default=True, field_specifiers=(member,))
class Collection:
    """An item collection; subclass it with the partition's arguments and the members."""

    __pk__: ClassVar[str | None] = None
    __sk__: ClassVar[str] = ""
    __on__: ClassVar[Index | type[Table] | None] = None
    __access__: ClassVar[AccessPattern | None] = None
    __parts__: ClassVar[tuple[str, ...]] = ()
    __wanted__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        pk: str | None = None,
        sk: str = "",
        on: Index | type[Table] | None = None,
        access: AccessPattern | None = None,
    ) -> None:
        """Declare a collection; `pk` may be left to its members, `sk` narrows it to sort keys with a prefix."""
        super().__init_subclass__()
        annotations = get_annotations(cls)
        cls.__wanted__ = tuple(n for n in annotations if isinstance(cls.__dict__.get(n), _MemberField))
        cls.__parts__ = tuple(n for n in annotations if n not in cls.__wanted__)
        if not cls.__wanted__:
            raise ModelError(cls.__qualname__, "it has no members; write events: list[Event] = member()")
        target: Any = on
        if not (
            target is None
            or isinstance(target, Index)
            or (isinstance(target, type) and issubclass(target, Table))
        ):
            raise ModelError(
                cls.__qualname__, f"on={target!r} is not an index; write on=Table.index, or remove it"
            )
        if access is not None:
            access.check(cls.__qualname__)
            if access.consistent and isinstance(on, Index) and not on.local:
                raise ModelError(
                    cls.__qualname__,
                    f"{on.label} is a global index, which does not support consistent reads; remove consistent=True",
                )
        cls.__pk__, cls.__sk__, cls.__on__, cls.__access__ = pk, sk, on, access
        for name in cls.__parts__:
            if name in cls.__dict__:
                raise ModelError(
                    cls.__qualname__,
                    f"{name} has a default, but a partition needs all its arguments; remove the default",
                )
        for name in cls.__wanted__:
            delattr(cls, name)
        if _hints_of(cls) is not None:
            members_of(cls)

    def __init__(self, **values: Any) -> None:
        place, parts = type(self).__qualname__, type(self).__parts__
        if values.keys() != set(parts):
            raise QueryRefused(
                place,
                f"its arguments are {', '.join(parts) or 'nothing'}, not {', '.join(values) or 'nothing'}",
            )
        absent = [name for name, value in values.items() if value is None]
        if absent:
            raise QueryRefused(place, f"{absent[0]} is None, which cannot be part of a key; use a value")
        self.__dict__.update(values)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).__wanted__:
                raise QueryRefused(
                    type(self).__qualname__,
                    f"{name} is not there before it was asked for; take it from db.collect(…)",
                )
            raise AttributeError(f"{type(self).__qualname__} has no member {name!r}")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__qualname__}({values})"


def members_of(cls: type[Collection]) -> tuple[CollectionMember, ...]:
    """Return a collection's members, checked: all in one partition, by one template.

    They are checked when the collection is declared, or on first use if an entity is declared later.
    """
    known = cls.__dict__.get("__members__")
    if known is None:
        known = cls.__members__ = _bind(cls)  # type: ignore[attr-defined]  # kept by this function alone
    assert isinstance(known, tuple)
    return known


def _hints_of(cls: type[Collection]) -> dict[str, Any] | None:
    """Return the types of parts and members, None if one of them is not known yet."""
    try:
        return get_type_hints(cls, localns=entities_in_module(cls))
    except NameError:
        return None


def _bind(cls: type[Collection]) -> tuple[CollectionMember, ...]:
    hints = _hints_of(cls)
    if hints is None:
        annotations = ", ".join(str(get_annotations(cls)[name]) for name in cls.__wanted__)
        raise ModelError(
            cls.__qualname__, f"one of {annotations} was not found; check that it is declared or imported"
        )
    members = tuple(_member(cls, name, hints[name]) for name in cls.__wanted__)
    first = members[0]
    table = shape_of(first.entity).home
    pk = cls.__pk__ or _partition_text(first)
    seen: dict[type[Entity], str] = {}
    for member in members:
        place = f"{cls.__qualname__}.{member.name}"
        entity = member.entity.__name__
        if member.entity in seen:
            raise ModelError(
                place, f"{seen[member.entity]} already contains every {entity}; declare one member per entity"
            )
        seen[member.entity] = member.name
        if shape_of(member.entity).home is not table:
            raise ModelError(place, f"{entity} is in another table than {first.entity.__name__}; remove it")
        if not _same_partition(pk, _partition_text(member), table):
            raise ModelError(
                place,
                f"the partition of {entity} is {_partition_text(member)!r}, not {pk!r}; remove pk, or use "
                "the same one",
            )
        _check_sort_key(cls, member)
        _check_held(place, member)
    fields = Template.parse(pk, table.settings.delimiter).fields
    if set(fields) != set(cls.__parts__):
        raise ModelError(
            cls.__qualname__,
            f"its partition key depends on {', '.join(sorted(fields))}; declare exactly these",
        )
    owned = shape_of(first.entity).fields
    renamed = {name: owned[own] for name, own in zip(fields, first.key.hash[0].fields, strict=True)}
    check_part_types(
        cls.__qualname__, first.entity, renamed, {name: hints[name] for name in cls.__parts__}, {}
    )
    return members


def _member(cls: type[Collection], name: str, hint: Any) -> CollectionMember:
    place = f"{cls.__qualname__}.{name}"
    many = get_origin(hint) is list
    alternatives = [a for a in get_args(hint) if a is not type(None)]
    optional = get_origin(hint) in (Union, types.UnionType) and len(alternatives) < len(get_args(hint))
    if (
        len(alternatives) != 1
        or not (isinstance(alternatives[0], type) and issubclass(alternatives[0], Entity))
        or many == optional
    ):
        raise ModelError(place, "a member is list[Entity], or Entity | None if there is at most one")
    shape = shape_of(alternatives[0])
    if shape.key is None:
        raise ModelError(
            place, f"{alternatives[0].__name__} has no Key, so it has no items; use the entity itself"
        )
    key = _key_on(cls, name, shape)
    if len(key.hash) > 1 or key.shards is not None:
        why = "is sharded" if key.shards is not None else f"has {len(key.hash)} attributes"
        raise ModelError(
            place,
            f"the partition of {alternatives[0].__name__} {why}, but a collection is one partition; "
            "use a query instead",
        )
    return CollectionMember(name, alternatives[0], many, key)


def _check_sort_key(cls: type[Collection], member: CollectionMember) -> None:
    place, entity = f"{cls.__qualname__}.{member.name}", member.entity.__name__
    source = next(iter(member.key.range), None)
    if cls.__sk__:
        if source is None or source.tag != "S":
            raise ModelError(
                place, f"sk={cls.__sk__!r} is a prefix, but the sort key of {entity} is not a string"
            )
        prefix = "" if source.template is None else source.template.literal_prefix
        if not (prefix.startswith(cls.__sk__) or cls.__sk__.startswith(prefix)):
            raise ModelError(
                place,
                f"sort keys of {entity} begin with {prefix!r}, so none matches sk={cls.__sk__!r}; shorten "
                "the prefix, or remove the member",
            )
    single = source is None or (source.template is not None and source.template.constant is not None)
    if not member.many and member.key.index is None and not single:
        raise ModelError(
            place, f"a partition can contain several {entity}; write {member.name}: list[{entity}]"
        )


def _check_held(place: str, member: CollectionMember) -> None:
    """Refuse a member whose fields its index does not project completely."""
    index, owner = member.key.index, shape_of(member.entity)
    if index is None:
        return
    ttl = owner.home.settings.ttl
    absent = sorted(
        field.name
        for field in owner.fields.values()
        if not is_recoverable(field, index, member.key, owner)
        or (field.attribute == ttl and not is_projected(field, index))
    )
    if absent:
        raise ModelError(
            place,
            f"{index.label} does not project {', '.join(absent)} of {member.entity.__name__}; project them",
        )


def _key_on(cls: type[Collection], name: str, shape: EntityShape) -> KeyShape:
    assert shape.key is not None
    if not isinstance(cls.__on__, Index):
        return shape.key.key
    for key in shape.keys:
        if key.index is cls.__on__:
            return key
    raise ModelError(
        f"{cls.__qualname__}.{name}",
        f"{shape.entity.__name__} is not in {cls.__on__.label}; declare a query on that index",
    )


def _partition_text(member: CollectionMember) -> str:
    source = member.key.hash[0]
    return f"{{{source.fields[0]}}}" if source.template is None else source.template.source


def _same_partition(one: str, other: str, table: type[Table]) -> bool:
    """Return whether two templates make one text of the same values in order, whatever their fields' names."""
    delimiter = table.settings.delimiter
    return _outline(Template.parse(one, delimiter)) == _outline(Template.parse(other, delimiter))


def _outline(template: Template) -> list[str | tuple[str]]:
    return [segment if isinstance(segment, str) else (segment.spec,) for segment in template.segments]
