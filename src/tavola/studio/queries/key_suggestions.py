"""Suggest a Query when a Scan's conditions name all fields of a key.

For the condition `ticket_id = x` the design's templates render the key `PK = TICKET#x`. It is only a suggestion, because an
item may have the field without the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tavola.errors import TavolaError
from tavola.model import SHARD
from tavola.model.document import EntityDesign, KeyDesign, TableDesign
from tavola.studio.field_values import FieldUnreadable, key_part_value
from tavola.studio.queries.conditions import QueryCondition, check_condition, describe_value
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.table_layouts import TableLayout
from tavola.studio.types import AttributeValue

_SUGGESTIONS_MAX = 3


@dataclass(frozen=True, slots=True)
class KeySuggestion:
    """Conditions by key that replace conditions by field."""

    text: str
    conditions: tuple[QueryCondition, ...]


def suggest_keys(
    design: TableDesign | None, layout: TableLayout, question: ItemQuery
) -> tuple[KeySuggestion, ...]:
    """Return the keys that a query's equalities render, the table's first; none if other code writes the keys."""
    if design is None or design.foreign:
        return ()
    suggestions: dict[tuple[tuple[str, str], ...], KeySuggestion] = {}
    checked = tuple(map(check_condition, question.conditions))
    candidates = [(entity, key) for entity in design.entities for key in (entity.key, *entity.keys) if key]
    for entity, key in sorted(candidates, key=lambda candidate: candidate[1].index is not None):
        index = question.index or (key.index if question.choose else None)
        if key.index != index or all(target.index != index or not target.ready for target in layout.targets):
            continue
        rendered = _render_partition(layout, entity, key, checked)
        if rendered is None:
            continue
        partition, used = rendered
        others = tuple(condition for position, condition in enumerate(checked) if position not in used)
        conditions = tuple(QueryCondition(name, "=", (value,)) for name, value in partition.items())
        fields = " and ".join(dict.fromkeys(checked[position].attribute for position in sorted(used)))
        keys = " and ".join(f"{name} = {describe_value(value)}" for name, value in partition.items())
        text = f"{entity.name} has a key with {fields}: query {keys}"
        suggestions.setdefault(
            tuple((name, str(value)) for name, value in partition.items()),
            KeySuggestion(text, conditions + others),
        )
    return tuple(suggestions.values())[:_SUGGESTIONS_MAX]


def _render_partition(
    layout: TableLayout, entity: EntityDesign, key: KeyDesign, conditions: Sequence[QueryCondition]
) -> tuple[Mapping[str, AttributeValue], set[int]] | None:
    """Return the partition key that equalities render, and the positions of those used; None if they do not suffice."""
    target = next(target for target in layout.targets if target.index == key.index)
    sources = {source.attribute: source for source in key.sources}
    partition: dict[str, AttributeValue] = {}
    used: set[int] = set()
    for name in target.hash:
        source = sources.get(name)
        if source is None or source.template is None or source.guessed or SHARD in source.template.fields:
            return None
        values = {}
        for field_name in source.fields:
            field = entity.field(field_name)
            at = next(_equalities(conditions, field.attribute), None)
            if at is None:
                return None
            try:
                values[field_name] = key_part_value(field, dict(conditions[at].values[0]))
            except FieldUnreadable:
                return None
            used.add(at)
        bound = entity.bind_template(source)
        assert bound is not None, "the source has a template"
        try:
            partition[name] = {"S": bound.render(values)}
        except TavolaError:
            return None
    return (partition, used) if used else None


def _equalities(conditions: Sequence[QueryCondition], attribute: str) -> Iterator[int]:
    return (
        position
        for position, condition in enumerate(conditions)
        if condition.operator == "=" and condition.name == attribute and condition.values[0] != {"S": ""}
    )
