"""What mypy and pyright say of modules, and how that compares with what the modules expect of them.

A line that must be refused ends in `# error: …`. Where only one checker can see it, it says so and why:
`# mypy only: …`, `# pyright only: …`. Every other line must pass.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.architecture.prose import examples

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "typing"
DESK = ROOT / "tests" / "client" / "desk.py"
CACHE = ROOT / ".mypy_cache" / "typing"
PAGES = ("changes", "client", "explain", "model", "transactions")

Checker = Literal["mypy", "pyright"]
Mode = Literal["standard", "strict"]

_MARK = re.compile(r"#\s*(error|mypy only|pyright only):\s*(\S.*)$")
_MYPY = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: (?P<message>.*)$")
# Rules of style that would report a line whether it has its mistake or not.
_STYLE = ("reportUnusedExpression", "reportUnusedVariable", "reportUnusedClass", "reportUnusedCallResult")


@dataclass(frozen=True, slots=True, order=True)
class Report:
    """One complaint of a checker."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def passing() -> list[Path]:
    """Return the modules that must pass: the desk's design, and what is done with it and others."""
    return [DESK, *sorted(HERE.glob("ok_*.py"))]


def pages(folder: Path) -> list[Path]:
    """Return the Python of the guide's pages on the model and the client as modules, which must pass as well."""
    written = []
    for name in PAGES:
        text = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
        page = folder / f"page_{name}.py"
        blocks = [example.text for example in examples(text) if example.language == "python"]
        page.write_text("\n".join(blocks), encoding="utf-8")
        written.append(page)
    return written


def failing() -> list[Path]:
    """Return the modules with a mistake on each marked line."""
    return sorted(HERE.glob("bad_*.py"))


def marked(path: Path) -> dict[int, str]:
    """Return the lines of a module that must be refused, each with who can see it: both, mypy or pyright."""
    found: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT and (match := _MARK.search(token.string)):
            found[token.start[0]] = {"error": "both"}.get(match[1], match[1].removesuffix(" only"))
    return found


def differences(checker: Checker, paths: Iterable[Path], reports: Iterable[Report]) -> Iterator[Report]:
    """Give what a checker should have reported and did not, and what it reported and should not have."""
    by_place: dict[tuple[str, int], Report] = {}
    for report in reports:
        by_place.setdefault((report.file, report.line), report)
    for path in paths:
        due = {line for line, who in marked(path).items() if who in ("both", checker)}
        said = {line for file, line in by_place if file == path.name}
        for line in sorted(due - said):
            yield Report(path.name, line, f"{checker} sees nothing wrong here")
        for line in sorted(said - due):
            yield by_place[path.name, line]


def mypy(paths: Iterable[Path], settings: Path | None = None) -> list[Report]:
    """Return what `mypy --strict` says, with no settings of this repository's."""
    cache = CACHE if settings is None else CACHE / settings.stem
    ran = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", f"--config-file={settings or ''}", f"--cache-dir={cache}",
            "--namespace-packages", "--explicit-package-bases", "--follow-imports=silent",
            "--hide-error-context", "--no-color-output", "--no-error-summary", *map(str, paths),
        ],
        cwd=ROOT, env={**os.environ, "MYPYPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found = [match for line in ran.stdout.splitlines() if (match := _MYPY.match(line))]
    return sorted(Report(Path(m["file"]).name, int(m["line"]), m["message"]) for m in found)


def pyright(paths: Iterable[Path], mode: Mode, folder: Path) -> list[Report]:
    """Return what pyright says of copies of the modules in a folder; basedpyright brings it, with its own Node."""
    if find_spec("basedpyright") is None:
        pytest.skip("pyright is not installed: `pip install basedpyright`, or `make install`")
    names = [path.name for path in paths if path.parent == folder or shutil.copy(path, folder / path.name)]
    settings: dict[str, Any] = {
        "include": names,
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "typeCheckingMode": mode,
        "pythonVersion": ".".join(map(str, sys.version_info[:2])),
        **dict.fromkeys(_STYLE, "none"),
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(names), ran.stdout
    return sorted(
        Report(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in answer["generalDiagnostics"]
        if each["severity"] in ("error", "warning")
    )
