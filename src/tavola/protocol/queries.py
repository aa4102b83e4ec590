"""Requests of Query and Scan, and the checks that need no table.

Members are declared in the order in which AWS reports violations.
"""

from __future__ import annotations

from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    AttributeMap,
    AttributeNames,
    AttributeValue,
    ComparisonOperator,
    ConditionalOperator,
    DataTableName,
    ExpressionNames,
    IndexName,
    NameInvalid,
    PageLimit,
    ReturnConsumedCapacity,
    Segment,
    Select,
    Shape,
    TotalSegments,
    is_data_table,
    is_index,
    mixed_parameters_error,
    names_without_expression,
    values_without_expression,
)
from tavola.protocol.message_style import MessageStyle, layer_of

_COUNT_PREFIX = "1 validation error detected: "


class Condition(Shape, frozen=True, kw_only=True):
    """A legacy condition on one attribute, in Query and Scan."""

    attribute_value_list: list[AttributeValue] | None = None
    comparison_operator: ComparisonOperator


class QueryRequest(Shape, frozen=True, kw_only=True):
    """The request of Query."""

    select: Select | None = None
    index_name: IndexName | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    query_filter: dict[str, Condition] | None = None
    table_name: DataTableName
    conditional_operator: ConditionalOperator | None = None
    attributes_to_get: AttributeNames | None = None
    limit: PageLimit | None = None
    key_conditions: dict[str, Condition] | None = None
    exclusive_start_key: AttributeMap | None = None
    consistent_read: bool | None = None
    scan_index_forward: bool | None = None
    key_condition_expression: str | None = None
    filter_expression: str | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None


class ScanRequest(Shape, frozen=True, kw_only=True):
    """The request of Scan."""

    select: Select | None = None
    index_name: IndexName | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    scan_filter: dict[str, Condition] | None = None
    table_name: DataTableName
    conditional_operator: ConditionalOperator | None = None
    attributes_to_get: AttributeNames | None = None
    limit: PageLimit | None = None
    segment: Segment | None = None
    total_segments: TotalSegments | None = None
    exclusive_start_key: AttributeMap | None = None
    consistent_read: bool | None = None
    filter_expression: str | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None


def check_query(request: QueryRequest, wording: MessageStyle) -> None:
    """Reject a request that is invalid for any table."""
    if not is_data_table(request.table_name):
        raise NameInvalid
    if request.index_name is not None and not is_index(request.index_name):
        raise NameInvalid
    expressions = [
        ("ProjectionExpression", request.projection_expression),
        ("FilterExpression", request.filter_expression),
        ("KeyConditionExpression", request.key_condition_expression),
    ]
    if (
        request.attributes_to_get is not None
        or request.query_filter is not None
        or request.conditional_operator is not None
        or request.key_conditions is not None
    ):
        # Legacy key conditions may be combined with a filter or projection expression.
        both_keys = request.key_condition_expression is not None
        legacy = [
            ("AttributesToGet", request.attributes_to_get),
            ("QueryFilter", request.query_filter),
            ("ConditionalOperator", request.conditional_operator),
            ("KeyConditions", request.key_conditions if both_keys else None),
        ]
        _raise_if_invalid(mixed_parameters_error(legacy, expressions))
    if request.key_condition_expression is None and request.filter_expression is None:
        if request.expression_attribute_names is not None and request.projection_expression is None:
            _raise_if_invalid(names_without_expression())
        if request.expression_attribute_values is not None:
            style = layer_of("Query", wording)
            _raise_if_invalid(values_without_expression(style, "FilterExpression", "KeyConditionExpression"))
    if request.conditional_operator is not None and not request.query_filter:
        _raise_if_invalid("ConditionalOperator cannot be used without Filter or Expected")
    if request.select is not None:
        _check_select(request, _COUNT_PREFIX if layer_of("Query", wording) == "modern" else "")
    if request.key_conditions is None and request.key_condition_expression is None:
        _raise_if_invalid(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )


def check_scan(request: ScanRequest, wording: MessageStyle) -> None:
    """Reject a request that is invalid for any table."""
    if not is_data_table(request.table_name):
        raise NameInvalid
    if request.index_name is not None and not is_index(request.index_name):
        raise NameInvalid
    if (
        request.attributes_to_get is not None
        or request.scan_filter is not None
        or request.conditional_operator is not None
    ):
        legacy = [
            ("AttributesToGet", request.attributes_to_get),
            ("ScanFilter", request.scan_filter),
            ("ConditionalOperator", request.conditional_operator),
        ]
        expressions = [
            ("ProjectionExpression", request.projection_expression),
            ("FilterExpression", request.filter_expression),
        ]
        _raise_if_invalid(mixed_parameters_error(legacy, expressions))
    if request.filter_expression is None:
        if request.expression_attribute_names is not None and request.projection_expression is None:
            _raise_if_invalid(names_without_expression())
        if request.expression_attribute_values is not None:
            _raise_if_invalid(values_without_expression(layer_of("Scan", wording), "FilterExpression"))
    if request.conditional_operator is not None and not request.scan_filter:
        _raise_if_invalid("ConditionalOperator cannot be used without Filter or Expected")
    if request.select is not None:
        _check_select(request, "")
    if request.segment is not None or request.total_segments is not None:
        _check_segments(request.segment, request.total_segments)


def _check_select(request: QueryRequest | ScanRequest, prefix: str) -> None:
    """Reject a Select that contradicts the projection."""
    select = request.select
    projected = (
        "ProjectionExpression"
        if request.projection_expression is not None
        else "AttributesToGet"
        if request.attributes_to_get is not None
        else None
    )
    if select == "SPECIFIC_ATTRIBUTES":
        if projected is None:
            _raise_if_invalid(
                f"{prefix}Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES"
            )
    elif projected is not None:
        chosen = "only the Count" if select == "COUNT" else select
        _raise_if_invalid(f"{prefix}Cannot specify the {projected} when choosing to get {chosen}")
    elif select == "ALL_PROJECTED_ATTRIBUTES" and request.index_name is None:
        _raise_if_invalid(
            f"{prefix}ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )


def _check_segments(segment: int | None, total: int | None) -> None:
    if total is None:
        _raise_if_invalid(
            "The TotalSegments parameter is required but was not present in the request when Segment "
            "parameter is present"
        )
    elif segment is None:
        _raise_if_invalid(
            "The Segment parameter is required but was not present in the request when parameter "
            "TotalSegments is present"
        )
    elif segment >= total:
        _raise_if_invalid(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )


def _raise_if_invalid(text: str | None) -> None:
    """Raise ValidationFault with an error message; do nothing if it is None."""
    if text is not None:
        raise ValidationFault(text)
