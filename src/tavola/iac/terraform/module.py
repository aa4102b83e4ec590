"""The files of a plan's module: versions, variables, policies, alarms, the VPC endpoint and outputs.

Alarms are one resource per rule, with an instance for each table, index or function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.files import sign, signature_line
from tavola.iac.grants import ONLY_OVER_TLS
from tavola.iac.identifiers import shorten, snake
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags
from tavola.iac.terraform.consumers import code_variable, consumer_blocks, policies_variable
from tavola.iac.terraform.hcl import (
    Entry,
    HclExpression,
    OutputBlock,
    Value,
    append_text,
    prefix_name,
    render_blocks,
)
from tavola.iac.terraform.scope import (
    ACCOUNT,
    NAME_MAX,
    REGION,
    ModuleNames,
    block,
    condition,
    data,
    document_json,
    grant_statement,
    principals,
    resource,
    statement,
    tag_entries,
)
from tavola.iac.terraform.tables import import_index, table_blocks


def policy_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield a policy for each role; the account attaches it to principals."""
    base_name = shorten(plan.tables[0].name, NAME_MAX)
    for policy in plan.policies:
        name, document = scope.id("policy", policy.name), scope.document(policy.name)
        grants = (grant_statement(grant, scope) for grant in policy.grants)
        yield data("aws_iam_policy_document", document, *grants)
        yield resource(
            "aws_iam_policy",
            name,
            ("name", prefix_name(f"{base_name}-{policy.name}")),
            ("description", policy.description),
            ("policy", document_json(document)),
            *tag_entries(plan.tags),
        )


def endpoint_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
    """
    arns = [scope.table(table.name, "arn") for table in plan.tables]
    everyone = principals("*", "*")
    resources: list[Value] = [each for arn in arns for each in (arn, append_text(arn, "/*"))]
    document = scope.document("tables", "endpoint")
    this_account = condition("StringEquals", "aws:PrincipalAccount", ACCOUNT)
    statements = [
        statement(
            ("sid", "TheseTables"),
            ("actions", ["dynamodb:*"]),
            ("resources", resources),
            everyone,
            this_account,
        )
    ]
    if plan.unscoped_actions:
        actions: list[Value] = list(plan.unscoped_actions)
        statements.append(
            statement(
                ("sid", "UnscopedActions"), ("actions", actions), ("resources", ["*"]), everyone, this_account
            )
        )
    yield data(
        "aws_iam_policy_document", document, *statements, grant_statement(ONLY_OVER_TLS, scope, everyone)
    )
    yield resource(
        "aws_vpc_endpoint",
        "tables",
        ("vpc_id", HclExpression("var.vpc_id")),
        ("service_name", HclExpression(f'"com.amazonaws.${{{REGION.text}}}.dynamodb"')),
        ("vpc_endpoint_type", "Gateway"),
        ("route_table_ids", HclExpression("var.route_table_ids")),
        ("policy", document_json(document)),
        *tag_entries(plan.tags),
    )


def alarm_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield the alarms of a plan, grouped by rule."""
    for rule, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        yield resource(
            "aws_cloudwatch_metric_alarm",
            snake(rule.kind),
            *_alarm(rule, list(alarms), scope),
            *tag_entries(plan.tags),
        )


def _alarm(rule: AlarmRule, alarms: list[Alarm], scope: ModuleNames) -> Iterator[Entry]:
    has_dimensions = any(alarm.dimensions for alarm in alarms)
    if has_dimensions:
        yield "for_each", {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield None
    yield (
        "alarm_name",
        HclExpression('"${var.prefix}${each.key}"') if has_dimensions else prefix_name(alarms[0].name),
    )
    yield "alarm_description", rule.description
    if not rule.operations:
        yield "namespace", rule.namespace
        yield "metric_name", rule.metric
        if has_dimensions:
            yield "dimensions", HclExpression("each.value")
        yield "statistic", rule.statistic
        yield "period", rule.period_s
    yield "comparison_operator", "GreaterThanThreshold"
    yield "threshold", rule.threshold
    yield "evaluation_periods", rule.periods
    yield "datapoints_to_alarm", rule.breaching_periods
    yield "treat_missing_data", "notBreaching"
    yield "alarm_actions", HclExpression("var.alarm_topic_arns")
    yield "ok_actions", HclExpression("var.alarm_topic_arns")
    if rule.operations:
        yield from _sum_operations(rule)


def _sum_operations(rule: AlarmRule) -> Iterator[Entry]:
    yield block(
        "metric_query",
        ("id", "total"),
        ("expression", "SUM(METRICS())"),
        ("label", rule.metric),
        ("return_data", True),
    )
    operations: list[Value] = list(rule.operations)
    yield OutputBlock(
        "dynamic",
        ("metric_query",),
        (
            ("for_each", operations),
            block(
                "content",
                ("id", HclExpression('"m${metric_query.key}"')),
                block(
                    "metric",
                    ("namespace", rule.namespace),
                    ("metric_name", rule.metric),
                    ("dimensions", HclExpression("merge(each.value, { Operation = metric_query.value })")),
                    ("period", rule.period_s),
                    ("stat", rule.statistic),
                ),
            ),
        ),
    )


def _dimensions(alarm: Alarm, scope: ModuleNames) -> dict[str, Value]:
    return {name: _value(name, value, scope) for name, value in alarm.dimensions}


def _value(name: str, value: str, scope: ModuleNames) -> Value:
    match name:
        case "TableName":
            return scope.table(value, "name")
        case "FunctionName":
            return HclExpression(f"aws_lambda_function.{scope.function(value)}.function_name")
        case "QueueName":
            return scope.destination(value, "sqs", "name")
        case _:
            return value


_SEPARATE = "apart:"


def index_steps(plan: InfrastructurePlan, before: frozenset[str] | None) -> Iterator[str]:
    """Yield the steps for each table whose indexes became separate resources or blocks again since `before` (None: unknown)."""
    scope = ModuleNames()
    for table in plan.tables:
        was = before is not None and f"{_SEPARATE}{table.name}" in before
        if table.has_separate_indexes == was:
            continue
        indexes = [(index, scope.index(table.name, index)) for index in table.global_indexes]
        if table.has_separate_indexes:
            commands = "; ".join(import_index(table, index, scope) for index, _ in indexes)
            yield (
                f"{table.name}: auto scaled, so its indexes are separate resources; if the table exists already, run this "
                f"before the first apply, or the indexes are dropped and created again: {commands}"
            )
        elif indexes:
            commands = "; ".join(
                f"terraform state rm aws_dynamodb_global_secondary_index.{name}" for _, name in indexes
            )
            yield (
                f"{table.name}: no longer auto scaled, so its indexes are blocks of the table again; run this before the next "
                f"apply, or the indexes are dropped and created again: {commands}"
            )


PROVIDER = "6.29"  # the first with keys of several attributes
PROVIDER_INDEXES = "6.44"  # the first with indexes as separate resources, not experimental


def terraform_files(plan: InfrastructurePlan) -> dict[str, str]:
    """Return the files of a plan's module, by name."""
    return {name: _render_signed(plan, blocks) for name, blocks in _parts(plan).items() if blocks}


def render_terraform(plan: InfrastructurePlan) -> str:
    """Render a plan's module as one file."""
    return _render_signed(plan, [each for blocks in _parts(plan).values() for each in blocks])


def _render_signed(plan: InfrastructurePlan, blocks: list[OutputBlock]) -> str:
    line = signature_line("terraform", plan.names, plan.contents)
    return sign(f"# {line[0].upper()}{line[1:]}.\n\n{render_blocks(blocks)}")


def _parts(plan: InfrastructurePlan) -> dict[str, list[OutputBlock]]:
    scope = ModuleNames()
    for table in plan.tables:
        scope.id("table", table.name)
    parts = {
        "versions.tf": [_versions(plan)],
        "variables.tf": list(_variables(plan, scope)),
        "tables.tf": [*_account_data(plan), *table_blocks(plan, scope)],
        "consumers.tf": [
            each
            for consumer in plan.consumers
            for each in consumer_blocks(consumer, scope, portable_tags(plan.table(consumer.table).tags))
        ],
        "policies.tf": list(policy_blocks(plan, scope)),
        "alarms.tf": list(alarm_blocks(plan, scope)),
        "network.tf": list(endpoint_blocks(plan, scope)) if plan.endpoint else [],
        "outputs.tf": list(_outputs(plan, scope)),
    }
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for each in (each for blocks in parts.values() for each in blocks):
        assert (each.kind, each.labels) not in seen, f"two blocks are named {each.kind} {each.labels}"
        seen.add((each.kind, each.labels))
    return parts


def _versions(plan: InfrastructurePlan) -> OutputBlock:
    version = PROVIDER_INDEXES if any(table.has_separate_indexes for table in plan.tables) else PROVIDER
    aws: dict[str, Value] = {"source": "hashicorp/aws", "version": f">= {version}"}
    return block("terraform", ("required_version", ">= 1.5"), block("required_providers", ("aws", aws)))


def _variables(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    description = (
        "A prefix for all names, such as dev-, so that an account can have several copies of the module."
    )
    allowed = block(
        "validation",
        ("condition", HclExpression('can(regex("^[A-Za-z0-9_-]{0,20}$", var.prefix))')),
        ("error_message", "The prefix may have up to 20 letters, digits, _ and -."),
    )
    prefix = _variable("prefix", description, "string", "")
    yield replace(prefix, body=(*prefix.body, allowed))
    created = [consumer for consumer in plan.consumers if not consumer.existing_function]
    if created:
        yield _variable("code_bucket", "The bucket with the code of the functions.", "string")
    for consumer in created:
        description = f"The zip file of {consumer.function} in that bucket."
        yield _variable(code_variable(consumer, scope), description, "string")
        description = f"Additional policies for {consumer.function}."
        yield _variable(policies_variable(consumer, scope), description, "list(string)", HclExpression("[]"))
    if any(table.replicas and table.key not in (None, AWS_KEY) for table in plan.tables):
        description = "The ARN of the KMS key that encrypts the replicas, by region."
        yield _variable("replica_kms_key_arns", description, "map(string)")
    if plan.alarms:
        description = "The SNS topics that alarms notify; empty for none."
        yield _variable("alarm_topic_arns", description, "list(string)", HclExpression("[]"))
    if plan.endpoint:
        yield _variable("vpc_id", "The VPC that accesses the tables.", "string")
        yield _variable(
            "route_table_ids", "The route tables of the subnets that access the tables.", "list(string)"
        )


def _variable(name: str, description: str, kind: str, default: Value | None = None) -> OutputBlock:
    body: list[Entry] = [("description", description), ("type", HclExpression(kind))]
    if default is not None:
        body.append(("default", default))
    return OutputBlock("variable", (name,), tuple(body))


def _account_data(plan: InfrastructurePlan) -> Iterator[OutputBlock]:
    """Yield the data sources about the account, if something refers to them."""
    if plan.makes_key:
        yield data("aws_partition", "current")
    if plan.makes_key or plan.endpoint:
        yield data("aws_caller_identity", "current")
        yield data("aws_region", "current")


def _outputs(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    arns: dict[str, Value] = {table.name: scope.table(table.name, "arn") for table in plan.tables}
    yield _output("table_arns", "The tables, by name.", arns)
    streams: dict[str, Value] = {
        table.name: scope.table(table.name, "stream_arn") for table in plan.tables if table.stream is not None
    }
    if streams:
        yield _output("stream_arns", "The streams, by the name of their table.", streams)
    policies: dict[str, Value] = {
        policy.name: HclExpression(f"aws_iam_policy.{scope.id('policy', policy.name)}.arn")
        for policy in plan.policies
    }
    if policies:
        yield _output("policy_arns", "The policies, by role.", policies)
    queues: dict[str, Value] = {
        consumer.function: scope.destination(consumer.function, "sqs", "url")
        for consumer in plan.consumers
        if consumer.created_destination == "sqs"
    }
    if queues:
        yield _output("failure_queue_urls", "The queues with failed records, by function.", queues)
    if plan.makes_key:
        yield _output("key_arn", "The key that encrypts the tables.", HclExpression("aws_kms_key.tables.arn"))


def _output(name: str, description: str, value: Value) -> OutputBlock:
    return OutputBlock("output", (name,), (("description", description), ("value", value)))
