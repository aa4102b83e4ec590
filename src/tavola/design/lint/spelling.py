"""Spelling: the settings in a suggested fix, as the user's own file names them.

Rules suggest fixes in the terms of a Python declaration (`recovery=True`). A design that was imported from Terraform or
CloudFormation has no such declaration, so its findings name the arguments and properties of that format instead. Only
settings of tables, indexes and consumers exist in those files; a fix that concerns access patterns is left as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from tavola.design.findings import Finding

FileFormat = Literal["terraform", "cloudformation"]

# Each pattern, and its replacement in Terraform and in CloudFormation. The first pattern that matches at a position counts.
_SPELLINGS: tuple[tuple[str, str, str], ...] = (
    (r"deletion_protection=True", "deletion_protection_enabled = true", "DeletionProtectionEnabled: true"),
    (
        r"recovery=True",
        "point_in_time_recovery { enabled = true }",
        "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}",
    ),
    (
        r'encryption="alias/…"',
        "a server_side_encryption block with enabled = true and kms_key_arn = …",
        "SSESpecification: {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: …}",
    ),
    (
        r"scaling=Scaling\(read_max=…, write_max=…\)",
        "an aws_appautoscaling_target and aws_appautoscaling_policy for each dimension",
        "an AWS::ApplicationAutoScaling::ScalableTarget and ScalingPolicy for each dimension",
    ),
    (
        r"retries=, failures= and bisect=True",
        "maximum_retry_attempts, destination_config and bisect_batch_on_function_error = true",
        "MaximumRetryAttempts, DestinationConfig and BisectBatchOnFunctionError: true",
    ),
    (
        r'failures="sqs"',
        "destination_config { on_failure { destination_arn = … } }",
        "DestinationConfig: {OnFailure: {Destination: …}}",
    ),
    (r"bisect=True", "bisect_batch_on_function_error = true", "BisectBatchOnFunctionError: true"),
    (
        r"report_batch_item_failures=True",
        'function_response_types = ["ReportBatchItemFailures"]',
        "FunctionResponseTypes: [ReportBatchItemFailures]",
    ),
    (
        r'stream="(\w+)"',
        r'stream_enabled = true and stream_view_type = "\1"',
        r"StreamSpecification: {StreamViewType: \1}",
    ),
    (
        r'ttl="([^"]+)"',
        r'a ttl block with enabled = true and attribute_name = "\1"',
        r"TimeToLiveSpecification: {Enabled: true, AttributeName: \1}",
    ),
    (r"\bttl=", "ttl.attribute_name", "TimeToLiveSpecification.AttributeName"),
    (r'projection="(\w+)"', r'projection_type = "\1"', r"Projection: {ProjectionType: \1}"),
)


def spell_for(finding: Finding, file_format: FileFormat) -> Finding:
    """Return a finding whose fix names settings as they are written in a file of this format."""
    remedy = finding.remedy
    for pattern, terraform, cloudformation in _SPELLINGS:
        remedy = re.sub(pattern, terraform if file_format == "terraform" else cloudformation, remedy)
    return finding if remedy == finding.remedy else replace(finding, remedy=remedy)
