"""CloudFormation templates as designs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tavola.iac import PlanOptions, cdk_files, plan_infrastructure, render_template, render_terraform
from tavola.iac.formats import FormatError, ImportResult, read_design
from tavola.model.document import Consumer, IndexDesign, Policy, Scaling

FILES = Path(__file__).parent / "files"
TABLE = """
Resources:
  T:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{{AttributeName: id, AttributeType: S}}]
      KeySchema: [{{AttributeName: id, KeyType: HASH}}]
      {more}
"""


@pytest.fixture(scope="module")
def shop() -> ImportResult:
    """A template in YAML with short tags."""
    return read_design(FILES / "shop.yaml")


def read(tmp_path: Path, text: str, name: str = "template.yaml") -> ImportResult:
    """Read a template that a test writes."""
    (tmp_path / name).write_text(text)
    return read_design(tmp_path / name)


def told(imported: ImportResult) -> str:
    """Return the report as text."""
    return "\n".join(map(str, imported.report))


def test_a_table_has_every_setting_of_its_template(shop: ImportResult) -> None:
    """Keys, modes, TTL, recovery, encryption, stream, class and tags are read, with functions worked out."""
    (table,) = shop.design.tables
    settings = table.settings

    assert (table.label, table.name, table.foreign, table.entities) == ("Orders", "dev-orders", True, ())
    assert (settings.hash, settings.range, settings.ttl) == ("pk", "sk", "expires_at")
    assert (settings.recovery, settings.recovery_days) == (False, 7)
    assert (settings.encryption, settings.stream) == ("${KeyArn}", "NEW_AND_OLD_IMAGES")
    assert (settings.deletion_protection, settings.table_class) == (True, "STANDARD_INFREQUENT_ACCESS")
    assert (settings.read_units, settings.write_units) == (5, 5)
    assert (settings.scaling, settings.unknown) == (None, ("scaling",))  # its index does not scale
    assert settings.tags == {"Stage": "dev", "Owner": "shop"}
    assert table.key_types == {"pk": "S", "sk": "S", "status": "S", "placed_at": "N", "region": "S"}


def test_indexes_of_several_attributes_are_read(shop: ImportResult) -> None:
    """A flat key schema with several HASH attributes is a native index; keys are taken out of an INCLUDE list."""
    assert shop.design.tables[0].indexes == (
        IndexDesign("by-time", "by_time", True, ("pk",), ("placed_at",), "KEYS_ONLY"),
        IndexDesign("by-status", "by_status", False, ("status", "region"), ("placed_at",), ("total",), True),
    )
    assert "ignored pk: key attributes" in told(shop)


def test_a_mapping_of_the_stream_is_a_consumer(shop: ImportResult) -> None:
    """The event source mapping and its function make a consumer of the table that the stream is of."""
    assert shop.design.tables[0].consumers == (
        Consumer(
            "Counter",
            "shop.counters.handler",
            batch_size=50,
            window_s=2,
            retries=3,
            bisect=True,
            report_batch_item_failures=True,
            filters=({"eventName": ["INSERT"]},),
            failures="${Failed.Arn}",
            timeout_s=30,
            memory_mb=512,
        ),
    )


def test_policies_that_speak_of_dynamodb_are_kept(shop: ImportResult) -> None:
    """A role's policy is read with the ARNs of the tables it names; one of another service is none of ours."""
    arn = "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/dev-orders"
    statement = {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:Query"],
        "Resource": [arn, f"{arn}/index/*"],
    }
    assert shop.design.policies == (
        Policy("orders", {"Version": "2012-10-17", "Statement": [statement]}, ("dev-orders",)),
    )


def test_what_is_left_out_is_told(shop: ImportResult) -> None:
    """A condition that does not hold, a parameter without a default, and the want of entities are in the report."""
    assert "Resources.Archive: condition IsProd is false with the default parameters" in told(shop)
    assert "Parameters.KeyArn: no default value" in told(shop)
    assert "index by-status has capacity of its own" in told(shop)
    assert "This format has no entities or access patterns" in told(shop)


def test_global_tables_and_sam_are_read() -> None:
    """A global table gives its replicas and scaling; SAM's short table and function give a table and a consumer."""
    imported = read_design(FILES / "sam.json")
    sessions, users = imported.design.tables

    assert (sessions.settings.hash, sessions.settings.tags) == ("session", {"Team": "web"})
    assert users.name == "users-${AWS::AccountId}"
    assert (users.settings.replicas, users.settings.scaling) == (("us-east-1",), None)
    assert users.settings.unknown == ("scaling",)  # its index says no units of its own
    assert (users.settings.recovery, users.settings.encryption) == (True, "alias/aws/dynamodb")
    assert [each.name for each in users.consumers] == ["Welcome"]
    assert [each.name for each in imported.design.policies] == ["Welcome-1"]


def test_names_that_stand_on_themselves_are_refused(tmp_path: Path) -> None:
    """A circle of references is told as one, with its way round."""
    one = TABLE.format(more='TableName: !Sub "${U}-a"')
    other = one.replace("  T:", "  U:").replace("${U}-a", "${T}-b").replace("\nResources:\n", "")

    with pytest.raises(FormatError, match=r"circular reference: .*\.T\..* → "):
        read(tmp_path, one + other)


def test_references_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    """A chain of names, each twice the next, ends in a sentence and not in all the memory."""
    parts = [
        TABLE.format(more=f'TableName: !Sub "${{T{n + 1}}}${{T{n + 1}}}"').replace("  T:", f"  T{n}:")
        for n in range(40)
    ]
    last = TABLE.format(more="TableName: aaaaaaaa").replace("  T:", "  T40:")

    with pytest.raises(FormatError, match="more than 20,000 characters"):
        read(
            tmp_path, "Resources:\n" + "".join(each.replace("\nResources:\n", "") for each in [*parts, last])
        )


def test_a_condition_that_nobody_can_decide_is_taken_to_hold(tmp_path: Path) -> None:
    """What depends on the deployment is read as if it held, and told; a switch that does is unknown."""
    given = "Parameters: {A: {Type: String}}\nConditions: {C: !Equals [!Ref A, x]}"
    classed = read(
        tmp_path, given + TABLE.format(more="TableClass: !If [C, STANDARD_INFREQUENT_ACCESS, STANDARD]")
    )
    switched = read(tmp_path, given + TABLE.format(more="DeletionProtectionEnabled: !If [C, true, false]"))

    assert classed.design.tables[0].settings.table_class == "STANDARD_INFREQUENT_ACCESS"
    assert 'condition "C" cannot be evaluated' in told(classed)
    assert switched.design.tables[0].settings.unknown == ("deletion_protection",)


def test_a_function_of_elsewhere_is_not_made_anew(tmp_path: Path) -> None:
    """A mapping to a function that the template does not have is written as a mapping, and nothing else is invented."""
    text = TABLE.format(more="StreamSpecification: {StreamViewType: NEW_IMAGE}") + (
        "  M: {Type: 'AWS::Lambda::EventSourceMapping', Properties: "
        "{FunctionName: proj, EventSourceArn: !GetAtt T.StreamArn, StartingPosition: LATEST}}\n"
    )
    imported = read(tmp_path, text)
    (consumer,) = imported.design.tables[0].consumers
    plan = plan_infrastructure(imported.design, PlanOptions(alarms=True))

    assert consumer.function == "proj"
    assert 'resource "aws_lambda_function"' not in render_terraform(plan)
    assert 'resource "aws_iam_role"' not in render_terraform(plan)
    assert "AWS::Lambda::Function" not in render_template(plan)
    assert "lambda_.Function.from_function_name" in cdk_files(plan)["app.py"]
    assert any("is defined elsewhere" in told_ for told_ in plan.notes)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("KeySchema: [{AttributeName: id, KeyType: RANGE}]", "no partition key"),
        ("KeySchema: [{AttributeName: id, KeyType: MAIN}]", "use HASH or RANGE"),
        ("KeySchema: [{KeyType: HASH}]", "AttributeName is missing"),
        (
            "GlobalSecondaryIndexes: [&a {IndexName: a, KeySchema: [{AttributeName: id, KeyType: HASH}]}, *a]",
            "two indexes named 'a'",
        ),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_its_place(tmp_path: Path, more: str, problem: str) -> None:
    """A table without a key, or an index twice, is refused where it stands."""
    text = TABLE.format(more=more)
    if more.startswith("KeySchema"):
        text = text.replace("      KeySchema: [{AttributeName: id, KeyType: HASH}]\n", "", 1)

    with pytest.raises(FormatError, match=problem) as refused:
        read(tmp_path, text)
    assert "Resources.T" in refused.value.place


def test_a_template_without_a_table_is_refused(tmp_path: Path) -> None:
    """Whoever names a template of something else is told what is in it."""
    with pytest.raises(FormatError, match=r"no AWS::DynamoDB::Table resource found, only AWS::S3::Bucket"):
        read(tmp_path, "Resources: {B: {Type: AWS::S3::Bucket}}")


def test_a_template_that_is_json_may_be_called_anything(tmp_path: Path) -> None:
    """The format is told by what is in a file."""
    text = (FILES / "sam.json").read_text()

    assert read(tmp_path, text, "stack.txt").design == read(tmp_path, text, "stack.yaml").design


AROUND = """
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Timeout: 60, MemorySize: 1024}}
Parameters: {StreamArn: {Type: String}, Env: {Type: String}}
Conditions:
  IsProd: !Equals [!Ref Env, prod]
  NotProd: !Not [!Condition IsProd]
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Condition: NotProd
    Properties:
      TableName: orders
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      OnDemandThroughput: {MaxReadRequestUnits: 100}
      KinesisStreamSpecification: {StreamArn: "arn:aws:kinesis:us-east-1:1:stream/x"}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 99}
      StreamSpecification:
        StreamViewType: NEW_IMAGE
        ResourcePolicy:
          PolicyDocument: {Statement: [{Effect: Allow, Principal: "*", Action: "dynamodb:*", Resource: "*"}]}
      GlobalSecondaryIndexes:
        - IndexName: g
          KeySchema: [{AttributeName: id, KeyType: HASH}]
          Projection: {ProjectionType: ALL}
          WarmThroughput: {ReadUnitsPerSecond: 1}
  Welcome:
    Type: AWS::Serverless::Function
    Properties:
      Handler: a.b
      Policies: [AmazonDynamoDBFullAccess, AWSLambdaBasicExecutionRole, !Ref Own]
      Events:
        S: {Type: DynamoDB, Properties: {Stream: !GetAtt Orders.StreamArn, StartingPosition: LATEST}}
        Off: {Type: DynamoDB, Properties: {Stream: !GetAtt Orders.StreamArn, Enabled: false}}
  Unknown: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !Ref StreamArn, FunctionName: f}}
  Queue: {Type: AWS::SQS::Queue}
  Queued: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: f, Odd: 1}}
  Nested: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: "https://example.com/t.yaml"}}
  Own: {Type: AWS::IAM::ManagedPolicy, Properties: {PolicyDocument: {Statement: {Effect: Allow, Action: "s3:*", Resource: ["*"]}}}}
  Role:
    Type: AWS::IAM::Role
    Properties:
      ManagedPolicyArns: ["arn:aws:iam::aws:policy/AdministratorAccess"]
      Policies:
        - PolicyName: mixed
          PolicyDocument: {Statement: [{Effect: Allow, Action: "DynamoDB:*", Resource: "*"}]}
        - PolicyName: lost
"""


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> ImportResult:
    """A template with much around its table that a design has no place for."""
    return read(tmp_path_factory.mktemp("around"), AROUND)


def test_what_is_not_read_is_named(around: ImportResult) -> None:
    """Members of a table and of its indexes, nested stacks, mappings and policies that stand elsewhere are told."""
    report = told(around)

    for note in (
        "Resources.Orders: OnDemandThroughput, KinesisStreamSpecification are not imported",
        "Resources.Orders.GlobalSecondaryIndexes: WarmThroughput is not imported",
        "Resources.Orders.RecoveryPeriodInDays: 99 is outside 1 to 35 days",
        'Resources.Unknown: reads "${StreamArn}", not the stream of a table in this file',
        "Resources.Welcome.Events.Off: the event source mapping is disabled",
        "Resources.Nested: nested templates are not read",
        'Resources.Welcome.Policies[0]: policy "AmazonDynamoDBFullAccess" is not defined',
        'Resources.Role.ManagedPolicyArns: policy "arn:aws:iam::aws:policy/AdministratorAccess" is not defined',
        'Resources.Role.Policies[1]: SAM policy template {"PolicyName": "lost"} is not expanded',
        'Resources.Orders: condition "NotProd" cannot be evaluated from the template; using true',
    ):
        assert note in report
    for silent in ("Queued", "BasicExecution", "Policies[2]"):
        assert silent not in report


def test_policies_are_found_whatever_their_spelling(around: ImportResult) -> None:
    """A stream's own policy counts, and actions have no case; a policy of another service is none of ours."""
    assert [each.name for each in around.design.policies] == ["Orders-stream", "mixed"]


def test_globals_of_sam_are_of_every_function(around: ImportResult) -> None:
    """A function has the time and memory that the template says of all."""
    (consumer,) = around.design.tables[0].consumers

    assert (consumer.name, consumer.timeout_s, consumer.memory_mb) == ("Welcome", 60, 1024)
    assert not consumer.bisect


def test_scaling_has_the_aim_of_its_own_dimension(tmp_path: Path) -> None:
    """A policy of reads is none of writes, though both name the same table."""
    text = TABLE.format(more="ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 5}")
    for word, aim in (("Read", 40), ("Write", 80)):
        whose = f'ResourceId: !Sub "table/${{T}}", ScalableDimension: "dynamodb:table:{word}CapacityUnits"'
        kind = "AWS::ApplicationAutoScaling"
        text += f'  {word}T: {{Type: "{kind}::ScalableTarget", Properties: {{{whose}, MinCapacity: 5, MaxCapacity: 9}}}}\n'
        aimed = f"TargetTrackingScalingPolicyConfiguration: {{TargetValue: {aim}}}"
        text += f'  {word}P: {{Type: "{kind}::ScalingPolicy", Properties: {{{whose}, {aimed}}}}}\n'
    imported = read(tmp_path, text)

    assert imported.design.tables[0].settings.scaling == Scaling(9, 9, 5, 5, 40)
    assert "have different target utilizations" in told(imported)


def test_a_global_table_is_provisioned_unless_it_says_otherwise(tmp_path: Path) -> None:
    """Without a BillingMode units count; regions that agree strongly need no stream, and lint asks for none."""
    more = "MultiRegionConsistency: STRONG\n      Replicas: [{Region: us-east-1}, {Region: us-east-2}]"
    more += "\n      GlobalTableWitnesses: [{Region: us-west-2}]"
    imported = read(tmp_path, TABLE.format(more=more).replace("::Table", "::GlobalTable"))
    settings = imported.design.tables[0].settings

    assert (settings.read_units, settings.write_units) == (1, 1)
    assert (settings.replicas, settings.unknown) == (("us-east-2",), ("stream",))
    assert "GlobalTableWitnesses is not imported" in told(imported)
