"""The policies of the applications are sound: those that they come with, and those written from their access patterns."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import getsource
from pathlib import Path
from time import perf_counter

import pytest

from tavola.apps.service_desk import policies as service_desk
from tavola.apps.support_desk import policies as support_desk
from tavola.apps.terraform_review import policies as terraform_review
from tavola.design.lint import lint
from tavola.iac.policies import derive_policies, render_policy
from tavola.model.document import Design, Policy, design_of, with_ignores

SECONDS_MAX = 1.0
PLACE = ("eu-west-1", "111122223333")
POLICIES = {
    "support_desk": {
        made.__name__: made("", *PLACE)
        for made in (
            support_desk.customer,
            support_desk.agent,
            support_desk.service,
            support_desk.projector,
            support_desk.founder,
        )
    },
    "terraform_review": {
        made.__name__: made(*PLACE)
        for made in (
            terraform_review.reader,
            terraform_review.service,
            terraform_review.projector,
            terraform_review.keeper,
            terraform_review.immutability,
        )
    },
    "service_desk": {"least_privilege": service_desk.least_privilege(*PLACE)},
}


def _design(name: str) -> Design:
    module = import_module(f"tavola.apps.{name}.model")
    return with_ignores(design_of(module), [(f"{name}.py", getsource(module))])


def _found(design: Design, policies: tuple[Policy, ...]) -> list[str]:
    findings = lint(replace(design, policies=policies)).findings
    return [f"{each.place}: {each.rule}: {each.message}" for each in findings]


@pytest.mark.parametrize("name", POLICIES)
def test_the_applications_policies_are_sound(name: str) -> None:
    """No rule cries wolf over what a customer, an agent and the application itself may do."""
    policies = tuple(Policy(role, document) for role, document in POLICIES[name].items())

    assert _found(_design(name), policies) == []


@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_that_are_written_from_a_design_are_sound(name: str) -> None:
    """The writer of policies and the judge of policies agree."""
    design = _design(name)
    policies = tuple(
        Policy(found.role, render_policy(found), found.tables) for found in derive_policies(design)
    )

    assert policies
    assert _found(design, policies) == []


def test_a_customers_policy_without_its_condition_is_found() -> None:
    """The tests above are about something: without the condition the same policy is open to every customer."""
    statement = dict(POLICIES["support_desk"]["customer"]["Statement"][0])
    del statement["Condition"]

    found = _found(_design("support_desk"), (Policy("customer", {"Statement": [statement]}),))

    assert [line.split(": ")[1] for line in found] == ["policy-without-leading-keys"]


@pytest.mark.parametrize("module", [support_desk, terraform_review], ids=lambda module: module.__name__)
def test_every_policy_of_an_application_is_judged(module: object) -> None:
    """One that comes later is among those above."""
    text = Path(getattr(module, "__file__", "")).read_text(encoding="utf-8")
    made = {line[4:].partition("(")[0] for line in text.splitlines() if line.startswith("def ")}

    judged = POLICIES[getattr(module, "__name__", "").split(".")[-2]]

    assert {name for name in made if not name.startswith("_")} == set(judged)


def test_the_largest_application_is_linted_in_a_second() -> None:
    """Lint is quick enough to run at every save."""
    design = max(map(_design, POLICIES), key=lambda each: sum(len(table.entities) for table in each.tables))
    lint(design)  # once, for what is imported and read on first use

    begun = perf_counter()
    lint(design)

    assert perf_counter() - begun < SECONDS_MAX
