"""The stream consumers of a module: functions, roles, event source mappings and failure destinations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tavola.iac.consumer_plan import FAILURE_ACTIONS, LOG_ACTIONS
from tavola.iac.plan import LOG_DAYS, QUEUE_SECONDS, RUNTIME, ConsumerPlan
from tavola.iac.terraform.hcl import (
    Entry,
    HclCall,
    HclExpression,
    OutputBlock,
    Value,
    append_text,
    prefix_name,
)
from tavola.iac.terraform.scope import (
    ModuleNames,
    block,
    data,
    document_json,
    grant_statement,
    principals,
    resource,
    statement,
    tag_entries,
)
from tavola.model.document import REPORT_BATCH_ITEM_FAILURES

PREFIX_MAX = 24  # a queue's name has 80 characters: `-failures-` takes 10, Terraform's suffix 26, the module's prefix 20


def code_variable(consumer: ConsumerPlan, scope: ModuleNames) -> str:
    """Return the variable with the S3 key of a function's code."""
    return f"{scope.function(consumer.function)}_code_key"


def policies_variable(consumer: ConsumerPlan, scope: ModuleNames) -> str:
    """Return the variable with additional policies of a function's role."""
    return f"{scope.function(consumer.function)}_policy_arns"


def consumer_blocks(
    consumer: ConsumerPlan, scope: ModuleNames, tags: Mapping[str, str]
) -> Iterator[OutputBlock]:
    """Yield a consumer's resources, referenced ones first; for an existing function only the mapping."""
    name = scope.function(consumer.function)
    yield from _destination(consumer, name, tags)
    if not consumer.existing_function:
        yield from _function(consumer, name, scope, tags)
    yield resource(
        "aws_lambda_event_source_mapping", name, *_mapping(consumer, name, scope), *tag_entries(tags)
    )


def _function(
    consumer: ConsumerPlan, name: str, scope: ModuleNames, tags: Mapping[str, str]
) -> Iterator[OutputBlock]:
    yield resource(
        "aws_cloudwatch_log_group",
        name,
        ("name", HclExpression(f'"/aws/lambda/${{var.prefix}}{consumer.function}"')),
        ("retention_in_days", LOG_DAYS),
        *tag_entries(tags),
    )
    yield from _role(consumer, name, scope, tags)
    yield resource(
        "aws_lambda_function",
        name,
        ("function_name", prefix_name(consumer.function)),
        ("runtime", RUNTIME),
        ("handler", consumer.handler),
        ("s3_bucket", HclExpression("var.code_bucket")),
        ("s3_key", HclExpression(f"var.{code_variable(consumer, scope)}")),
        ("role", HclExpression(f"aws_iam_role.{name}.arn")),
        ("timeout", consumer.settings.timeout_s),
        ("memory_size", consumer.settings.memory_mb),
        *tag_entries(tags),
        block(
            "logging_config",
            ("log_format", "Text"),
            ("log_group", HclExpression(f"aws_cloudwatch_log_group.{name}.name")),
        ),
    )


def _mapping(consumer: ConsumerPlan, name: str, scope: ModuleNames) -> Iterator[Entry]:
    settings = consumer.settings
    yield "event_source_arn", scope.table(consumer.table, "stream_arn")
    yield "function_name", consumer.existing_function or HclExpression(f"aws_lambda_function.{name}.arn")
    yield "starting_position", settings.starting
    yield "batch_size", settings.batch_size
    yield "maximum_batching_window_in_seconds", settings.window_s
    yield "parallelization_factor", settings.parallelization
    yield "bisect_batch_on_function_error", settings.bisect
    yield "maximum_retry_attempts", settings.retries
    yield "maximum_record_age_in_seconds", settings.max_age_s
    if settings.report_batch_item_failures:
        yield "function_response_types", [REPORT_BATCH_ITEM_FAILURES]
    if consumer.patterns:
        filters = (
            block("filter", ("pattern", HclCall("jsonencode", _encodable(json.loads(pattern)))))
            for pattern in consumer.patterns
        )
        yield block("filter_criteria", *filters)
    if consumer.failure_service is not None:
        arn = _destination_arn(consumer, scope)
        yield block("destination_config", block("on_failure", ("destination_arn", arn)))
    if not consumer.existing_function:
        yield "depends_on", [HclExpression(f"aws_iam_role_policy.{name}")]


def _encodable(data: Any) -> Value:
    """Return JSON as an HCL value, which `jsonencode` turns into JSON again."""
    match data:
        case dict():
            return {key: _encodable(value) for key, value in data.items()}
        case list():
            return [_encodable(value) for value in data]
        case str() | bool() | int():
            return data
        case _:
            return HclExpression(json.dumps(data))


def _role(
    consumer: ConsumerPlan, name: str, scope: ModuleNames, tags: Mapping[str, str]
) -> Iterator[OutputBlock]:
    trust, document = scope.document(consumer.function, "trust"), scope.document(consumer.function)
    yield data(
        "aws_iam_policy_document",
        trust,
        statement(("actions", ["sts:AssumeRole"]), principals("Service", "lambda.amazonaws.com")),
    )
    statements = [grant_statement(grant, scope) for grant in consumer.grants]
    log_group = HclExpression(f"aws_cloudwatch_log_group.{name}.arn")
    logs: list[Value] = [append_text(log_group, ":*")]
    statements.append(statement(("sid", "Logs"), ("actions", list(LOG_ACTIONS)), ("resources", logs)))
    if consumer.failure_service is not None:
        statements.append(_failures_statement(consumer, scope))
    yield data("aws_iam_policy_document", document, *statements)
    yield resource(
        "aws_iam_role",
        name,
        ("name", prefix_name(consumer.function)),
        ("description", f"Role of {consumer.function}."),
        ("assume_role_policy", document_json(trust)),
        *tag_entries(tags),
    )
    yield resource(
        "aws_iam_role_policy",
        name,
        ("name", "consumer"),
        ("role", HclExpression(f"aws_iam_role.{name}.id")),
        ("policy", document_json(document)),
    )
    yield resource(
        "aws_iam_role_policy_attachment",
        name,
        ("for_each", HclExpression(f"toset(var.{policies_variable(consumer, scope)})")),
        None,
        ("role", HclExpression(f"aws_iam_role.{name}.name")),
        ("policy_arn", HclExpression("each.value")),
    )


def _failures_statement(consumer: ConsumerPlan, scope: ModuleNames) -> OutputBlock:
    arn = _destination_arn(consumer, scope)
    service = consumer.failure_service or "sqs"
    resources = [arn]
    if service == "s3":
        resources.append(append_text(arn, "/*") if isinstance(arn, HclExpression) else f"{arn}/*")
    return statement(
        ("sid", "Failures"), ("actions", list(FAILURE_ACTIONS[service])), ("resources", resources)
    )


def _destination_arn(consumer: ConsumerPlan, scope: ModuleNames) -> Value:
    if consumer.created_destination is None:
        return consumer.destination_arn
    return scope.destination(consumer.function, consumer.created_destination, "arn")


def _destination(consumer: ConsumerPlan, name: str, tags: Mapping[str, str]) -> Iterator[OutputBlock]:
    prefix = ("name_prefix", prefix_name(f"{consumer.function[:PREFIX_MAX]}-failures-"))
    match consumer.created_destination:
        case "sqs":
            retention = ("message_retention_seconds", QUEUE_SECONDS)
            encrypted = ("sqs_managed_sse_enabled", True)
            yield resource(
                "aws_sqs_queue", f"{name}_failures", prefix, retention, encrypted, *tag_entries(tags)
            )
        case "sns":
            encrypted_by = ("kms_master_key_id", "alias/aws/sns")
            yield resource("aws_sns_topic", f"{name}_failures", prefix, encrypted_by, *tag_entries(tags))
        case "s3":
            bucket = HclExpression(f"aws_s3_bucket.{name}_failures.id")
            yield resource("aws_s3_bucket", f"{name}_failures", *tag_entries(tags))
            settings = (
                "block_public_acls",
                "block_public_policy",
                "ignore_public_acls",
                "restrict_public_buckets",
            )
            yield resource(
                "aws_s3_bucket_public_access_block",
                f"{name}_failures",
                ("bucket", bucket),
                *((word, True) for word in settings),
            )
        case _:
            pass
