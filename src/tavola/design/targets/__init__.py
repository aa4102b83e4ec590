"""Targets: the engines that speak DynamoDB's API, what each can do, and whether a design asks for more.

Holds a dated file for each engine, the capabilities that a design uses with the place that needs each, the check of
one against the other, and the probe that finds out by small calls what a server can do. What nobody knows is told
as unknown, never as fine.
"""

from tavola.design.targets.capabilities import (
    Answer,
    Capability,
    TargetFile,
    TargetUnknown,
    TargetUnreadable,
    Value,
    capabilities,
    parse_target,
    target_named,
    targets,
    write_target,
)
from tavola.design.targets.check import Verdict, check, findings_of
from tavola.design.targets.probe import ProbeFailed, probe
from tavola.design.targets.uses import Use, uses_of

__all__ = [
    "Answer",
    "Capability",
    "ProbeFailed",
    "TargetFile",
    "TargetUnknown",
    "TargetUnreadable",
    "Use",
    "Value",
    "Verdict",
    "capabilities",
    "check",
    "findings_of",
    "parse_target",
    "probe",
    "target_named",
    "targets",
    "uses_of",
    "write_target",
]
