"""One suite for every place that a trigger can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.triggers.targets import NAMES, Target, opened


@pytest.fixture(params=NAMES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """An engine in memory, in a file, behind HTTP."""
    with opened(request.param, tmp_path) as found:
        yield found
