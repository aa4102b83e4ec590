"""Need: an access pattern in the application's words, before any key is chosen.

What the solver starts from and what the linter holds a design against. Needs are declared by themselves, beside
entities that have no key yet; of a design that has its keys, `needs_of` takes them off again.
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
    """One condition: a field, or in a route an attribute, and how it is compared.

    A value may be given as Python has it (`Given("status", "=", "OPEN")`), and is kept as it is stored.
    """

    field: str
    operator: Operator = "="
    value: Value | None = None  # what it is always compared with; None: whatever is asked for

    def __init__(self, field: str, operator: Operator = "=", value: Any = None) -> None:
        """Say a condition; a value is one of Python's, or as it is stored."""
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "value", None)
        place = f"Given({field!r})"
        if not isinstance(field, str):
            raise ModelError("Given", f"{field!r} is no field; give its name, such as 'status'")
        if operator not in OPERATORS:
            raise ModelError(place, f"{operator!r} is no operator; there are {', '.join(OPERATORS)}")
        if value is None:
            return
        if operator == "exists":
            raise ModelError(place, "exists compares with nothing; leave its value out")
        stored = _stored_value(place, value)
        if operator in ("in", "between"):
            if "L" not in stored:
                raise ModelError(place, f"{operator} takes several values; give them as a list")
            if operator == "between" and len(stored["L"]) != 2:
                raise ModelError(place, f"between takes two values, not {len(stored['L'])}; give both ends")
            if not stored["L"]:
                raise ModelError(place, "in takes one value or more; give those that it may have")
        object.__setattr__(self, "value", stored)


_TYPED: tuple[type, ...] = (dt.datetime, dt.date, UUID)  # a field's converter writes them in one way
_TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})


def _stored_value(place: str, value: Any) -> Value:
    """Return a value as it is stored: one that is so already, or what Python's becomes."""
    if isinstance(value, Mapping):
        if len(value) == 1 and next(iter(value)) in _TAGS:
            return dict(value)
        raise ModelError(
            place, f"{value!r} is no value; give it as Python has it, or as stored: {{'S': 'OPEN'}}"
        )
    if isinstance(value, list | tuple | set | frozenset):
        several = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return {"L": [_stored_value(place, each) for each in several]}
    plain = value.value if isinstance(value, Enum) else value
    try:
        kind = next((each for each in _TYPED if isinstance(plain, each)), None)
        return encode_plain(plain) if kind is None else converter_for(kind).encode(plain)
    except (ValueNotStorable, TypeError, ValueError) as error:
        raise ModelError(place, f"{value!r} cannot be compared with: {error}") from error


@dataclass(frozen=True, slots=True)
class Route:
    """How a need is asked for today, right or wrong, in the attributes of the table."""

    operation: RouteKind
    index: str | None = None
    keys: tuple[Given, ...] = ()
    filters: tuple[Given, ...] = ()
    queries: int = 1  # requests that one question takes

    def __post_init__(self) -> None:
        if self.operation not in ROUTES:
            raise ModelError("Route", f"{self.operation!r} is no operation; there are {', '.join(ROUTES)}")


@dataclass(frozen=True, slots=True, init=False)
class Need:
    """What the application must be able to ask."""

    name: str
    entities: tuple[str, ...]  # that come back, by name
    where: tuple[Given, ...] = ()
    order: tuple[str, ...] = ()  # the fields that the answer is sorted by
    access: AccessPattern | None = None
    single: bool = False  # it gives one item at most: its fields say which
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
        """Declare a need; entities are classes or names, and a field alone is one that is given with `=`."""
        place = f"Need({name!r})"
        several = tuple(entities) if isinstance(entities, tuple | list) else (entities,)
        given = tuple(where) if isinstance(where, tuple | list) else (where,)
        sorted_by = tuple(order) if isinstance(order, tuple | list) else (order,)
        for each in several:
            if not isinstance(each, str | type):
                raise ModelError(place, f"{each!r} is no entity; give its class or its name")
        names = tuple(each if isinstance(each, str) else each.__name__ for each in several)
        if not names:
            raise ModelError(place, "it gives no entity; name what comes back")
        for condition in given:
            if not isinstance(condition, str | Given):
                raise ModelError(
                    place, f"{condition!r} is no condition; give a field's name or Given(field, operator)"
                )
        for each in sorted_by:
            if not isinstance(each, str):
                raise ModelError(place, f"{each!r} is no order; give the names of fields")
        if access is not None:
            access.check(place)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "entities", names)
        object.__setattr__(
            self, "where", tuple(Given(each) if isinstance(each, str) else each for each in given)
        )
        object.__setattr__(self, "order", sorted_by)
        object.__setattr__(self, "access", access)
        object.__setattr__(self, "single", single)
        object.__setattr__(self, "route", route)

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name if self.access is None else self.access.title

    @property
    def equal_fields(self) -> tuple[str, ...]:
        """The fields that are given with equality, and are not always the same."""
        return tuple(given.field for given in self.where if given.operator == "=" and given.value is None)

    @property
    def constants(self) -> tuple[Given, ...]:
        """The conditions that are always the same: such items alone are wanted."""
        return tuple(given for given in self.where if given.value is not None or given.operator == "exists")

    @property
    def range_conditions(self) -> tuple[Given, ...]:
        """The conditions that are neither: stretches of a field's values."""
        return tuple(
            given
            for given in self.where
            if given.value is None and given.operator not in ("=", "exists", "in", "contains")
        )


def needs_in(namespace: Mapping[str, Any]) -> Iterator[Need]:
    """Give the needs that a module declares, in its order: each by itself, or several in a tuple or a list."""
    seen: set[int] = set()
    for found in list(namespace.values()):
        for need in found if isinstance(found, tuple | list) else (found,):
            if isinstance(need, Need) and id(need) not in seen:
                seen.add(id(need))
                yield need
