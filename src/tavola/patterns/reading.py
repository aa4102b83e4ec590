"""Read your own writes from an eventually consistent index.

A global index shows a write a moment later, so a user who saves a form and is redirected to the list may not find the entry.
Here the list is queried together with what was written. While the result does not show it, the query is repeated a few times;
then the item is read from the table and put where it belongs in the result.

    own = OwnWrites(db)
    db.put(ticket)
    own.query(Ticket.ByCustomer(customer_id="c1"), own.written(ticket))

`str(own.written(ticket))` is a short text for a cookie or header; `Written.read` parses it. Only the first page is corrected:
by the time a user turns the page, the index has caught up.

Cost: nothing extra if the index is up to date; otherwise a few repeated queries and one consistent read per write.
"""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, overload

from tavola.client.db import AsyncDb, Db
from tavola.model import (
    Entity,
    ItemUnreadable,
    Pattern,
    PrimaryKey,
    QueryRequest,
    Selection,
    Shape,
    enum_value,
    request_of,
    shape_of,
)
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Slice,
    call_client,
    query_all,
    sleep,
)

ATTEMPTS = 4  # how often a late index is asked before the table is believed
PAUSE_S = 0.02  # before the second time; each pause is twice the one before

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class Written:
    """The key of an item that was written or deleted."""

    entity: str  # its tag
    key: tuple[tuple[str, Any], ...]  # the fields of its key, as they are stored

    def __str__(self) -> str:
        told = json.dumps([self.entity, dict(self.key)], separators=(",", ":"))
        return urlsafe_b64encode(told.encode()).rstrip(b"=").decode()

    @staticmethod
    def read(text: str) -> Written:
        """Return what a text stands for; text that is none is refused."""
        try:
            entity, key = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return Written(
                str(entity), tuple(sorted((str(name), dict(value)) for name, value in key.items()))
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise RecipeRefused(
                "Written", f"{text[:40]!r} does not tell of a write; take it as it was given"
            ) from error


class OwnWrites(Recipe[D_co]):
    """Index queries whose results include the caller's own writes."""

    def __init__(self, db: D_co, *, attempts: int = ATTEMPTS, pause_s: float = PAUSE_S) -> None:
        super().__init__(db)
        self.attempts = attempts
        self.pause_s = pause_s

    def written(self, target: Entity | PrimaryKey[Any]) -> Written:
        """Return what to ask with after an entity was put or changed, or a key deleted."""
        entity = type(target) if isinstance(target, Entity) else type(target).__compiled__().owner
        shape = shape_of(entity)
        assert shape.key is not None
        found = {name: shape.fields[name].encode(getattr(target, name)) for name in shape.key.partition}
        return Written(shape.name, tuple(sorted(found.items())))

    @overload
    def query(
        self: OwnWrites[Db],
        selection: Selection[E],
        *written: Written,
        limit: int | None = ...,
        newest_first: bool = ...,
    ) -> Slice[E]: ...
    @overload
    def query(
        self: OwnWrites[AsyncDb],
        selection: Selection[E],
        *written: Written,
        limit: int | None = ...,
        newest_first: bool = ...,
    ) -> Coroutine[Any, Any, Slice[E]]: ...
    def query(
        self,
        selection: Selection[Any],
        *written: Written,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Any:
        """Return what a question finds, with what was written as it is now.

        With a limit it is the first page, which may be longer by what was put in; its cursor goes on with `db.query`.
        """
        return self.run_program(self._query(selection, written, limit, newest_first))

    def _query(
        self, selection: Selection[E], written: Sequence[Written], limit: int | None, newest_first: bool
    ) -> PatternProgram[Slice[E]]:
        question = request_of(selection)
        shape = _check_query(question)
        index = question.pattern.key.index
        if index is None or index.local:
            return (yield from _query_page(selection, limit, newest_first, consistent=True))
        keys = [_key(shape, each) for each in written if each.entity == shape.name]
        order = _Order(question, shape, newest_first)
        for attempt in range(self.attempts + 1):
            found = yield from _query_page(selection, limit, newest_first, consistent=None)
            if not keys:
                return found
            truths = yield from call_client(lambda db: db.get_many(keys, consistent=True))
            merged = order.merged(found, dict(zip(map(order.name, keys), truths, strict=True)))
            if merged == found:
                return found
            if attempt < self.attempts:
                yield from sleep(self.pause_s * (1 << attempt))
        return merged


class _Order:
    """Which entities match a query, and in what order."""

    def __init__(self, question: QueryRequest, shape: Shape, newest_first: bool) -> None:
        self.question = question
        self.shape = shape
        self.newest_first = newest_first

    def name(self, target: Any) -> tuple[Any, ...]:
        """Return what tells one item from all others: the values of its key."""
        assert self.shape.key is not None
        return tuple(getattr(target, name) for name in self.shape.key.partition)

    def merged(self, found: Slice[E], truths: dict[tuple[Any, ...], E | None]) -> Slice[E]:
        """Return an answer with some items as they truly are; the same where it tells them so."""
        kept = [entity for entity in found.items if self.name(entity) not in truths]
        last = self.place(found.items[-1]) if found.items and found.cursor is not None else None
        for truth in truths.values():
            if truth is None or not self.finds(truth):
                continue
            if last is not None and self._after(self.place(truth), last):
                continue  # it is on a later page
            kept.append(truth)
        kept.sort(key=self.place, reverse=self.newest_first)
        return (
            found
            if kept == sorted(found.items, key=self.place, reverse=self.newest_first)
            else Slice(tuple(kept), found.cursor)
        )

    def place(self, entity: Entity) -> tuple[Any, ...]:
        """Return what an entity sorts by in the index."""
        values = {name: enum_value(value) for name, value in entity.__dict__.items()}
        key = self.question.pattern.key
        return (*(_sortable(source.value(values)) for source in key.range), *map(str, self.name(entity)))

    def _after(self, place: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return place < other if self.newest_first else place > other

    def finds(self, entity: Entity) -> bool:
        """Return whether a question finds an entity: it is in the index, and has what is asked for."""
        question = self.question
        values = {name: enum_value(value) for name, value in entity.__dict__.items()}
        key = question.pattern.key
        if not key.holds(values) or any(values.get(name) is None for name in key.fields):
            return False
        if any(
            values[name] != enum_value(told) for name, told in {**question.values, **question.fixed}.items()
        ):
            return False
        if question.range is None:
            return True
        return _within(
            values[question.range.part], question.range.operator, *map(enum_value, question.range.operands)
        )


def _within(value: Any, operator: str, first: Any, second: Any = None) -> bool:
    match operator:
        case "lt":
            return bool(value < first)
        case "lte":
            return bool(value <= first)
        case "gt":
            return bool(value > first)
        case "gte":
            return bool(value >= first)
        case "between":
            return bool(first <= value <= second)
        case _:
            return bool(value.startswith(first))


def _sortable(value: Any) -> Any:
    assert value is not None, "what is in an index has a key there"
    ((tag, content),) = value.items()
    if tag == "N":
        return Decimal(content)
    return b64decode(content) if tag == "B" else content.encode()


def _check_query(question: QueryRequest) -> Shape:
    pattern: Pattern = question.pattern
    shape = shape_of(pattern.owner)
    if question.filter is not None:
        raise RecipeRefused(pattern.place, "leave out where(), and filter what comes: it costs the same")
    if pattern.result != pattern.owner.__name__:
        raise RecipeRefused(
            pattern.place,
            f"it gives {pattern.result}, and what was written is a {pattern.owner.__name__}; use a query that gives these",
        )
    return shape


def _key(shape: Shape, written: Written) -> PrimaryKey[Any]:
    assert shape.key is not None
    made = getattr(shape.entity, shape.key.name)
    try:
        values = {
            name: shape.fields[name].value_in({shape.fields[name].attribute: value})
            for name, value in written.key
        }
    except (KeyError, ItemUnreadable) as error:
        raise RecipeRefused(
            "Written", f"it tells of no {shape.entity.__name__}; take it as it was given"
        ) from error
    return made(**values)  # type: ignore[no-any-return]  # of the class that was given


def _query_page(
    selection: Selection[E], limit: int | None, newest_first: bool, *, consistent: bool | None
) -> PatternProgram[Slice[E]]:
    if limit is None:
        found = yield from query_all(
            lambda db, cursor: db.query(
                selection, cursor=cursor, newest_first=newest_first, consistent=consistent
            )
        )
        return Slice(tuple(found), None)
    page = yield from call_client(
        lambda db: db.query(selection, limit=limit, newest_first=newest_first, consistent=consistent)
    )
    return Slice(tuple(page.items), page.cursor)
