"""Every error of Tavola becomes one problem document."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import SkipJsonSchema
from starlette.exceptions import HTTPException

from tavola import (
    AccessDeniedFault,
    ConditionalCheckFailedFault,
    ConditionFailed,
    CursorRefused,
    EndpointUnreachable,
    InternalServerFault,
    ItemCollectionSizeLimitExceededFault,
    ItemExists,
    ItemImmutable,
    ItemMissing,
    ItemSizeExceeded,
    KeyPartMissing,
    LockConflict,
    ProvisionedThroughputExceededFault,
    ResourceNotFoundFault,
    StoreError,
    TavolaError,
    ThrottlingFault,
    TransactionCancelled,
    TransactionConflictFault,
    UniqueViolation,
    UpdateContended,
    ValidationFault,
    WriteFailure,
)
from tavola.apps.shell import ProblemError, field_errors, not_found, problem_of
from tavola.patterns import (
    BlobDamaged,
    BlobMissing,
    CycleFound,
    IdempotencyMismatch,
    InProgress,
    MoveRefused,
    NodeExists,
    NodeMissing,
    StoredFailure,
    TreeBusy,
    TreeWork,
    VersionConflict,
    WalkTooLong,
    inline_blob,
)

AT = datetime(2026, 11, 3, tzinfo=UTC)

MAPPED: list[tuple[Exception, int, str]] = [
    (ItemMissing("the Ticket t1"), 404, "not-found"),
    (ItemExists("the Ticket t1"), 409, "exists"),
    (LockConflict("the Ticket t1"), 409, "conflict"),
    (ConditionFailed("the Ticket t1"), 409, "conflict"),
    (ConditionalCheckFailedFault(), 409, "conflict"),
    (VersionConflict("the Review r1", 2, None), 409, "conflict"),
    (UniqueViolation("the Customer c1", "email", "x"), 409, "taken"),
    (ItemImmutable("the Version v1", "put"), 409, "immutable"),
    (UpdateContended("the Ticket t1", 8), 409, "contended"),
    (TransactionConflictFault(), 409, "contended"),
    (NodeMissing("units", "asia"), 404, "not-found"),
    (NodeExists("units", "asia"), 409, "exists"),
    (TreeBusy("units", "A move", TreeWork(tree="units", path="a", to="b", fence="x")), 409, "contended"),
    (MoveRefused("asia", "asia/japan", "it is in it"), 409, "in-the-way"),
    (CycleFound("Parts", ("a", "b", "a")), 409, "in-the-way"),
    (WalkTooLong("Parts", "a", 10), 409, "in-the-way"),
    (BlobMissing(inline_blob(b"x")), 503, "blob-lost"),
    (BlobDamaged(inline_blob(b"x"), "ab"), 503, "blob-lost"),
    (CursorRefused("it was cut"), 400, "cursor-refused"),
    (IdempotencyMismatch("tickets", "k1"), 422, "idempotency-mismatch"),
    (InProgress("tickets", "k1", AT), 409, "in-progress"),
    (StoredFailure("tickets", "k1", "Broken", "no"), 409, "failed-before"),
    (ItemSizeExceeded("Item size has exceeded the maximum allowed size"), 413, "item-too-large"),
    (ValidationFault("Item size has exceeded the maximum allowed size"), 413, "item-too-large"),
    (ItemCollectionSizeLimitExceededFault(), 413, "item-too-large"),
    (
        ValidationFault(
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"
        ),
        422,
        "not-storable",
    ),
    (
        ValidationFault("Attempting to store more than 38 significant digits in a Number"),
        422,
        "not-storable",
    ),
    (KeyPartMissing("TICKET#{id}", "id"), 422, "not-storable"),
    (AccessDeniedFault("no"), 403, "forbidden"),
    (ThrottlingFault(), 503, "store-busy"),
    (ProvisionedThroughputExceededFault(), 503, "store-busy"),
    (InternalServerFault(), 503, "store-busy"),
    (ResourceNotFoundFault(), 503, "store-not-ready"),
    (EndpointUnreachable("http://localhost:1", "refused"), 503, "store-unreachable"),
    (StoreError("x"), 503, "store-unusable"),
    (HTTPException(404), 404, "not-found"),
    (HTTPException(405), 405, "method-not-allowed"),
    (HTTPException(418), 418, "i'm-a-teapot"),
    (not_found("ticket"), 404, "not-found"),
]


@pytest.mark.parametrize(("error", "status", "slug"), MAPPED, ids=lambda each: type(each).__name__)
def test_an_error_is_one_problem(error: Exception, status: int, slug: str) -> None:
    """An error has a status, a code and a sentence for the caller."""
    found = problem_of(error)

    assert found is not None
    assert (found.status, found.code) == (status, slug)
    assert found.detail.endswith(".")


@pytest.mark.parametrize(
    "error", [ValidationFault("Invalid UpdateExpression"), TavolaError("x"), ValueError("x")]
)
def test_an_unmapped_error_is_left_to_the_guard(error: Exception) -> None:
    """An error that the client cannot have caused is left to the guard, which responds with 500."""
    assert problem_of(error) is None


@pytest.mark.parametrize("error", [LockConflict("t"), VersionConflict("r", 1, None), ConditionFailed("t")])
def test_a_lost_race_after_if_match_is_a_failed_precondition(error: Exception) -> None:
    """With If-Match a lost race is a 412, without it a 409."""
    found = problem_of(error, conditional=True)

    assert found is not None
    assert (found.status, found.code) == (412, "precondition-failed")


@pytest.mark.parametrize(
    "error",
    [ThrottlingFault(), EndpointUnreachable("e", "r"), InProgress("s", "k", AT), TransactionConflictFault()],
)
def test_a_temporary_problem_has_retry_after(error: Exception) -> None:
    """A temporary problem has a Retry-After header."""
    found = problem_of(error)

    assert found is not None
    assert int(found.headers["Retry-After"]) >= 1


class Intent:
    """The part of an intent that a message needs."""

    what = "the Ticket t1"


def cancelled(*kinds: tuple[str, TavolaError] | None) -> TransactionCancelled:
    """Return a cancelled transaction with a reason for each intent."""
    errors: list[Any] = [
        None if each is None else WriteFailure(Intent(), each[0], each[1], None)  # type: ignore[arg-type]
        for each in kinds
    ]
    return TransactionCancelled(errors)


@pytest.mark.parametrize(
    ("reasons", "status", "slug"),
    [
        ([("missing", ItemMissing("t"))], 404, "not-found"),
        ([None, ("exists", ItemExists("t"))], 409, "exists"),
        ([("condition", ConditionFailed("t")), ("conflict", TransactionConflictFault())], 409, "contended"),
        ([("throttled", ThrottlingFault()), ("lock", LockConflict("t"))], 503, "store-busy"),
        ([("too_large", ItemSizeExceeded("x"))], 413, "item-too-large"),
        ([("unique", UniqueViolation("c", "email", "x"))], 409, "taken"),
        ([("exists", ItemExists("t")), ("missing", ItemMissing("t"))], 404, "not-found"),
        ([("lock", LockConflict("t"))], 409, "conflict"),
    ],
)
def test_a_cancelled_transaction_is_described_by_its_reasons(reasons: Any, status: int, slug: str) -> None:
    """Temporary reasons come first, otherwise the first reason counts."""
    found = problem_of(cancelled(*reasons))

    assert found is not None
    assert (found.status, found.code) == (status, slug)


def test_invalid_fields_are_named_by_location_not_value() -> None:
    """A 422 has a pointer and a message for each field, and never the value."""
    error = RequestValidationError(
        [
            {
                "type": "string_type",
                "loc": ("body", "a/b", 0),
                "msg": "Input should be a valid string",
                "input": "hush",
            },
            {
                "type": "int_parsing",
                "loc": ("query", "limit"),
                "msg": "Value error, not a number",
                "input": "hush",
            },
        ]
    )
    found = problem_of(error)

    assert found is not None
    assert found.extensions["errors"] == [
        {"in": "body", "pointer": "#/a~1b/0", "detail": "Must be a string."},
        {"in": "query", "pointer": "#/limit", "detail": "not a number"},
    ]
    assert "hush" not in json.dumps(found.document("/x"))


def test_a_form_gets_the_first_error_of_each_field() -> None:
    """A pydantic error becomes the messages that a form shows at its fields."""

    class Form(BaseModel):
        subject: str
        amount: int

    with pytest.raises(ValidationError) as caught:
        Form.model_validate({"amount": "many"})

    assert set(field_errors(caught.value)) == {"subject", "amount"}
    found = problem_of(caught.value)
    assert found is not None
    assert found.status == 422
    assert {each["in"] for each in found.extensions["errors"]} == {"body"}


def test_a_problem_is_an_rfc_9457_document() -> None:
    """A problem has type, title, status, detail, instance and its extension members."""
    problem = ProblemError(409, "transition", "Not so", "A closed ticket stays closed.", allowed=["reopen"])
    answer = problem.response("/tickets/1")

    assert answer.media_type == "application/problem+json"
    assert json.loads(bytes(answer.body)) == {
        "type": "urn:tavola:problem:transition",
        "title": "Not so",
        "status": 409,
        "detail": "A closed ticket stays closed.",
        "instance": "/tickets/1",
        "allowed": ["reopen"],
    }


def test_a_union_error_names_the_member_and_its_values() -> None:
    """Pydantic's branches of a union are not members; a choice lists its allowed values; the whole body is `#`."""

    class Colour(StrEnum):
        RED = "red"
        BLUE = "blue"

    class Asked(BaseModel):
        model_config = ConfigDict(extra="forbid")
        colour: Literal[Colour.RED, Colour.BLUE] | SkipJsonSchema[None] = None
        names: dict[str, int | list[int]] = {}

    def errors_of(body: Any) -> list[Any]:
        errors: list[list[Any]] = []
        with pytest.raises(ValidationError) as caught:
            Asked.model_validate(body)
        placed = [{**each, "loc": ("body", *each["loc"])} for each in caught.value.errors()]
        for error in (caught.value, RequestValidationError(placed, body=body)):
            found = problem_of(error)
            assert found is not None
            errors.append(found.extensions["errors"])
        assert errors[0] == errors[1], "with and without what was sent"
        return errors[0]

    assert errors_of({"colour": "green"}) == [
        {"in": "body", "pointer": "#/colour", "detail": "Must be one of red, blue."}
    ]
    assert [each["pointer"] for each in errors_of({"names": {"a": "x"}})] == ["#/names/a"]
    assert errors_of({"other": 1})[0]["pointer"] == "#/other"
    assert errors_of([])[0]["pointer"] == "#"


def test_a_refused_cursor_is_explained_in_http_terms() -> None:
    """The caller is told to start from the beginning, without details of the implementation."""
    found = problem_of(CursorRefused("its signature does not hold (connect(…, cursor_secret=…))"))

    assert found is not None
    assert (found.status, "without a cursor" in found.detail, "connect" in found.detail) == (
        400,
        True,
        False,
    )
