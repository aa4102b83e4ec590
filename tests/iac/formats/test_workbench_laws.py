"""The round trip of a Workbench model, as laws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.iac.formats import write_workbench
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.sample_items import read_item
from tavola.iac.formats.workbench import read_workbench
from tavola.model.document import (
    Design,
    IndexDesign,
    TableDesign,
    check_references,
    read_document,
    write_document,
)
from tests.iac.formats.workbench_strategies import held_designs, models


@settings(max_examples=40, deadline=None)
@given(held_designs())
def test_a_design_that_a_model_can_hold_comes_back(design: Design) -> None:
    """Where the report of the writer names nothing, what is read again is the very design."""
    model, report = write_workbench(design)
    again = read_workbench(json.loads(json.dumps(model)))

    tables = tuple(
        replace(table, settings=replace(table.settings, unknown=())) for table in again.design.tables
    )
    assert report == ()
    assert replace(again.design, tables=tables) == design
    assert all("recovery" in table.settings.unknown for table in again.design.tables)


@settings(max_examples=40, deadline=None)
@given(models())
def test_a_model_written_onto_itself_is_itself(model: dict[str, Any]) -> None:
    """Whatever stands in a model stays there while its design does not change; the design is a whole one."""
    before = json.dumps(model, sort_keys=True)
    imported = read_workbench(model)
    check_references(imported.design)

    written, _ = write_workbench(imported.design, onto=model)

    assert json.dumps(written, sort_keys=True) == before
    assert read_document(json.loads(json.dumps(write_document(imported.design)))) == imported.design


@settings(max_examples=40, deadline=None)
@given(models())
def test_a_model_written_anew_keeps_all_that_no_report_names(model: dict[str, Any]) -> None:
    """Tables, keys, attributes, indexes, facets and items are in the new model, or in a report by their name."""
    imported = read_workbench(model)
    written, report = write_workbench(imported.design, imported.samples)
    named = "\n".join(str(each) for each in (*imported.report, *report))
    tables = {table["TableName"]: table for table in written["DataModel"]}

    for table in model["DataModel"]:
        made = tables[table["TableName"]]
        keys = [each["AttributeName"] for each in table["KeyAttributes"].values()]
        assert {each["AttributeName"] for each in made["KeyAttributes"].values()} == set(keys)
        declared = {each["AttributeName"]: each["AttributeType"] for each in made["NonKeyAttributes"]}
        for each in table["NonKeyAttributes"]:
            assert each["AttributeName"] in declared or each["AttributeName"] in named
        indexes = {index["IndexName"]: index for index in made["GlobalSecondaryIndexes"]}
        for index in table.get("GlobalSecondaryIndexes", ()):
            told = {key: each["AttributeName"] for key, each in index["KeyAttributes"].items()}
            new = indexes[index["IndexName"]]["KeyAttributes"]
            assert {key: each["AttributeName"] for key, each in new.items()} == told
        assert {each["FacetName"] for each in made["TableFacets"]} >= {
            each["FacetName"] for each in table.get("TableFacets", ())
        }
        rows = [*_rows(table["TableName"], table)]
        for facet in table.get("TableFacets", ()):
            rows += _rows(facet["FacetName"], facet)
        kept = [*made["TableData"], *(row for each in made["TableFacets"] for row in each["TableData"])]
        for at, row in rows:
            if not any(_same(row, each) for each in kept):
                assert at in named or any(f"{name!r} " in str(note) for note in report for name in row)


def _same(raw: dict[str, Any], made: dict[str, Any]) -> bool:
    """Tell whether an item is in a new model, to its last attribute."""
    read = ImportReport()
    item = read_item(raw, "", read)
    return read.notes == () and item == made


def _rows(place: str, raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, row in enumerate(raw.get("TableData", ())):
        yield f"{place}.TableData[{at}]", row


@settings(max_examples=40, deadline=None)
@given(models())
def test_a_second_round_changes_nothing(model: dict[str, Any]) -> None:
    """A model that we wrote ourselves, with its samples, is read and written again as it is."""
    first = read_workbench(model)
    once, _ = write_workbench(first.design, first.samples)
    second = read_workbench(json.loads(json.dumps(once)))
    twice, _ = write_workbench(second.design, second.samples)
    third = read_workbench(json.loads(json.dumps(twice)))

    assert [table.key_types for table in second.design.tables] == [
        table.key_types for table in first.design.tables
    ]
    assert third.design == second.design
    assert third.samples == second.samples


def _changed(table: TableDesign, what: str) -> TableDesign:
    settings = table.settings
    match what:
        case "units":
            return replace(table, settings=replace(settings, read_units=77, write_units=78, scaling=None))
        case "demand":
            return replace(table, settings=replace(settings, read_units=None, write_units=None, scaling=None))
        case "index":
            index = IndexDesign("new-index", "new_index", False, (settings.hash,), (), "ALL")
            return replace(table, indexes=(*table.indexes, index))
        case "projection":
            kept = (*(replace(each, projection=("fresh",)) for each in table.indexes[:1]), *table.indexes[1:])
            return replace(table, indexes=kept)
        case "entity":
            return replace(table, entities=table.entities[1:])
        case _:
            return table


TOUCHED = {
    "units": {"BillingMode", "ProvisionedCapacitySettings"},
    "demand": {"BillingMode", "ProvisionedCapacitySettings"},
    "index": {"GlobalSecondaryIndexes"},
    "projection": {"GlobalSecondaryIndexes"},
    "entity": {"TableFacets", "TableData", "NonKeyAttributes"},
}


@settings(max_examples=50, deadline=None)
@given(models(), st.sampled_from(sorted(TOUCHED)))
def test_what_did_not_change_stays_to_the_last_key(model: dict[str, Any], what: str) -> None:
    """One part of a design is changed and written onto its file: every other member of the file is what it was."""
    raw = deepcopy(model)
    imported = read_workbench(model)
    first, *others = imported.design.tables
    design = replace(imported.design, tables=(_changed(first, what), *others))

    written, _ = write_workbench(design, onto=model)

    assert {**written, "DataModel": []} == {**raw, "DataModel": []}
    assert written["DataModel"][1:] == raw["DataModel"][1:]
    old, new = raw["DataModel"][0], written["DataModel"][0]
    for member in {*old, *new} - TOUCHED[what]:
        assert new.get(member) == old.get(member), member
    indexes = {each["IndexName"]: each for each in new.get("GlobalSecondaryIndexes", ())}
    for at, index in enumerate(old.get("GlobalSecondaryIndexes", ())):
        kept = indexes[index["IndexName"]]
        assert (what == "projection" and at == 0) or kept == index
        assert {**kept, "Projection": 0} == {**index, "Projection": 0}
    facets = {each["FacetName"]: each for each in new.get("TableFacets", ())}
    for facet in old.get("TableFacets", ())[1:]:
        assert facets[facet["FacetName"]] == facet
    if what == "units":
        assert new["ProvisionedCapacitySettings"]["ProvisionedThroughput"]["ReadCapacityUnits"] == 77
    if what == "demand" and first.settings.read_units is not None:
        assert "ProvisionedCapacitySettings" not in new
        assert new["BillingMode"] == "PAY_PER_REQUEST"
    again = read_workbench(json.loads(json.dumps(written))).design.tables[0]
    wanted = _changed(first, what)
    assert again.settings.read_units == wanted.settings.read_units
    assert {each.name: each.projection for each in again.indexes} == {
        each.name: each.projection for each in wanted.indexes
    }
