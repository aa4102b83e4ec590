"""Alarms of a stack: one loop for each kind, over the tables, indexes or functions that it watches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tavola.iac.alarms import Alarm, AlarmRule
from tavola.iac.cdk.python_text import PythonCall, PythonCode, Value, render_assignment
from tavola.iac.cdk.scope import SELF, StackNames
from tavola.iac.plan import InfrastructurePlan


def alarm_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Give the lines that make the alarms, and have them tell a topic if the context names one."""
    if not plan.alarms:
        return
    yield render_assignment("alarms", PythonCode("[]"), 2)
    for watch, alarms in groupby(plan.alarms, lambda alarm: alarm.rule):
        rows: dict[str, Value] = {alarm.name: _dimensions(alarm, scope) for alarm in alarms}
        yield render_assignment(f"{_word(watch)}", rows, 2)
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
        yield render_assignment("operations", operations, 3)
        yield render_assignment("parts", PythonCode("{}"), 3)
        yield "            for operation in operations:"
        part = _metric(watch, '{**dimensions, "Operation": operation}')
        yield render_assignment("parts[operation[0].lower() + operation[1:]]", part, 4)
        whole: dict[str, Value] = {
            "expression": "SUM(METRICS())",
            "label": watch.metric,
            "period": _period(watch),
            "using_metrics": PythonCode("parts"),
        }
        yield render_assignment("metric", PythonCall("cloudwatch.MathExpression", named=whole), 3)
    else:
        yield render_assignment("metric", _metric(watch, "dimensions"), 3)
    made = PythonCall(
        "cloudwatch.Alarm",
        (SELF, PythonCode('f"{name}-alarm"')),
        {
            "alarm_name": PythonCode('f"{prefix}{name}"'),
            "alarm_description": watch.description,
            "metric": PythonCode("metric"),
            "comparison_operator": PythonCode("cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD"),
            "threshold": watch.threshold,
            "evaluation_periods": watch.periods,
            "datapoints_to_alarm": watch.breaching_periods,
            "treat_missing_data": PythonCode("cloudwatch.TreatMissingData.NOT_BREACHING"),
        },
    )
    yield render_assignment("alarm", made, 3)
    yield "            alarms.append(alarm)"


def _metric(watch: AlarmRule, dimensions: str) -> PythonCall:
    return PythonCall(
        "cloudwatch.Metric",
        named={
            "namespace": watch.namespace,
            "metric_name": watch.metric,
            "dimensions_map": PythonCode(dimensions),
            "statistic": watch.statistic,
            "period": _period(watch),
        },
    )


def _period(watch: AlarmRule) -> PythonCall:
    return PythonCall("cdk.Duration.seconds", (watch.period_s,))


def _word(watch: AlarmRule) -> str:
    return watch.kind.replace("-", "_")


def _dimensions(alarm: Alarm, scope: StackNames) -> dict[str, Value]:
    return {name: _value(name, told, scope) for name, told in alarm.dimensions}


def _value(name: str, told: str, scope: StackNames) -> Value:
    match name:
        case "TableName":
            return PythonCode(f"{scope.table(told)}.table_name")
        case "FunctionName":
            return PythonCode(f"{scope.function(told)}.function_name")
        case "QueueName":
            return PythonCode(f"{scope.failures(told)}.queue_name")
        case _:
            return told
