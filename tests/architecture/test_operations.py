"""The whole list: each operation that AWS's models know is built, or the page on fidelity has a row on it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection
from pathlib import Path

import botocore
import pytest

from tavola.engine.operations import HANDLERS
from tavola.protocol.operations import OPERATIONS

_DATA = Path(botocore.__file__).parent / "data"
_FIDELITY = Path(__file__).parents[2] / "docs" / "reference" / "fidelity.md"
_COUNTS = {"dynamodb": 62, "dynamodbstreams": 4}


def _operations(service: str) -> set[str]:
    packed = (_DATA / service / "2012-08-10" / "service-2.json.gz").read_bytes()
    return set(json.loads(gzip.decompress(packed))["operations"])


def _rows(page: str) -> set[str]:
    """Return the names in code at the start of a page's table rows."""
    return {
        name
        for line in page.splitlines()
        if line.startswith("|")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


def forgotten(known: Collection[str], built: Collection[str], told: Collection[str]) -> list[str]:
    """Return the operations that are neither built nor told of."""
    return sorted(set(known) - set(built) - set(told))


@pytest.mark.parametrize("service", sorted(_COUNTS))
def test_no_operation_is_forgotten(service: str) -> None:
    """Each has a handler, or a row that says what is answered instead."""
    known = _operations(service)
    built = {name for name in HANDLERS if OPERATIONS[name].request is not None}

    assert len(known) >= _COUNTS[service]
    assert forgotten(known, built, _rows(_FIDELITY.read_text())) == []


def test_nothing_is_built_that_aws_does_not_have() -> None:
    """A handler without an operation of AWS's is one of Tavola's own, and says so."""
    own = {name for name, operation in OPERATIONS.items() if operation.service == "tavola"}

    assert set(HANDLERS) - own == _operations("dynamodb") | _operations("dynamodbstreams")


def test_a_forgotten_operation_is_found() -> None:
    """The check names it; a handler or a row, and no other mention, is enough."""
    page = "# Page\n\n`Gamma` in prose.\n\n| Operation | Why |\n|---|---|\n| `Beta` | instead of `Delta` |\n"

    assert forgotten({"Alpha", "Beta", "Gamma", "Delta"}, {"Alpha"}, _rows(page)) == ["Delta", "Gamma"]
