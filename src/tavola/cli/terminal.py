"""Terminal: colours, aligned columns and wrapped text.

Text is always styled; `click.echo` removes the styles when the output is not a terminal, and when colour is off
(`--no-color`, `NO_COLOR`, `TERM=dumb`). So a pipe, a file and JSON output never contain escape codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import click

Role = Literal["heading", "error", "warning", "advice", "success", "money", "code", "muted"]

_STYLES: dict[Role, dict[str, Any]] = {
    "heading": {"bold": True},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "advice": {"fg": "cyan"},
    "success": {"fg": "green"},
    "money": {"fg": "green"},
    "code": {"fg": "cyan"},
    "muted": {"dim": True},
}
_MONEY = re.compile(r"\$[0-9][0-9,]*(?:\.[0-9]+)?")
_GAP = "  "


def style(text: str, role: Role) -> str:
    """Return text with the colours of a role."""
    return click.style(text, **_STYLES[role])


def is_color_off(environment: Mapping[str, str]) -> bool:
    """Return whether the environment turns colour off (https://no-color.org)."""
    return bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"


def style_report(text: str) -> str:
    """Return a plain-text report with table headings and amounts of money highlighted."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        starts_block = number == 0 or not lines[number - 1].strip()
        if starts_block and line and not line[0].isspace() and (number == 0 or _GAP in line):
            lines[number] = style(line, "heading")
        else:
            lines[number] = _MONEY.sub(lambda match: style(match[0], "money"), line)
    return "\n".join(lines)


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines with aligned columns; the first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield line if number else style(line, "heading")
