"""Savings: changes to a design that make its bill smaller.

There are no rules of thumb: the design is changed, its bill computed again, and the difference is the saving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from tavola.design.cost.alterations import (
    bound_fields,
    keyed_fields,
    needed_attributes,
    with_eventual_collection,
    with_eventual_reads,
    with_hydrated_queries,
    with_narrow_projection,
    with_shards,
    with_short_names,
    with_split_entity,
    with_table,
    without_fixed_units,
    without_index,
)
from tavola.design.cost.assumptions import Assumptions
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.cost.traffic import rated_accesses, traffic_by_place
from tavola.design.text import HALF_CENT, list_first
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S, WRITE_UNIT_BYTES
from tavola.model.document import Design, EntityDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.prices import PriceBook

PLANNED_SHARE = 0.5  # of what a partition takes, as `tavola.patterns.shards_for` plans with


@dataclass(frozen=True, slots=True)
class CostSaving:
    """A change, and how much it saves per month."""

    change: str
    place: str
    sentence: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class _Change:
    change: str
    place: str
    sentence: str
    design: Design


def savings(
    design: Design, assumptions: Assumptions, book: PriceBook, month: MonthlyBill | None = None
) -> tuple[CostSaving, ...]:
    """Return changes that make the month cheaper, the largest saving first. Each is computed alone: they do not add up.

    Pass the bill of the design as `month` if known. A design without any rate has no savings: unused is not the same as unneeded.
    """
    if not any(access.rate for access in rated_accesses(design)):
        return ()
    now = (month or estimate_month(design, assumptions, book)).total
    best: dict[tuple[str, str], CostSaving] = {}
    # Tables share only the free tier, reservations and needs; without these, a change affects the bill of its own table.
    by_table = not (design.needs or assumptions.free_tier or assumptions.reserved)
    totals: dict[str, Decimal] = {}
    for change in _changes(design):
        if by_table:
            old, new = _affected_tables(design, change.design)
            key = ", ".join(table.name for table in old.tables)
            if key not in totals:
                totals[key] = estimate_month(old, assumptions, book).total
            amount = totals[key] - estimate_month(new, assumptions, book).total
        else:
            amount = now - estimate_month(change.design, assumptions, book).total
        before = best.get((change.change, change.place))
        if amount >= HALF_CENT and (before is None or before.amount < amount):
            best[change.change, change.place] = CostSaving(
                change.change, change.place, change.sentence, amount
            )
    all_savings = [*best.values(), *_billing_savings(design, assumptions, book, now)]
    return tuple(sorted(all_savings, key=lambda saving: (-saving.amount, saving.change, saving.place)))


def _affected_tables(design: Design, other: Design) -> tuple[Design, Design]:
    """Return the tables that a change affects, before and after."""
    pairs = [(old, new) for old, new in zip(design.tables, other.tables, strict=True) if old is not new] or [
        (design.tables[0], other.tables[0])
    ]
    old, new = zip(*pairs, strict=True)
    return replace(design, tables=old), replace(other, tables=new)


def _billing_savings(
    design: Design, assumptions: Assumptions, book: PriceBook, now: Decimal
) -> Iterator[CostSaving]:
    """Yield what another billing mode or table class saves if nothing else changes."""
    fixed = any(
        table.settings.read_units is not None and table.settings.scaling is None for table in design.tables
    )
    units = "provisioned capacity with auto scaling instead of "
    others: tuple[tuple[str, str, Design, Assumptions], ...] = (
        (
            "provisioned",
            units + ("fixed units" if fixed and assumptions.mode != "on-demand" else "on-demand"),
            without_fixed_units(design),
            replace(assumptions, mode="provisioned"),
        ),
        (
            "on-demand",
            "on-demand instead of provisioned capacity",
            design,
            replace(assumptions, mode="on-demand"),
        ),
        (
            "Standard-IA",
            "table class Standard-IA",
            design,
            replace(assumptions, table_class="STANDARD_INFREQUENT_ACCESS"),
        ),
        ("Standard", "table class Standard", design, replace(assumptions, table_class="STANDARD")),
    )
    for name, sentence, changed, assumed in others:
        month = estimate_month(changed, assumed, book)
        if not month.unpriced and now - month.total >= HALF_CENT:
            yield CostSaving("capacity mode", name, sentence, now - month.total)


def _changes(design: Design) -> Iterator[_Change]:
    for table in design.tables:
        yield from _index_changes(design, table)
        yield from _consistency(design, table)
        yield from _shards(design, table)
        for entity in table.entities:
            yield from _splits(design, table, entity)
        shortened = with_table(design, with_short_names(table))
        yield _Change(
            "short attribute names",
            table.name,
            "use two-letter attribute names, since names count towards the size of every item and index entry",
            shortened,
        )


def _index_changes(design: Design, table: TableDesign) -> Iterator[_Change]:
    silent = (
        not table.collections and not any(entity.patterns for entity in table.entities) and not design.needs
    )
    for index in table.indexes:
        place = f"{table.name}/{index.name}"
        needed = needed_attributes(design, table, index)
        if needed is None and silent:
            continue  # the design declares no reads of the table
        if needed is None:
            changed_design = with_table(design, without_index(table, index))
            yield _Change(
                "unused index", place, "remove the index, which no access pattern reads", changed_design
            )
            continue
        bare = with_hydrated_queries(design, table, index)
        if bare is not None:
            titles = [
                pattern.access.title if pattern.access else f"{entity.name}.{pattern.name}"
                for entity in table.entities
                for pattern in entity.patterns
                if pattern.index == index.name and not pattern.hydrate
            ]
            yield _Change(
                "KEYS_ONLY projection",
                place,
                f"project KEYS_ONLY and fetch the items (hydrate=True) for {', '.join(f'“{title}”' for title in titles)}, which "
                "takes a second request",
                with_table(design, bare),
            )
        thin = with_narrow_projection(table, index, needed)
        if thin is None:
            continue
        projection = thin.index(index.name).projection
        words = projection if isinstance(projection, str) else f"only {', '.join(projection)}"
        yield _Change(
            "narrow projection",
            place,
            f"project {words}: all that access patterns read besides the keys",
            with_table(design, thin),
        )


def _consistency(design: Design, table: TableDesign) -> Iterator[_Change]:
    for entity in table.entities:
        for pattern in entity.all_patterns:
            access = pattern.access
            if access is not None and access.consistent and not access.transactional:
                yield _Change(
                    "eventually consistent reads",
                    f"{entity.name}.{pattern.name}",
                    f"read “{access.title}” with eventual consistency, if it may miss the latest writes",
                    with_table(design, with_eventual_reads(table, entity, pattern)),
                )

    for collection in table.collections:
        access = collection.access
        if access is not None and access.consistent:
            yield _Change(
                "eventually consistent reads",
                collection.name,
                f"read “{access.title}” with eventual consistency, if it may miss the latest writes",
                with_table(design, with_eventual_collection(table, collection)),
            )


def _shards(design: Design, table: TableDesign) -> Iterator[_Change]:
    for entity in table.entities:
        for key in entity.keys:
            if key.shards is None or key.shards.by == "time" or key.shards.count < 2:
                continue
            current = _peaks(design, table.name, key.index)[0] / key.shards.reads  # of each shard
            for count in range(1, key.shards.reads):
                changed = with_table(design, with_shards(table, entity, key, count))
                reads, writes = _peaks(changed, table.name, key.index)
                planned_reads = max(
                    PLANNED_SHARE * PARTITION_READS_PER_S, min(current, PARTITION_READS_PER_S)
                )
                if (
                    reads <= count * planned_reads
                    and writes <= count * PLANNED_SHARE * PARTITION_WRITES_PER_S
                ):
                    break
            else:
                continue  # all of them are needed
            yield _Change(
                "fewer shards",
                f"{entity.name} in {key.index}",
                f"{count} shard{'s' if count > 1 else ''} instead of {key.shards.reads}: the index then receives {reads:,.0f} read "
                f"and {writes:,.0f} write units per second at peak; a partition supports {PARTITION_READS_PER_S:,} and "
                f"{PARTITION_WRITES_PER_S:,}, and {PLANNED_SHARE:.0%} of that is planned",
                changed,
            )


def _peaks(design: Design, table: str, index: str | None) -> tuple[float, float]:
    """Return the read and write units per second of an index at its peak."""
    peaks = {
        flow.kind: flow.peak
        for flow in traffic_by_place(rated_accesses(design))
        if (flow.table, flow.index) == (table, index)
    }
    return peaks.get("read", 0.0), peaks.get("write", 0.0)


def _splits(design: Design, table: TableDesign, entity: EntityDesign) -> Iterator[_Change]:
    size = item_size(table, entity)
    if size.total <= WRITE_UNIT_BYTES:
        return
    for write in entity.writes:
        hot = frozenset({*write.changes, *write.adds})
        split = with_split_entity(design, table, entity, hot) if hot and write.kind == "update" else None
        if split is not None:
            yield _Change(
                "vertical partitioning",
                entity.name,
                f"move {_names(hot)} to a separate item, so that “{write.title}” writes only that item and not "
                f"{size.total:,} bytes",
                with_table(design, split),
            )
    for pattern in entity.all_patterns:
        if pattern.index is not None or pattern.access is None or not pattern.access.reads:
            continue
        cold = frozenset(field.name for field in entity.fields) - set(pattern.access.reads)
        cold -= keyed_fields(entity) | bound_fields(table, entity)
        split = with_split_entity(design, table, entity, cold) if cold else None
        if split is not None:
            yield _Change(
                "vertical partitioning",
                entity.name,
                f"move {_names(cold)} to a separate item, which “{pattern.access.title}” does not read",
                with_table(design, split),
            )


def _names(names: frozenset[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered) if len(ordered) <= 4 else list_first(ordered)
