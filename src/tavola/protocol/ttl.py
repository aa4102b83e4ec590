"""Requests of the time-to-live operations."""

from __future__ import annotations

from tavola.protocol.fields import ControlTableName, KeyAttributeName, NameInvalid, Shape, is_control_table
from tavola.protocol.message_style import MessageStyle


class TimeToLiveSpecification(Shape, frozen=True, kw_only=True):
    """The attribute with an item's expiry time, and whether expiry is enabled."""

    enabled: bool
    attribute_name: KeyAttributeName


class UpdateTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateTimeToLive."""

    table_name: ControlTableName
    time_to_live_specification: TimeToLiveSpecification


class DescribeTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeTimeToLive."""

    table_name: ControlTableName


def check_ttl(request: UpdateTimeToLiveRequest | DescribeTimeToLiveRequest, wording: MessageStyle) -> None:
    """Refuse an invalid table name."""
    if not is_control_table(request.table_name):
        raise NameInvalid
