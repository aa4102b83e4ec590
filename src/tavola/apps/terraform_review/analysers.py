"""Analysers: the interface of programs that check a folder of Terraform, and what all of them share.

Reads the files of the folder, defines a finding before it is stored, and computes the risk score. `checkov` implements the interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol

from tavola import TavolaError
from tavola.apps.terraform_review.domain import HIGH_FROM, MEDIUM_FROM, Category, FindingSeverity

FILES_MAX: Final = 2_000
FOLDER_BYTES_MAX: Final = 20_000_000
PATH_CHARACTERS_MAX: Final = 1_000

_CODE: Final = (".tf", ".tf.json")
# Given to the analyser but never stored: they may hold passwords
_VALUES: Final = (
    ".tfvars",
    ".tfvars.json",
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # control characters and invalid UTF-8

# The lowest score with a finding of this severity, and the points that each finding adds; see `risk_score`.
_LOWEST_SCORE: Final = {
    FindingSeverity.HIGH: float(HIGH_FROM),
    FindingSeverity.MEDIUM: float(MEDIUM_FROM),
    FindingSeverity.LOW: 0.1,
}
_POINTS: Final = {FindingSeverity.HIGH: 5.0, FindingSeverity.MEDIUM: 2.0, FindingSeverity.LOW: 0.5}
_HALVING_POINTS: Final = 40.0


class AnalyserError(TavolaError):
    """An analysis could not start: no such folder, no Terraform in it, no such program. Nothing is stored."""


@dataclass(frozen=True, slots=True)
class AnalyserFinding:
    """A finding of an analyser, before it is stored."""

    category: Category
    severity: FindingSeverity
    title: str
    description: str
    rule_id: str  # the analyser's id of the rule
    file_path: str
    line_number: int | None
    recommendation: str
    confidence: Decimal  # 0 to 1


@dataclass(frozen=True, slots=True)
class AnalysisFailure:
    """Why a run has no complete result."""

    kind: str  # "timeout", "exit", "output", "unreadable-code"
    message: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of a run. A failed run has no findings: an incomplete result would look like a good one."""

    analyser: str  # name and version
    findings: tuple[AnalyserFinding, ...]
    resource_count: int
    failure: AnalysisFailure | None = None
    skipped_count: int = 0  # checks that comments in the code suppress


@dataclass(frozen=True, slots=True)
class TerraformFile:
    """A file of the folder: its relative path, with `/`, and its text."""

    path: str
    text: str
    is_code: bool  # False: a file of variable values, which may be secret


class Analyser(Protocol):
    """Checks Terraform code."""

    async def analyse(self, sources: tuple[TerraformFile, ...]) -> Analysis:
        """Return the findings; raise `AnalyserError` if the analyser cannot be run at all."""
        ...


def read_folder(folder: Path) -> tuple[TerraformFile, ...]:
    """Return the Terraform files of a folder and the folders in it, sorted by path.

    Folders whose names begin with a dot (`.terraform`, `.git`) and symbolic links are left out, so that only files of this
    folder are reviewed.
    """
    if not folder.is_dir():
        raise AnalyserError(f"{folder} is not a folder; use one that contains Terraform files")
    files: list[TerraformFile] = []
    bytes_left = FOLDER_BYTES_MAX
    for path in _walk(folder):
        is_code = path.name.endswith(_CODE)
        if not is_code and not path.name.endswith(_VALUES):
            continue
        name = path.relative_to(folder).as_posix()
        if len(name) > PATH_CHARACTERS_MAX or _UNPRINTABLE.search(name):
            raise AnalyserError(
                f"{_UNPRINTABLE.sub('?', name[:PATH_CHARACTERS_MAX])} cannot be used as a file name: it is longer than "
                f"{PATH_CHARACTERS_MAX:,} characters, not UTF-8, or contains a control character; rename the file"
            )
        bytes_left -= _size(path)
        if bytes_left < 0 or len(files) == FILES_MAX:
            raise AnalyserError(
                f"{folder} contains more than {FILES_MAX} files or {FOLDER_BYTES_MAX // 1_000_000} MB of Terraform; "
                "analyse its subfolders as separate stacks"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AnalyserError(f"{path} cannot be read as UTF-8 text: {error}") from error
        files.append(TerraformFile(name, text, is_code))
    if not any(source.is_code for source in files):
        raise AnalyserError(f"{folder} contains no Terraform: no file name ends in {' or '.join(_CODE)}")
    return tuple(sorted(files, key=lambda source: source.path))


def join_code(sources: Iterable[TerraformFile]) -> str:
    """Return the code as one text, each file after a line with its path; variable values are left out."""
    return "\n".join(
        f"# ==> {source.path} <==\n{source.text.rstrip()}\n" for source in sources if source.is_code
    )


def risk_score(findings: Iterable[AnalyserFinding]) -> Decimal:
    """Return the risk from 0 to 1 in hundredths.

    The score starts at the lower end of the worst finding's band (high 0.7, medium 0.4, low 0.1). Findings add points (high 5,
    medium 2, low 0.5, each times its confidence), and every 40 points halve the distance to 1. So one severe finding is a high
    risk whatever else is fine, many small ones can be as risky, and more findings never lower the score.
    """
    all_findings = list(findings)
    if not all_findings:
        return Decimal(0)
    lowest = max(_LOWEST_SCORE[finding.severity] for finding in all_findings)
    points = sum(_POINTS[finding.severity] * float(finding.confidence) for finding in all_findings)
    return Decimal(f"{lowest + (1 - lowest) * (1 - 2 ** (-points / _HALVING_POINTS)):.2f}")


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
