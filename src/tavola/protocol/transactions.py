"""Requests of the transaction operations, and the checks that need no table.

Members are declared in the order in which AWS reports violations.
"""

from __future__ import annotations

from typing import Annotated

from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    TRANSACTION,
    AttributeMap,
    ClientRequestToken,
    DataTableName,
    ExpressionNames,
    NameInvalid,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    ReturnValuesOnConditionCheckFailure,
    Shape,
    is_data_table,
    names_without_expression,
    values_without_expression,
)
from tavola.protocol.message_style import MessageStyle, layer_of


class ConditionCheck(Shape, frozen=True, kw_only=True):
    """A condition on an item that the transaction does not write."""

    table_name: DataTableName
    key: AttributeMap
    condition_expression: str
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Put(Shape, frozen=True, kw_only=True):
    """A put inside a transaction."""

    table_name: DataTableName
    item: AttributeMap
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Delete(Shape, frozen=True, kw_only=True):
    """A delete inside a transaction."""

    table_name: DataTableName
    key: AttributeMap
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Update(Shape, frozen=True, kw_only=True):
    """An update inside a transaction."""

    table_name: DataTableName
    key: AttributeMap
    update_expression: str
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class TransactWriteItem(Shape, frozen=True, kw_only=True):
    """One action of a write transaction: exactly one member is set."""

    condition_check: ConditionCheck | None = None
    put: Put | None = None
    delete: Delete | None = None
    update: Update | None = None

    @property
    def action(self) -> ConditionCheck | Put | Delete | Update:
        """The action that is set, once `parse` has checked the request."""
        action = self.put or self.update or self.delete or self.condition_check
        assert action is not None, "`parse` refuses an empty action"
        return action


class TransactWriteItemsRequest(Shape, frozen=True, kw_only=True):
    """The request of TransactWriteItems."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    client_request_token: ClientRequestToken | None = None
    transact_items: Annotated[list[TransactWriteItem], TRANSACTION]


class Get(Shape, frozen=True, kw_only=True):
    """A get inside a transaction."""

    table_name: DataTableName
    key: AttributeMap
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class TransactGetItem(Shape, frozen=True, kw_only=True):
    """One read of a transaction."""

    get: Get


class TransactGetItemsRequest(Shape, frozen=True, kw_only=True):
    """The request of TransactGetItems."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    transact_items: Annotated[list[TransactGetItem], TRANSACTION]


def check_transact_write(request: TransactWriteItemsRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table; actions are checked in request order."""
    for item in request.transact_items:
        for action in (item.put, item.update, item.delete, item.condition_check):
            if action is not None and not is_data_table(action.table_name):
                raise NameInvalid
    for item in request.transact_items:
        actions = [a for a in (item.put, item.update, item.delete, item.condition_check) if a is not None]
        if not actions:
            raise ValidationFault(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
            )
        if len(actions) > 1:
            raise ValidationFault("TransactItems can only contain one of Check, Put, Update or Delete")
        _check_placeholders(actions[0], wording)


def check_transact_get(request: TransactGetItemsRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table; actions are checked in request order."""
    for item in request.transact_items:
        if not is_data_table(item.get.table_name):
            raise NameInvalid
    for item in request.transact_items:
        if item.get.expression_attribute_names is not None and item.get.projection_expression is None:
            raise ValidationFault(names_without_expression())


def _check_placeholders(action: ConditionCheck | Put | Delete | Update, wording: MessageStyle) -> None:
    if action.condition_expression is not None or isinstance(action, Update):
        return
    if action.expression_attribute_names is not None:
        raise ValidationFault(names_without_expression())
    if action.expression_attribute_values is not None:
        raise ValidationFault(
            values_without_expression(layer_of("TransactWriteItems", wording), "ConditionExpression")
        )
