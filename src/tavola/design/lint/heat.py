"""Partition heat: the units per second that reach the busiest partition of a key, from all accesses.

A partition serves at most 1,000 write units and 3,000 read units per second, whatever the capacity of the table. Every access that names a partition
counts: keys and queries, items that a query of an index fetches from the table, collections,
needs with a route, and writes, for all entities whose partition keys are made alike. A local index shares the partitions of
its table. Scans go from partition to partition and are not counted; `frequent-scan` reports them.

Peaks are added up as if simultaneous, and the busiest value of one access is taken as the busiest of all. What a design does
not declare adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

from tavola.design.access_paths import KeyPart, key_parts, shards_to_read
from tavola.design.cost.alterations import reshard_entity
from tavola.design.cost.capacity import (
    changed_fields,
    collection_units,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.design.lint.item_keys import can_render, omits_index_key
from tavola.design.lint.naming import split_words
from tavola.design.lint.rates import PLANNED_SHARE, busiest_share, peak_rate
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_rate, join_names, join_titles
from tavola.keys import Template
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S
from tavola.model import SHARD
from tavola.model.document import (
    CollectionDesign,
    EntityDesign,
    FieldDesign,
    KeyDesign,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
)

STATES = frozenset({"status", "state", "stage", "phase"})

_BUCKETS = frozenset({"minute", "hour", "day", "month", "year"})
_DAYS = frozenset({"date", "day", "hour", "month", "year", "week"})
_MOMENTS = frozenset({"timestamp", "at", "time", "when"})
_SHARDS_MAX = 10_000

HeatKind = Literal["read", "write"]
_LIMITS: dict[HeatKind, int] = {"write": PARTITION_WRITES_PER_S, "read": PARTITION_READS_PER_S}


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """The load of one access on the busiest value of a partition key."""

    kind: HeatKind
    title: str
    entity: str
    per_second: float  # requests
    units: Callable[[int], float]  # of one request at each shard, by the number of shards
    reads_every_shard: bool = False  # more shards do not reduce its load on each
    constant: str = ""  # the only value that it reads; empty: it varies

    def units_per_second(self, shards: int) -> float:
        """Return the units per second at the busiest of `shards` shards."""
        each = self.per_second * self.units(shards)
        return each if self.reads_every_shard else each / shards


@dataclass(frozen=True, slots=True)
class PartitionHeat:
    """The load on the busiest value of a partition key, and its number of shards."""

    loads: tuple[PartitionLoad, ...]
    shards: int = 1

    def units_per_second(self, kind: HeatKind, shards: int) -> float:
        """Return the units per second at the busiest shard, if there were `shards` of them."""
        return sum(load.units_per_second(shards) for load in self.loads if load.kind == kind)

    @property
    def writes(self) -> float:
        """Write units per second at the busiest partition."""
        return self.units_per_second("write", self.shards)

    @property
    def reads(self) -> float:
        """Read units per second at the busiest partition."""
        return self.units_per_second("read", self.shards)

    @property
    def busiest_entity(self) -> str:
        """The entity with the largest load relative to the limits."""
        load_by_entity: dict[str, float] = {}
        for load in self.loads:
            load_by_entity[load.entity] = (
                load_by_entity.get(load.entity, 0.0) + load.units_per_second(self.shards) / _LIMITS[load.kind]
            )
        return max(load_by_entity, key=lambda name: load_by_entity[name], default="")

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities that contribute load."""
        return tuple(dict.fromkeys(load.entity for load in self.loads if load.units_per_second(self.shards)))

    @property
    def overload(self) -> str | None:
        """A description of the load that exceeds the limits; None if none does."""
        sentences = [
            f"{format_rate(self.units_per_second(kind, self.shards))} {kind} units per second at peak "
            f"({join_titles(self._busiest_titles(kind))}); a partition supports {_LIMITS[kind]:,}"
            for kind in self._overloaded_kinds
        ]
        return "; and ".join(sentences) or None

    @property
    def _overloaded_kinds(self) -> tuple[HeatKind, ...]:
        return tuple(
            kind for kind, most in _LIMITS.items() if self.units_per_second(kind, self.shards) > most
        )

    def shards_needed(self, *kinds: HeatKind, share: float = PLANNED_SHARE) -> int | None:
        """Return how many shards keep the load within a share of the limits; None if no number does."""

        def fits(shards: int) -> bool:
            return all(self.units_per_second(kind, shards) <= share * _LIMITS[kind] for kind in kinds)

        if not fits(_SHARDS_MAX):
            return None
        low, high = 0, _SHARDS_MAX
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        return high

    def describe_remedy(self, finer: str) -> str:
        """Return what to do: a number of shards if that helps, else alternatives. `finer` describes a finer key."""
        over = self._overloaded_kinds
        helped = [kind for kind in over if self.shards_needed(kind) is not None]
        shards = self.shards_needed(*helped) if helped else None
        fewest = self.shards_needed(*helped, share=1.0) if helped else None
        advice = []
        if shards is not None:
            change = "Shard the key" if self.shards == 1 else "Use more shards"
            headroom = (
                f", which leaves headroom: {fewest} {'suffices' if fewest == 1 else 'suffice'} at the declared peak;"
                if fewest is not None and fewest < shards
                else ","
            )
            advice.append(f"{change} (shards={shards}){headroom} or {finer}")
        if "read" in over and "read" not in helped:
            queries = [load for load in self.loads if load.kind == "read" and load.reads_every_shard]
            advice.append(
                f"Shards do not help {join_titles(self._busiest_titles('read', queries))}, which reads all of them: replicate the data "
                f"under several keys and read one of them, cache the result, or {finer}"
            )
        if "write" in over and "write" not in helped:
            advice.append(f"No number of shards is enough for the writes: {finer}")
        return "; ".join(advice)

    def _busiest_titles(
        self, kind: HeatKind, loads: Sequence[PartitionLoad] | None = None
    ) -> tuple[str, ...]:
        chosen = self.loads if loads is None else loads
        found = sorted(
            (load for load in chosen if load.kind == kind),
            key=lambda load: -load.units_per_second(self.shards),
        )
        return tuple(dict.fromkeys(load.title for load in found))[:_TITLES_MAX]


_TITLES_MAX = 4  # titles in one sentence


def partition_heat(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> PartitionHeat | None:
    """Return the load on the busiest partition of a key; None if the number of partitions is unknown.

    Partitions are equally busy unless a skew is declared. With time buckets, the current one gets everything. New items start
    in one state, so they all go to that state's partition.
    """
    if key.index is not None and table.index(key.index).local:
        return None  # its entries are in the partitions of the table
    if count_active_partitions(context, table, entity, key) is None:
        return None
    together = _keys_sharing_partitions(context, table, entity, key)
    identity = tuple((id(other), id(its)) for other, its in together)
    return context.compute_once(
        ("heat", id(table), identity), lambda: _collect_heat(context, table, together)
    )


def overloaded_keys(
    context: LintContext,
) -> Iterator[tuple[TableDesign, EntityDesign, KeyDesign, PartitionHeat]]:
    """Yield the keys whose busiest partition receives more than a partition supports, for the entity with most of the load."""
    for table, entity, key in context.all_keys():
        heat = partition_heat(context, table, entity, key)
        if heat is not None and heat.overload is not None and heat.busiest_entity == entity.name:
            yield table, entity, key, heat


def _collect_heat(
    context: LintContext, table: TableDesign, together: Sequence[tuple[EntityDesign, KeyDesign]]
) -> PartitionHeat:
    loads: list[PartitionLoad] = []
    for entity, key in together:
        loads += context.compute_once(
            ("loads", id(table), id(entity), id(key)), partial(_key_loads, context, table, entity, key)
        )
    for collection in table.collections:
        loads += _collection_loads(context, table, collection, together)
    names = {entity.name for entity, _ in together}
    needs = {
        id(need): need for name in sorted(names) for need in context.routed_needs_by_entity.get(name, ())
    }
    for need in needs.values():
        loads += _need_loads(context, table, need, together)
    return PartitionHeat(_loads_of_busiest_value(loads), count_shards(together[0][1]))


def _key_loads(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> list[PartitionLoad]:
    values = count_active_partitions(context, table, entity, key)
    if values is None:
        return []
    return [
        *_write_loads(context, table, entity, key, values),
        *_read_loads(context, table, entity, key, values),
    ]


def count_active_partitions(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> int | None:
    """Return how many partition key values share the traffic; of time buckets only the current one is active."""
    return context.compute_once(
        ("values", id(table), id(entity), id(key)),
        lambda: _count_active_partitions(context, table, entity, key),
    )


def _count_active_partitions(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> int | None:
    found = key_parts(key.hash)
    passing = {slot.field for slot in found if _part_bucket(entity.field(slot.field), slot) is not None}
    if not passing:
        return context.count_partitions(table, entity, key)
    if len(passing) == len(found):
        return 1
    counts = [entity.field(slot.field).values for slot in found if slot.field not in passing]
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None


def count_shards(key: KeyDesign) -> int:
    """Return the number of shards of a value; time buckets count as one."""
    return 1 if key.shards is None or key.shards.by == "time" else key.shards.count


def _keys_sharing_partitions(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> list[tuple[EntityDesign, KeyDesign]]:
    """Return all keys in the same index that can have the same partition key values as this key."""
    made = context.compute_once(
        ("made", table.name, key.index), lambda: _keys_by_outline(context, table, key.index)
    )
    outline = _outline(key)
    alike = made[outline, count_shards(key)]
    own = next(fields for other, its, fields in alike if its is key and other is entity)
    plain = all(part == "{}" for part in outline)
    return [
        (other, its)
        for other, its, fields in alike
        if fields is own or _can_share_values(own, fields, plain=plain)
    ]


_Fields = tuple[FieldDesign, ...]


def _keys_by_outline(
    context: LintContext, table: TableDesign, index: str | None
) -> dict[tuple[tuple[str, ...], int], list[tuple[EntityDesign, KeyDesign, _Fields]]]:
    found: dict[tuple[tuple[str, ...], int], list[tuple[EntityDesign, KeyDesign, _Fields]]] = {}
    for entity, key in context.keys_by_index[table.name, index]:
        fields = tuple(entity.field(slot.field) for slot in key_parts(key.hash))
        found.setdefault((_outline(key), count_shards(key)), []).append((entity, key, fields))
    return found


def _outline(key: KeyDesign) -> tuple[str, ...]:
    return tuple(
        "{}" if source.template is None else _template_outline(source.template) for source in key.hash
    )


def _template_outline(template: Template) -> str:
    segments = [
        segment if isinstance(segment, str) else "" if segment.field == SHARD else "{}"
        for segment in template.segments
    ]
    return "".join(segments).rstrip("#")


def _can_share_values(mine: _Fields, its: _Fields, *, plain: bool) -> bool:
    """Return whether the fields of two keys with one outline can have the same values."""
    for left, right in zip(mine, its, strict=False):
        if left.choices is not None and right.choices is not None:
            if not set(left.choices) & set(right.choices):
                return False
        elif plain and left.name != right.name:
            return False
    return True


def _write_loads(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign, values: int
) -> Iterator[PartitionLoad]:
    places = _indexes_in_partitions(table, key)
    for write in entity.writes:
        often = peak_rate(write)
        if not often or omits_index_key(table, entity, key, write):
            continue
        found = context.compute_once(
            ("write units", id(table), id(entity), id(write)),
            partial(write_pattern_units, table, entity, write),
        )
        share = _busiest_write_share(context, entity, key, write, values)
        for kind in _LIMITS:
            units = sum(
                each.write if kind == "write" else each.read for each in found if each.index in places
            )
            if units:
                yield PartitionLoad(kind, write.title, entity.name, often * share, _constant_units(units))


def _busiest_write_share(
    context: LintContext, entity: EntityDesign, key: KeyDesign, write: WritePattern, values: int
) -> float:
    """Return the share of a write that goes to the busiest value."""
    new = write.kind == "put" and not changed_fields(entity, write)
    skews = [
        pattern.access.skew
        for pattern in entity.patterns
        if key.index is not None and pattern.index == key.index and pattern.access is not None
    ]
    skew = next((each for each in skews if each is not None), write.skew)
    if new and key.index is None and not key_parts(key.range):
        return busiest_share(values, None)  # each item has its own partition
    if new and write.skew is None:
        states = [
            entity.field(slot.field).values or 1
            for slot in key_parts(key.hash)
            if _is_changing_state(context, entity, slot.field)
        ]
        if states:
            return busiest_share(max(1, values // prod(states)), None)
    return busiest_share(values, skew)


def _read_loads(
    context: LintContext, table: TableDesign, entity: EntityDesign, key: KeyDesign, values: int
) -> Iterator[PartitionLoad]:
    places = _indexes_in_partitions(table, key)
    for pattern in entity.all_patterns:
        often = peak_rate(pattern.access)
        if pattern.access is None or not often:
            continue
        direct = pattern.index in places and pattern is not entity.primary
        share = busiest_share(values, pattern.access.skew if pattern.index in places else None)
        found = context.compute_once(
            ("read units", id(table), id(entity), id(pattern)), partial(pattern_units, table, entity, pattern)
        )
        for index in places:
            units = sum(each.read for each in found if each.index == index)
            if not units:
                continue
            if direct and index == pattern.index and not _knows_shard(key, pattern):
                per_shard = _units_per_shard(table, entity, key, pattern, units)
                yield PartitionLoad(
                    "read",
                    pattern.access.title,
                    entity.name,
                    often * share,
                    per_shard,
                    reads_every_shard=True,
                )
            else:
                yield PartitionLoad(
                    "read", pattern.access.title, entity.name, often * share, _constant_units(units)
                )


def _knows_shard(key: KeyDesign, pattern: PatternDesign) -> bool:
    return key.shards is not None and bool(key.shards.of) and set(key.shards.of) <= set(pattern.partition)


def _units_per_shard(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, pattern: PatternDesign, now: float
) -> Callable[[int], float]:
    """Return a function from the number of shards to the units of a query at each; `now` is the current total."""

    def units(shards: int) -> float:
        if shards == count_shards(key) or (key.shards is not None and key.shards.by == "time"):
            return now / shards_to_read(key)
        moved = reshard_entity(entity, key, shards)
        found = pattern_units(table, moved, pattern)
        return sum(each.read for each in found if each.index == pattern.index) / shards

    return units


def _collection_loads(
    context: LintContext,
    table: TableDesign,
    collection: CollectionDesign,
    together: Sequence[tuple[EntityDesign, KeyDesign]],
) -> Iterator[PartitionLoad]:
    often = peak_rate(collection.access)
    if not often or collection.access is None:
        return
    names = {member.entity for member in collection.members}
    for entity, key in together:
        values = count_active_partitions(context, table, entity, key)
        if (
            entity.name not in names
            or collection.index not in _indexes_in_partitions(table, key)
            or values is None
        ):
            continue
        if [_template_outline(collection.partition)] != list(_outline(key)):
            continue
        units = sum(each.read for each in collection_units(table, collection))
        share = busiest_share(values, collection.access.skew)
        yield PartitionLoad(
            "read",
            collection.access.title,
            entity.name,
            often * share,
            _constant_units(units),
            reads_every_shard=True,
        )
        return


def _need_loads(
    context: LintContext, table: TableDesign, need: Need, together: Sequence[tuple[EntityDesign, KeyDesign]]
) -> Iterator[PartitionLoad]:
    """Yield the load of a need by its route, once for all of its entities."""
    often, route = peak_rate(need.access), need.route
    if route is None or route.operation == "scan" or not often or need.access is None:
        return
    if (
        need.title in context.pattern_titles
        or (home := context.entities_by_name.get(need.entities[0])) is None
        or home[0] is not table
    ):
        return
    for entity, key in together:
        values = count_active_partitions(context, table, entity, key)
        if (
            entity.name not in need.entities
            or route.index not in _indexes_in_partitions(table, key)
            or values is None
        ):
            continue
        constant = _constant_partition(entity, key, need)
        if constant is None:
            return
        units = sum(
            each.read
            for each in need_units(context.design, need)
            if each.table == table.name and each.index == route.index
        )
        share = 1.0 if constant else busiest_share(values, need.access.skew)
        if time_bucket(entity, key) is not None:
            share /= route.queries  # one request per bucket, and only one bucket is current
        fetched = route.operation != "query"
        shards = count_shards(key)
        per_shard = _constant_units(units / (shards if route.queries >= shards > 1 else 1))
        known = shards > route.queries  # it reads some of the shards, and knows which
        yield PartitionLoad(
            "read",
            need.title,
            entity.name,
            often * share,
            per_shard,
            reads_every_shard=not fetched and not known,
            constant=constant,
        )
        return


def _constant_partition(entity: EntityDesign, key: KeyDesign, need: Need) -> str | None:
    """Return the partition key value that a need always reads, as text; empty: it varies; None: no item has it."""
    if not key_parts(key.hash):
        return ""
    values: list[str] = []
    always = {given.field: given for given in need.constants if given.operator == "="}
    for source in key.hash:
        keys = need.route.keys if need.route is not None else ()
        value = next((given.value for given in keys if given.field == source.attribute), None)
        if value is not None and not can_render(entity, source, value):
            return None
        if value is None and not all(name in always for name in source.fields):
            return ""
        values.append(str(value if value is not None else [always[name].value for name in source.fields]))
    return " ".join(values)


def _loads_of_busiest_value(loads: Sequence[PartitionLoad]) -> tuple[PartitionLoad, ...]:
    """Return the loads of the busiest value: of accesses to constant values, only those of the heaviest value."""
    by_value: dict[str, float] = {}
    for load in loads:
        if load.constant:
            by_value[load.constant] = by_value.get(load.constant, 0.0) + load.units_per_second(1)
    first = max(by_value, key=lambda value: by_value[value], default="")
    return tuple(load for load in loads if load.constant in ("", first))


def _indexes_in_partitions(table: TableDesign, key: KeyDesign) -> tuple[str | None, ...]:
    """Return what shares the partitions of a key: for the table's key, its local indexes too."""
    local = [index.name for index in table.indexes if index.local] if key.index is None else []
    return (key.index, *local)


def _constant_units(units: float) -> Callable[[int], float]:
    return lambda _: units


def describe_neighbours(found: PartitionHeat, entity: EntityDesign) -> str:
    """Return a phrase that names the other entities that add load to these partitions."""
    others = [name for name in found.entities if name != entity.name]
    return f" with {join_names(others)}" if others else ""


def _is_changing_state(context: LintContext, entity: EntityDesign, name: str) -> bool:
    """Return whether a field is a state that updates change, so that all items start with one value."""
    return bool(STATES & set(split_words(name))) and bool(context.updates_of(entity, name))


def has_write_rates(entity: EntityDesign) -> bool:
    """Return whether any write of an entity declares a rate."""
    return any(peak_rate(write) is not None for write in entity.writes)


def time_bucket(entity: EntityDesign, key: KeyDesign) -> str | None:
    """Return the time bucket that a partition holds all items of; None if the key has other parts."""
    if key.shards is not None and key.shards.by == "time" and not key_parts(key.hash):
        return key.shards.bucket
    found = key_parts(key.hash)
    if len(found) != 1:
        return None
    return _part_bucket(entity.field(found[0].field), found[0])


def time_kind(field: FieldDesign) -> str:
    """Return `day` or `moment` for a field that is a time by type or, for text, by name; else an empty string."""
    type_name = field.key_kind or field.type
    if type_name in ("date", "datetime"):
        return "day" if type_name == "date" else "moment"
    named = set(split_words(field.name)[-1:])
    if field.type not in ("text", "str", "string"):
        return ""
    return "day" if named & _DAYS else "moment" if named & _MOMENTS else ""


def is_moment(name: str) -> bool:
    """Return whether a field is named like a time: `placed_at`, `timestamp`, `epoch`."""
    return bool((_MOMENTS | {"epoch", "ts", "millis", "ttl"}) & set(split_words(name)[-1:]))


def _part_bucket(field: FieldDesign, slot: KeyPart) -> str | None:
    kind = time_kind(field)
    if kind == "moment":
        return slot.grain if slot.grain in _BUCKETS else None
    if kind != "day":
        return None
    last = split_words(field.name)[-1]
    return slot.grain or (last if last in _BUCKETS else "day")
