"""Defect: something that is wrong with a design as its document has it, and the rule that must say so."""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """A rule and the place where it must find something; `wrong` is the number on the list of what documents get wrong."""

    rule: str
    place: str
    wrong: int | None = None  # None: one of the documents' own Don'ts, or what a careful reader sees
