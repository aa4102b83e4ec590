"""SimulationRefused: a workload or scenario that nothing can be simulated of."""

from __future__ import annotations

from tavola.errors import TavolaError


class SimulationRefused(TavolaError):
    """A design without rates, a trace without requests, a setting out of bounds; the sentence says what to do."""
