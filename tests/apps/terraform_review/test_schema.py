"""Whatever is sent, the review history answers what its OpenAPI document says it answers, and never with a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.python.asgi import shutdown_lifespans

from tavola import Engine
from tavola.apps.shell import AppSettings
from tavola.apps.terraform_review.web import create
from tests.apps.terraform_review.faces import SECRET, result_json

# Beside 2xx, what a schema cannot say: a cursor that was not given here or a text with a NUL (400), a range that ends before it
# begins, a failed review with a score (422), a status that cannot follow (409), an ETag that is or is not the review's (304, 412),
# a change without one (428: the header is optional in the document, so that the answer to its absence is this one).
ACCEPTED = ["2xx", "304", "400", "404", "409", "412", "422", "428"]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}}}
)
CHANGES = [
    ("post", "/reviews"),
    ("patch", "/reviews/{review_id}"),
    ("post", "/reviews/{review_id}/versions"),
    ("post", "/reviews/{review_id}/fixes"),
]
QUESTIONS = [
    "/reviews",
    "/reviews/{review_id}",
    "/reviews/{review_id}/versions",
    "/reviews/{review_id}/versions/{number}",
    "/reviews/{review_id}/diff",
    "/reviews/{review_id}/audit",
    "/reviews/{review_id}/verify",
    "/reviews/{review_id}/code",
    "/reviews/{review_id}/findings",
    "/runs/{run_id}/review",
    "/stacks",
    "/stacks/{stack_id}",
    "/stacks/{stack_id}/reviews",
    "/stacks/{stack_id}/latest",
    "/stacks/{stack_id}/issues",
    "/risk/days",
    "/risk/days/{day}",
    "/risk/high",
    "/issues",
    "/issues/{issue_hash}",
    "/issues/{issue_hash}/occurrences",
    "/actors/{actor}/audit",
    "/healthz",
    "/readyz",
    "/metrics",
]
CHECKED = [  # those with invalid requests: any text may be an id
    "/reviews",
    "/reviews/{review_id}/versions/{number}",
    "/reviews/{review_id}/diff",
    "/reviews/{review_id}/findings",
    "/stacks",
    "/stacks/{stack_id}/reviews",
    "/stacks/{stack_id}/issues",
    "/risk/days/{day}",
    "/risk/high",
    "/issues",
    "/actors/{actor}/audit",
]
KNOWN = {
    "stack_id": "prod-net",
    "run_id": "run-known",
    "number": 1,
    "actor": "eng-01",
}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The review history in this process, by its document; on an engine, for it is stopped after each test."""
    with Engine.open() as engine:
        application = create(
            AppSettings(target=engine, secret=SECRET, blobs=tmp_path_factory.mktemp("blobs"))
        )
        yield schemathesis.openapi.from_asgi("/openapi.json", application, config=CONFIG)
        shutdown_lifespans()


@pytest.fixture(scope="module")
def known(schema: Any) -> dict[str, Any]:
    """What stands in paths, of a review that is there."""
    body = result_json("run-known", "Bucket is public")
    made = schema["/reviews"]["POST"].Case(body=body, media_type="application/json").call().json()
    found = schema["/reviews/{review_id}/findings"]["GET"].Case(
        path_parameters={"review_id": made["review_id"]}
    )
    return {
        **KNOWN,
        "review_id": made["review_id"],
        "issue_hash": found.call().json()["items"][0]["issue_hash"],
    }


@pytest.mark.parametrize(
    ("method", "path", "mode", "examples"),
    [
        *((*change, GenerationMode.POSITIVE, 12) for change in CHANGES),
        *((*change, GenerationMode.NEGATIVE, 8) for change in CHANGES),
        *(("get", path, GenerationMode.POSITIVE, 8) for path in QUESTIONS),
        *(("get", path, GenerationMode.NEGATIVE, 6) for path in CHECKED),
    ],
)
def test_every_operation_keeps_to_its_schema(
    schema: Any, known: dict[str, Any], method: str, path: str, mode: GenerationMode, examples: int
) -> None:
    """Valid requests are done or told what is wrong with them; invalid ones are refused; every answer is as declared."""
    operation = schema[path][method.upper()]
    turns = iter(range(1_000_000))

    @seed(5)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and next(turns) % 2:
            for name in case.path_parameters or ():
                case.path_parameters[name] = known.get(name, case.path_parameters[name])
            if method != "get" and case.headers is not None:
                case.headers["If-Match"] = "*"
        case.call_and_validate()

    ask()


def test_every_operation_is_asked(schema: Any) -> None:
    """An operation that is added to the document is asked here as well."""
    told_of = {
        (method.lower(), path)
        for path, operations in schema.raw_schema["paths"].items()
        for method in operations
        if method in {"get", "post", "put", "patch", "delete"}
    }

    assert told_of == {*CHANGES, *(("get", path) for path in QUESTIONS)}
