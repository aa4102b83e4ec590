"""Simulate the heat of a design's declared traffic.

The result is the document of `tavola simulate --json`. A named run reports its progress and can be stopped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Literal

from tavola.errors import TavolaError
from tavola.model.document import Design
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage, Document

_RUNS_MAX = 16
_AT_ONCE = 3


class SimulatedBurst(ApiMessage):
    """A multiple of the traffic for some seconds, `per_hour` times an hour.

    A copy of `tavola.design.simulation.Burst`, whose package needs numpy, which is an optional dependency.
    """

    factor: float
    seconds: float
    per_hour: float = 1.0


class SimulationRequest(ApiMessage):
    """The time and traffic to simulate, as the options of `tavola simulate`."""

    hours: float = 6.0
    rate_factor: float = 1.0
    skew: float = 0.8
    peak: float = 2.0
    bursts: tuple[SimulatedBurst, ...] = ()
    mode: Literal["declared", "on-demand", "provisioned"] = "declared"
    read_units: float | None = None
    write_units: float | None = None
    quota: float | None = None
    warm: bool = False
    cold: bool = False
    seed: int = 0
    table: str | None = None  # only this table with its indexes; None: the whole design
    run: str | None = None  # a name under which progress can be requested


class SimulationRunRequest(ApiMessage):
    """The name of a run."""

    run: str


class SimulationProgress(ApiMessage):
    """The progress of a run: simulated seconds out of all."""

    state: Literal["running", "ended", "unknown"]
    done: int
    of: int


class _SimulationStopped(TavolaError):
    """The run was stopped."""


class _SimulationRun:
    """The progress of one simulation."""

    def __init__(self) -> None:
        self.done = 0
        self.of = 0
        self.ended = False
        self.running = True

    def progress(self, done: int, of: int) -> None:
        self.done, self.of = done, of
        if self.ended:
            raise _SimulationStopped("the simulation was stopped")


class _SimulationRuns:
    """The simulations of this process: the latest named ones, and those still running."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _SimulationRun] = OrderedDict()
        self._working: list[_SimulationRun] = []
        self._lock = Lock()

    def begin(self, name: str | None) -> _SimulationRun:
        run = _SimulationRun()
        with self._lock:
            self._working = [job for job in self._working if job.running]
            for job in self._working[: 1 - _AT_ONCE]:  # stops the oldest
                job.ended = True
            self._working.append(run)
            if name is not None:
                previous = self._kept.pop(name, None)
                if previous is not None:
                    previous.ended = True
                self._kept[name] = run
                while len(self._kept) > _RUNS_MAX:
                    self._kept.popitem(last=False)
        return run

    def find(self, name: str) -> _SimulationRun | None:
        with self._lock:
            return self._kept.get(name)


_RUNS = _SimulationRuns()


async def simulate_heat(studio: Studio, params: SimulationRequest) -> Document:
    """Simulate the design's traffic; the same numbers as the command line's."""
    design = studio.require_design()
    if params.table is not None:
        tables = tuple(table for table in design.tables if table.name == params.table)
        if not tables:
            raise RequestRefused(
                "table-undesigned",
                "Table not in the design",
                f"The design does not declare {params.table}, so its traffic is unknown.",
                "Choose a table of the design, or declare this one and its access patterns.",
                status=404,
            )
        design = replace(design, tables=tables)
    run = _RUNS.begin(params.run)
    try:
        return await studio.run_in_thread(_simulate, design, params, run.progress)
    except _SimulationStopped as error:
        raise RequestRefused(
            "simulation-ended",
            "The simulation was stopped",
            "It was stopped by a user, or replaced by newer simulations.",
            "Start it again.",
            status=409,
        ) from error
    finally:
        run.running = False
        run.ended = True  # the client disconnected, so the thread may stop


async def simulation_progress(studio: Studio, params: SimulationRunRequest) -> SimulationProgress:
    """Return the progress of a run."""
    run = _RUNS.find(params.run)
    if run is None:
        return SimulationProgress("unknown", 0, 0)
    return SimulationProgress("running" if run.running else "ended", run.done, run.of)


async def end_simulation(studio: Studio, params: SimulationRunRequest) -> SimulationProgress:
    """Stop a run; it ends within one simulated minute."""
    run = _RUNS.find(params.run)
    if run is not None:
        run.ended = True
    return await simulation_progress(studio, params)


def _simulate(design: Design, params: SimulationRequest, progress: Callable[[int, int], None]) -> Document:
    from tavola.design import simulation  # noqa: PLC0415 - numpy is an optional extra

    if params.warm and params.cold:
        raise simulation.SimulationError("warm and cold exclude each other; choose one")
    provisioned = params.read_units is not None or params.write_units is not None
    if provisioned and params.mode == "on-demand":
        raise simulation.SimulationError(
            "read and write units apply to provisioned tables; remove them, or choose another mode"
        )
    standard = simulation.Scenario()
    scenario = simulation.Scenario(
        hours=params.hours,
        seed=params.seed,
        rate_factor=params.rate_factor,
        skew=params.skew,
        peak=params.peak,
        bursts=tuple(
            simulation.Burst(burst.factor, burst.seconds, burst.per_hour) for burst in params.bursts
        ),
        mode="provisioned" if provisioned else params.mode,
        read_units=params.read_units,
        write_units=params.write_units,
        quota=standard.quota if params.quota is None else params.quota,
        warm=params.warm,
        settled=params.hours < 24 and not params.cold,
    )
    result = simulation.run_workload(simulation.build_workload(design, scenario), scenario, progress)
    return {"schema": simulation.SCHEMA, **result.to_json()}


ENDPOINTS = (
    Endpoint("POST", "/heat/simulate", simulate_heat, cancel_on_disconnect=True),
    Endpoint("GET", "/heat/simulate/progress", simulation_progress),
    Endpoint("POST", "/heat/simulate/end", end_simulation),
)
