"""Need: an access pattern in the application's terms, before any key is chosen.

The solver searches for keys that serve the needs, and the linter checks a design against them. Needs are declared next to
entities that have no key yet; `needs_of` derives them from a design that has keys.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, get_args
from uuid import UUID

from tavola.model.access import AccessPattern
from tavola.model.converters import converter_for, encode_plain
from tavola.model.errors import ModelError, ValueNotStorable
from tavola.values import Value

Operator = Literal["=", "<", "<=", ">", ">=", "between", "begins_with", "in", "contains", "exists"]
RouteKind = Literal["get", "batch_get", "query", "scan"]

OPERATORS: tuple[str, ...] = get_args(Operator)
ROUTES: tuple[str, ...] = get_args(RouteKind)


@dataclass(frozen=True, slots=True, init=False)
class Given:
    """A condition on a field (in a `Route`, on an attribute): its operator and, if it is constant, its value.

    The value may be a Python value, as in `Given("status", "=", "OPEN")`; it is converted to an attribute value.
    """

    field: str
    operator: Operator = "="
    value: Value | None = None  # a constant; None: a parameter of the access pattern

    def __init__(self, field: str, operator: Operator = "=", value: Any = None) -> None:
        """Create a condition; `value` is a Python value or an attribute value such as `{"S": "OPEN"}`."""
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "value", None)
        place = f"Given({field!r})"
        if not isinstance(field, str):
            raise ModelError("Given", f"{field!r} is not a field name; use one such as 'status'")
        if operator not in OPERATORS:
            raise ModelError(place, f"{operator!r} is not an operator; use one of {', '.join(OPERATORS)}")
        if value is None:
            return
        if operator == "exists":
            raise ModelError(place, "exists takes no value; remove it")
        stored = _stored_value(place, value)
        if operator in ("in", "between"):
            if "L" not in stored:
                raise ModelError(place, f"{operator} takes several values; give them as a list")
            if operator == "between" and len(stored["L"]) != 2:
                raise ModelError(
                    place, f"between takes two values, not {len(stored['L'])}; use the lower and upper bound"
                )
            if not stored["L"]:
                raise ModelError(place, "in takes one or more values")
        object.__setattr__(self, "value", stored)


# Encoded by a field's converter, not by `encode_plain`
_TYPED: tuple[type, ...] = (
    dt.datetime,
    dt.date,
    UUID,
)
_TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})


def _stored_value(place: str, value: Any) -> Value:
    """Return a Python value as an attribute value; an attribute value is returned as it is."""
    if isinstance(value, Mapping):
        if len(value) == 1 and next(iter(value)) in _TAGS:
            return dict(value)
        raise ModelError(
            place,
            f"{value!r} is not a value; use a Python value, or an attribute value such as {{'S': 'OPEN'}}",
        )
    if isinstance(value, list | tuple | set | frozenset):
        elements = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return {"L": [_stored_value(place, element) for element in elements]}
    plain = value.value if isinstance(value, Enum) else value
    try:
        kind = next((python_type for python_type in _TYPED if isinstance(plain, python_type)), None)
        return encode_plain(plain) if kind is None else converter_for(kind).encode(plain)
    except (ValueNotStorable, TypeError, ValueError) as error:
        raise ModelError(place, f"{value!r} cannot be stored: {error}") from error


@dataclass(frozen=True, slots=True)
class Route:
    """How an application serves a need at present, well or badly, in terms of the table's attributes."""

    operation: RouteKind
    index: str | None = None
    keys: tuple[Given, ...] = ()
    filters: tuple[Given, ...] = ()
    queries: int = 1  # requests per execution of the access pattern

    def __post_init__(self) -> None:
        if self.operation not in ROUTES:
            raise ModelError(
                "Route", f"{self.operation!r} is not an operation; use one of {', '.join(ROUTES)}"
            )


@dataclass(frozen=True, slots=True, init=False)
class Need:
    """A read that the application must be able to make."""

    name: str
    entities: tuple[str, ...]  # names of the entities that are returned
    where: tuple[Given, ...] = ()
    order: tuple[str, ...] = ()  # the fields by which results are sorted
    access: AccessPattern | None = None
    single: bool = False  # returns at most one item: the conditions identify it
    route: Route | None = None

    def __init__(
        self,
        name: str,
        entities: tuple[Any, ...] | list[Any] | type[Any] | str,
        where: tuple[Given | str, ...] | list[Given | str] | Given | str = (),
        order: tuple[str, ...] | list[str] | str = (),
        access: AccessPattern | None = None,
        *,
        single: bool = False,
        route: Route | None = None,
    ) -> None:
        """Declare a need; entities are classes or names, and a bare field name means `Given(name)`."""
        place = f"Need({name!r})"
        entity_list = tuple(entities) if isinstance(entities, tuple | list) else (entities,)
        conditions = tuple(where) if isinstance(where, tuple | list) else (where,)
        sorted_by = tuple(order) if isinstance(order, tuple | list) else (order,)
        for entity in entity_list:
            if not isinstance(entity, str | type):
                raise ModelError(place, f"{entity!r} is not an entity; use its class or name")
        names = tuple(entity if isinstance(entity, str) else entity.__name__ for entity in entity_list)
        if not names:
            raise ModelError(place, "entities is empty; name the entity that is returned")
        for condition in conditions:
            if not isinstance(condition, str | Given):
                raise ModelError(
                    place, f"{condition!r} is not a condition; use a field name or Given(field, operator)"
                )
        for field_name in sorted_by:
            if not isinstance(field_name, str):
                raise ModelError(place, f"{field_name!r} is not an order; use field names")
        if access is not None:
            access.check(place)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "entities", names)
        object.__setattr__(
            self,
            "where",
            tuple(Given(condition) if isinstance(condition, str) else condition for condition in conditions),
        )
        object.__setattr__(self, "order", sorted_by)
        object.__setattr__(self, "access", access)
        object.__setattr__(self, "single", single)
        object.__setattr__(self, "route", route)

    @property
    def title(self) -> str:
        """The title of its access pattern, or else its name."""
        return self.name if self.access is None else self.access.title

    @property
    def equal_fields(self) -> tuple[str, ...]:
        """The fields compared with `=` to a parameter."""
        return tuple(
            condition.field
            for condition in self.where
            if condition.operator == "=" and condition.value is None
        )

    @property
    def constants(self) -> tuple[Given, ...]:
        """The conditions without a parameter: a constant value, or `exists`."""
        return tuple(
            condition
            for condition in self.where
            if condition.value is not None or condition.operator == "exists"
        )

    @property
    def range_conditions(self) -> tuple[Given, ...]:
        """The conditions that select a range of a field's values by parameters."""
        return tuple(
            condition
            for condition in self.where
            if condition.value is None and condition.operator not in ("=", "exists", "in", "contains")
        )


def needs_in(namespace: Mapping[str, Any]) -> Iterator[Need]:
    """Yield the needs in a module's namespace, in order, including those in tuples and lists."""
    seen: set[int] = set()
    for value in list(namespace.values()):
        for need in value if isinstance(value, tuple | list) else (value,):
            if isinstance(need, Need) and id(need) not in seen:
                seen.add(id(need))
                yield need
