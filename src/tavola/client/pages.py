"""Scatter-gather paging: one ordered page from the partitions of a sharded key.

A sharded key spreads one logical partition over N physical ones, so a query of it is N DynamoDB queries. Their results are
merged by sort key, lazily, so that the caller sees the order a single partition would have:

    shard 0   a  d  g ─┐
    shard 1   b  c  h ─┼─► heap of the next item of each shard ──► a b c d …  ──► page of `limit` items
    shard 2   e  f    ─┘        (refilled when a shard runs out)

Invariant: an item may be taken only while every shard that is not exhausted has its next item in the heap; otherwise a
shard not yet read could hold a smaller one. Shards that ran dry are therefore refilled together, in one `CallGroup`. A scan
with segments uses the same code without an order.

The cursor of a page holds the position in each shard, as text that clients may hold. It is signed together with its query, so
a forged cursor, or one of another query (index, filter, tenant, direction), is refused and never returns items of another
caller. Consistency and page size may change from page to page. Cursors are not encrypted: the keys in them can be read.

Items that expired or belong to another entity are dropped and do not count towards the limit; when many are dropped, the reader
fetches ahead in growing steps and cuts back to the limit afterwards (`_positions_after`).

Cost: the first page reads every shard, N requests in one round trip; up to a page of each shard is fetched and paid for
although the caller takes only `limit` items in all. Not offered: a consistent snapshot across shards.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

import msgspec

from tavola.client.context import Context
from tavola.client.effects import Call, Program, responses_to
from tavola.client.errors import CursorRefused
from tavola.client.queries import PreparedQuery, sort_value, start_key
from tavola.values import Item

R = TypeVar("R")

FILTERED_LIMIT_MIN = 100  # the smallest Limit of a request with a filter
GROWTH = 4  # factor by which Limit grows after a request whose items were all dropped
LIMIT_MAX = 10_000  # the largest Limit; a page of DynamoDB seldom holds more
CONCURRENT_SEGMENTS_MAX = 100  # segments of a scan that are read in one round

NO_TRUTH_VALUE = "a page has no truth value, because more pages may follow; call db.count(…), or check whether page.items is empty"

_DONE = 0  # the position of an exhausted shard

_SIGNATURE_BYTES = 16  # of a cursor
_CURSOR_FORMAT = 2

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode

Convert = Callable[[Sequence[Item]], Program[list[R | None]]]


@dataclass(frozen=True, slots=True)
class FetchedPage(Generic[R]):
    """The results of one page."""

    items: list[R]
    cursor: str | None
    scanned: int  # items that were read and paid for
    requests: int


@dataclass(slots=True)
class _QueryShard:
    """The state of one shard: its position, and the items that were fetched and not taken yet."""

    number: int
    request: dict[str, Any]
    start: Item | None = None  # ExclusiveStartKey of the next request
    last_start: Item | None = None  # ExclusiveStartKey of the last request
    fetched: list[Item] = field(default_factory=list)
    taken: int = 0  # how many of `fetched`
    exhausted: bool = False
    limit: int = 0  # Limit of the last request
    converted: int = 0  # the reader's counters at the time of the last request
    kept: int = 0

    @property
    def is_empty(self) -> bool:
        return self.taken >= len(self.fetched)

    @property
    def needs_fetch(self) -> bool:
        """Whether its next item must be fetched."""
        return not self.exhausted and self.taken >= len(self.fetched)


def read_page(
    context: Context,
    query: PreparedQuery,
    convert: Convert[R],
    *,
    limit: int | None,
    page_size: int | None,
    cursor: str | None,
) -> Program[FetchedPage[R]]:
    """Return the next results; without a limit, those of one round of requests, or of the first round that has any.

    `convert` turns items into results, in their order, and into None for those that are dropped.
    """
    reader = _PageReader(query, limit, page_size)
    if cursor is not None:
        secret, count = context.secret, len(query.requests)
        reader.resume(decode_cursor(secret, digest(query.identity()), cursor, count))
    results: list[R] = []
    positions: list[Any] | None = None
    ahead = 1
    while limit is None or len(results) < limit:
        remaining = None if limit is None else limit - len(results)
        before = reader.positions if ahead > 1 else []
        taken = yield from reader.take(None if remaining is None else min(remaining * ahead, LIMIT_MAX))
        if not taken:
            break
        converted = yield from convert([item for _, item in taken])
        present = [position for position, entity in enumerate(converted) if entity is not None]
        if remaining is not None and len(present) > remaining:
            del present[remaining:]
            positions = _positions_after(query, before, taken[: present[-1] + 1])
        results += [result for position in present if (result := converted[position]) is not None]
        reader.converted, reader.kept = reader.converted + len(taken), reader.kept + len(present)
        ahead = 1 if present else ahead * GROWTH
        if positions is not None or (limit is None and results):
            break
    if positions is None:
        has_more = (yield from reader.has_more()) if limit is not None else not reader.at_end
        positions = reader.positions if has_more else None
    next_cursor = None
    if positions is not None:
        next_cursor = encode_cursor(context.secret, digest(query.identity()), positions)
    return FetchedPage(results, next_cursor, reader.scanned, reader.requests)


def _positions_after(
    query: PreparedQuery, before: list[Any], taken: Sequence[tuple[_QueryShard, Item]]
) -> list[Any]:
    """Return the position of each shard after these items were taken."""
    positions = list(before)
    for shard, item in taken:
        positions[shard.number] = start_key(query, item)
    return positions


def read_all(
    operation: str, requests: Sequence[dict[str, Any]], receive: Callable[[dict[str, Any]], object]
) -> Program[None]:
    """Call `receive` with every page of several requests, which are made concurrently."""
    pending = list(requests)
    while pending:
        responses = yield from responses_to([Call(operation, request) for request in pending])
        following = []
        for request, response in zip(pending, responses, strict=True):
            receive(response)
            if "LastEvaluatedKey" in response:
                following.append({**request, "ExclusiveStartKey": response["LastEvaluatedKey"]})
        pending = following


class _PageReader:
    """The items of a query in order, fetched as they are needed."""

    def __init__(self, query: PreparedQuery, limit: int | None, page_size: int | None) -> None:
        self._query = query
        self._shards = [_QueryShard(number, request) for number, request in enumerate(query.requests)]
        self._limit = limit
        self._page_size = page_size
        self._is_merged = query.order == "merged" and len(self._shards) > 1
        self._heap: list[tuple[Any, int]] | None = None
        self._last: _QueryShard | None = None  # taken from the heap; its next item is not in it yet
        self._fetched = 0  # items fetched and not taken, of all shards
        self.converted = 0  # items taken, and how many of them the caller kept
        self.kept = 0
        self.scanned = 0
        self.requests = 0

    def resume(self, positions: Sequence[Any]) -> None:
        """Start at the positions of a cursor."""
        for shard, position in zip(self._shards, positions, strict=True):
            if position == _DONE:
                shard.exhausted = True
            else:
                shard.start = position

    @property
    def positions(self) -> list[Any]:
        """The position of each shard after the items taken."""
        return [self._position(shard) for shard in self._shards]

    def _position(self, shard: _QueryShard) -> Any:
        if shard.is_empty:
            # Items that were read after the last result and dropped need not be read again.
            return _DONE if shard.exhausted else shard.start
        return start_key(self._query, shard.fetched[shard.taken - 1]) if shard.taken else shard.last_start

    @property
    def at_end(self) -> bool:
        """Whether all items are taken."""
        return self._fetched == 0 and all(shard.exhausted for shard in self._shards)

    def has_more(self) -> Program[bool]:
        """Return whether another item follows."""
        return (yield from self._next_shard()) is not None

    def take(self, count: int | None) -> Program[list[tuple[_QueryShard, Item]]]:
        """Return the next items with their shards; without a count, as many as one round of requests brings."""
        taken: list[tuple[_QueryShard, Item]] = []
        while count is None or len(taken) < count:
            shard = yield from self._next_shard()
            if shard is None:
                break
            end = len(shard.fetched) if count is None else shard.taken + count - len(taken)
            items = shard.fetched[shard.taken : shard.taken + 1 if self._is_merged else end]
            shard.taken += len(items)
            self._fetched -= len(items)
            taken += [(shard, item) for item in items]
            if count is None and (shard.needs_fetch if self._is_merged else self._fetched == 0):
                break
        return taken

    def _next_shard(self) -> Program[_QueryShard | None]:
        """Return the shard of the next item in order, None at the end."""
        if self._is_merged:
            return (yield from self._smallest_shard())
        while True:
            if self._fetched:
                return next(shard for shard in self._shards if not shard.is_empty)
            pending = [shard for shard in self._shards if shard.needs_fetch]
            if not pending:
                return None
            yield from self._fetch(
                pending[: 1 if self._query.order == "in turn" else CONCURRENT_SEGMENTS_MAX]
            )

    def _smallest_shard(self) -> Program[_QueryShard | None]:
        """Return the shard whose next item sorts before those of all others."""
        if self._heap is None:
            while pending := [shard for shard in self._shards if shard.needs_fetch]:
                yield from self._fetch(pending)
            self._heap = []
            for shard in self._shards:
                self._push(shard)
        elif self._last is not None:
            while self._last.needs_fetch:
                yield from self._fetch([self._last])
            self._push(self._last)
        self._last = None
        if not self._heap:
            return None
        self._last = self._shards[heappop(self._heap)[1]]
        return self._last

    def _push(self, shard: _QueryShard) -> None:
        if not shard.is_empty:
            assert self._heap is not None
            value = sort_value(self._query.sort_attributes, shard.fetched[shard.taken])
            heappush(self._heap, (_Descending(value) if self._query.newest_first else value, shard.number))

    def _fetch(self, shards: Sequence[_QueryShard]) -> Program[None]:
        calls = [Call(self._query.operation, self._request(shard, len(shards))) for shard in shards]
        self.requests += len(calls)
        for shard, response in zip(shards, (yield from responses_to(calls)), strict=True):
            items: list[Item] = response["Items"]
            self.scanned += response.get("ScannedCount", len(items))
            self._fetched += len(items)
            shard.fetched, shard.taken, shard.last_start = items, 0, shard.start
            shard.start = response.get("LastEvaluatedKey")
            shard.exhausted = shard.start is None

    def _request(self, shard: _QueryShard, concurrent: int) -> dict[str, Any]:
        request = dict(shard.request)
        if shard.start is not None:
            request["ExclusiveStartKey"] = shard.start
        limit = self._page_size
        if limit is None and self._limit is not None:
            limit = shard.limit = self._next_limit(shard, concurrent)
            shard.converted, shard.kept = self.converted, self.kept
        if limit is not None:
            request["Limit"] = limit
        return request

    def _next_limit(self, shard: _QueryShard, concurrent: int) -> int:
        """Return the Limit of a request: one more than is wanted, to find out whether more follow."""
        assert self._limit is not None
        all_dropped = self.converted > shard.converted and self.kept == shard.kept
        if shard.limit and (all_dropped or not shard.fetched):
            return min(shard.limit * GROWTH, max(LIMIT_MAX, shard.limit))
        limit = self._limit + 1
        if self._query.order == "any":
            limit = -(-limit // concurrent)  # items of any segment will do
        return limit if "FilterExpression" not in shard.request else max(limit, FILTERED_LIMIT_MIN)


class _Descending:
    """A sort value with its order reversed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]  # compared only


def digest(*data: Any) -> str:
    """Return a digest that is equal for equal data, in every process."""
    return sha256(_encode(data)).hexdigest()[:32]


def encode_cursor(secret: bytes, query: str, positions: list[Any]) -> str:
    """Return a cursor with the position of a query in each shard; `query` is the query's digest."""
    body = _encode([_CURSOR_FORMAT, query, positions])
    return urlsafe_b64encode(_sign(secret, body) + body).rstrip(b"=").decode()


def decode_cursor(secret: bytes, query: str, cursor: str, shards: int) -> list[Any]:
    """Return the position in each shard; raise `CursorRefused` unless the cursor belongs to this query."""
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except ValueError as error:
        raise CursorRefused("it is malformed or truncated") from error
    signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _sign(secret, body)):
        raise CursorRefused(
            "its signature is wrong; it was modified, or issued by a program with another secret "
            "(connect(…, cursor_secret=…) shares one between processes)"
        )
    format_, cursor_query, positions = _decode(body)
    if format_ != _CURSOR_FORMAT:
        raise CursorRefused("it was issued by another version; start from the first page")
    if cursor_query != query:
        raise CursorRefused("it belongs to another query; use it with the query that returned it")
    if not isinstance(positions, list) or len(positions) != shards:
        before = len(positions) if isinstance(positions, list) else 0
        raise CursorRefused(
            f"it was issued for {before} shards or segments, and there are {shards} now; start from the first page"
        )
    return positions


def _sign(secret: bytes, body: bytes) -> bytes:
    assert secret, "anyone could sign with an empty secret"
    return hmac.new(secret, body, sha256).digest()[:_SIGNATURE_BYTES]
