"""Versions: the shape of ListItemVersions, an operation of Tavola's own that AWS does not have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from tavola.limits import ITEM_VERSIONS_MAX
from tavola.protocol.items import GetItemRequest, check_get
from tavola.protocol.message_style import MessageStyle

VersionsLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=ITEM_VERSIONS_MAX, extra={"java": "Integer"})]


class ListItemVersionsRequest(GetItemRequest, frozen=True, kw_only=True):
    """What ListItemVersions is asked: what GetItem is, and how many versions at once."""

    limit: VersionsLimit | None = None
    next_token: str | None = None


def check_versions(request: ListItemVersionsRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table."""
    check_get(request, wording)
