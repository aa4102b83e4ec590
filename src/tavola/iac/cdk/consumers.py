"""The stream consumers of a stack: functions, event sources and failure destinations."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cdk.python_text import PythonCall, PythonCode, Value, render_assignment, render_statement
from tavola.iac.cdk.scope import SELF, StackNames, grant_statement, parameter, prefix_name
from tavola.iac.plan import QUEUE_SECONDS, ConsumerPlan

_DAY_S = 24 * 3600


def consumer_lines(consumers: tuple[ConsumerPlan, ...], scope: StackNames) -> Iterator[str]:
    """Yield the lines that create the consumers, with parameters for their code."""
    if any(not consumer.existing_function for consumer in consumers):
        bucket = parameter("CodeBucketName", "The bucket with the code of the functions.")
        imported = PythonCall(
            "s3.Bucket.from_bucket_name", (SELF, "CodeBucket", PythonCode("code_bucket_name.value_as_string"))
        )
        yield render_assignment("code_bucket_name", bucket, 2)
        yield render_assignment("code_bucket", imported, 2)
    for consumer in consumers:
        yield from _lines(consumer, scope)


def _lines(consumer: ConsumerPlan, scope: StackNames) -> Iterator[str]:
    name = consumer.function
    if consumer.created_destination is not None:
        yield render_assignment(scope.failures(name), _destination(consumer, scope), 2)
    if consumer.existing_function:
        yield render_assignment(scope.function(name), _existing_function(consumer, scope), 2)
    else:
        yield from _create_function(consumer, scope)
    yield render_statement(
        PythonCall(f"{scope.function(name)}.add_event_source", (_source(consumer, scope),)), 2
    )


def _existing_function(consumer: ConsumerPlan, scope: StackNames) -> PythonCall:
    """Return an existing function, by name or ARN."""
    id_ = scope.id(consumer.function, "function")
    if consumer.existing_function.startswith("arn:"):
        arguments: dict[str, Value] = {"function_arn": consumer.existing_function, "same_environment": True}
        return PythonCall("lambda_.Function.from_function_attributes", (SELF, id_), arguments)
    return PythonCall("lambda_.Function.from_function_name", (SELF, id_, consumer.existing_function))


def _create_function(consumer: ConsumerPlan, scope: StackNames) -> Iterator[str]:
    name = consumer.function
    settings = consumer.settings
    key = scope.name(name, "code", "key").removeprefix("self.")
    zip_file = parameter(scope.id(name, "code", "key"), f"The zip file of {name} in that bucket.")
    yield render_assignment(key, zip_file, 2)
    logs = PythonCall(
        "logs.LogGroup",
        (SELF, scope.id(name, "logs")),
        {
            "log_group_name": prefix_name(name, "/aws/lambda/"),
            "retention": PythonCode("logs.RetentionDays.ONE_MONTH"),
        },
    )
    grants: list[Value] = [grant_statement(grant, scope) for grant in consumer.grants]
    code = PythonCall(
        "lambda_.Code.from_bucket", (PythonCode("code_bucket"), PythonCode(f"{key}.value_as_string"))
    )
    function = PythonCall(
        "lambda_.Function",
        (SELF, scope.id(name, "function")),
        {
            "function_name": prefix_name(name),
            "runtime": PythonCode("lambda_.Runtime.PYTHON_3_13"),
            "handler": consumer.handler,
            "code": code,
            "timeout": PythonCall("cdk.Duration.seconds", (settings.timeout_s,)),
            "memory_size": settings.memory_mb,
            "log_group": logs,
            "initial_policy": grants,
        },
    )
    yield render_assignment(scope.function(name), function, 2)


def _source(consumer: ConsumerPlan, scope: StackNames) -> PythonCall:
    settings = consumer.settings
    arguments: dict[str, Value] = {
        "starting_position": PythonCode(f"lambda_.StartingPosition.{settings.starting}"),
        "batch_size": settings.batch_size,
        "max_batching_window": PythonCall("cdk.Duration.seconds", (settings.window_s,)),
        "parallelization_factor": settings.parallelization,
        "bisect_batch_on_error": settings.bisect,
        "report_batch_item_failures": settings.report_batch_item_failures,
    }
    if settings.retries >= 0:
        arguments["retry_attempts"] = settings.retries
    if settings.max_age_s >= 0:
        arguments["max_record_age"] = PythonCall("cdk.Duration.seconds", (settings.max_age_s,))
    if consumer.patterns:
        # A pattern is the text that Lambda reads; the CDK's own helper would write a text of a text.
        arguments["filters"] = [{"pattern": pattern} for pattern in consumer.patterns]
    if consumer.failure_service is not None:
        arguments["on_failure"] = _on_failure(consumer, scope)
    return PythonCall(
        "event_sources.DynamoEventSource", (PythonCode(scope.table(consumer.table)),), arguments
    )


def _on_failure(consumer: ConsumerPlan, scope: StackNames) -> PythonCall:
    class_name = {"sqs": "SqsDlq", "sns": "SnsDlq", "s3": "S3OnFailureDestination"}[
        consumer.failure_service or "sqs"
    ]
    if consumer.created_destination is not None:
        return PythonCall(f"event_sources.{class_name}", (PythonCode(scope.failures(consumer.function)),))
    importers = {
        "sqs": "sqs.Queue.from_queue_arn",
        "sns": "sns.Topic.from_topic_arn",
        "s3": "s3.Bucket.from_bucket_arn",
    }
    imported = PythonCall(
        importers[consumer.failure_service or "sqs"],
        (SELF, scope.id(consumer.function, "failures"), consumer.destination_arn),
    )
    return PythonCall(f"event_sources.{class_name}", (imported,))


def _destination(consumer: ConsumerPlan, scope: StackNames) -> PythonCall:
    id_ = scope.id(consumer.function, "failures")
    match consumer.created_destination:
        case "sqs":
            arguments: dict[str, Value] = {
                "encryption": PythonCode("sqs.QueueEncryption.SQS_MANAGED"),
                "enforce_ssl": True,
                "retention_period": PythonCall("cdk.Duration.days", (QUEUE_SECONDS // _DAY_S,)),
                "removal_policy": PythonCode("cdk.RemovalPolicy.RETAIN"),
            }
            return PythonCall("sqs.Queue", (SELF, id_), arguments)
        case "sns":
            return PythonCall("sns.Topic", (SELF, id_), {"enforce_ssl": True})
        case _:
            return PythonCall(
                "s3.Bucket",
                (SELF, id_),
                {
                    "encryption": PythonCode("s3.BucketEncryption.S3_MANAGED"),
                    "block_public_access": PythonCode("s3.BlockPublicAccess.BLOCK_ALL"),
                    "enforce_ssl": True,
                    "removal_policy": PythonCode("cdk.RemovalPolicy.RETAIN"),
                },
            )
