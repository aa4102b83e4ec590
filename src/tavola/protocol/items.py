"""Requests of GetItem, PutItem, UpdateItem and DeleteItem and of Tavola's ListItemVersions, and the checks that need no item.

Members are declared in the order in which AWS reports violations.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from tavola.limits import ITEM_VERSIONS_MAX
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    AttributeAction,
    AttributeMap,
    AttributeNames,
    AttributeValue,
    ComparisonOperator,
    ConditionalOperator,
    DataTableName,
    ExpressionNames,
    NameInvalid,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    ReturnValue,
    ReturnValuesOnConditionCheckFailure,
    Shape,
    is_data_table,
    mixed_parameters_error,
    names_without_expression,
    values_without_expression,
)
from tavola.protocol.message_style import MessageStyle, add_error_count, layer_of

VersionsLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=ITEM_VERSIONS_MAX, extra={"java": "Integer"})]

_CONDITIONAL_OPERATOR_ALONE = "ConditionalOperator cannot be used without Filter or Expected"


class ExpectedAttributeValue(Shape, frozen=True, kw_only=True):
    """A legacy condition on one attribute, of a write."""

    attribute_value_list: list[AttributeValue] | None = None
    comparison_operator: ComparisonOperator | None = None
    exists: bool | None = None
    value: AttributeValue | None = None


class AttributeValueUpdate(Shape, frozen=True, kw_only=True):
    """A legacy update of one attribute."""

    action: AttributeAction | None = None
    value: AttributeValue | None = None


class PutItemRequest(Shape, frozen=True, kw_only=True):
    """The request of PutItem."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    table_name: DataTableName
    item: AttributeMap
    conditional_operator: ConditionalOperator | None = None
    expected: dict[str, ExpectedAttributeValue] | None = None
    return_values: ReturnValue | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class UpdateItemRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateItem."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    table_name: DataTableName
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    return_values: ReturnValue | None = None
    key: AttributeMap
    conditional_operator: ConditionalOperator | None = None
    expected: dict[str, ExpectedAttributeValue] | None = None
    attribute_updates: dict[str, AttributeValueUpdate] | None = None
    condition_expression: str | None = None
    update_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class DeleteItemRequest(Shape, frozen=True, kw_only=True):
    """The request of DeleteItem."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    table_name: DataTableName
    return_values: ReturnValue | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    key: AttributeMap
    conditional_operator: ConditionalOperator | None = None
    expected: dict[str, ExpectedAttributeValue] | None = None
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class GetItemRequest(Shape, frozen=True, kw_only=True):
    """The request of GetItem."""

    attributes_to_get: AttributeNames | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    key: AttributeMap
    table_name: DataTableName
    consistent_read: bool | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class ListItemVersionsRequest(GetItemRequest, frozen=True, kw_only=True):
    """The request of ListItemVersions: that of GetItem, with a page size."""

    limit: VersionsLimit | None = None
    next_token: str | None = None


def check_get(request: GetItemRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table."""
    if not is_data_table(request.table_name):
        raise NameInvalid
    if request.projection_expression is not None:
        if request.attributes_to_get is not None:
            text = mixed_parameters_error(
                [("AttributesToGet", request.attributes_to_get)],
                [("ProjectionExpression", request.projection_expression)],
            )
            assert text is not None, "both are given"
            raise ValidationFault(text)
    elif request.expression_attribute_names is not None:
        raise ValidationFault(names_without_expression())


def check_put_or_delete(
    operation: str, request: PutItemRequest | DeleteItemRequest, wording: MessageStyle
) -> None:
    """Refuse a request that is invalid for any table."""
    if not is_data_table(request.table_name):
        raise NameInvalid
    if (
        request.condition_expression is not None
        or request.expression_attribute_names is not None
        or request.expression_attribute_values is not None
        or request.conditional_operator is not None
    ):
        _refuse(operation, wording, _condition(request, operation, wording))
    if request.return_values is not None and request.return_values not in ("NONE", "ALL_OLD"):
        _refuse(operation, wording, "ReturnValues can only be ALL_OLD or NONE")


def check_update(request: UpdateItemRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table."""
    if not is_data_table(request.table_name):
        raise NameInvalid
    expressed = request.update_expression is not None or request.condition_expression is not None
    if expressed and (
        request.attribute_updates is not None
        or request.expected is not None
        or request.conditional_operator is not None
    ):
        text = mixed_parameters_error(
            [
                ("AttributeUpdates", request.attribute_updates),
                ("Expected", request.expected),
                ("ConditionalOperator", request.conditional_operator),
            ],
            [
                ("UpdateExpression", request.update_expression),
                ("ConditionExpression", request.condition_expression),
            ],
        )
        _refuse("UpdateItem", wording, text)
    if expressed:
        return
    if request.expression_attribute_names is not None:
        _refuse("UpdateItem", wording, names_without_expression())
    if request.expression_attribute_values is not None:
        style = layer_of("UpdateItem", wording)
        _refuse(
            "UpdateItem", wording, values_without_expression(style, "UpdateExpression", "ConditionExpression")
        )
    if request.conditional_operator is not None and not request.expected:
        _refuse("UpdateItem", wording, _CONDITIONAL_OPERATOR_ALONE)


def _condition(
    request: PutItemRequest | DeleteItemRequest, operation: str, wording: MessageStyle
) -> str | None:
    """Return the error in the condition parameters of a put or delete, if any."""
    if request.condition_expression is not None:
        return mixed_parameters_error(
            [("Expected", request.expected), ("ConditionalOperator", request.conditional_operator)],
            [("ConditionExpression", request.condition_expression)],
        )
    if request.expression_attribute_names is not None:
        return names_without_expression()
    if request.expression_attribute_values is not None:
        return values_without_expression(layer_of(operation, wording), "ConditionExpression")
    if request.conditional_operator is not None and not request.expected:
        return _CONDITIONAL_OPERATOR_ALONE
    return None


def _refuse(operation: str, wording: MessageStyle, text: str | None) -> None:
    if text is not None:
        raise ValidationFault(add_error_count(operation, wording, text))
