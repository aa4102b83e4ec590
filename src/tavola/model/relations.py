"""Collections: several entities that one query fetches together, as one typed object.

    class TicketFile(Collection, pk="TICKET#{ticket_id}"):
        ticket_id: str
        ticket: Ticket | None = found()
        events: list[Event] = found()

Its members share a partition: of the table, or of the index that `on` names.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
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

from tavola.keys import Template
from tavola.model.access import AccessPattern
from tavola.model.entity import Entity, names_near, shape_of
from tavola.model.errors import ModelError, QueryRefused
from tavola.model.shapes import KeyShape, Shape
from tavola.model.tables import Index, Table


@dataclass(frozen=True, slots=True)
class Member:
    """One attribute of a collection: which entity, and one or all of them."""

    name: str
    entity: type[Entity]
    many: bool
    key: KeyShape  # the key by which it is in the collection


class _Found:
    """What `found()` puts on a collection class."""


if TYPE_CHECKING:

    def found(*, init: Literal[False] = False) -> Any:
        """Return a member of a collection: what the query found of an entity."""
else:

    def found() -> _Found:
        """Return a member of a collection: what the query found of an entity."""
        return _Found()


@dataclass_transform(kw_only_default=True, field_specifiers=(found,))
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
        cls.__wanted__ = tuple(n for n in annotations if isinstance(cls.__dict__.get(n), _Found))
        cls.__parts__ = tuple(n for n in annotations if n not in cls.__wanted__)
        if not cls.__wanted__:
            raise ModelError(cls.__qualname__, "it has no members; write events: list[Event] = found()")
        cls.__pk__, cls.__sk__, cls.__on__, cls.__access__ = pk, sk, on, access
        for name in cls.__wanted__:
            delattr(cls, name)

    def __init__(self, **values: Any) -> None:
        parts = type(self).__parts__
        if values.keys() != set(parts):
            raise QueryRefused(
                type(self).__qualname__, f"it is asked with {', '.join(parts)}, not {', '.join(values)}"
            )
        self.__dict__.update(values)

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__qualname__}({told})"


_MEMBERS: dict[type[Collection], tuple[Member, ...]] = {}


def members_of(cls: type[Collection]) -> tuple[Member, ...]:
    """Return a collection's members, checked on first use: all in one partition, by one template."""
    known = cls.__dict__.get("__members__")
    if known is None:
        known = cls.__members__ = _bind(cls)  # type: ignore[attr-defined]
    assert isinstance(known, tuple)
    return known


def _bind(cls: type[Collection]) -> tuple[Member, ...]:
    try:
        hints = get_type_hints(cls, localns=names_near(cls))
    except NameError as error:
        raise ModelError(cls.__qualname__, f"{error}; is it declared or imported?") from error
    members = tuple(_member(cls, name, hints[name]) for name in cls.__wanted__)
    first = members[0]
    table = shape_of(first.entity).home
    pk = cls.__pk__ or _partition_text(first)
    for member in members:
        place = f"{cls.__qualname__}.{member.name}"
        if shape_of(member.entity).home is not table:
            raise ModelError(
                place, f"{member.entity.__name__} lives in another table than {first.entity.__name__}"
            )
        if not _same_partition(pk, _partition_text(member), table):
            raise ModelError(
                place, f"the partition of {member.entity.__name__} is {_partition_text(member)!r}, not {pk!r}"
            )
    fields = set(Template.parse(pk, table.settings.delimiter).fields)
    if fields != set(cls.__parts__):
        raise ModelError(
            cls.__qualname__, f"its partition is made of {', '.join(sorted(fields))}; declare just these"
        )
    return members


def _member(cls: type[Collection], name: str, hint: Any) -> Member:
    many = get_origin(hint) is list
    if not many and get_origin(hint) not in (Union, types.UnionType):
        raise ModelError(f"{cls.__qualname__}.{name}", "a member is list[Entity], or Entity | None")
    entity = next((a for a in get_args(hint) if isinstance(a, type) and issubclass(a, Entity)), None)
    if entity is None:
        raise ModelError(f"{cls.__qualname__}.{name}", "a member is list[Entity], or Entity | None")
    return Member(name, entity, many, _key_on(cls, name, shape_of(entity)))


def _key_on(cls: type[Collection], name: str, shape: Shape) -> KeyShape:
    assert shape.key is not None, "a view is no member"
    if not isinstance(cls.__on__, Index):
        return shape.key.key
    for key in shape.keys:
        if key.index is cls.__on__:
            return key
    raise ModelError(
        f"{cls.__qualname__}.{name}",
        f"{shape.entity.__name__} is not in {cls.__on__.label}; give it a pattern there",
    )


def _partition_text(member: Member) -> str:
    source = member.key.hash[0]
    return f"{{{source.fields[0]}}}" if source.template is None else source.template.source


def _same_partition(one: str, other: str, table: type[Table]) -> bool:
    """Return whether two templates make one text of the same values in order, whatever their fields' names."""
    delimiter = table.settings.delimiter
    return _outline(Template.parse(one, delimiter)) == _outline(Template.parse(other, delimiter))


def _outline(template: Template) -> list[str | tuple[str]]:
    return [each if isinstance(each, str) else (each.spec,) for each in template.segments]


def values_for(member: Member, pk_fields: tuple[str, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a collection's arguments under the names that a member's own partition has for them."""
    return dict(zip(member.key.hash[0].fields, (values[name] for name in pk_fields), strict=False))
