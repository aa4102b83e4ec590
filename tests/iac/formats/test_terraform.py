"""Terraform's files, folders and plans as designs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tavola.iac.formats import FormatError, ImportResult, read_design
from tavola.model.document import Consumer, IndexDesign, Scaling

FILES = Path(__file__).parent / "files"
TABLE = """
resource "aws_dynamodb_table" "t" {{
  name         = {name}
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  attribute {{
    name = "id"
    type = "S"
  }}
}}
"""


@pytest.fixture(scope="module")
def ledger() -> ImportResult:
    """A folder of two files and a tfvars."""
    return read_design(FILES / "ledger")


def read(tmp_path: Path, text: str) -> ImportResult:
    """Read a file that a test writes."""
    (tmp_path / "main.tf").write_text(text)
    return read_design(tmp_path / "main.tf")


def test_a_folder_is_one_configuration(ledger: ImportResult) -> None:
    """Locals, variables, tfvars, for_each and the registry's module are worked out over all files of a folder."""
    names = [table.name for table in ledger.design.tables]

    assert names == [
        "bank-daily",
        "bank-monthly",
        "rates-${var.mode}",
        "bank-ledger-prod",
        "bank-ledger-prod-cache",
    ]
    assert "var.mode: no default value" in "\n".join(map(str, ledger.report))


def test_both_spellings_of_an_index_key_are_read(ledger: ImportResult) -> None:
    """`key_schema` blocks give several attributes; `hash_key` and `range_key` still give one each."""
    table = ledger.design.table("bank-ledger-prod")

    assert table.indexes == (
        IndexDesign("by-amount", "by_amount", True, ("account",), ("amount",), "ALL"),
        IndexDesign("by-kind", "by_kind", False, ("kind", "day"), ("amount",), ("amount_text",), True),
        IndexDesign("by-day", "by_day", False, ("day",), ("entry",), "KEYS_ONLY"),
    )
    assert table.key_types["entry"] == "N"


def test_a_table_has_its_settings(ledger: ImportResult) -> None:
    """TTL, recovery, encryption, stream, replica, protection and merged tags are read."""
    settings = ledger.design.table("bank-ledger-prod").settings

    assert (settings.ttl, settings.stream, settings.replicas) == (
        "expires_at",
        "NEW_IMAGE",
        ("eu-central-1",),
    )
    assert (settings.recovery, settings.recovery_days, settings.deletion_protection) == (True, 14, True)
    assert settings.encryption == "${aws_kms_key.ledger.arn}"
    assert settings.tags == {"Project": "bank", "Team": "ledger"}


def test_what_stands_around_a_table_is_wired_to_it(ledger: ImportResult) -> None:
    """An index of its own, auto scaling, a mapping and policies find their table by reference."""
    rates = ledger.design.table("rates-${var.mode}")

    assert [index.name for index in rates.indexes] == ["by-bank"]
    assert (rates.settings.scaling, rates.settings.unknown) == (
        None,
        ("scaling",),
    )  # its index and its writes do not scale
    assert ledger.design.table("bank-ledger-prod").consumers == (
        Consumer(
            "totals",
            "totals.handler",
            batch_size=200,
            bisect=True,
            report_batch_item_failures=True,
            filters=({"eventName": ["INSERT", "MODIFY"]},),
            failures="${aws_sqs_queue.failed.arn}",
            timeout_s=20,
            memory_mb=128,
            starting="LATEST",
        ),
    )
    totals, admin = ledger.design.policies
    assert totals.tables == ("bank-ledger-prod",)
    assert totals.document["Statement"][0]["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:PrincipalTag/account}"]}
    }
    assert admin.document["Statement"][0]["Resource"] == "${Table.Arn}"


def test_a_plan_is_read_with_its_wiring() -> None:
    """Values of a plan are taken, child modules too; what it does not know yet is found by its references."""
    imported = read_design(FILES / "plan.json")
    events, other = imported.design.tables

    assert (events.name, events.settings.read_units, events.settings.ttl) == ("events", 7, None)
    assert [each.name for each in events.consumers] == ["mails"]
    assert (other.label, other.key_types) == ("b_x", {"k": "N"})


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ('"a-${1 + 2}"', "a-3"),
        ('upper("a") == "A" ? "yes" : "no"', "yes"),
        ('join("-", ["a", "b"])', "a-b"),
        ('format("%s-%d", "a", 3)', "a-3"),
        ('lookup({ x = "y" }, "x", "z")', "y"),
        ('["a", "b"][1]', '${["a", "b"][1]}'),
        ('"a\\"b"', 'a"b'),
        ('"$${a}"', "${a}"),
        ("data.aws_region.current.name", "${data.aws_region.current.name}"),
        ('"x-${terraform.workspace}"', "x-${terraform.workspace}"),
        ("<<EOT\n  a\nEOT", "  a"),
        ("<<-EOT\n  a\n  EOT", "a"),
        ('coalesce("", "b")', "b"),
        ("nosuch(1)", "${nosuch(1)}"),
        ('cond ? "a" : "b"', '${cond ? "a" : "b"}'),
    ],
)
def test_expressions_are_worked_out_or_kept(tmp_path: Path, expression: str, name: str) -> None:
    """What the file tells is worked out; what only the deployment knows stays as it is spelt."""
    assert read(tmp_path, TABLE.format(name=expression)).design.tables[0].name == name


def test_count_of_zero_leaves_a_table_out(tmp_path: Path) -> None:
    """A table that is not made by default is none of the design, and told."""
    text = TABLE.format(name='"one"') + TABLE.format(name='"two"').replace('"t"', '"u"').replace(
        "  hash_key", "  count = 0\n  hash_key"
    )
    imported = read(tmp_path, text)

    assert [table.name for table in imported.design.tables] == ["one"]
    assert "count is 0 with the default variables" in "\n".join(map(str, imported.report))


@pytest.mark.parametrize(
    "text",
    [
        "locals {\n a = local.b\n b = local.a\n}\n" + TABLE.format(name="local.a"),
        TABLE.format(name="aws_dynamodb_table.t.name"),
    ],
)
def test_locals_that_stand_on_themselves_are_refused(tmp_path: Path, text: str) -> None:
    """A circle of references is told as one, with its way round."""
    with pytest.raises(FormatError, match="circular reference: "):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "line", ['a{n} = "${{local.a{m}}}${{local.a{m}}}"', "a{n} = [local.a{m}, local.a{m}]"]
)
def test_locals_that_grow_without_end_are_refused(tmp_path: Path, line: str) -> None:
    """Twenty doublings end in a sentence and not in all the memory."""
    lines = [line.format(n=n, m=n + 1) for n in range(20)]
    text = "locals {\n" + "\n".join(lines) + '\na20 = "aaaaaaaaaaaaaaaa"\n}\n' + TABLE.format(name="local.a0")

    with pytest.raises(FormatError, match=r"references (resolve to|are resolved)"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('resource "a" "b" {\n  x = \n}', "line 2, column 7"),
        ('resource "a" "b" {', "line 1"),
        ('resource "a" "b" {\n x = <<EOT\n abc\n}', "line 2"),
    ],
)
def test_broken_hcl_is_refused_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    """A person is told the line where to look."""
    with pytest.raises(FormatError) as refused:
        read(tmp_path, text)
    assert refused.value.place.startswith(place)
    assert "main.tf" in str(refused.value)


def test_a_folder_without_terraform_is_refused(tmp_path: Path) -> None:
    """A folder of anything else is named as such; a broken file in a folder by its own name."""
    with pytest.raises(FormatError, match=r"contains no \.tf file"):
        read_design(tmp_path)
    (tmp_path / "empty.tf").write_text("")
    (tmp_path / "bad.tf").write_text("x = {")

    with pytest.raises(FormatError, match=r"bad\.tf:1"):
        read_design(tmp_path)


PLAIN = """
resource "aws_dynamodb_table" "{label}" {{
  name         = "{label}"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"
  attribute {{
    name = "id"
    type = "S"
  }}
  {more}
}}
"""


def told(imported: ImportResult) -> str:
    """Return the report as text."""
    return "\n".join(map(str, imported.report))


def plan(tmp_path: Path, resources: list[dict[str, Any]], **more: Any) -> ImportResult:
    """Read a plan that a test writes."""
    whole = {"planned_values": {"root_module": {"resources": resources}}, **more}
    (tmp_path / "plan.json").write_text(json.dumps(whole))
    return read_design(tmp_path / "plan.json")


def planned(kind: str, label: str, module: str = "", mode: str = "managed", **values: Any) -> dict[str, Any]:
    """Return a resource of a plan; a table has a key."""
    if kind == "aws_dynamodb_table":
        values = {
            "hash_key": "id",
            "attribute": [{"name": "id", "type": "S"}],
            "billing_mode": "PAY_PER_REQUEST",
            **values,
        }
    prefix = "data." if mode == "data" else ""
    return {
        "address": f"{module}{prefix}{kind}.{label}",
        "mode": mode,
        "type": kind,
        "name": label,
        "values": values,
    }


def test_a_set_that_nobody_knows_makes_one_table(tmp_path: Path) -> None:
    """`for_each` and `count` over a variable without a default give one table, and not one for each letter."""
    text = 'variable "names" {}\n'
    for label, argument in (("a", "for_each = toset(var.names)"), ("b", "count = length(var.names)")):
        text += PLAIN.format(label=label, more=argument)
    imported = read(tmp_path, text)

    assert [table.name for table in imported.design.tables] == ["a", "b"]
    assert [table.label for table in imported.design.tables] == ["a__each_key", "b"]
    assert "for_each cannot be resolved; imported once" in told(imported)
    assert "count is ${length(var.names)}; expected a number" in told(imported)


def test_instances_by_objects_are_found_by_reference(tmp_path: Path) -> None:
    """`each.value` is the object under the key, for the table and for whoever refers to one of them."""
    text = """
locals { tables = { orders = { name = "shop-orders" }, users = { name = "shop-users" } } }
resource "aws_lambda_event_source_mapping" "m" {
  event_source_arn = aws_dynamodb_table.t["orders"].stream_arn
  function_name    = "f"
}
resource "aws_iam_policy" "p" {
  for_each = toset(["x"])
  policy = <<POLICY
{"Statement": [{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "${aws_dynamodb_table.t["users"].arn}/index/${each.key}"}]}
POLICY
}
"""
    text += PLAIN.format(label="t", more="for_each = local.tables").replace('"t"\n', "each.value.name\n")
    imported = read(tmp_path, text)
    orders, users = imported.design.tables
    (policy,) = imported.design.policies

    assert [each.name for each in orders.consumers] == ["m"]
    assert (users.name, users.consumers) == ("shop-users", ())
    assert policy.tables == ("shop-users",)
    assert policy.document["Statement"][0]["Resource"].endswith(":table/shop-users/index/x")


def test_what_is_not_read_is_told(tmp_path: Path) -> None:
    """Arguments, blocks and resources about tables that a design has no place for are named, each with its place."""
    more = """
  on_demand_throughput { max_read_request_units = 10 }
  global_secondary_index {
    name            = "g"
    hash_key        = "id"
    projection_type = "ALL"
    warm_throughput { read_units_per_second = 15000 }
  }
  timeouts { create = "10m" }
"""
    around = """
resource "aws_dynamodb_kinesis_streaming_destination" "k" { table_name = "t" }
resource "aws_iam_role_policy_attachment" "full" { policy_arn = "arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess" }
resource "aws_iam_role_policy_attachment" "basic" { policy_arn = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole" }
resource "aws_lambda_event_source_mapping" "m" {
  event_source_arn           = aws_dynamodb_table.t.stream_arn
  function_name              = "f"
  tumbling_window_in_seconds = 60
}
resource "aws_lambda_event_source_mapping" "q" {
  event_source_arn = aws_sqs_queue.q.arn
  function_name    = "f"
  maximum_batching = 1
}
resource "aws_lambda_event_source_mapping" "who" {
  event_source_arn = var.stream
  function_name    = "f"
}
resource "aws_lambda_event_source_mapping" "off" {
  event_source_arn = aws_dynamodb_table.t.stream_arn
  function_name    = "f"
  enabled          = false
}
data "aws_dynamodb_table" "theirs" { name = "theirs" }
"""
    imported = read(tmp_path, PLAIN.format(label="t", more=more) + around)
    report = told(imported)

    assert "aws_dynamodb_table.t: on_demand_throughput is not imported" in report
    assert "aws_dynamodb_table.t.global_secondary_index: warm_throughput is not imported" in report
    assert "aws_dynamodb_kinesis_streaming_destination has no equivalent in a design" in report
    assert "aws_iam_role_policy_attachment.full: policy" in report
    assert "aws_lambda_event_source_mapping.m: tumbling_window_in_seconds is not imported" in report
    assert (
        "aws_lambda_event_source_mapping.m: function f is not defined in the file; using Lambda's defaults of 3 s and 128 MB"
        in report
    )
    assert 'aws_lambda_event_source_mapping.who: reads "${var.stream}", not the stream' in report
    assert "aws_lambda_event_source_mapping.off: the event source mapping is disabled" in report
    assert (
        "data.aws_dynamodb_table.theirs: a data source refers to a table of another configuration" in report
    )
    for silent in ("timeouts", "BasicExecution", "mapping.q"):
        assert silent not in report
    assert [each.name for each in imported.design.tables[0].consumers] == ["m"]
    assert not imported.design.tables[0].consumers[0].bisect


def test_places_are_in_the_words_of_the_file(tmp_path: Path) -> None:
    """A note on a table of Terraform's names its arguments, and says what is taken instead."""
    text = PLAIN.format(label="t", more="server_side_encryption { enabled = var.e }").replace(
        '"PAY_PER_REQUEST"', "var.mode"
    )
    report = told(read(tmp_path, text))

    assert "aws_dynamodb_table.t.server_side_encryption: ${var.e} cannot be resolved" in report
    assert (
        "t.billing_mode: ${var.mode} is not PROVISIONED or PAY_PER_REQUEST; using PAY_PER_REQUEST" in report
    )


def test_a_folder_is_read_with_all_its_files_or_they_are_named(tmp_path: Path) -> None:
    """Values in JSON count, later ones more; Terraform in JSON and overrides are named; empty files are usual."""
    files = {
        "main.tf": 'variable "n" { default = "no" }\n' + TABLE.format(name="var.n"),
        "outputs.tf": "\r\n",
        "comment.tf": "# see <<EOT\n/* <<EOF\n*/ // <<X\n",
        "main_override.tf": TABLE.format(name='"other"'),
        "more.tf.json": '{"resource": {}}',
        "terraform.tfvars": 'n = "one"\n',
        "terraform.tfvars.json": '{"n": "two"}',
        "x.auto.tfvars.json": '{"n": "three"}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, newline="")
    imported = read_design(tmp_path)

    assert [table.name for table in imported.design.tables] == ["three"]
    assert "more.tf.json: Terraform files in JSON are not read" in told(imported)
    assert "main_override.tf: override files are not read" in told(imported)


def test_a_dangling_link_in_a_folder_is_told(tmp_path: Path) -> None:
    """A file that leads nowhere is named in a sentence."""
    (tmp_path / "main.tf").write_text(TABLE.format(name='"t"'))
    (tmp_path / "x.tf").symlink_to(tmp_path / "nowhere")

    with pytest.raises(FormatError, match=r"x\.tf: no such file"):
        read_design(tmp_path)


def test_only_the_registrys_module_is_known(tmp_path: Path) -> None:
    """Another module of a like name is told and left out; of the registry's the modes and scaling are read."""
    text = (
        TABLE.format(name='"own"')
        + """
module "other" {
  source        = "./modules/dynamodb-table"
  partition_key = "id"
}
module "none" {
  source       = "terraform-aws-modules/dynamodb-table/aws"
  create_table = false
  hash_key     = "id"
}
module "orders" {
  source              = "registry.terraform.io/terraform-aws-modules/dynamodb-table/aws"
  name                = "orders"
  hash_key            = "id"
  attributes          = [{ name = "id", type = "S" }]
  billing_mode        = "PROVISIONED"
  read_capacity       = 5
  write_capacity      = 6
  autoscaling_enabled = true
  autoscaling_read    = { max_capacity = 100, target_value = 60 }
  autoscaling_write   = { max_capacity = 50, min_capacity = 2 }
  autoscaling_indexes = { g = { read_max_capacity = 9 } }
  ignore_changes_global_secondary_index = true
}
"""
    )
    imported = read(tmp_path, text)
    own, orders = imported.design.tables

    assert own.settings.read_units is None
    assert (orders.settings.read_units, orders.settings.write_units) == (5, 6)
    assert orders.settings.scaling == Scaling(100, 50, 5, 2, 60)
    assert "module.other: module source ./modules/dynamodb-table is not read" in told(imported)
    assert "module.none: create_table is false" in told(imported)
    assert (
        "module.orders: autoscaling_indexes, ignore_changes_global_secondary_index are not imported"
        in told(imported)
    )


def test_a_plan_is_wired_in_its_modules_and_its_policies_are_built(tmp_path: Path) -> None:
    """What is known after apply is found by reference, in child modules too; a document of blocks is one of JSON."""
    document = planned(
        "aws_iam_policy_document",
        "d",
        mode="data",
        statement=[{"actions": ["dynamodb:*"], "resources": ["*"]}],
    )
    module = {
        "resources": [
            planned("aws_dynamodb_table", "b", "module.x.", name="b", stream_enabled=True),
            planned("aws_lambda_event_source_mapping", "m", "module.x.", batch_size=7),
        ]
    }
    root = {
        "resources": [
            planned("aws_iam_policy", "p", name="p"),
            planned("aws_iam_policy", "q", name="q"),
            document,
        ],
        "child_modules": [module],
    }
    wired = {
        "resources": [
            {
                "address": "aws_iam_policy.p",
                "expressions": {"policy": {"references": ["data.aws_iam_policy_document.d.json"]}},
            },
            {
                "address": "aws_iam_policy.q",
                "expressions": {"policy": {"references": ["aws_dynamodb_table.b.arn"]}},
            },
        ],
        "module_calls": {
            "x": {
                "module": {
                    "resources": [
                        {
                            "address": "aws_lambda_event_source_mapping.m",
                            "expressions": {
                                "event_source_arn": {"references": ["aws_dynamodb_table.b.stream_arn"]}
                            },
                        }
                    ]
                }
            }
        },
    }
    imported = plan(tmp_path, [], planned_values={"root_module": root}, configuration={"root_module": wired})

    assert [(each.name, each.batch_size) for each in imported.design.tables[0].consumers] == [("m", 7)]
    assert [each.name for each in imported.design.policies] == ["p"]
    assert "aws_iam_policy.q: the policy document cannot be resolved" in told(imported)


def test_tables_of_a_plan_have_names_and_labels_of_their_own(tmp_path: Path) -> None:
    """A name that is known after apply is the address; data is no table here; labels are told apart."""
    imported = plan(
        tmp_path,
        [
            planned("aws_dynamodb_table", "this", "module.o.", name="orders"),
            planned("aws_dynamodb_table", "this", "module.u.", name="users"),
            planned("aws_dynamodb_table", "a"),
            planned("aws_dynamodb_table", "theirs", mode="data", name="theirs"),
        ],
    )

    assert [(table.label, table.name) for table in imported.design.tables] == [
        ("this", "orders"),
        ("users", "users"),
        ("a", "aws_dynamodb_table.a"),
    ]
    assert "users: an earlier table is also labelled this; this one is labelled users" in told(imported)
    assert "aws_dynamodb_table.a: the name is unknown before apply" in told(imported)
    assert "data.aws_dynamodb_table.theirs: a data source refers to a table of another configuration" in told(
        imported
    )
