"""Queries: each key and access pattern of an entity as a small class nested in it.

    class ByCustomer(Query["Ticket"], on=Desk.gsi1, pk="CUSTOMER#{customer_id}", sk="{status}#{created_at}"):
        customer_id: str
        status: Sort[Status] = sort()
        created_at: Sort[datetime] = sort()

    Ticket.ByCustomer(customer_id="c1").status.eq("open").created_at.gte(monday)

Arguments fix the partition; sort parts are given from left to right, each with `eq` until one with a range. The class is only
declared here; its entity compiles it when the entity is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, dataclass_transform, get_args

from msgspec import Struct

from tavola.model.errors import ModelError, QueryRefused
from tavola.model.selections import Selection
from tavola.model.shapes import EntityBase, FieldShape, Pattern
from tavola.model.sort_parts import Rest, SortPart, sort
from tavola.model.tables import Index, Shards, Table

if TYPE_CHECKING:
    from tavola.model.access import AccessPattern


E_co = TypeVar("E_co", bound="EntityBase", covariant=True)

Template = str | tuple[str, ...] | None

_TAKEN = frozenset({"where"})  # what a question has besides its parts


class KeyDeclaration(Struct, frozen=True):
    """A key or query class as declared, before its entity is compiled."""

    on: Any  # an Index, the entity's Key class, a Table, or None
    pk: Template
    sk: Template
    shards: Shards | None
    sparse: bool
    members: Mapping[str, Any]
    hydrate: bool
    access: AccessPattern | None
    result: str
    partition: tuple[str, ...]
    sorts: tuple[str, ...]
    types: Mapping[str, Any]  # the annotation of each part
    scope: Mapping[str, Any]  # names that only these annotations know


class _Declaration:
    """What keys and queries have in common: arguments by keyword, fixed when they are made."""

    __declared__: ClassVar[KeyDeclaration]
    __pattern__: ClassVar[Pattern]
    __compile__: ClassVar[Callable[[], Any] | None] = None  # where its entity waits for a name
    __narrow__: ClassVar[Mapping[str, FieldShape]]

    def __init__(self, *given: Any, **values: Any) -> None:
        declared = getattr(self, "__declared__", None)
        if declared is None:
            raise ModelError(type(self).__name__, "it is abstract; subclass it inside an entity")
        if given:
            arguments = ", ".join(f"{name}=…" for name in declared.partition)
            raise QueryRefused(type(self).__qualname__, f"its arguments are keyword-only: ({arguments})")
        if values.keys() != set(declared.partition):
            self._refuse(values, declared)
        for name, value in values.items():
            if value is None:
                raise QueryRefused(
                    type(self).__qualname__, f"{name} is None, which cannot be part of a key; use a value"
                )
        for name, field in self.__fields__().items():
            values[name] = field.validate(values[name])  # as the items' own values were
        self.__dict__.update(values)

    def _refuse(self, values: Mapping[str, Any], declared: KeyDeclaration) -> None:
        place = type(self).__qualname__
        for name in values:
            if name in declared.sorts:
                raise QueryRefused(place, f"{name} is a part of the sort key; ask with .{name}.eq(…)")
            if name not in declared.partition:
                known = ", ".join(declared.partition)
                raise QueryRefused(place, f"it has no argument {name}; its arguments are {known or 'none'}")
        absent = [name for name in declared.partition if name not in values]
        raise QueryRefused(place, f"{', '.join(absent)} must be given as well")

    @classmethod
    def __get_pattern__(cls) -> Pattern:
        """Return the compiled pattern; raise if the class is not nested in an entity."""
        if "__pattern__" not in cls.__dict__ and cls.__compile__ is not None:
            cls.__compile__()
        pattern = cls.__dict__.get("__pattern__")
        if pattern is None:
            raise ModelError(
                cls.__qualname__, "it is not inside an entity; declare it in the class it belongs to"
            )
        assert isinstance(pattern, Pattern)
        return pattern

    @classmethod
    def __fields__(cls) -> Mapping[str, FieldShape]:
        """Return the fields of its arguments that have constraints beyond their type, such as lower case."""
        narrowed: Mapping[str, FieldShape] | None = cls.__dict__.get("__narrow__")
        if narrowed is None:
            pattern = cls.__dict__.get("__pattern__")
            if pattern is None:
                return {}
            fields = pattern.owner.__shape__.fields
            narrowed = cls.__narrow__ = {n: fields[n] for n in pattern.partition if not fields[n].bare}
        return narrowed

    def __repr__(self) -> str:
        pattern = type(self).__dict__.get("__pattern__")
        fields: Mapping[str, FieldShape] = {} if pattern is None else pattern.owner.__shape__.fields
        values = ((name, self.__dict__.get(name)) for name in self.__declared__.partition)
        arguments = ", ".join(
            f"{name}={fields[name].show(value) if name in fields else repr(value)}" for name, value in values
        )
        return f"{type(self).__qualname__}({arguments})"


def _declare(
    cls: type[_Declaration],
    *,
    on: Any,
    pk: Template,
    sk: Template,
    shards: int | Shards | None,
    sparse: bool,
    members: Mapping[str, Any] | None,
    hydrate: bool,
    access: AccessPattern | None,
) -> None:
    annotations = dict(get_annotations(cls))
    scope: dict[str, Any] = {}
    for rest in _rests_in(cls):
        scope[rest.__name__] = rest
        for name, annotation in get_annotations(rest).items():
            part = vars(rest).get(name)
            if not isinstance(part, SortPart):
                raise ModelError(
                    rest.__qualname__, f"{name} is not a sort part; write {name}: Sort[…] = sort()"
                )
            annotations[name] = annotation
            setattr(cls, name, part)  # checkers see it on the rest, which at run time is the query itself
    sorts = tuple(name for name in annotations if isinstance(cls.__dict__.get(name), SortPart))
    partition = tuple(name for name in annotations if name not in sorts)
    for name in annotations:
        if name in _TAKEN or name.startswith("_"):
            raise ModelError(
                cls.__qualname__,
                f"{name!r} is not allowed as the name of a part; rename the field, and keep the attribute "
                f'with attr(name="{name}")',
            )
        if name in partition and name in cls.__dict__:
            raise ModelError(
                cls.__qualname__,
                f"{name} has a default, but a key needs all its arguments; remove the default",
            )
    if isinstance(shards, bool) or not (shards is None or isinstance(shards, int | Shards)):
        raise ModelError(cls.__qualname__, f"shards={shards!r} must be a number or Shards(…)")
    cls.__declared__ = KeyDeclaration(
        on, pk, sk, Shards(shards) if isinstance(shards, int) else shards,
        sparse, dict(members or {}), hydrate, access, _result_name(cls), partition, sorts,
        annotations, scope,
    )  # fmt: skip


def _rests_in(cls: type) -> Iterator[type]:
    """Yield the `Rest` classes nested in a class, outer ones first."""
    for value in list(vars(cls).values()):
        if isinstance(value, type) and issubclass(value, Rest):
            yield value
            yield from _rests_in(value)


def _result_name(cls: type) -> str:
    for base in vars(cls).get("__orig_bases__", ()):
        for argument in get_args(base):
            result = getattr(argument, "__forward_arg__", None) or getattr(argument, "__name__", None)
            if result is not None:
                return str(result)
    kind = "PrimaryKey" if issubclass(cls, PrimaryKey) else "Query"
    raise ModelError(
        cls.__qualname__, f'the returned entity is missing; write {kind}["…"] with the entity\'s name'
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class PrimaryKey(_Declaration, Generic[E_co]):
    """The table's key of an entity: `class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="META")`."""

    def __init_subclass__(
        cls,
        *,
        pk: str | None = None,
        sk: str | None = None,
        shards: int | Shards | None = None,
        access: AccessPattern | None = None,
    ) -> None:
        """Declare the key by its templates; left out, they are made of the arguments' names."""
        super().__init_subclass__()
        _declare(
            cls,
            on=None,
            pk=pk,
            sk=sk,
            shards=shards,
            sparse=False,
            members=None,
            hydrate=False,
            access=access,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise QueryRefused(type(self).__qualname__, f"{name} stays as it was given; make another key")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self.__declared__.partition)))


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(sort,))
class Query(_Declaration, Selection[E_co]):
    """An access pattern on the table or an index; the type in brackets is what it returns."""

    def __init_subclass__(
        cls,
        *,
        on: Index | type[PrimaryKey[Any]] | type[Table] | None = None,
        pk: Template = None,
        sk: Template = None,
        shards: int | Shards | None = None,
        sparse: bool = False,
        members: Mapping[str, Any] | None = None,
        hydrate: bool = False,
        access: AccessPattern | None = None,
    ) -> None:
        """Declare what is asked and where.

        `on` is an index, or the entity's Key for the table itself. `pk` and `sk` are templates; left out, they
        are the index's own attributes, the Key's templates, or made of the parts' names. `sparse` leaves out
        items that lack a part; `members` leaves out those whose field has another value (`{"status": "open"}`
        or a tuple of values). `hydrate` fetches what the index does not project.
        """
        super().__init_subclass__()
        _declare(
            cls,
            on=on,
            pk=pk,
            sk=sk,
            shards=shards,
            sparse=sparse,
            members=members,
            hydrate=hydrate,
            access=access,
        )

    def __init__(self, *given: Any, **values: Any) -> None:
        super().__init__(*given, **values)
        self._pattern = type(self).__get_pattern__()
        self._values = {name: self.__dict__[name] for name in values}
        self._fixed = {}
        self._range = None
        self._filter = None

    def _fix(self, name: str, value: Any) -> Query[E_co]:
        narrowed: Query[E_co] = object.__new__(type(self))
        narrowed.__dict__.update(self.__dict__)
        narrowed._pattern = self._pattern
        narrowed._values = self._values
        narrowed._fixed = {**self._fixed, name: value}
        narrowed._range = None
        narrowed._filter = self._filter
        return narrowed
