"""Run a simulation of a design or workload, and put the recorded sums together as a `Simulation`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tavola.design.simulation.demand import build_workload
from tavola.design.simulation.diagnosis import NEGLIGIBLE_SHARE, StationCase, diagnose
from tavola.design.simulation.keyspace import Floats
from tavola.design.simulation.layout import meter
from tavola.design.simulation.partitions import LIMITS
from tavola.design.simulation.recorder import Recorder
from tavola.design.simulation.results import (
    BusyKey,
    HeatMap,
    PatternResult,
    PlaceResult,
    ShardsNeeded,
    Simulation,
)
from tavola.design.simulation.scenario import Scenario
from tavola.design.simulation.shards import shards_needed
from tavola.design.simulation.simulator import Progress, ServiceBehaviour, Simulator
from tavola.design.simulation.waits import Waits
from tavola.design.simulation.workload import ACCESSES, Workload
from tavola.model.document import Design


def simulate(
    design: Design, scenario: Scenario | None = None, progress: Progress | None = None
) -> Simulation:
    """Simulate the traffic that a design's access patterns declare; refuse a design without rates."""
    settings = scenario or Scenario()
    return run_workload(build_workload(design, settings), settings, progress)


def run_workload(workload: Workload, scenario: Scenario, progress: Progress | None = None) -> Simulation:
    """Simulate a workload."""
    behaviour = ServiceBehaviour(scenario.split_after_s, warm=scenario.warm, settled=scenario.settled)
    run = Simulator(workload, behaviour, scenario.seed)
    initial_bounds = [parts.bounds.copy() for parts in run.parts]
    run.run(progress)
    recorder = run.recorder
    shards = _find_shards(run, behaviour, scenario, progress) if scenario.shards else {}
    columns = len(recorder.requests)
    lengths = np.full(columns, recorder.column_s, dtype=np.float64)
    lengths[-1] = workload.rates.seconds - (columns - 1) * recorder.column_s
    places: list[PlaceResult] = []
    heat_maps: list[HeatMap] = []
    for number in range(recorder.peak.size):
        if recorder.requested[:, number].sum() <= 0:
            continue
        busiest = _busiest_keys(recorder, number, lengths)
        initial = initial_bounds[number // 2]
        places.append(_place(run, number, busiest, initial.size, shards.get(number, ()), lengths))
        heat_maps.append(_heat_map(run, number, busiest, initial, lengths))
    requests, refused = float(recorder.requests.sum()), float(recorder.refused.sum())
    return Simulation(
        seed=scenario.seed,
        seconds=workload.rates.seconds,
        began="warm" if scenario.warm else "settled" if scenario.settled else "cold",
        begins_at_s=workload.begins_at_s,
        requests=requests,
        throttled=refused / max(requests, 1e-9),
        wait_p99_s=Waits.of(recorder.refusals.sum(axis=0)).p99_s,
        places=tuple(places),
        patterns=_patterns(workload, recorder, lengths),
        heat_maps=tuple(heat_maps),
        assumptions=workload.assumptions,
        without_rates=workload.without_rates,
        zero_rates=workload.zero_rates,
        times=tuple(float(position * recorder.column_s) for position in range(columns)),
        requested=tuple((recorder.requests.sum(axis=1) / lengths).tolist()),
        refused=tuple((recorder.refused.sum(axis=1) / lengths).tolist()),
    )


def _busiest_keys(recorder: Recorder, number: int, lengths: Floats) -> tuple[BusyKey, ...]:
    """Return the keys of a place that stand out, the busiest first."""
    keys: list[BusyKey] = []
    total = float(recorder.requested[:, number].sum())
    for position, key in enumerate(recorder.watched):
        if key.meter != number:
            continue
        units = recorder.requests @ key.units
        requested = float(units.sum())
        if requested <= 0:
            continue
        keys.append(
            BusyKey(
                key.label,
                requested / float(lengths.sum()),
                float(recorder.key_peak[position]),
                min(1.0, float(recorder.key_refused[position]) / requested),
                key.position,
            )
        )
    keys.sort(key=lambda key: (-key.mean, key.name))
    # Without a key above 0.2 % of the traffic, none stands out.
    if keys and keys[0].mean * float(lengths.sum()) < 0.002 * total:
        return ()
    return tuple(keys)


def _find_shards(
    run: Simulator, behaviour: ServiceBehaviour, scenario: Scenario, progress: Progress | None
) -> dict[int, tuple[ShardsNeeded, ...]]:
    """Return the shards that hot keys need, for each station with more than negligible refused writes."""
    recorder = run.recorder
    requested, refused = recorder.requested.sum(axis=0), recorder.refused_units.sum(axis=0)
    meters = [
        number
        for number in range(1, requested.size, 2)
        if refused[number] > NEGLIGIBLE_SHARE * requested[number]
    ]
    seconds = run.workload.rates.seconds

    def report() -> None:
        if progress is not None:
            progress(seconds, seconds)

    return {
        number: shards_needed(run.workload, number, behaviour, scenario.seed, report) for number in meters
    }


def _place(
    run: Simulator,
    number: int,
    busiest: tuple[BusyKey, ...],
    initial_partitions: int,
    shards: tuple[ShardsNeeded, ...],
    lengths: Floats,
) -> PlaceResult:
    recorder, station = run.recorder, run.workload.stations[number // 2]
    parts = run.parts[number // 2]
    requested = float(recorder.requested[:, number].sum())
    by_partitions = recorder.refused_units[:, number]
    last = by_partitions[-max(1, by_partitions.size // 3) :]
    by_whole = float(recorder.refused_whole[:, number].sum()) / requested
    refused_share = float(by_partitions.sum()) / requested
    place = PlaceResult(
        table=station.table,
        index=station.index,
        access=ACCESSES[number % 2],
        mode="on-demand" if station.capacity.on_demand else "provisioned",
        units=_units(run, number),
        mean=requested / float(lengths.sum()),
        peak=float(recorder.peak[number]),
        throttled=min(1.0, refused_share + by_whole),
        by_partitions=refused_share,
        by_whole=by_whole,
        partitions=(initial_partitions, len(parts)),
        splits=sum(cut.reason == "heat" for cut in parts.cuts),
        busiest=busiest,
        diagnosis="",
        shards=shards,
    )
    late = float(last.sum()) / max(float(by_partitions.sum()), 1e-9)
    units_most = float(recorder.refused_most[number])
    case = StationCase(place, station.capacity, units_most, _divisible_keys(run, number), late)
    return replace(place, diagnosis=diagnose(case))


def _divisible_keys(run: Simulator, number: int) -> frozenset[str]:
    """Return the busy keys of a place that splits can help: the traffic on one end of their collection fits a partition."""
    workload, recorder = run.workload, run.recorder
    if workload.stations[number // 2].whole_collections:
        return frozenset()
    means, limit = workload.rates.means(), LIMITS[number % 2]
    weights: dict[
        tuple[int, bool], float
    ] = {}  # units by key set, and whether they are spread over the item collection
    for mean, flow in zip(means, workload.flows, strict=True):
        for draw in flow.draws:
            for arm in draw.arms:
                if meter(arm) == number:
                    at = (draw.keys, arm.spread == "any")
                    weights[at] = weights.get(at, 0.0) + float(mean) * arm.units
    labels: set[str] = set()
    for key, peak in zip(recorder.watched, recorder.key_peak, strict=True):
        fixed, spread = weights.get((key.keys, False), 0.0), weights.get((key.keys, True), 0.0)
        if key.meter == number and spread > 0 and peak * fixed / (fixed + spread) <= limit:
            labels.add(key.label)
    return frozenset(labels)


def _heat_map(
    run: Simulator, number: int, busiest: tuple[BusyKey, ...], initial_bounds: Floats, lengths: Floats
) -> HeatMap:
    recorder, station = run.recorder, run.workload.stations[number // 2]
    heat = recorder.heat[number]
    share = np.divide(recorder.throttled[number], heat, out=np.zeros_like(heat), where=heat > 1e-9)
    return HeatMap(
        table=station.table,
        index=station.index,
        access=ACCESSES[number % 2],
        column_s=recorder.column_s,
        begins_at_s=run.workload.begins_at_s,
        heat=tuple(tuple(row) for row in (heat / lengths).tolist()),
        throttled=tuple(tuple(row) for row in np.clip(share, 0.0, 1.0).tolist()),
        bounds=tuple(initial_bounds.tolist()),
        cuts=tuple((cut.at_s, cut.place, cut.reason) for cut in run.parts[number // 2].cuts),
        keys=busiest,
    )


def _units(run: Simulator, number: int) -> float:
    """Return the capacity of a place: on average while it refused requests, else at the end."""
    refused = float(run.recorder.refused_whole[:, number].sum())
    if refused > 0:
        return float(run.recorder.refused_at[number]) / refused
    return float(run.whole_rate[number])


def _patterns(workload: Workload, recorder: Recorder, lengths: Floats) -> tuple[PatternResult, ...]:
    shares = np.divide(
        recorder.refused_units + recorder.refused_whole,
        recorder.requested,
        out=np.zeros_like(recorder.requested),
        where=recorder.requested > 0,
    ).max(axis=0)
    rates = recorder.requests.sum(axis=0) @ recorder.patterns / float(lengths.sum())
    results: list[PatternResult] = []
    for position, (name, numbers) in enumerate(workload.pattern_flows().items()):
        if workload.traced:  # flows of a recorded pattern are parts of it
            waits = Waits.of(recorder.refusals[numbers].sum(axis=0))
        else:  # flows of a declared one follow one another, and all must pass
            parts = tuple((recorder.refusals[number], workload.flows[number].fan) for number in numbers)
            waits = Waits.of_sequence(parts)
        results.append(
            PatternResult(
                name=name,
                title=workload.flows[numbers[0]].title,
                mean=float(rates[position]),
                peak=float(recorder.pattern_peak[position]),
                # Retries do not raise the limit: the share that is refused first is the share that is given up.
                throttled=waits.given_up,
                wait_p99_s=waits.p99_s,
                given_up=waits.given_up,
                held_up_by=_bottleneck(workload, numbers, shares) if waits.given_up > 1e-6 else None,
            )
        )
    return tuple(results)


def _bottleneck(workload: Workload, numbers: list[int], shares: Floats) -> str | None:
    """Return the place that refuses the largest share of the requests of a pattern."""
    arms = [arm for number in numbers for draw in workload.flows[number].draws for arm in draw.arms]
    best = max(arms, key=lambda arm: float(shares[2 * arm.station + ACCESSES.index(arm.access)]))
    return workload.stations[best.station].name
