"""Apply one action to many items: preview first, then write a slice at a time.

Each item is drafted like a single edit, so derived keys, unique guards and locks are maintained. Each write is conditional
on the attributes it changes and on those the selection was made by. Skipped items are reported with key and reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tavola.errors import TavolaError
from tavola.studio.edits.drafts import EditContext, draft_item
from tavola.studio.edits.write_costs import write_cost
from tavola.studio.edits.writes import ItemEdit, items_equal, needs_transaction, write_edit
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import AttributeValue
from tavola.studio.types import Item as GivenItem
from tavola.values import Item

_CONCURRENCY = 8  # concurrent writes

_CONFLICT_TEXT = "It changed in the meantime and was skipped."


@dataclass(frozen=True, slots=True)
class BulkAction:
    """The action on each item: set or remove an attribute, or delete the item."""

    kind: Literal["set", "remove", "delete"]
    attribute: str = ""
    value: AttributeValue | None = None


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item that was not changed, and why."""

    key: GivenItem
    reason: str


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """The edit that an action makes of one item, or the reason why it makes none."""

    before: Item
    change: ItemEdit | None
    units: float
    reason: str = ""  # why it is skipped; empty if the item would not change


def check_action(context: EditContext, action: BulkAction) -> None:
    """Refuse an action that no item allows."""
    problem = ""
    if action.kind != "delete" and not action.attribute:
        problem = "The attribute name is missing."
    elif action.kind == "set" and action.value is None:
        problem = f"The value of {action.attribute} is missing."
    elif action.kind != "delete" and action.attribute in context.layout.schema.names:
        problem = f"{action.attribute} is part of the primary key, so every item would move to another key."
    if problem:
        raise RequestRefused(
            "bulk-malformed", "This bulk edit is not possible", problem, "Enter another attribute or value."
        )


def propose_edit(
    context: EditContext, action: BulkAction, before: Item, unchanged: frozenset[str] = frozenset()
) -> ProposedEdit:
    """Return the edit that an action makes of an item; `unchanged` are attributes the selection depends on."""
    entity = context.entity_of(before)
    if action.kind == "delete":
        change = ItemEdit(before, None, context.design if entity is not None else None, entity)
        transactional = needs_transaction(context.layout, change)
        cost = write_cost(context.layout, before, None, transactional=transactional)
        return ProposedEdit(before, change, cost.units)
    attributes: dict[str, AttributeValue] = dict(before)
    if action.kind == "remove":
        attributes.pop(action.attribute, None)
    elif action.value is not None:
        attributes[action.attribute] = action.value
    if attributes.keys() == before.keys() and attributes.get(action.attribute) == before.get(
        action.attribute
    ):
        return ProposedEdit(before, None, 0.0)
    draft = draft_item(context, attributes, before)
    errors = [issue for issue in draft.issues if issue.severity == "error"]
    if errors:
        return ProposedEdit(before, None, 0.0, str(errors[0]))
    if items_equal(before, draft.item):
        return ProposedEdit(before, None, 0.0)
    if context.layout.identity_of(before) != context.layout.identity_of(draft.item):
        return ProposedEdit(
            before,
            None,
            0.0,
            "The key is computed from this field, so the item would move; edit it individually.",
        )
    transactional = needs_transaction(context.layout, draft.change)
    cost = write_cost(context.layout, before, draft.item, transactional=transactional)
    return ProposedEdit(before, replace(draft.change, held=unchanged), cost.units)


async def write_edits(
    studio: Studio, context: EditContext, proposals: Sequence[ProposedEdit]
) -> tuple[int, float, list[SkippedItem]]:
    """Write the proposed edits, a few at a time; return the number written, the units, and the skipped items."""
    written, units = 0, 0.0
    skipped: list[SkippedItem] = []

    async def one(proposal: ProposedEdit) -> tuple[float, str]:
        assert proposal.change is not None, "the caller passes only changes"
        try:
            result = await write_edit(studio, context.layout, proposal.change)
        except TavolaError as error:
            problem = problem_of(error)
            return 0.0, f"{problem.title}: {problem.detail}"
        return result.units, "" if result.outcome in ("written", "unchanged") else _CONFLICT_TEXT

    for start in range(0, len(proposals), _CONCURRENCY):
        some = proposals[start : start + _CONCURRENCY]
        for proposal, (cost, reason) in zip(some, await asyncio.gather(*map(one, some)), strict=True):
            units += cost
            if reason:
                skipped.append(SkippedItem(context.layout.key_of(proposal.before), reason))
            else:
                written += 1
    return written, units, skipped
