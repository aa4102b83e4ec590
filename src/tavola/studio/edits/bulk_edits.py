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

_CONCURRENCY = 8  # writes under way at once

_CONFLICT_TEXT = "Somebody changed it meanwhile; it was left as they made it."


@dataclass(frozen=True, slots=True)
class BulkAction:
    """What is done with each item: an attribute set or removed, or the item deleted."""

    kind: Literal["set", "remove", "delete"]
    attribute: str = ""
    value: AttributeValue | None = None


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item that was left as it is, and why."""

    key: GivenItem
    reason: str


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """What an action makes of one item, or why it does nothing."""

    before: Item
    change: ItemEdit | None
    units: float
    reason: str = ""  # why it is left; empty where it is the same already


def check_action(context: EditContext, action: BulkAction) -> None:
    """Refuse an action that can be done with no item."""
    problem = ""
    if action.kind != "delete" and not action.attribute:
        problem = "No attribute is named."
    elif action.kind == "set" and action.value is None:
        problem = f"No value is given for {action.attribute}."
    elif action.kind != "delete" and action.attribute in context.layout.schema.names:
        problem = f"{action.attribute} is part of the table's key, so each item would have to move."
    if problem:
        raise RequestRefused(
            "bulk-malformed", "That cannot be done with many items", problem, "Choose another attribute."
        )


def propose_edit(
    context: EditContext, action: BulkAction, before: Item, unchanged: frozenset[str] = frozenset()
) -> ProposedEdit:
    """Return what an action makes of an item; `held` are the attributes by which it was found."""
    entity = context.entity_of(before)
    if action.kind == "delete":
        change = ItemEdit(before, None, context.design if entity is not None else None, entity)
        together = needs_transaction(context.layout, change)
        return ProposedEdit(
            before, change, write_cost(context.layout, before, None, transactional=together).units
        )
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
    wrong = [flaw for flaw in draft.issues if flaw.severity == "error"]
    if wrong:
        place = ".".join(wrong[0].path)
        return ProposedEdit(before, None, 0.0, f"{place}: {wrong[0].text}" if place else wrong[0].text)
    if items_equal(before, draft.item):
        return ProposedEdit(before, None, 0.0)
    if context.layout.identity_of(before) != context.layout.identity_of(draft.item):
        return ProposedEdit(
            before, None, 0.0, "Its key is made of this field, so it would move; edit it by itself."
        )
    together = needs_transaction(context.layout, draft.change)
    cost = write_cost(context.layout, before, draft.item, transactional=together)
    return ProposedEdit(before, replace(draft.change, held=unchanged), cost.units)


async def write_edits(
    studio: Studio, context: EditContext, proposals: Sequence[ProposedEdit]
) -> tuple[int, float, list[SkippedItem]]:
    """Write what was proposed, some at a time; return how many were written, the units, and what was left."""
    written, units = 0, 0.0
    skipped: list[SkippedItem] = []

    async def one(proposal: ProposedEdit) -> tuple[float, str]:
        assert proposal.change is not None, "only changes are performed"
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
