"""The files of large designs say what their plan says: too long to review, they are parsed and compared with it."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tavola.iac import InfrastructurePlan, build_template, cdk_files, render_terraform
from tavola.iac.grants import ONLY_OVER_TLS, Grant, render_conditions
from tavola.iac.plan import KEY_ACTIONS, LOG_DAYS, ConsumerPlan, TablePlan
from tests.iac.reading import read_hcl, resources
from tests.iac.samples import REVIEWED, SAMPLES, plan_sample

LARGE = tuple(name for name in SAMPLES if name not in REVIEWED)


@pytest.fixture(params=LARGE)
def plan(request: pytest.FixtureRequest) -> InfrastructurePlan:
    """Return the plan of each large sample in turn."""
    return plan_sample(request.param)


def of_type(plan: InfrastructurePlan, *types: str) -> list[dict[str, Any]]:
    """Return the properties of a template's resources of some types."""
    made = build_template(plan)["Resources"].values()
    return [each["Properties"] for each in made if each["Type"] in types]


def calls(plan: InfrastructurePlan, name: str) -> list[dict[str, str]]:
    """Return the keyword arguments of every call of a construct in a CDK app, as source text."""
    return [
        {each.arg: ast.unparse(each.value) for each in node.keywords if each.arg is not None}
        for node in ast.walk(ast.parse(cdk_files(plan)["app.py"]))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    ]


def key_schema(table: TablePlan) -> dict[str | None, list[tuple[str, str]]]:
    """Return the keys of a table (None) and of its indexes."""
    keys: dict[str | None, list[tuple[str, str]]] = {None: list(table.schema())}
    return keys | {index.name: list(table.schema(index)) for index in table.indexes}


def test_cloudformation_tables(plan: InfrastructurePlan) -> None:
    """Every table has the planned keys, attribute types, stream, TTL and protection."""
    made = of_type(plan, "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")

    assert len(made) == len(plan.tables)
    for table, properties in zip(plan.tables, made, strict=True):
        indexes = [
            *properties.get("GlobalSecondaryIndexes", ()),
            *properties.get("LocalSecondaryIndexes", ()),
        ]
        keys = {
            each.get("IndexName"): [(part["AttributeName"], part["KeyType"]) for part in each["KeySchema"]]
            for each in (properties, *indexes)
        }
        types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}
        projections = {each["IndexName"]: each["Projection"]["ProjectionType"] for each in indexes}
        assert properties["TableName"] == {"Fn::Sub": f"${{NamePrefix}}{table.name}"}
        assert keys == key_schema(table)
        assert types == dict(table.attributes)
        assert projections == {index.name: index.projection for index in table.indexes}
        assert properties.get("StreamSpecification", {}).get("StreamViewType") == table.stream
        assert properties.get("TimeToLiveSpecification", {}).get("AttributeName") == table.ttl
        settings = properties["Replicas"][0] if table.replicas else properties
        assert settings["DeletionProtectionEnabled"] == table.deletion_protection
        assert settings["TableClass"] == table.table_class
        recovery = settings.get("PointInTimeRecoverySpecification", {})
        assert recovery.get("RecoveryPeriodInDays") == table.recovery_days


def test_terraform_tables(plan: InfrastructurePlan) -> None:
    """Every table has the planned key, TTL, stream and recovery, and every index its key."""
    text = render_terraform(plan)
    tables = list(resources(text, "aws_dynamodb_table").values())
    separate = {
        (each["table_name"], each["index_name"]): each
        for each in resources(text, "aws_dynamodb_global_secondary_index").values()
    }

    assert len(tables) == len(plan.tables)
    for table, body in zip(plan.tables, tables, strict=True):
        indexes = {each["name"]: each for each in body.get("global_secondary_index", ())}
        indexes |= {name: each for (owner, name), each in separate.items() if _refers_to(owner, table)}
        assert table.name in body["name"]
        assert (body["hash_key"], body.get("range_key")) == (table.hash, table.range)
        assert body.get("stream_view_type") == table.stream
        assert body.get("ttl", [{}])[0].get("attribute_name") == table.ttl
        recovery = body.get("point_in_time_recovery", [{}])[0]
        assert recovery.get("recovery_period_in_days") == table.recovery_days
        assert set(indexes) == {index.name for index in table.global_indexes}
        for index in table.global_indexes:
            schema = indexes[index.name]["key_schema"]
            assert [(each["attribute_name"], each["key_type"]) for each in schema] == list(
                table.schema(index)
            )
        assert [each["name"] for each in body.get("local_secondary_index", ())] == [
            index.name for index in table.local_indexes
        ]


def _refers_to(reference: str, table: TablePlan) -> bool:
    return reference == f"${{aws_dynamodb_table.{table.name.replace('.', '_').replace('-', '_')}.name}}"


def test_cdk_constructs(plan: InfrastructurePlan) -> None:
    """The app makes each table with its indexes, each function, mapping, policy and alarm group of the plan."""
    tables = calls(plan, "dynamodb.TableV2")
    indexes = calls(plan, "dynamodb.GlobalSecondaryIndexPropsV2")
    local = calls(plan, "dynamodb.LocalSecondaryIndexProps")
    own = [consumer for consumer in plan.consumers if not consumer.existing_function]

    assert [each["table_name"] for each in tables] == [f"f'{{prefix}}{table.name}'" for table in plan.tables]
    assert [each.get("time_to_live_attribute") for each in tables] == [
        None if table.ttl is None else repr(table.ttl) for table in plan.tables
    ]
    assert [ast.literal_eval(each["index_name"]) for each in indexes] == [
        index.name for table in plan.tables for index in table.global_indexes
    ]
    assert len(local) == sum(len(table.local_indexes) for table in plan.tables)
    assert [each["handler"] for each in calls(plan, "lambda_.Function")] == [
        repr(consumer.handler) for consumer in own
    ]
    sources = calls(plan, "event_sources.DynamoEventSource")
    assert [each["batch_size"] for each in sources] == [
        str(each.settings.batch_size) for each in plan.consumers
    ]
    assert len(calls(plan, "iam.ManagedPolicy")) == len(plan.policies)
    assert len(calls(plan, "cloudwatch.Alarm")) == len({alarm.rule for alarm in plan.alarms})


def _settings(consumer: ConsumerPlan) -> dict[str, Any]:
    settings = consumer.settings
    return {
        "StartingPosition": settings.starting,
        "BatchSize": settings.batch_size,
        "MaximumBatchingWindowInSeconds": settings.window_s,
        "ParallelizationFactor": settings.parallelization,
        "BisectBatchOnFunctionError": settings.bisect,
        "MaximumRetryAttempts": settings.retries,
        "MaximumRecordAgeInSeconds": settings.max_age_s,
    }


def test_stream_consumers(plan: InfrastructurePlan) -> None:
    """CloudFormation and Terraform map each stream with the planned batch, retry and filter settings."""
    template = of_type(plan, "AWS::Lambda::EventSourceMapping")
    module = list(resources(render_terraform(plan), "aws_lambda_event_source_mapping").values())
    words = {
        "StartingPosition": "starting_position",
        "BatchSize": "batch_size",
        "MaximumBatchingWindowInSeconds": "maximum_batching_window_in_seconds",
        "ParallelizationFactor": "parallelization_factor",
        "BisectBatchOnFunctionError": "bisect_batch_on_function_error",
        "MaximumRetryAttempts": "maximum_retry_attempts",
        "MaximumRecordAgeInSeconds": "maximum_record_age_in_seconds",
    }

    for consumer, properties, body in zip(plan.consumers, template, module, strict=True):
        expected = _settings(consumer)
        assert {name: properties[name] for name in expected} == expected
        assert {name: _number(body[word]) for name, word in words.items()} == expected
        filters = properties.get("FilterCriteria", {}).get("Filters", [])
        assert [each["Pattern"] for each in filters] == list(consumer.patterns)
        assert len(body.get("filter_criteria", [{}])[0].get("filter", [])) == len(consumer.patterns)
        assert ("DestinationConfig" in properties) == (consumer.failure_service is not None)
        assert ("destination_config" in body) == (consumer.failure_service is not None)


def _number(value: Any) -> Any:
    """Return `-1`, which python-hcl2 gives as an expression, as a number."""
    return int(value.strip("${}")) if isinstance(value, str) and value.strip("${}-").isdigit() else value


def _spelled(grants: tuple[Grant, ...]) -> Counter[tuple[str, str, tuple[str, ...], int]]:
    return Counter(
        (grant.sid, grant.effect, grant.actions, len(grant.references))  # references are spelled by vendor
        for grant in grants
    )


def test_policies(plan: InfrastructurePlan) -> None:
    """Every role's policy has the planned statements in both formats."""
    template = [
        Counter(
            (each["Sid"], each["Effect"], tuple(each["Action"]), len(each["Resource"]))
            for each in properties["PolicyDocument"]["Statement"]
        )
        for properties in of_type(plan, "AWS::IAM::ManagedPolicy")
    ]
    text = render_terraform(plan)
    statements = {
        name: Counter(
            (each["sid"], each.get("effect", "Allow"), tuple(each["actions"]), len(each["resources"]))
            for each in body["statement"]
            if "sid" in each
        )
        for name, body in _documents(text).items()
    }

    assert template == [_spelled(policy.grants) for policy in plan.policies]
    for policy in plan.policies:
        assert statements[policy.name.replace("-", "_")] == _spelled(policy.grants)


def _documents(text: str) -> Mapping[str, dict[str, Any]]:
    return {
        name: body
        for block in read_hcl(text).get("data", [])
        for name, body in block.get("aws_iam_policy_document", {}).items()
    }


def test_conditions_of_policies(plan: InfrastructurePlan) -> None:
    """A statement's conditions in a template are the planned ones, operator by operator and key by key."""
    documents = [each["PolicyDocument"] for each in of_type(plan, "AWS::IAM::ManagedPolicy")]
    for policy, document in zip(plan.policies, documents, strict=True):
        for grant, statement in zip(policy.grants, document["Statement"], strict=True):
            spelled = {
                (operator, key): tuple(value) if isinstance(value, list) else (value,)
                for operator, keys in statement.get("Condition", {}).items()
                for key, value in keys.items()
            }
            assert spelled == {(each.operator, each.key): each.values for each in grant.conditions}, (
                json.dumps(statement)
            )


def test_alarms(plan: InfrastructurePlan) -> None:
    """Every alarm has its name, metric, threshold and periods."""
    template = {
        (
            each["AlarmName"]["Fn::Sub"].removeprefix("${NamePrefix}"),
            each["Threshold"],
            each["EvaluationPeriods"],
        )
        for each in of_type(plan, "AWS::CloudWatch::Alarm")
    }
    module = resources(render_terraform(plan), "aws_cloudwatch_metric_alarm")
    names = {name for body in module.values() for name in body.get("for_each", {})}

    assert template == {(alarm.name, alarm.rule.threshold, alarm.rule.periods) for alarm in plan.alarms}
    assert {alarm.name for alarm in plan.alarms if alarm.dimensions} == names
    assert {name: body["threshold"] for name, body in module.items()} == {
        alarm.rule.kind.replace("-", "_"): alarm.rule.threshold for alarm in plan.alarms
    }


def _joined(value: Any) -> Any:
    """Return a text that a template joins from parts, so that `${` is not substituted."""
    return "".join(value["Fn::Join"][1]) if isinstance(value, dict) else value


def test_tags_of_tables(plan: InfrastructurePlan) -> None:
    """Every table has its planned tags in all three formats."""
    template = of_type(plan, "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
    module = list(resources(render_terraform(plan), "aws_dynamodb_table").values())
    constructs = calls(plan, "dynamodb.TableV2")

    for table, properties, body, call in zip(plan.tables, template, module, constructs, strict=True):
        settings = properties["Replicas"][0] if table.replicas else properties
        tags = {_joined(each["Key"]): _joined(each["Value"]) for each in settings.get("Tags", ())}
        assert tags == dict(table.tags)
        assert body.get("tags", {}) == dict(table.tags)
        assert call.get("tags", "").count("cdk.CfnTag(") == len(table.tags)
        assert all(repr(text) in call["tags"] for tag in table.tags.items() for text in tag)


def test_descriptions_of_policies(plan: InfrastructurePlan) -> None:
    """Every policy has its planned description in all three formats."""
    descriptions = [policy.description for policy in plan.policies]
    module = resources(render_terraform(plan), "aws_iam_policy")

    assert [each["Description"] for each in of_type(plan, "AWS::IAM::ManagedPolicy")] == descriptions
    assert [each["description"] for each in module.values()] == descriptions
    assert [
        ast.literal_eval(each["description"]) for each in calls(plan, "iam.ManagedPolicy")
    ] == descriptions


def test_terraform_conditions_of_policies(plan: InfrastructurePlan) -> None:
    """A statement's condition blocks in a module are the planned ones."""
    documents = _documents(render_terraform(plan))
    for policy in plan.policies:
        statements = documents[policy.name.replace("-", "_")]["statement"]
        for grant, statement in zip(policy.grants, statements, strict=True):
            conditions = [
                (each["test"], each["variable"], tuple(each["values"]))
                for each in statement.get("condition", ())
            ]
            assert [(test, key, len(values)) for test, key, values in conditions] == [
                (each.operator, each.key, len(each.values)) for each in grant.conditions
            ]
            for (_, _, values), planned in zip(conditions, grant.conditions, strict=True):
                plain = [
                    (one, other)
                    for one, other in zip(values, planned.values, strict=True)
                    if "$" not in other
                ]
                assert all(one == other for one, other in plain)


def test_cdk_statements_of_policies(plan: InfrastructurePlan) -> None:
    """A managed policy of the app has the planned statements: sid, effect, actions and conditions."""
    for policy, call in zip(plan.policies, calls(plan, "iam.ManagedPolicy"), strict=True):
        statements = ast.parse(call["statements"], mode="eval").body
        assert isinstance(statements, ast.List)
        for grant, node in zip(policy.grants, statements.elts, strict=True):
            assert isinstance(node, ast.Call)
            arguments = {each.arg: each.value for each in node.keywords}
            assert ast.literal_eval(arguments["sid"]) == grant.sid
            assert ast.literal_eval(arguments["actions"]) == list(grant.actions)
            assert ("effect" in arguments) == (grant.effect == "Deny")
            conditions = ast.literal_eval(arguments["conditions"]) if "conditions" in arguments else {}
            assert conditions == render_conditions(grant)


def test_log_groups(plan: InfrastructurePlan) -> None:
    """Each function that the plan creates has a log group with its name and the planned retention."""
    created = [consumer.function for consumer in plan.consumers if not consumer.existing_function]
    template = of_type(plan, "AWS::Logs::LogGroup")
    module = resources(render_terraform(plan), "aws_cloudwatch_log_group")

    assert [(each["LogGroupName"]["Fn::Sub"], each["RetentionInDays"]) for each in template] == [
        (f"/aws/lambda/${{NamePrefix}}{name}", LOG_DAYS) for name in created
    ]
    assert [each["retention_in_days"] for each in module.values()] == [LOG_DAYS] * len(created)
    assert all(name in body["name"] for name, body in zip(created, module.values(), strict=True))
    assert len(calls(plan, "logs.LogGroup")) == len(created)


def test_outputs_and_parameters(plan: InfrastructurePlan) -> None:
    """A template and a module output every table, stream, policy and failure queue, and ask for what the plan leaves open."""
    template = build_template(plan)
    module = read_hcl(render_terraform(plan))
    outputs = {name: body for block in module["output"] for name, body in block.items()}
    variables = {name for block in module["variable"] for name in block}
    streams = [table.name for table in plan.tables if table.stream is not None]
    queues = [each.function for each in plan.consumers if each.created_destination == "sqs"]
    created = [consumer for consumer in plan.consumers if not consumer.existing_function]

    expected = len(plan.tables) + len(streams) + len(plan.policies) + len(queues) + plan.makes_key
    assert len(template["Outputs"]) == expected
    assert list(outputs["table_arns"]["value"]) == list(plan.names)
    assert list(outputs.get("stream_arns", {}).get("value", {})) == streams
    assert list(outputs.get("policy_arns", {}).get("value", {})) == [each.name for each in plan.policies]
    assert list(outputs.get("failure_queue_urls", {}).get("value", {})) == queues
    assert ("key_arn" in outputs) == plan.makes_key
    assert ("CodeBucket" in template["Parameters"]) == ("code_bucket" in variables) == bool(created)
    assert (
        ("AlarmTopicArn" in template["Parameters"]) == ("alarm_topic_arns" in variables) == bool(plan.alarms)
    )
    assert ("VpcId" in template["Parameters"]) == ("vpc_id" in variables) == plan.endpoint
    assert sum(name.endswith("_code_key") for name in variables) == len(created)


def test_key_and_endpoint_policies(plan: InfrastructurePlan) -> None:
    """The encryption key is usable only through DynamoDB; the endpoint admits the planned tables and denies plain HTTP."""
    documents = _documents(render_terraform(plan))
    keys = of_type(plan, "AWS::KMS::Key")
    endpoints = of_type(plan, "AWS::EC2::VPCEndpoint")
    sids = {each["sid"]: each for body in documents.values() for each in body["statement"] if "sid" in each}

    assert (len(keys), len(calls(plan, "kms.Key"))) == (plan.makes_key, plan.makes_key)
    assert ("ThroughDynamoDB" in sids) == plan.makes_key
    for key in keys:
        owner, through = key["KeyPolicy"]["Statement"]
        assert (owner["Action"], through["Action"]) == ("kms:*", list(KEY_ACTIONS))
        assert set(through["Condition"]["StringEquals"]) == {"kms:CallerAccount", "kms:ViaService"}
        assert sids["ThroughDynamoDB"]["actions"] == list(KEY_ACTIONS)
        assert {each["variable"] for each in sids["ThroughDynamoDB"]["condition"]} == {
            "kms:CallerAccount",
            "kms:ViaService",
        }
    assert (len(endpoints), len(calls(plan, "ec2.CfnVPCEndpoint"))) == (plan.endpoint, plan.endpoint)
    for endpoint in endpoints:
        first, *others = endpoint["PolicyDocument"]["Statement"]
        assert len(first["Resource"]) == len(sids["TheseTables"]["resources"]) == 2 * len(plan.tables)
        assert set(first["Condition"]["StringEquals"]) == {"aws:PrincipalAccount"}
        assert (others[-1]["Effect"], others[-1]["Sid"]) == ("Deny", ONLY_OVER_TLS.sid)
        unscoped = [action for each in others[:-1] for action in each["Action"]]
        assert unscoped == list(plan.unscoped_actions) == sids.get("UnscopedActions", {}).get("actions", [])
