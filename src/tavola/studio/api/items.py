"""Endpoints for single items and bulk edits.

An item is read, measured while it is edited, written only if no other writer changed it, and a write can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tavola.limits import ITEM_BYTES_MAX
from tavola.studio.differences import ItemDifference, compare_items
from tavola.studio.edits.bulk_edits import (
    BulkAction,
    ProposedEdit,
    SkippedItem,
    check_action,
    propose_edit,
    write_edits,
)
from tavola.studio.edits.derivation import KeyChange, with_next_lock
from tavola.studio.edits.drafts import EditContext, KeysMode, check_valid, draft_item, load_edit_context
from tavola.studio.edits.selections import ItemSelection, ItemSlice, SliceCursor, query_attributes, read_slice
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
from tavola.studio.types import ApiMessage
from tavola.studio.types import Item as GivenItem
from tavola.values import Item, item_size

_BODY_BYTES_MAX = 16 * 1024 * 1024  # two items of 400 KB with every byte escaped


class ReadItemRequest(ApiMessage):
    """The key of an item, and the time to read it at (None: now)."""

    table: str
    key: GivenItem
    as_of: str | None = None


class ItemView(ApiMessage):
    """A whole item and what it was recognised as; `item` is None if no item has the key."""

    item: GivenItem | None
    bytes: int
    entity: str | None
    kind: str  # entity, guard, marker, guess, unknown
    note: str
    keys: tuple[KeyReading, ...]


class ItemMeasures(ApiMessage):
    """The size of an item, the cost of writing it, its issues, and its derived keys."""

    bytes: int
    bytes_max: int
    units: float
    table_units: float
    indexes: tuple[IndexWrite, ...]
    transactional: bool
    moves: bool  # its key changes, so the old item is deleted and a new one is put
    issues: tuple[ItemIssue, ...]
    entity: str | None
    keys: tuple[KeyChange, ...]  # attributes that are written differently than entered


class EditItemRequest(ApiMessage):
    """An item to write or measure; `before` is the item it replaces, None for a new item."""

    table: str
    item: GivenItem
    before: GivenItem | None = None
    entity: str | None = None  # for a new item that neither tag nor key identifies yet
    keys: KeysMode = "design"


class RemoveItemRequest(ApiMessage):
    """An item to delete, provided it still equals `before`."""

    table: str
    before: GivenItem


class UndoRequest(ApiMessage):
    """A write to undo: the item before and after it; refused if the item changed again."""

    table: str
    before: GivenItem | None
    after: GivenItem | None


class WriteOutcome(ApiMessage):
    """The outcome of a write.

    After a conflict `current` is the stored item, `theirs` the other writer's changes and `mine` the refused ones.
    """

    outcome: Outcome
    current: GivenItem | None
    undo: UndoRequest | None
    units: float
    keys: tuple[KeyChange, ...] = ()
    theirs: tuple[ItemDifference, ...] = ()
    mine: tuple[ItemDifference, ...] = ()


async def get_item(studio: Studio, params: ReadItemRequest) -> ItemView:
    """Return the item with a key and what it was recognised as."""
    context = await load_edit_context(studio, params.table)
    db = await studio.connection_at(params.as_of)
    key = context.layout.key_of(params.key)
    request = {"TableName": params.table, "Key": key, "ConsistentRead": not params.as_of}
    item: Item | None = (await db.call("GetItem", request)).get("Item")
    if item is None:
        return ItemView(None, 0, None, "unknown", "No item has this key.", ())
    recognised = context.recogniser.recognise(item)
    readings = context.recogniser.parse_keys(item)
    return ItemView(item, item_size(item), recognised.entity, recognised.kind, recognised.note, readings)


async def measure_item(studio: Studio, params: EditItemRequest) -> ItemMeasures:
    """Return the size, write cost and issues of an item; nothing is written."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    draft = draft_item(context, params.item, before, entity=params.entity, keys=params.keys)
    valid = not any(issue.severity == "error" for issue in draft.issues)
    transactional = valid and needs_transaction(context.layout, draft.change)
    if not valid:
        cost = write_cost(context.layout, before, before) if before is not None else None
        return ItemMeasures(
            draft.bytes, ITEM_BYTES_MAX, 0.0, 0.0, () if cost is None else cost.indexes, False, False,
            draft.issues, draft.entity, draft.keys,
        )  # fmt: skip
    cost = write_cost(context.layout, before, draft.item, transactional=transactional)
    moves = before is not None and context.layout.key_of(before) != context.layout.key_of(draft.item)
    guards = guard_units(draft.change)
    return ItemMeasures(
        draft.bytes, ITEM_BYTES_MAX, cost.units + guards, cost.table_units + guards, cost.indexes, transactional, moves,
        draft.issues, draft.entity, draft.keys,
    )  # fmt: skip


async def put_item(studio: Studio, params: EditItemRequest) -> WriteOutcome:
    """Write a new item, or replace the one that was read; after a conflict nothing is written."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    draft = draft_item(context, params.item, before, entity=params.entity, keys=params.keys)
    check_valid(draft)
    return await _write(studio, context, draft.change, draft.keys)


async def delete_item(studio: Studio, params: RemoveItemRequest) -> WriteOutcome:
    """Delete an item that has not changed since it was read."""
    context = await load_edit_context(studio, params.table)
    before = _validate_current(context, params.before)
    return await _write(
        studio, context, ItemEdit(before, None, context.design, context.entity_of(before or {})), ()
    )


async def undo_write(studio: Studio, params: UndoRequest) -> WriteOutcome:
    """Undo a write if the item has not changed since; an entity's lock is incremented, not restored."""
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
    """Return an item that the request claims is or was stored; refuse one that cannot have been."""
    if item is None:
        return None
    admission = validate_item(item)
    # Index keys do not count: the item may be older than the index
    table_key_names = context.layout.schema.names
    issues = [
        *admission.issues,
        *(i for i in key_issues(context.layout, admission.item) if i.path[0] in table_key_names),
    ]
    error = next((issue for issue in issues if issue.severity == "error"), None)
    if error is not None:
        raise RequestRefused(
            "request-malformed",
            "Invalid item",
            f"{'.'.join(map(str, error.path)) or 'The item'}: {error.text}",
            "Send the whole item exactly as it was read.",
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


_PREVIEW_ROWS_MAX = 12
_PREVIEW_ITEMS_MAX = 1_000  # per slice
_WRITE_ITEMS_MAX = 100  # per slice; smaller, so that a run can be stopped soon


class BulkRequest(ApiMessage):
    """An action on a selection, starting where the previous slice ended."""

    selection: ItemSelection
    action: BulkAction
    cursor: SliceCursor | None = None


class BulkRow(ApiMessage):
    """An item before and after the action; `after` is None if it is deleted."""

    before: GivenItem
    after: GivenItem | None


class BulkPreview(ApiMessage):
    """The effect an action would have on one slice; the page adds slices up."""

    matched: int  # items of the selection
    changing: int
    same: int  # items that would not change
    skipped: tuple[SkippedItem, ...]
    units: float  # write units the action would consume
    read_units: float  # consumed by this preview
    dollars: Decimal  # price of the write units, on demand
    priced: str
    on_demand: bool
    rows: tuple[BulkRow, ...]
    cursor: SliceCursor | None  # None: this was the last slice


class BulkSlice(ApiMessage):
    """The effect of an action on one slice, with the skipped items."""

    matched: int
    written: int
    same: int
    skipped: tuple[SkippedItem, ...]
    units: float
    cursor: SliceCursor | None


async def preview_bulk(studio: Studio, params: BulkRequest) -> BulkPreview:
    """Return the effect an action would have on the next slice of a selection; nothing is written."""
    context = await load_edit_context(studio, params.selection.table)
    check_action(context, params.action)
    chunk = await read_slice(studio, context.layout, params.selection, params.cursor, _PREVIEW_ITEMS_MAX)
    proposals = await studio.run_in_thread(
        lambda: [propose_edit(context, params.action, item) for item in chunk.items]
    )
    changing = [proposal for proposal in proposals if proposal.change is not None]
    units = sum(proposal.units for proposal in changing)
    book = studio.local_prices()
    skipped = _skipped_items(context, proposals, chunk)
    rows = [
        BulkRow(proposal.before, proposal.change.after)
        for proposal in changing[:_PREVIEW_ROWS_MAX]
        if proposal.change is not None
    ]
    return BulkPreview(
        matched=len(proposals) + len(chunk.missing),
        changing=len(changing),
        same=len(proposals) - len(changing) - sum(1 for proposal in proposals if proposal.reason),
        skipped=tuple(skipped),
        units=units,
        read_units=chunk.units,
        dollars=book.price("write_request_unit").of(units),
        priced=book.title,
        on_demand=context.layout.on_demand,
        rows=tuple(rows),
        cursor=chunk.next,
    )


async def run_bulk(studio: Studio, params: BulkRequest) -> BulkSlice:
    """Apply an action to the next slice of a selection; items that changed in the meantime are skipped."""
    if params.selection.as_of or (params.selection.question and params.selection.question.as_of):
        raise RequestRefused(
            "past-unchangeable",
            "Earlier data is read-only",
            "The items were selected while viewing an earlier point in time.",
            "Return to now and select them again.",
        )
    context = await load_edit_context(studio, params.selection.table)
    check_action(context, params.action)
    chunk = await read_slice(studio, context.layout, params.selection, params.cursor, _WRITE_ITEMS_MAX)
    unchanged_attributes = query_attributes(params.selection)
    proposals = [propose_edit(context, params.action, item, unchanged_attributes) for item in chunk.items]
    changing = [proposal for proposal in proposals if proposal.change is not None]
    written, units, skipped = await write_edits(studio, context, changing)
    skipped += _skipped_items(context, proposals, chunk)
    return BulkSlice(
        matched=len(proposals) + len(chunk.missing),
        written=written,
        same=len(proposals) - len(changing) - sum(1 for proposal in proposals if proposal.reason),
        skipped=tuple(skipped),
        units=units + chunk.units,
        cursor=chunk.next,
    )


def _skipped_items(
    context: EditContext, proposals: Sequence[ProposedEdit], chunk: ItemSlice
) -> list[SkippedItem]:
    """Return the items of a slice that the action does not apply to, with the reasons."""
    skipped = [
        SkippedItem(context.layout.key_of(proposal.before), proposal.reason)
        for proposal in proposals
        if proposal.reason
    ]
    return skipped + [SkippedItem(key, "The item no longer exists.") for key in chunk.missing]


ENDPOINTS = (
    Endpoint("POST", "/items/get", get_item),
    Endpoint("POST", "/items/measure", measure_item, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/put", put_item, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/delete", delete_item, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/items/undo", undo_write, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/bulk/preview", preview_bulk, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/bulk/run", run_bulk, is_write=True, body_bytes_max=_BODY_BYTES_MAX),
)
