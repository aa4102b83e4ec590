"""Terraform: what the provider takes, and texts that stay themselves."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.iac import InfrastructurePlan, index_steps, plan_infrastructure, render_terraform, terraform_files
from tavola.iac.plan import TablePlan
from tavola.iac.terraform.hcl import quote
from tavola.model.document import design_of
from tests.iac.reading import read_hcl, resources, unquoted
from tests.iac.samples import EVERYTHING, Orders, plan_sample

HOSTILE = st.text(alphabet=st.sampled_from('${}%"\\\n\r\t\x00\x85\u2028é😀 abu0024#'), max_size=30)
TABLE = TablePlan("prod-tickets", {"pk": "S"}, "pk", None)


def test_a_key_of_several_attributes_is_no_list() -> None:
    """Pitfall 14: no key is written as `hash_key = [...]`; an index has a key_schema block for each attribute."""
    text = render_terraform(plan_sample("iot_series"))
    (table,) = resources(text, "aws_dynamodb_table").values()
    (index,) = table["global_secondary_index"]

    assert "hash_key" not in index
    assert "range_key" not in index
    assert isinstance(table["hash_key"], str)
    kinds = [each["key_type"] for each in index["key_schema"]]
    assert kinds == sorted(kinds)  # every HASH before every RANGE
    assert kinds.count("HASH") > 1
    assert kinds.count("RANGE") > 1


def test_an_index_of_a_scaled_table_is_a_resource_of_its_own() -> None:
    """What auto scaling sets is not set back, and a new index is made all the same: so it stands beside its table."""
    text = render_terraform(plan_infrastructure(EVERYTHING))
    table = resources(text, "aws_dynamodb_table")["shop_orders_2026"]
    index = resources(text, "aws_dynamodb_global_secondary_index")["shop_orders_2026_by_day"]
    targets = resources(text, "aws_appautoscaling_target")

    assert "global_secondary_index" not in table
    assert {each["name"] for each in table["attribute"]} == {"pk", "sk", "amount"}
    assert table["lifecycle"][0]["ignore_changes"] == ["read_capacity", "write_capacity"]
    assert [(each["attribute_name"], each["attribute_type"]) for each in index["key_schema"]] == [
        ("shop", "S"), ("day", "S"), ("amount", "N"), ("order_id", "S")
    ]  # fmt: skip
    assert index["table_name"] == "${aws_dynamodb_table.shop_orders_2026.name}"
    assert set(targets) == {
        f"shop_orders_2026{index}_{kind}"
        for index in ("", "_by_day", "_by_customer")
        for kind in ("read", "write")
    }
    assert targets["shop_orders_2026_write"]["max_capacity"] == 200


def test_replicas_have_their_own_keys() -> None:
    """A replica is encrypted with a key of its own region, which is asked for."""
    stock = resources(render_terraform(plan_infrastructure(EVERYTHING)), "aws_dynamodb_table")["shop_stock"]

    assert [each["region_name"] for each in stock["replica"]] == ["eu-central-1", "us-east-1"]
    assert "replica_kms_key_arns" in stock["replica"][0]["kms_key_arn"]
    assert stock["stream_view_type"] == "NEW_AND_OLD_IMAGES"  # what replication needs


def test_the_files_are_the_module() -> None:
    """A folder and a single file hold the same blocks; a part that the plan has not is no file."""
    plan = plan_sample("tournaments")
    files = terraform_files(plan)
    together = "".join(text.split("\n\n", 1)[1] for text in files.values())

    assert list(files) == ["versions.tf", "variables.tf", "tables.tf", "outputs.tf"]
    assert read_hcl(together) == {
        key: value for key, value in read_hcl(render_terraform(plan)).items() if key != "__comments__"
    }


@given(HOSTILE)
@settings(max_examples=300)
def test_a_quoted_text_is_itself(text: str) -> None:
    """Whatever stands in a text, Terraform reads the text, and no template in it."""
    told = quote(text)

    assert unquoted(told) == text
    assert "${" not in told.replace("$${", "")
    assert "%{" not in told.replace("%%{", "")
    assert told.isprintable()


@given(st.dictionaries(HOSTILE.filter(bool), HOSTILE, min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_hostile_tags_come_back(tags: dict[str, str]) -> None:
    """Tags of any text go through the module and come back from python-hcl2."""
    text = render_terraform(InfrastructurePlan((replace(TABLE, tags=tags),)))

    assert resources(text, "aws_dynamodb_table")["prod_tickets"]["tags"] == tags


def test_all_names_have_one_prefix_and_all_resources_the_tags() -> None:
    """One variable makes a module of another environment, empty by default; tags are on what belongs to the table too."""
    text = render_terraform(plan_sample("everything"))
    (variable,) = (block["prefix"] for block in read_hcl(text)["variable"] if "prefix" in block)

    assert variable["default"] == ""
    for kind, word in (
        ("aws_dynamodb_table", "name"), ("aws_lambda_function", "function_name"), ("aws_iam_role", "name"),
        ("aws_cloudwatch_metric_alarm", "alarm_name"), ("aws_iam_policy", "name"), ("aws_cloudwatch_log_group", "name"),
    ):  # fmt: skip
        for body in resources(text, kind).values():
            assert "${var.prefix}" in body[word]
            assert body["tags"]["Team"] == "shop"


def test_an_index_that_becomes_a_resource_of_its_own_tells_the_steps() -> None:
    """Scaling that begins or ends tells what the state needs, in the notes and above the index; otherwise nothing is told."""
    design = design_of(Orders)
    scaled = plan_infrastructure(design)
    (table,) = design.tables
    fixed = plan_infrastructure(
        replace(design, tables=(replace(table, settings=replace(table.settings, scaling=None)),))
    )
    command = "terraform import aws_dynamodb_global_secondary_index.shop_orders_2026_by_day 'shop.orders_2026,by-day'"

    assert command in next(iter(index_steps(scaled, None)))
    assert f"#   {command}" in render_terraform(scaled)
    assert list(index_steps(scaled, frozenset(scaled.contents))) == []
    assert list(index_steps(fixed, None)) == []
    assert "terraform state rm aws_dynamodb_global_secondary_index.shop_orders_2026_by_day" in next(
        iter(index_steps(fixed, frozenset(scaled.contents)))
    )


def test_what_nobody_told_is_not_set() -> None:
    """A setting that is unknown is neither written nor set back."""
    text = render_terraform(
        InfrastructurePlan((replace(TABLE, unknown=("deletion_protection", "recovery")),))
    )
    table = resources(text, "aws_dynamodb_table")["prod_tickets"]

    assert "deletion_protection_enabled" not in table
    assert table["lifecycle"][0]["ignore_changes"] == [
        "deletion_protection_enabled",
        "point_in_time_recovery",
    ]
