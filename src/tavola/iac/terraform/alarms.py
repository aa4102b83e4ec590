"""The alarms of a module: one resource per rule, with an instance for each table, index or function."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.identifiers import snake
from tavola.iac.plan import InfrastructurePlan
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, Value, prefix_name
from tavola.iac.terraform.scope import ModuleNames, block, resource, tag_entries


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
