"""Pages, their addresses and their filters."""

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
from tavola.apps.shell.pages import address, current, day, duration, number, percent, plural, size, when
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


def test_what_a_page_loads_is_kept_for_ever(served: Served) -> None:
    """A file's address has the digest of its content; an old address still works and is not kept."""
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
    """The policy of content forbids inline script and style, and the pages have none."""
    client = served(sample())
    for path in ("/ui/", "/ui/api", "/ui/missing"):
        page = client.get(path, headers={"Accept": "text/html"}).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_what_comes_from_outside_is_escaped(made: Callable[..., str]) -> None:
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
    """A template that names what it was not given fails, and shows no empty place."""
    with pytest.raises(UndefinedError):
        made("{{ forgotten }}")


def test_a_field_has_its_label_hint_and_error(made: Callable[..., str]) -> None:
    """An input is labelled and described by what stands beside it."""
    page = made(
        "{{ ui.field('subject', 'Subject', 'Hi', error='Too short', hint='Say it in a line', required=true) }}"
    )

    assert '<label for="subject">' in page
    assert 'aria-describedby="subject-error subject-hint"' in page
    assert 'aria-invalid="true"' in page
    assert 'value="Hi"' in page


def test_a_list_without_entries_says_so(made: Callable[..., str]) -> None:
    """No list is an empty box."""
    assert "Nothing has happened" in made("{{ ui.timeline([]) }}")
    assert "None yet" in made("{{ ui.table('t', ['a'], [], empty='None yet') }}")
    assert "Nothing differs" in made("{{ ui.differences([]) }}")
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
def test_the_navigation_says_where_one_is(here: str, label: str | None) -> None:
    """The longest entry that a page lies under is the current one; the first page stands for itself alone."""
    assert [link.label for link in NAVIGATION if current(link, here, NAVIGATION)] == (
        [label] if label else []
    )


def test_an_address_is_quoted() -> None:
    """Paths are quoted under their base, and a query leaves out what there is not."""
    assert address("/desk", "/ui/tickets/a b?c#d", {}) == "/desk/ui/tickets/a%20b%3Fc%23d"
    assert (
        address("", "/ui/", {"status": "in progress", "cursor": None, "q": "", "from_": 1})
        == "/ui/?status=in+progress&from=1"
    )
    assert address("", "/ui/", {"tag": ["a", "b"]}) == "/ui/?tag=a&tag=b"


def test_moments_are_told_in_utc() -> None:
    """A moment is told in UTC, whatever its zone, with its exact value beside it."""
    moment = datetime(2026, 11, 3, 1, 5, tzinfo=timezone(timedelta(hours=2)))

    assert when(moment) == '<time datetime="2026-11-02T23:05:00Z">2 Nov 2026, 23:05 UTC</time>'
    assert day(moment) == '<time datetime="2026-11-02">2 Nov 2026</time>'
    assert day(date(2026, 1, 31)) == '<time datetime="2026-01-31">31 Jan 2026</time>'
    assert when(None) == day(None) == "—"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (10, "just now"),
        (300, "5 min ago"),
        (3700, "1 hour ago"),
        (200_000, "2 days ago"),
        (-7300, "2 hours from now"),
        (9e7, "2 years ago"),
    ],
)
def test_how_long_ago_is_told_roughly(seconds: float, told: str) -> None:
    """One unit is enough for a list; the moment itself is in the title."""
    pages = Pages("Desk", clock=ManualClock(NOW.timestamp()))
    shown = pages.ago(datetime.fromtimestamp(NOW.timestamp() - seconds, UTC))

    assert f">{told}</time>" in shown
    assert 'title="' in shown


@pytest.mark.parametrize(
    ("span", "told"),
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
def test_a_duration_has_two_units_at_most(span: Any, told: str) -> None:
    """A duration is told as people say it."""
    assert duration(span) == told


def test_numbers_are_told_as_people_read_them() -> None:
    """Thousands are apart, shares are percentages, bytes have units, nouns their plural."""
    assert (number(1284), number(Decimal("4.25")), number(4.256, 2), number(None)) == (
        "1,284",
        "4.2",
        "4.26",
        "—",
    )
    assert (percent(0.421), percent(0.4215, 1), percent(None)) == ("42 %", "42.1 %", "—")
    assert (size(12), size(2048), size(5 * 1024**2), size(3 * 1024**3), size(None)) == (
        "12 B",
        "2.0 KB",
        "5.0 MB",
        "3.0 GB",
        "—",
    )
    assert (plural(1, "ticket"), plural(1200, "ticket"), plural(2, "entry", "entries")) == (
        "1 ticket",
        "1,200 tickets",
        "2 entries",
    )
