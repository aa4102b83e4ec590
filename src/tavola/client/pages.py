"""Pages: answers of queries and scans, a stretch at a time, over one shard or many.

Several shards are asked at once and merged by sort key, so that the answer has the order that one partition would
have; one cursor holds the place in each. What has expired, or is of another entity, is left out and does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

from tavola.client.context import Context
from tavola.client.cursors import question_sum, seal, unseal
from tavola.client.expiry import expired
from tavola.client.queries import Asked, sort_place, start_key
from tavola.client.steps import Call, Steps, Together
from tavola.errors import TavolaError
from tavola.model import KeyShape, Table
from tavola.values import Item

R = TypeVar("R")

FILTERED_LIMIT_MIN = 100  # how many items a request with a filter looks at, at least

_DONE = 0


@dataclass(frozen=True, slots=True)
class Stretch(Generic[R]):
    """What one page holds."""

    items: list[R]
    cursor: str | None
    scanned: int  # items that were read, and paid for
    requests: int


@dataclass(slots=True)
class _Lane:
    """One shard's share of an answer."""

    request: dict[str, Any]
    start: Item | None = None  # where the next request goes on
    taken: Any = None  # where the page is: None before the first item, a place, or _DONE
    waiting: list[Item] = field(default_factory=list)
    at: int = 0
    exhausted: bool = False

    @property
    def empty(self) -> bool:
        return self.at >= len(self.waiting)

    def receive(self, answer: dict[str, Any]) -> None:
        self.waiting = answer["Items"]
        self.at = 0
        self.start = answer.get("LastEvaluatedKey")
        self.exhausted = self.start is None


def read_page(
    context: Context,
    asked: Asked,
    operation: str,
    table: type[Table],
    convert: Callable[[Item], R | None],
    *,
    limit: int | None,
    page_size: int | None,
    cursor: str | None,
    newest_first: bool,
    key: KeyShape | None,
) -> Steps[Stretch[R]]:
    """Return the next items of an answer; without a limit, those of one round of requests."""
    question = question_sum(operation, list(asked.requests))
    lanes = [_Lane(request) for request in asked.requests]
    if cursor is not None:
        for lane, state in zip(lanes, unseal(context.secret, question, cursor), strict=True):
            lane.taken = lane.start = state
            if state == _DONE:
                lane.start, lane.exhausted = None, True
    reader = _Reader(asked, operation, lanes, newest_first, key, limit, page_size)
    items: list[R] = []
    now_s = context.clock.now()
    while True:
        following = yield from reader.next_lane()
        if following is None:
            break
        if limit is not None and len(items) >= limit:
            break  # there is more, for sure
        lane = following
        item = lane.waiting[lane.at]
        lane.at += 1
        lane.taken = start_key(asked, item)
        if not expired(table, item, now_s):
            found = convert(item)
            if found is not None:
                items.append(found)
        if limit is None and reader.round_over() and items:
            break
    over = all(lane.exhausted and lane.empty for lane in lanes)
    told = None if over else seal(context.secret, question, [_state(lane) for lane in lanes])
    return Stretch(items, told, reader.scanned, reader.requests)


def _state(lane: _Lane) -> Any:
    if lane.empty:
        # What was read after the last item that counted need not be read again.
        return _DONE if lane.exhausted else lane.start
    return lane.taken


class _Reader:
    """Fetches the lanes and says which has the next item."""

    def __init__(
        self,
        asked: Asked,
        operation: str,
        lanes: list[_Lane],
        newest_first: bool,
        key: KeyShape | None,
        limit: int | None,
        page_size: int | None,
    ) -> None:
        self._asked = asked
        self._operation = operation
        self._lanes = lanes
        self._newest_first = newest_first
        self._key = key
        self._limit = limit
        self._page_size = page_size
        self._heap: list[tuple[Any, int]] | None = None
        self.scanned = 0
        self.requests = 0

    def round_over(self) -> bool:
        """Return whether everything that was fetched is taken."""
        return all(lane.empty for lane in self._lanes)

    def next_lane(self) -> Steps[_Lane | None]:
        """Return the lane of the next item in order, None at the end."""
        if len(self._lanes) == 1 or self._asked.in_turn or self._key is None:
            for lane in self._lanes:
                while lane.empty and not lane.exhausted:
                    yield from self._fetch([lane])
                if not lane.empty:
                    return lane
            return None
        if self._heap is None:
            while short := [lane for lane in self._lanes if lane.empty and not lane.exhausted]:
                yield from self._fetch(short)
            self._heap = []
            for number, lane in enumerate(self._lanes):
                self._push(number, lane)
            heapify(self._heap)
            self._last: int | None = None
        elif self._last is not None:
            lane = self._lanes[self._last]
            while lane.empty and not lane.exhausted:
                yield from self._fetch([lane])
            self._push(self._last, lane)
            self._last = None
        if not self._heap:
            return None
        _, number = heappop(self._heap)
        self._last = number
        return self._lanes[number]

    def _push(self, number: int, lane: _Lane) -> None:
        if not lane.empty:
            assert self._heap is not None
            assert self._key is not None
            place = sort_place(self._key, lane.waiting[lane.at], self._asked.key_attributes)
            heappush(self._heap, (_Falling(place) if self._newest_first else place, number))

    def _fetch(self, lanes: list[_Lane]) -> Steps[None]:
        calls = tuple(Call(self._operation, self._request(lane)) for lane in lanes)
        self.requests += len(calls)
        if len(calls) == 1:
            answers = [(yield calls[0])]
        else:
            answers = yield Together(calls)
        for lane, answer in zip(lanes, answers, strict=True):
            if isinstance(answer, TavolaError):
                raise answer
            self.scanned += answer.get("ScannedCount", len(answer["Items"]))
            lane.receive(answer)

    def _request(self, lane: _Lane) -> dict[str, Any]:
        request = dict(lane.request)
        if lane.start is not None:
            request["ExclusiveStartKey"] = lane.start
        size = self._page_size
        if size is None and self._limit is not None:
            # One more than is wanted tells whether there is more.
            size = (
                self._limit + 1
                if "FilterExpression" not in request
                else max(self._limit + 1, FILTERED_LIMIT_MIN)
            )
        if size is not None:
            request["Limit"] = size
        return request


class _Falling:
    """A place in an order, turned round."""

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Falling) and bool(self.place == other.place)

    __hash__ = None  # type: ignore[assignment]
