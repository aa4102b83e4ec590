"""Read your own writes from an eventually consistent index.

A global index shows a write a moment later, so a user who saves a form and is redirected to the list may not find the entry.
Here the list is queried together with what was written. While the result does not show it, the query is repeated a few times;
then the item is read from the table and put where it belongs in the result.

    own = OwnWrites(db)
    db.put(ticket)
    own.query(Ticket.ByCustomer(customer_id="c1"), own.receipt(ticket))

`str(own.receipt(ticket))` is a short text for a cookie or header; `WriteReceipt.parse` reads it. Only the first page is
corrected: by the time a user turns the page, the index has caught up.

Cost: nothing extra if the index is up to date; otherwise a few repeated queries and one consistent read per write.
"""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, overload

from tavola.client.connection import AsyncConnection, Connection
from tavola.model import (
    Entity,
    EntityShape,
    ItemUnreadable,
    Pattern,
    PrimaryKey,
    Selection,
    SelectionRequest,
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
    query_slice,
    sleep,
)

ATTEMPTS = 4  # how often a stale index is queried again before the table's items are merged in
PAUSE_S = 0.02  # before the second query; each pause is twice the one before

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """The key of an item that was written or deleted."""

    entity: str  # its type tag
    key: tuple[tuple[str, Any], ...]  # the key's fields, as stored

    def __str__(self) -> str:
        encoded = json.dumps([self.entity, dict(self.key)], separators=(",", ":"))
        return urlsafe_b64encode(encoded.encode()).rstrip(b"=").decode()

    @staticmethod
    def parse(text: str) -> WriteReceipt:
        """Return the receipt that a text encodes; refuse any other text."""
        try:
            entity, key = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return WriteReceipt(
                str(entity), tuple(sorted((str(name), dict(value)) for name, value in key.items()))
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise RecipeRefused(
                "Written", f"{text[:40]!r} is not a write token; pass it unchanged"
            ) from error


class OwnWrites(Recipe[D_co]):
    """Index queries whose results include the caller's own writes."""

    def __init__(self, db: D_co, *, attempts: int = ATTEMPTS, pause_s: float = PAUSE_S) -> None:
        super().__init__(db)
        self.attempts = attempts
        self.pause_s = pause_s

    def receipt(self, target: Entity | PrimaryKey[Any]) -> WriteReceipt:
        """Return the receipt to pass to `query` after an entity was put or changed, or a key deleted."""
        entity = type(target) if isinstance(target, Entity) else type(target).__get_pattern__().owner
        shape = shape_of(entity)
        assert shape.key is not None
        fields = {name: shape.fields[name].encode(getattr(target, name)) for name in shape.key.partition}
        return WriteReceipt(shape.name, tuple(sorted(fields.items())))

    @overload
    def query(
        self: OwnWrites[Connection],
        selection: Selection[E],
        *written: WriteReceipt,
        limit: int | None = ...,
        newest_first: bool = ...,
    ) -> Slice[E]: ...
    @overload
    def query(
        self: OwnWrites[AsyncConnection],
        selection: Selection[E],
        *written: WriteReceipt,
        limit: int | None = ...,
        newest_first: bool = ...,
    ) -> Coroutine[Any, Any, Slice[E]]: ...
    def query(
        self,
        selection: Selection[Any],
        *written: WriteReceipt,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Any:
        """Return the result of a query, with the written items as they are now.

        With a limit it is the first page, which may be longer because of inserted items; continue its cursor with `db.query`.
        """
        return self.run_program(self._query(selection, written, limit, newest_first))

    def _query(
        self, selection: Selection[E], written: Sequence[WriteReceipt], limit: int | None, newest_first: bool
    ) -> PatternProgram[Slice[E]]:
        request = request_of(selection)
        shape = _check_query(request)
        index = request.pattern.key.index
        if index is None or index.local:
            return (yield from query_slice(selection, limit, newest_first=newest_first, consistent=True))
        keys = [_key(shape, record) for record in written if record.entity == shape.name]
        order = _Order(request, shape, newest_first)
        for attempt in range(self.attempts + 1):
            selected = yield from query_slice(selection, limit, newest_first=newest_first)
            if not keys:
                return selected
            truths = yield from call_client(lambda db: db.get_many(keys, consistent=True))
            merged = order.merge(selected, dict(zip(map(order.identity, keys), truths, strict=True)))
            if merged == selected:
                return selected
            if attempt < self.attempts:
                yield from sleep(self.pause_s * (1 << attempt))
        return merged


class _Order:
    """Which entities match a query, and in what order."""

    def __init__(self, request: SelectionRequest, shape: EntityShape, newest_first: bool) -> None:
        self.question = request
        self.shape = shape
        self.newest_first = newest_first

    def identity(self, target: Any) -> tuple[Any, ...]:
        """Return the values of an item's key, which identify it."""
        assert self.shape.key is not None
        return tuple(getattr(target, name) for name in self.shape.key.partition)

    def merge(self, selected: Slice[E], truths: dict[tuple[Any, ...], E | None]) -> Slice[E]:
        """Return a result with some items in their true state; the same object if it is right already."""
        items = [entity for entity in selected.items if self.identity(entity) not in truths]
        last = self.sort_key(selected.items[-1]) if selected.items and selected.cursor is not None else None
        for truth in truths.values():
            if truth is None or not self.matches(truth):
                continue
            if last is not None and self._after(self.sort_key(truth), last):
                continue  # it is on a later page
            items.append(truth)
        items.sort(key=self.sort_key, reverse=self.newest_first)
        if items == sorted(selected.items, key=self.sort_key, reverse=self.newest_first):
            return selected
        return Slice(tuple(items), selected.cursor)

    def sort_key(self, entity: Entity) -> tuple[Any, ...]:
        """Return what an entity sorts by in the index."""
        values = {name: enum_value(value) for name, value in entity.__dict__.items()}
        key = self.question.pattern.key
        return (*(_sortable(source.value(values)) for source in key.range), *map(str, self.identity(entity)))

    def _after(self, sort_key: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return sort_key < other if self.newest_first else sort_key > other

    def matches(self, entity: Entity) -> bool:
        """Return whether an entity is in the index and meets the query's key condition."""
        request = self.question
        values = {name: enum_value(value) for name, value in entity.__dict__.items()}
        key = request.pattern.key
        if not key.holds(values) or any(values.get(name) is None for name in key.fields):
            return False
        if any(
            values[name] != enum_value(value) for name, value in {**request.values, **request.fixed}.items()
        ):
            return False
        if request.range is None:
            return True
        return _within(
            values[request.range.part], request.range.operator, *map(enum_value, request.range.operands)
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
    assert value is not None, "an indexed item has an index key"
    ((tag, content),) = value.items()
    if tag == "N":
        return Decimal(content)
    return b64decode(content) if tag == "B" else content.encode()


def _check_query(request: SelectionRequest) -> EntityShape:
    pattern: Pattern = request.pattern
    shape = shape_of(pattern.owner)
    if request.filter is not None:
        raise RecipeRefused(pattern.place, "leave out where(), and filter what comes: it costs the same")
    if pattern.result != pattern.owner.__name__:
        raise RecipeRefused(
            pattern.place,
            f"it returns {pattern.result}, but the written entity is a {pattern.owner.__name__}; use a query that returns those",
        )
    return shape


def _key(shape: EntityShape, written: WriteReceipt) -> PrimaryKey[Any]:
    assert shape.key is not None
    build = getattr(shape.entity, shape.key.name)
    try:
        values = {
            name: shape.fields[name].value_in({shape.fields[name].attribute: value})
            for name, value in written.key
        }
    except (KeyError, ItemUnreadable) as error:
        raise RecipeRefused("Written", f"it names no {shape.entity.__name__}; pass it unchanged") from error
    return build(**values)  # type: ignore[no-any-return]  # a key of this entity's class
