"""CloudFormation: YAML and JSON of one template, and what a table with replicas is."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.iac import InfrastructurePlan, build_template, plan_infrastructure, render_template
from tavola.iac.cloudformation.yaml_text import render_yaml
from tavola.iac.errors import MissingLibrary
from tavola.iac.plan import TablePlan
from tests.iac.samples import EVERYTHING
from tests.iac.test_golden import ShortForms

TEXTS = st.text(
    alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("${}:-#'\"\\\n\t !&*[]0123yesnof~"),
    max_size=20,
)
TABLE = TablePlan("prod-tickets", {"pk": "S"}, "pk", None)


def filled(told: Any) -> Any:
    """Return what CloudFormation makes of a text that was joined to stand as it is."""
    return "".join(told["Fn::Join"][1]) if isinstance(told, dict) else told


@given(
    st.dictionaries(
        TEXTS.filter(bool),
        st.recursive(
            TEXTS | st.integers() | st.booleans(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(TEXTS.filter(bool), inner, min_size=2, max_size=3)
            ),
            max_leaves=6,
        ),
        min_size=2,
        max_size=3,
    )
)
@settings(max_examples=60, deadline=None)
def test_yaml_is_read_back_as_it_was(data: dict[str, Any]) -> None:
    """A reader of YAML gets the very data that was written: no text becomes a number, a truth or a tag."""
    assert yaml.load(render_yaml(data), Loader=ShortForms) == data


@given(st.dictionaries(TEXTS.filter(bool), TEXTS, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_hostile_tags_come_back(tags: dict[str, str]) -> None:
    """Tags of any text go through the template, in YAML and in JSON, and nothing in them is filled in."""
    plan = InfrastructurePlan((replace(TABLE, tags=tags),))
    for read in (
        json.loads(render_template(plan, "json")),
        yaml.load(render_template(plan), Loader=ShortForms),
    ):
        told = read["Resources"]["ProdTicketsTable"]["Properties"]["Tags"]

        assert {filled(each["Key"]): filled(each["Value"]) for each in told} == tags
        assert "${" not in json.dumps(told)


def test_a_table_with_replicas_is_a_global_table() -> None:
    """Replicas make a table a GlobalTable: this region first, each with its settings, writes always scaled."""
    stock = build_template(plan_infrastructure(EVERYTHING))["Resources"]["ShopStockTable"]
    told = stock["Properties"]

    assert stock["Type"] == "AWS::DynamoDB::GlobalTable"
    regions = [each["Region"] for each in told["Replicas"]]
    assert regions == [{"Ref": "AWS::Region"}, "eu-central-1", "us-east-1"]
    assert told["Replicas"][0]["SSESpecification"] == {"KMSMasterKeyId": "alias/shop"}
    assert told["Replicas"][1]["SSESpecification"] == {"KMSMasterKeyId": {"Ref": "KeyArnEuCentral1"}}
    assert "WriteCapacityAutoScalingSettings" in told["WriteProvisionedThroughputSettings"]
    assert told["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_keys_of_several_attributes_repeat_hash_and_range() -> None:
    """A key schema is one flat list, HASH before RANGE, each as often as the key has of it."""
    orders = build_template(plan_infrastructure(EVERYTHING))["Resources"]["ShopOrders2026Table"]["Properties"]
    by_day = orders["GlobalSecondaryIndexes"][0]

    assert [each["KeyType"] for each in by_day["KeySchema"]] == ["HASH", "HASH", "RANGE", "RANGE"]
    assert by_day["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["customer"]}
    defined = {each["AttributeName"]: each["AttributeType"] for each in orders["AttributeDefinitions"]}
    assert defined["amount"] == "N"


def test_a_table_outlives_its_stack() -> None:
    """Tables and keys are retained, so that no template deletes data."""
    resources = build_template(plan_infrastructure(EVERYTHING))["Resources"]
    kept = [
        each for each in resources.values() if each["Type"].startswith(("AWS::DynamoDB", "AWS::KMS::Key"))
    ]

    assert kept
    assert all(each["DeletionPolicy"] == each["UpdateReplacePolicy"] == "Retain" for each in kept)


def test_yaml_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyYAML a template can still be JSON; YAML is refused with the extra to install."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "tavola.iac.cloudformation.yaml_text", raising=False)
    plan = InfrastructurePlan((TABLE,))

    assert json.loads(render_template(plan, "json"))["Resources"]
    with pytest.raises(MissingLibrary, match=r"YAML needs PyYAML.*pip install 'tavola\[design\]'"):
        render_template(plan)
