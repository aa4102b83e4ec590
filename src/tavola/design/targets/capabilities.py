"""Capabilities, and the answers of targets to them, read from dated files.

A file is TOML: the target, the date and source, and an answer for each capability: yes, no, partial (different), version (depends
on the version) or unknown. Missing answers are unknown.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from tavola.errors import TavolaError

Value = Literal["yes", "no", "partial", "version", "unknown"]
VALUES: tuple[Value, ...] = get_args(Value)

_FOLDER = Path(__file__).parent / "files"
_LIST = "capabilities.toml"


class TargetUnknown(TavolaError):
    """A name that no target has; `known` has the valid names."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(
            f"there is no target {name!r}; there are {', '.join(known)}, or give the file that `tavola probe` wrote"
        )


class TargetUnreadable(TavolaError):
    """A target file that is invalid, and where."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature that a design or client may need."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A target's answer to one capability."""

    value: Value
    told: str = ""  # what is otherwise, and what to do instead
    since: str = ""  # the version from which on it is so
    source: str = ""  # where the target's own source does not say it


UNKNOWN = Answer("unknown")


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A target and its answers."""

    name: str
    title: str
    checked: datetime.date
    source: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    version: str = ""  # that is asked about; empty: any

    def answer(self, capability: str) -> Answer:
        """Return the answer to a capability; one that depends on the version is resolved for the version in question."""
        found = self.answers.get(capability, UNKNOWN)
        if not found.since:
            return found
        if not self.version:
            return replace(found, value="version", told=found.told or f"from version {found.since} on")
        if _version_numbers(self.version) >= _version_numbers(found.since):
            return found
        return replace(found, value="no", told=f"it comes with version {found.since}; this is {self.version}")


@cache
def capabilities() -> Mapping[str, Capability]:
    """Return all capabilities by name, in order."""
    document = tomllib.loads((_FOLDER / _LIST).read_text("utf-8"))
    return {name: Capability(name, each["title"]) for name, each in document.items()}


@cache
def targets() -> Mapping[str, TargetFile]:
    """Return the targets that come with Tavola, by name; AWS is the first."""
    found = [
        parse_target(file.name, file.read_text("utf-8"))
        for file in sorted(_FOLDER.iterdir())
        if file.name != _LIST
    ]
    return {target.name: target for target in sorted(found, key=lambda each: (each.name != "aws", each.name))}


def find_target(text: str) -> TargetFile:
    """Return a target by name, such as `alternator` or `alternator@2026.1`, or from a file that a probe wrote."""
    name, _, version = text.partition("@")
    found = targets().get(name)
    if found is None and (text.endswith(".toml") or Path(text).is_file()):
        try:
            return parse_target(text, Path(text).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise TargetUnreadable(
                text, f"it cannot be read: {error}; name a file that `tavola probe` wrote"
            ) from error
    if found is None:
        raise TargetUnknown(name, tuple(targets()))
    if version and not _version_numbers(version):
        raise TargetUnreadable(text, f"{version!r} is no version; give it as {name}@2026.1")
    return replace(found, version=version)


def parse_target(place: str, text: str) -> TargetFile:
    """Return the target in the text of a file. Raises TargetUnreadable."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetUnreadable(place, f"it is no TOML: {error}") from error
    checked = document.get("checked")
    if type(checked) is not datetime.date:
        raise TargetUnreadable(place, "checked must be a date, such as 2026-08-21")
    given = document.get("capabilities", {})
    if not isinstance(given, dict):
        raise TargetUnreadable(place, "capabilities must be a table of them")
    return TargetFile(
        _parse_text(place, document, "name"),
        _parse_text(place, document, "title"),
        checked,
        _parse_text(place, document, "source"),
        {name: _parse_answer(f"{place}: {name}", name, each) for name, each in given.items()},
    )


def write_target(target: TargetFile) -> str:
    """Return the text of a target file."""
    lines = [
        f"name = {_quoted(target.name)}",
        f"title = {_quoted(target.title)}",
        f"checked = {target.checked.isoformat()}",
        f"source = {_quoted(target.source)}",
    ]
    for name, answer in target.answers.items():
        lines += ["", f"[capabilities.{_quoted(name)}]", f"value = {_quoted(answer.value)}"]
        lines += [
            f"{word} = {_quoted(told)}"
            for word, told in (("told", answer.told), ("since", answer.since), ("source", answer.source))
            if told
        ]
    return "\n".join(lines) + "\n"


def _parse_answer(place: str, name: str, node: Any) -> Answer:
    if name not in capabilities():
        raise TargetUnreadable(place, f"there is no such capability; there are {', '.join(capabilities())}")
    value = node.get("value") if isinstance(node, dict) else None
    if value not in VALUES:
        raise TargetUnreadable(place, f"value must be one of {', '.join(VALUES)}")
    texts = {word: node.get(word, "") for word in ("told", "since", "source")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TargetUnreadable(place, "told, since and source must be text")
    if texts["since"] and not _version_numbers(texts["since"]):
        raise TargetUnreadable(place, f"since must be a version, such as 2026.1, and not {texts['since']!r}")
    return Answer(value, **texts)


def _parse_text(place: str, node: dict[str, Any], member: str) -> str:
    text = node.get(member)
    if not isinstance(text, str) or not text:
        raise TargetUnreadable(place, f"{member} must be a text")
    return text


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; empty if it is not a version."""
    parts = version.split(".")
    whole = version.isascii() and all(part.isdigit() for part in parts)
    return tuple(int(part) for part in parts) if whole else ()


def _quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in escaped) + '"'
