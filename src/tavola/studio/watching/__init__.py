"""Watching: what a table was asked while somebody looked, in bounded memory.

Holds the observer that an engine tells of every call, the measures of operations and the heat of keys. Memory only:
nothing of it is written down, and it ends with the process.
"""

from tavola.studio.watching.heat import HeatRecorder
from tavola.studio.watching.measures import Measures
from tavola.studio.watching.own import OwnBackend, counted, owned
from tavola.studio.watching.telling import TellingBackend, told_by
from tavola.studio.watching.watch import Watch

__all__ = ["HeatRecorder", "Measures", "OwnBackend", "TellingBackend", "Watch", "counted", "owned", "told_by"]
