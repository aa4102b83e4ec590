"""Load: the same traffic on a real engine, request by request, and as a workload for the simulator."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tavola.clock import ManualClock
from tavola.design.simulation.keyspace import KeySet
from tavola.design.simulation.rates import DailyRates, Rhythm
from tavola.design.simulation.simulator import ServiceBehaviour, Simulator
from tavola.design.simulation.workload import Arm, Draw, RequestFlow, Station, StationCapacity, Workload
from tavola.engine import Engine
from tavola.keys import KeyAttribute, KeySchema
from tavola.limits import TABLE_CAPACITY_UNITS_MAX
from tavola.protocol.faults import Fault
from tests.engine.emulation.load import make

TABLE, INDEX = "tickets", "by-status"
ON_DEMAND = StationCapacity(TABLE_CAPACITY_UNITS_MAX, TABLE_CAPACITY_UNITS_MAX, on_demand=True, partitions=4)


def provisioned(reads: float, writes: float, partitions: int = 1) -> StationCapacity:
    """Return what a provisioned table may do."""
    return StationCapacity(reads, writes, on_demand=False, partitions=partitions)


def place_of(value: str, attribute: str = "pk") -> float:
    """Return where the engine puts a partition key, between 0 and 1."""
    schema = KeySchema((KeyAttribute(attribute, "S"),), ())
    return int.from_bytes(schema.key_of({attribute: {"S": value}})[:4], "big") / 2**32


def named(name: str, values: list[str], shards: int = 1) -> KeySet:
    """Return keys that lie where the engine puts them."""
    return KeySet(name, len(values) // shards, shards, places=tuple(place_of(value) for value in values))


def zipf(values: list[str], skew: float, chance: Random) -> Callable[[], str]:
    """Return who draws values by Zipf's law."""
    weights = [rank**-skew for rank in range(1, len(values) + 1)]
    total = sum(weights)
    bounds = [sum(weights[: at + 1]) / total for at in range(len(weights))]

    def draw() -> str:
        return values[min(bisect(bounds, chance.random()), len(values) - 1)]

    return draw


@dataclass
class Outcome:
    """What became of requests."""

    asked: int = 0
    refused: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(
        default_factory=dict
    )  # requests that a table or index refused, by its name

    @property
    def share(self) -> float:
        """The share that was refused."""
        return self.refused / max(1, self.asked)

    def share_at(self, place: str) -> float:
        """The share that a table or index refused."""
        return self.places.get(place, 0) / max(1, self.asked)


def engine_share(
    seconds: float,
    per_second: float | Callable[[float], float],
    ask: Callable[[Engine, Random], Any],
    *,
    split_after_s: int = 300,
    seed: int = 3,
    **table: Any,
) -> Outcome:
    """Offer requests to a new engine evenly, their keys by chance, and return what it refused."""
    clock, chance = ManualClock(), Random(seed)
    engine = Engine.open(clock=clock, emulate=f"throughput,split-after={split_after_s}s")
    make(engine, TABLE, **table)
    told = Outcome()
    started = clock.now()
    while True:
        passed = clock.now() - started
        if passed >= seconds:
            return told
        rate = per_second(passed) if callable(per_second) else per_second
        clock.advance(1 / rate)
        told.asked += 1
        try:
            ask(engine, chance)
        except Fault as fault:
            told.refused += 1
            found = fault.extra.get("ThrottlingReasons") or fault.extra.get("throttlingReasons") or []
            for reason in found:
                told.reasons[reason["reason"]] = told.reasons.get(reason["reason"], 0) + 1
            for place in {reason["resource"].rsplit("/", 1)[-1] for reason in found}:
                told.places[place] = told.places.get(place, 0) + 1


def put(pk: str, sk: str | None = None, size_kb: int = 0, **more: str) -> dict[str, Any]:
    """Return the request that puts an item of just under so many KB."""
    item: dict[str, Any] = {"pk": {"S": pk}, **{name: {"S": text} for name, text in more.items()}}
    if sk is not None:
        item["sk"] = {"S": sk}
    if size_kb:
        item["body"] = {"S": "x" * (size_kb * 1024 - 300)}
    return {"TableName": TABLE, "Item": item}


def simulated(
    seconds: int,
    per_second: float,
    keys: tuple[KeySet, ...],
    draws: tuple[Draw, ...],
    allowances: tuple[StationCapacity, ...],
    *,
    split_after_s: float = 300.0,
    burst_s: float = 300.0,
    rates: Any = None,
    whole_collections: bool = False,
) -> Simulator:
    """Return a run of one flow over a table and its indexes."""
    stations = tuple(
        Station(TABLE, None if at == 0 else INDEX, allowance, whole_collections and at == 0)
        for at, allowance in enumerate(allowances)
    )
    workload = Workload(
        stations,
        keys,
        (RequestFlow("load", "load", draws),),
        rates or DailyRates((Rhythm(per_second, per_second),), seconds, seed=5, noise=False),
    )
    run = Simulator(workload, ServiceBehaviour(split_after_s=split_after_s, burst_s=burst_s), seed=5)
    run.run()
    return run


def run_of(
    seconds: int,
    keys: tuple[KeySet, ...],
    flows: tuple[tuple[float, tuple[Draw, ...]], ...],
    places: dict[str, StationCapacity],
    *,
    split_after_s: float = 300.0,
) -> Simulator:
    """Return a run of several flows, each with its rate, over a table and any indexes of it."""
    stations = tuple(
        Station(TABLE, None if name == TABLE else name, allowance) for name, allowance in places.items()
    )
    told = tuple(RequestFlow(f"flow {at}", "load", draws) for at, (_, draws) in enumerate(flows))
    rates = DailyRates(tuple(Rhythm(rate, rate) for rate, _ in flows), seconds, seed=5, noise=False)
    run = Simulator(
        Workload(stations, keys, told, rates), ServiceBehaviour(split_after_s=split_after_s), seed=5
    )
    run.run()
    return run


def share_at(run: Simulator, station: int, access: str = "write") -> float:
    """Return the share of the units asked of a place that it refused."""
    meter = 2 * station + (access == "write")
    recorder = run.recorder
    refused = recorder.refused_units[:, meter].sum() + recorder.refused_whole[:, meter].sum()
    return float(refused / recorder.requested[:, meter].sum())


def share_of(run: Simulator) -> float:
    """Return the share that a run refused."""
    return float(run.recorder.refused.sum() / run.recorder.requests.sum())


def write(station: int, units: float, spread: Any = "point") -> Arm:
    """Return a write of so many units."""
    return Arm(station, "write", units, spread)


def read(station: int, units: float, spread: Any = "point") -> Arm:
    """Return a read of so many units."""
    return Arm(station, "read", units, spread)
