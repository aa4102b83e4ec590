"""The page: the table of known differences in docs/reference/fidelity.md, made from known.toml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tests.differential.known import Row
from tests.differential.opponents import ROOT

PAGE = ROOT / "docs" / "reference" / "fidelity.md"
BEGIN = "<!-- made by `python -m tests.differential --page` from tests/differential/known.toml -->"
END = "<!-- end of what is made -->"
_WIDTH_MAX = 150
_COMMON = "ValidationException: "


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown, a table for each noun."""
    parts: list[str] = []
    for noun, members in groupby(rows, key=lambda row: row.noun):
        parts.append(f"### {noun.capitalize()}\n")
        parts.append("| What | Tavola | DynamoDB Local | As AWS | How we know |\n|---|---|---|---|---|")
        parts.extend(_line(row) for row in members)
        parts.append("")
    return "\n".join(parts).rstrip()


def _line(row: Row) -> str:
    cells = (row.what, _told(row.tavola, row), _told(row.local, row), row.right, row.source)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _told(choices: Iterable[str], row: Row) -> str:
    member = "" if row.place == "refusal" else f"{row.place.strip('…')}: "
    return " or ".join(_short(member + words) for words in choices)


def _short(words: str) -> str:
    """A text as code, without the name of the most common error, cut where a reader has understood."""
    plain = words.removeprefix(_COMMON)
    if plain in {"accepted", "nothing"}:
        return plain
    return "`" + (plain if len(plain) <= _WIDTH_MAX else plain[:_WIDTH_MAX].rstrip("…") + "…") + "`"


def made_part(text: str) -> str:
    """Return the part of a page between the two marks."""
    return text.partition(BEGIN)[2].partition(END)[0].strip()


def write_page(rows: Sequence[Row]) -> None:
    """Put the table into docs/reference/fidelity.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}", encoding="utf-8")
