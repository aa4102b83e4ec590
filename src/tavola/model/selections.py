"""Selections: queries of one partition that can be sent, and their contents as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct

from tavola.expressions.paths import paths_of
from tavola.model.attributes import Condition, fields_apply_to
from tavola.model.errors import QueryRefused
from tavola.model.shapes import EntityBase, Pattern

E = TypeVar("E", bound="EntityBase")
E_co = TypeVar("E_co", bound="EntityBase", covariant=True)

RangeOperator = Literal["lt", "lte", "gt", "gte", "between", "begins_with"]


class Range(Struct, frozen=True):
    """The range condition on the last part of a sort key that a query names."""

    part: str
    operator: RangeOperator
    operands: tuple[Any, ...]


class Selection(Generic[E_co]):
    """A query of one partition, with all arguments, that can be sent."""

    __slots__ = ("_filter", "_fixed", "_pattern", "_range", "_values")

    _pattern: Pattern
    _values: dict[str, Any]
    _fixed: dict[str, Any]
    _range: Range | None
    _filter: Condition[Any] | None

    def where(self: Selection[E], condition: Condition[E]) -> Selection[E]:
        """Return the query with a filter; items that fail it are read and billed, but not returned.

        The filter may use the attributes of the result entity that the index projects, except key attributes.
        """
        _check_filter(self._pattern, condition)
        return self._with(filter_=condition if self._filter is None else self._filter & condition)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and name in self._pattern.sorts:
                raise AttributeError(
                    f"{self._pattern.place}: {name} cannot follow a range or a filter; fix it with "
                    "eq() before them"
                )
            raise AttributeError(f"{type(self).__qualname__!r} has no attribute {name!r}")

    def _with(self, range_: Range | None = None, filter_: Condition[Any] | None = None) -> Selection[Any]:
        copy: Selection[Any] = Selection.__new__(Selection)
        copy._pattern = self._pattern
        copy._values = self._values
        copy._fixed = self._fixed
        copy._range = range_ or self._range
        copy._filter = self._filter if filter_ is None else filter_
        return copy

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
    """Reject a filter on attributes that the index does not project, which no item would pass, or on key attributes."""
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
            f"the filter is on {entity.__name__}, but the query returns {pattern.result}; use fields "
            f"of {pattern.result}",
        )
    shape = pattern.owner.__shape__
    index = pattern.key.index
    held = {source.attribute for source in shape.key.key.sources}
    for path in paths_of(condition.node):
        attribute = str(path.steps[0])
        field = shape.by_attribute.get(attribute)
        name = attribute if field is None else field.name
        if attribute in [source.attribute for source in pattern.key.sources]:
            raise QueryRefused(
                pattern.place,
                f"{name} is part of the key, which cannot be filtered; use .{name} instead",
            )
        if index is not None and attribute not in held and not index.holds(attribute):
            raise QueryRefused(
                pattern.place,
                f"{index.label} does not project {name}, so no item would match; project {attribute!r}, or compare fields that "
                "the query returns",
            )


class SelectionRequest(Struct, frozen=True):
    """The data of a selection, for the code that sends it."""

    pattern: Pattern
    values: Mapping[str, Any]
    fixed: Mapping[str, Any]
    range: Range | None
    filter: Condition[Any] | None


def request_of(selection: Selection[Any]) -> SelectionRequest:
    """Return the data of a selection; raise QueryRefused for any other object."""
    query: Any = selection
    if not isinstance(query, Selection):
        name = query.__qualname__ if isinstance(query, type) else type(query).__qualname__
        if isinstance(query, type) and issubclass(query, Selection):
            problem = f"it is a class; call it with its arguments: {query.__name__}(…)"
        else:
            problem = "it is not a query; use one such as Ticket.ByStatus(status=…). get() takes keys"
        raise QueryRefused(name, problem)
    return SelectionRequest(
        selection._pattern, selection._values, selection._fixed, selection._range, selection._filter
    )
