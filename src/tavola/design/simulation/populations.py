"""Populations: how many values the partition key of an entity has, in a table or in an index, and how they are used.

What a design declares counts first: choices, `distinct` of fields, `items` of entities, shards. A partition key that
names one item has as many values as there are items; one that holds a date has one value at a time.
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

ONE_VALUE = 30.0  # an exponent that leaves next to nothing to any but the first value


@dataclass(slots=True)
class Populations:
    """The key sets of a workload, each once, and what was assumed for them."""

    scenario: Scenario
    found: list[KeySet] = field(default_factory=list)
    assumptions: dict[str, None] = field(default_factory=dict)
    guesses: dict[str, int] = field(default_factory=dict)  # values of fields that nobody counted

    def told(self) -> tuple[str, ...]:
        """Return the assumptions in sentences."""
        told = list(self.assumptions)
        for count in dict.fromkeys(self.guesses.values()):
            fields = [name for name, guess in self.guesses.items() if guess == count]
            told.append(
                f"{count:,} values each of {', '.join(fields)}: give distinct=, or items= of the entity"
            )
        return tuple(told)

    def add(self, keys: KeySet) -> int:
        """Return the number of a key set; one of the same template, table and shards is the same."""
        for number, known in enumerate(self.found):
            if _identity(known) == _identity(keys):
                # Whoever counted them is right; of two who did, who found more.
                if (not keys.assumed, keys.count) > (not known.assumed, known.count):
                    self.found[number] = keys
                return number
        self.found.append(keys)
        return len(self.found) - 1

    def of_key(self, table: TableDesign, entity: EntityDesign, key: KeyDesign) -> int:
        """Return the key set of an entity's partition key, in its table or in an index."""
        text = _text(key.hash)
        keys = self._counted(table, entity, key, text)
        shards = key.shards
        if shards is not None and shards.by == "time":
            keys = replace(keys, period_s=_PERIOD_S[shards.bucket], by_time=True)
        elif shards is not None and shards.count > 1:
            keys = replace(keys, shards=shards.count)
        return self.add(replace(keys, table=table.name))

    def of_collection(self, table: TableDesign, collection: CollectionDesign) -> int:
        """Return the key set of a collection's partition."""
        for member in collection.members:
            entity = table.entity(member.entity)
            key = entity.key_on(collection.index)
            if key is not None:
                return self.of_key(table, entity, key)
        unknown = self.scenario.keys_unknown
        return self.add(KeySet(collection.partition.source, unknown, assumed=True, table=table.name))

    def begin_alike(self, entity: EntityDesign, names: list[str]) -> bool:
        """Return whether all new items share one value of a partition key, a state that updates change later."""
        if len(names) != 1:
            return False
        told = entity.field(names[0])
        changed = {name for write in entity.writes if write.kind == "update" for name in write.changes}
        if not told.choices or told.name not in changed:
            return False
        self.assumptions[
            f"new items of {entity.name} begin with {told.name} {told.choices[0]}, as updates change it later"
        ] = None
        return True

    def everything(self, table: TableDesign) -> int:
        """Return the key set of a whole-table scan."""
        return self.add(KeySet(f"all of {table.name}", 10**9, table=table.name))

    def _counted(self, table: TableDesign, entity: EntityDesign, key: KeyDesign, text: str) -> KeySet:
        names = tuple(dict.fromkeys(name for source in key.hash for name in source.fields))
        if not names:
            return KeySet(text, 1)
        count, period_s, assumed, guessed = 1, None, False, False
        for name in names:
            told = entity.field(name)
            if told.type == "date" and told.distinct is None:
                period_s = DAY_S
                self.assumptions[f"{text}: one {name} at a time, as days go by"] = None
                continue
            values = self._values(table, entity, key, told)
            if values is None:
                guessed = True
                single = _single(table, text) or "datetime" in told.type
                values = self.scenario.items_unknown if single else self.scenario.keys_unknown
                self.guesses.setdefault(f"{name} in {text}", values)
            assumed |= guessed
            count *= max(1, values)
        if entity.items is not None and not guessed:
            count = min(count, max(1, entity.items))
        return KeySet(text, count, values=_named(entity, key, names), period_s=period_s, assumed=assumed)

    def _values(
        self, table: TableDesign, entity: EntityDesign, key: KeyDesign, told: FieldDesign
    ) -> int | None:
        members = next((each for each in key.members if each.field == told.name), None)
        if members is not None:
            return len([value for value in members.values if value is not None]) or 1
        if told.values is not None:
            return told.values
        if key.index is None and names_one_item(key) and entity.items is not None:
            return entity.items
        for other in table.entities:  # those that are named by this field alone say how many there are
            if other.key is not None and names_one_item(other.key):
                names = {name for source in other.key.hash for name in source.fields}
                if names == {told.name} and other.items is not None:
                    return other.items
        return None


def _identity(keys: KeySet) -> tuple[str, str, int, float | None]:
    return keys.table, keys.name, keys.shards, keys.period_s


def names_one_item(key: KeyDesign) -> bool:
    """Return whether a table's partition key names a single item of its entity: its sort key is constant."""
    return key.index is None and not any(source.fields for source in key.range)


def _single(table: TableDesign, text: str) -> bool:
    """Return whether a partition key names a single item of some entity."""
    return any(
        entity.key is not None and names_one_item(entity.key) and _text(entity.key.hash) == text
        for entity in table.entities
    )


def spread_of_writes(entity: EntityDesign, key: KeyDesign, *, new: bool) -> Spread:
    """Return where in an item collection new or old items are written."""
    sorts = [name for source in key.range for name in source.fields]
    if not sorts:
        return "point" if key.index is None else "any"
    first = entity.field(sorts[0])
    rising = "date" in first.type or first.numbered is not None or first.type == "timestamp"
    return "rising" if new and rising else "any"


def _text(sources: tuple[SourceDesign, ...]) -> str:
    told = [f"{{{each.field}}}" if each.template is None else each.template.source for each in sources]
    return _SHARD.sub("", "+".join(told))


def _named(entity: EntityDesign, key: KeyDesign, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a partition key by name, where one field with choices makes it."""
    if len(names) != 1:
        return ()
    choices = entity.field(names[0]).choices
    members = next((each for each in key.members if each.field == names[0]), None)
    if members is not None:
        choices = tuple(str(next(iter(value.values()))) for value in members.values if value is not None)
    if choices is None:
        return ()
    text = _text(key.hash)
    return tuple(_PLACEHOLDER.sub(str(choice).replace("\\", r"\\"), text) for choice in choices[:_NAMES_MAX])
