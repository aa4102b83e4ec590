"""Selections: a question about one partition, ready to be asked, and what it asks as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct

from tavola.expressions.walks import paths_of
from tavola.model.attributes import Condition, fields_apply_to
from tavola.model.base import EntityBase
from tavola.model.errors import QueryRefused
from tavola.model.shapes import Pattern

E = TypeVar("E", bound="EntityBase")
E_co = TypeVar("E_co", bound="EntityBase", covariant=True)

RangeOperator = Literal["lt", "lte", "gt", "gte", "between", "begins_with"]


class Range(Struct, frozen=True):
    """The one condition that ends a sort key."""

    part: str
    operator: RangeOperator
    operands: tuple[Any, ...]


class Selection(Generic[E_co]):
    """A question about one partition, ready to be asked."""

    __slots__ = ("_filter", "_fixed", "_pattern", "_range", "_values")

    _pattern: Pattern
    _values: dict[str, Any]
    _fixed: dict[str, Any]
    _range: Range | None
    _filter: Condition[Any] | None

    def where(self: Selection[E], condition: Condition[E]) -> Selection[E]:
        """Return the same question with a filter: items that fail it are read and paid for, not returned.

        It may name what the index holds of the entity that the query gives, and no attribute of the key itself.
        """
        _check_filter(self._pattern, condition)
        return self._with(filter_=condition if self._filter is None else self._filter & condition)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and name in self._pattern.sorts:
                raise AttributeError(
                    f"{self._pattern.place}: {name} is asked too late, a range or a filter ends the question; ask for it "
                    "with eq() before that"
                )
            raise AttributeError(f"{type(self).__qualname__!r} has no attribute {name!r}")

    def _with(self, range_: Range | None = None, filter_: Condition[Any] | None = None) -> Selection[Any]:
        made: Selection[Any] = Selection.__new__(Selection)
        made._pattern = self._pattern
        made._values = self._values
        made._fixed = self._fixed
        made._range = range_ or self._range
        made._filter = self._filter if filter_ is None else filter_
        return made

    def __repr__(self) -> str:
        fields = self._pattern.owner.__shape__.fields
        arguments = [
            f"{name}={fields[name].show(value)}" for name, value in (self._values | self._fixed).items()
        ]
        if self._range is not None:
            operands = fields[self._range.part].show(self._range.operands)
            arguments.append(f"{self._range.part} {self._range.operator} {operands}")
        return f"<{self._pattern.place} {', '.join(arguments)}>"


def _check_filter(pattern: Pattern, condition: Condition[Any]) -> None:
    """Refuse a filter on what the index does not hold, which no item would pass, and on the key's own attributes."""
    if not isinstance(condition, Condition):
        raise QueryRefused(
            pattern.place,
            f"where() takes a condition such as {pattern.owner.__name__}.field.eq(…), not {condition!r}",
        )
    entity = condition.entity
    if (
        entity is not None
        and entity.__name__ != pattern.result
        and not fields_apply_to(pattern.owner, entity)
    ):
        raise QueryRefused(
            pattern.place,
            f"the filter is on {entity.__name__}, and it gives {pattern.result}; name fields of that",
        )
    shape = pattern.owner.__shape__
    index = pattern.key.index
    held = {source.attribute for source in shape.key.key.sources}
    for path in paths_of(condition.node):
        told = str(path.steps[0])
        field = shape.by_attribute.get(told)
        name = told if field is None else field.name
        if told in [source.attribute for source in pattern.key.sources]:
            raise QueryRefused(
                pattern.place,
                f"{name} is part of the key, which a filter cannot name; ask with .{name} instead",
            )
        if index is not None and told not in held and not index.holds(told):
            raise QueryRefused(
                pattern.place,
                f"{index.label} does not hold {name}, so no item would pass; project {told!r} there, or compare what "
                "the query gives",
            )


class QueryRequest(Struct, frozen=True):
    """The data of a selection, for those who ask it."""

    pattern: Pattern
    values: Mapping[str, Any]
    fixed: Mapping[str, Any]
    range: Range | None
    filter: Condition[Any] | None


def request_of(selection: Selection[Any]) -> QueryRequest:
    """Return what a selection asks, as data; refuse what is no question."""
    query: Any = selection
    if not isinstance(query, Selection):
        name = query.__qualname__ if isinstance(query, type) else type(query).__qualname__
        if isinstance(query, type) and issubclass(query, Selection):
            problem = f"it is a class; call it with what it is asked with: {query.__name__}(…)"
        else:
            problem = (
                "it is no query; give one of an entity's, such as Ticket.ByStatus(status=…); get() takes keys"
            )
        raise QueryRefused(name, problem)
    return QueryRequest(
        selection._pattern, selection._values, selection._fixed, selection._range, selection._filter
    )
