"""The expressions of a request, or the legacy parameters they replaced, compiled to plans.

Both forms become the same plans, so the operations need not know which one a request used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from tavola.engine.catalog import Table
from tavola.engine.operations.call import OperationCall
from tavola.expressions.bindings import Bindings, check_placeholder_keys, check_placeholders
from tavola.expressions.conditions import Condition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import KeyCondition
from tavola.expressions.legacy import (
    legacy_attributes,
    legacy_expected,
    legacy_filter,
    legacy_key_conditions,
    legacy_updates,
)
from tavola.expressions.plans import (
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)
from tavola.expressions.projections import Projection
from tavola.expressions.updates import Update
from tavola.protocol.faults import ValidationFault

_Plan = TypeVar("_Plan")
_NOT_SCALAR = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
_NAMES_MAX = 10_000  # our own limit: AWS limits only the body, and this work would block other requests
_UNBOUND = Bindings({}, {})


def bind_placeholders(
    call: OperationCall, names: dict[str, str] | None, values: dict[str, dict[str, Any]] | None
) -> Bindings:
    """Return a request's placeholders with their values checked."""
    if names is None and values is None:
        return _UNBOUND
    try:
        check_placeholder_keys(names, values)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    if values:
        call.admit_values(values)
    return Bindings(names or {}, values or {})


def parse_condition(call: OperationCall, request: Any, bindings: Bindings) -> Condition | None:
    """Return the condition of a write, compiled from ConditionExpression or Expected."""
    try:
        if request.condition_expression is not None:
            return compile_condition(request.condition_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    expected = getattr(request, "expected", None)
    if expected is None:
        return None
    return _compile_legacy(
        lambda: legacy_expected(_legacy_members(call, expected), request.conditional_operator)
    )


def parse_update(call: OperationCall, request: Any, bindings: Bindings) -> Update | None:
    """Return the update of an UpdateItem, from UpdateExpression or AttributeUpdates."""
    try:
        if request.update_expression is not None:
            return compile_update(request.update_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    updates = getattr(request, "attribute_updates", None)
    return (
        None if updates is None else _compile_legacy(lambda: legacy_updates(_legacy_members(call, updates)))
    )


def parse_projection(call: OperationCall, request: Any, bindings: Bindings) -> Projection | None:
    """Return the projection of a read, from ProjectionExpression or AttributesToGet."""
    try:
        if request.projection_expression is not None:
            return compile_projection(request.projection_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    attributes = getattr(request, "attributes_to_get", None)
    if attributes is not None and len(attributes) > _NAMES_MAX:
        raise ValidationFault(
            f"AttributesToGet names {len(attributes)} attributes; name {_NAMES_MAX} at most"
        )
    return None if attributes is None else _compile_legacy(lambda: legacy_attributes(attributes))


def parse_filter(call: OperationCall, request: Any, legacy: Any, bindings: Bindings) -> Condition | None:
    """Return the filter of a query or scan, from FilterExpression or the older filter."""
    try:
        if request.filter_expression is not None:
            return compile_condition(request.filter_expression, bindings, field="FilterExpression")
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    if legacy is None:
        return None
    return _compile_legacy(lambda: legacy_filter(_legacy_members(call, legacy), request.conditional_operator))


def parse_key_condition(call: OperationCall, request: Any, bindings: Bindings) -> KeyCondition:
    """Return the key condition of a query, from KeyConditionExpression or KeyConditions."""
    try:
        if request.key_condition_expression is not None:
            return compile_key_condition(request.key_condition_expression, bindings)
    except ExpressionError as error:
        raise call.expression_fault(error) from error
    return _compile_legacy(lambda: legacy_key_conditions(_legacy_members(call, request.key_conditions or {})))


def check_placeholders_used(call: OperationCall, bindings: Bindings, plans: Iterable[Any]) -> None:
    """Refuse placeholders that no expression uses (AWS does)."""
    if bindings is _UNBOUND:
        return
    try:
        check_placeholders(bindings, [plan for plan in plans if plan is not None])
    except ExpressionError as error:
        raise call.expression_fault(error) from error


def check_scalar_keys(table: Table, *plans: Update | Condition | Projection | None) -> None:
    """Refuse a path into a key attribute of the table or of an index."""
    for plan in plans:
        if plan is None or not plan.nested:
            continue
        for name in table.schema.names:
            if name in plan.nested:
                raise ValidationFault(f"{_NOT_SCALAR}Key: {name}")
        for index in table.indexes:
            for name in index.schema.names:
                if name in plan.nested:
                    raise ValidationFault(f"{_NOT_SCALAR}IndexKey: {name}")


def _compile_legacy(compile_: Callable[[], _Plan]) -> _Plan:
    """Compile a legacy parameter; its errors have no `1 validation error detected` prefix."""
    try:
        return compile_()
    except ExpressionError as error:
        raise ValidationFault(str(error)) from error


def _legacy_members(call: OperationCall, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a legacy parameter with AWS's member names and its values checked."""
    raw: dict[str, Any] = msgspec.to_builtins(conditions)
    for condition in raw.values():
        if condition.get("Value") is not None:
            call.admit({"Value": condition["Value"]})
        for value in condition.get("AttributeValueList") or ():
            call.admit({"Value": value})
    return raw
