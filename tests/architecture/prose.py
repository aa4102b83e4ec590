"""What the pages say that can be checked: dotted names, links, and examples that run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.architecture.source_tree import Finding

_DOTTED = re.compile(r"(?<![\w./-])tavola(?:\.[A-Za-z_]\w*)+")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILES = frozenset({"tavola.toml", "tavola.db"})  # names of files, which read like names of modules


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page: its language, its marks, its text and its line."""

    language: str
    marks: frozenset[str]
    text: str
    line: int


def unknown_names(place: str, text: str) -> Iterator[Finding]:
    """Give each dotted name in a page that leads nowhere."""
    for match in _DOTTED.finditer(text):
        name = match.group()
        if name not in _FILES and not _resolves(name):
            yield Finding(place, _line(text, match.start()), f"{name} leads nowhere")


def broken_links(place: str, text: str, folder: Path) -> Iterator[Finding]:
    """Give each link of a page to a file that is not there."""
    for match in _LINK.finditer(text):
        target = match.group(1).partition("#")[0]
        here = target and "://" not in target and not target.startswith("mailto:")
        if here and not (folder / target).exists():
            yield Finding(place, _line(text, match.start()), f"{target} is not there")


def examples(text: str) -> tuple[Example, ...]:
    """Return the fenced blocks of a page, in order."""
    return tuple(
        Example(match[1], frozenset(match[2].split()), match[3], _line(text, match.start()))
        for match in _FENCE.finditer(text)
    )


def not_printed(blocks: Iterable[Example], output: str) -> Iterator[Example]:
    """Give each block marked `printed` whose lines are not in the output, in order; "…" stands for any text."""
    for block in blocks:
        if "printed" in block.marks and not re.search(output_pattern(block.text), output):
            yield block


def output_pattern(shown: str) -> str:
    """Return a regular expression for an output as a page shows it: "…" on a line of its own stands for any lines, otherwise for the rest of a line."""
    return re.escape(shown).replace("…\\\n", "(?s:.*)").replace("…", ".*")


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
