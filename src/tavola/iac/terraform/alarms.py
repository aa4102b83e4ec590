"""Alarms of a module: one resource for each kind, with a row for each table, index or function that it watches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.identifiers import snake
from tavola.iac.plan import InfrastructurePlan
from tavola.iac.terraform.hcl import Block, Entry, Expression, Value, prefixed
from tavola.iac.terraform.scope import Scope, block, resource, tagged


def alarm_blocks(plan: InfrastructurePlan, scope: Scope) -> Iterator[Block]:
    """Give the alarms of a plan, kind by kind."""
    for watch, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        yield resource(
            "aws_cloudwatch_metric_alarm",
            snake(watch.kind),
            *_alarm(watch, list(alarms), scope),
            *tagged(plan.tags),
        )


def _alarm(watch: AlarmRule, alarms: list[Alarm], scope: Scope) -> Iterator[Entry]:
    watched = any(alarm.dimensions for alarm in alarms)
    if watched:
        yield "for_each", {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield None
    yield "alarm_name", Expression('"${var.prefix}${each.key}"') if watched else prefixed(alarms[0].name)
    yield "alarm_description", watch.description
    if not watch.operations:
        yield "namespace", watch.namespace
        yield "metric_name", watch.metric
        if watched:
            yield "dimensions", Expression("each.value")
        yield "statistic", watch.statistic
        yield "period", watch.period_s
    yield "comparison_operator", "GreaterThanThreshold"
    yield "threshold", watch.threshold
    yield "evaluation_periods", watch.periods
    yield "datapoints_to_alarm", watch.breaching_periods
    yield "treat_missing_data", "notBreaching"
    yield "alarm_actions", Expression("var.alarm_topic_arns")
    yield "ok_actions", Expression("var.alarm_topic_arns")
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
    yield Block(
        "dynamic",
        ("metric_query",),
        (
            ("for_each", operations),
            block(
                "content",
                ("id", Expression('"m${metric_query.key}"')),
                block(
                    "metric",
                    ("namespace", watch.namespace),
                    ("metric_name", watch.metric),
                    ("dimensions", Expression("merge(each.value, { Operation = metric_query.value })")),
                    ("period", watch.period_s),
                    ("stat", watch.statistic),
                ),
            ),
        ),
    )


def _dimensions(alarm: Alarm, scope: Scope) -> dict[str, Value]:
    return {name: _value(name, told, scope) for name, told in alarm.dimensions}


def _value(name: str, told: str, scope: Scope) -> Value:
    match name:
        case "TableName":
            return scope.table(told, "name")
        case "FunctionName":
            return Expression(f"aws_lambda_function.{scope.function(told)}.function_name")
        case "QueueName":
            return scope.destination(told, "sqs", "name")
        case _:
            return told
