"""The documents' own designs, with every defect that they have: the linter's first customers."""

from __future__ import annotations

import pytest

from tavola.design.lint import lint
from tavola.model.document import Design, check_references, read_document, write_document
from tests.design.seeds import common_patterns, service_desk, support_desk, terraform_review
from tests.design.seeds.defects import Defect

SEEDS = {
    "000 support desk": support_desk,
    "001 and 003 patterns": common_patterns,
    "002 service desk": service_desk,
    "004 review history": terraform_review,
}
IN_CODE = {
    9: "a retry that recurses is no part of a design; the idempotency pattern's tests show it",
    11: "prices and formulas are the planner's",
    14: "the provider's syntax is the writer's of infrastructure",
    24: "the document puts a version on condition that it is new; what its loser is told, the versions pattern's tests show",
    17: "a list without a cursor is the interface's; the service desk's tests show it",
}
CASES = [(name, defect) for name, seed in SEEDS.items() for defect in seed.DEFECTS]


@pytest.mark.parametrize(
    ("name", "defect"), CASES, ids=[f"{name}: {d.rule} at {d.place}" for name, d in CASES]
)
def test_a_defect_of_a_document_is_found(name: str, defect: Defect) -> None:
    """Each thing that is wrong with a document's design is found by its rule, at its place."""
    found = lint(SEEDS[name].DESIGN).findings

    assert (defect.rule, defect.place) in {(each.rule, str(each.place)) for each in found}


@pytest.mark.parametrize("name", SEEDS)
def test_no_error_is_found_that_the_document_does_not_have(name: str) -> None:
    """What is told of a document's design as an error is on the list of what is wrong with it."""
    known = {(defect.rule, defect.place) for defect in SEEDS[name].DEFECTS}
    errors = [each for each in lint(SEEDS[name].DESIGN).findings if each.severity == "error"]

    assert {(each.rule, str(each.place)) for each in errors} <= known


def test_every_wrong_point_has_its_rule() -> None:
    """Of what the documents get wrong, all is found but what no design says."""
    told = {defect.wrong for _, defect in CASES if defect.wrong is not None}

    assert told | set(IN_CODE) == set(range(1, 27))
    assert not told & set(IN_CODE)


@pytest.mark.parametrize("name", SEEDS)
def test_the_documents_designs_are_documents_of_ours(name: str) -> None:
    """A design with faults is a design: it can be written, read and compared."""
    design: Design = SEEDS[name].DESIGN

    check_references(design)
    assert read_document(write_document(design)) == design
