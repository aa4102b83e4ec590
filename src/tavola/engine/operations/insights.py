"""DescribeContributorInsights, ListContributorInsights, UpdateContributorInsights.

AWS returns the names of CloudWatch rules and shows the keys in CloudWatch, which does not exist here. Instead the most
accessed keys are part of the description, in an extra member that SDKs ignore; in process, `Engine.hottest` returns them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import InsightsSettings, StoredIndex, StoredTable
from tavola.engine.emulation import HotItem
from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.descriptions import is_index_active
from tavola.engine.operations.tables import find_table
from tavola.limits import INSIGHTS_LISTED_MAX
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault
from tavola.protocol.insights import (
    DescribeContributorInsightsRequest,
    ListContributorInsightsRequest,
    UpdateContributorInsightsRequest,
)

_ALL_KEYS = "ACCESSED_AND_THROTTLED_KEYS"
_RULE_CHARACTERS_MAX = 128
_TOKEN = "insights-list"
_HOTTEST = 10


def describe_contributor_insights(call: OperationCall, request: DescribeContributorInsightsRequest) -> bytes:
    """Return whether Contributor Insights is on for a table or index, and its rules."""
    table = find_table(call, request.table_name)
    index = _index(table, request.index_name)
    return encode(_describe(call, table, index))


def update_contributor_insights(call: OperationCall, request: UpdateContributorInsightsRequest) -> bytes:
    """Enable or disable Contributor Insights on a table or index; enabling it again changes nothing."""
    table = find_table(call, request.table_name)
    index = _index(table, request.index_name)
    if not call.services.catalog.is_active(table):
        raise ValidationFault("TableStatus must be ACTIVE")
    if index is not None and not is_index_active(index.definition, call.services.time):
        raise ValidationFault("IndexStatus must be ACTIVE")
    enable = request.contributor_insights_action == "ENABLE"
    current = _setting(table, index)
    mode = request.contributor_insights_mode or _ALL_KEYS
    if not enable:
        mode = _ALL_KEYS if current is None else current.mode
    if current is None and not enable:
        return encode(_summary(table, index, "DISABLED", None))
    if current is not None and (current.enabled, current.mode) == (enable, mode):
        return encode(_summary(table, index, _status(current), mode))
    now_s = call.services.clock.now()
    since_ms = int(now_s * 1000)
    if current is not None and current.enabled:
        since_ms = current.rules_since_ms  # another mode adds or removes rules but keeps the others
    setting = InsightsSettings(mode, enable, now_s, since_ms)
    call.services.begin()
    insights = table.definition.insights | {_slot(index): setting}
    changed = msgspec.structs.replace(table.definition, insights=insights)
    services = call.services
    services.catalog.change(table, changed)
    services.emulation.update_active(services.catalog)
    if current is None or not current.enabled:
        services.emulation.forget(table, index)
    return encode(_summary(table, index, "ENABLING" if enable else "DISABLING", mode))


def list_contributor_insights(call: OperationCall, request: ListContributorInsightsRequest) -> bytes:
    """Return the tables and indexes with Contributor Insights: by table, the table before its indexes."""
    catalog = call.services.catalog
    if request.table_name is None:
        tables = [catalog.find(call.scope, name) for name in catalog.names(call.scope)]
    else:
        tables = [find_table(call, request.table_name)]
    entries: list[tuple[tuple[str, str], dict[str, Any]]] = []
    for table in tables:
        for index in () if table is None else (None, *table.indexes):
            assert table is not None, "only an existing table has indexes"
            setting = _setting(table, index)
            if setting is not None and setting.enabled:
                names = (table.name, "" if index is None else index.name)
                entries.append((names, _summary(table, index, _status(setting), setting.mode)))
    entries.sort(key=lambda entry: entry[0])
    if request.next_token is not None:
        position = call.services.token_signer.open(_TOKEN, call.scope, request.next_token)
        if position is None:
            raise ValidationFault("Invalid NextToken")
        entries = [entry for entry in entries if entry[0] > tuple(position["after"])]
    limit = request.max_results or INSIGHTS_LISTED_MAX
    if limit < 1:  # AWS states no minimum
        limit = INSIGHTS_LISTED_MAX
    answer: dict[str, Any] = {"ContributorInsightsSummaries": [summary for _, summary in entries[:limit]]}
    if len(entries) > limit:
        answer["NextToken"] = call.services.token_signer.sign(
            _TOKEN, call.scope, {"after": entries[limit - 1][0]}
        )
    return encode(answer)


def _index(table: StoredTable, name: str | None) -> StoredIndex | None:
    if name is None:
        return None
    index = table.by_name.get(name)
    if index is None or not index.is_global:
        raise ResourceNotFoundFault(
            f"Requested resource not found: Index: {name} not found for table: {table.name}"
        )
    return index


def _setting(table: StoredTable, index: StoredIndex | None) -> InsightsSettings | None:
    return table.definition.insights.get(_slot(index))


def _slot(index: StoredIndex | None) -> int:
    return 0 if index is None else index.definition.slot


def _status(setting: InsightsSettings) -> str:
    return "ENABLED" if setting.enabled else "DISABLED"


def _summary(table: StoredTable, index: StoredIndex | None, status: str, mode: str | None) -> dict[str, Any]:
    members: dict[str, Any] = {"TableName": table.name}
    if index is not None:
        members["IndexName"] = index.name
    members["ContributorInsightsStatus"] = status
    if mode is not None:
        members["ContributorInsightsMode"] = mode
    return members


def _describe(call: OperationCall, table: StoredTable, index: StoredIndex | None) -> dict[str, Any]:
    setting = _setting(table, index)
    if setting is None:
        return _summary(table, index, "DISABLED", None)
    members = _summary(table, index, _status(setting), setting.mode)
    if setting.enabled:
        members["ContributorInsightsRuleList"] = _rules(table, index, setting)
        members["TavolaHottestKeys"] = _describe_hottest(call, table, index)
    members["LastUpdateDateTime"] = setting.changed_at_s
    return members


def _describe_hottest(call: OperationCall, table: StoredTable, index: StoredIndex | None) -> dict[str, Any]:
    hottest = call.services.emulation.hottest(table, index, _HOTTEST)

    def render(items: tuple[HotItem, ...], unit: str) -> list[dict[str, Any]]:
        return [{"Key": hot.key, unit: hot.count, "ErrorAtMost": hot.error} for hot in items]

    return {
        "MostAccessedPartitionKeys": render(hottest.accessed, "CapacityUnits"),
        "MostAccessedKeys": render(hottest.accessed_items, "CapacityUnits"),
        "MostThrottledPartitionKeys": render(hottest.throttled, "Requests"),
        "MostThrottledKeys": render(hottest.throttled_items, "Requests"),
    }


def _rules(table: StoredTable, index: StoredIndex | None, setting: InsightsSettings) -> list[str]:
    """Return the names of the CloudWatch rules that AWS would create."""
    schema = table.schema if index is None else index.schema
    kinds = [("PKC", "PKT"), ("SKC", "SKT")] if schema.range else [("PKC", "PKT")]
    accessed = [kind for kind, _ in kinds] if setting.mode == _ALL_KEYS else []
    owner = table.name if index is None else f"{table.name}-{index.name}"
    names: list[str] = []
    for kind in (*accessed, *(throttled for _, throttled in kinds)):
        head, tail = f"DynamoDBContributorInsights-{kind}-", f"-{setting.rules_since_ms}"
        names.append(head + owner[: _RULE_CHARACTERS_MAX - len(head) - len(tail)] + tail)
    return names
