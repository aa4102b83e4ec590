"""Populations: how many values the partition key of an entity has, in a table or in an index, and how they are used.

Declared numbers take precedence: choices, `distinct` of fields, `items` of entities, shards. A partition key that identifies one item
has as many values as there are items; one with a date has one value at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tavola.design.simulation.keyspace import KeySet, Spread
from tavola.design.simulation.rates import DAY_S
from tavola.design.simulation.scenario import Scenario
from tavola.model.document import (
    CollectionDesign,
    EntityDesign,
    FieldDesign,
    KeyDesign,
    SourceDesign,
    TableDesign,
)

_SHARD = re.compile(r"[^{}A-Za-z0-9]?\{__shard__[^}]*\}")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}")
_PERIOD_S = {"minute": 60.0, "hour": 3600.0, "day": DAY_S, "month": 30.0 * DAY_S, "year": 365.0 * DAY_S}
_NAMES_MAX = 64

ONE_VALUE = 30.0  # a Zipf exponent that gives nearly all traffic to the first value


@dataclass(slots=True)
class Populations:
    """The distinct key sets of a workload, and the assumptions made about them."""

    scenario: Scenario
    key_sets: list[KeySet] = field(default_factory=list)
    assumptions: dict[str, None] = field(default_factory=dict)
    guesses: dict[str, int] = field(default_factory=dict)  # assumed numbers of values, by field

    def describe_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions in sentences."""
        sentences = list(self.assumptions)
        for count in dict.fromkeys(self.guesses.values()):
            fields = [name for name, guess in self.guesses.items() if guess == count]
            sentences.append(
                f"{count:,} distinct values each of {', '.join(fields)}; declare distinct=, or items= of the entity"
            )
        return tuple(sentences)

    def add(self, keys: KeySet) -> int:
        """Add a key set and return its number; one with the same table, template, shards and period is merged with it."""
        for number, known in enumerate(self.key_sets):
            if _identity(known) == _identity(keys):
                # A declared count replaces an assumed one; a larger count replaces a smaller one.
                if (not keys.assumed, keys.count) > (not known.assumed, known.count):
                    self.key_sets[number] = keys
                return number
        self.key_sets.append(keys)
        return len(self.key_sets) - 1

    def of_key(self, table: TableDesign, entity: EntityDesign, key: KeyDesign) -> int:
        """Return the number of the key set of an entity's partition key, in its table or in an index."""
        text = _template_text(key.hash)
        keys = self._key_set(table, entity, key, text)
        shards = key.shards
        if shards is not None and shards.by == "time":
            keys = replace(keys, period_s=_PERIOD_S[shards.bucket], by_time=True)
        elif shards is not None and shards.count > 1:
            keys = replace(keys, shards=shards.count)
        return self.add(replace(keys, table=table.name))

    def of_collection(self, table: TableDesign, collection: CollectionDesign) -> int:
        """Return the number of the key set of a collection's partition key."""
        for member in collection.members:
            entity = table.entity(member.entity)
            key = entity.key_on(collection.index)
            if key is not None:
                return self.of_key(table, entity, key)
        unknown = self.scenario.keys_unknown
        return self.add(KeySet(collection.partition.source, unknown, assumed=True, table=table.name))

    def share_first_value(self, entity: EntityDesign, names: list[str]) -> bool:
        """Return whether all new items have the same partition key: an initial status that updates change later."""
        if len(names) != 1:
            return False
        field_design = entity.field(names[0])
        changed = {name for write in entity.writes if write.kind == "update" for name in write.changes}
        if not field_design.choices or field_design.name not in changed:
            return False
        self.assumptions[
            f"New {entity.name} items have {field_design.name} `{field_design.choices[0]}`; later updates change it"
        ] = None
        return True

    def of_scan(self, table: TableDesign) -> int:
        """Return the number of the key set of a whole-table scan."""
        return self.add(KeySet(f"all of {table.name}", 10**9, table=table.name))

    def _key_set(self, table: TableDesign, entity: EntityDesign, key: KeyDesign, text: str) -> KeySet:
        names = tuple(dict.fromkeys(name for source in key.hash for name in source.fields))
        if not names:
            return KeySet(text, 1)
        count, period_s, assumed, guessed = 1, None, False, False
        for name in names:
            field_design = entity.field(name)
            if field_design.type == "date" and field_design.distinct is None:
                period_s = DAY_S
                self.assumptions[f"{text}: all traffic goes to the current {name}"] = None
                continue
            values = self._values(table, entity, key, field_design)
            if values is None:
                guessed = True
                one_item = _identifies_item(table, text) or "datetime" in field_design.type
                values = self.scenario.items_unknown if one_item else self.scenario.keys_unknown
                self.guesses.setdefault(f"{name} in {text}", values)
            assumed |= guessed
            count *= max(1, values)
        if entity.items is not None and not guessed:
            count = min(count, max(1, entity.items))
        return KeySet(
            text, count, values=_value_names(entity, key, names), period_s=period_s, assumed=assumed
        )

    def _values(
        self, table: TableDesign, entity: EntityDesign, key: KeyDesign, field_design: FieldDesign
    ) -> int | None:
        members = next((member for member in key.members if member.field == field_design.name), None)
        if members is not None:
            return len([value for value in members.values if value is not None]) or 1
        if field_design.values is not None:
            return field_design.values
        if key.index is None and names_one_item(key) and entity.items is not None:
            return entity.items
        # If the field identifies another entity, it has as many values as that entity has items.
        for other in table.entities:
            if other.key is not None and names_one_item(other.key):
                names = {name for source in other.key.hash for name in source.fields}
                if names == {field_design.name} and other.items is not None:
                    return other.items
        return None


def _identity(keys: KeySet) -> tuple[str, str, int, float | None]:
    return keys.table, keys.name, keys.shards, keys.period_s


def names_one_item(key: KeyDesign) -> bool:
    """Return whether a table's partition key identifies one item of its entity: the sort key is constant."""
    return key.index is None and not any(source.fields for source in key.range)


def _identifies_item(table: TableDesign, text: str) -> bool:
    """Return whether a partition key identifies one item of some entity."""
    return any(
        entity.key is not None and names_one_item(entity.key) and _template_text(entity.key.hash) == text
        for entity in table.entities
    )


def spread_of_writes(entity: EntityDesign, key: KeyDesign, *, new: bool) -> Spread:
    """Return where in an item collection writes of new or existing items fall."""
    sorts = [name for source in key.range for name in source.fields]
    if not sorts:
        return "point" if key.index is None else "any"
    first = entity.field(sorts[0])
    rising = "date" in first.type or first.numbered is not None or first.type == "timestamp"
    return "rising" if new and rising else "any"


def _template_text(sources: tuple[SourceDesign, ...]) -> str:
    templates = [
        f"{{{source.field}}}" if source.template is None else source.template.source for source in sources
    ]
    return _SHARD.sub("", "+".join(templates))


def _value_names(entity: EntityDesign, key: KeyDesign, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a partition key's values if they come from one field with choices."""
    if len(names) != 1:
        return ()
    choices = entity.field(names[0]).choices
    members = next((member for member in key.members if member.field == names[0]), None)
    if members is not None:
        choices = tuple(str(next(iter(value.values()))) for value in members.values if value is not None)
    if choices is None:
        return ()
    text = _template_text(key.hash)
    return tuple(_PLACEHOLDER.sub(str(choice).replace("\\", r"\\"), text) for choice in choices[:_NAMES_MAX])
