"""awslabs' schema.json and dynamodb_data_model.json as designs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tavola.iac.formats import ImportResult, read_design
from tavola.model.document import EntityDesign, Given, Need, Route

FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def shop() -> ImportResult:
    """A schema of two tables."""
    return read_design(FILES / "schema.json")


def entity(imported: ImportResult, name: str) -> EntityDesign:
    """Return an entity by its name."""
    return next(each for table in imported.design.tables for each in table.entities if each.name == name)


def need(imported: ImportResult, name: str) -> Need:
    """Return a need by its name."""
    return next(each for each in imported.design.needs if each.name == name)


def test_templates_become_keys(shop: ImportResult) -> None:
    """Templates of the table and of indexes are read; a field alone that is the attribute itself is that field."""
    order = entity(shop, "Order")
    assert order.key is not None
    made = [(source.attribute, source.tag, source.field) for source in order.keys[0].sources]

    assert [source.template and source.template.source for source in order.key.sources] == [
        "CUSTOMER#{customer_id}",
        "ORDER#{placed_at}#{order_id}",
    ]
    assert made == [
        ("status", "S", "status"),
        ("region", "S", "region"),
        ("placed_at", "N", "placed_at"),
        ("order_id", "S", "order_id"),
    ]


def test_fields_have_their_types(shop: ImportResult) -> None:
    """Each type of the schema is one of ours, and what is not required may be absent."""
    told = {
        field.name: (field.type, field.tags, field.nullable)
        for name in ("Customer", "Order")
        for field in entity(shop, name).fields
    }

    assert told["customer_id"] == ("uuid", ("S",), False)
    assert told["email"] == ("text", ("S",), True)
    assert told["tags"] == ("list[text]", ("L",), True)
    assert told["total"] == ("decimal", ("N",), False)
    assert told["lines"] == ("map[text, any]", ("M",), False)


def test_access_patterns_become_needs_with_routes(shop: ImportResult) -> None:
    """What reads is a need in fields, with the route in attributes; its filter is both a condition and a filter."""
    since, status = need(shop, "orders_since"), need(shop, "by_status")

    assert since.where == (Given("customer_id"), Given("placed_at", ">="))
    assert since.order == ("placed_at", "order_id")
    assert since.route == Route("query", None, (Given("pk"), Given("sk", ">=")))
    assert status.where == (
        Given("status"),
        Given("region"),
        Given("placed_at", "between"),
        Given("total", ">="),
    )
    assert status.route == Route(
        "query",
        "ByStatus",
        (Given("status"), Given("region"), Given("placed_at", "between")),
        (Given("total", ">="),),
    )
    assert need(shop, "get_customer").single
    assert need(shop, "all_orders").route == Route("scan")
    assert need(shop, "everything").entities == ("Order", "Customer")


def test_writes_and_transactions_become_writes(shop: ImportResult) -> None:
    """Puts and updates are writes of their entity; those of a transaction over tables are bound by its name."""
    customer, order, lock = (entity(shop, name) for name in ("Customer", "Order", "EmailLock"))

    assert [(each.kind, each.changes) for each in order.writes] == [("update", ("status",))]
    assert [(each.title, each.together) for each in customer.writes] == [
        ("A customer comes", ""),
        ("A customer registers", "register"),
    ]
    assert [(each.transactional, each.together) for each in lock.writes] == [(True, "register")]
    assert need(shop, "both").entities == ("Customer", "EmailLock")


def test_a_template_that_ours_cannot_hold_is_a_field(shop: ImportResult) -> None:
    """Two fields that touch cannot be told apart: the key stays a plain field, and the report says why."""
    lock = entity(shop, "EmailLock")
    assert lock.key is not None

    assert lock.key.hash[0].field == "pk"
    assert "EmailLock.pk: '{a}{b}' cannot be a key template" in "\n".join(map(str, shop.report))


def test_a_data_model_gives_entities_by_its_items() -> None:
    """Items tell the entities and their keys; commands of the AWS CLI tell what is asked and how."""
    imported = read_design(FILES / "data_model.json")
    note = entity(imported, "Note")
    assert note.key is not None

    assert [source.template and source.template.source for source in note.key.sources] == [
        "TICKET#{ticket}",
        "NOTE#{number}",
    ]
    assert need(imported, "2") == Need(
        "2",
        ("Note",),
        (Given("ticket"),),
        access=need(imported, "2").access,
        route=Route("query", None, (Given("PK"), Given("SK", "begins_with"))),
    )
    assert need(imported, "3").where == (Given("assignee"), Given("status"))
    assert [each.title for each in note.writes] == ["Somebody adds a note"]
    assert len(imported.samples) == 4


def changed(tmp_path: Path, name: str, change: Callable[[Any], None]) -> str:
    """Return the report on a file in which something was changed."""
    raw = json.loads((FILES / name).read_text())
    change(raw)
    (tmp_path / name).write_text(json.dumps(raw))
    return "\n".join(map(str, read_design(tmp_path / name).report))


def test_what_a_schema_says_beyond_a_design_is_told(tmp_path: Path) -> None:
    """An entity that is none, a second key in an index, filters that a need cannot say and limits are named."""

    def change(raw: Any) -> None:
        entities = raw["tables"][0]["entities"]
        entities["Broken"] = "x"
        order = entities["Order"]
        order["gsi_mappings"] = order["gsi_mappings"] * 2
        patterns = {each["name"]: each for each in order["access_patterns"]}
        patterns["orders_since"] |= {
            "limit": 10,
            "filter_expression": {"conditions": [{"field": "nope", "operator": ">", "param": "t"}]},
        }
        patterns["by_status"]["filter_expression"] = {
            "conditions": [{"field": "total", "operator": ">", "param": "t"}] * 2,
            "logical_operator": "OR",
        }

    report = changed(tmp_path, "schema.json", change)

    assert 'Broken: ignored "x": expected an entity' in report
    assert "Order.gsi_mappings: two mappings for index ByStatus; using the first" in report
    assert "Order.orders_since: the filter uses nope, which is not a field; not imported" in report
    assert "Order.by_status: a filter joined by OR has no equivalent in a design; not imported" in report
    assert ": limit is not imported" in report


def test_writes_keep_their_conditions_and_reads_their_direction(tmp_path: Path) -> None:
    """A condition of a write makes it conditional; a query from the end is descending."""

    def change(raw: Any) -> None:
        entities = raw["tables"][0]["entities"]
        patterns = {each["name"]: each for each in entities["Order"]["access_patterns"]}
        patterns["orders_since"]["scan_index_forward"] = False
        for each in entities["Customer"]["access_patterns"]:
            each["condition_expression"] = "attribute_not_exists(pk)"

    changed(tmp_path, "schema.json", change)
    imported = read_design(tmp_path / "schema.json")
    access = need(imported, "orders_since").access

    assert access is not None
    assert access.descending
    assert [each.conditional for each in entity(imported, "Customer").writes] == [True, False]


@pytest.mark.parametrize(
    ("options", "where", "note"),
    [
        ("--key-condition-expression 'PK = :p AND SK BETWEEN :a AND :b'", [("ticket", "="), ("number", "between")], ""),
        ("--key-condition-expression 'PK = :p' --filter-expression 'size(SK) > :n'", [("ticket", "=")], "a condition of --filter"),
        ("--key-condition-expression 'PK = :p' --filter-expression 'number IN (:a, :b)'", [("ticket", "="), ("number", "in")], ""),
        ("--key-condition-expression 'PK == :p'", [], "ignored --key-condition-expression"),
        ("--key-condition-expression 'PK = :p' --expression-attribute-values nonsense", [("ticket", "=")], "is not a JSON object"),
        ("--key-condition-expression 'PK = :p", [], "the command cannot be parsed"),
    ],
)  # fmt: skip
def test_commands_are_read_as_expressions_are(
    tmp_path: Path, options: str, where: list[tuple[str, str]], note: str
) -> None:
    """The grammar of DynamoDB's expressions tells what a command asks; what it cannot be is told."""

    def change(raw: Any) -> None:
        del raw["items"]["Desk"][:2]
        raw["access_patterns"][1]["implementation"] = f"aws dynamodb query {options}"

    report = changed(tmp_path, "data_model.json", change)
    asked = need(read_design(tmp_path / "data_model.json"), "2")

    assert [(given.field, given.operator) for given in asked.where] == where
    assert note in report
