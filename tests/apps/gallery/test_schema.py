"""For any request, the gallery's response matches its OpenAPI document and is never a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.python.asgi import shutdown_lifespans

from tavola.apps.gallery import SAMPLES
from tavola.apps.gallery.web import create
from tavola.apps.shell import AppSettings

EXAMPLES = 10
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404"]}}}
)


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """The gallery in this process, read from its OpenAPI document."""
    yield schemathesis.openapi.from_asgi("/openapi.json", create(AppSettings()), config=CONFIG)
    shutdown_lifespans()


def operations() -> list[tuple[str, str]]:
    """Return every operation of the document."""
    document = create(AppSettings()).openapi()
    return [(method, path) for path, item in document["paths"].items() for method in item]


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_matches_its_schema(schema: Any, method: str, path: str) -> None:
    """Existing and unknown names both get a declared response."""
    names = [(sample.name, each.name) for sample in SAMPLES.values() for each in sample.demonstrations]
    turns = iter(range(1_000_000))

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method.upper()].as_strategy())
    def send(case: Any) -> None:
        turn = next(turns)
        if turn % 2 and case.path_parameters:
            sample, demonstration = names[turn % len(names)]
            known = {"name": sample, "demonstration": demonstration}
            case.path_parameters.update({name: known[name] for name in case.path_parameters})
        case.call_and_validate()

    send()
