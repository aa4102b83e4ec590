"""Cache: values that are expensive to compute, stored for a while, and computed by one caller at a time.

When a popular value expires, all callers would compute it at once: a stampede. Here the first caller takes a lease on the
entry; the others get the previous value while it is not too old, or wait for the new one. Leases expire, so no caller waits
for a process that has died.

    class Answers(CacheEntry, table=Desk):
        class Key(PrimaryKey["Answers"], pk="CACHE#{cache_key}", sk="CACHE"):
            cache_key: str

    profiles = Cache(db, Answers, of=Profile, life=timedelta(minutes=10))
    profiles.get_or_compute("profile/ann", lambda: fetch_profile("ann"))

`of` is any type that pydantic can serialize to JSON. None is a value too ("no such thing") and has a lifetime of its own.

Cost: a hit is one read; a miss adds two writes, one for the lease and one for the value.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar, overload

from pydantic import TypeAdapter

from tavola.client.connection import AsyncConnection, Connection
from tavola.client.errors import ConditionFailed
from tavola.errors import ErrorKind
from tavola.limits import ITEM_BYTES_MAX
from tavola.model import Attr, Entity, attr
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    recipe_method,
    sleep,
)

BODY_BYTES_MAX = ITEM_BYTES_MAX - 10 * 1024  # the rest is for its key and the other fields
POLLS = 20  # how often a lease is checked while it lasts


class CacheEntry(Entity):
    """A cached value, or the lease of the caller that computes it; subclass it with a table and a key of cache_key."""

    cache_key: Attr[str]
    body: Attr[bytes | None] = attr(default=None)
    fresh_until: Attr[datetime | None] = attr(default=None)
    leased_until: Attr[datetime | None] = attr(default=None)
    holder: Attr[str | None] = attr(default=None)
    expires_at: Attr[datetime]  # the table's time to live


class CacheValueTooLarge(PatternError):
    """A value too large for an item; `get_or_compute` returns it without storing it and logs this as a warning."""

    kind = ErrorKind.TOO_LARGE

    def __init__(self, cache_key: str, size: int, value: Any) -> None:
        self.cache_key = cache_key
        self.size = size
        self.value = value
        super().__init__(
            f"The answer for {cache_key!r} is {size:,} bytes, and an entry holds {BODY_BYTES_MAX:,}; cache less of it, or "
            "keep it in a blob store (tavola.patterns.Blobs) and cache where it is"
        )


T = TypeVar("T")

_log = logging.getLogger("tavola.patterns")


class Cache(Recipe[D_co], Generic[D_co, T]):
    """Computed values of one type by key.

    A value is fresh for `life`, and for `stale` longer it is returned to other callers while one computes it again; None is
    fresh for `missing`. A `lease` should last longer than the computation: when it expires, another caller may begin.
    """

    def __init__(
        self,
        db: D_co,
        entity: type[CacheEntry],
        of: type[T],
        *,
        life: timedelta = timedelta(minutes=5),
        missing: timedelta = timedelta(seconds=30),
        stale: timedelta = timedelta(minutes=1),
        lease: timedelta = timedelta(seconds=10),
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "cache_key")
        check_expires_with(entity, "expires_at")
        for name, duration in (("life", life), ("missing", missing), ("lease", lease)):
            if duration < timedelta(seconds=1):
                raise RecipeRefused(
                    entity.__name__, f"{name}={duration} is too short; use at least one second"
                )
        self.life = life
        self.missing = missing
        self.stale = stale
        self.lease = lease
        self._adapter: TypeAdapter[T | None] = TypeAdapter(of | None)  # type: ignore[arg-type]  # T is unknown at runtime

    @overload
    def get_or_compute(
        self: Cache[Connection, T],
        cache_key: str,
        compute: Callable[[], T | None],
        *,
        life: timedelta | None = ...,
    ) -> T | None: ...
    @overload
    def get_or_compute(
        self: Cache[AsyncConnection, T],
        cache_key: str,
        compute: Callable[[], Awaitable[T | None]],
        *,
        life: timedelta | None = ...,
    ) -> Coroutine[Any, Any, T | None]: ...
    def get_or_compute(
        self, cache_key: str, compute: Callable[[], Any], *, life: timedelta | None = None
    ) -> Any:
        """Return the value of a key, from the cache or by computing it; `compute` returns None for "no such thing".

        An error of `compute` is raised to the caller, and nothing is stored. With an asynchronous client, `compute` is awaited.
        """
        return self.run_program(self._get_or_compute(cache_key, compute, self.life if life is None else life))

    @recipe_method
    def peek(self, cache_key: str) -> PatternProgram[T | None]:
        """Return the value of a key if it is fresh, without computing it."""
        entry = yield from self._entry(cache_key)
        return self._load(entry) if self._fresh(entry) else None

    @recipe_method
    def store(
        self, cache_key: str, value: T | None, *, life: timedelta | None = None
    ) -> PatternProgram[None]:
        """Store a value that is known already, replacing any entry."""
        entry = self._new_entry(cache_key, value, self.life if life is None else life)
        yield from call_client(lambda db: db.put(entry))

    @recipe_method
    def forget(self, cache_key: str) -> PatternProgram[None]:
        """Delete the entry of a key; a computation in progress will not be stored."""
        yield from call_client(lambda db: db.delete(self.key(cache_key=cache_key)))

    def _get_or_compute(
        self, cache_key: str, compute: Callable[[], Any], life: timedelta
    ) -> PatternProgram[T | None]:
        entry = yield from self._entry(cache_key)
        holder = self.entropy.uuid()
        for _ in range(2 * POLLS):
            if self._fresh(entry):
                return self._load(entry)
            if not self._is_leased(entry):
                entry = yield from self._acquire_lease(cache_key, holder, entry)
                if entry is None:
                    return (yield from self._compute_and_store(cache_key, compute, life, holder))
            if self._usable(entry):
                return self._load(entry)
            # Wait for another caller's lease by reading: a refused write costs as much as the entry is large.
            yield from sleep(self.lease.total_seconds() / POLLS)
            entry = yield from self._entry(cache_key)
        return (yield from call_client(lambda db: compute()))  # type: ignore[no-any-return]  # other callers failed

    def _acquire_lease(
        self, cache_key: str, holder: str, entry: CacheEntry | None
    ) -> PatternProgram[CacheEntry | None]:
        """Acquire the lease of an entry; return None on success, else the current entry."""
        now = self._now()
        until = now + self.lease
        kind = self.entity
        expires_at = until if entry is None else max(until, entry.expires_at)
        free = kind.leased_until.not_exists() | (kind.leased_until <= now)
        not_fresh = kind.fresh_until.not_exists() | (kind.fresh_until <= now)
        changes = [kind.leased_until.set(until), kind.holder.set(holder), kind.expires_at.set(expires_at)]
        if entry is not None and not self._usable(entry):
            # The value is too old to be used, and every waiting caller would pay to read it.
            changes += [kind.body.remove(), kind.fresh_until.remove()]
        key = self.key(cache_key=cache_key)
        try:
            yield from call_client(lambda db: db.update(key, *changes, when=free & not_fresh, create=True))
        except ConditionFailed as refused:
            current = refused.found
            if isinstance(current, CacheEntry):
                return current
            return CacheEntry(cache_key=cache_key, expires_at=now)  # it was deleted meanwhile: try again
        return None

    def _compute_and_store(
        self, cache_key: str, compute: Callable[[], Any], life: timedelta, holder: str
    ) -> PatternProgram[T | None]:
        key, mine = self.key(cache_key=cache_key), self.entity.holder == holder
        try:
            value = yield from call_client(lambda db: compute())
            entry = self._new_entry(cache_key, value, life)
        except CacheValueTooLarge as large:
            _log.warning("%s", large)
            yield from self._release_lease(key, mine)
            return value  # type: ignore[no-any-return]  # computed, but not stored
        except (Exception, CancelledError):
            yield from self._release_lease(key, mine)
            raise
        try:
            yield from call_client(lambda db: db.put(entry, when=mine))
        except ConditionFailed:
            pass  # the lease expired or the entry was deleted meanwhile: the value is still right for this caller
        return value  # type: ignore[no-any-return]  # as `compute` returned it

    def _release_lease(self, key: Any, mine: Any) -> PatternProgram[None]:
        try:
            yield from call_client(
                lambda db: db.update(
                    key, self.entity.leased_until.remove(), self.entity.holder.remove(), when=mine
                )
            )
        except ConditionFailed:
            pass

    def _new_entry(self, cache_key: str, value: T | None, life: timedelta) -> CacheEntry:
        body = self._adapter.dump_json(value)
        if len(body) > BODY_BYTES_MAX:
            raise CacheValueTooLarge(cache_key, len(body), value)
        fresh_until = self._now() + (min(self.missing, life) if value is None else life)
        return self.entity(
            cache_key=cache_key,
            body=body,
            fresh_until=fresh_until,
            expires_at=fresh_until + self.stale + timedelta(seconds=1),
        )

    def _entry(self, cache_key: str) -> PatternProgram[CacheEntry | None]:
        return (yield from call_client(lambda db: db.get(self.key(cache_key=cache_key))))

    def _fresh(self, entry: CacheEntry | None) -> bool:
        return entry is not None and entry.fresh_until is not None and self._now() < entry.fresh_until

    def _usable(self, entry: CacheEntry | None) -> bool:
        return (
            entry is not None
            and entry.body is not None
            and entry.fresh_until is not None
            and self._now() < entry.fresh_until + self.stale
        )

    def _is_leased(self, entry: CacheEntry | None) -> bool:
        return entry is not None and entry.leased_until is not None and self._now() < entry.leased_until

    def _load(self, entry: CacheEntry | None) -> T | None:
        assert entry is not None
        assert entry.body is not None, "a fresh entry has a value"
        return self._adapter.validate_json(entry.body)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)
