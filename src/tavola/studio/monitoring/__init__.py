"""What the engine was asked, recorded in bounded memory.

Holds the observer notified of every call, request metrics, and the heat of keys. Nothing is stored; it ends with the process.
"""

from tavola.studio.monitoring.heat_recorder import HeatRecorder
from tavola.studio.monitoring.monitor import (
    MarkedBackend,
    Monitor,
    ObservedBackend,
    count_own_calls,
    mark_connection,
    observe_connection,
)
from tavola.studio.monitoring.request_metrics import RequestMetrics

__all__ = [
    "HeatRecorder",
    "MarkedBackend",
    "Monitor",
    "ObservedBackend",
    "RequestMetrics",
    "count_own_calls",
    "mark_connection",
    "observe_connection",
]
