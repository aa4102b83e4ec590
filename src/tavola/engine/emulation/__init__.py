"""Emulation: what production will do to a request, on purpose, and all of it from a seed.

Holds throughput with its partitions and throttling, stale reads and late indexes, transactions that conflict,
batches that are left undone, streams that interleave, and the counters of hot keys. Knows tables, changes and
pages, and no request: the operations ask it. Nothing here is on unless a switch says so.
"""

from tavola.engine.emulation.emulation import Emulation, HotItem, Hottest, insights_mode
from tavola.engine.emulation.interleaving import interleave
from tavola.engine.emulation.switches import SWITCHES, EmulationRefused, Switches, parse_switches

__all__ = [
    "SWITCHES",
    "Emulation",
    "EmulationRefused",
    "HotItem",
    "Hottest",
    "Switches",
    "insights_mode",
    "interleave",
    "parse_switches",
]
