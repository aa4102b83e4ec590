"""Sliders: a design with other numbers: rates, sizes, counts of items and indexes, consistency.

Declared numbers are multiplied, or the rate of one access is set; the original design is not changed. With all sliders at
their defaults the design is returned as it is, so the total stays the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tavola.design.cost.assumptions import CostRefused
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
    items: float = 1.0  # of each entity, and with them what is stored
    indexes: int = 0  # more of them on each table: global ones, which hold whole items and which nobody asks
    peak: float | None = None  # times the average, of every access; None: as each declares
    consistency: Consistency = "declared"
    transactions: Transactions = "declared"
    rates: Mapping[str, float] = field(default_factory=dict)  # requests a second of one access, by its id

    def __post_init__(self) -> None:
        for word in ("reads", "writes", "item_bytes", "items"):
            factor = getattr(self, word)
            if not 0 <= factor <= _FACTOR_MAX:
                raise CostRefused(f"{word} cannot be {factor} times as declared; give 0 to {_FACTOR_MAX:g}")
        if not 0 <= self.indexes <= GLOBAL_INDEXES_MAX:
            raise CostRefused(f"{self.indexes} more indexes cannot be; give 0 to {GLOBAL_INDEXES_MAX}")
        if self.peak is not None and not 1 <= self.peak <= _FACTOR_MAX:
            raise CostRefused(f"a peak of {self.peak} times the average is none; give 1 or more")
        for name, rate in self.rates.items():
            if not 0 <= rate < float("inf"):
                raise CostRefused(f"{name} cannot be asked {rate} times a second; give 0 or more")

    @property
    def is_unchanged(self) -> bool:
        """Whether all sliders are at their defaults."""
        return self == Sliders()


def apply_sliders(design: Design, sliders: Sliders) -> Design:
    """Return a design with its numbers changed; the same object if no slider was moved."""
    if sliders.is_unchanged:
        return design
    known = set(access_ids(design))
    for name in sliders.rates:
        if name not in known:
            raise CostRefused(f"there is no access {name!r} in the design; choose one of those it has")
    return replace(
        design,
        tables=tuple(_table(table, sliders) for table in design.tables),
        needs=tuple(_need(design, need, sliders) for need in design.needs),
    )


def access_ids(design: Design) -> tuple[str, ...]:
    """Return the id of each access in the bill, in its order."""
    return tuple(_ids(design))


def _ids(design: Design) -> Iterator[str]:
    titles: set[str] = set()
    for table in design.tables:
        for entity in table.entities:
            for pattern in (entity.primary, *entity.patterns):
                if pattern is not None and (pattern.access is not None or pattern != entity.primary):
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
            each,
            access=_access(each.access or AccessPattern(each.name), f"{table.name}/{each.name}", sliders),
        )
        for each in table.collections
    )
    changed = replace(
        table,
        entities=tuple(_entity(table, each, sliders) for each in table.entities),
        collections=collections,
    )
    return _indexed(changed, sliders.indexes)


def _indexed(table: TableDesign, more: int) -> TableDesign:
    """Return a table with more indexes: on its own key reversed, so that items do not grow."""
    held = len([index for index in table.indexes if not index.local])
    if held + more > GLOBAL_INDEXES_MAX:
        raise CostRefused(
            f"{table.name} has {held} global indexes and could have {GLOBAL_INDEXES_MAX - held} more, not {more}; turn the "
            "number of indexes down, or choose another table"
        )
    taken = {index.name for index in table.indexes}
    names = [name for name in (f"more-{n}" for n in range(1, more + len(taken) + 1)) if name not in taken][
        :more
    ]
    settings = table.settings
    ends = (settings.hash,) if settings.range is None else (settings.range, settings.hash)
    added = tuple(IndexDesign(name, name, False, ends[:1], ends[1:], "ALL") for name in names)
    return replace(
        table,
        indexes=table.indexes + added,
        entities=tuple(
            replace(entity, keys=entity.keys + tuple(_turned_round(entity.key, name) for name in names))
            if entity.key is not None
            else entity
            for entity in table.entities
        ),
    )


def _turned_round(key: KeyDesign, index: str) -> KeyDesign:
    sources = (*key.range, *key.hash)
    return KeyDesign(index, sources[:1], sources[1:])


def _entity(table: TableDesign, entity: EntityDesign, sliders: Sliders) -> EntityDesign:
    def pattern(asked: PatternDesign) -> PatternDesign:
        own = asked is entity.primary and asked.access is None
        id_ = _pattern_id(table, entity, asked)
        return (
            asked
            if own
            else replace(asked, access=_access(asked.access or AccessPattern(asked.name), id_, sliders))
        )

    return replace(
        entity,
        fields=tuple(_field(each, sliders.item_bytes) for each in entity.fields),
        primary=None if entity.primary is None else pattern(entity.primary),
        patterns=tuple(map(pattern, entity.patterns)),
        writes=tuple(_write(each, _write_id(table, entity, each), sliders) for each in entity.writes),
        items=None if entity.items is None else round(entity.items * sliders.items),
    )


def _need(design: Design, need: Need, sliders: Sliders) -> Need:
    if need.route is None:
        return need
    access = _access(need.access or AccessPattern(need.name), _need_id(design, need), sliders)
    return Need(
        need.name, need.entities, need.where, need.order, access, single=need.single, route=need.route
    )


def _field(found: FieldDesign, factor: float) -> FieldDesign:
    """Return a field with larger values; choices, numbers and times keep their size."""
    elastic = not found.choices and found.key_kind in (None, "text") and "S" in found.tags
    grows = elastic or bool({"L", "M", "SS", "NS", "BS", "B"} & set(found.tags))
    if factor == 1.0 or not grows:
        return found
    return replace(found, typical_bytes=max(1, round(value_bytes(found) * factor)))


def _access(access: AccessPattern, id_: str, sliders: Sliders) -> AccessPattern:
    rate, peak = _rates(access.per_second, access.peak_per_second, sliders.reads, id_, sliders)
    consistent = access.consistent if sliders.consistency == "declared" else sliders.consistency == "strong"
    together = access.transactional if sliders.transactions == "declared" else sliders.transactions == "all"
    return replace(
        access,
        per_second=rate,
        peak_per_second=peak,
        item_bytes=_bytes(access.item_bytes, sliders.item_bytes),
        consistent=consistent,
        transactional=together,
    )


def _write(write: WritePattern, id_: str, sliders: Sliders) -> WritePattern:
    rate, peak = _rates(write.per_second, write.peak_per_second, sliders.writes, id_, sliders)
    turned_ = replace(
        write, per_second=rate, peak_per_second=peak, item_bytes=_bytes(write.item_bytes, sliders.item_bytes)
    )
    if sliders.transactions == "all":
        return replace(turned_, transactional=True)
    return replace(turned_, transactional=False, together="") if sliders.transactions == "none" else turned_


def _rates(
    per_second: float | None, peak_per_second: float | None, factor: float, id_: str, sliders: Sliders
) -> tuple[float | None, float | None]:
    """Return the rate and peak of an access; the ratio of peak to average stays unless it is set."""
    set_ = sliders.rates.get(id_)
    rate = set_ if set_ is not None else None if per_second is None else _exact(per_second * factor)
    if rate is None:
        return None, None if peak_per_second is None else _exact(peak_per_second * factor)
    if sliders.peak is not None:
        return rate, _exact(rate * sliders.peak)
    if peak_per_second is None:
        return rate, None
    if set_ is None:
        return rate, _exact(peak_per_second * factor)
    times = peak_per_second / per_second if per_second else 1.0
    return rate, _exact(rate * times)


def _bytes(size: int | None, factor: float) -> int | None:
    return size if size is None or factor == 1.0 else min(ITEM_BYTES_MAX, max(1, round(size * factor)))


def _exact(rate: float) -> float:
    return round(rate, 9)
