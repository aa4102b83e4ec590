"""Single items (read, measured while edited, written without losing a concurrent change, undone) and bulk edits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.limits import ITEM_BYTES_MAX
from tavola.studio.differences import ItemDifference, compare_items
from tavola.studio.edits.bulk_edits import BulkAction, SkippedItem, check_action, propose_edit, write_edits
from tavola.studio.edits.derivation import KeyChange, with_next_lock
from tavola.studio.edits.drafts import EditContext, KeysMode, check_valid, draft_item, load_edit_context
from tavola.studio.edits.selections import ItemSelection, SliceCursor, query_attributes, read_slice
from tavola.studio.edits.validation import ItemIssue, key_issues, validate_item
from tavola.studio.edits.write_costs import IndexWrite, write_cost
from tavola.studio.edits.writes import (
    ItemEdit,
    Outcome,
    WriteResult,
    guard_units,
    needs_transaction,
    write_edit,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import KeyReading
from tavola.studio.studio import Studio
from tavola.studio.types import Item as GivenItem
from tavola.values import Item, item_size

_BODY_BYTES_MAX = 16 * 1024 * 1024  # two items of 400 KB, each byte escaped


@dataclass(frozen=True, slots=True)
class GetItemRequest:
    """The item of a key, as it is or as it was."""

    table: str
    key: GivenItem
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item whole, with what it is; `item` is None where nothing stands under the key."""

    item: GivenItem | None
    bytes: int
    entity: str | None
    kind: str  # entity, guard, marker, guess, unknown
    note: str
    keys: tuple[KeyReading, ...]


@dataclass(frozen=True, slots=True)
class ItemMeasures:
    """What an item weighs and what writing it takes, what is wrong with it, and the keys that follow from it."""

    bytes: int
    bytes_max: int
    units: float
    table_units: float
    indexes: tuple[IndexWrite, ...]
    transactional: bool
    moves: bool  # its key changes: it is deleted at one place and put at another
    issues: tuple[ItemIssue, ...]
    entity: str | None
    keys: tuple[KeyChange, ...]  # what is written otherwise than it was typed


@dataclass(frozen=True, slots=True)
class PutItemRequest:
    """An item to write or to measure; `before` is the item it replaces, None for a new one."""

    table: str
    item: GivenItem
    before: GivenItem | None = None
    entity: str | None = None  # for a new item that neither tag nor key identifies yet
    keys: KeysMode = "design"


@dataclass(frozen=True, slots=True)
class DeleteItemRequest:
    """An item to be deleted, if it still is what was read."""

    table: str
    before: GivenItem


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """A write to be taken back: what stood before it, and what it made; if that still stands."""

    table: str
    before: GivenItem | None
    after: GivenItem | None


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """How a write ended.

    After a conflict `stands` is what somebody else wrote, `theirs` what they changed and `mine` what I would have.
    """

    outcome: Outcome
    current: GivenItem | None
    undo: UndoRequest | None
    units: float
    keys: tuple[KeyChange, ...] = ()
    theirs: tuple[ItemDifference, ...] = ()
    mine: tuple[ItemDifference, ...] = ()


async def get_item(studio: Studio, params: GetItemRequest) -> ItemView:
    """Return the item under a key, and what it is."""
    context = await load_edit_context(studio, params.table)
    db = await studio.connection_at(params.as_of)
    key = context.layout.key_of(params.key)
    request = {"TableName": params.table, "Key": key, "ConsistentRead": not params.as_of}
    item: Item | None = (await db.call("GetItem", request)).get("Item")
    if item is None:
        return ItemView(None, 0, None, "unknown", "Nothing stands under this key.", ())
    recognised = context.recogniser.recognise(item)
    readings = context.recogniser.parse_keys(item)
    return ItemView(item, item_size(item), recognised.entity, recognised.kind, recognised.note, readings)


async def measure_item(studio: Studio, params: PutItemRequest) -> ItemMeasures:
    """Return what an item weighs, what it would cost, and what is wrong with it; nothing is written."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    draft = draft_item(context, params.item, before, entity=params.entity, keys=params.keys)
    sound = not any(flaw.severity == "error" for flaw in draft.issues)
    together = sound and needs_transaction(context.layout, draft.change)
    if not sound:
        cost = write_cost(context.layout, before, before) if before is not None else None
        return ItemMeasures(
            draft.bytes, ITEM_BYTES_MAX, 0.0, 0.0, () if cost is None else cost.indexes, False, False,
            draft.issues, draft.entity, draft.keys,
        )  # fmt: skip
    cost = write_cost(context.layout, before, draft.item, transactional=together)
    moves = before is not None and context.layout.key_of(before) != context.layout.key_of(draft.item)
    guards = guard_units(draft.change)
    return ItemMeasures(
        draft.bytes, ITEM_BYTES_MAX, cost.units + guards, cost.table_units + guards, cost.indexes, together, moves, draft.issues,
        draft.entity, draft.keys,
    )  # fmt: skip


async def put_item(studio: Studio, params: PutItemRequest) -> WriteOutcome:
    """Write an item where none is, or over exactly what was read; tell of a lost race and write nothing then."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    draft = draft_item(context, params.item, before, entity=params.entity, keys=params.keys)
    check_valid(draft)
    return await _write(studio, context, draft.change, draft.keys)


async def delete_item(studio: Studio, params: DeleteItemRequest) -> WriteOutcome:
    """Delete an item that still is what was read."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    return await _write(
        studio, context, ItemEdit(before, None, context.design, context.entity_of(before or {})), ()
    )


async def undo_write(studio: Studio, params: UndoRequest) -> WriteOutcome:
    """Take a write back, if what it made still stands; the lock of an entity goes on counting."""
    context = await load_edit_context(studio, params.table)
    current = _validate_current(context, params.after)
    restored = _validate_current(context, params.before)
    entity = context.entity_of(restored or current or {})
    previous_entity = None if current is None else context.entity_of(current)
    change = ItemEdit(
        current, with_next_lock(entity, current, restored), context.design, entity, previous_entity
    )
    return await _write(studio, context, change, ())


def _validate_current(context: EditContext, item: GivenItem | None) -> Item | None:
    """Return an item that is said to stand in the table, or to have stood there; refuse what cannot have."""
    if item is None:
        return None
    admission = validate_item(item)
    own = (
        context.layout.schema.names
    )  # that an index cannot hold an item is no reason: it may be older than the index
    flaws = [*admission.issues, *(f for f in key_issues(context.layout, admission.item) if f.path[0] in own)]
    wrong = next((flaw for flaw in flaws if flaw.severity == "error"), None)
    if wrong is not None:
        raise RequestRefused(
            "request-malformed",
            "The item cannot have stood there",
            f"{'.'.join(map(str, wrong.path)) or 'It'}: {wrong.text}",
            "Give what was read of it, whole and as it was.",
        )
    return admission.item


async def _write(
    studio: Studio, context: EditContext, change: ItemEdit, keys: tuple[KeyChange, ...]
) -> WriteOutcome:
    result: WriteResult = await write_edit(studio, context.layout, change)
    if result.outcome in ("conflict", "exists"):
        theirs = compare_items(change.before, result.current).differences
        mine = compare_items(change.before, change.after).differences
        return WriteOutcome(result.outcome, result.current, None, result.units, keys, theirs, mine)
    undo = (
        None
        if result.outcome != "written"
        else UndoRequest(context.layout.table, change.before, change.after)
    )
    return WriteOutcome(result.outcome, result.current, undo, result.units, keys)


_ROWS = 12  # shown before and after
_LOOKED_AT = 1_000  # items of one slice that are only read
_WRITTEN = 100  # items of one slice that are written


@dataclass(frozen=True, slots=True)
class BulkRequest:
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
    left: tuple[SkippedItem, ...]
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
    left: tuple[SkippedItem, ...]
    units: float
    cursor: SliceCursor | None


async def preview_bulk(studio: Studio, params: BulkRequest) -> BulkPreview:
    """Return what an action would do with the next slice of a selection; nothing is written."""
    context = await load_edit_context(studio, params.selection.table)
    check_action(context, params.action)
    chunk = await read_slice(studio, context.layout, params.selection, params.cursor, _LOOKED_AT)
    proposals = await studio.run_in_thread(
        lambda: [propose_edit(context, params.action, item) for item in chunk.items]
    )
    changing = [each for each in proposals if each.change is not None]
    units = sum(each.units for each in changing)
    book = studio.local_prices()
    skipped = [
        SkippedItem(context.layout.key_of(each.before), each.reason) for each in proposals if each.reason
    ]
    skipped += [SkippedItem(key, "Nothing stands under this key any more.") for key in chunk.missing]
    rows = [BulkRow(each.before, each.change.after) for each in changing[:_ROWS] if each.change is not None]
    return BulkPreview(
        matched=len(proposals) + len(chunk.missing),
        changing=len(changing),
        same=len(proposals) - len(changing) - sum(1 for each in proposals if each.reason),
        left=tuple(skipped),
        units=units,
        read_units=chunk.units,
        dollars=book.price("write_request_unit").of(units),
        priced=book.title,
        on_demand=context.layout.on_demand,
        rows=tuple(rows),
        cursor=chunk.next,
    )


async def run_bulk(studio: Studio, params: BulkRequest) -> BulkSlice:
    """Do an action with the next slice of a selection; an item that somebody changes meanwhile is left to them."""
    if params.selection.as_of or (params.selection.question and params.selection.question.as_of):
        raise RequestRefused(
            "past-unchangeable",
            "The past cannot be changed",
            "The selection is of the table as it was.",
            "Go back to now, and select again.",
        )
    context = await load_edit_context(studio, params.selection.table)
    check_action(context, params.action)
    chunk = await read_slice(studio, context.layout, params.selection, params.cursor, _WRITTEN)
    unchanged_attributes = query_attributes(params.selection)
    proposals = [propose_edit(context, params.action, item, unchanged_attributes) for item in chunk.items]
    changing = [each for each in proposals if each.change is not None]
    written, units, skipped = await write_edits(studio, context, changing)
    skipped += [
        SkippedItem(context.layout.key_of(each.before), each.reason) for each in proposals if each.reason
    ]
    skipped += [SkippedItem(key, "Nothing stands under this key any more.") for key in chunk.missing]
    return BulkSlice(
        matched=len(proposals) + len(chunk.missing),
        written=written,
        same=len(proposals) - len(changing) - sum(1 for each in proposals if each.reason),
        left=tuple(skipped),
        units=units + chunk.units,
        cursor=chunk.next,
    )


ENDPOINTS = (
    Endpoint("POST", "/items/get", get_item),
    Endpoint("POST", "/items/measure", measure_item, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/put", put_item, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/delete", delete_item, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/undo", undo_write, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/bulk/preview", preview_bulk, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/bulk/run", run_bulk, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
)
