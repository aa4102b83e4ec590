"""Diagnosis: what happened at a place, in a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass

from tavola.design.simulation.results import SHARDS_MAX, PlaceResult, ShardsNeeded
from tavola.design.simulation.workload import PARTITION_LIMITS, StationCapacity

NEGLIGIBLE_SHARE = 0.0005  # refused share that is not worth a sentence
_SETTLED = 0.02  # of what partitions refused: with less in the last third, throttling was initial


@dataclass(frozen=True, slots=True)
class StationCase:
    """A place without its diagnosis, and the other facts that a diagnosis needs."""

    place: PlaceResult
    capacity: StationCapacity
    units_most: float  # its highest capacity while it refused
    divisible: frozenset[str]  # busy keys whose items a split can distribute over partitions
    late: float  # share of the partitions' refusals in the last third of the run


def diagnose(case: StationCase) -> str:
    """Return what happened, why, and what would help."""
    limit = PARTITION_LIMITS[case.place.access]
    if case.place.mean <= 0:
        return "No traffic."
    sentences: list[str] = []
    if case.place.by_whole > NEGLIGIBLE_SHARE:
        sentences.append(_explain_station_limit(case))
    if case.place.by_partitions > NEGLIGIBLE_SHARE:
        sentences.append(_explain_partition_limit(case, limit))
    if sentences:
        return " ".join(sentences)
    if case.place.by_partitions + case.place.by_whole > 0:
        return f"Almost no throttling ({case.place.by_partitions + case.place.by_whole:.3%})."
    if (
        case.place.busiest
        and case.place.busiest[0].peak > 0.5 * limit
        and case.place.busiest[0].name not in case.divisible
    ):
        hot = case.place.busiest[0]
        return (
            f"No throttling, but {hot.name} alone receives {hot.peak:,.0f} units per second at peak; a partition supports "
            f"{limit:,}."
        )
    return "No throttling."


def _explain_station_limit(case: StationCase) -> str:
    share = f"{case.place.by_whole:.1%} of {case.place.access}s exceed"
    demand = f"peak demand is {case.place.peak:,.0f} units per second"
    allowance = case.capacity
    if not allowance.on_demand:
        maximum = allowance.reads_max if case.place.access == "read" else allowance.writes_max
        if maximum is None:
            return f"{share} the {case.place.units:,.0f} provisioned units: {demand}, and burst capacity covers 300 seconds."
        had = f"{share} the {case.place.units:,.0f} units that auto scaling had provisioned at that time: {demand}."
        if case.units_most >= maximum:
            return f"{had} Auto scaling reached its maximum; raise it."
        return (
            f"{had} Auto scaling reacts within minutes and did not reach its maximum of {maximum:,.0f}: raise the minimum or lower "
            "the target utilization to leave headroom."
        )
    return f"{share} the account quota of {case.place.units:,.0f} units per table: {demand}; request a higher quota from AWS."


def _explain_partition_limit(case: StationCase, limit: int) -> str:
    share = f"{case.place.by_partitions:.1%} of {case.place.access}s are throttled by hot partitions"
    hot = max(case.place.busiest, key=lambda key: key.throttled * key.mean, default=None)
    # One key alone exceeds a partition, and a partition of its own would not be enough.
    settled = bool(case.place.shards) and all(each.needed == each.now for each in case.place.shards)
    single = hot is not None and hot.throttled > NEGLIGIBLE_SHARE and hot.peak > 0.95 * limit and not settled
    apart = hot is not None and hot.name in case.divisible
    grew = case.place.partitions[1] > case.place.partitions[0]
    if single and not (apart and grew and case.late < _SETTLED):
        assert hot is not None, "a single key was found"
        what = (
            f"{share}: {hot.name} alone receives {hot.peak:,.0f} units per second at peak; a partition supports "
            f"{limit:,}. "
            + (
                "DynamoDB splits its item collection too late."
                if apart
                else "Splitting the partition does not help a single key."
            )
        )
    elif case.late < _SETTLED and grew:
        grown = f"{case.place.partitions[0]} partitions became {case.place.partitions[1]}"
        return f"{share} until {grown}; a table that has served this traffic before is not affected."
    else:
        what = f"{share}: peak demand of {case.place.peak:,.0f} units per second on {case.place.partitions[1]} partitions with {limit:,} each."
    return f"{what} {_remedy(case)}".rstrip()


def _remedy(case: StationCase) -> str:
    if case.place.access == "read":
        return "Cache hot items, or replicate them under several keys."
    sentences = [_shards_sentence(each) for each in case.place.shards]
    return " ".join(dict.fromkeys(sentences))


def _shards_sentence(shards: ShardsNeeded) -> str:
    if shards.needed is None:
        return (
            f"Even {SHARDS_MAX:,} shards of {shards.keys} are not enough; use a more granular partition key."
        )
    if shards.needed <= shards.now:
        has = f"the {shards.now} shards of {shards.keys} are" if shards.now > 1 else "one shard is"
        return f"After DynamoDB has split the partitions, {has} enough."
    besides = " in addition to its time buckets" if shards.by_time else ""
    return f"Use at least {shards.needed} shards for {shards.keys}{besides}."
