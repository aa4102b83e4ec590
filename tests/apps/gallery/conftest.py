"""What the gallery's tests share: a sample loaded on a target, and its demonstrations run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tavola import AsyncConnection, ValidationFault
from tavola.apps.gallery import SAMPLES, Told
from tests.apps.conftest import Run, Target

Shown = Callable[[str, str], tuple[Told, ...]]


@pytest.fixture
def db(target: Target, run: Run[Any]) -> Iterator[AsyncConnection]:
    """A connection to the target, on the test's loop."""

    async def opened() -> AsyncConnection:
        return target.connect()

    found = run(opened())
    yield found
    run(found.close())


def load(run: Run[Any], db: AsyncConnection, sample: str) -> None:
    """Load a sample; where the server is too old for an index of several attributes, there is nothing to test."""
    try:
        run(SAMPLES[sample].load(db))
    except ValidationFault as fault:
        if "Key Schema too big" not in str(fault):
            raise
        pytest.skip("this DynamoDB Local has no keys of several attributes")


@pytest.fixture
def shown(db: AsyncConnection, run: Run[Any]) -> Shown:
    """Run a demonstration of a sample and give its steps; the sample is loaded the first time."""
    loaded = set()

    def show(sample: str, demonstration: str) -> tuple[Told, ...]:
        if sample not in loaded:
            load(run, db, sample)
            loaded.add(sample)
        found = SAMPLES[sample].demonstration(demonstration)
        assert found is not None
        told: tuple[Told, ...] = run(found.run(db))
        return told

    return show
