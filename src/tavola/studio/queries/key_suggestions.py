"""Suggest a Query where a Scan's conditions name the fields a key is made of.

People ask for `ticket_id = x`; the key is `PK = TICKET#x`, which the design's templates can render. It is only a suggestion
because the writer of an item may have written the field without the key.
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
from tavola.studio.queries.read_targets import ReadTargets
from tavola.studio.types import AttributeValue

_SUGGESTIONS_MAX = 3


@dataclass(frozen=True, slots=True)
class KeySuggestion:
    """The conditions that ask by a key what was asked by its fields."""

    text: str
    conditions: tuple[QueryCondition, ...]


def suggest_keys(
    design: TableDesign | None, ways: ReadTargets, question: ItemQuery
) -> tuple[KeySuggestion, ...]:
    """Return the keys that equalities of a question make, the table's own first; none where other code makes the keys."""
    if design is None or design.foreign:
        return ()
    found: dict[tuple[tuple[str, str], ...], KeySuggestion] = {}
    given = tuple(map(check_condition, question.conditions))
    candidates = [(entity, key) for entity in design.entities for key in (entity.key, *entity.keys) if key]
    for entity, key in sorted(candidates, key=lambda each: each[1].index is not None):
        index = question.index or (key.index if question.choose else None)
        if key.index != index or all(way.index != index or not way.ready for way in ways.targets):
            continue
        made = _render_partition(ways, entity, key, given)
        if made is None:
            continue
        told, used = made
        left = tuple(each for at, each in enumerate(given) if at not in used)
        conditions = tuple(QueryCondition(name, "=", (value,)) for name, value in told.items())
        fields = " and ".join(dict.fromkeys(given[at].attribute for at in sorted(used)))
        keys = " and ".join(f"{name} = {describe_value(value)}" for name, value in told.items())
        text = f"{fields} makes {' and '.join(told)} of {entity.name}: ask {keys}"
        found.setdefault(
            tuple((name, str(value)) for name, value in told.items()), KeySuggestion(text, conditions + left)
        )
    return tuple(found.values())[:_SUGGESTIONS_MAX]


def _render_partition(
    ways: ReadTargets, entity: EntityDesign, key: KeyDesign, given: Sequence[QueryCondition]
) -> tuple[Mapping[str, AttributeValue], set[int]] | None:
    """Return the partition key that equalities make, and which of them it is made of; None: they do not."""
    way = next(each for each in ways.targets if each.index == key.index)
    sources = {source.attribute: source for source in key.sources}
    told: dict[str, AttributeValue] = {}
    used: set[int] = set()
    for name in way.hash:
        source = sources.get(name)
        if source is None or source.template is None or source.guessed or SHARD in source.template.fields:
            return None
        values = {}
        for wanted in source.fields:
            field = entity.field(wanted)
            at = next(_equalities(given, field.attribute), None)
            if at is None:
                return None
            try:
                values[wanted] = key_part_value(field, dict(given[at].values[0]))
            except FieldUnreadable:
                return None
            used.add(at)
        bound = entity.bind_template(source)
        assert bound is not None, "it has a template"
        try:
            told[name] = {"S": bound.render(values)}
        except TavolaError:
            return None
    return (told, used) if used else None


def _equalities(given: Sequence[QueryCondition], attribute: str) -> Iterator[int]:
    return (
        at
        for at, each in enumerate(given)
        if each.operator == "=" and each.name == attribute and each.values[0] != {"S": ""}
    )
