"""Diagnosis: what happened at a place, in a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass

from tavola.design.simulation.results import SHARDS_MAX, BusyKey, ShardsNeeded
from tavola.design.simulation.workload import Access, Station
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

NEGLIGIBLE_SHARE = 0.0005  # refused share that is not worth a sentence
_SETTLED = 0.02  # of what partitions refused: with less in the last third, throttling was initial


@dataclass(frozen=True, slots=True)
class StationCase:
    """The facts about one place that a diagnosis needs."""

    station: Station
    access: Access
    mean: float
    peak: float
    by_partitions: float
    by_whole: float
    units: float
    units_most: float  # its highest capacity while it refused
    partitions: tuple[int, int]
    splits: int
    divisible: frozenset[str]  # busy keys whose items a split can distribute over partitions
    late: float  # share of the partitions' refusals in the last third of the run
    busiest: tuple[BusyKey, ...]
    shards: tuple[ShardsNeeded, ...]


def diagnose(case: StationCase) -> str:
    """Return what happened, why, and what would help."""
    limit = PARTITION_READS_PER_S if case.access == "read" else PARTITION_WRITES_PER_S
    if case.mean <= 0:
        return "Nothing is asked of it."
    sentences: list[str] = []
    if case.by_whole > NEGLIGIBLE_SHARE:
        sentences.append(_explain_station_limit(case))
    if case.by_partitions > NEGLIGIBLE_SHARE:
        sentences.append(_explain_partition_limit(case, limit))
    if sentences:
        return " ".join(sentences)
    if case.by_partitions + case.by_whole > 0:
        return f"Next to nothing is throttled ({case.by_partitions + case.by_whole:.3%})."
    if case.busiest and case.busiest[0].peak > 0.5 * limit and case.busiest[0].name not in case.divisible:
        hot = case.busiest[0]
        return (
            f"Nothing is throttled, but {hot.name} alone takes {hot.peak:,.0f} units a second at its busiest, "
            f"and a partition takes {limit:,}."
        )
    return "Nothing is throttled."


def _explain_station_limit(case: StationCase) -> str:
    share = f"{case.by_whole:.1%} of its {case.access}s exceed"
    demand = f"at the peak {case.peak:,.0f} units a second are asked"
    allowance = case.station.capacity
    if not allowance.on_demand:
        maximum = allowance.reads_max if case.access == "read" else allowance.writes_max
        if maximum is None:
            return f"{share} the {case.units:,.0f} provisioned units: {demand}, and burst lasts for 300 s of them."
        had = f"{share} the {case.units:,.0f} provisioned units that auto scaling had given it by then: {demand}."
        if case.units_most >= maximum:
            return f"{had} Its maximum was reached; raise it."
        return (
            f"{had} Scaling out takes minutes, and its maximum of {maximum:,.0f} was not reached: a higher minimum or a "
            "lower target leaves room for a rise."
        )
    return f"{share} the account's quota of {case.units:,.0f} units for a table: {demand}; ask AWS for a higher quota."


def _explain_partition_limit(case: StationCase, limit: int) -> str:
    share = f"{case.by_partitions:.1%} of its {case.access}s are throttled by single partitions"
    hot = max(case.busiest, key=lambda key: key.throttled * key.mean, default=None)
    # One key alone exceeds a partition, and a partition of its own would not be enough.
    settled = bool(case.shards) and all(each.needed == each.now for each in case.shards)
    single = hot is not None and hot.throttled > NEGLIGIBLE_SHARE and hot.peak > 0.95 * limit and not settled
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
    sentences = [_shards_sentence(each) for each in case.shards]
    return " ".join(dict.fromkeys(sentences))


def _shards_sentence(shards: ShardsNeeded) -> str:
    if shards.needed is None:
        return f"No number of shards of {shards.keys} up to {SHARDS_MAX:,} is enough; spread it by another field."
    if shards.needed <= shards.now:
        has = f"the {shards.now} shards of {shards.keys} are" if shards.now > 1 else "one shard is"
        return f"Once partitions have settled, {has} enough."
    besides = ", besides those by time: a field of its own in the key" if shards.by_time else ""
    return f"{shards.needed} shards of {shards.keys} would do{besides}."
