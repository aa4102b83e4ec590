"""Emulation: effects of production that an engine reproduces on purpose, repeatably from a seed.

Throughput with its partitions and throttling, stale reads and late indexes, conflicting transactions, unprocessed batch
members, interleaved streams, and the counters of hot keys. The package knows tables, writes and pages, and no requests:
`operations.emulated_call` consults it. Everything is off unless a switch turns it on.
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
