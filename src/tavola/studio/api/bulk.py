"""Bulk: one action on many items: what it would do, then a slice of it at a time."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.studio.editing.bulk_edits import BulkAction, BulkLeft, check_action, perform, propose
from tavola.studio.editing.drafts import open_desk
from tavola.studio.editing.selections import ItemSelection, SliceCursor, found_by, read_slice
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio
from tavola.studio.types import Item as GivenItem

_ROWS = 12  # shown before and after
_LOOKED_AT = 1_000  # items of one slice that are only read
_WRITTEN = 100  # items of one slice that are written
_BODY_BYTES_MAX = 16 * 1024 * 1024  # the keys of some ten thousand items


@dataclass(frozen=True, slots=True)
class BulkQuestion:
    """An action on a selection, from where the slice before ended."""

    selection: ItemSelection
    action: BulkAction
    cursor: SliceCursor | None = None


@dataclass(frozen=True, slots=True)
class BulkRow:
    """An item before and after; `after` is None where it would be deleted."""

    before: GivenItem
    after: GivenItem | None


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """What an action would do with a slice; the page adds the slices up."""

    matched: int  # items of the selection
    changing: int
    same: int  # that are so already
    left: tuple[BulkLeft, ...]
    units: float  # write units of doing it
    read_units: float  # of having looked
    dollars: Decimal  # of the write units, on demand
    priced: str
    on_demand: bool
    rows: tuple[BulkRow, ...]
    cursor: SliceCursor | None  # None: this was the end


@dataclass(frozen=True, slots=True)
class BulkSlice:
    """What was done with a slice, and what was left and why."""

    matched: int
    written: int
    same: int
    left: tuple[BulkLeft, ...]
    units: float
    cursor: SliceCursor | None


async def preview(studio: Studio, asked: BulkQuestion) -> BulkPreview:
    """Return what an action would do with the next slice of a selection; nothing is written."""
    desk = await open_desk(studio, asked.selection.table)
    check_action(desk, asked.action)
    found = await read_slice(studio, desk.layout, asked.selection, asked.cursor, _LOOKED_AT)
    proposals = await studio.work(lambda: [propose(desk, asked.action, item) for item in found.items])
    changing = [each for each in proposals if each.change is not None]
    units = sum(each.units for each in changing)
    book = studio.local_book()
    left = [BulkLeft(desk.layout.key_of(each.before), each.reason) for each in proposals if each.reason]
    left += [BulkLeft(key, "Nothing stands under this key any more.") for key in found.missing]
    rows = [BulkRow(each.before, each.change.after) for each in changing[:_ROWS] if each.change is not None]
    return BulkPreview(
        matched=len(proposals) + len(found.missing),
        changing=len(changing),
        same=len(proposals) - len(changing) - sum(1 for each in proposals if each.reason),
        left=tuple(left),
        units=units,
        read_units=found.units,
        dollars=book.price("write_request_unit").of(units),
        priced=book.title,
        on_demand=desk.layout.on_demand,
        rows=tuple(rows),
        cursor=found.next,
    )


async def run(studio: Studio, asked: BulkQuestion) -> BulkSlice:
    """Do an action with the next slice of a selection; an item that somebody changes meanwhile is left to them."""
    if asked.selection.as_of or (asked.selection.question and asked.selection.question.as_of):
        raise Refused(
            "past-unchangeable",
            "The past cannot be changed",
            "The selection is of the table as it was.",
            "Go back to now, and select again.",
        )
    desk = await open_desk(studio, asked.selection.table)
    check_action(desk, asked.action)
    found = await read_slice(studio, desk.layout, asked.selection, asked.cursor, _WRITTEN)
    held = found_by(asked.selection)
    proposals = [propose(desk, asked.action, item, held) for item in found.items]
    changing = [each for each in proposals if each.change is not None]
    written, units, left = await perform(studio, desk, changing)
    left += [BulkLeft(desk.layout.key_of(each.before), each.reason) for each in proposals if each.reason]
    left += [BulkLeft(key, "Nothing stands under this key any more.") for key in found.missing]
    return BulkSlice(
        matched=len(proposals) + len(found.missing),
        written=written,
        same=len(proposals) - len(changing) - sum(1 for each in proposals if each.reason),
        left=tuple(left),
        units=units + found.units,
        cursor=found.next,
    )


ENDPOINTS = (
    Endpoint("POST", "/bulk/preview", preview, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/bulk/run", run, changes=True, body_bytes_max=_BODY_BYTES_MAX),
)
