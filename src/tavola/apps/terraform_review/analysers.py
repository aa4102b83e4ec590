"""Analysers: what reads a folder of Terraform and says what it found there.

The port, and what every analyser shares: the folder's sources, what a finding is before it is stored, and the score
that findings come to. Knows no program; `checkov` is one that fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol

from tavola import TavolaError
from tavola.apps.terraform_review.domain import HIGH_FROM, MEDIUM_FROM, Category, Severity

FILES_MAX: Final = 2_000
FOLDER_BYTES_MAX: Final = 20_000_000
PATH_CHARACTERS_MAX: Final = 1_000

_CODE: Final = (".tf", ".tf.json")
_VALUES: Final = (".tfvars", ".tfvars.json")  # read by the analyser, never kept: they are where passwords are
_ODD: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and bytes that are no UTF-8

# Where the score begins with the worst finding, and how much each one adds; see `risk_of`.
_BEGINS: Final = {Severity.HIGH: float(HIGH_FROM), Severity.MEDIUM: float(MEDIUM_FROM), Severity.LOW: 0.1}
_POINTS: Final = {Severity.HIGH: 5.0, Severity.MEDIUM: 2.0, Severity.LOW: 0.5}
_HALVING_POINTS: Final = 40.0


class AnalyserError(TavolaError):
    """An analysis that could not begin: no such folder, no Terraform in it, no such program. Nothing is stored."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that an analyser found, before it is stored."""

    category: Category
    severity: Severity
    title: str
    description: str
    rule_id: str  # what the analyser calls it
    file_path: str
    line_number: int | None
    recommendation: str
    confidence: Decimal  # 0 to 1


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Why a run gave no result that can be trusted whole."""

    kind: str  # "timeout", "exit", "output", "unreadable-code"
    message: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run came to. With a breakdown there are no findings: half a result looks like a good one."""

    analyser: str  # name and version
    findings: tuple[Found, ...]
    resource_count: int
    breakdown: Breakdown | None = None
    skipped_count: int = 0  # checks that comments in the code switched off


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a folder: its path from there, with `/`, and its text."""

    path: str
    text: str
    kept: bool  # False: values of variables, which may be secret


class Analyser(Protocol):
    """Says what is wrong with Terraform code."""

    async def analyse(self, sources: tuple[Source, ...]) -> Analysis:
        """Return what was found; raise AnalyserError where the analyser cannot be run at all."""
        ...


def read_folder(folder: Path) -> tuple[Source, ...]:
    """Return the Terraform files of a folder and the folders in it, sorted by path.

    Folders whose names begin with a dot (`.terraform`, `.git`) and symbolic links are left out: what is reviewed is
    what is in this folder.
    """
    if not folder.is_dir():
        raise AnalyserError(f"{folder} is no folder; give one that holds Terraform files")
    found: list[Source] = []
    left = FOLDER_BYTES_MAX
    for path in _walk(folder):
        kept = path.name.endswith(_CODE)
        if not kept and not path.name.endswith(_VALUES):
            continue
        name = path.relative_to(folder).as_posix()
        if len(name) > PATH_CHARACTERS_MAX or _ODD.search(name):
            raise AnalyserError(
                f"{_ODD.sub('?', name[:PATH_CHARACTERS_MAX])} is no name that a review can tell: it is longer than "
                f"{PATH_CHARACTERS_MAX:,} characters, not UTF-8, or has a control character in it; rename the file"
            )
        left -= _size(path)
        if left < 0 or len(found) == FILES_MAX:
            raise AnalyserError(
                f"{folder} holds more than {FILES_MAX} files or {FOLDER_BYTES_MAX // 1_000_000} MB of Terraform; "
                "analyse its parts as stacks of their own"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AnalyserError(f"{path} cannot be read as UTF-8 text: {error}") from error
        found.append(Source(name, text, kept))
    if not any(source.kept for source in found):
        raise AnalyserError(f"{folder} holds no Terraform: no file ends in {' or '.join(_CODE)}")
    return tuple(sorted(found, key=lambda source: source.path))


def code_of(sources: Iterable[Source]) -> str:
    """Return the code as one text, each file under a line with its path; values of variables are left out."""
    return "\n".join(
        f"# ==> {source.path} <==\n{source.text.rstrip()}\n" for source in sources if source.kept
    )


def risk_of(findings: Iterable[Found]) -> Decimal:
    """Return the risk, 0 to 1 in hundredths.

    It begins where the band of the worst finding does (high 0.7, medium 0.4, low 0.1) and covers half of what is left
    to 1 with every 40 points (high 5, medium 2, low 0.5, each times its confidence). So one hole is a high risk
    whatever else is in order, only a large heap of small things looks as bad, and more is never less.
    """
    known = list(findings)
    if not known:
        return Decimal(0)
    begins = max(_BEGINS[found.severity] for found in known)
    points = sum(_POINTS[found.severity] * float(found.confidence) for found in known)
    return Decimal(f"{begins + (1 - begins) * (1 - 2 ** (-points / _HALVING_POINTS)):.2f}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise AnalyserError(f"{path} cannot be read: {error.strerror}") from error


def _walk(folder: Path) -> Iterable[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise AnalyserError(f"{folder} cannot be read: {error.strerror}") from error
    for path in paths:
        if path.is_symlink():
            continue
        if path.is_dir():
            if not path.name.startswith("."):
                yield from _walk(path)
        elif path.is_file():
            yield path
