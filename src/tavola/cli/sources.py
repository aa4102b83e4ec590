"""Sources: the files of a design that a command line names, with their text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tavola.cli.designs import DesignRefused, is_file, load_tables, shown, split


def sources_of(text: str) -> tuple[Any, ...]:
    """Return the files of a design as the linter reads them: of a document itself, of a module those that declare it.

    A module without a file, or a file that is no text, has none: findings are then told without a line.
    """
    from tavola.design.lint import SourceFile

    told = [
        SourceFile(shown(path), content) for path in _paths(text) if (content := _content(path)) is not None
    ]
    return tuple(told)


def _paths(text: str) -> list[Path]:
    if is_file(text):
        path = Path(text)
        return [path] if path.is_file() else sorted(path.glob("*.tf"))
    from tavola.model import entities_of

    names = [split(text)[0]]
    try:
        tables = load_tables(text)
    except DesignRefused:
        tables = ()  # whoever loads the design says what is wrong
    names += [cls.__module__ for table in tables for cls in (table, *entities_of(table))]
    files = [getattr(sys.modules.get(name), "__file__", None) for name in dict.fromkeys(names)]
    return [Path(file) for file in files if file]


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
