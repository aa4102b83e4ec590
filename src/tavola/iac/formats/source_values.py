"""Read single values of other tools' files, which may be numbers as text, unresolved, or of the wrong type.

A value that cannot be used is noted, and reading continues as if it were absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.iac.formats.import_result import FormatError, ImportReport


class LazyValues:
    """Computes each named value once; a value that depends on itself is refused."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._opened: list[str] = []

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the value of a name; `work` computes it and may request other names."""
        if name in self._known:
            return self._known[name]
        if name in self._opened:
            cycle = " → ".join([*self._opened[self._opened.index(name) :], name])
            raise FormatError(f"circular reference: {cycle}", name)
        self._opened.append(name)
        try:
            self._known[name] = work()
        finally:
            self._opened.pop()
        return self._known[name]


TEXT_MAX = 20_000  # characters of a text with its references resolved


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that depends on the deployment, with the text it is written as."""

    text: str


def join_parts(parts: Iterable[str | Unresolved]) -> str | Unresolved:
    """Return texts joined into one, unresolved if one of them is."""
    all_parts = list(parts)
    text = "".join(part.text if isinstance(part, Unresolved) else part for part in all_parts)
    if len(text) > TEXT_MAX:
        raise FormatError(f"its references resolve to more than {TEXT_MAX:,} characters")
    return Unresolved(text) if any(isinstance(part, Unresolved) for part in all_parts) else text


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
    part = as_text_part(value)
    return part.text if isinstance(part, Unresolved) else part


def as_plain_data(value: Any) -> Any:
    """Return data as JSON has it, with unresolved values as text."""
    match value:
        case Unresolved():
            return value.text
        case Mapping():
            return {str(name): as_plain_data(member) for name, member in value.items()}
        case list() | tuple():
            return [as_plain_data(element) for element in value]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return str(value)


NOT_IMPORTED = "not imported"


class TrackedMapping(Mapping[str, Any]):
    """A mapping, and those inside it; testing for a member does not count as reading it."""

    __slots__ = ("_raw", "_read_names")

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = {str(name): track(value) for name, value in raw.items()}
        self._read_names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = self._raw[name]
        self._read_names.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def unread(self, ignore: Collection[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the path and the unread members of each mapping.

        `ignore` are names that say nothing about a design; empty values are ignored too.
        """
        unread_names = tuple(
            name
            for name, value in self._raw.items()
            if name not in self._read_names and name not in ignore and not _is_empty(value)
        )
        if unread_names:
            yield "", unread_names
        for name in self._raw:
            if name in self._read_names:
                yield from _unread(self._raw[name], f".{name}", ignore)


def track(value: Any) -> Any:
    """Return a value whose mappings record what is read."""
    if isinstance(value, TrackedMapping):
        return value
    if isinstance(value, Mapping):
        return TrackedMapping(value)
    if isinstance(value, list):
        return [track(element) for element in value]
    return value


def report_unread(
    value: Any, place: str, report: ImportReport, *, ignore: Collection[str] = (), why: str = NOT_IMPORTED
) -> None:
    """Add a note for every member that was not read."""
    for path, names in _unread(value, "", ignore):
        where = f"{place}{path}" if place else path.removeprefix(".")
        verb = "is" if len(names) == 1 else "are"
        report.add(where, f"{', '.join(names)} {verb} {why}")


def _unread(value: Any, path: str, ignore: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(value, TrackedMapping):
        for inner, names in value.unread(ignore):
            yield f"{path}{inner}", names
    elif isinstance(value, list):
        for position, element in enumerate(value):
            yield from _unread(element, f"{path}[{position}]" if len(value) > 1 else path, ignore)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, TrackedMapping | list) and not value)


def require_name(
    raw: Mapping[str, Any], member: str, place: str, *, what: str = "a name", spelling: str = ""
) -> str:
    """Return a text that must be present; `spelling` is the file's own name for the member."""
    text = as_text(raw.get(member))
    if not text:
        raise FormatError(f"{spelling or member} is missing or not text; set it to {what}", place)
    return text


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
        self.report.add(
            place,
            f"ignored {show_value(value)}: expected a whole number{f' of at least {least}' if least else ''}",
        )
        return None

    def flag(self, value: Any, place: str) -> bool:
        """Return whether something is switched on; an undecidable value counts as off."""
        switch = parse_switch(value)
        if switch is None:
            self.report.add(place, f"{show_value(value)} is not true or false; using false")
        return bool(switch)

    def setting(self, value: Any, place: str) -> bool | None:
        """Return whether a setting is on; None if only the deployment knows."""
        switch = parse_switch(value)
        if switch is None:
            self.report.add(
                place, f"{show_value(value)} cannot be resolved from the file; recorded as unknown"
            )
        return switch

    def text(self, value: Any, place: str) -> str | None:
        """Return a text; None if there is none."""
        text = as_text(value)
        if text is None and value is not None:
            self.report.add(place, f"ignored {show_value(value)}: expected text")
        return text

    def objects(self, value: Any, place: str) -> list[Mapping[str, Any]]:
        """Return a list of objects; a single object is a list of one."""
        elements = value if isinstance(value, list) else [] if value is None else [value]
        mappings = [element for element in elements if isinstance(element, Mapping)]
        if len(mappings) < len(elements):
            wrong = next(element for element in elements if not isinstance(element, Mapping))
            self.report.add(place, f"ignored {show_value(wrong)}: expected {self.report.object_noun}")
        return mappings

    def object(self, value: Any, place: str) -> Mapping[str, Any]:
        """Return an object, the first of several; an empty one if there is none."""
        objects = self.objects(value, place)
        if len(objects) > 1:
            self.report.add(place, f"{len(objects)} values where one is expected; using the first")
        return objects[0] if objects else {}

    def texts(self, value: Any, place: str) -> tuple[str, ...]:
        """Return a list of distinct texts."""
        elements = value if isinstance(value, list | tuple) else [] if value is None else [value]
        texts = [self.text(element, place) for element in elements]
        return tuple(dict.fromkeys(element for element in texts if element))


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
