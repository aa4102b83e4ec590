"""Pages, their URLs and their filters."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from jinja2 import UndefinedError

from tavola import ManualClock
from tavola.apps.shell import Link, Pages
from tavola.apps.shell.pages import (
    build_url,
    current,
    day,
    duration,
    money,
    number,
    percent,
    plural,
    size,
    when,
)
from tests.apps.shell.parts import NOW, sample

Served = Callable[[FastAPI], TestClient]

NAVIGATION = [Link("Tickets", "/ui/"), Link("Queue", "/ui/queue"), Link("Old", "/ui/queue/old")]


@pytest.fixture
def made() -> Callable[..., str]:
    """Render a text with the macros."""
    pages = Pages("Desk", clock=ManualClock(NOW.timestamp()))

    def render(text: str, **context: Any) -> str:
        source = '{% import "shell/macros.html" as ui with context %}' + text
        return pages.environment.from_string(source).render(context)

    return render


def test_assets_are_cached_forever(served: Served) -> None:
    """An asset's URL contains the digest of its content; an old URL still works but is not cached."""
    client = served(sample())
    found = re.search(r'href="(/ui/static/([0-9a-f]{16})/shell\.css)"', client.get("/ui/").text)
    assert found is not None

    answer = client.get(found[1])
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/css")
    old = client.get("/ui/static/0000000000000000/shell.css")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
    for path in ("/ui/static/x/nothing.css", "/ui/static/x/..%2fpages.py", "/ui/static/x/.."):
        assert client.get(path).status_code == 404


def test_a_page_has_nothing_inline(served: Served) -> None:
    """The content security policy forbids inline scripts and styles, and the pages have none."""
    client = served(sample())
    for path in ("/ui/", "/ui/api", "/ui/missing"):
        page = client.get(path, headers={"Accept": "text/html"}).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_values_are_escaped(made: Callable[..., str]) -> None:
    """A macro shows markup in a value as text."""
    bad = '<img src=x onerror="x">'
    page = made(
        "{{ ui.chip(bad) }}{{ ui.tile(bad, bad, bad) }}{{ ui.table(bad, [bad], [[bad]]) }}{{ ui.facts([(bad, bad)]) }}"
        "{{ ui.field('f', bad, bad, error=bad, hint=bad) }}{{ ui.field('g', bad, bad, kind='select', options=[bad]) }}"
        "{{ ui.error_summary({'f': bad}) }}{{ ui.differences([(bad, bad, bad)]) }}{{ ui.diff([('+', bad)]) }}{{ ui.code(bad) }}"
        "{{ ui.empty(bad, bad) }}{{ ui.notice(bad) }}{{ ui.crumbs([(bad, bad)]) }}{{ ui.pager(older=bad, shown=bad) }}"
        "{{ ui.timeline([{'at': now, 'title': bad, 'detail': bad, 'actor': bad, 'tone': ''}]) }}",
        bad=bad,
        now=NOW,
    )

    assert "<img" not in page
    assert "&lt;img" in page


def test_a_forgotten_value_is_an_error(made: Callable[..., str]) -> None:
    """A template that uses an undefined value fails instead of showing nothing."""
    with pytest.raises(UndefinedError):
        made("{{ forgotten }}")


def test_a_field_has_its_label_hint_and_error(made: Callable[..., str]) -> None:
    """An input is labelled and described by its hint and error."""
    page = made(
        "{{ ui.field('subject', 'Subject', 'Hi', error='Too short', hint='Say it in a line', required=true) }}"
    )

    assert '<label for="subject">' in page
    assert 'aria-describedby="subject-error subject-hint"' in page
    assert 'aria-invalid="true"' in page
    assert 'value="Hi"' in page


def test_a_list_without_entries_says_so(made: Callable[..., str]) -> None:
    """An empty list has a message."""
    assert "No events yet" in made("{{ ui.timeline([]) }}")
    assert "None yet" in made("{{ ui.table('t', ['a'], [], empty='None yet') }}")
    assert "No differences" in made("{{ ui.differences([]) }}")
    assert "href" not in made("{{ ui.pager(shown='20') }}")


@pytest.mark.parametrize(
    ("here", "label"),
    [
        ("/ui/", "Tickets"),
        ("/ui/queue", "Queue"),
        ("/ui/queue/7", "Queue"),
        ("/ui/queue/old/7", "Old"),
        ("/ui/x", None),
    ],
)
def test_the_navigation_marks_the_current_page(here: str, label: str | None) -> None:
    """The longest matching entry is current; the first page matches only itself."""
    assert [link.label for link in NAVIGATION if current(link, here, NAVIGATION)] == (
        [label] if label else []
    )


def test_a_url_is_quoted() -> None:
    """Paths are quoted below their base, and a query leaves out None."""
    assert build_url("/desk", "/ui/tickets/a b?c#d", {}) == "/desk/ui/tickets/a%20b%3Fc%23d"
    assert (
        build_url("", "/ui/", {"status": "in progress", "cursor": None, "q": "", "from_": 1})
        == "/ui/?status=in+progress&from=1"
    )
    assert build_url("", "/ui/", {"tag": ["a", "b"]}) == "/ui/?tag=a&tag=b"


def test_times_are_shown_in_utc() -> None:
    """A time is shown in UTC, whatever its zone, with its exact value in an attribute."""
    moment = datetime(2026, 11, 3, 1, 5, tzinfo=timezone(timedelta(hours=2)))

    assert when(moment) == '<time datetime="2026-11-02T23:05:00Z">2 Nov 2026, 23:05 UTC</time>'
    assert day(moment) == '<time datetime="2026-11-02">2 Nov 2026</time>'
    assert day(date(2026, 1, 31)) == '<time datetime="2026-01-31">31 Jan 2026</time>'
    assert when(None) == day(None) == "—"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (10, "just now"),
        (300, "5 minutes ago"),
        (3700, "1 hour ago"),
        (200_000, "2 days ago"),
        (-7300, "2 hours from now"),
        (9e7, "2 years ago"),
    ],
)
def test_ages_are_rounded(seconds: float, expected: str) -> None:
    """Ages in lists have one unit; the exact time is in the title."""
    pages = Pages("Desk", clock=ManualClock(NOW.timestamp()))
    text = pages.ago(datetime.fromtimestamp(NOW.timestamp() - seconds, UTC))

    assert f">{expected}</time>" in text
    assert 'title="' in text


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (0.0123, "12 ms"),
        (-30, "0 ms"),
        (59, "59 s"),
        (60, "1 min"),
        (3661, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (86_405, "1 d"),
        (timedelta(minutes=125), "2 h 5 min"),
        (Decimal("5.6"), "6 s"),
        (None, "—"),
    ],
)
def test_a_duration_has_two_units_at_most(span: Any, expected: str) -> None:
    """A duration has at most two units."""
    assert duration(span) == expected


def test_numbers_are_formatted() -> None:
    """Thousands have separators, fractions are percentages, bytes have units, nouns a plural."""
    assert (number(1284), number(Decimal("4.25")), number(4.256, 2), number(None)) == (
        "1,284",
        "4.2",
        "4.26",
        "—",
    )
    assert (percent(0.421), percent(0.4215, 1), percent(None)) == ("42%", "42.1%", "—")
    assert (size(12), size(2048), size(5 * 1024**2), size(3 * 1024**3), size(None)) == (
        "12 B",
        "2 KB",
        "5 MB",
        "3 GB",
        "—",
    )
    assert [money(Decimal(text)) for text in ("0", "12.5", "7151.664", "0.000338125", "-0.5")] == [
        "$0.00",
        "$12.50",
        "$7,151.66",
        "$0.00034",
        "-$0.50",
    ]
    assert (plural(1, "ticket"), plural(1200, "ticket"), plural(2, "entry", "entries")) == (
        "1 ticket",
        "1,200 tickets",
        "2 entries",
    )
