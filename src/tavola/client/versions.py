"""Versions: what an item was and when, read from a backend that keeps the past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tavola.client.backend import AsyncBackend, Backend

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """What stood under a key from one moment to the next version's."""

    since: datetime | None  # None: since before the past is kept
    item: dict[str, Any] | None  # None: there was no item
    expired: bool = False  # it was deleted because its time to live was over


def item_versions(backend: Backend, table: str, key: Mapping[str, Any]) -> Iterator[ItemVersion]:
    """Yield every version of an item that is kept, the earliest first; the last is what stands now."""
    request: dict[str, Any] = {"TableName": table, "Key": key}
    while True:
        answer = backend.call("ListItemVersions", request)
        yield from _told(answer)
        if "NextToken" not in answer:
            return
        request["NextToken"] = answer["NextToken"]


async def async_item_versions(
    backend: AsyncBackend, table: str, key: Mapping[str, Any]
) -> AsyncIterator[ItemVersion]:
    """Yield every version of an item that is kept, as `item_versions` does."""
    request: dict[str, Any] = {"TableName": table, "Key": key}
    while True:
        answer = await backend.call("ListItemVersions", request)
        for version in _told(answer):
            yield version
        if "NextToken" not in answer:
            return
        request["NextToken"] = answer["NextToken"]


def _told(answer: Mapping[str, Any]) -> Iterator[ItemVersion]:
    """Give the versions in one answer."""
    for told in answer["Versions"]:
        since = told.get("Since")
        yield ItemVersion(
            None if since is None else _EPOCH + timedelta(microseconds=round(since * 1_000_000)),
            told.get("Item"),
            told.get("Expired", False),
        )
