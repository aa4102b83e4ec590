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
    find_target,
    parse_target,
    targets,
    write_target,
)
from tavola.design.targets.check import Verdict, check, unmet_findings
from tavola.design.targets.probe import ProbeFailed, probe
from tavola.design.targets.uses import FeatureUse, find_uses

__all__ = [
    "Answer",
    "Capability",
    "FeatureUse",
    "ProbeFailed",
    "TargetFile",
    "TargetUnknown",
    "TargetUnreadable",
    "Value",
    "Verdict",
    "capabilities",
    "check",
    "find_target",
    "find_uses",
    "parse_target",
    "probe",
    "targets",
    "unmet_findings",
    "write_target",
]
