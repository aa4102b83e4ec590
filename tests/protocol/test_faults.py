"""Every fault is written as AWS writes it."""

from __future__ import annotations

import json

import msgspec
import pytest

from tavola.protocol.faults import (
    AccessDeniedFault,
    CancellationReason,
    ConditionalCheckFailedFault,
    Fault,
    IdempotentParameterMismatchFault,
    InternalServerFault,
    InvalidSignatureFault,
    ItemCollectionSizeLimitExceededFault,
    LimitExceededFault,
    MissingAuthenticationTokenFault,
    ProvisionedThroughputExceededFault,
    ResourceInUseFault,
    ResourceNotFoundFault,
    SerializationFault,
    ThrottlingFault,
    TransactionCanceledFault,
    TransactionConflictFault,
    TransactionInProgressFault,
    UnknownOperationFault,
    ValidationFault,
)

_MODEL = "com.amazonaws.dynamodb.v20120810#"
_SERVICE = "com.amazon.coral.service#"


@pytest.mark.parametrize(
    ("fault", "type_", "member"),
    [
        (ValidationFault("no"), "com.amazon.coral.validate#ValidationException", "message"),
        (SerializationFault("no"), _SERVICE + "SerializationException", "Message"),
        (UnknownOperationFault("no"), _SERVICE + "UnknownOperationException", "message"),
        (AccessDeniedFault("no"), _SERVICE + "AccessDeniedException", "message"),
        (MissingAuthenticationTokenFault("no"), _SERVICE + "MissingAuthenticationTokenException", "message"),
        (InvalidSignatureFault("no"), _SERVICE + "InvalidSignatureException", "message"),
        (ResourceNotFoundFault("no"), _MODEL + "ResourceNotFoundException", "message"),
        (ResourceInUseFault("no"), _MODEL + "ResourceInUseException", "message"),
        (LimitExceededFault("no"), _MODEL + "LimitExceededException", "message"),
        (TransactionConflictFault("no"), _MODEL + "TransactionConflictException", "message"),
        (TransactionInProgressFault("no"), _MODEL + "TransactionInProgressException", "Message"),
        (
            IdempotentParameterMismatchFault("no"),
            _MODEL + "IdempotentParameterMismatchException",
            "Message",
        ),
        (
            ItemCollectionSizeLimitExceededFault("no"),
            _MODEL + "ItemCollectionSizeLimitExceededException",
            "message",
        ),
        (InternalServerFault("no"), _MODEL + "InternalServerError", "message"),
    ],
)
def test_a_body_has_the_type_and_the_spelling_of_aws(fault: Fault, type_: str, member: str) -> None:
    """The namespace and the spelling of the text's member belong to the code."""
    assert json.loads(fault.body()) == {"__type": type_, member: "no"}


@pytest.mark.parametrize("fault", [SerializationFault(), UnknownOperationFault()])
def test_a_fault_without_a_text_has_no_member_for_it(fault: Fault) -> None:
    """A body that is no JSON is reported nothing but the code."""
    assert json.loads(fault.body()) == {"__type": fault.type}
    assert str(fault) == fault.code


def test_a_failed_condition_shows_the_item_where_it_was_asked_for() -> None:
    """The item is carried as the bytes it is stored in."""
    bare = ConditionalCheckFailedFault()
    shown = ConditionalCheckFailedFault(msgspec.Raw(b'{"pk":{"S":"a"}}'))

    assert json.loads(bare.body()) == {
        "__type": _MODEL + "ConditionalCheckFailedException",
        "message": "The conditional request failed",
    }
    assert json.loads(shown.body())["Item"] == {"pk": {"S": "a"}}


def test_a_cancelled_transaction_gives_a_reason_for_each_action() -> None:
    """Reasons stand in the request's order; an action that was not in the way says None and no more."""
    item = msgspec.Raw(b'{"pk":{"S":"a"}}')
    fault = TransactionCanceledFault(
        [
            CancellationReason("None"),
            CancellationReason("ConditionalCheckFailed", "The conditional request failed", item),
        ]
    )

    assert json.loads(fault.body()) == {
        "__type": _MODEL + "TransactionCanceledException",
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed]",
        "CancellationReasons": [
            {"Code": "None"},
            {
                "Code": "ConditionalCheckFailed",
                "Message": "The conditional request failed",
                "Item": {"pk": {"S": "a"}},
            },
        ],
    }


@pytest.mark.parametrize(
    ("fault", "member"),
    [
        (ProvisionedThroughputExceededFault("slow", [{"reason": "r"}]), "ThrottlingReasons"),
        (ThrottlingFault("slow", [{"reason": "r"}]), "throttlingReasons"),
    ],
)
def test_throttling_names_its_reasons_as_the_code_spells_them(fault: Fault, member: str) -> None:
    """ThrottlingException alone writes the member with a small letter."""
    assert json.loads(fault.body())[member] == [{"reason": "r"}]
    assert fault.retryable


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (ResourceNotFoundFault(), "Requested resource not found"),
        (ResourceNotFoundFault.of_table("T"), "Requested resource not found: Table: T not found"),
        (TransactionConflictFault(), "Transaction is ongoing for the item"),
        (ItemCollectionSizeLimitExceededFault(), "Collection size exceeded."),
        (MissingAuthenticationTokenFault(), "Request is missing Authentication Token"),
        (ThrottlingFault(), "Rate of requests exceeds the allowed throughput."),
    ],
)
def test_a_fault_knows_its_own_sentence(fault: Fault, text: str) -> None:
    """Where AWS has one sentence for a code, no one has to repeat it."""
    assert fault.message == text


def test_only_what_may_succeed_later_is_retryable() -> None:
    """A condition that failed, a bad request and a cancelled transaction are answers, not accidents."""
    assert InternalServerFault().retryable
    assert TransactionInProgressFault().retryable
    assert not ValidationFault("no").retryable
    assert not ConditionalCheckFailedFault().retryable
    assert not TransactionCanceledFault([]).retryable
    assert InternalServerFault().status == 500
    assert ValidationFault("no").status == 400
