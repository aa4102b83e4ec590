"""Targets: implementations of the DynamoDB API, their capabilities, and whether a design needs more.

One dated file per implementation, the capabilities that a design uses, the check of a design against a target, and the probe,
which finds the capabilities of an endpoint with small calls. What is not known is reported as unknown, never as supported.
"""

from tavola.design.targets.capabilities import (
    Capability,
    CapabilityAnswer,
    InvalidTargetFile,
    TargetFile,
    UnknownTarget,
    Value,
    capabilities,
    find_target,
    parse_target,
    targets,
    write_target,
)
from tavola.design.targets.check import Verdict, check, unmet_findings
from tavola.design.targets.probe import ProbeError, probe
from tavola.design.targets.uses import FeatureUse, find_uses

__all__ = [
    "Capability",
    "CapabilityAnswer",
    "FeatureUse",
    "InvalidTargetFile",
    "ProbeError",
    "TargetFile",
    "UnknownTarget",
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
