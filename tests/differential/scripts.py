"""Scripts: requests in a form that a person can read, and how they become JSON bodies.

A script is a text file. A line that begins with `#` states the rule that the requests under it ask about;
a request is an operation and a body, going on over indented lines:

    # A condition that is false refuses the write.
    PutItem {TableName: t, Item: {pk: {S: a}}, ConditionExpression: "attribute_not_exists(pk)"}

The body is JSON with fewer quotes: a bare word is text, unless it is a number, `true`, `false` or `null`.
Under S, N, B and their sets a bare word is always text; `=5` is the JSON literal even there. `a^2049` is a
text of 2049 letters; `[…]^101` is a list of 101 elements, in which `%d` counts from 0. `Query*` follows
every page. What follows `!` is sent as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
_TEXTUAL = frozenset({"S", "N", "B", "SS", "NS", "BS"})
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\^\d+|[{}\[\],:])')
_WORD = re.compile(r"\s*([^\s{}\[\],:\"]+)")
_KEY = re.compile(r"\s*(:?[^\s{}\[\],:\"]+)")


class ScriptError(Exception):
    """A script that cannot be read; str() says where."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and whether every page of its answer is followed."""

    operation: str
    request: dict[str, Any] | None  # None: the body is sent as it is
    body: bytes
    rule: str = ""
    follow: bool = False

    @property
    def table(self) -> str | None:
        """The table that a single request names."""
        name = (self.request or {}).get("TableName")
        return name if isinstance(name, str) else None

    def told(self) -> str:
        """The request in a line."""
        return f"{self.operation}{'*' if self.follow else ''} {self.body.decode(errors='replace')}"


def step(operation: str, request: dict[str, Any], rule: str = "", *, follow: bool = False) -> Step:
    """Return a step that sends a request as JSON."""
    return Step(operation, request, json.dumps(request).encode(), rule, follow)


def corpus() -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Give each script of the corpus by its noun."""
    for path in sorted(CORPUS.glob("*.script")):
        yield path.stem, read_script(path.read_text(encoding="utf-8"), path.name)


def read_script(text: str, place: str = "script") -> tuple[Step, ...]:
    """Return the steps of a script in order."""
    steps: list[Step] = []
    rule: list[str] = []
    fresh = False
    for number, block in _blocks(text):
        if block.startswith("#"):
            rule = [block.lstrip("# ")] if fresh or not rule else [*rule, block.lstrip("# ")]
            fresh = False
            continue
        fresh = True
        found = re.fullmatch(r"([A-Za-z]+)(\*?)\s+(.*)", block, re.DOTALL)
        if not found:
            raise ScriptError(f"{place}:{number}: not a request: {block[:60]}")
        operation, star, body = found.groups()
        said = " ".join(rule)
        if body.startswith("!"):
            steps.append(Step(operation, None, body[1:].encode(), said))
            continue
        try:
            request = _Reader(body).whole()
        except ScriptError as error:
            raise ScriptError(f"{place}:{number}: {error}") from error
        steps.append(step(operation, request, said, follow=bool(star)))
    return tuple(steps)


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Give each comment line and each request with its indented lines, with its line number."""
    open_block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if open_block and (not line[:1].isspace() or not line.strip()):
            yield start, "\n".join(open_block)
            open_block = []
        if line.startswith("#"):
            yield number, line
        elif line.strip():
            if not open_block:
                start = number
            open_block.append(line.strip())


class _Reader:
    """Reads one body from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> dict[str, Any]:
        value = self._value(textual=False)
        if self._text[self._at :].strip():
            raise ScriptError(f"more after the body: {self._text[self._at : self._at + 40]}")
        if not isinstance(value, dict):
            raise ScriptError("a body is an object; write !… for anything else")
        return value

    def _take(self, *, key: bool = False) -> str:
        found = (_KEY.match(self._text, self._at) if key else None) or _TOKEN.match(self._text, self._at)
        found = found or _WORD.match(self._text, self._at)
        if not found:
            raise ScriptError("the body ends too early")
        self._at = found.end()
        return found[1]

    def _peek(self) -> str:
        return self._text[self._at :].lstrip()[:1]

    def _value(self, *, textual: bool) -> Any:
        token = self._take()
        if token == "{":
            return self._object()
        if token == "[":
            return self._list(textual)
        if token.startswith('"'):
            return json.loads(token)
        return _scalar(token, textual)

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._peek() != "}":
            key = self._take(key=True)
            name = json.loads(key) if key.startswith('"') else key
            if self._take() != ":":
                raise ScriptError(f"a colon is missing after {name}")
            found[name] = self._value(textual=name in _TEXTUAL)
            if self._peek() == ",":
                self._take()
        self._take()
        return found

    def _list(self, textual: bool) -> list[Any]:
        found: list[Any] = []
        while self._peek() != "]":
            found.append(self._value(textual=textual))
            if self._peek() == ",":
                self._take()
        self._take()
        if self._peek() != "^":
            return found
        times = int(self._take()[1:])
        return [_counted(each, index) for index in range(times) for each in found]


def _scalar(word: str, textual: bool) -> Any:
    if word.startswith("="):
        return json.loads(word[1:])
    if found := re.fullmatch(r"(.+?)\^(\d+)", word):
        return found[1] * int(found[2])
    if not textual:
        try:
            return json.loads(word)
        except ValueError:
            return word
    return word


def _counted(value: Any, index: int) -> Any:
    if isinstance(value, str):
        return value.replace("%d", str(index))
    if isinstance(value, dict):
        return {_counted(key, index): _counted(each, index) for key, each in value.items()}
    if isinstance(value, list):
        return [_counted(each, index) for each in value]
    return value
