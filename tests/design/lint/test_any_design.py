"""Whatever a design says that is a design, lint answers: findings or none, and never an error.

Designs of the applications, the gallery and the documents are changed at random, as documents: numbers become nothing
or very large, flags turn, members and elements go. What is still a design is linted.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tavola.design.findings import SEVERITIES
from tavola.design.lint import RULES, lint
from tavola.model.document import DocumentRefused, design_document, read_document, write_document

MODULES = (
    "tavola.apps.service_desk.model",
    "tavola.apps.gallery.metrics",
    "tavola.apps.gallery.iot_series",
    "tavola.apps.gallery.tenancy",
    "tavola.apps.gallery.profiles",
)
SEEDS = ("support_desk", "terraform_review", "common_patterns", "service_desk")
NUMBERS = (0, 1, 3, 100, 409_600, 10**9, 10**30, 0.001, 1e9, 1e300)
TEXTS = (
    "",
    "*",
    "float",
    "naive datetime",
    "epoch-milliseconds",
    "NEW_IMAGE",
    "arn:aws:dynamodb:*:*:table/*",
    "${x}",
)


@cache
def documents() -> tuple[dict[str, Any], ...]:
    """The documents that are changed."""
    told = [design_document(import_module(name)) for name in MODULES]
    seeds = [import_module(f"tests.design.seeds.{name}").DESIGN for name in SEEDS]
    return (*told, *map(write_document, seeds))


def places(told: Any) -> Iterator[tuple[Any, Any]]:
    """Give every place of a document: what it stands in, and where there."""
    listed = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    for at, inside in listed:
        yield told, at
        yield from places(inside)


def change(document: dict[str, Any], draw: tuple[int, int, bool]) -> None:
    """Change a document at one place: take it away, or put something else there of a like kind."""
    which, what, gone = draw
    found = list(places(document))
    holder, at = found[which % len(found)]
    told = holder[at]
    if gone:
        del holder[at]
    elif isinstance(told, bool):
        holder[at] = not told
    elif isinstance(told, int | float) or told is None:
        holder[at] = NUMBERS[what % len(NUMBERS)]
    elif isinstance(told, str):
        holder[at] = TEXTS[what % len(TEXTS)]
    elif isinstance(told, list) and told:
        holder[at] = told * 2 if what % 2 else told[:1]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(
    st.integers(0, len(MODULES) + len(SEEDS) - 1),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**3), st.booleans()), max_size=6),
    st.booleans(),
)
def test_lint_answers_of_any_design(
    which: int, changes: list[tuple[int, int, bool]], production: bool
) -> None:
    """A document that is read as a design is linted without an error, and what is found is whole."""
    document = deepcopy(documents()[which])
    for draw in changes:
        before = deepcopy(document)
        change(document, draw)
        try:
            read_document(document)
        except DocumentRefused:
            document = before

    report = lint(read_document(document), production=production)

    for finding in report.findings:
        assert finding.rule in RULES
        assert finding.severity in SEVERITIES
        assert all((finding.message, finding.remedy, str(finding.place)))


def test_an_empty_design_is_linted() -> None:
    """A design of nothing is a design."""
    design = read_document({"format": "tavola-design", "version": 1, "tables": []})

    assert {finding.rule for finding in lint(design).findings} == {"table-without-entities"}
