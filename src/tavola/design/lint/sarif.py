"""SARIF: a lint report in the OASIS format 2.1.0, for tools that show findings beside the code.

Suppressed findings are included with their reason. Files inside the repository have a relative path with the base id that
code hosts expect; others have an absolute URI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tavola.design.findings import Finding, Severity
from tavola.design.lint.locations import SourceFile, SourceLocation, find_locations, locate_place
from tavola.design.lint.rule import Rule
from tavola.design.lint.runner import LintReport
from tavola.model.document import Ignore

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "advice": "note"}


def sarif_log(
    report: LintReport,
    rules: Sequence[Rule],
    sources: Sequence[SourceFile],
    version: str,
    root: Path | None = None,
) -> dict[str, Any]:
    """Return a report as a SARIF log of one run, with findings at the lines of their declarations.

    `root` is the folder of the repository, else the current one.
    """
    base = (root or Path()).resolve()
    order = {rule.name: at for at, rule in enumerate(rules)}
    known = find_locations(sources)
    told: list[tuple[Finding, Ignore | None]] = [(finding, None) for finding in report.findings]
    told += report.ignored
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tavola",
                        "version": version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": f"{base.as_uri()}/"}},
                "results": [
                    _result(
                        finding,
                        ignore,
                        order[finding.rule],
                        locate_place(finding.place, known, sources),
                        base,
                    )
                    for finding, ignore in told
                ],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    text = f"{rule.why}\n\nFor example: {rule.example}\n\nInstead: {rule.remedy}"
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": text, "markdown": f"**{rule.title}**\n\n{text}"},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _artifact(file: str, base: Path) -> dict[str, str]:
    """Return a file's location relative to the repository, or absolute if it is outside."""
    path = Path(file).resolve()
    if path.is_relative_to(base):
        return {"uri": quote(path.relative_to(base).as_posix()), "uriBaseId": _ROOT}
    return {"uri": path.as_uri()}


def _result(
    finding: Finding, ignore: Ignore | None, at: int, location: SourceLocation | None, base: Path
) -> dict[str, Any]:
    place: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": finding.place.name, "kind": finding.place.kind}]
    }
    if location is not None:
        place["physicalLocation"] = {
            "artifactLocation": _artifact(location.file, base),
            "region": {"startLine": location.line},
        }
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": at,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{finding.place.name}: {finding.message}. To do: {finding.remedy}."},
        "locations": [place],
        "partialFingerprints": {"place/v1": f"{finding.rule}:{finding.place.table}:{finding.place.name}"},
    }
    if ignore is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": ignore.reason}]
    return result
