"""Diagnosis: what happened at a place, in a sentence or two for a person."""

from __future__ import annotations

from dataclasses import dataclass

from tavola.design.simulation.results import SHARDS_MOST, BusyKey, ShardsNeeded
from tavola.design.simulation.workload import Access, Station
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

NOTICED = 0.0005  # of what was asked; less is not worth a word
_SETTLED = 0.02  # of what partitions refused, in the last third of the time; less is of their beginning


@dataclass(frozen=True, slots=True)
class StationCase:
    """What is known of a place when it is judged."""

    station: Station
    access: Access
    mean: float
    peak: float
    by_partitions: float
    by_whole: float
    units: float
    units_most: float  # that it had while it refused
    partitions: tuple[int, int]
    splits: int
    divisible: frozenset[str]  # busy keys whose items a split can share among partitions
    late: float  # of what partitions refused, the share in the last third of the time
    busiest: tuple[BusyKey, ...]
    shards: tuple[ShardsNeeded, ...]


def diagnose(case: StationCase) -> str:
    """Return what happened, why, and what would help."""
    limit = PARTITION_READS_PER_S if case.access == "read" else PARTITION_WRITES_PER_S
    if case.mean <= 0:
        return "Nothing is asked of it."
    told: list[str] = []
    if case.by_whole > NOTICED:
        told.append(_whole(case))
    if case.by_partitions > NOTICED:
        told.append(_partitions(case, limit))
    if told:
        return " ".join(told)
    if case.by_partitions + case.by_whole > 0:
        return f"Next to nothing is throttled ({case.by_partitions + case.by_whole:.3%})."
    if case.busiest and case.busiest[0].peak > 0.5 * limit and case.busiest[0].name not in case.divisible:
        hot = case.busiest[0]
        return (
            f"Nothing is throttled, but {hot.name} alone takes {hot.peak:,.0f} units a second at its busiest, "
            f"and a partition takes {limit:,}."
        )
    return "Nothing is throttled."


def _whole(case: StationCase) -> str:
    share = f"{case.by_whole:.1%} of its {case.access}s exceed"
    asked = f"at the peak {case.peak:,.0f} units a second are asked"
    allowance = case.station.allowance
    if not allowance.on_demand:
        most = allowance.reads_max if case.access == "read" else allowance.writes_max
        if most is None:
            return f"{share} the {case.units:,.0f} provisioned units: {asked}, and burst lasts for 300 s of them."
        had = f"{share} the {case.units:,.0f} provisioned units that auto scaling had given it by then: {asked}."
        if case.units_most >= most:
            return f"{had} Its maximum was reached; raise it."
        return (
            f"{had} Scaling out takes minutes, and its maximum of {most:,.0f} was not reached: a higher minimum or a "
            "lower target leaves room for a rise."
        )
    return f"{share} the account's quota of {case.units:,.0f} units for a table: {asked}; ask AWS for a higher quota."


def _partitions(case: StationCase, limit: int) -> str:
    share = f"{case.by_partitions:.1%} of its {case.access}s are throttled by single partitions"
    hot = max(case.busiest, key=lambda key: key.throttled * key.mean, default=None)
    # A key that is too much for a partition by itself; where one is enough once it is split off, it is not.
    settled = bool(case.shards) and all(each.needed == each.now for each in case.shards)
    single = hot is not None and hot.throttled > NOTICED and hot.peak > 0.95 * limit and not settled
    apart = hot is not None and hot.name in case.divisible
    grew = case.partitions[1] > case.partitions[0]
    if single and not (apart and grew and case.late < _SETTLED):
        assert hot is not None, "a single key was found"
        what = (
            f"{share}: {hot.name} alone takes {hot.peak:,.0f} units a second at its busiest, and a partition takes "
            f"{limit:,}. "
            + ("Its items are shared among partitions late." if apart else "No split helps a single key.")
        )
    elif case.late < _SETTLED and grew:
        grown = f"{case.partitions[0]} partitions became {case.partitions[1]}"
        return f"{share}, until {grown}; a table that has borne this traffic before does not see it."
    else:
        what = f"{share}: {case.peak:,.0f} units a second at the peak on {case.partitions[1]} partitions of {limit:,}."
    return f"{what} {_remedy(case)}".rstrip()


def _remedy(case: StationCase) -> str:
    if case.access == "read":
        return "Cache what is read so often, or keep copies of it under several keys."
    told = [_enough(each) for each in case.shards]
    return " ".join(dict.fromkeys(told))


def _enough(found: ShardsNeeded) -> str:
    if found.needed is None:
        return f"No number of shards of {found.keys} up to {SHARDS_MOST:,} is enough; spread it by another field."
    if found.needed <= found.now:
        has = f"the {found.now} shards of {found.keys} are" if found.now > 1 else "one shard is"
        return f"Once partitions have settled, {has} enough."
    besides = ", besides those by time: a field of its own in the key" if found.by_time else ""
    return f"{found.needed} shards of {found.keys} would do{besides}."
