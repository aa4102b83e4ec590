"""Bounds to page: rows in order, filtered, projected, with the key to go on from.

A page ends at the limit of items evaluated, or after the item with which it reaches 1 MB, both counted
before the filter. Rows that no filter, projection or index narrows are answered as the bytes they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.storage import ItemRow
from tavola.keys import Bounds
from tavola.limits import PAGE_BYTES_MAX
from tavola.values import Item, decode_item, encode_item


@dataclass(frozen=True, slots=True)
class ReadRange:
    """What a query or scan goes over: bounds of a table's keys, or of an index's."""

    table: StoredTable
    index: StoredIndex | None
    bounds: Bounds
    reverse: bool = False
    after: tuple[bytes, bytes] | None = None  # index key (empty for the table itself) and key to go on after
    at_most_one: bool = False  # the whole key is given, so there is nothing to go on with
    partition: bytes | None = None  # what all keys of a queried partition begin with; None for a scan


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Rows in order, and whether there may be more after them."""

    lines: list[ItemRow]
    bytes: int  # counted before any filter
    more: bool


def read_page(span: ReadRange, limit: int | None) -> ReadPage:
    """Return one page of a span: up to `limit` rows, up to 1 MB."""
    rack = span.table.rows
    most = -1 if limit is None else limit
    if span.index is None:
        key = None if span.after is None else span.after[1]
        lines, total = rack.page(span.bounds, most, PAGE_BYTES_MAX, after=key, reverse=span.reverse)
    else:
        lines, total = rack.index_page(
            span.index.column,
            span.index.size_column,
            span.bounds,
            most,
            PAGE_BYTES_MAX,
            after=span.after,
            reverse=span.reverse,
        )
    return ReadPage(lines, total, len(lines) == limit or total >= PAGE_BYTES_MAX)


def last_key(span: ReadRange, item: Item) -> Item:
    """Return the attributes that a page which ended at this item is gone on from."""
    names = dict.fromkeys(span.table.schema.names)
    if span.index is not None:
        names |= dict.fromkeys(span.index.schema.names)
    return {name: item[name] for name in names}


def select(
    lines: list[ItemRow], keep: Callable[[Item], bool] | None, shape: Callable[[Item], Item] | None
) -> list[bytes]:
    """Return the rows that a filter keeps, shaped by a projection, as bytes."""
    if keep is None and shape is None:
        return [line[0] for line in lines]
    chosen: list[bytes] = []
    for line in lines:
        data = line[0]
        item = decode_item(data)
        if keep is None or keep(item):
            chosen.append(data if shape is None else encode_item(shape(item)))
    return chosen
