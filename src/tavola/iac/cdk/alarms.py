"""The alarms of a stack: one loop per rule, over tables, indexes or functions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.cdk.python_text import PythonCall, PythonCode, Value, render_assignment
from tavola.iac.cdk.scope import SELF, StackNames
from tavola.iac.plan import InfrastructurePlan


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
