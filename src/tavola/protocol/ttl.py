"""TTL: the shapes of the time-to-live operations."""

from __future__ import annotations

from tavola.protocol.fields import ControlTableName, KeyAttributeName, NameInvalid, Shape, is_control_table
from tavola.protocol.message_style import MessageStyle


class TimeToLiveSpecification(Shape, frozen=True, kw_only=True):
    """Which attribute holds the time at which an item expires, and whether it is looked at."""

    enabled: bool
    attribute_name: KeyAttributeName


class UpdateTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """What UpdateTimeToLive is asked."""

    table_name: ControlTableName
    time_to_live_specification: TimeToLiveSpecification


class DescribeTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """What DescribeTimeToLive is asked."""

    table_name: ControlTableName


def check_ttl(request: UpdateTimeToLiveRequest | DescribeTimeToLiveRequest, wording: MessageStyle) -> None:
    """Refuse a name that no table can have."""
    if not is_control_table(request.table_name):
        raise NameInvalid
