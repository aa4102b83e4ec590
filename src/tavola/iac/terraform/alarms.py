"""Alarms of a module: one resource for each kind, with a row for each table, index or function that it watches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.identifiers import snake
from tavola.iac.plan import InfrastructurePlan
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, Value, prefix_name
from tavola.iac.terraform.scope import ModuleNames, block, resource, tag_entries


def alarm_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Give the alarms of a plan, kind by kind."""
    for watch, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        yield resource(
            "aws_cloudwatch_metric_alarm",
            snake(watch.kind),
            *_alarm(watch, list(alarms), scope),
            *tag_entries(plan.tags),
        )


def _alarm(watch: AlarmRule, alarms: list[Alarm], scope: ModuleNames) -> Iterator[Entry]:
    watched = any(alarm.dimensions for alarm in alarms)
    if watched:
        yield "for_each", {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield None
    yield (
        "alarm_name",
        HclExpression('"${var.prefix}${each.key}"') if watched else prefix_name(alarms[0].name),
    )
    yield "alarm_description", watch.description
    if not watch.operations:
        yield "namespace", watch.namespace
        yield "metric_name", watch.metric
        if watched:
            yield "dimensions", HclExpression("each.value")
        yield "statistic", watch.statistic
        yield "period", watch.period_s
    yield "comparison_operator", "GreaterThanThreshold"
    yield "threshold", watch.threshold
    yield "evaluation_periods", watch.periods
    yield "datapoints_to_alarm", watch.breaching_periods
    yield "treat_missing_data", "notBreaching"
    yield "alarm_actions", HclExpression("var.alarm_topic_arns")
    yield "ok_actions", HclExpression("var.alarm_topic_arns")
    if watch.operations:
        yield from _added_up(watch)


def _added_up(watch: AlarmRule) -> Iterator[Entry]:
    yield block(
        "metric_query",
        ("id", "total"),
        ("expression", "SUM(METRICS())"),
        ("label", watch.metric),
        ("return_data", True),
    )
    operations: list[Value] = list(watch.operations)
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
                    ("namespace", watch.namespace),
                    ("metric_name", watch.metric),
                    ("dimensions", HclExpression("merge(each.value, { Operation = metric_query.value })")),
                    ("period", watch.period_s),
                    ("stat", watch.statistic),
                ),
            ),
        ),
    )


def _dimensions(alarm: Alarm, scope: ModuleNames) -> dict[str, Value]:
    return {name: _value(name, told, scope) for name, told in alarm.dimensions}


def _value(name: str, told: str, scope: ModuleNames) -> Value:
    match name:
        case "TableName":
            return scope.table(told, "name")
        case "FunctionName":
            return HclExpression(f"aws_lambda_function.{scope.function(told)}.function_name")
        case "QueueName":
            return scope.destination(told, "sqs", "name")
        case _:
            return told
