"""The evaluator of policies beside a second one, on thousands of generated policies and requests."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.properties.policies import FAULTS, differences, judge, make_case

CASES = 6_000


@pytest.mark.parametrize("seed", [1, 2])
def test_both_evaluators_agree(seed: int) -> None:
    """Allowed or denied, and why: the compiled rules say what the slow reference says."""
    assert differences(CASES // 2, seed) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    """A comparison that finds nothing proves nothing until it has found what was planted."""
    assert differences(CASES, 3, fault)


def test_every_outcome_is_reached() -> None:
    """The generated cases end in every way that a case can end, none of them rarely."""
    chance = random.Random(4)

    reached = Counter(judge(make_case(chance)) for _ in range(2_000))

    denials = {"deny by identity", "deny by boundary", "deny by session", "deny by resource"}
    assert set(reached) == {"allow", "no identity", "no boundary", "no session", "no resource", *denials}
    assert min(reached.values()) >= 10
