"""Access paths: which keys of a design answer a need, how well, and why not.

The linter, the solver and the studio's planner all decide whether a read can use a key. DynamoDB's rule is the same for
each of them, and `match_key` is its only implementation:

    partition key        sort key
    queue, status    |   created_at, priority, ticket_id
    every part needs |   parts from the left with =, then at most one with a range; the answer is sorted
    a value          |   by the parts after the ones with =

Conditions that the key does not decide become a filter on the items that were read. Without a value for every partition
part, DynamoDB has to scan.

`access_paths` applies the rule to every key of an entity and returns one `AccessPath` per key, best first:

- serves: `operation` is `get` or `query` (`serves` is true)
- serves with a filter: `operation` is `filter`, and `filtered` has the conditions
- needs a merge: `shards` or `partition_ranges` says that one read takes several queries
- does not serve: `operation` is `scan`; `missing` has the partition fields without a value
- nearly serves: `obstacle` and `obstacle_fields` say why not
- sort order: `ordered` says whether items come in the need's order

Whether an index projects all attributes that a read needs is decided separately, by `TableDesign.projected_attributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, cast

from tavola.model import SHARD
from tavola.model.document import EntityDesign, Given, KeyDesign, Need, SourceDesign, TableDesign
from tavola.values import Value

PathOperation = Literal["get", "query", "filter", "scan"]
Obstacle = Literal["", "partition-range", "partial", "gap", "early-range"]
PartT = TypeVar("PartT")

RANGE_OPERATORS = frozenset({"<", "<=", ">", ">=", "between", "begins_with"})

_BEST_FIRST: tuple[PathOperation, ...] = ("get", "query", "filter", "scan")
_GRAINS = ("year", "month", "day", "hour", "minute", "second", "s", "ms")


@dataclass(frozen=True, slots=True)
class KeyMatch(Generic[PartT]):
    """How far the conditions of a read determine a key. The parts are names, or whatever the caller gave."""

    missing: tuple[PartT, ...]  # partition parts without a value; with any of these, the key cannot be used
    equal: tuple[PartT, ...]  # leading sort parts that are compared with =
    rest: tuple[PartT, ...]  # the other sort parts: the answer is sorted by them
    ranged: bool  # the first of `rest` is limited to a range


def match_key(
    partition: Sequence[PartT],
    sort: Sequence[PartT],
    *,
    equals: Callable[[PartT], bool],
    ranges: Callable[[PartT], bool],
    fixes: Callable[[PartT], bool] | None = None,
) -> KeyMatch[PartT]:
    """Match the conditions of a read against a key.

    `equals` and `ranges` tell whether a condition compares a part with = or with a range. `fixes` tells whether the
    partitions to read are known from a part's condition, and is `equals` unless given.
    """
    missing = tuple(part for part in partition if not (fixes or equals)(part))
    count = next((position for position, part in enumerate(sort) if not equals(part)), len(sort))
    rest = tuple(sort[count:])
    return KeyMatch(missing, tuple(sort[:count]), rest, bool(rest) and ranges(rest[0]))


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A field in a key. With a `grain`, only that much of its value is in the key, such as the day of a time."""

    field: str
    grain: str = ""


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How one key, of the table or an index, answers a need."""

    table: TableDesign
    entity: EntityDesign
    key: KeyDesign
    operation: PathOperation
    filtered: tuple[Given, ...] = ()  # conditions that the key does not decide
    missing: tuple[str, ...] = ()  # partition fields without a value, which is why it takes a scan
    ordered: bool = True  # items come in the requested order
    partition_ranges: tuple[
        str, ...
    ] = ()  # partition fields with a range of grains: one query for each grain
    obstacle: Obstacle = ""
    """Why the key nearly serves: a partition field has only a range (`partition-range`), some partition fields have no value
    (`partial`), a sort field before one with a condition has none (`gap`), or has only a range (`early-range`)."""
    obstacle_fields: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether the key decides all conditions."""
        return self.operation in ("get", "query")

    @property
    def target_name(self) -> str:
        """The index that it reads, or the table."""
        return self.key.index or self.table.name

    @property
    def shards(self) -> int:
        """How many shards one read queries and merges."""
        return shards_to_read(self.key)

    @property
    def rank(self) -> tuple[int, bool, int, bool]:
        """Sort key: better paths come first."""
        return (
            _BEST_FIRST.index(self.operation),
            not self.ordered,
            len(self.filtered) + len(self.partition_ranges),
            self.key.index is not None,
        )


def access_paths(table: TableDesign, entity: EntityDesign, need: Need) -> tuple[AccessPath, ...]:
    """Return how each key of an entity answers a need, the best first.

    Indexes that may lack some of the needed items (sparse ones, and those of some members) are left out.
    """
    paths = [
        _match_path(table, entity, key, need)
        for key in entity.all_keys
        if _contains_all_results(table, entity, key, need)
    ]
    return tuple(sorted(paths, key=lambda path: path.rank))


def shards_to_read(key: KeyDesign | None, known: Collection[str] = ()) -> int:
    """Return how many shards a query reads and merges, if it knows the values of the fields in `known`.

    Time buckets count as one: they are read one after another, as far as a page reaches.
    """
    if key is None or key.shards is None or key.shards.by == "time":
        return 1
    if key.shards.of and set(key.shards.of) <= set(known):
        return 1
    return max(1, key.shards.reads)


def key_parts(sources: Sequence[SourceDesign]) -> tuple[KeyPart, ...]:
    """Return the fields of key attributes in sort order; neighbouring parts of one field count once, at the finest grain."""
    parts: list[KeyPart] = []
    for source in sources:
        for part in _source_parts(source):
            if parts and parts[-1].field == part.field:
                parts[-1] = part if not part.grain else parts[-1]
            else:
                parts.append(part)
    return tuple(parts)


def are_always_present(entity: EntityDesign, names: Collection[str], present: Collection[str]) -> bool:
    """Return whether every item that has the fields in `present` has all of `names` as well."""
    return all(name in present or not entity.field(name).nullable for name in names)


def _contains_all_results(table: TableDesign, entity: EntityDesign, key: KeyDesign, need: Need) -> bool:
    """Return whether every item that a need wants has this key."""
    if key.index is None:
        return True
    conditions = {condition.field: condition for condition in need.where}
    for member in key.members:
        allowed = [{"NULL": True} if value is None else value for value in member.values]
        if not all(value in allowed for value in _constants(conditions.get(member.field))):
            return False
    present = {name for name, condition in conditions.items() if condition.operator != "contains"}
    return are_always_present(entity, _required_fields(table, key), present | set(need.order))


def _required_fields(table: TableDesign, key: KeyDesign) -> tuple[str, ...]:
    """Return the fields that an item needs to be in the index of a key.

    An item of a foreign table is left out of an index if the field that is itself the key attribute is absent. Where
    other code renders the key from a template, the key always exists.
    """
    if key.sparse:
        return key.fields
    return tuple(source.field for source in key.sources if table.foreign and source.field is not None)


def _constants(condition: Given | None) -> tuple[Value | None, ...]:
    """Return the values that a condition always compares with; (None,) if they vary."""
    if condition is None or condition.operator not in ("=", "in") or condition.value is None:
        return (None,)
    listed = condition.value.get("L") if condition.operator == "in" else None
    return tuple(cast(list[Value], listed)) if isinstance(listed, list) else (condition.value,)


def _source_parts(source: SourceDesign) -> Iterator[KeyPart]:
    if source.template is None:
        if source.field is not None:
            yield KeyPart(source.field)
        return
    for placeholder in source.template.placeholders:
        if placeholder.field != SHARD:
            words = [word.strip() for word in placeholder.spec.split(",")]
            grain = next((word for word in words if word in _GRAINS), "")
            yield KeyPart(placeholder.field, grain)


def _match_path(table: TableDesign, entity: EntityDesign, key: KeyDesign, need: Need) -> AccessPath:
    conditions = {condition.field: condition for condition in need.where}
    partition = key_parts(key.hash)
    match = match_key(
        partition,
        key_parts(key.range),
        equals=lambda part: _is_equality(conditions.get(part.field)),
        ranges=lambda part: _is_range(conditions.get(part.field)),
        fixes=lambda part: _fixes_partition(conditions.get(part.field), part),
    )
    if match.missing:
        return _scan(table, entity, key, need, partition, tuple(part.field for part in match.missing))
    partition_ranges = tuple(part.field for part in partition if _is_range(conditions[part.field]))
    fixed = {part.field for part in partition if part.field not in partition_ranges}
    fixed |= {part.field for part in match.equal}
    decided = fixed | {member.field for member in key.members}
    if match.ranged:
        decided.add(match.rest[0].field)
    nullable = {field.name for field in entity.fields if field.nullable}
    decided |= {
        name
        for name, condition in conditions.items()
        if condition.operator == "exists" and (name in key.fields or name not in nullable)
    }
    filtered = tuple(condition for condition in need.where if condition.field not in decided)
    order = [name for name in need.order if name not in fixed]
    sorts = [part.field for part in match.rest]
    one_item = key.index is None and not match.rest and not partition_ranges
    ordered = need.single or one_item or sorts[: len(order)] == order
    operation: PathOperation = "filter" if filtered else "get" if one_item else "query"
    obstacle, fields = _sort_obstacle(sorts, conditions) if filtered else ("", ())
    return AccessPath(
        table, entity, key, operation, filtered, (), ordered, partition_ranges, obstacle, fields
    )


def _scan(
    table: TableDesign,
    entity: EntityDesign,
    key: KeyDesign,
    need: Need,
    partition: Sequence[KeyPart],
    missing: tuple[str, ...],
) -> AccessPath:
    conditions = {condition.field: condition for condition in need.where}
    obstacle: Obstacle = ""
    if all(_is_range(conditions.get(name)) for name in missing):
        obstacle = "partition-range"
    elif any(part.field not in missing for part in partition):
        obstacle = "partial"
    fields = missing if obstacle else ()
    return AccessPath(
        table,
        entity,
        key,
        "scan",
        need.where,
        missing,
        not need.order,
        obstacle=obstacle,
        obstacle_fields=fields,
    )


def _sort_obstacle(sorts: Sequence[str], conditions: Mapping[str, Given]) -> tuple[Obstacle, tuple[str, ...]]:
    """Return why conditions on later sort fields do not decide: an earlier field has no condition, or only a range."""
    later = [name for name in sorts[1:] if name in conditions and conditions[name].operator != "contains"]
    if not later:
        return "", ()
    first = sorts[0]
    if first not in conditions:
        return "gap", tuple(name for name in sorts[: sorts.index(later[0])] if name not in conditions)
    return ("early-range", (first, *later)) if _is_range(conditions[first]) else ("", ())


def _fixes_partition(condition: Given | None, part: KeyPart) -> bool:
    """Return whether a condition says which partitions to read: by values, or by a range of grains."""
    return _is_equality(condition) or (
        condition is not None and bool(part.grain) and condition.operator in ("between", ">", ">=")
    )


def _is_equality(condition: Given | None) -> bool:
    return condition is not None and condition.operator in ("=", "in")


def _is_range(condition: Given | None) -> bool:
    return condition is not None and condition.operator in RANGE_OPERATORS
