"""Simulate the traffic of a design: throttling by partitions, burst capacity, splits for heat, back-pressure from indexes.

Owns the workload that access patterns or a recorded log describe, and the partitions it falls on. Everything is
computed in aggregate and is reproducible from a seed. The rules are those of the engine's emulation, and tests compare the two.
It never touches a table.
"""

from __future__ import annotations

from tavola.design.errors import SimulationError

try:
    import numpy as np  # noqa: F401 - imported here to report a missing extra clearly
except ImportError as error:
    raise SimulationError("numpy is not installed; install it with: pip install 'tavola[design]'") from error

from tavola.design.simulation.demand import build_workload
from tavola.design.simulation.heat_map import chart
from tavola.design.simulation.rates import Burst
from tavola.design.simulation.report import report_lines
from tavola.design.simulation.results import (
    SCHEMA,
    BusyKey,
    HeatMap,
    PatternResult,
    PlaceResult,
    ShardsNeeded,
    Simulation,
)
from tavola.design.simulation.run import run_workload, simulate
from tavola.design.simulation.scenario import Mode, Scenario
from tavola.design.simulation.traces import read_trace
from tavola.design.simulation.waits import describe_retries

__all__ = [
    "SCHEMA",
    "Burst",
    "BusyKey",
    "HeatMap",
    "Mode",
    "PatternResult",
    "PlaceResult",
    "Scenario",
    "ShardsNeeded",
    "Simulation",
    "SimulationError",
    "build_workload",
    "chart",
    "describe_retries",
    "read_trace",
    "report_lines",
    "run_workload",
    "simulate",
]
