"""Alarms of a stack: one loop for each kind, over the tables, indexes or functions that it watches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.cdk.python_text import Call, Code, Value, assigned
from tavola.iac.cdk.scope import SELF, Scope
from tavola.iac.plan import InfrastructurePlan


def alarm_lines(plan: InfrastructurePlan, scope: Scope) -> Iterator[str]:
    """Give the lines that make the alarms, and have them tell a topic if the context names one."""
    if not plan.alarms:
        return
    yield assigned("alarms", Code("[]"), 2)
    for watch, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        rows: dict[str, Value] = {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield assigned(f"{_word(watch)}", rows, 2)
        yield "        for name, dimensions in " + f"{_word(watch)}.items():"
        yield from _loop(watch)
    yield '        topic_arn = self.node.try_get_context("alarm_topic_arn")'
    yield "        if topic_arn:"
    yield '            topic = sns.Topic.from_topic_arn(self, "AlarmTopic", topic_arn)'
    yield "            for alarm in alarms:"
    yield "                alarm.add_alarm_action(cloudwatch_actions.SnsAction(topic))"
    yield "                alarm.add_ok_action(cloudwatch_actions.SnsAction(topic))"


def _loop(watch: AlarmRule) -> Iterator[str]:
    if watch.operations:
        operations: list[Value] = list(watch.operations)
        yield assigned("operations", operations, 3)
        yield assigned("parts", Code("{}"), 3)
        yield "            for operation in operations:"
        part = _metric(watch, '{**dimensions, "Operation": operation}')
        yield assigned("parts[operation[0].lower() + operation[1:]]", part, 4)
        whole: dict[str, Value] = {
            "expression": "SUM(METRICS())",
            "label": watch.metric,
            "period": _period(watch),
            "using_metrics": Code("parts"),
        }
        yield assigned("metric", Call("cloudwatch.MathExpression", named=whole), 3)
    else:
        yield assigned("metric", _metric(watch, "dimensions"), 3)
    made = Call(
        "cloudwatch.Alarm",
        (SELF, Code('f"{name}-alarm"')),
        {
            "alarm_name": Code('f"{prefix}{name}"'),
            "alarm_description": watch.description,
            "metric": Code("metric"),
            "comparison_operator": Code("cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD"),
            "threshold": watch.threshold,
            "evaluation_periods": watch.periods,
            "datapoints_to_alarm": watch.breaching_periods,
            "treat_missing_data": Code("cloudwatch.TreatMissingData.NOT_BREACHING"),
        },
    )
    yield assigned("alarm", made, 3)
    yield "            alarms.append(alarm)"


def _metric(watch: AlarmRule, dimensions: str) -> Call:
    return Call(
        "cloudwatch.Metric",
        named={
            "namespace": watch.namespace,
            "metric_name": watch.metric,
            "dimensions_map": Code(dimensions),
            "statistic": watch.statistic,
            "period": _period(watch),
        },
    )


def _period(watch: AlarmRule) -> Call:
    return Call("cdk.Duration.seconds", (watch.period_s,))


def _word(watch: AlarmRule) -> str:
    return watch.kind.replace("-", "_")


def _dimensions(alarm: Alarm, scope: Scope) -> dict[str, Value]:
    return {name: _value(name, told, scope) for name, told in alarm.dimensions}


def _value(name: str, told: str, scope: Scope) -> Value:
    match name:
        case "TableName":
            return Code(f"{scope.table(told)}.table_name")
        case "FunctionName":
            return Code(f"{scope.function(told)}.function_name")
        case "QueueName":
            return Code(f"{scope.failures(told)}.queue_name")
        case _:
            return told
