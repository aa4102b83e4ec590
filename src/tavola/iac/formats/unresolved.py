"""Values that only the deployment knows.

An `Unresolved` is not a string, although it has a text: a function that needs text, a list or a number cannot mistake it for one. It becomes
`${Stage}` only when a value is written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.iac.formats.errors import FormatRefused

TEXT_MAX = 20_000  # of what references are resolved to: more is a circle or a jest


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that depends on the deployment, with the text it is written as."""

    text: str


def join_parts(parts: Iterable[str | Unresolved]) -> str | Unresolved:
    """Return texts joined into one, unresolved if one of them is."""
    several = list(parts)
    text = "".join(each.text if isinstance(each, Unresolved) else each for each in several)
    if len(text) > TEXT_MAX:
        raise FormatRefused(f"its references make a text of more than {TEXT_MAX:,} characters; write it out")
    return Unresolved(text) if any(isinstance(each, Unresolved) for each in several) else text


def is_resolved(value: Any) -> bool:
    """Return whether a value contains nothing unresolved."""
    match value:
        case Unresolved():
            return False
        case Mapping():
            return all(map(is_resolved, value.values()))
        case list():
            return all(map(is_resolved, value))
        case _:
            return True


def as_text_part(value: Any) -> str | Unresolved | None:
    """Return a value as part of a text: text, a number or boolean as spelled, or unresolved; None for anything else."""
    match value:
        case str() | Unresolved():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None


def as_text(value: Any) -> str | None:
    """Return a value as text, `${Stage}` if it is unresolved; None if it is not text."""
    found = as_text_part(value)
    return found.text if isinstance(found, Unresolved) else found


def as_plain_data(value: Any) -> Any:
    """Return data as JSON has it, with unresolved values as text."""
    match value:
        case Unresolved():
            return value.text
        case Mapping():
            return {str(name): as_plain_data(each) for name, each in value.items()}
        case list() | tuple():
            return [as_plain_data(each) for each in value]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return str(value)
