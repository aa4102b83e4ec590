"""Scatter-gather paging: one ordered page from the partitions of a sharded key.

A sharded key spreads one logical partition over N physical ones, so a query of it is N DynamoDB queries. Their results are
merged by sort key, lazily, so that the caller sees the order a single partition would have:

    shard 0   a  d  g ─┐
    shard 1   b  c  h ─┼─► heap of the next item of each shard ──► a b c d …  ──► page of `limit` items
    shard 2   e  f    ─┘        (refilled when a shard runs out)

Invariant: an item may be taken only while every shard that is not exhausted has its next item in the heap; otherwise a
shard not yet read could hold a smaller one. Shards that ran dry are therefore refilled together, in one `CallGroup`. A scan
with segments uses the same code without an order.

The cursor of a page holds the position in each shard, signed together with the query (see `cursors`). Items that expired
or belong to another entity are dropped and do not count towards the limit; when many are dropped, the walk reads ahead in
growing steps and cuts back to the limit afterwards (`_cut`).

Cost: the first page reads every shard, N requests in one round trip; up to a page of each shard is fetched and paid for
although the caller takes only `limit` items in all. Not offered: a consistent snapshot across shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from tavola.client.context import Context
from tavola.client.cursors import question_sum, seal, unseal
from tavola.client.effects import Call, CallGroup, Program
from tavola.client.queries import PreparedQuery, sort_place, start_key
from tavola.errors import TavolaError
from tavola.values import Item

R = TypeVar("R")

FILTERED_LIMIT_MIN = 100  # how many items a request with a filter looks at, at least
GROWTH = 4  # how many times more is asked for after a request of which nothing was kept
SIZE_MAX = 10_000  # of what a request is told to look at; a page of DynamoDB seldom holds more
FLIGHT_MAX = 100  # segments of a scan that are read in one round

NEITHER = (
    "a page is neither true nor false: page.items are those of this stretch, more may follow; ask db.count(…), or "
    "whether page.items is empty"
)

_DONE = 0

Finish = Callable[[Sequence[Item]], Program[list[R | None]]]


@dataclass(frozen=True, slots=True)
class FetchedPage(Generic[R]):
    """What one page holds."""

    items: list[R]
    cursor: str | None
    scanned: int  # items that were read, and paid for
    requests: int


@dataclass(slots=True)
class _Lane:
    """One shard's share of an answer."""

    number: int
    request: dict[str, Any]
    start: Item | None = None  # where the next request goes on
    since: Item | None = None  # where the last one did
    waiting: list[Item] = field(default_factory=list)  # what it brought
    at: int = 0  # how many of these are taken
    exhausted: bool = False
    size: int = 0  # what the last request was told to look at
    judged: int = 0  # how many items of the answer had been judged by then, and kept
    kept: int = 0

    @property
    def empty(self) -> bool:
        return self.at >= len(self.waiting)

    @property
    def short(self) -> bool:
        """Whether its next item must be fetched."""
        return not self.exhausted and self.at >= len(self.waiting)


def read_page(
    context: Context,
    asked: PreparedQuery,
    finish: Finish[R],
    *,
    limit: int | None,
    page_size: int | None,
    cursor: str | None,
) -> Program[FetchedPage[R]]:
    """Return the next items of an answer; without a limit, those of one round of requests, or of the first that has any.

    `finish` makes of items what is wanted, in their order, and None of those that are to be left out.
    """
    walk = Walk(asked, limit, page_size)
    if cursor is not None:
        walk.go_on(unseal(context.secret, question_sum(asked.identity()), cursor, len(asked.requests)))
    items: list[R] = []
    states: list[Any] | None = None
    ahead = 1
    while limit is None or len(items) < limit:
        wanted = None if limit is None else limit - len(items)
        before = walk.states if ahead > 1 else []
        taken = yield from walk.take(None if wanted is None else min(wanted * ahead, SIZE_MAX))
        if not taken:
            break
        made = yield from finish([item for _, item in taken])
        kept = [at for at, each in enumerate(made) if each is not None]
        if wanted is not None and len(kept) > wanted:
            del kept[wanted:]
            states = _cut(asked, before, taken[: kept[-1] + 1])
        items += [each for at in kept if (each := made[at]) is not None]
        walk.judged, walk.kept = walk.judged + len(taken), walk.kept + len(kept)
        ahead = 1 if kept else ahead * GROWTH
        if states is not None or (limit is None and items):
            break
    if states is None:
        more = (yield from walk.more()) if limit is not None else not walk.over
        states = walk.states if more else None
    told = None if states is None else seal(context.secret, question_sum(asked.identity()), states)
    return FetchedPage(items, told, walk.scanned, walk.requests)


def _cut(asked: PreparedQuery, before: list[Any], taken: Sequence[tuple[_Lane, Item]]) -> list[Any]:
    """Return where the lanes are when, after some state, just these items were taken."""
    states = list(before)
    for lane, item in taken:
        states[lane.number] = start_key(asked, item)
    return states


def read_all(
    operation: str, requests: Sequence[dict[str, Any]], receive: Callable[[dict[str, Any]], object]
) -> Program[None]:
    """Hand over every page of some requests, all requests under way at once."""
    left = list(requests)
    while left:
        answers = yield from _answers([Call(operation, request) for request in left])
        following = []
        for request, answer in zip(left, answers, strict=True):
            receive(answer)
            if "LastEvaluatedKey" in answer:
                following.append({**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]})
        left = following


def _answers(calls: Sequence[Call]) -> Program[list[dict[str, Any]]]:
    if len(calls) == 1:
        return [(yield calls[0])]
    answers = yield CallGroup(tuple(calls))
    for answer in answers:
        if isinstance(answer, TavolaError):
            raise answer
    return list(answers)


class Walk:
    """The items of an answer in order, fetched as they are needed."""

    def __init__(self, asked: PreparedQuery, limit: int | None, page_size: int | None) -> None:
        self._asked = asked
        self._lanes = [_Lane(number, request) for number, request in enumerate(asked.requests)]
        self._limit = limit
        self._page_size = page_size
        self._merged = asked.order == "merged" and len(self._lanes) > 1
        self._heap: list[tuple[Any, int]] | None = None
        self._last: _Lane | None = None  # whose next item has no place in the heap
        self._waiting = 0
        self.judged = 0  # of the items that were taken, as the taker says, and how many of them were kept
        self.kept = 0
        self.scanned = 0
        self.requests = 0

    def go_on(self, states: Sequence[Any]) -> None:
        """Begin where a cursor says, instead of at the beginning."""
        for lane, state in zip(self._lanes, states, strict=True):
            if state == _DONE:
                lane.exhausted = True
            else:
                lane.start = state

    @property
    def states(self) -> list[Any]:
        """Where to go on in each lane."""
        return [self._state(lane) for lane in self._lanes]

    def _state(self, lane: _Lane) -> Any:
        if lane.empty:
            # What was read after the last item that counted need not be read again.
            return _DONE if lane.exhausted else lane.start
        return start_key(self._asked, lane.waiting[lane.at - 1]) if lane.at else lane.since

    @property
    def over(self) -> bool:
        """Whether everything is taken, and that was all."""
        return self._waiting == 0 and all(lane.exhausted for lane in self._lanes)

    def more(self) -> Program[bool]:
        """Return whether another item follows."""
        return (yield from self._next()) is not None

    def take(self, count: int | None) -> Program[list[tuple[_Lane, Item]]]:
        """Return the next items, with their lanes; without a count, those that come without asking again."""
        taken: list[tuple[_Lane, Item]] = []
        while count is None or len(taken) < count:
            lane = yield from self._next()
            if lane is None:
                break
            most = len(lane.waiting) if count is None else lane.at + count - len(taken)
            found = lane.waiting[lane.at : lane.at + 1 if self._merged else most]
            lane.at += len(found)
            self._waiting -= len(found)
            taken += [(lane, item) for item in found]
            if count is None and (lane.short if self._merged else self._waiting == 0):
                break
        return taken

    def _next(self) -> Program[_Lane | None]:
        """Return the lane of the next item in order, None at the end."""
        if self._merged:
            return (yield from self._first())
        while True:
            if self._waiting:
                return next(lane for lane in self._lanes if not lane.empty)
            short = self._short()
            if not short:
                return None
            yield from self._fetch(short[: 1 if self._asked.order == "in turn" else FLIGHT_MAX])

    def _first(self) -> Program[_Lane | None]:
        """Return the lane whose next item is before those of all others."""
        if self._heap is None:
            while short := self._short():
                yield from self._fetch(short)
            self._heap = []
            for lane in self._lanes:
                self._push(lane)
        elif self._last is not None:
            while self._last.short:
                yield from self._fetch([self._last])
            self._push(self._last)
        self._last = None
        if not self._heap:
            return None
        self._last = self._lanes[heappop(self._heap)[1]]
        return self._last

    def _short(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.short]

    def _push(self, lane: _Lane) -> None:
        if not lane.empty:
            assert self._heap is not None
            place = sort_place(self._asked.places, lane.waiting[lane.at])
            heappush(self._heap, (_Falling(place) if self._asked.newest_first else place, lane.number))

    def _fetch(self, lanes: Sequence[_Lane]) -> Program[None]:
        calls = [Call(self._asked.operation, self._request(lane, len(lanes))) for lane in lanes]
        self.requests += len(calls)
        for lane, answer in zip(lanes, (yield from _answers(calls)), strict=True):
            found: list[Item] = answer["Items"]
            self.scanned += answer.get("ScannedCount", len(found))
            self._waiting += len(found)
            lane.waiting, lane.at, lane.since = found, 0, lane.start
            lane.start = answer.get("LastEvaluatedKey")
            lane.exhausted = lane.start is None

    def _request(self, lane: _Lane, together: int) -> dict[str, Any]:
        request = dict(lane.request)
        if lane.start is not None:
            request["ExclusiveStartKey"] = lane.start
        size = self._page_size
        if size is None and self._limit is not None:
            size = lane.size = self._size(lane, together)
            lane.judged, lane.kept = self.judged, self.kept
        if size is not None:
            request["Limit"] = size
        return request

    def _size(self, lane: _Lane, together: int) -> int:
        """Return how many items a request looks at: one more than is wanted tells whether there is more."""
        assert self._limit is not None
        barren = self.judged > lane.judged and self.kept == lane.kept
        if lane.size and (barren or not lane.waiting):
            return min(lane.size * GROWTH, max(SIZE_MAX, lane.size))
        size = self._limit + 1
        if self._asked.order == "any":
            size = -(-size // together)  # whatever comes from any of them will do
        return size if "FilterExpression" not in lane.request else max(size, FILTERED_LIMIT_MIN)


class _Falling:
    """A place in an order, turned round."""

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Falling) and bool(self.place == other.place)

    __hash__ = None  # type: ignore[assignment]  # it is compared, and kept nowhere
