"""Source tree: the modules and packages of `tavola`, and the files of the repository, as the tests see them."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tavola"

# Skipped when git is not there to say what is ignored.
_MADE_BY_TOOLS = frozenset({"__pycache__", "node_modules", "dist", "build", "static", "peers", "raw"})
_DOT_FOLDERS_KEPT = frozenset({".ci", ".github"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One line that breaks a rule."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of the package: its dotted name, its tree and its text."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package directly under `tavola` that it belongs to; empty for `tavola` itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def file(self) -> str:
        """The path, relative to the repository."""
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else str(self.path)

    def find(self, node: ast.AST, message: str) -> Finding:
        """Return a finding at a node of this module."""
        return Finding(self.file, getattr(node, "lineno", 1), message)


def read_module(path: Path, package: Path = PACKAGE) -> Module:
    """Return one file of a package as a `Module`; a planted fault passes a package of its own."""
    relative = path.relative_to(package.parent).with_suffix("")
    parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
    text = path.read_text(encoding="utf-8")
    return Module(".".join(parts), path, text, ast.parse(text, str(path)))


@cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """Return every node of a module's tree; several detectors look at each."""
    return tuple(ast.walk(module.tree))


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, in the order of their paths."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if "node_modules" not in path.parts)
    return tuple(map(read_module, paths))


def packages(package: Path = PACKAGE) -> tuple[str, ...]:
    """Return the names of the folders directly under the package, in order."""
    return tuple(
        sorted(path.name for path in package.iterdir() if path.is_dir() and not path.name.startswith("_"))
    )


@cache
def repository_files() -> tuple[Path, ...]:
    """Return the files that are, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and (ROOT / ".git").exists():
        found = (ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
        return tuple(sorted(path for path in found if path.is_file()))
    return tuple(sorted(_walk(ROOT)))


def text_files() -> Iterator[tuple[Path, str]]:
    """Yield every committed text file with its text."""
    for path in repository_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        hidden = path.name.startswith(".") and path.name not in _DOT_FOLDERS_KEPT
        if path.is_dir() and not hidden and path.name not in _MADE_BY_TOOLS:
            yield from _walk(path)
        elif path.is_file():
            yield path
