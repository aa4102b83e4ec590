"""Questions of the API: typed, refused in one shape, and the same in TypeScript."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import msgspec
import pytest

from tavola.backends.errors import CredentialsMissing, EndpointUnreachable
from tavola.protocol.faults import AccessDeniedFault, ConditionalCheckFailedFault, ResourceNotFoundFault
from tavola.studio.api import BY_NAME, ENDPOINTS
from tavola.studio.endpoint import Endpoint, encode_response
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import Item
from tools.studio import UnsupportedType, render_types, typescript


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of every kind of member."""

    name: str
    count: int = 3
    exact: bool = False
    way: Literal["up", "down"] = "up"


@dataclass(frozen=True, slots=True)
class Given:
    """An answer of every kind of member."""

    items: tuple[Item, ...]
    money: Decimal
    before: Asked | None = None


async def echo(studio: Studio, asked: Asked) -> Given:
    """Return the request."""
    return Given(({"n": {"N": "1" * 38}},), Decimal("0.10"), asked)


ECHO = Endpoint("GET", "/echo", echo)


def test_parameters_are_read_from_their_text() -> None:
    """Numbers and truth in a URL are text, and are read; what is not given has its default."""
    assert ECHO.parse_parameters({"name": "a", "count": "7", "exact": "true"}) == Asked("a", 7, True)
    assert ECHO.parse_parameters({"name": "a"}) == Asked("a")


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "name"), ({"name": "a", "count": "many"}, "count"), ({"name": "a", "way": "left"}, "way")],
)
def test_a_malformed_request_names_the_parameter(given: dict[str, str], told: str) -> None:
    """A missing or wrong member is named."""
    with pytest.raises(RequestRefused, match=told) as refused:
        ECHO.parse_parameters(given)

    assert refused.value.problem.status == 400


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"name": 3}', b"\xff", b"[" * 100_000])
def test_a_body_that_cannot_be_read_is_refused(body: bytes) -> None:
    """Whatever comes, one shape of refusal goes out."""
    with pytest.raises(RequestRefused):
        ECHO.parse_body(body)


def test_numbers_and_money_stay_text() -> None:
    """38 digits and a tenth of a dollar leave as they are."""
    answer = msgspec.json.decode(encode_response(Given(({"n": {"N": "1" * 38}},), Decimal("0.10"))))

    assert answer["items"][0]["n"]["N"] == "1" * 38
    assert answer["money"] == "0.10"


def test_every_question_has_one_name_and_a_type_each_way() -> None:
    """No two endpoints share a name, and each says what it asks and gives."""
    assert len(BY_NAME) == len(ENDPOINTS)
    for endpoint in ENDPOINTS:
        assert endpoint.request_type.__doc__, endpoint.name
        assert endpoint.raw or endpoint.response_type is not None, endpoint.name


def test_questions_that_change_something_are_posts() -> None:
    """A link or a picture that a browser follows by itself changes nothing."""
    assert all(endpoint.method == "POST" for endpoint in ENDPOINTS if endpoint.is_write)


def test_typescript_has_every_question() -> None:
    """The pages' types name each endpoint, and every type that one names is there."""
    text = typescript()

    for endpoint in ENDPOINTS:
        assert f'"{endpoint.name}":' in text
    named = set(re.findall(r"{ request: (\w+);", text))
    assert named <= set(re.findall(r"export interface (\w+)", text))


def test_typescript_types_equal_pythons() -> None:
    """Text, numbers, choices, tuples, absence and defaults come across."""
    text = render_types((ECHO,))

    assert 'readonly way?: "up" | "down";' in text
    assert "readonly items: readonly (Item)[];" in text
    assert "readonly money: string;" in text
    assert "readonly before: Asked | null;" in text  # a response has all its fields
    assert '"GET /echo": { request: Asked; response: Given; isWrite: false };' in text


def test_typescript_refuses_what_it_has_no_word_for() -> None:
    """A type that the pages could not read stops the build, and says which."""

    async def strange(studio: Studio, asked: Asked) -> complex:
        return 1j

    with pytest.raises(UnsupportedType, match="complex"):
        render_types((Endpoint("GET", "/strange", strange),))


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ResourceNotFoundFault("Requested resource not found"), "ResourceNotFoundException", 404),
        (ConditionalCheckFailedFault(), "ConditionalCheckFailedException", 409),
        (AccessDeniedFault("User is not authorized"), "AccessDeniedException", 403),
    ],
)
def test_faults_keep_their_code_and_say_what_to_do(error: Exception, code: str, status: int) -> None:
    """DynamoDB's faults keep their code and message."""
    problem = problem_of(error)  # type: ignore[arg-type]

    assert (problem.code, problem.status) == (code, status)


@pytest.mark.parametrize("kind", [EndpointUnreachable, CredentialsMissing])
def test_connection_errors_have_a_remedy(kind: type[Exception]) -> None:
    """A lost endpoint and missing credentials have a remedy."""
    error = kind.__new__(kind)
    problem = problem_of(error)  # type: ignore[arg-type]

    assert problem.remedy
    assert problem.status in (401, 502)
