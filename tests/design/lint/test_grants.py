"""Grants: what a policy allows, by the decisions of IAM, on tables whose names may be open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tavola.design.lint.grants import POLICY_RULES, PolicyGrants, readable_policies
from tavola.design.lint.rule import LintContext
from tavola.design.lint.rules import RULES
from tavola.model.document import TableDesign
from tests.design.builders import design, entity, table, text
from tests.design.policies import allow, deny, leading, policy

OPEN = "rates-${var.mode}"


def _table(name: str = "shop") -> TableDesign:
    return table(entity("Rate", text("rate_id"), pk="RATE#{rate_id}"), name=name)


def _grants(statements: Iterable[dict[str, Any]], name: str = "shop") -> tuple[PolicyGrants, TableDesign]:
    told = design(_table(name), policies=[policy(*statements)])
    [found] = readable_policies(LintContext(told))
    return found, told.tables[0]


@pytest.mark.parametrize(
    "resource",
    [
        "${aws_dynamodb_table.rates.arn}",
        "arn:aws:dynamodb:*:*:table/${aws_dynamodb_table.rates.name}",
        f"arn:aws:dynamodb:*:*:table/{OPEN}",
        "arn:aws:dynamodb:*:*:table/rates-${var.stage}",
    ],
)
def test_a_name_that_only_the_deployment_knows_is_a_name(resource: str) -> None:
    """A policy of a table that is called by a variable can be read, is about the table, and is no wildcard for that."""
    found, rates = _grants([allow("GetItem", resource)], OPEN)

    assert found.find_allow("dynamodb:getitem", rates, "RATE#x") is not None
    told = design(rates, policies=[policy(allow("GetItem", resource))])
    assert [each for name in POLICY_RULES for each in RULES[name].find(LintContext(told))] == []


@pytest.mark.parametrize(
    ("denial", "key", "allowed"),
    [
        (deny("GetItem", "shop"), "A", False),
        (deny("GetItem", "other"), "A", True),
        (
            deny("GetItem", "shop", when=leading("A", operator="ForAnyValue:StringEquals", null=False)),
            "A",
            False,
        ),
        (
            deny("GetItem", "shop", when=leading("A", operator="ForAnyValue:StringEquals", null=False)),
            "B",
            True,
        ),
        (deny("GetItem", "shop", when={"Bool": {"aws:SecureTransport": "false"}}), "A", True),
    ],
)
def test_a_denial_decides(denial: dict[str, Any], key: str, allowed: bool) -> None:
    """A Deny takes away what it is about, of the keys that it names; one on another matter takes nothing away."""
    found, shop = _grants([allow("GetItem", "shop"), denial])

    assert (found.find_allow_by_keys("dynamodb:getitem", shop, None, (key,)) is not None) is allowed


def test_a_key_is_told_by_each_of_its_attributes() -> None:
    """A condition on the second attribute of a partition key is held against the second."""
    when = {"StringEquals": {"dynamodb:SecondPartitionKeyValues": "mine"}}
    found, shop = _grants([allow("GetItem", "shop", when=when)])

    assert found.find_allow_by_keys("dynamodb:getitem", shop, None, ("a", "mine")) is not None
    assert found.find_allow_by_keys("dynamodb:getitem", shop, None, ("mine", "b")) is None


def test_the_rules_about_policies_are_known() -> None:
    """Each of them is a rule, and every rule that reads policies is among them."""
    made = {name for name in RULES if "polic" in name or "leading-keys" in name}

    assert made == POLICY_RULES
