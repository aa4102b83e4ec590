"""What a design's access patterns come to as policies: actions, resources, keys and attributes, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tavola.apps.service_desk import model as service_desk
from tavola.apps.support_desk import model as support_desk
from tavola.apps.terraform_review import model as terraform_review
from tavola.iac.policies import Grant, RolePolicy, derive_policies, render_policy
from tavola.iac.required_actions import escape_pattern, guard_leading_keys, leading_keys
from tavola.keys import Template
from tavola.model.document import AccessPattern, Design, Given, Need, Route, TableDesign, design_of
from tavola.protocol.policy_documents import parse_policy
from tests.iac import shop

SHOP = design_of(shop)
POLICY_CHARACTERS_MAX = 6_144  # of a managed policy, as IAM counts them


def roles(design: Design, **more: Any) -> dict[str, RolePolicy]:
    """Return the policies of a design by role."""
    return {policy.role: policy for policy in derive_policies(design, **more)}


def grants(policy: RolePolicy, action: str, resource: str) -> list[Grant]:
    """Return the grants of an action on a resource."""
    return [
        grant
        for grant in policy.grants
        if f"dynamodb:{action}" in grant.actions and resource in map(str, grant.references)
    ]


def values(grant: Grant, key: str) -> tuple[str, ...]:
    """Return what a condition key may be, none where it is not asked for."""
    return next((c.values for c in grant.conditions if c.key == key and c.operator != "Null"), ())


@pytest.mark.parametrize("module", [service_desk, support_desk, terraform_review, shop])
def test_documents_are_what_iam_reads(module: Any) -> None:
    """Each is a policy without a wildcard among its actions and tables, with sids that are told apart, and no longer than IAM takes."""
    for policy in derive_policies(design_of(module)):
        document = render_policy(policy, region="eu-west-1", account="111122223333")
        parse_policy(json.dumps(document), "identity")
        sids = [statement["Sid"] for statement in document["Statement"]]
        assert len(sids) == len(set(sids))
        assert all(sid.isalnum() for sid in sids)
        allowed = [each for each in document["Statement"] if each["Effect"] == "Allow"]
        assert not any("*" in action for each in allowed for action in each["Action"])
        assert len(allowed) == len(sids) - 1  # what is refused comes last
        assert len(json.dumps(document, separators=(",", ":"))) <= POLICY_CHARACTERS_MAX


def test_the_document_names_tables_as_they_are_called_there() -> None:
    """A table of another name is so in every ARN, of its indexes and streams too."""
    document = render_policy(
        roles(SHOP)["reader"], region="eu-west-1", account="111122223333", names={"shop": "prod-shop"}
    )

    arns = {arn for statement in document["Statement"] for arn in statement["Resource"]}
    assert "arn:aws:dynamodb:eu-west-1:111122223333:table/prod-shop/index/listing" in arns
    assert not any("table/shop" in arn for arn in arns)


def test_no_role_scans_unless_a_need_is_answered_by_a_scan() -> None:
    """A scan is allowed on the very table or index whose need is said to be scanned for, and nowhere else."""
    need = Need("all products", "Product", access=AccessPattern("all"), route=Route("scan", "shelves"))
    scanning = roles(replace(SHOP, needs=(need,)))["reader"]

    assert not any("dynamodb:Scan" in g.actions for policy in derive_policies(SHOP) for g in policy.grants)
    assert [str(r) for g in scanning.grants if "dynamodb:Scan" in g.actions for r in g.references] == [
        "shop/index/shelves"
    ]


def test_a_need_with_a_constant_key_asks_for_that_key_alone() -> None:
    """What a route always asks for stands in the condition as it is."""
    route = Route("query", "listing", (Given("G1PK", "=", {"S": "TOP#all"}),))
    need = Need("the top of all", "Counter", route=route)
    bare = replace(
        SHOP, needs=(need,), tables=(replace(SHOP.tables[0], collections=(), entities=_keys_only()),)
    )

    (grant,) = grants(roles(bare)["reader"], "Query", "shop/index/listing")

    assert values(grant, "dynamodb:LeadingKeys") == ("TOP#all",)


def _keys_only() -> tuple[Any, ...]:
    return tuple(replace(e, patterns=(), writes=(), primary=None) for e in SHOP.tables[0].entities)


def test_a_pattern_that_reads_some_fields_is_held_to_them() -> None:
    """A get names the attributes that its pattern reads, with the keys and what tells an item's kind and end."""
    found = grants(roles(SHOP)["reader"], "GetItem", "shop")
    (narrow,) = [grant for grant in found if values(grant, "dynamodb:Select")]
    whole = roles(SHOP, narrow=False)["reader"]

    assert values(narrow, "dynamodb:LeadingKeys") == ("PRODUCT#*",)
    assert values(narrow, "dynamodb:Select") == ("SPECIFIC_ATTRIBUTES",)
    assert set(values(narrow, "dynamodb:Attributes")) == {"pk", "sk", "_entity", "ends", "_version", "price"}
    assert not any(values(grant, "dynamodb:Select") for grant in whole.grants)


def test_queries_of_other_code_are_held_to_their_fields_too() -> None:
    """A table that other code reads is asked for by projections; the index's own key is among what may be named."""
    table = SHOP.tables[0]
    product = table.entity("Product")
    (pattern,) = product.patterns
    access = AccessPattern("prices of a shelf", reads=("price",), filters=("text",))
    told = replace(product, patterns=(replace(pattern, access=access),))
    entities = tuple(told if each.name == "Product" else each for each in table.entities)
    foreign = replace(SHOP, tables=(replace(table, entities=entities, foreign=True),))

    (grant,) = grants(roles(foreign)["reader"], "Query", "shop/index/shelves")

    assert set(values(grant, "dynamodb:Attributes")) == {"pk", "sk", "region", "shelf", "price", "text"}
    assert values(grant, "dynamodb:Select") == ("SPECIFIC_ATTRIBUTES",)


def test_the_client_is_not_foreseen_where_other_code_writes() -> None:
    """What Tavola's client asks beside a pattern (guards, reads before updates, whole items) is asked by nobody else."""
    table = replace(SHOP.tables[0], foreign=True)
    writer = roles(replace(SHOP, tables=(table,)))["writer"]

    assert not any("dynamodb:GetItem" in grant.actions for grant in writer.grants)
    assert not any("UNIQUE" in text for grant in writer.grants for c in grant.conditions for text in c.values)


def test_what_no_policy_can_tell_apart_is_said() -> None:
    """An immutable entity that shares its partition key with what is updated cannot be kept from updates."""
    notes = roles(design_of(support_desk))["service"].notes

    assert any(
        note.startswith("IAM cannot block UpdateItem on Event (immutable), because Ticket shares")
        for note in notes
    )
    assert not roles(design_of(terraform_review))["service"].notes


def test_nothing_immutable_is_updated_or_deleted() -> None:
    """No role has an action that would rewrite what is never written again, where it has a partition key of its own."""
    for policy in derive_policies(design_of(terraform_review)):
        for grant in policy.grants:
            led = values(grant, "dynamodb:LeadingKeys")
            rewrites = {"dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}
            if rewrites.intersection(grant.actions):
                assert not {"HISTORY#*", "FINDING#*", "RUN#*"}.intersection(led)


def test_a_tenant_is_led_by_its_tag_and_told_what_it_cannot_do() -> None:
    """The own value stands in the place of the field; a write that also asks by keys that say nothing of whose it is, is left out."""
    tenant = roles(SHOP)["tenant"]

    (query,) = grants(tenant, "Query", "shop/index/listing")
    assert values(query, "dynamodb:LeadingKeys") == ("NAMES#${aws:PrincipalTag/tenant}",)
    assert {c.operator for c in query.conditions} == {"ForAllValues:StringEquals", "Null"}
    (fetched,) = grants(tenant, "BatchGetItem", "shop")
    assert values(fetched, "dynamodb:LeadingKeys") == ("CUSTOMER#${aws:PrincipalTag/tenant}#*",)
    assert any("'a customer comes' is not allowed" in note for note in tenant.notes)


def test_there_is_no_tenant_where_no_field_says_whose_an_item_is() -> None:
    """A design without tenants has no such role, nor a consumer's where nobody reads a stream."""
    found = roles(design_of(service_desk))

    assert set(found) == {"reader", "writer", "service", "deployer"}


def test_each_statement_says_which_patterns_need_it() -> None:
    """Whoever wonders why something is allowed finds the access pattern."""
    (grant,) = grants(roles(design_of(service_desk))["reader"], "GetItem", "poc-itsm-tickets")

    assert grant.reasons == ("a ticket by its ID",)


def test_literal_signs_of_a_template_are_no_wildcards() -> None:
    """A star, a question mark or a dollar in a template is itself in a pattern."""
    table = _starred("ST*R?${{x}}#{product_id}")

    assert escape_pattern("a*b?c$d") == "a${*}b${?}c${$}d"
    assert leading_keys(table.entity("Product"), _key(table)) == ("ST${*}R${?}${$}{x}#*",)


def _starred(text: str) -> TableDesign:
    table = SHOP.tables[0]
    product = table.entity("Product")
    assert product.key is not None
    source = replace(product.key.hash[0], template=Template.parse(text))
    changed = replace(product, key=replace(product.key, hash=(source,)))
    return replace(table, entities=(changed,))


def _key(table: TableDesign) -> Any:
    return table.entity("Product").key


def test_guards_of_unique_values_are_led_by_what_they_guard() -> None:
    """The guards of a field have keys of their own, which no other entity's or field's guards have."""
    table = SHOP.tables[0]
    customer = table.entity("Customer")

    assert guard_leading_keys(table, customer, customer.field("email")) == (
        ("UNIQUE#Customer#email#*",),
        ("LONGUNIQUE#Customer#email#*",),
    )


def test_an_empty_design_has_no_policies() -> None:
    """Where there is no table, there is no role."""
    assert derive_policies(Design()) == ()
