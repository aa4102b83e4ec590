"""A plan as one CloudFormation template: parameters, conditions, outputs, policies, alarms and the VPC endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal

from tavola.iac.alarms import Alarm
from tavola.iac.cloudformation.consumers import consumer_conditions, consumer_parameters, consumer_resources
from tavola.iac.cloudformation.scope import (
    PREFIX,
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
from tavola.iac.cloudformation.tables import replica_key_parameter, table_resources
from tavola.iac.errors import MissingLibrary
from tavola.iac.files import sign, signature_line
from tavola.iac.grants import ONLY_OVER_TLS, VERSION, render_statement
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags

VPC = "VpcId"
ROUTES = "RouteTableIds"


def policy_resources(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    """Yield a managed policy for each role; the account attaches it to principals. CloudFormation has no tags for policies."""
    for policy in plan.policies:
        statements = [render_statement(grant, scope.arn) for grant in policy.grants]
        properties = {
            "Description": literal_text(policy.description),
            "PolicyDocument": {"Version": VERSION, "Statement": statements},
        }
        yield scope.id(policy.name, "policy"), resource("AWS::IAM::ManagedPolicy", properties)


def endpoint_resource(plan: InfrastructurePlan, scope: TemplateNames) -> Node:
    """Return a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
    """
    ids = [scope.table(table.name) for table in plan.tables]
    this_account = {"StringEquals": {"aws:PrincipalAccount": ref("AWS::AccountId")}}
    allowed: Node = {
        "Sid": "TheseTables",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "dynamodb:*",
        "Resource": [arn for id_ in ids for arn in (attribute(id_, "Arn"), substitute(f"${{{id_}.Arn}}/*"))],
        "Condition": this_account,
    }
    statements: list[Node] = [allowed]
    if plan.unscoped_actions:
        statements.append(
            {
                "Sid": "UnscopedActions",
                "Effect": "Allow",
                "Principal": "*",
                "Action": list(plan.unscoped_actions),
                "Resource": "*",
                "Condition": this_account,
            }
        )
    statements.append(render_statement(ONLY_OVER_TLS, scope.arn) | {"Principal": "*"})
    properties = {
        "VpcEndpointType": "Gateway",
        "ServiceName": substitute("com.amazonaws.${AWS::Region}.dynamodb"),
        "VpcId": ref(VPC),
        "RouteTableIds": ref(ROUTES),
        "PolicyDocument": {"Version": VERSION, "Statement": statements},
        **tags_property(plan.tags),
    }
    return resource("AWS::EC2::VPCEndpoint", properties)


TOPIC = "AlarmTopicArn"
HAS_TOPIC = "HasAlarmTopic"


def alarm_resource(alarm: Alarm, scope: TemplateNames, tags: Mapping[str, str]) -> Node:
    """Return one alarm."""
    rule = alarm.rule
    properties: Node = {
        "AlarmName": prefix_name(alarm.name),
        "AlarmDescription": rule.description,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": rule.threshold,
        "EvaluationPeriods": rule.periods,
        "DatapointsToAlarm": rule.breaching_periods,
        "TreatMissingData": "notBreaching",
        "AlarmActions": {"Fn::If": [HAS_TOPIC, [ref(TOPIC)], ref("AWS::NoValue")]},
        "OKActions": {"Fn::If": [HAS_TOPIC, [ref(TOPIC)], ref("AWS::NoValue")]},
    }
    dimensions = [{"Name": name, "Value": _value(name, value, scope)} for name, value in alarm.dimensions]
    if rule.operations:
        properties["Metrics"] = _sum_operations(alarm, dimensions)
    else:
        properties |= {
            "Namespace": rule.namespace,
            "MetricName": rule.metric,
            "Statistic": rule.statistic,
            "Period": rule.period_s,
        }
        if dimensions:
            properties["Dimensions"] = dimensions
    return resource("AWS::CloudWatch::Alarm", properties | tags_property(tags))


def _sum_operations(alarm: Alarm, dimensions: list[Node]) -> list[Node]:
    rule = alarm.rule
    metrics: list[Node] = [
        {
            "Id": f"m{number}",
            "ReturnData": False,
            "MetricStat": {
                "Metric": {
                    "Namespace": rule.namespace,
                    "MetricName": rule.metric,
                    "Dimensions": [*dimensions, {"Name": "Operation", "Value": operation}],
                },
                "Period": rule.period_s,
                "Stat": rule.statistic,
            },
        }
        for number, operation in enumerate(rule.operations, 1)
    ]
    total = {"Id": "total", "Expression": "SUM(METRICS())", "Label": rule.metric, "ReturnData": True}
    return [total, *metrics]


def _value(name: str, value: str, scope: TemplateNames) -> str | Node:
    match name:
        case "TableName":
            return ref(scope.table(value))
        case "FunctionName":
            return ref(scope.function(value))
        case "QueueName":
            return attribute(scope.destination(value), "QueueName")
        case _:
            return value


Form = Literal["yaml", "json"]


def build_template(plan: InfrastructurePlan) -> Node:
    """Return a plan as a template, plain data."""
    scope = TemplateNames()
    for table in plan.tables:
        scope.table(table.name)  # first, so that no other resource takes a table's id
    parameters = dict(_parameters(plan, scope))
    template: Node = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": _description(plan),
        "Metadata": {"Tavola": signature_line("cloudformation", plan.names, plan.contents)},
    }
    if parameters:
        template["Parameters"] = parameters
    conditions = dict(consumer_conditions(plan.consumers, scope))
    if plan.alarms:
        conditions[HAS_TOPIC] = {"Fn::Not": [{"Fn::Equals": [ref(TOPIC), ""]}]}
    if conditions:
        template["Conditions"] = conditions
    template["Resources"] = {}
    for name, node in _resources(plan, scope):
        assert name not in template["Resources"], f"two resources are named {name}"
        template["Resources"][name] = node
    template["Outputs"] = dict(_outputs(plan, scope))
    return template


def render_template(plan: InfrastructurePlan, form: Form = "yaml") -> str:
    """Render a plan as the text of a template."""
    template = build_template(plan)
    if form == "json":
        return sign(json.dumps(template, indent=2, ensure_ascii=False) + "\n")
    try:
        from tavola.iac.cloudformation.yaml_text import render_yaml  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise MissingLibrary("YAML", "PyYAML") from error
    return sign(render_yaml(template))


def _description(plan: InfrastructurePlan) -> str:
    names = ", ".join(table.name for table in plan.tables)
    text = f"Tables {names}" if len(plan.tables) > 1 else f"Table {names}"
    return text if len(text) <= 1000 else f"{len(plan.tables)} tables"  # at most 1024 bytes


def _parameters(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    prefix = "A prefix for all names, such as dev-, so that an account can have several stacks."
    yield PREFIX, parameter(prefix, Default="", AllowedPattern="[A-Za-z0-9_-]{0,20}")
    yield from consumer_parameters(plan.consumers, scope)
    encrypted = (table for table in plan.tables if table.key not in (None, AWS_KEY))
    for region in sorted({region for table in encrypted for region in table.replicas}):
        description = f"The ARN of the KMS key that encrypts the replicas in {region}."
        yield replica_key_parameter(region, scope), parameter(description)
    if plan.alarms:
        yield TOPIC, parameter("The ARN of the SNS topic that alarms notify; empty for none.", Default="")
    if plan.endpoint:
        yield VPC, parameter("The VPC that accesses the tables.", "AWS::EC2::VPC::Id")
        routes = "The route tables of the subnets that access the tables."
        yield ROUTES, parameter(routes, "CommaDelimitedList")


def _resources(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    yield from table_resources(plan, scope)
    for consumer in plan.consumers:
        yield from consumer_resources(consumer, scope, portable_tags(plan.table(consumer.table).tags))
    yield from policy_resources(plan, scope)
    for alarm in plan.alarms:
        yield scope.id(alarm.subject, alarm.rule.kind, "alarm"), alarm_resource(alarm, scope, plan.tags)
    if plan.endpoint:
        yield scope.id("tables", "endpoint"), endpoint_resource(plan, scope)


def _outputs(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    for table in plan.tables:
        id_ = scope.table(table.name)
        yield f"{id_}Arn", {"Description": f"The table {table.name}.", "Value": attribute(id_, "Arn")}
        if table.stream is not None:
            stream = attribute(id_, "StreamArn")
            yield f"{id_}StreamArn", {"Description": f"The stream of {table.name}.", "Value": stream}
    if plan.makes_key:
        key = attribute(scope.key, "Arn")
        yield f"{scope.key}Arn", {"Description": "The key that encrypts the tables.", "Value": key}
    for policy in plan.policies:
        id_ = scope.id(policy.name, "policy")
        yield f"{id_}Arn", {"Description": f"The policy for the role {policy.name}.", "Value": ref(id_)}
    for consumer in plan.consumers:
        if consumer.created_destination == "sqs":
            id_ = scope.destination(consumer.function)
            description = f"The queue with failed records of {consumer.function}."
            yield f"{id_}Url", {"Description": description, "Value": ref(id_)}
