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


class UnknownTarget(TavolaError):
    """No target has this name; `known` has the valid names."""

    code = "target-unknown"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(
            f"Unknown target {name!r}; choose one of {', '.join(known)}, or pass a file written by `tavola probe`"
        )


class InvalidTargetFile(TavolaError):
    """A target file that is invalid, and where."""

    code = "target-unreadable"

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature that a design or client may need."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class CapabilityAnswer:
    """A target's answer to one capability."""

    value: Value
    remark: str = ""  # the difference, and what to do instead
    since: str = ""  # first version with this value
    source: str = ""  # if different from the source of the target


UNKNOWN = CapabilityAnswer("unknown")


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A target and its answers."""

    name: str
    title: str
    checked: datetime.date
    source: str
    answers: Mapping[str, CapabilityAnswer] = field(default_factory=dict)
    version: str = ""  # the version in question; empty: any

    def answer(self, capability: str) -> CapabilityAnswer:
        """Return the answer to a capability; one that depends on the version is resolved for the version in question."""
        declared_answer = self.answers.get(capability, UNKNOWN)
        if not declared_answer.since:
            return declared_answer
        if not self.version:
            return replace(
                declared_answer,
                value="version",
                remark=declared_answer.remark or f"since version {declared_answer.since}",
            )
        if _version_numbers(self.version) >= _version_numbers(declared_answer.since):
            return declared_answer
        return replace(
            declared_answer,
            value="no",
            remark=f"requires version {declared_answer.since}; this is {self.version}",
        )


@cache
def capabilities() -> Mapping[str, Capability]:
    """Return all capabilities by name, in order."""
    document = tomllib.loads((_FOLDER / _LIST).read_text("utf-8"))
    return {name: Capability(name, member["title"]) for name, member in document.items()}


@cache
def targets() -> Mapping[str, TargetFile]:
    """Return the targets that come with Tavola, by name; AWS is the first."""
    parsed = [
        parse_target(file.name, file.read_text("utf-8"))
        for file in sorted(_FOLDER.iterdir())
        if file.name != _LIST
    ]
    return {
        target.name: target
        for target in sorted(parsed, key=lambda target: (target.name != "aws", target.name))
    }


def find_target(text: str) -> TargetFile:
    """Return a target by name, such as `alternator` or `alternator@2026.1`, or from a file that a probe wrote."""
    name, _, version = text.partition("@")
    target = targets().get(name)
    if target is None and (text.endswith(".toml") or Path(text).is_file()):
        try:
            return parse_target(text, Path(text).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidTargetFile(
                text, f"cannot be read: {error}; pass a file written by `tavola probe`"
            ) from error
    if target is None:
        raise UnknownTarget(name, tuple(targets()))
    if version and not _version_numbers(version):
        raise InvalidTargetFile(text, f"invalid version {version!r}; write it as {name}@2026.1")
    return replace(target, version=version)


def parse_target(place: str, text: str) -> TargetFile:
    """Return the target in the text of a file. Raises InvalidTargetFile."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidTargetFile(place, f"invalid TOML: {error}") from error
    checked = document.get("checked")
    if type(checked) is not datetime.date:
        raise InvalidTargetFile(place, "checked must be a date, such as 2026-08-21")
    answers = document.get("capabilities", {})
    if not isinstance(answers, dict):
        raise InvalidTargetFile(place, "capabilities must be a table")
    return TargetFile(
        _parse_text(place, document, "name"),
        _parse_text(place, document, "title"),
        checked,
        _parse_text(place, document, "source"),
        {name: _parse_answer(f"{place}: {name}", name, answer) for name, answer in answers.items()},
    )


def write_target(target: TargetFile) -> str:
    """Return the text of a target file."""
    lines = [
        f"name = {_quote(target.name)}",
        f"title = {_quote(target.title)}",
        f"checked = {target.checked.isoformat()}",
        f"source = {_quote(target.source)}",
    ]
    for name, answer in target.answers.items():
        lines += ["", f"[capabilities.{_quote(name)}]", f"value = {_quote(answer.value)}"]
        lines += [
            f"{word} = {_quote(text)}"
            for word, text in (("remark", answer.remark), ("since", answer.since), ("source", answer.source))
            if text
        ]
    return "\n".join(lines) + "\n"


def _parse_answer(place: str, name: str, node: Any) -> CapabilityAnswer:
    if name not in capabilities():
        raise InvalidTargetFile(place, f"unknown capability; choose one of {', '.join(capabilities())}")
    value = node.get("value") if isinstance(node, dict) else None
    if value not in VALUES:
        raise InvalidTargetFile(place, f"value must be one of {', '.join(VALUES)}")
    texts = {word: node.get(word, "") for word in ("remark", "since", "source")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise InvalidTargetFile(place, "remark, since and source must be strings")
    if texts["since"] and not _version_numbers(texts["since"]):
        raise InvalidTargetFile(place, f"since must be a version, such as 2026.1, and not {texts['since']!r}")
    return CapabilityAnswer(value, **texts)


def _parse_text(place: str, node: dict[str, Any], member: str) -> str:
    text = node.get(member)
    if not isinstance(text, str) or not text:
        raise InvalidTargetFile(place, f"{member} must be a non-empty string")
    return text


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; empty if it is not a version."""
    parts = version.split(".")
    is_numeric = version.isascii() and all(part.isdigit() for part in parts)
    return tuple(int(part) for part in parts) if is_numeric else ()


def _quote(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(
            character if character.isprintable() else f"\\U{ord(character):08x}" for character in escaped
        )
        + '"'
    )
