"""Measures: how many requests there were, how they ended and how long they took, by route.

Kept in the process, as plain numbers: to record one costs a microsecond or two. Told as Prometheus reads it.
Routes are told by their template, so an id never becomes a label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tavola.clock import monotonic

BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNMATCHED = "(none)"


class Lagging(Protocol):
    """What follows a stream, as far as it is measured."""

    @property
    def name(self) -> str:
        """What the numbers call it."""
        ...

    @property
    def state(self) -> str:
        """What it is doing."""
        ...

    @property
    def counted(self) -> int:
        """How many changes it has counted."""
        ...

    @property
    def failures(self) -> int:
        """How often it failed and began again."""
        ...

    @property
    def lag_s(self) -> float:
        """How old what is not counted yet is."""
        ...


class Histogram:
    """How long the requests of one kind took."""

    __slots__ = ("buckets", "count", "total_s")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.count = 0
        self.total_s = 0.0


class Measures:
    """The numbers of one application."""

    def __init__(self) -> None:
        self.under_way = 0
        self.kinds: dict[tuple[str, str, int], Histogram] = {}

    def record(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        kind = (route, method, status // 100)
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = Histogram()
        found.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        found.count += 1
        found.total_s += seconds

    def render(self, followers: Sequence[Lagging] = ()) -> str:
        """Return all numbers in the text format of Prometheus."""
        return "\n".join([*self._requests(), *_lags(followers), ""])

    def _requests(self) -> Iterator[str]:
        yield "# HELP tavola_app_requests_under_way Requests that are being answered."
        yield "# TYPE tavola_app_requests_under_way gauge"
        yield f"tavola_app_requests_under_way {self.under_way}"
        yield "# HELP tavola_app_request_seconds How long requests took, by route, method and class of status."
        yield "# TYPE tavola_app_request_seconds histogram"
        for (route, method, family), found in sorted(self.kinds.items()):
            labels = f'route="{_escaped(route)}",method="{_escaped(method)}",status="{family}xx"'
            seen = 0
            for bound, count in zip((*BOUNDS_S, None), found.buckets, strict=True):
                seen += count
                told = "+Inf" if bound is None else f"{bound:g}"
                yield f'tavola_app_request_seconds_bucket{{{labels},le="{told}"}} {seen}'
            yield f"tavola_app_request_seconds_sum{{{labels}}} {found.total_s:.6f}"
            yield f"tavola_app_request_seconds_count{{{labels}}} {found.count}"


def _lags(followers: Sequence[Lagging]) -> Iterator[str]:
    numbers: tuple[tuple[str, str, str, Callable[[Lagging], float]], ...] = (
        (
            "lag_seconds",
            "gauge",
            "How old the change is that waits to be counted; 0: none waits.",
            lambda f: f.lag_s,
        ),
        ("changes_total", "counter", "Changes that were counted.", lambda f: f.counted),
        (
            "failures_total",
            "counter",
            "Times that following failed and was begun again.",
            lambda f: f.failures,
        ),
        ("up", "gauge", "Whether it follows its stream.", lambda f: float(f.state == "following")),
    )
    for name, kind, told, value in numbers if followers else ():
        yield f"# HELP tavola_app_follower_{name} {told}"
        yield f"# TYPE tavola_app_follower_{name} {kind}"
        for follower in followers:
            yield f'tavola_app_follower_{name}{{follower="{_escaped(follower.name)}"}} {value(follower):g}'


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Measured:
    """ASGI: counts every request of the application inside it."""

    def __init__(self, app: ASGIApp, *, measures: Measures) -> None:
        self.app = app
        self.measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        measures = self.measures
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        measures.under_way += 1
        begun_s = monotonic()
        try:
            await self.app(scope, receive, sent)
        finally:
            measures.under_way -= 1
            route = getattr(scope.get("route"), "path", None)
            method = scope["method"]
            if route is None:  # neither is ours, so neither may become a label
                route, method = UNMATCHED, "any"
            measures.record(route, method, status, monotonic() - begun_s)
