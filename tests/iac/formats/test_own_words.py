"""Errors and notes about an imported file use the names of its format, and say where and what to do."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.iac.formats import FormatError, read_design

INTERNAL = (  # words of validators, parsers and Python that a user of another tool does not know
    *("Extra inputs", "Input should be", "Tuple should", "NoneType", "Traceback", "<block end>", "Mapping"),
    *("hash_=", "range_=", "\\d", "[A-Za-z]", "Object missing required field", "RBRACE", "$END", "KeyError"),
)
TABLE = {
    "TableName": "orders",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}
INDEX = {
    "IndexName": "by-status",
    "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
MODEL = {
    "ModelName": "shop",
    "ModelMetadata": {"Version": "3.0", "AWSService": "Amazon DynamoDB"},
    "DataModel": [
        {
            "TableName": "orders",
            "KeyAttributes": {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}},
            "NonKeyAttributes": [{"AttributeName": "total", "AttributeType": "N"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
    ],
}
SCHEMA = {
    "format": "onetable:1.1.0",
    "indexes": {"primary": {"hash": "pk", "sort": "sk"}},
    "models": {
        "User": {
            "pk": {"type": "string", "value": "user#${id}"},
            "sk": {"type": "string", "value": "user#"},
            "id": {"type": "string", "required": True},
        }
    },
}


def hcl(body: str = "", *, without: str = "", more: str = "") -> str:
    """Return a Terraform file with one table, from line 2 on."""
    lines = [
        '  name         = "orders"',
        '  billing_mode = "PAY_PER_REQUEST"',
        '  hash_key     = "pk"',
        '  attribute {\n    name = "pk"\n    type = "S"\n  }',
    ]
    kept = [line for line in lines if not without or without not in line]
    return "\n".join(["# tables", 'resource "aws_dynamodb_table" "orders" {', *kept, body, "}", more, ""])


def gsi(arguments: str) -> str:
    """Return a table with one global secondary index."""
    return hcl(f"  global_secondary_index {{\n{arguments}\n  }}")


def template(**properties: Any) -> str:
    """Return a CloudFormation template with one table; a property that is None is absent."""
    changed = {name: value for name, value in {**TABLE, **properties}.items() if value is not None}
    return json.dumps({"Resources": {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": changed}}})


def described(**members: Any) -> str:
    """Return the output of describe-table; a member that is None is absent."""
    changed = {name: value for name, value in {**TABLE, **members}.items() if value is not None}
    return json.dumps({"Table": changed})


def changed(document: dict[str, Any], *path: Any, to: Any = None) -> str:
    """Return a document with the member at a path replaced, or removed."""
    copy = deepcopy(document)
    inner: Any = copy
    for step in path[:-1]:
        inner = inner[step]
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return json.dumps(copy, indent=1)


REFUSED = [
    # Terraform
    ("a.tf", "", "a.tf: the file is empty"),
    ("a.tf", "# nothing here\n", "a.tf: no Terraform block found"),
    ("a.tf", hcl('  range_key = "b\n'), "not valid HCL: a string without a closing quote"),
    ("a.py", "x = 1\n", "a.py: a Python file is a design already; pass it to `tavola lint`"),
    ("a.tf", hcl("  range_key =\n"), "a.tf:10:14: not valid HCL: unexpected end of line"),
    (
        "a.tf",
        hcl().rsplit("}", 1)[0],
        "not valid HCL: the file ends inside a block; is a closing brace missing?",
    ),
    ("a.tf", hcl("  note = <<EOT\nabc"), "a.tf:10: the heredoc <<EOT is not closed; add a line EOT"),
    ("a.tf", 'resource "aws_s3_bucket" "b" {\n}\n', "no aws_dynamodb_table resource found"),
    (
        "a.tf",
        hcl(without="hash_key"),
        "a.tf:2: aws_dynamodb_table.orders: no partition key; set hash_key",
    ),
    (
        "a.tf",
        hcl('  hash_key = ["pk"]', without="hash_key"),
        'aws_dynamodb_table.orders.hash_key: expected the name of an attribute, not ["pk"]',
    ),
    (
        "a.tf",
        hcl('  key_schema {\n    attribute_name = "pk"\n    key_type = "MAIN"\n  }', without="hash_key"),
        'aws_dynamodb_table.orders.key_schema[0]: key_type is "MAIN"; use HASH or RANGE',
    ),
    (
        "a.tf",
        hcl('  range_key = "pk"'),
        "a.tf:2: aws_dynamodb_table.orders: the key uses an attribute twice",
    ),
    (
        "a.tf",
        gsi('    name = "by-status"\n    projection_type = "ALL"'),
        "aws_dynamodb_table.orders.global_secondary_index[0]: no partition key; set hash_key",
    ),
    (
        "a.tf",
        gsi('    hash_key = "pk"\n    projection_type = "ALL"'),
        "aws_dynamodb_table.orders.global_secondary_index[0]: name is missing",
    ),
    (
        "a.tf",
        hcl('  local_secondary_index {\n    name = "l"\n    projection_type = "ALL"\n  }'),
        "local index 'l' needs the table's partition key (pk) and one sort key of its own; set range_key",
    ),
    (
        "a.tf",
        hcl("  name = local.a", without="name  ", more="locals {\n  a = local.b\n  b = local.a\n}"),
        "circular reference: local.a → local.b → local.a",
    ),
    # CloudFormation
    ("t.yaml", "", "t.yaml: the file is empty"),
    (
        "t.yaml",
        "Resources:\n  T:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      TableName: orders\n      KeySchema: id\n",
        'Resources.T: KeySchema contains "id"; expected AttributeName and KeyType',
    ),
    ("t.json", '{"Resources": []}', "Resources is missing or not a mapping of logical ids to resources"),
    (
        "t.yaml",
        "Resources:\n\tOrders: 1\n",
        "t.yaml:2:1: not valid YAML: use spaces instead of tabs",
    ),
    (
        "t.yaml",
        "Resources:\n  A:\n   B: 1\n  - c\n",
        ":4:3: not valid YAML: check the indentation",
    ),
    ("t.yaml", "Resources: 'abc\n", "not valid YAML: a quote or bracket is not closed"),
    (
        "t.yaml",
        "Resources:\n  A: {}\n  A: {}\n",
        ":3:3: not valid YAML: the key 'A' occurs twice",
    ),
    ("t.json", '{"Resources": {"A": 1,}}', ":1:23: not valid JSON: expected a member name"),
    ("t.json", '{"AWSTemplateFormatVersion": "2010-09-09"}', "Resources is missing or not a mapping"),
    (
        "t.json",
        '{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}',
        "no AWS::DynamoDB::Table resource found, only",
    ),
    ("t.json", '{"Resources": {"A": {"Properties": {}}}}', "resource found, only resources without Type"),
    ("t.json", template(KeySchema=None), "Resources.Orders: no partition key; set KeySchema"),
    (
        "t.json",
        template(KeySchema=[{"AttributeName": "pk", "KeyType": "PARTITION"}]),
        'Resources.Orders.KeySchema[0]: KeyType is "PARTITION"; use HASH or RANGE',
    ),
    (
        "t.json",
        template(KeySchema=[{"KeyType": "HASH"}]),
        "Resources.Orders.KeySchema[0]: AttributeName is missing",
    ),
    (
        "t.json",
        template(KeySchema=[{"AttributeName": name, "KeyType": "HASH"} for name in "abc"]),
        "Resources.Orders: the table's key has too many attributes",
    ),
    (
        "t.json",
        template(GlobalSecondaryIndexes=[{"IndexName": "g"}]),
        "Resources.Orders.GlobalSecondaryIndexes[0]: no partition key; set KeySchema",
    ),
    (
        "t.json",
        template(GlobalSecondaryIndexes=[{**INDEX, "IndexName": None}]),
        "Resources.Orders.GlobalSecondaryIndexes[0]: IndexName is missing",
    ),
    (
        "t.json",
        template(GlobalSecondaryIndexes=[INDEX, INDEX]),
        "GlobalSecondaryIndexes[1]: the table has two indexes named 'by-status'; rename one",
    ),
    (
        "t.json",
        template(LocalSecondaryIndexes=[INDEX]),
        "Resources.Orders.LocalSecondaryIndexes[0]: local index 'by-status' needs the table's partition key (pk)",
    ),
    # describe-table
    (
        "d.json",
        '{"Table": {"TableName": "or',
        ":1:25: not valid JSON: a string without a closing quote",
    ),
    ("d.json", '{"TableNames": ["orders"]}', "unknown file format. Tavola reads CloudFormation templates"),
    ("d.json", described(TableName=None), "d.json, Table: TableName is missing"),
    ("d.json", described(KeySchema=None), "orders: no partition key; set KeySchema"),
    (
        "d.json",
        described(KeySchema=[{"AttributeName": "pk", "KeyType": "X"}]),
        'orders.KeySchema[0]: KeyType is "X"',
    ),
    # NoSQL Workbench
    ("m.json", changed(MODEL, "DataModel", to=[]), "DataModel contains no table; add one in NoSQL Workbench"),
    ("m.json", changed(MODEL, "DataModel", to=["orders"]), "DataModel contains no table"),
    ("m.json", changed(MODEL, "DataModel", 0, "TableName"), "DataModel[0]: TableName is missing"),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "KeyAttributes"),
        "orders: no partition key; set KeyAttributes.PartitionKey",
    ),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "KeyAttributes", "PartitionKey", "AttributeName"),
        "orders.KeyAttributes.PartitionKey: AttributeName is missing",
    ),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "GlobalSecondaryIndexes", to=[{"IndexName": "g"}]),
        "orders.GlobalSecondaryIndexes[0]: no partition key; set KeyAttributes.PartitionKey",
    ),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "TableFacets", to=[{}]),
        "orders.TableFacets[0]: FacetName is missing",
    ),
    (
        "m.json",
        changed(MODEL, "ModelMetadata", "AWSService", to="Keyspaces"),
        "ModelMetadata.AWSService: the model is for Keyspaces; Tavola reads models for Amazon DynamoDB",
    ),
    # OneTable
    (
        "o.json",
        changed(SCHEMA, "indexes"),
        "indexes.primary: hash is missing; set it to the table's partition key",
    ),
    ("o.json", changed(SCHEMA, "indexes", "primary", "hash"), "indexes.primary: hash is missing"),
    ("o.json", changed(SCHEMA, "models"), "o.json, models: missing, or not an object of models"),
]
NOTED = [
    # Terraform
    ("a.tf", hcl('  hash_kye = "x"'), "aws_dynamodb_table.orders: hash_kye is not imported"),
    (
        "a.tf",
        gsi('    name = "g"\n    hash_key = "status"\n    projection_type = "SOME"'),
        'global_secondary_index[0].projection_type: projection type "SOME" is not ALL, KEYS_ONLY or INCLUDE',
    ),
    (
        "a.tf",
        hcl('  range_key = "sk"'),
        "aws_dynamodb_table.orders.attribute: 'sk' is used in a key but its type is not declared here; using S",
    ),
    (
        "a.tf",
        hcl().replace('"S"', '"X"'),
        "orders.attribute: 'pk' has type \"X\"; a key attribute is S, N or B",
    ),
    (
        "a.tf",
        hcl().replace("PAY_PER_REQUEST", "FREE"),
        'billing_mode: "FREE" is not PROVISIONED or PAY_PER_REQUEST',
    ),
    ("a.tf", hcl('  table_class = "GLACIER"'), 'orders.table_class: "GLACIER" is not one of STANDARD, '),
    ("a.tf", hcl("  ttl = true"), "aws_dynamodb_table.orders.ttl: ignored true: expected a block"),
    ("a.tf", hcl("  ttl {\n    enabled = true\n  }"), "orders.ttl: TTL is enabled without an attribute"),
    (
        "a.tf",
        hcl().replace('"orders"\n', '"a b"\n'),
        "orders.name: 'a b' is not a valid table name; use 3 to",
    ),
    ("a.tf", hcl('  count = "a"'), 'aws_dynamodb_table.orders: count is "a"; expected a number'),
    # CloudFormation
    ("t.json", template(Foo=1), "Resources.Orders: Foo is not imported"),
    ("t.json", template(GlobalSecondaryIndexes=3), "GlobalSecondaryIndexes: ignored 3: expected a mapping"),
    (
        "t.json",
        template(GlobalSecondaryIndexes=[INDEX]),
        "AttributeDefinitions: 'status' is used in a key but",
    ),
    ("t.json", template(TableName={"Ref": "Nope"}), "Ref Nope: no parameter or resource with this name"),
    (
        "t.json",
        template(StreamSpecification={"StreamViewType": "ALL"}),
        'unknown stream view type "ALL"; using NEW_AND',
    ),
    # describe-table
    ("d.json", described(AttributeDefinitions=[]), "orders.AttributeDefinitions: 'pk' is used in a key but"),
    (
        "d.json",
        described(),
        "orders: the output of describe-time-to-live is missing, so this setting is unknown",
    ),
    # NoSQL Workbench
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "NonKeyAttributes", 0, "AttributeType", to="Z"),
        "orders.NonKeyAttributes: 'total' has unknown type \"Z\"; using S",
    ),
    (
        "m.json",
        changed(MODEL, "ModelMetadata", "Version", to="9"),
        'ModelMetadata.Version: unknown version "9"',
    ),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "Foo", to=1),
        "orders: Foo is not imported; kept when you export",
    ),
    (
        "m.json",
        changed(MODEL, "DataModel", 0, "TableData", to=[{"pk": {"S": "a"}, "total": {"S": 1}}]),
        'orders.TableData[0].total: {"S": 1} is not a value of type S; attribute not imported',
    ),
    # OneTable
    (
        "o.json",
        changed(SCHEMA, "models", "User", "id", "type", to="strnig"),
        'models.User.id: unknown type "strnig"',
    ),
    (
        "o.json",
        changed(SCHEMA, "models", "User", "id", "required", to="yes"),
        'ignored "yes": expected true or false',
    ),
    (
        "o.json",
        changed(SCHEMA, "models", "User", "id", "enum", to="a"),
        'id.enum: ignored "a": expected a list',
    ),
    ("o.json", changed(SCHEMA, "models", "User", "pk"), "models.User: key attribute pk is not defined"),
    (
        "o.json",
        changed(SCHEMA, "models", "User", "pk", "value", to="user#${nope}"),
        "models.User: value 'user#${nope}' uses ${nope}, which is not a field of the model",
    ),
]


@pytest.mark.parametrize(("name", "text", "problem"), REFUSED)
def test_an_error_uses_the_names_of_the_file(tmp_path: Path, name: str, text: str, problem: str) -> None:
    """The error names the file and the place as the format does, and says what to change."""
    (tmp_path / name).write_text(text)

    with pytest.raises(FormatError) as refused:
        read_design(tmp_path / name)

    assert problem in str(refused.value)
    assert not [word for word in INTERNAL if word in str(refused.value)]


@pytest.mark.parametrize(("name", "text", "problem"), NOTED)
def test_a_note_uses_the_names_of_the_file(tmp_path: Path, name: str, text: str, problem: str) -> None:
    """What is imported with an assumption is noted with its place, and the assumption."""
    (tmp_path / name).write_text(text)

    notes = "\n".join(map(str, read_design(tmp_path / name).report))

    assert problem in notes
    assert not [word for word in INTERNAL if word in notes]


@pytest.mark.parametrize("command", ["lint", "import", "design"])
def test_every_command_shows_the_same_error(tmp_path: Path, command: str) -> None:
    """The commands that read a design print the file's error, and fail."""
    file = tmp_path / "main.tf"
    file.write_text(hcl(without="hash_key"))

    done = CliRunner().invoke(app, [command, str(file)])

    assert done.exit_code in (Exit.FAILED, Exit.USAGE)
    assert f"{file}:2: aws_dynamodb_table.orders: no partition key; set hash_key" in done.stderr
