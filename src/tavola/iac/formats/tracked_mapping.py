"""A mapping that records which of its members were read.

Readers read what a design has a place for. Everything else in the file is then known, down to the last member, and is reported; no
list of ignored members has to be maintained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tavola.iac.formats.import_result import ImportReport

LEFT_OUT = "not read here; left out"


class TrackedMapping(Mapping[str, Any]):
    """A mapping, and those inside it; testing for a member does not count as reading it."""

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
        """Yield the path and the unread members of each mapping.

        `ignore` are names that say nothing about a design; empty values are ignored too.
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
    """Return a value whose mappings record what is read."""
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
    """Add a note for every member that was not read."""
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
