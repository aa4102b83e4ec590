"""What the documents ask of the infrastructure, row by row."""

from __future__ import annotations

import json
from typing import Any

from tavola.apps.support_desk.metrics import MAPPING
from tavola.iac import PlanOptions, build_template, plan_infrastructure, render_terraform
from tavola.model.document import Design
from tests.iac.reading import read_hcl, resources
from tests.iac.samples import EVERYTHING, SAMPLES, WHOLE, plan_sample


def of_type(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the properties of all resources of a type."""
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == kind]


def texts(told: Any) -> list[str]:
    """Return every text in a resource, also within functions."""
    match told:
        case str():
            return [told]
        case dict():
            return [text for each in told.values() for text in texts(each)]
        case _:
            return [text for each in told for text in texts(each)]


def desk() -> dict[str, Any]:
    """Return the support desk's template."""
    return build_template(plan_sample("support_desk"))


def test_s12_the_table_has_its_indexes_ttl_stream_recovery_and_tags() -> None:
    """The support desk's template has the table of the document, with everything it is declared with."""
    tickets = of_type(desk(), "AWS::DynamoDB::Table")[0]

    assert tickets["TableName"] == {"Fn::Sub": "${NamePrefix}prod-tickets-unified"}
    assert tickets["BillingMode"] == "PAY_PER_REQUEST"
    assert {each["IndexName"] for each in tickets["GlobalSecondaryIndexes"]} >= {
        "GSI1-customer-index",
        "GSI2-status-index",
        "GSI3-operator-index",
        "escalated-tickets-index",
    }
    assert tickets["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert tickets["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert tickets["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert {"Key": "Environment", "Value": "production"} in tickets["Tags"]


def test_s12_the_stream_processor_is_mapped_as_the_document_maps_it() -> None:
    """The processor and its mapping: batches of 100, a window of 5 s, bisection, 3 retries; filters and a queue besides."""
    template = desk()
    (mapping,) = of_type(template, "AWS::Lambda::EventSourceMapping")

    assert mapping["EventSourceArn"] == {"Fn::GetAtt": ["ProdTicketsUnifiedTable", "StreamArn"]}
    wanted = {
        "BatchSize": 100,
        "MaximumBatchingWindowInSeconds": 5,
        "BisectBatchOnFunctionError": True,
        "MaximumRetryAttempts": 3,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
    }
    assert wanted.items() <= mapping.items()
    assert wanted == {  # what the desk's own trigger runs with
        "BatchSize": MAPPING.batch_size,
        "MaximumBatchingWindowInSeconds": MAPPING.maximum_batching_window_in_seconds,
        "BisectBatchOnFunctionError": MAPPING.bisect_batch_on_function_error,
        "MaximumRetryAttempts": MAPPING.maximum_retry_attempts,
        "FunctionResponseTypes": ["ReportBatchItemFailures"] if MAPPING.report_batch_item_failures else [],
    }
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    assert {"dynamodb": {"NewImage": {"entity_type": {"S": ["ticket", "feedback"]}}}} in patterns
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][1] == "Arn"
    assert len(of_type(template, "AWS::SQS::Queue")) == 1
    (function,) = of_type(template, "AWS::Lambda::Function")
    assert function["Runtime"].startswith("python3.")


def test_s12_the_processor_may_do_what_it_does_and_no_more() -> None:
    """The role reads this stream, keeps the numbers, logs and reports failures; no resource of it is a wildcard but what is refused."""
    (role,) = of_type(desk(), "AWS::IAM::Role")
    statements = role["Policies"][0]["PolicyDocument"]["Statement"]
    allowed = [each for each in statements if each["Effect"] == "Allow"]

    assert not any("*" in text for each in allowed for text in texts(each["Resource"]))
    assert not any(action.endswith("*") for each in allowed for action in each["Action"])
    stream = {"Fn::GetAtt": ["ProdTicketsUnifiedTable", "StreamArn"]}
    assert any(stream in each["Resource"] for each in allowed)
    metrics = {"Fn::GetAtt": ["ProdMetricsTable", "Arn"]}
    assert any(metrics in each["Resource"] and "dynamodb:PutItem" in each["Action"] for each in allowed)


def test_s12_alarms_tell_of_throttles_lag_and_errors() -> None:
    """Each table and index has its throttle alarms; errors and a consumer that is behind have theirs."""
    alarms = of_type(desk(), "AWS::CloudWatch::Alarm")
    indexes = {
        dimension["Value"]
        for alarm in alarms
        if alarm.get("MetricName") == "WriteThrottleEvents"
        for dimension in alarm["Dimensions"]
        if dimension["Name"] == "GlobalSecondaryIndexName"
    }

    assert len(indexes) == 6
    assert {
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "OnlineIndexThrottleEvents",
        "UserErrors",
        "IteratorAge",
        "Errors",
    } <= {alarm.get("MetricName") for alarm in alarms}
    users = next(alarm for alarm in alarms if alarm.get("MetricName") == "UserErrors")
    assert "Dimensions" not in users  # CloudWatch counts them for the account
    system = next(alarm for alarm in alarms if "Metrics" in alarm)
    assert len(system["Metrics"]) <= 10  # of one alarm


def test_s12_the_endpoint_reaches_these_tables_only() -> None:
    """Traffic stays in the network: a gateway endpoint for the account's own use of these tables."""
    (endpoint,) = of_type(desk(), "AWS::EC2::VPCEndpoint")
    allowed, listed, refused = endpoint["PolicyDocument"]["Statement"]

    assert endpoint["VpcEndpointType"] == "Gateway"
    assert {"Fn::GetAtt": ["ProdTicketsUnifiedTable", "Arn"]} in allowed["Resource"]
    assert "*" not in allowed["Resource"]
    assert (listed["Action"], listed["Resource"]) == (["dynamodb:ListBackups"], "*")  # the backup's
    assert refused["Effect"] == "Deny"


def test_p04_a_table_with_multi_attribute_indexes_in_the_providers_syntax() -> None:
    """The document's tournament table: five attributes, each a key_schema block, in order."""
    text = render_terraform(plan_sample("tournaments"))
    (table,) = resources(text, "aws_dynamodb_table").values()
    (index,) = table["global_secondary_index"]

    assert [(each["attribute_name"], each["key_type"]) for each in index["key_schema"]] == [
        ("tournamentId", "HASH"),
        ("region", "HASH"),
        ("round", "RANGE"),
        ("bracket", "RANGE"),
        ("matchId", "RANGE"),
    ]
    assert {each["name"] for each in table["attribute"]} == {
        "PK", "SK", "tournamentId", "region", "round", "bracket", "matchId"
    }  # fmt: skip


def test_p04_stream_mapping_recovery_encryption_and_tags() -> None:
    """Terraform has the stream, the mapping with its filters, point-in-time recovery, encryption and tags."""
    text = render_terraform(plan_sample("support_desk"))
    table = resources(text, "aws_dynamodb_table")["prod_tickets_unified"]
    (mapping,) = resources(text, "aws_lambda_event_source_mapping").values()

    assert table["stream_enabled"] is True
    assert table["stream_view_type"] == "NEW_AND_OLD_IMAGES"
    assert table["point_in_time_recovery"] == [{"enabled": True, "recovery_period_in_days": 35}]
    assert table["server_side_encryption"] == [{"enabled": True, "kms_key_arn": "${aws_kms_key.tables.arn}"}]
    assert table["tags"] == {"Environment": "production", "Application": "ai-technical-support"}
    assert table["ttl"] == [{"attribute_name": "ttl", "enabled": True}]
    assert mapping["event_source_arn"] == "${aws_dynamodb_table.prod_tickets_unified.stream_arn}"
    filters = mapping["filter_criteria"][0]["filter"]
    assert all("jsonencode" in each["pattern"] for each in filters)
    assert mapping["destination_config"][0]["on_failure"][0]["destination_arn"].startswith("${aws_sqs_queue.")


def test_p04_the_provider_is_one_that_knows_the_syntax() -> None:
    """A module asks for a provider that has what it uses."""
    for sample, least in (("tournaments", ">= 6.29"), ("everything", ">= 6.44")):
        (settings,) = read_hcl(render_terraform(plan_sample(sample)))["terraform"]

        assert settings["required_providers"][0]["aws"]["version"] == least


def test_r10_data_is_encrypted_at_rest_by_a_key_that_turns() -> None:
    """The review's table is encrypted with a key of the account, which is rotated and used through DynamoDB only."""
    template = build_template(plan_sample("terraform_review"))
    (table,) = of_type(template, "AWS::DynamoDB::Table")
    (key,) = of_type(template, "AWS::KMS::Key")

    assert table["SSESpecification"] == {
        "SSEEnabled": True,
        "SSEType": "KMS",
        "KMSMasterKeyId": {"Fn::GetAtt": ["TableKey", "Arn"]},
    }
    assert key["EnableKeyRotation"] is True
    through = key["KeyPolicy"]["Statement"][1]
    assert set(through["Condition"]["StringEquals"]) == {"kms:CallerAccount", "kms:ViaService"}


def test_r10_requests_in_clear_are_refused() -> None:
    """Every policy and role refuses what does not come over TLS, and so does the endpoint."""
    for sample in ("support_desk", "terraform_review", "everything"):
        template = build_template(plan_sample(sample))
        documents = [
            *(each["PolicyDocument"] for each in of_type(template, "AWS::IAM::ManagedPolicy")),
            *(
                policy["PolicyDocument"]
                for each in of_type(template, "AWS::IAM::Role")
                for policy in each["Policies"]
            ),
            *(each["PolicyDocument"] for each in of_type(template, "AWS::EC2::VPCEndpoint")),
        ]

        assert documents
        for document in documents:
            refusal = {"Bool": {"aws:SecureTransport": "false"}}
            assert any(
                each["Effect"] == "Deny" and each["Condition"] == refusal for each in document["Statement"]
            )


def test_r10_policies_name_their_tables() -> None:
    """A policy allows actions by name, on tables and indexes of this template, and nothing with a wildcard for either."""
    for sample in SAMPLES:
        template = build_template(plan_infrastructure(SAMPLES[sample][0], WHOLE))
        for policy in of_type(template, "AWS::IAM::ManagedPolicy"):
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow" and statement["Action"] != ["dynamodb:ListBackups"]:
                    assert all(
                        "*" not in text.removesuffix("/backup/*") for text in texts(statement["Resource"])
                    )
                    assert not any(action.endswith("*") for action in statement["Action"])


def test_r10_a_key_that_is_there_is_used() -> None:
    """A key that a design names, or that is given for all tables, is the one that encrypts them."""
    named = build_template(plan_infrastructure(EVERYTHING))
    orders = of_type(named, "AWS::DynamoDB::Table")[0]
    given = build_template(
        plan_infrastructure(Design(SAMPLES["service_desk"][0].tables), PlanOptions(key="alias/aws/dynamodb"))
    )

    assert orders["SSESpecification"]["KMSMasterKeyId"].startswith("arn:aws:kms:")
    assert not of_type(named, "AWS::KMS::Key")
    assert of_type(given, "AWS::DynamoDB::Table")[0]["SSESpecification"] == {
        "SSEEnabled": True,
        "SSEType": "KMS",
    }
