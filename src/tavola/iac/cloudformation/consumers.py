"""The stream consumers of a template: functions, roles, event source mappings and failure destinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tavola.iac.cloudformation.scope import (
    RETAIN,
    Node,
    TemplateNames,
    attribute,
    literal_text,
    parameter,
    prefix_name,
    ref,
    resource,
    substitute,
    tags_property,
)
from tavola.iac.consumer_plan import FAILURE_ACTIONS, LOG_ACTIONS
from tavola.iac.grants import VERSION, render_statement
from tavola.iac.plan import LOG_DAYS, QUEUE_SECONDS, RUNTIME, ConsumerPlan
from tavola.model.document import REPORT_BATCH_ITEM_FAILURES

CODE_BUCKET = "CodeBucket"


def consumer_parameters(
    consumers: tuple[ConsumerPlan, ...], scope: TemplateNames
) -> Iterator[tuple[str, Node]]:
    """Yield the parameters for the functions' code and additional policies."""
    created = [consumer for consumer in consumers if not consumer.existing_function]
    if created:
        yield CODE_BUCKET, parameter("The bucket with the code of the functions.")
    for consumer in created:
        zip_file = parameter(f"The zip file of {consumer.function} in that bucket.")
        yield _code_key(consumer, scope), zip_file
        policies = f"The ARNs of additional policies for {consumer.function}."
        yield _policies(consumer, scope), parameter(policies, "CommaDelimitedList", Default="")


def consumer_conditions(
    consumers: tuple[ConsumerPlan, ...], scope: TemplateNames
) -> Iterator[tuple[str, Node]]:
    """Yield the conditions that a function has additional policies."""
    for consumer in consumers:
        if consumer.existing_function:
            continue
        joined = {"Fn::Join": ["", ref(_policies(consumer, scope))]}
        yield _has_policies(consumer, scope), {"Fn::Not": [{"Fn::Equals": [joined, ""]}]}


def consumer_resources(
    consumer: ConsumerPlan, scope: TemplateNames, tags: Mapping[str, str]
) -> Iterator[tuple[str, Node]]:
    """Yield a consumer's resources, referenced ones first; for an existing function only the mapping."""
    if consumer.created_destination is not None:
        destination = _destination(consumer)
        destination["Properties"] |= tags_property(tags)
        yield scope.destination(consumer.function), destination
    if not consumer.existing_function:
        yield from _function(consumer, scope, tags)
    yield scope.id(consumer.function, "mapping"), _mapping(consumer, scope, tags)


def _function(
    consumer: ConsumerPlan, scope: TemplateNames, tags: Mapping[str, str]
) -> Iterator[tuple[str, Node]]:
    function = scope.function(consumer.function)
    logs = scope.id(consumer.function, "logs")
    role = scope.id(consumer.function, "role")
    group = {
        "LogGroupName": prefix_name(consumer.function, "/aws/lambda/"),
        "RetentionInDays": LOG_DAYS,
        **tags_property(tags),
    }
    deletion = {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"}
    yield logs, resource("AWS::Logs::LogGroup", group, **deletion)
    yield role, _role(consumer, logs, scope, tags)
    properties = {
        "FunctionName": prefix_name(consumer.function),
        "Runtime": RUNTIME,
        "Handler": literal_text(consumer.handler),
        "Code": {"S3Bucket": ref(CODE_BUCKET), "S3Key": ref(_code_key(consumer, scope))},
        "Role": attribute(role, "Arn"),
        "Timeout": consumer.settings.timeout_s,
        "MemorySize": consumer.settings.memory_mb,
        "LoggingConfig": {"LogGroup": ref(logs)},
        **tags_property(tags),
    }
    yield function, resource("AWS::Lambda::Function", properties)


def _code_key(consumer: ConsumerPlan, scope: TemplateNames) -> str:
    return scope.id(consumer.function, "code", "key")


def _policies(consumer: ConsumerPlan, scope: TemplateNames) -> str:
    return scope.id(consumer.function, "policy", "arns")


def _has_policies(consumer: ConsumerPlan, scope: TemplateNames) -> str:
    return scope.id("has", consumer.function, "policies")


def _mapping(consumer: ConsumerPlan, scope: TemplateNames, tags: Mapping[str, str]) -> Node:
    settings = consumer.settings
    properties: Node = {
        "EventSourceArn": attribute(scope.table(consumer.table), "StreamArn"),
        "FunctionName": literal_text(consumer.existing_function)
        if consumer.existing_function
        else ref(scope.function(consumer.function)),
        "StartingPosition": settings.starting,
        "BatchSize": settings.batch_size,
        "MaximumBatchingWindowInSeconds": settings.window_s,
        "ParallelizationFactor": settings.parallelization,
        "BisectBatchOnFunctionError": settings.bisect,
        "MaximumRetryAttempts": settings.retries,
        "MaximumRecordAgeInSeconds": settings.max_age_s,
    }
    if settings.report_batch_item_failures:
        properties["FunctionResponseTypes"] = [REPORT_BATCH_ITEM_FAILURES]
    if consumer.patterns:
        filters = [{"Pattern": literal_text(pattern)} for pattern in consumer.patterns]
        properties["FilterCriteria"] = {"Filters": filters}
    if consumer.failure_service is not None:
        properties["DestinationConfig"] = {"OnFailure": {"Destination": _destination_arn(consumer, scope)}}
    return resource("AWS::Lambda::EventSourceMapping", properties | tags_property(tags))


def _role(consumer: ConsumerPlan, logs: str, scope: TemplateNames, tags: Mapping[str, str]) -> Node:
    statements = [render_statement(grant, scope.arn) for grant in consumer.grants]
    logs_arn = attribute(logs, "Arn")
    statements.append({"Sid": "Logs", "Effect": "Allow", "Action": list(LOG_ACTIONS), "Resource": logs_arn})
    if consumer.failure_service is not None:
        statements.append(_failures_statement(consumer, scope))
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    own_policies = [_has_policies(consumer, scope), ref(_policies(consumer, scope)), ref("AWS::NoValue")]
    document = {"Version": VERSION, "Statement": statements}
    properties = {
        "Description": literal_text(f"Role of {consumer.function}."),
        "AssumeRolePolicyDocument": {"Version": VERSION, "Statement": [trust]},
        "Policies": [{"PolicyName": "consumer", "PolicyDocument": document}],
        "ManagedPolicyArns": {"Fn::If": own_policies},
        **tags_property(tags),
    }
    return resource("AWS::IAM::Role", properties)


def _failures_statement(consumer: ConsumerPlan, scope: TemplateNames) -> Node:
    service = consumer.failure_service or "sqs"
    resources = [_destination_arn(consumer, scope)]
    if service == "s3":
        resources.append(_objects_arn(consumer, scope))
    actions = list(FAILURE_ACTIONS[service])
    return {"Sid": "Failures", "Effect": "Allow", "Action": actions, "Resource": resources}


def _objects_arn(consumer: ConsumerPlan, scope: TemplateNames) -> str | Node:
    if consumer.destination_arn:
        return literal_text(f"{consumer.destination_arn}/*")
    return substitute(f"${{{scope.destination(consumer.function)}.Arn}}/*")


def _destination_arn(consumer: ConsumerPlan, scope: TemplateNames) -> str | Node:
    if consumer.destination_arn:
        return literal_text(consumer.destination_arn)
    destination = scope.destination(consumer.function)
    return ref(destination) if consumer.created_destination == "sns" else attribute(destination, "Arn")


def _destination(consumer: ConsumerPlan) -> Node:
    match consumer.created_destination:
        case "sqs":
            queue = {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": QUEUE_SECONDS}
            return resource("AWS::SQS::Queue", queue, **RETAIN)
        case "sns":
            return resource("AWS::SNS::Topic", {"KmsMasterKeyId": "alias/aws/sns"})
        case _:
            return resource("AWS::S3::Bucket", _bucket(), **RETAIN)


def _bucket() -> Node:
    default_encryption = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    settings = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    return {
        "BucketEncryption": {"ServerSideEncryptionConfiguration": [default_encryption]},
        "PublicAccessBlockConfiguration": dict.fromkeys(settings, True),
    }
