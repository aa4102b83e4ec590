"""The reference pages say what the code says."""

from __future__ import annotations

from types import ModuleType

import pytest

import tavola
from tools import api, reference


def test_no_page_is_behind_the_code() -> None:
    """`make docs` would change nothing."""
    assert reference.outdated_pages() == []


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check names a page that the code has left behind."""
    monkeypatch.setattr(reference, "PAGES", {"limits.md": lambda: "# Limits\n\nnone\n"})

    assert reference.outdated_pages() == ["limits.md"]


def test_limits_are_told_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit stands under its group's comment, with its own remark; private helpers are left out."""
    module = ModuleType("limits")
    source = "# Sizes (DG).\n_KB = 1024\nITEM_MAX = 4 * _KB  # inclusive\n\n# Names.\nNAME_MAX = 3\n"
    exec(source, module.__dict__)
    monkeypatch.setattr(reference, "getsource", lambda _: source)

    assert list(reference._limit_groups(module)) == [
        ("Sizes (DG)", [("`ITEM_MAX`", "4,096", "inclusive")]),
        ("Names", [("`NAME_MAX`", "3", "")]),
    ]


def test_every_public_name_has_its_place() -> None:
    """A name that is made public is told on the page of the API, under a theme or among the exceptions."""
    assert api.documented_names() == set(tavola.__all__)
