"""Running: a design and a scenario in, a simulation out."""

from __future__ import annotations

import numpy as np

from tavola.design.simulation.demand import build_workload
from tavola.design.simulation.diagnosis import NOTICED, StationCase, diagnose
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
    """Return how a design bears the traffic that its access patterns declare; refuse one without rates."""
    told = scenario or Scenario()
    return run_workload(build_workload(design, told), told, progress)


def run_workload(workload: Workload, scenario: Scenario, progress: Progress | None = None) -> Simulation:
    """Return how stations bear a workload."""
    physics = ServiceBehaviour(scenario.split_after_s, warm=scenario.warm, settled=scenario.settled)
    run = Simulator(workload, physics, scenario.seed)
    begun = [parts.bounds.copy() for parts in run.parts]
    run.run(progress)
    recorder = run.recorder
    found_shards = _shards(run, physics, scenario, progress) if scenario.shards else {}
    columns = len(recorder.requests)
    lengths = np.full(columns, recorder.column_s, dtype=np.float64)
    lengths[-1] = workload.rates.seconds - (columns - 1) * recorder.column_s
    places: list[PlaceResult] = []
    heat_maps: list[HeatMap] = []
    for number in range(recorder.peak.size):
        if recorder.asked[:, number].sum() <= 0:
            continue
        busiest = _busiest(recorder, number, lengths)
        start = begun[number // 2]
        places.append(_place(run, number, busiest, start.size, found_shards.get(number, ()), lengths))
        heat_maps.append(_heat_map(run, number, busiest, start, lengths))
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
        times=tuple(float(at * recorder.column_s) for at in range(columns)),
        asked=tuple((recorder.requests.sum(axis=1) / lengths).tolist()),
        refused=tuple((recorder.refused.sum(axis=1) / lengths).tolist()),
    )


def _busiest(recorder: Recorder, number: int, lengths: Floats) -> tuple[BusyKey, ...]:
    """Return the keys of a place that stand out, the busiest first."""
    told: list[BusyKey] = []
    whole = float(recorder.asked[:, number].sum())
    for at, key in enumerate(recorder.watched):
        if key.meter != number:
            continue
        units = recorder.requests @ key.units
        taken = float(units.sum())
        if taken <= 0:
            continue
        told.append(
            BusyKey(
                key.label,
                taken / float(lengths.sum()),
                float(recorder.key_peak[at]),
                min(1.0, float(recorder.key_refused[at]) / taken),
                key.position,
            )
        )
    told.sort(key=lambda key: (-key.mean, key.name))
    # Keys that each take as little as all others do are no news.
    if told and told[0].mean * float(lengths.sum()) < 0.002 * whole:
        return ()
    return tuple(told)


def _shards(
    run: Simulator, physics: ServiceBehaviour, scenario: Scenario, progress: Progress | None
) -> dict[int, tuple[ShardsNeeded, ...]]:
    """Return the shards that the written places need whose partitions refuse more than a little."""
    recorder = run.recorder
    asked, refused = recorder.asked.sum(axis=0), recorder.refused_units.sum(axis=0)
    meters = [number for number in range(1, asked.size, 2) if refused[number] > NOTICED * asked[number]]
    seconds = run.workload.rates.seconds

    def told() -> None:
        if progress is not None:
            progress(seconds, seconds)

    return {number: shards_needed(run.workload, number, physics, scenario.seed, told) for number in meters}


def _place(
    run: Simulator,
    number: int,
    busiest: tuple[BusyKey, ...],
    begun: int,
    shards: tuple[ShardsNeeded, ...],
    lengths: Floats,
) -> PlaceResult:
    recorder, station = run.recorder, run.workload.stations[number // 2]
    parts = run.parts[number // 2]
    asked = float(recorder.asked[:, number].sum())
    by_partitions = recorder.refused_units[:, number]
    last = by_partitions[-max(1, by_partitions.size // 3) :]
    case = StationCase(
        station=station,
        access=ACCESSES[number % 2],
        mean=asked / float(lengths.sum()),
        peak=float(recorder.peak[number]),
        by_partitions=float(by_partitions.sum()) / asked,
        by_whole=float(recorder.refused_whole[:, number].sum()) / asked,
        units=_units(run, number),
        units_most=float(recorder.refused_most[number]),
        partitions=(begun, len(parts)),
        splits=sum(cut.reason == "heat" for cut in parts.cuts),
        divisible=_divisible(run, number),
        late=float(last.sum()) / max(float(by_partitions.sum()), 1e-9),
        busiest=busiest,
        shards=shards,
    )
    return PlaceResult(
        table=station.table,
        index=station.index,
        access=case.access,
        mode="on-demand" if station.allowance.on_demand else "provisioned",
        units=case.units,
        mean=case.mean,
        peak=case.peak,
        throttled=min(1.0, case.by_partitions + case.by_whole),
        by_partitions=case.by_partitions,
        by_whole=case.by_whole,
        partitions=case.partitions,
        splits=case.splits,
        busiest=busiest,
        diagnosis=diagnose(case),
        shards=shards,
    )


def _divisible(run: Simulator, number: int) -> frozenset[str]:
    """Return the watched keys of a place that splits can help: what falls on one end of each fits a partition."""
    workload, recorder = run.workload, run.recorder
    if workload.stations[number // 2].whole_collections:
        return frozenset()
    means, limit = workload.rates.means(), LIMITS[number % 2]
    weights: dict[tuple[int, bool], float] = {}  # by key set, and whether it falls anywhere in a collection
    for mean, flow in zip(means, workload.flows, strict=True):
        for draw in flow.draws:
            for arm in draw.arms:
                if meter(arm) == number:
                    at = (draw.keys, arm.spread == "any")
                    weights[at] = weights.get(at, 0.0) + float(mean) * arm.units
    found: set[str] = set()
    for key, peak in zip(recorder.watched, recorder.key_peak, strict=True):
        firm, loose = weights.get((key.keys, False), 0.0), weights.get((key.keys, True), 0.0)
        if key.meter == number and loose > 0 and peak * firm / (firm + loose) <= limit:
            found.add(key.label)
    return frozenset(found)


def _heat_map(
    run: Simulator, number: int, busiest: tuple[BusyKey, ...], begun: Floats, lengths: Floats
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
        bounds=tuple(begun.tolist()),
        cuts=tuple((cut.at_s, cut.place, cut.reason) for cut in run.parts[number // 2].cuts),
        keys=busiest,
    )


def _units(run: Simulator, number: int) -> float:
    """Return what a place may take as a whole: on average while it refused, else at the end."""
    refused = float(run.recorder.refused_whole[:, number].sum())
    if refused > 0:
        return float(run.recorder.refused_at[number]) / refused
    return float(run.whole_rate[number])


def _patterns(workload: Workload, recorder: Recorder, lengths: Floats) -> tuple[PatternResult, ...]:
    shares = np.divide(
        recorder.refused_units + recorder.refused_whole,
        recorder.asked,
        out=np.zeros_like(recorder.asked),
        where=recorder.asked > 0,
    ).max(axis=0)
    asked = recorder.requests.sum(axis=0) @ recorder.patterns / float(lengths.sum())
    found: list[PatternResult] = []
    for at, (name, numbers) in enumerate(workload.pattern_flows().items()):
        if workload.traced:  # the flows of a recorded pattern are shares of it
            waits = Waits.of(recorder.refusals[numbers].sum(axis=0))
        else:  # those of a declared one follow one another, and must all pass
            parts = tuple((recorder.refusals[number], workload.flows[number].fan) for number in numbers)
            waits = Waits.after(parts)
        found.append(
            PatternResult(
                name=name,
                title=workload.flows[numbers[0]].title,
                mean=float(asked[at]),
                peak=float(recorder.pattern_peak[at]),
                # Retries get no more out of a limit: the share that is refused at first is given up in the end.
                throttled=waits.given_up,
                wait_p99_s=waits.p99_s,
                given_up=waits.given_up,
                held_up_by=_culprit(workload, numbers, shares) if waits.given_up > 1e-6 else None,
            )
        )
    return tuple(found)


def _culprit(workload: Workload, numbers: list[int], shares: Floats) -> str | None:
    """Return the place of a pattern's requests that refuses the largest share of what comes to it."""
    arms = [arm for number in numbers for draw in workload.flows[number].draws for arm in draw.arms]
    best = max(arms, key=lambda arm: float(shares[2 * arm.station + ACCESSES.index(arm.access)]))
    return workload.stations[best.station].name
