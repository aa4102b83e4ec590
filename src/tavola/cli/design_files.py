"""Design files: the source files of the design that a command line names, with their text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tavola.cli.designs import DesignRefused, is_file, load_tables, shorten_path, split_design_name


def read_design_files(text: str) -> tuple[Any, ...]:
    """Return the source files of a design: the document itself, or the modules that declare it.

    A module without a file, and a file that is not text, are left out: findings in them have no line number.
    """
    from tavola.design.lint import SourceFile

    files = [
        SourceFile(shorten_path(path), content)
        for path in _paths(text)
        if (content := _content(path)) is not None
    ]
    return tuple(files)


def _paths(text: str) -> list[Path]:
    if is_file(text):
        path = Path(text)
        return [path] if path.is_file() else sorted(path.glob("*.tf"))
    from tavola.model import entities_of

    names = [split_design_name(text)[0]]
    try:
        tables = load_tables(text)
    except DesignRefused:
        tables = ()  # loading the design reports what is wrong
    names += [cls.__module__ for table in tables for cls in (table, *entities_of(table))]
    files = [getattr(sys.modules.get(name), "__file__", None) for name in dict.fromkeys(names)]
    return [Path(file) for file in files if file]


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
