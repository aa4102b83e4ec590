"""Sort parts: the conditions of a query on its sort key, part by part, from the left.

    Ticket.ByCustomer(customer_id="c1").status.eq("open").created_at.gte(monday)

Each part is fixed with `eq` until one has a range, which ends the query. Skipping a part or using one twice is an error when
the query is built; with `Step` and `Rest`, a type checker reports it earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, overload

from tavola.model.errors import QueryRefused
from tavola.model.selections import Range, RangeOperator, Selection
from tavola.model.shapes import EntityBase, FieldShape

E = TypeVar("E", bound="EntityBase")
E_co = TypeVar("E_co", bound="EntityBase", covariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Q = TypeVar("Q", bound="Selection[Any]")
Q_co = TypeVar("Q_co", covariant=True)


class SortPart:
    """What `sort()` puts on a query class: reads as the operators of one part of the sort key."""

    __slots__ = ("name",)

    def __init__(self) -> None:
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, query: Selection[Any] | None, owner: type) -> Any:
        return self if query is None else SortOperators(query, self.name)


class Rest(Selection[E_co]):
    """What can be asked once a `Step` is fixed; nested in its query, and in another `Rest` for the part after that.

        class ByCustomer(Query["Ticket"], …):
            customer_id: str
            status: Step[Status, Dated] = sort()

            class Dated(Rest["Ticket"]):
                created_at: Sort[datetime] = sort()

    So a type checker sees that a part was skipped; with `Sort` alone that is an error when the question is made.
    """


if TYPE_CHECKING:

    class Sort(Generic[T]):
        """A part of a sort key."""

        @overload
        def __get__(self, obj: None, owner: Any, /) -> Sort[T]: ...
        @overload
        def __get__(self, obj: Q, owner: Any, /) -> SortOperators[Q, T]: ...
        def __get__(self, obj: Any, owner: Any, /) -> Any: ...

    class Step(Generic[T, Q]):
        """A part of a sort key that leads to the rest of it, so that no part can be skipped."""

        @overload
        def __get__(self, obj: None, owner: Any, /) -> Step[T, Q]: ...
        @overload
        def __get__(self, obj: Selection[Any], owner: Any, /) -> SortOperators[Q, T]: ...
        def __get__(self, obj: Any, owner: Any, /) -> Any: ...

    def sort(*, init: Literal[False] = False) -> Any:
        """Return a part of the sort key, in the order of the template."""
else:

    class Sort:
        """A part of a sort key, in an annotation."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item, cls]

    class Step:
        """A part of a sort key that leads to the rest of it, in an annotation."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item[0], cls]

    def sort() -> SortPart:
        """Return a part of the sort key, in the order of the template."""
        return SortPart()


class SortOperators(Generic[Q_co, T_co]):
    """The operators of one sort part; `eq` leads to the next part, a range ends the query."""

    __slots__ = ("_name", "_query")

    def __init__(self, query: Q_co, name: str) -> None:
        self._query = query
        self._name = name

    def eq(self, value: T_co) -> Q_co:  # type: ignore[misc]  # it is only read
        """Select one value; the next part can then have a condition."""
        query = self._check_operands(value)
        return query._fix(self._name, self._field.validate(value))  # type: ignore[no-any-return]  # a query, or the rest of one

    def lt(self: SortOperators[Selection[E], T], value: T) -> Selection[E]:
        """Select values less than this one."""
        return self._select_range("lt", value)

    def lte(self: SortOperators[Selection[E], T], value: T) -> Selection[E]:
        """Select values up to and including this one."""
        return self._select_range("lte", value)

    def gt(self: SortOperators[Selection[E], T], value: T) -> Selection[E]:
        """Select values greater than this one."""
        return self._select_range("gt", value)

    def gte(self: SortOperators[Selection[E], T], value: T) -> Selection[E]:
        """Select values from this one on."""
        return self._select_range("gte", value)

    def between(self: SortOperators[Selection[E], T], lower: T, upper: T) -> Selection[E]:
        """Select values between two bounds, both included."""
        return self._select_range("between", lower, upper)

    @overload
    def begins_with(self: SortOperators[Selection[E], str], prefix: str) -> Selection[E]: ...
    @overload
    def begins_with(self: SortOperators[Selection[E], bytes], prefix: bytes) -> Selection[E]: ...
    def begins_with(self, prefix: Any) -> Selection[Any]:
        """Select texts with a prefix."""
        return self._select_range("begins_with", prefix)

    @property
    def _field(self) -> FieldShape:
        pattern = self._query._pattern  # type: ignore[attr-defined]  # a selection's
        field: FieldShape = pattern.owner.__shape__.fields[self._name]
        return field

    def _select_range(self, operator: RangeOperator, *operands: Any) -> Selection[Any]:
        query = self._check_operands(*operands)
        if operator != "begins_with":
            operands = tuple(map(self._field.coerce_operand, operands))
        return query._with(range_=Range(self._name, operator, operands))  # type: ignore[no-any-return]  # a query, or the rest of one

    def _check_operands(self, *operands: Any) -> Any:
        """Return the query with this condition; refuse a part out of order, and invalid operands."""
        query: Any = self._query
        pattern = query._pattern
        before = pattern.sorts[: pattern.sorts.index(self._name)]
        absent = [name for name in before if name not in query._fixed]
        if absent:
            raise QueryRefused(
                pattern.place,
                f"{' and '.join(absent)} must be fixed with eq() before {self._name} can be used. "
                "Sort key parts are used from left to right, without gaps.",
            )
        if self._name in query._fixed:
            raise QueryRefused(pattern.place, f"{self._name} is fixed already; ask for each part once")
        if None in operands:
            raise QueryRefused(pattern.place, f"{self._name} is asked for None, which no key holds")
        return query
