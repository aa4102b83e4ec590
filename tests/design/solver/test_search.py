"""Search: of one entity's few questions, no keys that serve them are cheaper than those that are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tavola.design.solver.candidates import serves, table_serves
from tavola.design.solver.packing import PRICE_STEP, Packer
from tavola.design.solver.pricing import UnitRates
from tavola.design.solver.proposals import EntityProposal, IndexKey, KeyProposal
from tavola.design.solver.questions import SolverInput, SolverQuestion, read_input
from tavola.design.solver.search import search_table
from tavola.design.solver.tables import group_entities
from tavola.prices import load_book
from tests.design.builders import design, text
from tests.design.solver.test_questions import asked, kept, put

FIELDS = ("a", "b", "c")
RATES = UnitRates.of(load_book("us-east-1"))


def keys(fields: Sequence[str]) -> Iterator[KeyProposal]:
    """Every key that some fields can make."""
    for count in range(len(fields) + 1):
        for partition in combinations(fields, count):
            rest = [name for name in fields if name not in partition]
            for length in range(len(rest) + 1):
                for sorts in permutations(rest, length):
                    yield KeyProposal(partition, sorts)


def groups(told: tuple[SolverQuestion, ...]) -> Iterator[tuple[tuple[SolverQuestion, ...], ...]]:
    """Every way in which questions can be together."""
    if not told:
        yield ()
        return
    for rest in groups(told[1:]):
        yield ((told[0],), *rest)
        for at, group in enumerate(rest):
            yield (*rest[:at], (told[0], *group), *rest[at + 1 :])


def cheapest(subject: SolverInput, identity: tuple[str, ...]) -> float:
    """The least that any keys cost: every table key, every grouping, every index key."""
    (entity,) = subject.entities.values()
    packer = Packer(subject, "Things", None, ("Thing",), RATES, "auto", {})
    found = float("inf")
    for base in keys(FIELDS):
        if set(base.fields) != set(identity) or (not base.partition):
            continue
        served = tuple(q for q in subject.questions if table_serves(base, q, entity))
        rest = tuple(q for q in subject.questions if q not in served)
        for way in groups(rest):
            blocks = [
                [
                    IndexKey("Thing", key, group)
                    for key in keys(FIELDS)
                    if all(serves(key, q, entity) for q in group)
                ]
                for group in way
            ]
            for chosen in product(*blocks):
                plan = EntityProposal("Thing", base, served, chosen)
                priced = [packer.best_index({"Thing": plan}, (block,)) for block in chosen]
                prices = [each.price for each in priced if each is not None]
                if len(prices) == len(chosen):
                    found = min(found, packer.price_without_indexes(plan) + sum(prices))
    return found


@settings(max_examples=8, deadline=None)
@drawn(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(FIELDS), max_size=2, unique=True),
            st.lists(st.sampled_from(FIELDS), max_size=1),
            st.sampled_from((0.5, 20)),
        ),
        min_size=1,
        max_size=2,
    ),
    st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2, unique=True),
)
def test_no_keys_are_cheaper_than_those_found(
    drawn_needs: list[tuple[list[str], list[str], float]], identity: list[str]
) -> None:
    """Against all keys that there are, tried one by one."""
    thing: Any = kept("Thing", *(text(name) for name in FIELDS), writes=[put(3)])
    needs = [asked("thing", "Thing", tuple(identity), single=True)]
    for number, (where, order, rate) in enumerate(drawn_needs):
        run = tuple(name for name in order if name not in where)
        needs.append(asked(f"need {number}", "Thing", tuple(where), run, per_second=rate, items=10))
    subject = read_input(design(views=[thing], needs=needs))
    (household,) = group_entities(subject)

    best = search_table(household, subject, RATES, "auto", {})[0]
    assert best.price <= cheapest(subject, tuple(identity)) + 2 * PRICE_STEP
