"""Fixtures of the gallery's tests: load a sample on a target and run its demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tavola import AsyncConnection, ValidationFault
from tavola.apps.gallery import SAMPLES, StepResult
from tests.apps.conftest import Run, Target

RunDemonstration = Callable[[str, str], tuple[StepResult, ...]]


@pytest.fixture
def db(target: Target, run: Run[Any]) -> Iterator[AsyncConnection]:
    """A connection to the target, on the test's loop."""

    async def opened() -> AsyncConnection:
        return target.connect()

    found = run(opened())
    yield found
    run(found.close())


def load(run: Run[Any], db: AsyncConnection, sample: str) -> None:
    """Load a sample; skip the test if the server is too old for indexes of several attributes."""
    try:
        run(SAMPLES[sample].load(db))
    except ValidationFault as fault:
        if "Key Schema too big" not in str(fault):
            raise
        pytest.skip("this DynamoDB Local has no keys of several attributes")


@pytest.fixture
def run_demonstration(db: AsyncConnection, run: Run[Any]) -> RunDemonstration:
    """Run a demonstration of a sample and return its steps; the sample is loaded the first time."""
    loaded = set()

    def show(sample: str, demonstration: str) -> tuple[StepResult, ...]:
        if sample not in loaded:
            load(run, db, sample)
            loaded.add(sample)
        found = SAMPLES[sample].demonstration(demonstration)
        assert found is not None
        steps: tuple[StepResult, ...] = run(found.run(db))
        return steps

    return show
