"""The files of a CDK project for a plan's stack, with its policies, alarms and VPC endpoint.

Alarms are one loop per rule, over tables, indexes or functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.cdk.consumers import consumer_lines
from tavola.iac.cdk.python_text import (
    PythonCall,
    PythonCode,
    Value,
    format_string,
    render_assignment,
    render_statement,
)
from tavola.iac.cdk.scope import SELF, StackNames, grant_statement, parameter
from tavola.iac.cdk.tables import table_lines
from tavola.iac.files import sign, signature_line
from tavola.iac.grants import ONLY_OVER_TLS
from tavola.iac.identifiers import pascal, shorten
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags


def policy_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create a managed policy for each role; the account attaches it to principals."""
    for policy in plan.policies:
        statements: list[Value] = [grant_statement(grant, scope) for grant in policy.grants]
        managed_policy = PythonCall(
            "iam.ManagedPolicy",
            (SELF, scope.id(policy.name, "policy")),
            {"description": policy.description, "statements": statements},
        )
        yield render_assignment(scope.name(policy.name, "policy"), managed_policy, 2)


def endpoint_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
    """
    vpc = parameter("VpcId", "The VPC that accesses the tables.", type="AWS::EC2::VPC::Id")
    text = "The route tables of the subnets that access the tables."
    routes = parameter("RouteTableIds", text, type="CommaDelimitedList")
    yield render_assignment("vpc_id", vpc, 2)
    yield render_assignment("route_table_ids", routes, 2)
    arns = [PythonCode(f"{scope.table(table.name)}.table_arn") for table in plan.tables]
    resources: list[Value] = [resource for arn in arns for resource in (arn, format_string(arn, "/*"))]
    everyone: list[Value] = [PythonCall("iam.AnyPrincipal")]
    this_account: dict[str, Value] = {"StringEquals": {"aws:PrincipalAccount": PythonCode("self.account")}}
    allowed: list[tuple[str, list[Value], list[Value]]] = [("TheseTables", ["dynamodb:*"], resources)]
    if plan.unscoped_actions:
        allowed.append(("UnscopedActions", list(plan.unscoped_actions), ["*"]))
    statements: list[Value] = [
        PythonCall(
            "iam.PolicyStatement",
            named={
                "sid": sid,
                "principals": everyone,
                "actions": actions,
                "resources": targets,
                "conditions": this_account,
            },
        )
        for sid, actions, targets in allowed
    ]
    statements.append(grant_statement(ONLY_OVER_TLS, scope, principals=everyone))
    policy = PythonCall("iam.PolicyDocument", named={"statements": statements})
    yield render_statement(
        PythonCall(
            "ec2.CfnVPCEndpoint",
            (SELF, scope.id("tables", "endpoint")),
            {
                "vpc_endpoint_type": "Gateway",
                "service_name": format_string("com.amazonaws.", PythonCode("self.region"), ".dynamodb"),
                "vpc_id": PythonCode("vpc_id.value_as_string"),
                "route_table_ids": PythonCode("route_table_ids.value_as_list"),
                "policy_document": policy,
            },
        ),
        2,
    )


def alarm_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create the alarms, and connect them to a topic if the context names one."""
    if not plan.alarms:
        return
    yield render_assignment("alarms", PythonCode("[]"), 2)
    for rule, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        rows: dict[str, Value] = {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield render_assignment(f"{_variable(rule)}", rows, 2)
        yield "        for name, dimensions in " + f"{_variable(rule)}.items():"
        yield from _loop(rule)
    yield '        topic_arn = self.node.try_get_context("alarm_topic_arn")'
    yield "        if topic_arn:"
    yield '            topic = sns.Topic.from_topic_arn(self, "AlarmTopic", topic_arn)'
    yield "            for alarm in alarms:"
    yield "                alarm.add_alarm_action(cloudwatch_actions.SnsAction(topic))"
    yield "                alarm.add_ok_action(cloudwatch_actions.SnsAction(topic))"


def _loop(rule: AlarmRule) -> Iterator[str]:
    if rule.operations:
        operations: list[Value] = list(rule.operations)
        yield render_assignment("operations", operations, 3)
        yield render_assignment("parts", PythonCode("{}"), 3)
        yield "            for operation in operations:"
        part = _metric(rule, '{**dimensions, "Operation": operation}')
        yield render_assignment("parts[operation[0].lower() + operation[1:]]", part, 4)
        total: dict[str, Value] = {
            "expression": "SUM(METRICS())",
            "label": rule.metric,
            "period": _period(rule),
            "using_metrics": PythonCode("parts"),
        }
        yield render_assignment("metric", PythonCall("cloudwatch.MathExpression", named=total), 3)
    else:
        yield render_assignment("metric", _metric(rule, "dimensions"), 3)
    alarm = PythonCall(
        "cloudwatch.Alarm",
        (SELF, PythonCode('f"{name}-alarm"')),
        {
            "alarm_name": PythonCode('f"{prefix}{name}"'),
            "alarm_description": rule.description,
            "metric": PythonCode("metric"),
            "comparison_operator": PythonCode("cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD"),
            "threshold": rule.threshold,
            "evaluation_periods": rule.periods,
            "datapoints_to_alarm": rule.breaching_periods,
            "treat_missing_data": PythonCode("cloudwatch.TreatMissingData.NOT_BREACHING"),
        },
    )
    yield render_assignment("alarm", alarm, 3)
    yield "            alarms.append(alarm)"


def _metric(rule: AlarmRule, dimensions: str) -> PythonCall:
    return PythonCall(
        "cloudwatch.Metric",
        named={
            "namespace": rule.namespace,
            "metric_name": rule.metric,
            "dimensions_map": PythonCode(dimensions),
            "statistic": rule.statistic,
            "period": _period(rule),
        },
    )


def _period(rule: AlarmRule) -> PythonCall:
    return PythonCall("cdk.Duration.seconds", (rule.period_s,))


def _variable(rule: AlarmRule) -> str:
    return rule.kind.replace("-", "_")


def _dimensions(alarm: Alarm, scope: StackNames) -> dict[str, Value]:
    return {name: _value(name, value, scope) for name, value in alarm.dimensions}


def _value(name: str, value: str, scope: StackNames) -> Value:
    match name:
        case "TableName":
            return PythonCode(f"{scope.table(value)}.table_name")
        case "FunctionName":
            return PythonCode(f"{scope.function(value)}.function_name")
        case "QueueName":
            return PythonCode(f"{scope.failures(value)}.queue_name")
        case _:
            return value


LIBRARY = "2.230"  # the first with multi-attribute keys
STACK_NAME_MAX = 120

_MODULES = {
    "cloudwatch": "aws_cloudwatch",
    "cloudwatch_actions": "aws_cloudwatch_actions",
    "dynamodb": "aws_dynamodb",
    "ec2": "aws_ec2",
    "event_sources": "aws_lambda_event_sources",
    "iam": "aws_iam",
    "kms": "aws_kms",
    "lambda_": "aws_lambda",
    "logs": "aws_logs",
    "s3": "aws_s3",
    "sns": "aws_sns",
    "sqs": "aws_sqs",
}


def cdk_files(plan: InfrastructurePlan) -> dict[str, str]:
    """Return the files of a CDK project, by name."""
    line = signature_line("cdk", plan.names, plan.contents)
    settings = {"//": line, "app": "python3 app.py"}
    requirements = f"# {line}\naws-cdk-lib>={LIBRARY}\nconstructs>=10\n"
    return {
        "app.py": sign(_source(plan)),
        "cdk.json": sign(json.dumps(settings, indent=2) + "\n"),
        "requirements.txt": sign(requirements),
    }


def _source(plan: InfrastructurePlan) -> str:
    stack = pascal(shorten(plan.tables[0].name, STACK_NAME_MAX))
    body = "\n".join(_body(plan))
    imports = [
        f"from aws_cdk import {module} as {word}"
        for word, module in sorted(_MODULES.items(), key=lambda entry: entry[1])
        if f"{word}." in body
    ]
    return "\n".join(
        [
            f"# {signature_line('cdk', plan.names, plan.contents)}",
            f'"""The infrastructure of {", ".join(plan.names)}."""',
            "",
            "import os",
            "",
            "import aws_cdk as cdk",
            *imports,
            "from constructs import Construct",
            "",
            "",
            f"class {stack}Stack(cdk.Stack):",
            '    """Tables, stream consumers, policies and alarms."""',
            "",
            '    def __init__(self, scope: Construct, construct_id: str, *, prefix: str = "", **kwargs) -> None:',
            "        super().__init__(scope, construct_id, **kwargs)",
            "",
            body,
            "",
            "",
            "app = cdk.App()",
            "environment = cdk.Environment(",
            '    account=os.environ.get("CDK_DEFAULT_ACCOUNT"), region=os.environ.get("CDK_DEFAULT_REGION")',
            ")",
            'prefix = app.node.try_get_context("prefix") or ""  # a prefix for all names, such as dev-',
            f'name = f"{{prefix}}{stack}".replace("_", "-")',
            f'{stack}Stack(app, "{stack}", prefix=prefix, stack_name=name, env=environment)',
            "app.synth()",
            "",
        ]
    )


def _body(plan: InfrastructurePlan) -> Iterator[str]:
    scope = StackNames()
    for table in plan.tables:
        scope.table(table.name)
    regions = sorted(
        {region for table in plan.tables if table.key not in (None, AWS_KEY) for region in table.replicas}
    )
    for region in regions:
        text = f"The ARN of the KMS key that encrypts the replicas in {region}."
        id_ = scope.id("replica", "key", region, "arn")
        yield render_assignment(scope.replica_key(region), parameter(id_, text), 2)
    yield from table_lines(plan, scope)
    yield from consumer_lines(plan.consumers, scope)
    yield from policy_lines(plan, scope)
    yield from alarm_lines(plan, scope)
    if plan.endpoint:
        yield from endpoint_lines(plan, scope)
    for key, value in plan.tags.items():
        yield render_statement(PythonCall("cdk.Tags.of(self).add", (key, value)), 2)
    for consumer in plan.consumers:
        name = scope.function(consumer.function)
        for key, value in portable_tags(plan.table(consumer.table).tags).items():
            if key not in plan.tags and not consumer.existing_function:
                yield render_statement(PythonCall(f"cdk.Tags.of({name}).add", (key, value)), 2)
    for table in plan.tables:
        name = scope.table(table.name)
        output = PythonCall(
            "cdk.CfnOutput", (SELF, scope.id(table.name, "arn")), {"value": PythonCode(f"{name}.table_arn")}
        )
        yield render_statement(output, 2)
