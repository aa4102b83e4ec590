"""Requests of the PartiQL operations.

Members are declared in the order in which AWS reports violations.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tavola.limits import BATCH_STATEMENTS_MAX, STATEMENT_CHARACTERS_MAX, STATEMENT_TOKEN_CHARACTERS_MAX
from tavola.protocol.fields import (
    ONE_OR_MORE,
    TRANSACTION,
    AttributeValue,
    ClientRequestToken,
    PageLimit,
    ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure,
    Shape,
)

_StatementText = Annotated[str, msgspec.Meta(min_length=1, max_length=STATEMENT_CHARACTERS_MAX)]
_NextToken = Annotated[str, msgspec.Meta(min_length=1, max_length=STATEMENT_TOKEN_CHARACTERS_MAX)]
_Parameters = Annotated[list[AttributeValue], ONE_OR_MORE]
_Batch = msgspec.Meta(min_length=1, max_length=BATCH_STATEMENTS_MAX)


class ExecuteStatementRequest(Shape, frozen=True, kw_only=True):
    """The request of ExecuteStatement."""

    statement: _StatementText
    parameters: _Parameters | None = None
    consistent_read: bool | None = None
    next_token: _NextToken | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    limit: PageLimit | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class BatchStatementRequest(Shape, frozen=True, kw_only=True):
    """One statement of a batch."""

    statement: _StatementText
    parameters: _Parameters | None = None
    consistent_read: bool | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class BatchExecuteStatementRequest(Shape, frozen=True, kw_only=True):
    """The request of BatchExecuteStatement."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    statements: Annotated[list[BatchStatementRequest], _Batch]


class ParameterizedStatement(Shape, frozen=True, kw_only=True):
    """One statement of a transaction."""

    statement: _StatementText
    parameters: _Parameters | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class ExecuteTransactionRequest(Shape, frozen=True, kw_only=True):
    """The request of ExecuteTransaction."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    client_request_token: ClientRequestToken | None = None
    transact_statements: Annotated[list[ParameterizedStatement], TRANSACTION]
