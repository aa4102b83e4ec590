"""Pages of queries and scans: rows within bounds, in order, filtered and projected.

A page ends at the limit of evaluated items, or after the item that brings it to 1 MB, both counted before the filter.
Rows without a filter, projection or narrower index are returned as their stored bytes.

A page of 1 MB may have 200,000 tiny items, and a filter may have 300 operators for each of them: seconds of work in which
one thread serves nothing else. So reading and filtering are generators (`Steps`) that pause after some rows. In process they
are run to the end at once. A server runs them for a slice of time, serves the requests that have arrived meanwhile, and
continues:

    Scan ──► read 1,024 rows ─ pause ─ read 1,024 rows ─ pause ─ … ─ filter 16 rows ─ pause ─ … ──► response
                            └── GetItem, PutItem of others

Between two slices others may write. A scan is not a snapshot on AWS either: each item is as it was when it was read. If the
table or the index is deleted meanwhile, the page ends early, as any page may, with a key to continue from.

The last step, which joins the items to one response, does not pause: a few milliseconds for the largest page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.storage import ItemPage, ItemRow
from tavola.keys import Bounds
from tavola.limits import PAGE_BYTES_MAX
from tavola.values import (
    LARGE_ITEM_BYTES,
    Item,
    Steps,
    decode_item,
    decode_item_in_steps,
    encode_item,
    release_in_steps,
)

_FILTERS_MAX = 512
_STEP_ROWS = 1_024  # read before a pause; about half a millisecond
_JOINED_ROWS = 4_096  # joined before a pause
_STEP_ROWS_FILTERED = 16  # a filter may have 300 operators
_STEP_BYTES_FILTERED = 16 * 1024

_building = Lock()
_filters: dict[frozenset[str], AttributeFilter] = {}
_encode = msgspec.json.Encoder().encode


class ReadRange(Struct, frozen=True):
    """What a query or scan reads: bounds of the keys of a table or index."""

    table: StoredTable
    index: StoredIndex | None
    bounds: Bounds
    reverse: bool = False
    after: tuple[bytes, bytes] | None = None  # start after this index key (empty for the table) and key
    at_most_one: bool = False  # the whole key is fixed, so there is no next page
    partition: bytes | None = None  # the prefix of all keys of a queried partition; None for a scan


class ReadPage(Struct, frozen=True):
    """Rows in order, and whether there may be more after them."""

    rows: list[ItemRow]
    bytes: int  # counted before any filter
    more: bool


def read_page(span: ReadRange, limit: int | None, is_current: Callable[[], bool]) -> Steps[ReadPage]:
    """Return one page of a range: up to `limit` rows, up to 1 MB.

    Pauses after some rows; `is_current` then says whether the table and index still exist, and the page ends if they do
    not.
    """
    rows: list[ItemRow] = []
    total = 0
    after = span.after
    while True:
        rows_left = -1 if limit is None else limit - len(rows)
        rows_max = rows_left if 0 <= rows_left <= _STEP_ROWS else _STEP_ROWS
        batch, size = _read_rows(span, rows_max, PAGE_BYTES_MAX - total, after)
        rows += batch
        total += size
        if len(rows) == limit or total >= PAGE_BYTES_MAX:
            return ReadPage(rows, total, more=True)
        if len(batch) != rows_max:
            return ReadPage(rows, total, more=False)
        after = _position_of(span, key_attributes(span, batch[-1][0]))
        yield
        if not is_current():
            return ReadPage(rows, total, more=True)


def _read_rows(span: ReadRange, rows_max: int, bytes_max: int, after: tuple[bytes, bytes] | None) -> ItemPage:
    store = span.table.rows
    if span.index is None:
        key = None if after is None else after[1]
        return store.page(span.bounds, rows_max, bytes_max, after=key, reverse=span.reverse)
    index = span.index
    return store.index_page(
        index.column, index.size_column, span.bounds, rows_max, bytes_max, after=after, reverse=span.reverse
    )


def _position_of(span: ReadRange, item: Item) -> tuple[bytes, bytes]:
    """Return the index key (empty for the table) and key of an item in a range."""
    return (b"" if span.index is None else span.index.schema.key_of(item)), span.table.schema.key_of(item)


def last_key(span: ReadRange, data: bytes) -> Item:
    """Return the LastEvaluatedKey of a page that ended at this stored item."""
    names = _key_names(span)
    item = key_attributes(span, data)
    return {name: item[name] for name in names}


def key_attributes(span: ReadRange, data: bytes) -> Item:
    """Return at least the key attributes of a stored item; the others of a large one are not decoded."""
    if len(data) < LARGE_ITEM_BYTES:
        return decode_item(data)
    return decode_item(attribute_filter(frozenset(_key_names(span)))([data])[0])


def _key_names(span: ReadRange) -> dict[str, None]:
    names = dict.fromkeys(span.table.schema.names)
    return names if span.index is None else names | dict.fromkeys(span.index.schema.names)


class ItemFilter(NamedTuple):
    """A filter of items: whether it keeps one, and the same in steps, for an item of so many bytes or more."""

    keeps: Callable[[Item], bool]
    keeps_in_steps: Callable[[Item], Steps[bool]]
    stepped_bytes: int


def select(
    rows: list[ItemRow], keep: ItemFilter | None, shape: Callable[[Item], Item] | None
) -> Steps[list[bytes]]:
    """Return the rows that a filter keeps, reduced by a projection, as bytes; pauses after some rows."""
    if keep is None and shape is None:
        return [row[0] for row in rows]
    chosen: list[bytes] = []
    seen_rows = seen_bytes = 0
    for data, size, _ in rows:
        if seen_rows == _STEP_ROWS_FILTERED or seen_bytes > _STEP_BYTES_FILTERED:
            yield
            seen_rows = seen_bytes = 0
        seen_rows += 1
        seen_bytes += size
        item = decode_item(data) if len(data) < LARGE_ITEM_BYTES else (yield from decode_item_in_steps(data))
        if keep is None:
            is_kept = True
        elif len(data) < keep.stepped_bytes:
            is_kept = keep.keeps(item)
        else:
            is_kept = yield from keep.keeps_in_steps(item)
        if is_kept:
            chosen.append(data if shape is None else encode_item(shape(item)))
        if len(data) >= LARGE_ITEM_BYTES:
            yield from release_in_steps(item)
    return chosen


def join_rows(rows: list[ItemRow], filter_: AttributeFilter | None) -> Steps[list[bytes]]:
    """Return whole items, or the attributes that an index projects, as bytes.

    Tens of thousands of tiny items are joined by commas, some thousand in each element, so that the last step is short;
    an ordinary page is not, because copying it twice would take longer.
    """
    if filter_ is None and len(rows) <= _JOINED_ROWS:
        return [row[0] for row in rows]
    step = _JOINED_ROWS if filter_ is None else _STEP_ROWS
    joined: list[bytes] = []
    for first in range(0, len(rows), step):
        if first:
            yield
        items = [row[0] for row in rows[first : first + step]]
        joined.append(b",".join(items if filter_ is None else filter_(items)))
    return joined


class AttributeFilter:
    """Reduces stored items to some attributes without decoding them.

    The attributes are copied as the bytes they are stored in, and the rest is skipped. That takes a fifth of the time of
    decoding an item, dropping attributes and encoding it again. Used for indexes that do not project all attributes.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        fields = [
            (f"f{number}", msgspec.Raw | msgspec.UnsetType, msgspec.field(name=name, default=msgspec.UNSET))
            for number, name in enumerate(sorted(self._names))
        ]
        self._decoder: msgspec.json.Decoder[list[msgspec.Struct]] | None = None
        try:
            kind = msgspec.defstruct("FilteredItem", fields)
        except ValueError:
            return  # a name with a quote or control character cannot be a struct field: use the slow path
        self._decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # a class made at run time

    def __call__(self, items: Sequence[bytes]) -> list[bytes]:
        """Return the items as bytes, each without its other attributes."""
        if self._decoder is None:
            return [
                encode_item({name: value for name, value in decode_item(item).items() if name in self._names})
                for item in items
            ]
        return [_encode(item) for item in self._decoder.decode(b"[" + b",".join(items) + b"]")]


def attribute_filter(names: frozenset[str]) -> AttributeFilter:
    """Return the filter for a set of attribute names; built once, by one thread at a time."""
    filter_ = _filters.get(names)
    if filter_ is None:
        with _building:
            if len(_filters) >= _FILTERS_MAX:
                _filters.clear()
            filter_ = _filters.setdefault(names, AttributeFilter(names))
    return filter_
