"""Plan: what a design needs, what cannot be planned, and what things are called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.iac import (
    PlanError,
    PlanOptions,
    RolePolicy,
    build_template,
    cdk_files,
    derive_policies,
    plan_infrastructure,
    plan_table,
    render_policy,
    render_terraform,
)
from tavola.iac.grants import (
    ONLY_OVER_TLS,
    POLICY_CHARACTERS_MAX,
    Grant,
    PolicyCondition,
    PolicyPlan,
    ResourceReference,
    split_policy,
)
from tavola.iac.identifiers import Identifiers, pascal, python_name, shorten, snake
from tavola.model.document import Consumer, Design, TableDesign
from tests.iac.samples import EVERYTHING, SAMPLES, plan_sample

NAMES = st.lists(st.from_regex(r"[A-Za-z0-9_.-]{3,20}", fullmatch=True), unique=True, min_size=2, max_size=6)


def orders(**settings: Any) -> TableDesign:
    """Return a table with other settings."""
    table = EVERYTHING.tables[0]
    return replace(table, settings=replace(table.settings, **settings), consumers=())


def test_an_empty_design_has_no_infrastructure() -> None:
    """A design without a table is told so."""
    with pytest.raises(PlanError, match="no tables; declare one"):
        plan_infrastructure(Design())


def test_a_consumer_needs_a_stream() -> None:
    """A consumer of a table without a stream is refused, with what to declare."""
    table = replace(orders(stream=None), consumers=(Consumer("mail"),))

    with pytest.raises(PlanError, match=r"consumer mail needs a stream; declare stream="):
        plan_infrastructure(Design((table,)))


@pytest.mark.parametrize("failures", ["file", "arn:aws:lambda:eu-west-1:123456789012:function:x", ""])
def test_a_destination_is_one_that_lambda_knows(failures: str) -> None:
    """Where failures go is a queue, a topic or a bucket, and nothing else."""
    table = replace(orders(), consumers=(Consumer("mail", failures=failures),))

    with pytest.raises(PlanError, match="is not a destination; use sqs, sns, s3 or an ARN of one"):
        plan_infrastructure(Design((table,)))


def test_replicas_need_whole_images() -> None:
    """A table with replicas streams both images; a design that says otherwise is refused."""
    with pytest.raises(PlanError, match="replicas need stream"):
        plan_table(orders(replicas=("eu-central-1",), stream="KEYS_ONLY"))


def test_a_key_attribute_has_a_type() -> None:
    """An attribute of a key without a type is refused where it is planned, not by AWS."""
    with pytest.raises(PlanError, match="key attribute 'pk' has no type"):
        plan_table(replace(orders(), key_types={}))


def test_what_an_imported_file_does_not_tell_is_asked_for() -> None:
    """A name or a key that a file only refers to is no name here; a key may be given instead."""
    with pytest.raises(PlanError, match="the table name is unresolved"):
        plan_table(orders(name="${var.stage}-orders"))
    with pytest.raises(PlanError, match="give a key with --kms-key"):
        plan_table(orders(encryption="${TableKey.Arn}"))

    assert plan_table(orders(encryption="${TableKey.Arn}"), "new").key == "new"


def test_the_key_of_the_options_is_for_tables_without_one() -> None:
    """A table's own key stays; one without takes what the options say."""
    plan = plan_infrastructure(
        Design((orders(), orders(name="others", encryption=None))), PlanOptions(key="new")
    )

    assert [table.key == "new" for table in plan.tables] == [False, True]
    assert plan.makes_key


def test_a_handler_is_spelled_as_lambda_spells_it() -> None:
    """module:function is module.function to Lambda; without one the function's file is named for the consumer."""
    mail, audit, _ = plan_infrastructure(EVERYTHING).consumers

    assert mail.handler == "shop.mail.handler"
    assert audit.handler == "audit_consumer.handler"
    assert mail.function == "shop-orders_2026-mail"
    assert (mail.created_destination, mail.failure_service) == (None, "sns")


def test_what_may_be_left_out_is_left_out() -> None:
    """Without alarms and policies a plan has tables and consumers alone."""
    plan = plan_infrastructure(EVERYTHING, PlanOptions(alarms=False, policies=False))

    assert (plan.alarms, plan.policies) == ((), ())
    assert plan.consumers


def test_a_long_policy_is_several() -> None:
    """No managed policy is longer than AWS takes; together the parts allow what the whole did."""
    grants = tuple(
        Grant(
            f"Read{n}",
            ("dynamodb:GetItem", "dynamodb:Query"),
            (ResourceReference("orders", "index", f"index-{n}"),),
        )
        for n in range(80)
    )
    parts = list(split_policy(PolicyPlan("reader", "", (*grants, ONLY_OVER_TLS))))

    assert len(parts) > 1
    assert tuple(grant for part in parts for grant in part.grants[:-1]) == grants
    assert all(part.grants[-1] == ONLY_OVER_TLS for part in parts)
    assert all(characters(part) <= POLICY_CHARACTERS_MAX for part in parts)


def characters(policy: PolicyPlan) -> int:
    """Return how long a policy is, as IAM counts it, in a region of a long name."""
    role = RolePolicy(policy.name, "reader", "", policy.grants)
    told = render_policy(role, region="us-gov-west-1", account="123456789012")
    return len("".join(json.dumps(told).split()))


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_policy_is_longer_than_iam_takes(sample: str) -> None:
    """Measured as a document, with whole ARNs."""
    assert all(characters(policy) <= POLICY_CHARACTERS_MAX for policy in plan_sample(sample).policies)


def test_a_long_statement_is_several() -> None:
    """One that is about too much for one policy is cut by its resources, and then by its actions; together they allow the same."""
    references = tuple(
        ResourceReference("orders", "index", f"an-index-of-a-rather-long-name-{n}") for n in range(90)
    )
    actions = ("dynamodb:Query", "dynamodb:Scan")
    parts = list(split_policy(PolicyPlan("reader", "", (Grant("Read", actions, references),))))
    told = {
        (action, each) for part in parts for g in part.grants for action in g.actions for each in g.references
    }

    assert len(parts) > 1
    assert told == {(action, each) for action in actions for each in references}
    assert all(characters(part) <= POLICY_CHARACTERS_MAX for part in parts)
    sids = [grant.sid for part in parts for grant in part.grants]
    assert len(set(sids)) == len(sids)


def test_a_statement_that_cannot_be_cut_is_refused() -> None:
    """An update of so many attributes fits no policy: it is told, and not written for AWS to refuse."""
    names = tuple(f"a_rather_long_attribute_name_{n:03}" for n in range(180))
    condition = PolicyCondition("ForAllValues:StringEquals", "dynamodb:Attributes", names)
    grant = Grant("Change", ("dynamodb:UpdateItem",), (ResourceReference("orders"),), (condition,))

    with pytest.raises(PlanError, match=r"role writer: statement Change has 6,\d+ characters"):
        list(split_policy(PolicyPlan("writer", "", (grant,))))


BAD_CONSUMERS: dict[str, dict[str, Any]] = {
    "batch_size=20,000 is outside": {"batch_size": 20_000},
    "window_s=500 is outside": {"window_s": 500},
    "parallelization=50 is outside": {"parallelization": 50},
    "retries=-5 is outside": {"retries": -5},
    "max_age_s=10 is neither": {"max_age_s": 10},
    "timeout_s=5,000 is outside": {"timeout_s": 5_000},
    "memory_mb=1 is outside": {"memory_mb": 1},
    "12 filters exceed": {"filters": ({"eventName": ["INSERT"]},) * 12},
    "an empty filter": {"filters": ({},)},
    "exceeds the limit of 4,096": {"filters": ({"eventName": ["x" * 5_000]},)},
}


@pytest.mark.parametrize("why", BAD_CONSUMERS)
def test_a_consumer_that_lambda_refuses_is_refused(why: str) -> None:
    """What no mapping can have is told where it is planned, with the place."""
    table = replace(orders(), consumers=(Consumer("mail", **BAD_CONSUMERS[why]),))

    with pytest.raises(PlanError, match=rf"shop\.orders_2026\.mail: .*{why}"):
        plan_infrastructure(Design((table,)))


def test_a_consumer_has_a_name_of_its_own() -> None:
    """Two of one name are refused, as nobody could tell them apart."""
    table = replace(orders(), consumers=(Consumer("mail"), Consumer("mail")))

    with pytest.raises(PlanError, match="two consumers of the table have this name"):
        plan_infrastructure(Design((table,)))


def test_the_kinds_of_records_are_a_filter() -> None:
    """A consumer that acts on some kinds is called with those alone; filters of its own say it themselves."""
    told = {"dynamodb": {"NewImage": {"a": {"S": ["b"]}}}}
    consumers = (Consumer("one", events=("INSERT",)), Consumer("two", events=("INSERT",), filters=(told,)))
    one, two = plan_infrastructure(Design((replace(orders(), consumers=consumers),))).consumers

    assert [json.loads(pattern) for pattern in one.patterns] == [{"eventName": ["INSERT"]}]
    assert [json.loads(pattern) for pattern in two.patterns] == [told]


def named_alike() -> Design:
    """Return tables and consumers whose names are told apart by signs that no identifier has."""
    entities = EVERYTHING.tables[0].entities
    one = replace(
        orders(name="prod.orders"), entities=entities, consumers=(Consumer("numbers"), Consumer("Numbers"))
    )
    other = replace(
        orders(name="prod-orders"),
        entities=(),
        collections=(),
        consumers=(Consumer("numbers", failures="sqs"),),
    )
    return Design((one, other))


def test_every_consumer_is_a_function() -> None:
    """Names that would be spelled alike stay two functions, in every tongue, and none longer than Lambda takes."""
    plan = plan_infrastructure(named_alike(), PlanOptions(alarms=True))
    functions = [consumer.function for consumer in plan.consumers]
    template = build_template(plan)["Resources"].values()

    assert len({snake(name) for name in functions}) == 3
    assert all(len(name) <= 64 for name in functions)
    assert sum(each["Type"] == "AWS::Lambda::Function" for each in template) == 3
    assert render_terraform(plan).count('resource "aws_lambda_function"') == 3
    assert cdk_files(plan)["app.py"].count("lambda_.Function(") == 3


def test_a_consumer_has_its_own_role() -> None:
    """Two consumers of one name, of which one writes into the other's table, read each its own stream."""
    order = EVERYTHING.tables[0].entities
    one = replace(
        orders(name="orders"),
        entities=(),
        collections=(),
        consumers=(Consumer("numbers", writes=("Order",)),),
    )
    other = replace(orders(name="stats"), entities=order, consumers=(Consumer("numbers"),))
    design = Design((one, other))
    roles = [policy.role for policy in derive_policies(design) if policy.kind == "consumer"]
    streams = {
        consumer.table: {
            each.table for grant in consumer.grants for each in grant.references if each.part == "stream"
        }
        for consumer in plan_infrastructure(design).consumers
    }

    assert roles == ["consumer-orders-numbers", "consumer-stats-numbers"]
    assert streams == {"orders": {"orders"}, "stats": {"stats"}}


@given(st.integers(3, 255))
def test_a_queues_name_has_room_for_what_terraform_adds(length: int) -> None:
    """SQS takes 80 characters, of which Terraform writes 26."""
    table = replace(orders(name="a" * length), consumers=(Consumer("dashboard", failures="sqs"),))
    plan = plan_infrastructure(Design((table,)), PlanOptions(alarms=False, policies=False))
    prefixes = re.findall(r'name_prefix += "(.*)"', render_terraform(plan))

    assert [len(prefix) + 26 <= 80 for prefix in prefixes] == [True]


def test_a_key_of_ones_own_is_told_with_the_policies() -> None:
    """Whoever has a role needs the key that encrypts a table; where the plan does not make it, it says so."""
    told = plan_infrastructure(EVERYTHING).notes
    own = plan_infrastructure(Design((orders(encryption=None),)), PlanOptions(key="new")).notes

    (of_key,) = [each for each in told if "shop.orders_2026 is encrypted by arn:aws:kms:" in each]
    assert of_key.startswith("policies reader, ")
    assert "consumer-mail" in of_key.partition(":")[0]
    assert not any("is encrypted by" in each for each in own)


@pytest.mark.parametrize("key", ["", "hello world", "arn:aws:s3:::bucket", "alias/"])
def test_what_is_no_key_is_refused(key: str) -> None:
    """A text that names no key of KMS is refused, of the options and of a table."""
    with pytest.raises(PlanError, match="is not a KMS key"):
        plan_infrastructure(Design((orders(encryption=None),)), PlanOptions(key=key))
    with pytest.raises(PlanError, match="is not a KMS key"):
        plan_infrastructure(Design((orders(encryption=key),)))


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_alarm_has_its_own_name(sample: str) -> None:
    """CloudWatch knows alarms by their names, so no two of a plan share one."""
    names = [alarm.name for alarm in plan_sample(sample).alarms]

    assert len(names) == len(set(names))
    assert all(len(name) <= 255 for name in names)


@given(NAMES)
def test_identifiers_are_as_many_as_names(names: list[str]) -> None:
    """Every legal name has an identifier in each tongue, and two names have two."""
    for spelling, is_legal in (
        (snake, str.isidentifier),
        (pascal, str.isalnum),
        (python_name, str.isidentifier),
    ):
        identifiers = Identifiers(spelling)
        told = [identifiers.of(name) for name in names]

        assert len(set(told)) == len(names)
        assert all(is_legal(each) and each.isascii() and each[0].isalpha() for each in told)
        assert told == [identifiers.of(name) for name in names]


def test_identifiers_read_like_names() -> None:
    """The usual names are what a person would have written."""
    assert snake("prod-tickets-unified") == "prod_tickets_unified"
    assert pascal("prod-tickets-unified") == "ProdTicketsUnified"
    assert (snake("a.b_c"), pascal("a.b_c")) == ("a_b_c", "ABC")
    assert (snake("2026-orders"), pascal("2026-orders")) == ("t_2026_orders", "T2026Orders")
    assert python_name("lambda") == "lambda_"


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_shortened_names_stay_apart(one: str, other: str) -> None:
    """A name that is cut keeps to the length, and two names stay two."""
    assert len(shorten(one, 20)) <= 20
    assert (shorten(one, 20) == shorten(other, 20)) == (one == other)
