"""Whatever is sent, the desk answers what its OpenAPI document says it answers, and never with a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.python.asgi import shutdown_lifespans

from tavola.apps.shell import AppSettings
from tavola.apps.support_desk.web import create
from tests.apps.support_desk.desks import SECRET

EXAMPLES = 12
STEPS = 12
# Beside 2xx, what a schema cannot say: a cursor that was not given here, questions that do not go together (400), nobody's
# key (401, 403), a status that may not follow (409), an ETag that is or is not the ticket's (304, 412, 428), an embedding of
# another length (422).
ACCEPTED = ["2xx", "304", "400", "401", "403", "404", "409", "412", "422", "428"]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}}}
)
OPEN = ("/healthz", "/readyz", "/metrics")  # without parameters
BOUNDS: dict[str, Any] = {
    "derandomize": True,
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """The desk in this process, by its document."""
    yield schemathesis.openapi.from_asgi("/openapi.json", create(AppSettings(secret=SECRET)), config=CONFIG)
    shutdown_lifespans()


def operations() -> list[tuple[str, str]]:
    """Return every operation of the document."""
    document = create(AppSettings(secret=SECRET)).openapi()
    return [(method, path) for path, item in document["paths"].items() for method in item]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_keeps_to_its_schema(
    schema: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """What is right is done or told why not, what is wrong is refused, and every answer is as declared."""
    if mode is GenerationMode.NEGATIVE and path in OPEN:
        return
    body = {"customer_id": "cust-001", "symptom_text": "x"}
    known = (
        schema["/tickets"]["POST"].Case(body=body, media_type="application/json").call().json()["ticket_id"]
    )
    turns = iter(range(1_000_000))

    @settings(max_examples=EXAMPLES, **BOUNDS)
    @given(case=schema[path][method.upper()].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if (
            mode is GenerationMode.POSITIVE
            and "ticket_id" in (case.path_parameters or {})
            and next(turns) % 2
        ):
            case.path_parameters["ticket_id"] = known
        case.call_and_validate()

    ask()


def test_one_answer_leads_to_the_next_request(schema: Any) -> None:
    """What is opened or begun can be read, changed and ended by the links of the document."""
    bounded = settings(max_examples=6, stateful_step_count=STEPS, **BOUNDS)

    schema.as_state_machine().run(settings=bounded)


def test_the_document_is_whole() -> None:
    """OpenAPI 3.1; every operation has an id, a summary, a tag that is described, and its problems."""
    document = create(AppSettings(secret=SECRET)).openapi()

    assert document["openapi"].startswith("3.1")
    described = {tag["name"] for tag in document["tags"]}
    found = [operation for item in document["paths"].values() for operation in item.values()]
    assert len({operation["operationId"] for operation in found}) == len(found) >= 28
    for operation in found:
        assert operation["summary"]
        assert set(operation["tags"]) <= described
        assert "500" in operation["responses"]
    assert not [path for path in document["paths"] if path.startswith("/ui")]
    change = document["paths"]["/tickets/{ticket_id}"]["patch"]["responses"]
    assert {"200", "404", "409", "412", "422", "428"} <= set(change)
    assert document["components"]["securitySchemes"]["AccessKey"]["scheme"] == "basic"
