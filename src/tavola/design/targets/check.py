"""Checks the needs of a design against the capabilities of a target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tavola.design.findings import Finding, Severity
from tavola.design.targets.capabilities import CapabilityAnswer, TargetFile, capabilities
from tavola.design.targets.uses import FeatureUse, find_uses
from tavola.model.document import Design

_SEVERITIES: dict[str, Severity] = {
    "no": "error",
    "partial": "warning",
    "version": "warning",
    "unknown": "warning",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One use of a capability, and the answer of the target."""

    use: FeatureUse
    answer: CapabilityAnswer

    @property
    def is_met(self) -> bool:
        """Whether the target fully supports it."""
        return self.answer.value == "yes"


def check(design: Design, target: TargetFile) -> tuple[Verdict, ...]:
    """Return the answer of a target to each use in a design, in the order of the design."""
    return tuple(Verdict(use, target.answer(use.capability)) for use in find_uses(design))


def unmet_findings(verdicts: Iterable[Verdict], target: TargetFile) -> tuple[Finding, ...]:
    """Return findings for unmet uses: an error if unsupported, a warning if different or unknown."""
    return tuple(_finding(verdict, target) for verdict in verdicts if not verdict.is_met)


def _finding(verdict: Verdict, target: TargetFile) -> Finding:
    use, answer = verdict.use, verdict.answer
    title = capabilities()[use.capability].title
    difference = {
        "no": f"{target.title} does not support it",
        "partial": f"{target.title} behaves differently",
        "version": f"support in {target.title} depends on the version",
        "unknown": f"support in {target.title} is unknown",
    }[answer.value]
    message = f"{use.what[0].upper()}{use.what[1:]} ({title}), but {difference}"
    if answer.remark:
        message += f": {answer.remark}"
    remedy = (
        "Run `tavola probe --endpoint URL` to find out"
        if answer.value in ("unknown", "version")
        else "Avoid the feature, or use a target that supports it"
    )
    return Finding(f"target-{use.capability}", _SEVERITIES[answer.value], use.place, message, remedy)
