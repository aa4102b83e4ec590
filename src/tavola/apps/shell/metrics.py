"""Request and follower metrics in the Prometheus text format, one registry per application.

Routes are labelled by their template, so an ID never becomes a label value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tavola.clock import monotonic

BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
UNMATCHED = "(none)"


class MeasuredFollower(Protocol):
    """The part of a `Follower` that is measured."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def changes_counted(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def lag_s(self) -> float: ...


class ApplicationMetrics(Collector):
    """The metrics of one application; `followers` are read when the metrics are rendered."""

    def __init__(self) -> None:
        self.followers: Sequence[MeasuredFollower] = ()
        self.registry = CollectorRegistry()
        self.in_progress = Gauge(
            "tavola_app_requests_in_progress", "Requests in progress.", registry=self.registry
        )
        self.durations = Histogram(
            "tavola_app_request_seconds",
            "Duration of requests by route, method and status class.",
            ("route", "method", "status"),
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self.registry.register(self)
        self._series: dict[tuple[str, str, int], Histogram] = {}

    def record(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method, status // 100)
        series = self._series.get(key)
        if series is None:  # `labels` validates its arguments and takes a lock: once per series is enough
            series = self._series[key] = self.durations.labels(route, method, f"{status // 100}xx")
        series.observe(seconds)

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Generate the metrics of the followers."""
        families: tuple[tuple[Metric, Callable[[MeasuredFollower], float]], ...] = (
            (
                _gauge("lag_seconds", "Age of the oldest change not counted yet; 0 if none waits."),
                lambda f: f.lag_s,
            ),
            (_counter("changes", "Changes counted."), lambda f: f.changes_counted),
            (_counter("failures", "Failures after which the follower started again."), lambda f: f.failures),
            (_gauge("up", "Whether the follower reads its stream."), lambda f: float(f.state == "following")),
        )
        for family, value in families if self.followers else ():
            suffix = "_total" if isinstance(family, CounterMetricFamily) else ""
            for follower in self.followers:
                family.add_sample(family.name + suffix, {"follower": follower.name}, value(follower))
            yield family


def _gauge(name: str, description: str) -> Metric:
    return GaugeMetricFamily(f"tavola_app_follower_{name}", description, labels=("follower",))


def _counter(name: str, description: str) -> Metric:
    return CounterMetricFamily(f"tavola_app_follower_{name}", description, labels=("follower",))


class MeasureRequests:
    """ASGI middleware: counts and times every request of an application."""

    def __init__(self, app: ASGIApp, *, metrics: ApplicationMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its duration and status."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.in_progress.inc()
        started_s = monotonic()
        try:
            await self.app(scope, receive, note_status)
        finally:
            self.metrics.in_progress.dec()
            route = getattr(scope.get("route"), "path", None)
            method = scope["method"]
            if route is None:  # the client chose path and method, so neither may become a label
                route, method = UNMATCHED, "any"
            self.metrics.record(route, method, status, monotonic() - started_s)
