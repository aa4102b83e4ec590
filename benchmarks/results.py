"""What a run found, as data: written to JSON, read back, reported and drawn."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

OURS: Final = "tavola"


@dataclass(frozen=True, slots=True)
class Contender:
    """An engine, how it stores, and how many items it holds: one server in a stage."""

    engine: str
    storage: str  # "memory" or "disk"
    items: int

    def __str__(self) -> str:
        return f"{self.engine} {self.storage} {self.items:,}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed run of one operation."""

    stage: str
    engine: str
    storage: str
    items: int
    operation: str
    connections: int
    round: int
    requests: int
    seconds: float
    errors: int
    cpu_us: float  # of the server, user and system, for each request
    p50_ms: float
    p99_ms: float
    foreign_cores: float  # what neither the server nor the load took: how noisy the machine was

    @property
    def rate(self) -> float:
        """Requests answered in a second."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def contender(self) -> Contender:
        """Whose run it was."""
        return Contender(self.engine, self.storage, self.items)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no rate: an engine not to be had, an operation refused, answers gone wrong."""

    engine: str
    storage: str
    items: int  # 0: at every size
    operation: str  # "": every operation
    reason: str


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a server costs before and beside the work."""

    stage: str
    engine: str
    storage: str
    items: int
    start_s: tuple[float, ...]  # process start to first answer, each start
    idle_mb: float
    loaded_mb: float  # after the table was filled
    worked_mb: float  # after all rounds
    fill_s: float
    disk_mb: float


@dataclass(frozen=True, slots=True)
class Direct:
    """The engine called in its own process: calls in a second, without a socket."""

    storage: str
    items: int
    operation: str
    rate: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way to serve made of one operation, beside the same server without it: a number a round."""

    section: str  # what is asked: "Cost of security"
    mode: str  # the way to serve; the first of a section is what the others are measured by
    operation: str
    rates: tuple[float, ...]
    cpu_us: tuple[float, ...]
    errors: int
    share_max: float | None = None  # of the rate that it may cost

    @property
    def rate(self) -> float:
        """The middle of the rounds."""
        return median(self.rates)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one library took for one operation on entities: a number a round."""

    section: str  # "in process", "over HTTP", "marshalling" or "start"
    library: str
    operation: str
    took_us: tuple[float, ...]  # a call, by the clock
    cpu_us: tuple[float, ...]  # a call, of the library's own process, all threads
    foreign_cores: tuple[float, ...] = ()  # what neither it nor its server took; none: not watched

    @property
    def rate(self) -> float:
        """Calls in a second, the middle of the rounds."""
        return 1e6 / median(self.took_us)


@dataclass(frozen=True, slots=True)
class Results:
    """A whole run."""

    about: dict[str, str] = field(default_factory=dict)  # date, machine, method; shown in this order
    versions: dict[str, str] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    failures: tuple[Failure, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    direct: tuple[Direct, ...] = ()
    empty_engine_ms: float | None = None
    costs: tuple[Cost, ...] = ()
    trials: tuple[Trial, ...] = ()

    def to_json(self) -> str:
        """The run as a JSON document; `from_json` reads it back."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Results":
        """The run that `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        footprints = [row | {"start_s": tuple(row["start_s"])} for row in document["footprints"]]
        return cls(
            about=document["about"],
            versions=document["versions"],
            samples=tuple(Sample(**row) for row in document["samples"]),
            failures=tuple(Failure(**row) for row in document["failures"]),
            footprints=tuple(Footprint(**row) for row in footprints),
            direct=tuple(Direct(**row) for row in document["direct"]),
            empty_engine_ms=document["empty_engine_ms"],
            costs=tuple(
                Cost(**row | {"rates": tuple(row["rates"]), "cpu_us": tuple(row["cpu_us"])})
                for row in document.get("costs", ())
            ),
            trials=tuple(Trial(**_tuples(row)) for row in document.get("trials", ())),
        )

    def save(self, path: Path) -> None:
        """Write the run, whole or not at all."""
        beside = path.with_suffix(".tmp")
        beside.write_text(self.to_json())
        beside.replace(path)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class Cell:
    """The middle of the rounds for one contender, operation and number of connections."""

    rate: float
    rate_low: float  # the worst round
    rate_high: float  # the best
    cpu_us: float
    p50_ms: float
    p99_ms: float
    errors: int
    requests: int  # over all rounds

    @property
    def sound(self) -> bool:
        """A rate to compare by: every answer was a success, and there were answers."""
        return self.errors == 0 and self.requests > 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell stands in a run."""

    stage: str
    contender: Contender
    operation: str
    connections: int


def cells(results: Results) -> dict[Place, Cell]:
    """The run's medians."""
    gathered: dict[Place, list[Sample]] = {}
    for sample in results.samples:
        place = Place(sample.stage, sample.contender, sample.operation, sample.connections)
        gathered.setdefault(place, []).append(sample)
    return {place: _middle(samples) for place, samples in gathered.items()}


def _middle(samples: list[Sample]) -> Cell:
    rates = [sample.rate for sample in samples]
    return Cell(
        rate=median(rates),
        rate_low=min(rates),
        rate_high=max(rates),
        cpu_us=median(sample.cpu_us for sample in samples),
        p50_ms=median(sample.p50_ms for sample in samples),
        p99_ms=median(sample.p99_ms for sample in samples),
        errors=sum(sample.errors for sample in samples),
        requests=sum(sample.requests for sample in samples),
    )
