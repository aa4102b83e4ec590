"""Designs and reports as a terminal shows them."""

from __future__ import annotations

import click

from tavola import design_of
from tavola.cli.commands.design import render_page
from tavola.cli.terminal import align_columns, style_report
from tests.client import desk


def test_a_design_is_laid_out_for_the_width() -> None:
    """No line is wider than the terminal, key templates are not broken, and each entity has its key once."""
    shown = click.unstyle(render_page(design_of(desk), 80)).splitlines()

    assert shown[0] == "Table Desk"
    assert max(map(len, shown)) <= 80
    assert "  Ticket  STATUS#{status}#{shard} / {created_at}  (shards: 8 by hash)" in shown
    assert shown.count("  Ticket  TICKET#{ticket_id} / METADATA") == 1


def test_headings_and_money_are_styled() -> None:
    """The first line and the heads of tables are bold, amounts of money are green, and the text is unchanged."""
    report = "shop: a month\n\nline    a month\nreads   $1,204.50\n"
    styled = style_report(report)

    assert click.unstyle(styled) == report
    assert click.style("line    a month", bold=True) in styled
    assert click.style("$1,204.50", fg="green") in styled


def test_columns_are_aligned() -> None:
    """Every column is as wide as its widest cell; nothing is left at the end of a line."""
    lines = [
        click.unstyle(line) for line in align_columns([("NAME", "KIND"), ("a", "user"), ("long name", "x")])
    ]

    assert lines == ["NAME       KIND", "a          user", "long name  x"]
