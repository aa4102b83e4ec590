"""The items that an access pattern looks for never have its key.

Why: An index holds the items that have all its key attributes, and no others. A query by a key that nobody writes is right in every
way and returns nothing, for ever.

Example: "the review of a run" asks `GSI1PK = RUN#…`, and reviews are written with `GSI1PK = STACK#…` alone.

Instead: Write the key on the items that are asked for, or on an item of their own that points to them; or ask by the key they have.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.key_texts import can_render
from tavola.design.lint.rule import LintContext, RoutedNeed
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, KeyDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs whose items lack the key of the route, or have it with other fields."""
    for routed in context.routed_needs():
        problem = _describe_problem(context, routed)
        if problem is not None:
            yield Finding("keyless-pattern", SEVERITY, context.need_place(routed.need), *problem)
    for table, entity, pattern in context.design.patterns():
        key = entity.key_on(pattern.index)
        index = context.find_index(table, pattern.index)
        if index is None or key is None:
            continue
        written = {source.attribute for source in key.sources}
        missing = [name for name in index.attributes if name not in written]
        if missing:
            yield Finding(
                "keyless-pattern",
                SEVERITY,
                context.pattern_place(table, entity, pattern),
                f"{entity.name} never writes {join_names(missing)}, so none of it is in {index.name}",
                f"write {join_names(missing)} on every {entity.name}",
            )


def _describe_problem(context: LintContext, routed: RoutedNeed) -> tuple[str, str] | None:
    """Return the message and the remedy; None if some item has the key."""
    if routed.route.operation == "scan":
        return None
    if not routed.index_exists:
        there = join_names([index.name for index in routed.table.indexes]) or "none"
        return (
            f"it asks {routed.route.index}, and {routed.table.name} has {there}",
            "add the index, or ask one there is",
        )
    name = None if routed.index is None else routed.index.name
    entities = [
        entity
        for each in routed.need.entities
        if (entity := _entity_in_table(context, routed, each)) is not None
    ]
    for entity in entities:
        key = entity.key_on(name)
        if key is None:
            attributes = join_names(routed.partition_attributes + routed.sort_attributes)
            return (
                f"it asks {routed.target_name}, and {entity.name} never carries its key, {attributes}",
                f"write {attributes} on every {entity.name}",
            )
        missing = [
            each
            for each in routed.partition_attributes + routed.sort_attributes
            if each not in {s.attribute for s in key.sources}
        ]
        if missing:
            return (
                f"it asks {routed.target_name}, and {entity.name} never carries {join_names(missing)}",
                f"write {join_names(missing)} on every {entity.name}",
            )
        other = _describe_other_key(routed, entity, key)
        if other is not None:
            return other
    return None


def _entity_in_table(context: LintContext, routed: RoutedNeed, name: str) -> EntityDesign | None:
    home = context.entities_by_name.get(name)
    return home[1] if home is not None and home[0] is routed.table else None


def _describe_other_key(routed: RoutedNeed, entity: EntityDesign, key: KeyDesign) -> tuple[str, str] | None:
    """Return the message for a key that is made of other fields than the need gives, or of other texts."""
    given = {each.field for each in routed.need.where if each.operator in ("=", "in")}
    for source in key.hash:
        condition = next((each for each in routed.route.keys if each.field == source.attribute), None)
        if condition is None or condition.operator != "=":
            continue
        made = source.field if source.template is None else source.template.source
        if condition.value is not None:
            if source.template is not None and not can_render(entity, source, condition.value):
                value = condition.value.get("S", condition.value)
                return (
                    f"it asks {source.attribute} = {value}, and {entity.name} writes it as {made} alone",
                    f"write that key on every {entity.name}, or ask by the key it has",
                )
            continue
        unknown = [name for name in source.fields if name not in given]
        if unknown and given:
            return (
                f"it gives {join_names(sorted(given))}, and {source.attribute} of {entity.name} is made of {made}",
                f"write a key of {join_names(sorted(given))} on every {entity.name}, or ask by {join_names(unknown)}",
            )
    return None
