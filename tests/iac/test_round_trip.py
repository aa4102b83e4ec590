"""What is written is read back: the tables of a template or a module are those of the design it was made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tavola.iac import InfrastructurePlan, TablePlan, plan_table
from tavola.iac.formats import read_design
from tests.iac.samples import SAMPLES, plan_sample, renderings


def comparable(table: TablePlan) -> TablePlan:
    """Return a table without what a file has no room for: its words, and the order of indexes of two kinds."""
    ordered = sorted(table.indexes, key=lambda index: index.local)
    return replace(table, description="", indexes=tuple(ordered))


def planned(plan: InfrastructurePlan) -> dict[str, TablePlan]:
    """Return the tables of a plan, by name."""
    return {table.name: comparable(table) for table in plan.tables}


LARGE = ("support_desk", "terraform_review")  # HCL of this length takes a second to read


@pytest.mark.parametrize("ending", ["yaml", "tf"])
@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in SAMPLES
        if name != "everything"  # it has what a design does not, such as a table's writes that scale alone
    ],
)
def test_tables_come_back(sample: str, ending: str, tmp_path: Path) -> None:
    """Keys, indexes, settings and tags survive being written and read, in CloudFormation and Terraform."""
    file = tmp_path / f"{sample}.{ending}"
    file.write_text(renderings(sample)[file.name], encoding="utf-8")
    read = read_design(file).design
    key = SAMPLES[sample][1].key  # a file refers to a key that is made with it, and nobody else can
    tables = {table.name: comparable(plan_table(table, key)) for table in read.tables}

    assert tables == planned(plan_sample(sample))
