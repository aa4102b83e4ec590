"""Queries that the applications share: one page of a selection, and a selection limited to a time range."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from tavola import AsyncConnection, Entity, Selection
from tavola.patterns import Slice

E = TypeVar("E", bound=Entity)
E_co = TypeVar("E_co", bound=Entity, covariant=True)


class TimeSortKey(Protocol[E_co]):
    """The part of a sort key that holds a time."""

    def between(self, lower: datetime, upper: datetime, /) -> Selection[E_co]: ...
    def gte(self, value: datetime, /) -> Selection[E_co]: ...
    def lte(self, value: datetime, /) -> Selection[E_co]: ...


async def query_slice(
    db: AsyncConnection,
    selection: Selection[E],
    limit: int,
    cursor: str | None,
    *,
    newest_first: bool = False,
) -> Slice[E]:
    """Return up to `limit` items of a selection, and the cursor of the next page."""
    page = await db.query(selection, limit=limit, cursor=cursor, newest_first=newest_first)
    return Slice(tuple(page.items), page.cursor)


def select_between(
    selection: Selection[E], key: TimeSortKey[E], start: datetime | None, end: datetime | None
) -> Selection[E]:
    """Return `selection` limited to a time range by its sort key; both ends are included, None leaves an end open."""
    if start is not None and end is not None:
        return key.between(start, end)
    if start is not None:
        return key.gte(start)
    return selection if end is None else key.lte(end)
