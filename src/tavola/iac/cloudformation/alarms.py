"""Alarms of a template; they tell a topic if one is given, and are there in any case."""

from __future__ import annotations

from collections.abc import Mapping

from tavola.iac.alarms import Alarm
from tavola.iac.cloudformation.scope import Node, TemplateNames, attribute, prefix_name, ref, tags_property

TOPIC = "AlarmTopicArn"
HAS_TOPIC = "HasAlarmTopic"


def topic_parameter() -> Node:
    """Return the parameter that says whom the alarms tell."""
    return {
        "Type": "String",
        "Default": "",
        "Description": "The ARN of the SNS topic that alarms tell; without one they tell nobody.",
    }


def topic_condition() -> Node:
    """Return whether there is a topic."""
    return {"Fn::Not": [{"Fn::Equals": [ref(TOPIC), ""]}]}


def alarm_resource(alarm: Alarm, scope: TemplateNames, tags: Mapping[str, str]) -> Node:
    """Return one alarm."""
    watch = alarm.rule
    properties: Node = {
        "AlarmName": prefix_name(alarm.name),
        "AlarmDescription": watch.description,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": watch.threshold,
        "EvaluationPeriods": watch.periods,
        "DatapointsToAlarm": watch.breaching_periods,
        "TreatMissingData": "notBreaching",
        "AlarmActions": {"Fn::If": [HAS_TOPIC, [ref(TOPIC)], ref("AWS::NoValue")]},
        "OKActions": {"Fn::If": [HAS_TOPIC, [ref(TOPIC)], ref("AWS::NoValue")]},
    }
    dimensions = [{"Name": name, "Value": _value(name, told, scope)} for name, told in alarm.dimensions]
    if watch.operations:
        properties["Metrics"] = _added_up(alarm, dimensions)
    else:
        properties |= {
            "Namespace": watch.namespace,
            "MetricName": watch.metric,
            "Statistic": watch.statistic,
            "Period": watch.period_s,
        }
        if dimensions:
            properties["Dimensions"] = dimensions
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties | tags_property(tags)}


def _added_up(alarm: Alarm, dimensions: list[Node]) -> list[Node]:
    watch = alarm.rule
    metrics: list[Node] = [
        {
            "Id": f"m{number}",
            "ReturnData": False,
            "MetricStat": {
                "Metric": {
                    "Namespace": watch.namespace,
                    "MetricName": watch.metric,
                    "Dimensions": [*dimensions, {"Name": "Operation", "Value": operation}],
                },
                "Period": watch.period_s,
                "Stat": watch.statistic,
            },
        }
        for number, operation in enumerate(watch.operations, 1)
    ]
    whole = {"Id": "total", "Expression": "SUM(METRICS())", "Label": watch.metric, "ReturnData": True}
    return [whole, *metrics]


def _value(name: str, told: str, scope: TemplateNames) -> str | Node:
    match name:
        case "TableName":
            return ref(scope.table(told))
        case "FunctionName":
            return ref(scope.function(told))
        case "QueueName":
            return attribute(scope.destination(told), "QueueName")
        case _:
            return told
