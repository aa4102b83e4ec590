"""What a finding says to do is enough: done, the finding is gone, and no other rule has a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal, Inexact
from importlib import import_module
from typing import Any

import pytest

from tavola.design.findings import SEVERITIES
from tavola.design.lint import lint
from tavola.model.document import Design, EntityDesign, TableDesign
from tests.design.builders import (
    bare_number,
    decimal,
    design,
    entity,
    gsi,
    key,
    put,
    query,
    table,
    text,
    update,
)

Change = Callable[[Design], Design]


def _tables(change: Callable[[TableDesign], TableDesign]) -> Change:
    return lambda told: replace(told, tables=tuple(map(change, told.tables)))


def _settings(**changes: Any) -> Change:
    return _tables(lambda each: replace(each, settings=replace(each.settings, **changes)))


def _consumers(**changes: Any) -> Change:
    return _tables(
        lambda each: replace(each, consumers=tuple(replace(told, **changes) for told in each.consumers))
    )


def _entities(change: Callable[[EntityDesign], EntityDesign]) -> Change:
    return _tables(lambda each: replace(each, entities=tuple(map(change, each.entities))))


def _fields(name: str, **changes: Any) -> Change:
    return _entities(
        lambda each: replace(
            each,
            fields=tuple(replace(told, **changes) if told.name == name else told for told in each.fields),
        )
    )


def _writes(**changes: Any) -> Change:
    return _entities(
        lambda each: replace(each, writes=tuple(replace(told, **changes) for told in each.writes))
    )


def _statements(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    def changed(told: Design) -> Design:
        policies = tuple(
            replace(
                each, document={**each.document, "Statement": list(map(change, each.document["Statement"]))}
            )
            for each in told.policies
        )
        return replace(told, policies=policies)

    return changed


def _condition(condition: dict[str, Any], **more: Any) -> Change:
    return _statements(lambda told: {**told, "Condition": {**told.get("Condition", {}), **condition}, **more})


def _without_index(told: Design) -> Design:
    return _tables(
        lambda each: replace(
            each, indexes=(), entities=tuple(replace(found, keys=()) for found in each.entities)
        )
    )(told)


_NULL = {"Null": {"dynamodb:LeadingKeys": "false"}}
_OWN = {
    "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["CUSTOMER#${aws:PrincipalTag/customer}"]},
    **_NULL,
}
_SHOP = "arn:aws:dynamodb:eu-west-1:111122223333:table/shop"
REMEDIES: dict[str, Change] = {
    "non-idempotent-consumer": _consumers(idempotent=True),
    "consumer-misses-events": _consumers(events=("INSERT", "MODIFY", "REMOVE")),
    "no-failure-destination": _consumers(retries=3, failures="sqs", bisect=True),
    "no-deletion-protection": _settings(deletion_protection=True),
    "no-customer-managed-key": _settings(encryption="alias/tickets"),
    "unknown-policy-resource": _statements(lambda told: {**told, "Resource": f"{_SHOP[:-4]}prod-shop"}),
    "policy-without-leading-keys": _condition(
        _OWN, Action=["dynamodb:Query"], Resource=f"{_SHOP}/index/by_customer"
    ),
    "lost-update": _entities(lambda each: replace(each, immutable=True)),
    "no-point-in-time-recovery": _settings(recovery=True),
    "scan-bypasses-leading-keys": _condition(_NULL, Action=["dynamodb:Query"]),
    "ttl-unused": _fields("expires_at", attribute="ttl"),
    "unbounded-list": _fields("comments", length_max=20),
    "unused-index": _without_index,
    "wildcard-policy": _statements(
        lambda told: {**told, "Action": ["dynamodb:GetItem"], "Resource": f"{_SHOP}-orders"}
    ),
}


def _told(found: Design, *, production: bool = False) -> set[tuple[str, str]]:
    """Return the rules and places of what is found; advice to say more of a design is not about it."""
    return {
        (each.rule, str(each.place))
        for each in lint(found, production=production).findings
        if SEVERITIES.index(each.severity) < SEVERITIES.index("advice") or each.rule in REMEDIES
    }


@pytest.mark.parametrize("name", REMEDIES)
def test_a_remedy_silences_its_finding(name: str) -> None:
    """The design in which a rule finds its defect is clean of it after its remedy, and has no new finding."""
    case = import_module(f"tests.design.lint.cases.{name.replace('-', '_')}")
    production = getattr(case, "PRODUCTION", False)
    before = _told(case.FOUND, production=production)

    after = _told(REMEDIES[name](case.FOUND), production=production)

    assert name in {rule for rule, _ in before}
    assert name not in {rule for rule, _ in after}
    assert after <= before


@pytest.mark.parametrize(
    ("told", "change"),
    [
        (put(), _writes(conditional=True)),
        (update("body", "version"), _writes(conditional=True)),
    ],
    ids=["put", "update"],
)
def test_other_code_says_that_its_writes_are_conditional(told: Any, change: Change) -> None:
    """In a table that is not ours the remedy is one that other code can follow and say."""
    numbered = "last" if told.kind == "put" else None
    made = entity(
        "Doc", text("doc_id"), bare_number("version", numbered=numbered), text("body"), pk="DOC#{doc_id}", sk="V{version:08}",
        writes=[told], immutable=told.kind == "put",
    )  # fmt: skip
    found = design(table(made, foreign=True))

    [finding] = lint(found, select=["lost-update"]).findings

    assert "conditional=True" in finding.remedy
    assert "lock=True" not in finding.remedy
    assert lint(change(found), select=["lost-update"]).findings == ()


def test_numbers_written_as_the_remedy_says_sort_by_size() -> None:
    """Leading zeros sort whole numbers; of fractions the digits behind the point are fixed as well."""
    numbers = (0.05, 0.7, 0.72, 0.9, 1, 9.5, 10.5, 120)

    def remedy(field: Any) -> str:
        made = entity("Review", text("review_id"), field, pk="R#{review_id}", sk=f"{{{field.name}}}")
        [finding] = lint(design(table(made, foreign=True)), select=["unpadded-number"]).findings
        return finding.remedy.rpartition("{score")[2].partition("}")[0].removeprefix(":")

    fraction = remedy(decimal("score", tags=("N",), key_kind="text"))
    whole = remedy(bare_number("score"))

    assert sorted(numbers, key=lambda each: format(each, fraction)) == list(numbers)
    assert sorted((2, 9, 10, 111), key=lambda each: format(each, whole)) == [2, 9, 10, 111]


def test_a_float_as_a_decimal_is_refused() -> None:
    """What the rule of floats says: made a Decimal, 0.1 has more digits than DynamoDB takes, which is told as inexact."""
    share = 0.1

    with pytest.raises(Inexact):
        Context(prec=38, traps=[Inexact]).create_decimal(Decimal(share))
    assert len(Decimal(share).as_tuple().digits) == 55


def test_an_unused_index_costs_what_goes_to_it() -> None:
    """Of a sparse index, the writes that come to it are counted, and not all of the entity's."""
    index = gsi("escalated", "GSI1PK", "GSI1SK")
    made = entity(
        "Ticket", text("ticket_id"), text("at", nullable=True), text("who", nullable=True), pk="T#{ticket_id}",
        keys=[key(index, "WHO#{who}", "{at}", sparse=True)], patterns=[query("Of", None, "ticket_id")],
        writes=[put(per_second=500, item_bytes=400), update("at", "who", per_second=1, item_bytes=400)],
    )  # fmt: skip

    [finding] = lint(design(table(made, indexes=[index])), select=["unused-index"]).findings

    units = float(
        finding.message.rpartition("and it costs ")[2].partition(" write units")[0].replace(",", "")
    )
    assert units < 100
