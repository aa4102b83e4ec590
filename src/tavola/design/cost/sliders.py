"""Sliders: what-if variants of a design, with other rates, sizes, counts of items and indexes, or consistency.

Declared numbers are multiplied, or the rate of one access pattern is set; the original design is not changed. With all
sliders at their defaults the same object is returned, so the total stays the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tavola.design.cost.assumptions import CostError
from tavola.limits import GLOBAL_INDEXES_MAX, ITEM_BYTES_MAX
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
)
from tavola.model.sizes import value_bytes

Consistency = Literal["declared", "eventual", "strong"]
Transactions = Literal["declared", "none", "all"]

_FACTOR_MAX = 1e6


@dataclass(frozen=True, slots=True)
class Sliders:
    """The position of each slider; 1 means as declared."""

    reads: float = 1.0
    writes: float = 1.0
    item_bytes: float = 1.0
    items: float = 1.0  # items of each entity, and with them storage
    indexes: int = 0  # additional global indexes on each table, with all attributes and without reads
    peak: float | None = None  # times the average, for every access pattern; None: as declared
    consistency: Consistency = "declared"
    transactions: Transactions = "declared"
    # Requests per second, by the ID of an access pattern
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("reads", "writes", "item_bytes", "items"):
            factor = getattr(self, name)
            if not 0 <= factor <= _FACTOR_MAX:
                raise CostError(f"the factor of {name} must be 0 to {_FACTOR_MAX:g}, not {factor}")
        if not 0 <= self.indexes <= GLOBAL_INDEXES_MAX:
            raise CostError(f"additional indexes must be 0 to {GLOBAL_INDEXES_MAX}, not {self.indexes}")
        if self.peak is not None and not 1 <= self.peak <= _FACTOR_MAX:
            raise CostError(f"the peak must be at least 1 times the average, not {self.peak}")
        for name, rate in self.rates.items():
            if not 0 <= rate < float("inf"):
                raise CostError(f"the rate of {name} must be 0 or more, not {rate}")

    @property
    def is_unchanged(self) -> bool:
        """Whether all sliders are at their defaults."""
        return self == Sliders()


def apply_sliders(design: Design, sliders: Sliders) -> Design:
    """Return the variant of a design that sliders describe; the same object if none was moved."""
    if sliders.is_unchanged:
        return design
    known = set(access_ids(design))
    for name in sliders.rates:
        if name not in known:
            raise CostError(f"the design has no access {name!r}; choose one of its access patterns")
    return replace(
        design,
        tables=tuple(_table(table, sliders) for table in design.tables),
        needs=tuple(_need(design, need, sliders) for need in design.needs),
    )


def access_ids(design: Design) -> tuple[str, ...]:
    """Return the ID of each access pattern in the bill, in the bill's order."""
    return tuple(_ids(design))


def _ids(design: Design) -> Iterator[str]:
    titles: set[str] = set()
    for table in design.tables:
        for entity in table.entities:
            for pattern in entity.all_patterns:
                if pattern.access is not None or pattern != entity.primary:
                    titles.add((pattern.access or AccessPattern(pattern.name)).title)
                    yield _pattern_id(table, entity, pattern)
            for write in entity.writes:
                yield _write_id(table, entity, write)
        for collection in table.collections:
            titles.add((collection.access or AccessPattern(collection.name)).title)
            yield f"{table.name}/{collection.name}"
    for need in design.needs:
        if need.route is not None and need.title not in titles:
            yield _need_id(design, need)


def _pattern_id(table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> str:
    return f"{table.name}/{entity.name}.{pattern.name}"


def _write_id(table: TableDesign, entity: EntityDesign, write: WritePattern) -> str:
    return f"{table.name}/{entity.name}: {write.title}"


def _need_id(design: Design, need: Need) -> str:
    for table in design.tables:
        if {entity.name for entity in table.entities}.issuperset(need.entities):
            return f"{table.name}/{need.name}"
    return f"/{need.name}"


def _table(table: TableDesign, sliders: Sliders) -> TableDesign:
    collections = tuple(
        replace(
            collection,
            access=_access(
                collection.access or AccessPattern(collection.name),
                f"{table.name}/{collection.name}",
                sliders,
            ),
        )
        for collection in table.collections
    )
    changed = replace(
        table,
        entities=tuple(_entity(table, entity, sliders) for entity in table.entities),
        collections=collections,
    )
    return _with_indexes(changed, sliders.indexes)


def _with_indexes(table: TableDesign, count: int) -> TableDesign:
    """Return a table with additional indexes on its key in reverse, so that items do not grow."""
    existing = len([index for index in table.indexes if not index.local])
    if existing + count > GLOBAL_INDEXES_MAX:
        raise CostError(
            f"{table.name} has {existing} global indexes and can have {GLOBAL_INDEXES_MAX - existing} more, not {count}; reduce the "
            "number of indexes, or choose another table"
        )
    taken = {index.name for index in table.indexes}
    names = [name for name in (f"more-{n}" for n in range(1, count + len(taken) + 1)) if name not in taken][
        :count
    ]
    settings = table.settings
    reversed_key = (settings.hash,) if settings.range is None else (settings.range, settings.hash)
    added = tuple(IndexDesign(name, name, False, reversed_key[:1], reversed_key[1:], "ALL") for name in names)
    return replace(
        table,
        indexes=table.indexes + added,
        entities=tuple(
            replace(entity, keys=entity.keys + tuple(_reversed_key(entity.key, name) for name in names))
            if entity.key is not None
            else entity
            for entity in table.entities
        ),
    )


def _reversed_key(key: KeyDesign, index: str) -> KeyDesign:
    sources = (*key.range, *key.hash)
    return KeyDesign(index, sources[:1], sources[1:])


def _entity(table: TableDesign, entity: EntityDesign, sliders: Sliders) -> EntityDesign:
    def pattern(declared: PatternDesign) -> PatternDesign:
        if declared is entity.primary and declared.access is None:
            return declared  # not in the bill
        id_ = _pattern_id(table, entity, declared)
        return replace(
            declared, access=_access(declared.access or AccessPattern(declared.name), id_, sliders)
        )

    return replace(
        entity,
        fields=tuple(_field(field_design, sliders.item_bytes) for field_design in entity.fields),
        primary=None if entity.primary is None else pattern(entity.primary),
        patterns=tuple(map(pattern, entity.patterns)),
        writes=tuple(_write(write, _write_id(table, entity, write), sliders) for write in entity.writes),
        items=None if entity.items is None else round(entity.items * sliders.items),
    )


def _need(design: Design, need: Need, sliders: Sliders) -> Need:
    if need.route is None:
        return need
    access = _access(need.access or AccessPattern(need.name), _need_id(design, need), sliders)
    return replace(need, access=access)


def _field(declared: FieldDesign, factor: float) -> FieldDesign:
    """Return a field with larger values; choices, numbers and times keep their size."""
    elastic = not declared.choices and declared.key_kind in (None, "text") and "S" in declared.tags
    grows = elastic or bool({"L", "M", "SS", "NS", "BS", "B"} & set(declared.tags))
    if factor == 1.0 or not grows:
        return declared
    return replace(declared, typical_bytes=max(1, round(value_bytes(declared) * factor)))


def _access(access: AccessPattern, id_: str, sliders: Sliders) -> AccessPattern:
    rate, peak = _rates(access.per_second, access.peak_per_second, sliders.reads, id_, sliders)
    consistent = access.consistent if sliders.consistency == "declared" else sliders.consistency == "strong"
    transactional = (
        access.transactional if sliders.transactions == "declared" else sliders.transactions == "all"
    )
    return replace(
        access,
        per_second=rate,
        peak_per_second=peak,
        item_bytes=_bytes(access.item_bytes, sliders.item_bytes),
        consistent=consistent,
        transactional=transactional,
    )


def _write(write: WritePattern, id_: str, sliders: Sliders) -> WritePattern:
    rate, peak = _rates(write.per_second, write.peak_per_second, sliders.writes, id_, sliders)
    changed = replace(
        write, per_second=rate, peak_per_second=peak, item_bytes=_bytes(write.item_bytes, sliders.item_bytes)
    )
    if sliders.transactions == "all":
        return replace(changed, transactional=True)
    return replace(changed, transactional=False, together="") if sliders.transactions == "none" else changed


def _rates(
    per_second: float | None, peak_per_second: float | None, factor: float, id_: str, sliders: Sliders
) -> tuple[float | None, float | None]:
    """Return the rate and peak of an access; the ratio of peak to average stays the same unless `peak` sets it."""
    override = sliders.rates.get(id_)
    rate = override if override is not None else None if per_second is None else _round(per_second * factor)
    if rate is None:
        return None, None if peak_per_second is None else _round(peak_per_second * factor)
    if sliders.peak is not None:
        return rate, _round(rate * sliders.peak)
    if peak_per_second is None:
        return rate, None
    if override is None:
        return rate, _round(peak_per_second * factor)
    ratio = peak_per_second / per_second if per_second else 1.0
    return rate, _round(rate * ratio)


def _bytes(size: int | None, factor: float) -> int | None:
    return size if size is None or factor == 1.0 else min(ITEM_BYTES_MAX, max(1, round(size * factor)))


def _round(rate: float) -> float:
    """Return a rate without the noise of float multiplication."""
    return round(rate, 9)
