"""The patterns' suite, on the backends of the client's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tavola.patterns import Recipe
from tests.client.conftest import Awaited, clock, opened, served

__all__ = ["clock", "opened", "served"]


class _Waited:
    """A recipe on an asynchronous client whose verbs are waited for, so that one test serves both."""

    def __init__(self, recipe: Recipe[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._recipe = recipe
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._recipe, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            answer = found(*arguments, **options)
            return self._loop.run_until_complete(answer) if asyncio.iscoroutine(answer) else answer

        return call


@pytest.fixture
def made() -> Callable[..., Any]:
    """Make a recipe on whatever client a test has: `made(Counters, db, Visits)`."""

    def make(recipe: type[Recipe[Any]], db: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(db, Awaited):
            return _Waited(recipe(db._db, *arguments, **options), db._loop)
        return recipe(db, *arguments, **options)

    return make
