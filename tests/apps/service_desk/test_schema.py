"""For any request, the desk's response matches its OpenAPI document and is never a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import given as given_
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.python.asgi import shutdown_lifespans

from tavola.apps.service_desk.web import create
from tavola.apps.shell import AppSettings
from tests.apps.service_desk.conftest import SECRET

EXAMPLES = 40
# Beside 2xx, what a schema cannot say: a caller that could be a telephone number without its country (422), a cursor that was
# not given here or a text with a NUL (400), an ETag that is or is not the ticket's (304, 412).
ACCEPTED = ["2xx", "304", "400", "404", "412", "422"]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}}}
)
OPERATIONS = [
    ("post", "/tickets"),
    ("get", "/tickets"),
    ("get", "/tickets/{ticket_id}"),
    ("post", "/tickets/{ticket_id}/comments"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
]
CHECKED = [  # those with invalid requests: any text may be an id
    ("post", "/tickets"),
    ("get", "/tickets"),
    ("post", "/tickets/{ticket_id}/comments"),
]


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """The desk in this process, read from its OpenAPI document."""
    yield schemathesis.openapi.from_asgi("/openapi.json", create(AppSettings(secret=SECRET)), config=CONFIG)
    shutdown_lifespans()


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        *((*operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        *((*operation, GenerationMode.NEGATIVE) for operation in CHECKED),
    ],
)
def test_every_operation_matches_its_schema(
    schema: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """Valid requests succeed or get a declared error, invalid ones are refused, and every response is as declared."""
    operation = schema[path][method.upper()]
    made = schema["/tickets"]["POST"].Case(
        body={"caller_id": "c", "issue_description": "x"}, media_type="application/json"
    )
    known = made.call().json()["ticket_id"]
    turns = iter(range(1_000_000))

    @seed(5)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given_(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and case.path_parameters and next(turns) % 2:
            case.path_parameters["ticket_id"] = known
        case.call_and_validate()

    send()


def test_the_document_lists_four_operations() -> None:
    """OpenAPI 3.1 with the four operations and the service's own, each with its problems."""
    document = create(AppSettings(secret=SECRET)).openapi()

    operations = [(method, path) for path, item in document["paths"].items() for method in item]
    assert sorted(operations) == sorted(OPERATIONS)
    assert document["openapi"].startswith("3.1")
    comment = document["paths"]["/tickets/{ticket_id}/comments"]["post"]["responses"]
    assert {"201", "404", "412", "413", "415", "422"} <= set(comment)
