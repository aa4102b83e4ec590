"""Entities of one name in several tables of a foreign file: each gets a name of its own, and it is told."""

from __future__ import annotations

from tavola.iac.formats.format_detection import give_entities_unique_names
from tavola.iac.formats.import_result import ImportResult, SampleItem
from tavola.model.document import Consumer, check_references
from tests.design.builders import collection, design, entity, query, table, text

ITEM = entity("Item", text("item_id"), pk="I#{item_id}", patterns=[query("Of", None, "item_id")])


def test_the_first_keeps_its_name_and_the_second_gets_its_tables() -> None:
    """Whatever names the second in its own table follows, and the design can be referred to."""
    shop = table(ITEM, label="Shop")
    stock = table(
        ITEM,
        label="Stock",
        collections=[collection("All", "I#{item_id}", "Item")],
        consumers=[Consumer("copy", writes=("Item",))],
    )
    sample = SampleItem("stock", {"pk": {"S": "I#1"}}, "Item")

    found = give_entities_unique_names(ImportResult(design(shop, stock), (), "workbench", (sample,)))

    check_references(found.design)
    first, second = found.design.tables
    assert first == shop
    [renamed] = second.entities
    assert renamed.name == "Stock_Item"
    assert {pattern.result for pattern in renamed.patterns} == {"Stock_Item"}
    assert second.collections[0].members[0].entity == "Stock_Item"
    assert second.consumers[0].writes == ("Stock_Item",)
    assert found.samples[0].entity == "Stock_Item"
    assert [str(note) for note in found.report] == [
        "Stock: an earlier table has an entity 'Item' too; this one is imported as 'Stock_Item'"
    ]


def test_names_that_are_apart_stay() -> None:
    """An import without namesakes is what it was."""
    imported = ImportResult(design(table(ITEM)), (), "workbench")

    assert give_entities_unique_names(imported) is imported
