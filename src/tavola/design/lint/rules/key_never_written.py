"""The items that an access pattern looks for never have the key it queries.

Why: An index contains only items that have all of its key attributes. A query by a key that no write sets is
valid and always returns nothing.

Example: "The review of a run" queries `GSI1PK = RUN#…`, but reviews are written with `GSI1PK = STACK#…` only.

Instead: Write the key on these items, or on a lookup item that points to them, or query by a key that they
have.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.item_keys import can_render
from tavola.design.lint.rule import Defect, LintContext, RoutedNeed
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, KeyDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs whose items lack the key of the route, or have it with other fields."""
    for routed in context.routed_needs():
        problem = _describe_problem(context, routed)
        if problem is not None:
            yield Defect(context.need_place(routed.need), *problem)
    for table, entity, pattern in context.design.patterns():
        key = entity.key_on(pattern.index)
        index = context.find_index(table, pattern.index)
        if index is None or key is None:
            continue
        written = {source.attribute for source in key.sources}
        missing = [name for name in index.attributes if name not in written]
        if missing:
            yield Defect(
                context.pattern_place(table, entity, pattern),
                f"{entity.name} never writes {join_names(missing)}, so {index.name} contains no {entity.name}",
                f"Write {join_names(missing)} on every {entity.name}",
            )


def _describe_problem(context: LintContext, routed: RoutedNeed) -> tuple[str, str] | None:
    """Return the message and the remedy; None if some item has the key."""
    if routed.route.operation == "scan":
        return None
    if not routed.index_exists:
        there = join_names([index.name for index in routed.table.indexes]) or "none"
        return (
            f"Queries {routed.route.index}, which does not exist; indexes of {routed.table.name}: {there}",
            "Add the index, or query an existing one",
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
                f"Queries {routed.target_name}, but {entity.name} never has its key, {attributes}",
                f"Write {attributes} on every {entity.name}",
            )
        missing = [
            each
            for each in routed.partition_attributes + routed.sort_attributes
            if each not in {s.attribute for s in key.sources}
        ]
        if missing:
            return (
                f"Queries {routed.target_name}, but {entity.name} never has {join_names(missing)}",
                f"Write {join_names(missing)} on every {entity.name}",
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
                    f"Queries {source.attribute} = {value}, but {entity.name} writes {source.attribute} as {made}",
                    f"Write that key on every {entity.name}, or query by {made}",
                )
            continue
        unknown = [name for name in source.fields if name not in given]
        if unknown and given:
            return (
                f"Queries by {join_names(sorted(given))}, but {entity.name} writes {source.attribute} as {made}",
                f"Write a key of {join_names(sorted(given))} on every {entity.name}, or query by {join_names(unknown)}",
            )
    return None
