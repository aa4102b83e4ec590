"""Check: what a design needs, held against what a target can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tavola.design.findings import Finding, Severity
from tavola.design.targets.capabilities import Answer, TargetFile, capabilities
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
    """One use of a capability, and what the target says to it."""

    use: FeatureUse
    answer: Answer

    @property
    def met(self) -> bool:
        """Whether the target has it, just so."""
        return self.answer.value == "yes"


def check(design: Design, target: TargetFile) -> tuple[Verdict, ...]:
    """Return what a target says to each use that a design makes of it, in the order of the design."""
    return tuple(Verdict(use, target.answer(use.capability)) for use in find_uses(design))


def unmet_findings(verdicts: Iterable[Verdict], target: TargetFile) -> tuple[Finding, ...]:
    """Return what is not met as findings: what is not there is an error, what differs or is unknown a warning."""
    return tuple(_finding(verdict, target) for verdict in verdicts if not verdict.met)


def _finding(verdict: Verdict, target: TargetFile) -> Finding:
    use, answer = verdict.use, verdict.answer
    title = capabilities()[use.capability].title
    said = {
        "no": f"{target.title} has none of it",
        "partial": f"on {target.title} it is otherwise",
        "version": f"on {target.title} it depends on the version",
        "unknown": f"whether {target.title} has it is unknown",
    }[answer.value]
    message = f"it {use.what}: {title}; {said}"
    if answer.told:
        message += f": {answer.told}"
    remedy = (
        "find out with `tavola probe --endpoint URL` before you rely on it"
        if answer.value in ("unknown", "version")
        else "do without it there, or stay with a target that has it"
    )
    return Finding(f"target-{use.capability}", _SEVERITIES[answer.value], use.place, message, remedy)
