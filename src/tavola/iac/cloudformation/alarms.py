"""The alarms of a template; they notify a topic if the parameter names one, and exist in any case."""

from __future__ import annotations

from collections.abc import Mapping

from tavola.iac.alarms import Alarm
from tavola.iac.cloudformation.scope import Node, TemplateNames, attribute, prefix_name, ref, tags_property

TOPIC = "AlarmTopicArn"
HAS_TOPIC = "HasAlarmTopic"


def topic_parameter() -> Node:
    """Return the parameter for the topic that alarms notify."""
    return {
        "Type": "String",
        "Default": "",
        "Description": "The ARN of the SNS topic that alarms tell; without one they tell nobody.",
    }


def topic_condition() -> Node:
    """Return the condition that a topic is given."""
    return {"Fn::Not": [{"Fn::Equals": [ref(TOPIC), ""]}]}


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
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties | tags_property(tags)}


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
