"""A plan as one CloudFormation template: parameters, conditions, resources and outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from tavola.iac.cloudformation.access import endpoint_parameters, endpoint_resource, policy_resources
from tavola.iac.cloudformation.alarms import (
    HAS_TOPIC,
    TOPIC,
    alarm_resource,
    topic_condition,
    topic_parameter,
)
from tavola.iac.cloudformation.consumers import consumer_conditions, consumer_parameters, consumer_resources
from tavola.iac.cloudformation.scope import PREFIX, Node, TemplateNames, attribute, ref
from tavola.iac.cloudformation.tables import replica_key_parameter, table_resources
from tavola.iac.errors import LibraryMissing
from tavola.iac.files import sign, signature_line
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags

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
        conditions[HAS_TOPIC] = topic_condition()
    if conditions:
        template["Conditions"] = conditions
    template["Resources"] = {}
    for name, resource in _resources(plan, scope):
        assert name not in template["Resources"], f"two resources are called {name}"
        template["Resources"][name] = resource
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
        raise LibraryMissing("YAML", "PyYAML") from error
    return sign(render_yaml(template))


def _description(plan: InfrastructurePlan) -> str:
    names = ", ".join(table.name for table in plan.tables)
    text = f"Tables {names}" if len(plan.tables) > 1 else f"Table {names}"
    return text if len(text) <= 1000 else f"{len(plan.tables)} tables"  # at most 1024 bytes


def _parameters(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    yield (
        PREFIX,
        {
            "Type": "String",
            "Default": "",
            "AllowedPattern": "[A-Za-z0-9_-]{0,20}",
            "Description": "What all names begin with, such as dev-, so that one account has the stack several times.",
        },
    )
    yield from consumer_parameters(plan.consumers, scope)
    encrypted = (table for table in plan.tables if table.key not in (None, AWS_KEY))
    for region in sorted({region for table in encrypted for region in table.replicas}):
        description = f"The ARN of the KMS key that encrypts the replicas in {region}."
        yield replica_key_parameter(region, scope), {"Type": "String", "Description": description}
    if plan.alarms:
        yield TOPIC, topic_parameter()
    if plan.endpoint:
        yield from endpoint_parameters()


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
        yield (
            f"{scope.key}Arn",
            {
                "Description": "The key that encrypts the tables.",
                "Value": attribute(scope.key, "Arn"),
            },
        )
    for policy in plan.policies:
        id_ = scope.id(policy.name, "policy")
        yield f"{id_}Arn", {"Description": f"The policy of a {policy.name}.", "Value": ref(id_)}
    for consumer in plan.consumers:
        if consumer.created_destination == "sqs":
            id_ = scope.destination(consumer.function)
            description = f"The queue of what {consumer.function} failed at."
            yield f"{id_}Url", {"Description": description, "Value": ref(id_)}
