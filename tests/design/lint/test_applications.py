"""The applications and the gallery lint clean: what is found in them was mended, or stands with its reason."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pytest

from tavola.apps import gallery
from tavola.design.lint import lint
from tavola.model import Table
from tavola.model.document import design_of, with_ignores

APPLICATIONS = [f"tavola.apps.{name}.model" for name in ("support_desk", "service_desk", "terraform_review")]


def _declares(name: str) -> bool:
    found = vars(import_module(name)).values()
    return any(
        isinstance(each, type) and issubclass(each, Table) and each.__module__ == name for each in found
    )


SAMPLES = [
    found.name
    for found in pkgutil.iter_modules(gallery.__path__, "tavola.apps.gallery.")
    if _declares(found.name)
]


@pytest.mark.parametrize("name", [*APPLICATIONS, *SAMPLES])
def test_our_own_designs_are_clean(name: str) -> None:
    """No rule finds anything in a design that we show, and every ignore in it says why."""
    module = import_module(name)
    design = with_ignores(design_of(module), [(name, inspect.getsource(module))])

    report = lint(design)

    assert [f"{each.place}: {each.rule}: {each.message}" for each in report.findings] == []
    assert all(ignore.reason for ignore in design.ignores)


def test_there_are_samples() -> None:
    """The gallery's designs are found, so that the test above is about them."""
    assert len(SAMPLES) >= 8
