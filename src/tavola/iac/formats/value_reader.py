"""Read single values of foreign files, which may be numbers as text, unresolved, or of the wrong type.

A value that cannot be used is noted, and reading continues as if it were absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tavola.iac.formats.errors import FormatRefused
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.unresolved import as_plain_data, as_text


def require_name(
    raw: Mapping[str, Any], member: str, place: str, *, what: str = "a name", spelling: str = ""
) -> str:
    """Return a text that must be present; `spelling` is the file's name for the member."""
    found = as_text(raw.get(member))
    if not found:
        raise FormatRefused(f"it has no {spelling or member}; give it {what}", place)
    return found


def parse_switch(value: Any) -> bool | None:
    """Return whether a value means on or off, absence meaning off; None if it cannot be decided."""
    match value:
        case bool():
            return value
        case "true" | "True" | "TRUE" | "ENABLED" | "enabled":
            return True
        case None | "false" | "False" | "FALSE" | "DISABLED" | "disabled":
            return False
        case _:
            return None


class ValueReader:
    """Reads members of objects and notes each value that it cannot use."""

    def __init__(self, report: ImportReport) -> None:
        self.report = report

    def integer(self, value: Any, place: str, least: int = 0) -> int | None:
        """Return an integer; None if there is none."""
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
            value = int(value)
        if isinstance(value, float) and value == value and abs(value) < 1e18 and value == int(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 10**18:
            return value
        self.report.add(place, f"{show_value(value)} is no number that can be used, so it is left out")
        return None

    def flag(self, value: Any, place: str) -> bool:
        """Return whether something is switched on; an undecidable value counts as off."""
        found = parse_switch(value)
        if found is None:
            self.report.add(place, f"{show_value(value)} cannot be told, so it counts as off")
        return bool(found)

    def setting(self, value: Any, place: str) -> bool | None:
        """Return whether a setting is on; None if only the deployment knows."""
        found = parse_switch(value)
        if found is None:
            self.report.add(place, f"{show_value(value)} cannot be told, so it is unknown whether it is on")
        return found

    def text(self, value: Any, place: str) -> str | None:
        """Return a text; None if there is none."""
        found = as_text(value)
        if found is None and value is not None:
            self.report.add(place, f"{show_value(value)} is no text, so it is left out")
        return found

    def objects(self, value: Any, place: str) -> list[Mapping[str, Any]]:
        """Return a list of objects; a single object is a list of one."""
        several = value if isinstance(value, list) else [] if value is None else [value]
        found = [each for each in several if isinstance(each, Mapping)]
        if len(found) < len(several):
            wrong = next(each for each in several if not isinstance(each, Mapping))
            self.report.add(place, f"{show_value(wrong)} stands where an object is wanted, so it is left out")
        return found

    def object(self, value: Any, place: str) -> Mapping[str, Any]:
        """Return an object, the first of several; an empty one if there is none."""
        found = self.objects(value, place)
        if len(found) > 1:
            self.report.add(place, f"there are {len(found)} where one is wanted; the first is taken")
        return found[0] if found else {}

    def texts(self, value: Any, place: str) -> tuple[str, ...]:
        """Return a list of distinct texts."""
        several = value if isinstance(value, list | tuple) else [] if value is None else [value]
        found = [self.text(each, place) for each in several]
        return tuple(dict.fromkeys(each for each in found if each))


def show_value(value: Any) -> str:
    """Return a value as it appears in a message."""
    data = as_plain_data(value)
    if isinstance(data, str) and not isinstance(value, str):
        text = data  # unresolved: as it is written
    else:
        try:
            text = json.dumps(data, ensure_ascii=False)
        except ValueError:
            text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


def python_label(name: str, fallback: str = "Table") -> str:
    """Return a name in letters, digits and underscores."""
    label = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or fallback
    return f"_{label}" if label[0].isdigit() else label
