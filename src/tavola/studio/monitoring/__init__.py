"""What the engine was asked, recorded in bounded memory.

Holds the observer notified of every call, request metrics, and the heat of keys. Nothing is stored; it ends with the process.
"""

from tavola.studio.monitoring.heat_recorder import HeatRecorder
from tavola.studio.monitoring.monitor import OwnBackend, Watch, counted, owned
from tavola.studio.monitoring.observed_backend import TellingBackend, told_by
from tavola.studio.monitoring.request_metrics import Measures

__all__ = ["HeatRecorder", "Measures", "OwnBackend", "TellingBackend", "Watch", "counted", "owned", "told_by"]
