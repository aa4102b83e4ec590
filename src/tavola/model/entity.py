"""Entity: a pydantic model whose instances are items of a table.

Fields are written `Attr[T]`; the keys and access patterns are classes nested in it. When the class is
complete, it is compiled to an `EntityShape`, and invalid declarations are refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from inspect import get_annotations, signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, dataclass_transform, get_args
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict
from pydantic.errors import PydanticUndefinedAnnotation

from tavola.expressions.nodes import Path
from tavola.model.attributes import Attr, AttrOptions, Operand, attr
from tavola.model.binding import bind, field_shapes, truncate_ttl
from tavola.model.errors import ModelError
from tavola.model.queries import PrimaryKey, Query
from tavola.model.shapes import EntityBase, EntityShape, Pattern
from tavola.model.tables import KEY_TAGS, Index, KeyTag, Table, table_of
from tavola.model.views import check_view

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from tavola.model.access import WritePattern
else:
    ModelMetaclass = type(BaseModel)

StalePolicy = Literal["read", "refuse"]
F = TypeVar("F", bound=Callable[..., Any])

_building: ContextVar[bool] = ContextVar("building", default=False)
_assigned: ContextVar[frozenset[int]] = ContextVar("assigned", default=frozenset())  # by identity
_entities: WeakValueDictionary[tuple[str, str], type[Entity]] = WeakValueDictionary()
_waiting: dict[int, Pattern] = {}  # queries whose view is not declared yet, by identity
_BASE_NAMES = frozenset(name for name in dir(BaseModel) if not name.startswith("_"))


@dataclass_transform(kw_only_default=True, field_specifiers=(attr,))
class EntityMeta(ModelMetaclass):
    """Returns an operand for a field that is accessed on the class."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        """Create the class while the operands of its bases are hidden: pydantic would take them for defaults."""
        _refuse_field_names(name, namespace)
        _refuse_options(name, options)
        token = _building.set(True)
        try:
            return super().__new__(mcs, name, bases, namespace, **options)
        finally:
            _building.reset(token)

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            if not _building.get():
                operands = cls.__dict__.get("__operands__")
                if operands is None and "__pydantic_fields__" in cls.__dict__:
                    operands = _operands_of(cls)
                if operands is not None and name in operands:
                    return operands[name]
            return super().__getattr__(name)


def _refuse_field_names(name: str, namespace: dict[str, Any]) -> None:
    for attribute in namespace.get("__annotations__", {}):
        if attribute in _BASE_NAMES:
            raise ModelError(
                f"{name}.{attribute}",
                "pydantic models have a method with this name; rename the field and keep the attribute "
                f'with attr(name="{attribute}")',
            )


def _refuse_options(name: str, options: dict[str, Any]) -> None:
    """Refuse unknown class keywords; type checkers do not check the keywords of a metaclass."""
    if not options:
        return
    own_options = [
        parameter for parameter in signature(Entity.__init_subclass__).parameters if parameter != "cls"
    ]
    known = {*own_options, *ConfigDict.__annotations__}
    for option in options:
        if option not in known and not option.startswith("_"):
            from difflib import get_close_matches  # noqa: PLC0415 - only for this error

            near = get_close_matches(option, known, 1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"valid keywords are {', '.join(own_options)}, and pydantic's settings"
            )
            raise ModelError(name, f"Entity has no keyword {option}=; {hint}")
    table, stale = options.get("table"), options.get("stale", "read")
    if table is not None and not (isinstance(table, type) and issubclass(table, Table)):
        raise ModelError(name, f"table={table!r} is not a table; use a class such as class Desk(Table)")
    if stale not in get_args(StalePolicy):
        raise ModelError(name, f"stale={stale!r} is not valid; use {' or '.join(get_args(StalePolicy))}")


class Entity(EntityBase, metaclass=EntityMeta):
    """An item of a table as an object; subclass it, with `Attr` fields and nested keys."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, validate_assignment=True)

    def __init_subclass__(
        cls,
        *,
        table: type[Table] | None = None,
        tag: str | None = None,
        version: int = 1,
        stale: StalePolicy = "read",
        writes: tuple[WritePattern, ...] = (),
        immutable: bool | None = None,
        items: int | None = None,
    ) -> None:
        """Declare an entity.

        `table` may be left to its bases, or to the indexes that its patterns are on. `tag` is what its items
        say they are, its name unless given. `version` is the schema's, see `upgrade`. `stale` says what an update
        does that lacks fields of an index key: read the item first, or refuse. An `immutable`
        one's items are created and never written again, nor those of its subclasses. `items` is how many there will
        be, for the tools that judge a design.
        """
        super().__init_subclass__()

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            """Set a field to a valid value; what the entity's own validators set meanwhile is taken as it is."""
            if not self.__pydantic_decorators__.model_validators or name not in self.__pydantic_fields__:
                super().__setattr__(name, value)
                return
            assigned = _assigned.get()
            if id(self) in assigned:
                self.__dict__[name] = value
                self.__pydantic_fields_set__.add(name)
                return
            token = _assigned.set(assigned | {id(self)})
            try:
                super().__setattr__(name, value)
            finally:
                _assigned.reset(token)

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        inherited = {
            name: next(
                filter(None, (vars(b).get("__options__", {}).get(name) for b in cls.__mro__[1:])), None
            )
            for name in ("table", "immutable")
        }
        cls.__options__ = {**inherited, **{k: v for k, v in options.items() if v is not None}}
        name = (cls.__module__, cls.__qualname__)
        again = name in _entities
        _entities[name] = cls
        # A generic base has no items until its type parameters are filled in
        open_types = cls.__pydantic_generic_metadata__["parameters"]
        if open_types:
            return
        if not cls.__pydantic_complete__:
            for pattern in _patterns_in(cls).values():
                # Compiled on first use; an unknown name is reported there
                pattern.__compile__ = partial(shape_of, cls)
            return
        try:
            _compile(cls)
            _check_waiting_queries(cls, again=again)
        except ModelError:
            del _entities[name]
            raise

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Look up names that were unknown when the class was made, also among the entities beside it.

        This happens automatically when the entity is first used. A name that is still unknown is an error.
        """
        # Hides the operands (`Ticket.status`) while pydantic inspects the class's attributes
        token = _building.set(True)
        try:
            try:
                return super().model_rebuild(
                    force=force,
                    _parent_namespace_depth=_parent_namespace_depth + 1,
                    _types_namespace=_types_namespace,
                )
            except PydanticUndefinedAnnotation:
                return super().model_rebuild(force=True, _types_namespace=entities_in_module(cls))
        except PydanticUndefinedAnnotation as error:
            raise _undefined_name_error(cls, error.name or "") from None
        finally:
            _building.reset(token)


# `EntityBase` defers building its validators, and so does this class; those of entities are built at once.
Entity.model_config["defer_build"] = False
Entity.__operands__ = {}  # type: ignore[attr-defined]  # it has no fields


def _undefined_name_error(cls: type, name: str) -> ModelError:
    word = re.compile(rf"\b{re.escape(name)}\b")
    field = next((n for n, annotation in get_annotations(cls).items() if word.search(str(annotation))), None)
    return ModelError(
        cls.__name__ if field is None else f"{cls.__name__}.{field}",
        f"its type refers to {name}, which was not found; check the spelling, and that it is "
        "defined or imported at the top level of the module, not only under TYPE_CHECKING",
    )


def upgrade(version: int) -> Callable[[F], F]:
    """Mark a function of an entity that upgrades an item from one schema version to the next.

        @staticmethod
        @upgrade(1)
        def to_cents(item: dict[str, Any]) -> dict[str, Any]: ...

    It takes the item's attributes as plain Python values and returns them changed; it runs when an old item is read.
    """

    def mark(function: F) -> F:
        function.__upgrades__ = version  # type: ignore[attr-defined]  # a mark on any function
        return function

    return mark


def shape_of(entity: type[Entity]) -> EntityShape:
    """Return the shape of an entity; compile it now if its annotations had unknown names."""
    shape = entity.__dict__.get("__shape__")
    if shape is None:
        if entity is Entity:
            raise ModelError("Entity", "it is abstract; subclass it")
        if not entity.__pydantic_complete__:
            entity.model_rebuild(_types_namespace=entities_in_module(entity))
        _compile(entity)
        _check_waiting_queries(entity, again=True)
        shape = entity.__dict__["__shape__"]
    assert isinstance(shape, EntityShape)
    return shape


def entities_of(table: type[Table]) -> tuple[type[Entity], ...]:
    """Return the entities of a table; those whose annotations had unknown names are compiled now, or refused."""
    for entity in list(_entities.values()):
        if "__shape__" not in vars(entity) and not entity.__pydantic_complete__:
            patterns = _patterns_in(entity).values()
            if entity.__options__.get("table") is table or any(
                table_of(pattern.__declared__.on) is table for pattern in patterns
            ):
                shape_of(entity)
    return tuple(table.entities.values())


def result_entity(pattern: Pattern) -> type[Entity]:
    """Return the entity or view that a pattern returns; a view that was declared later is checked now."""
    owner: type[Entity] = pattern.owner
    if pattern.result == owner.__name__:
        return owner
    entity = _find_entity(pattern.result, owner)
    if entity is None:
        raise ModelError(
            pattern.place,
            f"it returns {pattern.result!r}, but no entity with this name is in scope; declare or import it",
        )
    if _waiting.pop(id(pattern), None) is not None:
        try:
            check_view(pattern, owner.__shape__, shape_of(entity))
        except ModelError:
            _waiting[id(pattern)] = pattern
            raise
    return entity


def _find_entity(name: str, near: type) -> type[Entity] | None:
    """Return the entity that a name refers to: declared in the same scope as the class, else in its module."""
    beside = near.__qualname__.rpartition(".")[0]
    while True:
        entity = _entities.get((near.__module__, f"{beside}.{name}" if beside else name))
        if entity is not None:
            return entity
        if not beside:
            break
        beside = beside.rpartition(".")[0]
    imported = getattr(sys.modules.get(near.__module__), name, None)
    return imported if isinstance(imported, type) and issubclass(imported, Entity) else None


def entities_in_module(cls: type) -> dict[str, Any]:
    """Return the entities of a class's module by name, to resolve annotations."""
    known = {
        qualname.rpartition(".")[2]: e
        for (module, qualname), e in _entities.items()
        if module == cls.__module__
    }
    return {name: _find_entity(name, cls) or entity for name, entity in known.items()}


def _compile(cls: type[Entity]) -> None:
    options = cls.__options__
    nested = _patterns_in(cls)
    table = options.get("table") or _table_of_patterns(cls, nested)
    upgrades = {
        function.__upgrades__: function
        for function in (getattr(f, "__func__", f) for f in vars(cls).values())
        if hasattr(function, "__upgrades__")
    }
    _check_upgrades(cls, options.get("version", 1), upgrades)
    cls.__shape__ = bind(
        cls,
        table,
        nested,
        tag=options.get("tag") or cls.__name__,
        version=options.get("version", 1),
        upgrades=upgrades,
        policy=options.get("stale", "read"),
        writes=tuple(options.get("writes", ())),
        immutable=bool(options.get("immutable")),
    )
    if truncate_ttl(cls, cls.__shape__.fields):
        cls.model_rebuild(force=True, _types_namespace=entities_in_module(cls))


def _patterns_in(cls: type[Entity]) -> dict[str, type[Any]]:
    return {n: f for n, f in vars(cls).items() if isinstance(f, type) and issubclass(f, PrimaryKey | Query)}


def _check_waiting_queries(cls: type[Entity], *, again: bool) -> None:
    """Check the views that an entity's queries return, and the earlier queries that return this entity.

    If the entity is declared again, as in a notebook, its views may be redeclared next, so their check is postponed.
    """
    for pattern in cls.__shape__.patterns.values():
        if pattern.result != cls.__name__:
            view = None if again else _find_entity(pattern.result, pattern.owner)
            if view is None or "__shape__" not in vars(view):
                _waiting[id(pattern)] = pattern
            else:
                check_view(pattern, cls.__shape__, view.__shape__)
    for number, pattern in list(_waiting.items()):
        owner = pattern.owner
        if _entities.get((owner.__module__, owner.__qualname__)) is not owner:
            del _waiting[number]  # it was declared again
        elif pattern.result == cls.__name__ and _find_entity(pattern.result, owner) is cls:
            check_view(pattern, owner.__shape__, cls.__shape__)
            del _waiting[number]


def _table_of_patterns(cls: type[Entity], nested: dict[str, type[Any]]) -> type[Table] | None:
    tables_by_name: dict[str, type[Table]] = {}
    for name, pattern in nested.items():
        table = table_of(pattern.__declared__.on)
        if table is not None:
            tables_by_name[name] = table
    if len(set(tables_by_name.values())) > 1:
        tables = ", ".join(f"{name} on {table.__name__}" for name, table in tables_by_name.items())
        raise ModelError(
            cls.__name__, f"its queries use several tables ({tables}), but an entity belongs to one"
        )
    if not tables_by_name and nested:
        raise ModelError(cls.__name__, f"the table is missing; write class {cls.__name__}(Entity, table=…)")
    return next(iter(tables_by_name.values()), None)


def _check_upgrades(cls: type, version: int, upgrades: dict[int, Any]) -> None:
    if version < 1:
        raise ModelError(cls.__name__, f"version={version} is not valid; the first version is 1")
    absent = [step for step in range(1, version) if step not in upgrades]
    if absent:
        raise ModelError(
            cls.__name__,
            f"version={version} needs an @upgrade({absent[0]}) function that converts older items",
        )
    beyond = [step for step in upgrades if step >= version]
    if beyond:
        raise ModelError(cls.__name__, f"@upgrade({beyond[0]}) is higher than version={version}")


def _operands_of(cls: type[Entity]) -> dict[str, Operand[Any, Any]]:
    shape = cls.__dict__.get("__shape__")
    if shape is None and not cls.__pydantic_complete__:
        shape = shape_of(cls)
    fields = shape.fields if shape is not None else field_shapes(cls, None)
    operands: dict[str, Operand[Any, Any]] = {}
    for name, field in fields.items():
        field.entity = cls
        operands[name] = Operand(Path((field.attribute,)), field)
    cls.__operands__ = operands  # type: ignore[attr-defined]  # its metaclass looks there
    return operands


__all__ = [
    "Attr",
    "AttrOptions",
    "Entity",
    "Index",
    "StalePolicy",
    "entities_of",
    "result_entity",
    "shape_of",
    "upgrade",
]


def key_types(table: type[Table]) -> dict[str, KeyTag]:
    """Return the type of each key attribute, in the order of table and indexes.

    As the entities' keys write it; else as a field does, for an index that no pattern is on; else text.
    """
    written: dict[str, str] = {}
    fields: dict[str, str] = {}
    for entity in entities_of(table):
        shape = shape_of(entity)
        assert shape.key is not None, "an entity of a table has a key"
        for key in (shape.key.key, *shape.keys):
            written |= {source.attribute: source.tag for source in key.sources}
        for field in shape.fields.values():
            if len(field.converter.tags) == 1 and field.converter.tags <= KEY_TAGS:
                fields[field.attribute] = next(iter(field.converter.tags))
    names = list(table.settings.key_names)
    names += [name for index in table.indexes for name in index.attributes]
    return {name: cast(KeyTag, written.get(name) or fields.get(name, "S")) for name in names}
