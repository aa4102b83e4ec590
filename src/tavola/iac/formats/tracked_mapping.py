"""Members: an object of a foreign file that remembers which of its members were asked for.

Readers ask for what a design has a place for. Whatever else stands in the file is thereby known, to its last member,
and is told: there is no list of what is dropped that could be incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tavola.iac.formats.import_result import ImportReport

LEFT_OUT = "not read here; left out"


class TrackedMapping(Mapping[str, Any]):
    """An object, and those in it; to ask whether a member is there is not yet to read it."""

    __slots__ = ("_asked", "_raw")

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = {str(name): track(value) for name, value in raw.items()}
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = self._raw[name]
        self._asked.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def unread(self, ignore: Collection[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Give each object that has members nobody asked for, by its path, with their names.

        `beside` are names that say nothing of a design, wherever they stand; neither does what is empty.
        """
        left = tuple(
            name
            for name, value in self._raw.items()
            if name not in self._asked and name not in ignore and not _is_empty(value)
        )
        if left:
            yield "", left
        for name in self._raw:
            if name in self._asked:
                yield from _unread(self._raw[name], f".{name}", ignore)


def track(value: Any) -> Any:
    """Return a value whose objects remember what is asked of them."""
    if isinstance(value, TrackedMapping):
        return value
    if isinstance(value, Mapping):
        return TrackedMapping(value)
    if isinstance(value, list):
        return [track(each) for each in value]
    return value


def report_unread(
    value: Any, place: str, report: ImportReport, *, ignore: Collection[str] = (), why: str = LEFT_OUT
) -> None:
    """Keep a note of every member that nobody asked for."""
    for path, names in _unread(value, "", ignore):
        where = f"{place}{path}" if place else path.removeprefix(".")
        verb = "is" if len(names) == 1 else "are"
        report.add(where, f"{', '.join(names)} {verb} {why}")


def _unread(value: Any, path: str, beside: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(value, TrackedMapping):
        for inner, names in value.unread(beside):
            yield f"{path}{inner}", names
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _unread(each, f"{path}[{at}]" if len(value) > 1 else path, beside)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, TrackedMapping | list) and not value)
