"""Turn an entered item into one that is ready to write: validated, with derived keys and all its issues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.model.document import EntityDesign, TableDesign
from tavola.studio.edits.derivation import DerivedItem, KeyChange, derive_keys, stale_keys, values_equal
from tavola.studio.edits.requests import call_with_retries
from tavola.studio.edits.validation import ISSUES_MAX, ItemIssue, key_issues, size_issues, validate_item
from tavola.studio.edits.writes import ItemEdit
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import Recogniser, layout_keys
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout, parse_layout
from tavola.values import Item, item_size

KeysMode = Literal["design", "given"]
"""Whether key attributes are made of the fields anew, as the design says, or written as they are given."""


@dataclass(frozen=True, slots=True)
class EditContext:
    """What is needed to judge an item of a table."""

    layout: TableLayout
    recogniser: Recogniser
    design: TableDesign | None

    def entity_of(self, item: Mapping[str, Any], named: str | None = None) -> EntityDesign | None:
        """Return the entity of the design that an item is; None: nobody knows."""
        if self.design is None:
            return None
        recognised = self.recogniser.recognise(item)
        name = (
            recognised.entity
            if recognised.kind == "entity"
            else named
            if recognised.kind != "guard"
            else None
        )
        return next((entity for entity in self.design.entities if entity.name == name), None)


@dataclass(frozen=True, slots=True)
class ItemDraft:
    """An item ready to be written, if nothing is wrong with it."""

    change: ItemEdit
    item: Item
    bytes: int
    entity: str | None
    keys: tuple[KeyChange, ...]  # attributes that are written otherwise than they were typed
    issues: tuple[ItemIssue, ...]


async def load_edit_context(studio: Studio, table: str) -> EditContext:
    """Return what is needed to judge the items of a table."""
    if not table:
        raise RequestRefused(
            "table-missing", "No table is named", "The question names no table.", "Choose one."
        )
    described = (await call_with_retries(studio.db, "DescribeTable", {"TableName": table}))["Table"]
    design = studio.table_design(table)
    layout = parse_layout(described)
    return EditContext(layout, Recogniser(layout_keys(layout), design), design)


def draft_item(
    context: EditContext,
    raw_item: Mapping[str, Any],
    before: Item | None,
    *,
    entity: str | None = None,
    keys: KeysMode = "design",
) -> ItemDraft:
    """Return an item made ready to be written over `before`, or anew."""
    admission = validate_item(raw_item)
    item, flaws = admission.item, list(admission.issues)
    known = None if flaws else context.entity_of(item, entity)
    if flaws:
        flaws += [f for f in key_issues(context.layout, item) if f.path[0] in item]
        return _draft(context, before, DerivedItem(item), admission.bytes, known, flaws)
    derived = DerivedItem(item)
    if known is not None and context.design is not None:
        if keys == "design":
            derived = derive_keys(context.design, known, item, before)
            flaws += derived.issues
        else:
            flaws += stale_keys(context.design, known, item, before)
        flaws += _design_warnings(known, derived.item, before)
    size = item_size(derived.item)
    flaws += key_issues(context.layout, derived.item)
    flaws += size_issues(size)
    return _draft(context, before, derived, size, known, flaws)


def check_valid(draft: ItemDraft) -> None:
    """Refuse a draft that DynamoDB would refuse, with the first of its flaws."""
    wrong = [flaw for flaw in draft.issues if flaw.severity == "error"]
    if wrong:
        place = ".".join(wrong[0].path) or "The item"
        more = f" {len(wrong) - 1} more like it." if len(wrong) > 1 else ""
        raise RequestRefused(
            "item-refused",
            "DynamoDB would not take this item",
            f"{place}: {wrong[0].text}{more}",
            "Mend it and save again; nothing was written.",
        )


def _draft(
    context: EditContext,
    before: Item | None,
    derived: DerivedItem,
    size: int,
    entity: EntityDesign | None,
    flaws: list[ItemIssue],
) -> ItemDraft:
    # A field's flaw is told once, however many keys are made of it; what is refused goes before what is doubted.
    issues = sorted(dict.fromkeys(flaws), key=lambda flaw: flaw.severity != "error")[:ISSUES_MAX]
    was = None if before is None else context.entity_of(before)
    design = context.design if entity is not None or was is not None else None
    change = ItemEdit(before, derived.item, design, entity, was)
    name = None if entity is None else entity.name
    return ItemDraft(change, derived.item, size, name, derived.changes, tuple(issues))


def _design_warnings(entity: EntityDesign, item: Item, before: Item | None) -> list[ItemIssue]:
    """Return what the design says against an item that DynamoDB would take."""
    warnings: list[ItemIssue] = []
    changed = before is not None and any(
        not values_equal(before.get(n), item.get(n)) for n in {*before, *item}
    )
    if changed and entity.immutable:
        text = f"The design says that a {entity.name} is never written again; other programs may rely on it."
        warnings.append(ItemIssue((), text, "warning"))
    for field in entity.fields:
        value = item.get(field.attribute)
        if value is None:
            if field.required and not field.nullable and not _in_keys(entity, field.name):
                warnings.append(
                    ItemIssue((field.attribute,), f"{entity.name} needs its {field.name}.", "warning")
                )
            continue
        tag, content = next(iter(value.items()))
        if tag == "S" and not content and _in_keys(entity, field.name):
            warnings.append(
                ItemIssue((field.attribute,), "The table's key is made of it, and it is empty.", "warning")
            )
        if tag not in field.tags:
            text = (
                f"{entity.name}.{field.name} is {field.type}, stored as {' or '.join(field.tags)}, not {tag}."
            )
            warnings.append(ItemIssue((field.attribute,), text, "warning"))
        elif field.choices is not None and tag in ("S", "N") and content not in map(str, field.choices):
            text = f"It is none of {', '.join(map(str, field.choices[:12]))}."
            warnings.append(ItemIssue((field.attribute,), text, "warning"))
    return warnings


def _in_keys(entity: EntityDesign, name: str) -> bool:
    """Tell whether a field can be read from the table's key, so that an item may lack it."""
    return entity.key is not None and name in entity.key.fields
