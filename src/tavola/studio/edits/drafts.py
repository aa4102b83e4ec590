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
"""Whether key attributes are derived from the fields, or written as entered."""


@dataclass(frozen=True, slots=True)
class EditContext:
    """The layout, recogniser and design of the table whose items are edited."""

    layout: TableLayout
    recogniser: Recogniser
    design: TableDesign | None

    def entity_of(self, item: Mapping[str, Any], named: str | None = None) -> EntityDesign | None:
        """Return the entity of an item; None if unknown."""
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
    """An item ready to be written, unless it has errors."""

    change: ItemEdit
    item: Item
    bytes: int
    entity: str | None
    keys: tuple[KeyChange, ...]  # attributes that are written differently than entered
    issues: tuple[ItemIssue, ...]


async def load_edit_context(studio: Studio, table: str) -> EditContext:
    """Return the layout, recogniser and design of a table."""
    if not table:
        raise RequestRefused(
            "table-missing", "No table selected", "The request names no table.", "Choose a table."
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
    """Return an item with derived keys and all its issues, to replace `before` or as a new item."""
    admission = validate_item(raw_item)
    item, issues = admission.item, list(admission.issues)
    known = None if issues else context.entity_of(item, entity)
    if issues:
        issues += [issue for issue in key_issues(context.layout, item) if issue.path[0] in item]
        return _draft(context, before, DerivedItem(item), admission.bytes, known, issues)
    derived = DerivedItem(item)
    if known is not None and context.design is not None:
        if keys == "design":
            derived = derive_keys(context.design, known, item, before)
            issues += derived.issues
        else:
            issues += stale_keys(context.design, known, item, before)
        issues += _design_warnings(known, derived.item, before)
    size = item_size(derived.item)
    issues += key_issues(context.layout, derived.item)
    issues += size_issues(size)
    return _draft(context, before, derived, size, known, issues)


def check_valid(draft: ItemDraft) -> None:
    """Refuse a draft that DynamoDB would reject, with its first error."""
    errors = [issue for issue in draft.issues if issue.severity == "error"]
    if errors:
        place = ".".join(errors[0].path) or "The item"
        count_note = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
        raise RequestRefused(
            "item-refused",
            "DynamoDB would reject this item",
            f"{place}: {errors[0].text}{count_note}",
            "Fix it and save again; nothing was written.",
        )


def _draft(
    context: EditContext,
    before: Item | None,
    derived: DerivedItem,
    size: int,
    entity: EntityDesign | None,
    issues: list[ItemIssue],
) -> ItemDraft:
    # Each issue is reported once, even if several keys depend on the field; errors come first.
    unique = sorted(dict.fromkeys(issues), key=lambda issue: issue.severity != "error")[:ISSUES_MAX]
    was = None if before is None else context.entity_of(before)
    design = context.design if entity is not None or was is not None else None
    change = ItemEdit(before, derived.item, design, entity, was)
    name = None if entity is None else entity.name
    return ItemDraft(change, derived.item, size, name, derived.changes, tuple(unique))


def _design_warnings(entity: EntityDesign, item: Item, before: Item | None) -> list[ItemIssue]:
    """Return the conflicts of an item with its design that DynamoDB would not notice."""
    warnings: list[ItemIssue] = []
    changed = before is not None and any(
        not values_equal(before.get(n), item.get(n)) for n in {*before, *item}
    )
    if changed and entity.immutable:
        text = f"The design declares {entity.name} immutable; programs may rely on it never changing."
        warnings.append(ItemIssue((), text, "warning"))
    for field in entity.fields:
        value = item.get(field.attribute)
        if value is None:
            if field.required and not field.nullable and not _in_keys(entity, field.name):
                warnings.append(
                    ItemIssue((field.attribute,), f"{entity.name} requires {field.name}.", "warning")
                )
            continue
        tag, content = next(iter(value.items()))
        if tag == "S" and not content and _in_keys(entity, field.name):
            warnings.append(
                ItemIssue(
                    (field.attribute,), "It is part of the primary key and must not be empty.", "warning"
                )
            )
        if tag not in field.tags:
            text = (
                f"{entity.name}.{field.name} is {field.type}, stored as {' or '.join(field.tags)}, not {tag}."
            )
            warnings.append(ItemIssue((field.attribute,), text, "warning"))
        elif field.choices is not None and tag in ("S", "N") and content not in map(str, field.choices):
            text = f"It must be one of {', '.join(map(str, field.choices[:12]))}."
            warnings.append(ItemIssue((field.attribute,), text, "warning"))
    return warnings


def _in_keys(entity: EntityDesign, name: str) -> bool:
    """Return whether the primary key contains a field, so that the item need not store it."""
    return entity.key is not None and name in entity.key.fields
