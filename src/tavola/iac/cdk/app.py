"""The files of a CDK project for a plan's stack."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tavola.iac.cdk.access import endpoint_lines, policy_lines
from tavola.iac.cdk.alarms import alarm_lines
from tavola.iac.cdk.consumers import consumer_lines
from tavola.iac.cdk.python_text import PythonCall, PythonCode, render_assignment, render_statement
from tavola.iac.cdk.scope import SELF, StackNames
from tavola.iac.cdk.tables import table_lines
from tavola.iac.files import sign, signature_line
from tavola.iac.identifiers import pascal, shorten
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags

LIBRARY = "2.230"  # has keys of several attributes
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
        for word, module in sorted(_MODULES.items(), key=lambda each: each[1])
        if f"{word}." in body
    ]
    return "\n".join(
        [
            f"# {signature_line('cdk', plan.names, plan.contents)}",
            f'"""The infrastructure of {_names(plan)}."""',
            "",
            "import os",
            "",
            "import aws_cdk as cdk",
            *imports,
            "from constructs import Construct",
            "",
            "",
            f"class {stack}Stack(cdk.Stack):",
            '    """Tables, what reads their streams, who may use them, and what is watched."""',
            "",
            '    def __init__(self, scope: Construct, construct_id: str, *, prefix: str = "", **kwargs) -> None:',
            "        super().__init__(scope, construct_id, **kwargs)",
            "",
            body,
            "",
            "",
            "app = cdk.App()",
            "here = cdk.Environment(",
            '    account=os.environ.get("CDK_DEFAULT_ACCOUNT"), region=os.environ.get("CDK_DEFAULT_REGION")',
            ")",
            'prefix = app.node.try_get_context("prefix") or ""  # what all names begin with, such as dev-',
            f'name = f"{{prefix}}{stack}".replace("_", "-")',
            f'{stack}Stack(app, "{stack}", prefix=prefix, stack_name=name, env=here)',
            "app.synth()",
            "",
        ]
    )


def _names(plan: InfrastructurePlan) -> str:
    return ", ".join(table.name for table in plan.tables)


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
        yield render_assignment(
            scope.replica_key(region), PythonCall("cdk.CfnParameter", (SELF, id_), {"description": text}), 2
        )
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
        yield _output(scope.id(table.name, "arn"), f"{name}.table_arn")


def _output(id_: str, value: str) -> str:
    return render_statement(PythonCall("cdk.CfnOutput", (SELF, id_), {"value": PythonCode(value)}), 2)
