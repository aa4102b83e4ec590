"""Simulation: how a design bears its traffic: partitions, burst, splits for heat, back-pressure of indexes.

Holds the workload that access patterns or a recorded log make, and the partitions it falls on, in aggregate and
reproducible from a seed. Behaves as the engine's own emulation does, and is tested against it; touches no table.
"""

from __future__ import annotations

from tavola.design.simulation.errors import SimulationRefused

try:
    import numpy as np  # noqa: F401 - asked for here, so that its absence is told in a sentence
except ImportError as error:
    raise SimulationRefused(
        "a simulation needs numpy; install it with: pip install 'tavola[design]'"
    ) from error

from tavola.design.simulation.demand import workload_of
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
from tavola.design.simulation.running import run_workload, simulate
from tavola.design.simulation.scenario import Mode, Scenario
from tavola.design.simulation.traces import trace_workload
from tavola.design.simulation.waits import told_patience

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
    "SimulationRefused",
    "chart",
    "report_lines",
    "run_workload",
    "simulate",
    "told_patience",
    "trace_workload",
    "workload_of",
]
