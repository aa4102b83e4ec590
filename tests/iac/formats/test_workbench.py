"""NoSQL Workbench models as designs, with the dirt that models have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tavola.design.lint import lint
from tavola.iac.formats import FormatError, ImportResult, read_design, write_workbench
from tavola.iac.formats.workbench import read_workbench
from tavola.model.document import EntityDesign, Scaling

FILES = Path(__file__).parent / "files"


def raw(name: str) -> Any:
    """Return a file's model."""
    return json.loads((FILES / name).read_text())


def entity(imported: ImportResult, name: str) -> EntityDesign:
    """Return an entity by its name."""
    return next(each for table in imported.design.tables for each in table.entities if each.name == name)


def texts(made: EntityDesign, index: str | None = None) -> list[str | None]:
    """Return what the attributes of a key are made by."""
    key = made.key_on(index)
    assert key is not None
    return [source.template.source if source.template else source.field for source in key.sources]


def told(imported: ImportResult) -> str:
    """Return the report as text."""
    return "\n".join(map(str, imported.report))


@pytest.fixture(scope="module")
def players() -> ImportResult:
    """A model of version 3.0 with facets."""
    return read_design(FILES / "players.json")


def test_facets_are_entities_with_keys_by_alias_or_by_samples(players: ImportResult) -> None:
    """An alias that holds a template is one; where it is only `PK`, the sample keys tell."""
    assert texts(entity(players, "Profile")) == ["PLAYER#{playerId}", "#METADATA#{playerId}"]
    assert texts(entity(players, "Carried_item")) == ["PLAYER#{player_id}", "ITEM#{itemId}"]
    assert texts(entity(players, "Carried_item"), "Inverted") == ["ITEM#{itemId}", "PLAYER#{player_id}"]
    assert entity(players, "Profile").key_on("Inverted") is None  # it has half of the key
    assert entity(players, "Carried_item").tag == "Carried item"


def test_a_table_has_its_capacity_and_projection(players: ImportResult) -> None:
    """Provisioned units scale as the model says; the table's keys are taken out of an INCLUDE list, and told."""
    (table,) = players.design.tables

    assert (table.settings.read_units, table.settings.scaling) == (5, Scaling(10, 10))
    assert table.indexes[0].projection == ("itemId",)
    assert table.foreign
    assert "ignored SK, PK: key attributes" in told(players)


def test_dirt_is_read_and_told(players: ImportResult) -> None:
    """A bare number is a number; a map wrapped twice is read once; what is not understood is named."""
    item = players.samples[0].item

    assert item["level"] == {"N": "12"}
    assert item["stats"] == {"M": {"HP": {"N": "50"}}}
    assert "wrapped in two type descriptors" in told(players)
    assert "SampleDataFormats is not imported" in told(players)


def test_fields_that_some_samples_lack_may_be_absent(players: ImportResult) -> None:
    """A facet's samples say which of its attributes are always there."""
    absent = [field.name for field in entity(players, "Profile").fields if field.nullable]

    assert absent == ["stats", "friends", "GSI1PK"]


def test_an_alias_names_a_field_and_samples_correct_it() -> None:
    """A bare alias is the name of the key's field, which a sort key may repeat; a misspelt one gives way to the samples."""
    imported = read_design(FILES / "quests.json")
    hero, quests, options = imported.design.tables[0].entities

    assert texts(hero) == ["heroID", "#HERO#{heroID}"]
    assert (hero.fields[-1].name, hero.fields[-1].attribute) == ("heroID", "PK")
    assert texts(quests) == ["heroID", "QUEST#{QuestID}"]
    assert texts(options) == ["HERO#{heroID}", "SETTINGS"]
    assert "the sample items do not match the alias '#HERRO#heroID'" in told(imported)


def test_an_old_model_is_told_apart_by_its_type() -> None:
    """Version 1.0 has no service and no facets: `type` gives the entities, and dates are free text."""
    imported = read_design(FILES / "old_library.json")
    settings = imported.design.tables[0].settings

    assert (settings.tag, settings.read_units) == ("type", None)
    assert texts(entity(imported, "loan")) == ["book#{isbn}", "loan#{loan_id}"]
    assert texts(entity(imported, "book"), "by-shelf") == ["shelf"]
    assert "BillingMode is missing; using PAY_PER_REQUEST" in told(imported)


def test_samples_that_cannot_be_are_told() -> None:
    """An item without a key, a second of one key, and values that are none are left out, each with its place."""
    imported = read_design(FILES / "old_library.json")

    assert len(imported.samples) == 5
    for place in ("TableData[4]", "TableData[5]", "TableData[6].isbn", "TableData[6].title"):
        assert f"library.{place}" in told(imported)


def test_a_table_of_one_kind_is_one_entity() -> None:
    """Without facets and without a type there is one entity for all; a table of which nothing is said has none."""
    readings, empty = read_design(FILES / "generic.json").design.tables

    assert [each.name for each in readings.entities] == ["readings"]
    assert texts(readings.entities[0]) == ["device", "at"]
    assert empty.entities == ()


def test_other_services_are_refused() -> None:
    """A model of Keyspaces is none of DynamoDB."""
    with pytest.raises(
        FormatError, match="the model is for Amazon Keyspaces; Tavola reads models for Amazon DynamoDB"
    ):
        read_design(FILES / "keyspaces.json")


def test_a_model_schema_gives_templates(tmp_path: Path) -> None:
    """Where another modeller wrote `${attribute}` keys beside the model, they are the templates."""
    model = raw("old_library.json")
    table = model["DataModel"][0]
    table["ModelSchema"] = {
        "models": {
            "Book": {"pk": {"type": "String", "value": "book#${isbn}"}, "sk": {"value": "book#"}, "isbn": {}}
        }
    }
    table["TableData"] = []
    (tmp_path / "m.json").write_text(json.dumps(model))

    assert texts(entity(read_design(tmp_path / "m.json"), "Book")) == ["book#{isbn}", "book#"]


@pytest.mark.parametrize("name", ["players.json", "old_library.json", "generic.json", "quests.json"])
def test_a_model_written_back_is_what_it_was(name: str, tmp_path: Path) -> None:
    """Onto its own file nothing changes, to the last key; without it the same keys are read again, guesses told."""
    imported = read_design(FILES / name)
    onto, _ = write_workbench(imported.design, onto=imported.source)
    anew, report = write_workbench(imported.design, imported.samples)
    path = tmp_path / name
    path.write_text(json.dumps(anew))
    again = read_design(path)

    assert onto == raw(name)
    assert [table.key_types for table in again.design.tables] == [
        table.key_types for table in imported.design.tables
    ]
    assert [(each.name, texts(each)) for table in again.design.tables for each in table.entities] == [
        (each.name, texts(each)) for table in imported.design.tables for each in table.entities
    ]
    assert {str(note).partition(":")[0] for note in report} >= {
        each.name
        for table in imported.design.tables
        for each in table.entities
        if any(source.guessed for key in (each.key, *each.keys) if key for source in key.sources)
    }


def test_what_changed_is_written_onto_the_rest(players: ImportResult, tmp_path: Path) -> None:
    """A new facet comes beside the old ones, which stay as they were with their samples; metadata stays."""
    from dataclasses import replace

    (table,) = players.design.tables
    design = replace(players.design, tables=(replace(table, entities=table.entities[:1]),))

    model, _ = write_workbench(design, onto=players.source)
    (made,) = model["DataModel"]

    assert model["ModelMetadata"] == raw("players.json")["ModelMetadata"]
    assert made["SampleDataFormats"] == raw("players.json")["DataModel"][0]["SampleDataFormats"]
    assert made["TableFacets"] == raw("players.json")["DataModel"][0]["TableFacets"][:1]


def test_a_model_is_written_as_the_workbench_has_it() -> None:
    """Version 3.0, the same members, keys never among the other attributes, and `DataAccess` verbatim."""
    imported = read_design(FILES / "players.json")
    model, _ = write_workbench(imported.design, imported.samples, date="Nov 16, 2026, 10:00 AM")
    (table,) = model["DataModel"]

    assert list(model) == ["ModelName", "ModelMetadata", "DataModel"]
    assert model["ModelMetadata"]["Version"] == "3.0"
    assert table["DataAccess"] == {"MySql": {}}
    assert {each["AttributeName"] for each in table["NonKeyAttributes"]} >= {"GSI1PK", "GSI1SK", "email"}
    assert not {"PK", "SK"} & {each["AttributeName"] for each in table["NonKeyAttributes"]}
    assert table["ProvisionedCapacitySettings"]["AutoScalingRead"]["ScalingPolicyConfiguration"] == {
        "TargetValue": 70
    }


def test_what_a_model_cannot_hold_is_told() -> None:
    """TTL, stream, recovery, tags, local indexes, keys of several attributes, writes and needs are named."""
    shop, schema = (read_design(FILES / name) for name in ("shop.yaml", "schema.json"))
    lost = "\n".join(str(each) for found in (shop, schema) for each in write_workbench(found.design)[1])

    for word in (
        "TTL",
        "the stream",
        "tags",
        "KMS key",
        "deletion protection",
        "table class",
        "stream consumers",
    ):
        assert word in lost
    assert "by-time: a Workbench model cannot hold local indexes" in lost
    assert "by-status: a Workbench model cannot hold multi-attribute keys" in lost
    assert "needs" in lost
    assert "policies" in lost
    assert "Customer: a Workbench model cannot hold writes" in lost


def test_samples_keep_one_type_for_a_name() -> None:
    """The Workbench has one type for a name and no null: a number becomes text where it must, the rest is told."""
    imported = read_design(FILES / "generic.json")
    (sample,) = imported.samples
    from dataclasses import replace

    odd = replace(sample, item={**sample.item, "celsius": {"S": "hot"}, "ok": {"NULL": True}})
    model, report = write_workbench(imported.design, [odd])

    assert model["DataModel"][0]["TableData"] == [{"device": {"S": "d-1"}, "at": {"N": "1"}}]
    assert "has type S in an item and N elsewhere" in "\n".join(map(str, report))


ALIASED = {"PartitionKeyAlias": "User#userId", "SortKeyAlias": "Order#orderId"}


def aliased(*facets: dict[str, Any]) -> dict[str, Any]:
    """Return a model with facets that have aliases in words."""
    table = {
        "TableName": "App",
        "KeyAttributes": {
            "PartitionKey": {"AttributeName": "PK", "AttributeType": "S"},
            "SortKey": {"AttributeName": "SK", "AttributeType": "S"},
        },
        "NonKeyAttributes": [{"AttributeName": name, "AttributeType": "S"} for name in ("userId", "note")],
        "TableFacets": [
            {"FacetName": f"F{at}", "NonKeyAttributes": ["userId"], **facet}
            for at, facet in enumerate(facets)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {"ModelName": "m", "ModelMetadata": {"Version": "3.0"}, "DataModel": [table]}


def test_an_alias_without_samples_is_a_guess_and_told(tmp_path: Path) -> None:
    """A word is itself, an attribute or what stands after a word is a field; the design marks it, the report says it."""
    model = aliased({"KeyAttributeAlias": ALIASED})
    model["DataModel"][0]["TableFacets"][0]["KeyAttributeAlias"]["SortKeyAlias"] = "Order#orderId"
    (tmp_path / "m.json").write_text(json.dumps(model))
    imported = read_design(tmp_path / "m.json")
    made = entity(imported, "F0")
    assert made.key is not None

    assert texts(made) == ["User#{userId}", "Order#{orderId}"]
    assert all(source.guessed for source in made.key.sources)
    assert "F0.PK: guessed User#{userId} from the alias" in told(imported)


def test_a_template_in_braces_is_no_guess(players: ImportResult) -> None:
    """What a model says in so many words is not marked; what samples show is."""
    item = entity(players, "Carried_item")
    assert item.key is not None
    written, _ = write_workbench(players.design, players.samples)
    again = read_workbench(json.loads(json.dumps(written))).design.tables[0].entities[1]
    assert again.key is not None

    assert [source.guessed for source in item.key.sources] == [True, True]
    assert [source.guessed for source in again.key.sources] == [False, False]


def test_a_guess_alone_is_no_error_of_lint() -> None:
    """What is wrong with a key that nobody wrote is advice, and says that the key is a guess."""
    item = {"PK": "A#1", "SK": "B#x#y", "one": "x", "two": "y", "n": "1"}
    model = aliased()
    table = model["DataModel"][0]
    table["NonKeyAttributes"] = [
        {"AttributeName": name, "AttributeType": "S"} for name in ("one", "two", "n")
    ]
    other = {name: text.translate(str.maketrans("1xy", "2zv")) for name, text in item.items()}
    table["TableData"] = [{name: {"S": text} for name, text in each.items()} for each in (item, other)]
    design = read_workbench(model).design
    (found,) = lint(design, select=["delimiter-collision"]).findings

    assert (found.severity, str(found.place)) == ("advice", "App.Key")
    assert "this key was inferred from sample items" in found.message


@pytest.mark.parametrize(
    ("item", "note"),
    [
        ({"SK": {"N": "1"}}, "item not imported: its key has SK of type N instead of S"),
        ({"PK": {"S": ""}}, "item not imported: its key has an empty PK"),
        ({"g": {"S": ""}}, ".g: attribute not imported: its index key has an empty g"),
        ({"g": {"N": "1"}}, ".g: attribute not imported: its index key has g of type N instead of S"),
        ({"b": {"B": "not base64!"}}, '.b: "not base64!" is not base64; attribute not imported'),
        ({"b": {"BS": ["?"]}}, '.b: "?" is not base64; attribute not imported'),
    ],
)
def test_a_sample_that_no_table_holds_is_told(item: dict[str, Any], note: str) -> None:
    """A key of another type or empty, and bytes that are none, are left out with their place."""
    model = aliased()
    table = model["DataModel"][0]
    table["GlobalSecondaryIndexes"] = [
        {
            "IndexName": "ggg",
            "KeyAttributes": {"PartitionKey": {"AttributeName": "g", "AttributeType": "S"}},
            "Projection": {"ProjectionType": "ALL"},
        }
    ]
    table["TableData"] = [{"PK": {"S": "a"}, "SK": {"S": "b"}, **item}]

    assert f"App.TableData[0]{'' if note.startswith('.') else ': '}{note}" in told(read_workbench(model))


def test_equal_numbers_are_one(tmp_path: Path) -> None:
    """A set has 1 and 1.0 once, and a key of 1.0 is that of 1."""
    model = aliased()
    table = model["DataModel"][0]
    table["KeyAttributes"]["SortKey"]["AttributeType"] = "N"
    table["TableData"] = [
        {"PK": {"S": "a"}, "SK": {"N": "1"}, "s": {"NS": ["1", "1.0", "2"]}},
        {"PK": {"S": "a"}, "SK": {"N": "1.0"}},
    ]
    imported = read_workbench(model)

    assert [sample.item["s"] for sample in imported.samples] == [{"NS": ["1", "2"]}]
    assert "App.TableData[1]: item not imported: an earlier item has the same key" in told(imported)
