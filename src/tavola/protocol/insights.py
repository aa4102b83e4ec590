"""Requests of the Contributor Insights operations."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tavola.limits import INSIGHTS_LISTED_MAX
from tavola.protocol.fields import ControlTableName, DefinedIndexName, Shape

ContributorInsightsAction: TypeAlias = Literal["ENABLE", "DISABLE"]
ContributorInsightsMode: TypeAlias = Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]
ListContributorInsightsLimit: TypeAlias = Annotated[
    int, msgspec.Meta(le=INSIGHTS_LISTED_MAX, extra={"java": "Integer"})
]


class DescribeContributorInsightsRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeContributorInsights."""

    table_name: ControlTableName
    index_name: DefinedIndexName | None = None


class UpdateContributorInsightsRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateContributorInsights."""

    table_name: ControlTableName
    index_name: DefinedIndexName | None = None
    contributor_insights_action: ContributorInsightsAction
    contributor_insights_mode: ContributorInsightsMode | None = None


class ListContributorInsightsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListContributorInsights."""

    table_name: ControlTableName | None = None
    next_token: str | None = None
    max_results: ListContributorInsightsLimit | None = None
