"""The bars: what this engine set out to reach, and whether a run shows it reached.

Rates count at the smallest table and the most connections of the run, which in a full run are ten
thousand items and sixteen connections.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.costs import is_met, share, title_of
from benchmarks.libraries import IMPORTS, OVER_HTTP
from benchmarks.libraries import TITLES as LIBRARIES
from benchmarks.results import OURS, Cell, Place, Results, Trial, cells
from benchmarks.trials import BARE, COMMANDS, HTTP, IN, IN_MEMORY, MARSHAL, NAMES, START, cheaper, faster, one
from benchmarks.workload import OPERATIONS

MEMORY_RATIO_MIN: Final = 4.0  # every operation, ours in memory to the best peer in memory
DISK_RATIO_MIN: Final = 2.5  # every write, ours synced to the best peer on disk as it comes
SCALE_COST_MAX: Final = 1.3  # a request at a million items to one at ten thousand
START_S_MAX: Final = 0.25  # process start to first answer
IDLE_MB_MAX: Final = 60.0
EMPTY_ENGINE_MS_MAX: Final = 2.0
ENTITY_RATIO_MIN: Final = 20.0  # put and get of an entity, in process, to each peer below
ENTITY_PEERS: Final = ("pynamodb-moto", "boto3-local")
ENTITY_CPU_MAX: Final = 1.0  # client's processor time over HTTP, to each peer below
CPU_PEERS: Final = ("boto3-resource", "pynamodb", "pydynantic")
MARSHALLING_US_MAX: Final = 60.0  # an entity of 1 KB to an item and back
IMPORT_MS_MAX: Final = 150.0
IMPORT_RATIO_MAX: Final = 0.8  # of the client's names, to `import boto3`

assert DISK_RATIO_MIN < MEMORY_RATIO_MIN, "a sync costs what the peers do not pay"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours beside the best of the others for one operation."""

    ours: Cell | None
    best: Cell | None  # None: no peer answered it soundly
    best_engine: str

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer, by the medians; None where a side is missing."""
        if self.ours is None or self.best is None or not self.ours.sound or not self.best.rate:
            return None
        return self.ours.rate / self.best.rate

    @property
    def ratio_low(self) -> float | None:
        """The same by our worst round and their best: what noise cannot take away."""
        if self.ratio is None or self.ours is None or self.best is None:
            return None
        return self.ours.rate_low / self.best.rate_high


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar, what was measured, and whether it is met (None: not measured)."""

    subject: str
    bar: str
    measured: str
    met: bool | None


def compare(
    table: Mapping[Place, Cell], storage: str, items: int, operation: str, connections: int
) -> Comparison:
    """Ours and the best peer, side by side in one stage."""
    ours: Cell | None = None
    best: Cell | None = None
    best_engine = ""
    for place, cell in table.items():
        if (place.stage, place.operation, place.connections) != ("peers", operation, connections):
            continue
        if (place.contender.storage, place.contender.items) != (storage, items):
            continue
        if place.contender.engine == OURS:
            ours = cell
        elif cell.sound and (best is None or cell.rate > best.rate):
            best, best_engine = cell, place.contender.engine
    return Comparison(ours, best, best_engine)


def cost_ratio(
    table: Mapping[Place, Cell], storage: str, operation: str, connections: int
) -> tuple[Cell, Cell, float] | None:
    """Ours on the small and on the large table of the scale stage, and how much dearer the large is."""
    found = {
        place.contender.items: cell
        for place, cell in table.items()
        if (place.stage, place.operation, place.connections) == ("scale", operation, connections)
        and place.contender.storage == storage
    }
    if len(found) < 2:
        return None
    small, large = found[min(found)], found[max(found)]
    if not small.sound or not large.sound or not large.rate:
        return None
    return small, large, small.rate / large.rate


def verdicts(results: Results) -> tuple[Verdict, ...]:
    """Every bar, in order."""
    table = cells(results)
    peers = [place for place in table if place.stage == "peers"]
    found: list[Verdict] = []
    if peers:
        items = min(place.contender.items for place in peers)
        connections = max(place.connections for place in peers)
        for storage, least in (("memory", MEMORY_RATIO_MIN), ("disk", DISK_RATIO_MIN)):
            for operation in OPERATIONS:
                if storage == "memory" or operation.writes:
                    comparison = compare(table, storage, items, operation.name, connections)
                    found.append(_ratio_verdict(f"{operation.title}, {storage}", least, comparison))
    scale = [place for place in table if place.stage == "scale"]
    if scale:
        connections = max(place.connections for place in scale)
        for storage in ("memory", "disk"):
            found += [
                _cost_verdict(
                    f"{operation.title}, {storage}", cost_ratio(table, storage, operation.name, connections)
                )
                for operation in OPERATIONS
            ]
    return (
        *found,
        *_cost_verdicts(results),
        *_footprint_verdicts(results),
        *_entity_verdicts(results.trials),
    )


def _ratio_verdict(subject: str, least: float, comparison: Comparison) -> Verdict:
    bar = f"≥ {least:g}× the best peer"
    ratio = comparison.ratio
    if ratio is None:
        missing = "ours" if comparison.ours is None or not comparison.ours.sound else "a peer"
        return Verdict(subject, bar, f"no rate of {missing}", None)
    assert comparison.ratio_low is not None, "both sides are there"
    measured = f"{ratio:.1f}× {comparison.best_engine} (worst round to best: {comparison.ratio_low:.1f}×)"
    return Verdict(subject, bar, measured, ratio >= least)


def _cost_verdict(subject: str, found: tuple[Cell, Cell, float] | None) -> Verdict:
    bar = f"large table ≤ {SCALE_COST_MAX:g}× the cost of the small"
    if found is None:
        return Verdict(subject, bar, "not measured", None)
    small, large, ratio = found
    processor = f", processor {large.cpu_us / small.cpu_us:.2f}×" if small.cpu_us else ""
    return Verdict(subject, bar, f"{ratio:.2f}×{processor}", ratio <= SCALE_COST_MAX)


def _cost_verdicts(results: Results) -> Iterable[Verdict]:
    for cost in results.costs:
        base = next(
            each for each in results.costs if (each.section, each.operation) == (cost.section, cost.operation)
        )
        if cost.share_max is not None:
            subject = f"{title_of(cost)}, {cost.mode}"
            measured = f"{1 - share(cost, base):.0%}"
            yield Verdict(subject, f"costs ≤ {cost.share_max:.0%}", measured, is_met(cost, base))


def _footprint_verdicts(results: Results) -> Iterable[Verdict]:
    prints = [footprint for footprint in results.footprints if footprint.engine == OURS]
    for storage in ("memory", "disk"):
        starts = [start for each in prints if each.storage == storage for start in each.start_s]
        idles = [each.idle_mb for each in prints if each.storage == storage]
        if starts:
            taken = median(starts)
            yield Verdict(
                f"start to first answer, {storage}",
                f"< {START_S_MAX:g} s",
                f"{taken:.2f} s",
                taken < START_S_MAX,
            )
        if idles:
            idle = median(idles)
            yield Verdict(
                f"memory when idle, {storage}", f"< {IDLE_MB_MAX:g} MB", f"{idle:.0f} MB", idle < IDLE_MB_MAX
            )
    if results.empty_engine_ms is not None:
        taken = results.empty_engine_ms
        met = taken < EMPTY_ENGINE_MS_MAX
        yield Verdict("an empty engine", f"< {EMPTY_ENGINE_MS_MAX:g} ms", f"{taken:.2f} ms", met)


def _entity_verdicts(trials: Sequence[Trial]) -> Iterable[Verdict]:
    for operation in ("put", "get"):
        ours = one(trials, IN, IN_MEMORY, operation)
        for peer in ENTITY_PEERS:
            its = one(trials, IN, peer, operation)
            if ours is not None or its is not None:
                bar = f"≥ {ENTITY_RATIO_MIN:g}× {LIBRARIES[peer]}"
                yield _rate_verdict(f"{operation} of an entity, in process", bar, ours, its)
    for library in OVER_HTTP:
        for operation in ("put", "get"):
            ours = one(trials, HTTP, library.name, operation) if library.ours else None
            if ours is not None:
                yield _cpu_verdict(f"{operation} of an entity over HTTP, {library.title}", ours, trials)
    marshalling = one(trials, MARSHAL, OURS, "both_ways")
    if marshalling is not None:
        taken = median(marshalling.cpu_us)
        bar = f"< {MARSHALLING_US_MAX:g} µs"
        yield Verdict(
            "an entity of 1 KB to an item and back", bar, f"{taken:.1f} µs", taken < MARSHALLING_US_MAX
        )
    imported = one(trials, START, OURS, BARE)
    if imported is not None:
        taken = median(imported.took_us) / 1000
        yield Verdict(f"`{BARE}`", f"< {IMPORT_MS_MAX:g} ms", f"{taken:.0f} ms", taken < IMPORT_MS_MAX)
    yield from _start_verdicts(trials)


def _start_verdicts(trials: Sequence[Trial]) -> Iterable[Verdict]:
    """What users wait for: the import beside boto3's, and whole commands."""
    ours, boto3 = one(trials, START, OURS, NAMES), one(trials, START, "boto3-resource", NAMES)
    if ours is not None and boto3 is not None:
        ratio = cheaper(ours, boto3)
        bar = f"processor time ≤ {IMPORT_RATIO_MAX:g}× `{IMPORTS['boto3-resource']}`"
        yield Verdict(f"`{IMPORTS[OURS]}`", bar, f"{ratio:.2f}×", ratio <= IMPORT_RATIO_MAX)
    if ours is not None:
        taken = median(ours.took_us) / 1000
        yield Verdict(
            f"`{IMPORTS[OURS]}`", f"< {IMPORT_MS_MAX:g} ms", f"{taken:.0f} ms", taken < IMPORT_MS_MAX
        )
    for command, ms_max in COMMANDS.items():
        if (run := one(trials, START, OURS, command)) is not None:
            taken = median(run.took_us) / 1000
            yield Verdict(f"`{command}`", f"≤ {ms_max} ms", f"{taken:.0f} ms", taken <= ms_max)


def _rate_verdict(subject: str, bar: str, ours: Trial | None, its: Trial | None) -> Verdict:
    if ours is None or its is None:
        return Verdict(subject, bar, f"no rate of {'ours' if ours is None else 'the peer'}", None)
    ratio = faster(ours, its)
    worst = min(its.took_us) / max(ours.took_us)
    return Verdict(
        subject, bar, f"{ratio:.1f}× (worst round to best: {worst:.1f}×)", ratio >= ENTITY_RATIO_MIN
    )


def _cpu_verdict(subject: str, ours: Trial, trials: Sequence[Trial]) -> Verdict:
    bar = "processor time ≤ " + ", ".join(LIBRARIES[peer] for peer in CPU_PEERS)
    beside = {peer: one(trials, HTTP, peer, ours.operation) for peer in (*CPU_PEERS, "pydynox")}
    ratios = {peer: cheaper(ours, its) for peer, its in beside.items() if its is not None}
    measured = ", ".join(f"{ratio:.2f}× {LIBRARIES[peer]}" for peer, ratio in ratios.items())
    missing = [peer for peer in CPU_PEERS if peer not in ratios]
    met = None if missing else all(ratios[peer] <= ENTITY_CPU_MAX for peer in CPU_PEERS)
    return Verdict(subject, bar, measured or "no peer", met)
