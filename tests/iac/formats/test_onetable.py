"""OneTable schemas as designs."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tavola.iac.formats import FormatError, ImportResult, read_design, read_design_text, write_onetable
from tavola.model.document import Design, EntityDesign
from tests.design.builders import design, entity, gsi, key, number, table, text
from tests.design.seeds import service_desk, support_desk, terraform_review

FILE = Path(__file__).parent / "files/onetable.json"


@pytest.fixture(scope="module")
def shop() -> ImportResult:
    """A schema of two models and three indexes."""
    return read_design(FILE)


def _entity(imported: ImportResult, name: str) -> EntityDesign:
    return imported.design.tables[0].entity(name)


def _made(imported: ImportResult, name: str) -> dict[str, str]:
    found = _entity(imported, name)
    return {
        source.attribute: source.template.source if source.template is not None else f"{{{source.field}}}"
        for key in (found.key, *found.keys)
        if key is not None
        for source in key.sources
    }


def test_values_become_templates(shop: ImportResult) -> None:
    """A value is a template over other fields; a padded number stays padded, and `_type` is the model's name."""
    assert shop.format == "onetable"
    assert _made(shop, "Invoice") == {
        "pk": "account#{accountId}",
        "sk": "Invoice#{number:08}",
        "gs1pk": "buyer#{buyer}",
        "gs1sk": "invoice#{number:08}",
    }


def test_indexes_keep_kind_and_projection(shop: ImportResult) -> None:
    """An index without a hash of its own is local; keys, all and a list are three projections."""
    table = shop.design.tables[0]

    assert table.index("ls1").local
    assert table.index("ls1").hash == ("pk",)
    assert table.index("gs1").projection == "KEYS_ONLY"
    assert table.index("gs2").projection == ("status",)


def test_a_key_of_what_may_be_absent_is_sparse(shop: ImportResult) -> None:
    """OneTable does not write a value of which a field is missing, so the item is not in the index."""
    assert [(key.index, key.sparse) for key in _entity(shop, "Invoice").keys] == [("gs1", True)]
    assert [(key.index, key.sparse) for key in _entity(shop, "Account").keys] == [
        ("ls1", False),
        ("gs2", False),
    ]


def test_fields_keep_what_the_schema_says(shop: ImportResult) -> None:
    """Types, choices, what is needed, what is unique and what expires are taken over."""
    account = _entity(shop, "Account")

    assert account.field("status").choices == ("active", "closed")
    assert account.field("name").unique
    assert account.field("created").type == "datetime"
    assert not _entity(shop, "Invoice").field("buyer").required
    assert shop.design.tables[0].settings.ttl == "expires"
    assert shop.design.tables[0].settings.tag == "_type"


def test_what_is_left_out_is_told(shop: ImportResult) -> None:
    """Saved queries, inner schemas, and that it names no table and no access pattern, are in the report."""
    told = [str(note) for note in shop.report]

    assert any(note.startswith("queries: ") for note in told)
    assert any("models.Invoice.lines" in note for note in told)
    assert any("do not name their table" in note for note in told)
    assert any("have no access patterns" in note for note in told)


def _schema(**changes: Any) -> str:
    return json.dumps({**json.loads(FILE.read_text()), **changes})


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"indexes": {}}, "indexes.primary"),
        ({"indexes": {"primary": {"sort": "sk"}}}, "indexes.primary"),
        ({"indexes": []}, "indexes.primary"),
    ],
)
def test_a_schema_without_a_key_is_refused(changes: dict[str, Any], place: str) -> None:
    """Without the key of the table there is no design, and the place says so."""
    with pytest.raises(FormatError) as refused:
        read_design_text(_schema(**changes), "schema.json")
    assert refused.value.place == place


@pytest.mark.parametrize(
    "models",
    [
        {"A": 1},
        {"A": {"pk": 1}},
        {"A": {"pk": {"type": "widget", "value": "${"}}},
        {"A": {"pk": {"value": "a{b}#${c}${d}"}, "sk": {"value": "${_type}"}}},
        {"A": {"pk": {"value": "x#${id}"}, "sk": {"value": "y"}, "id": {"type": "object", "map": "data.id"}}},
        {
            "A": {
                "pk": {"value": "x#${n:5:_}"},
                "sk": {"type": "number"},
                "n": {"type": "number", "enum": [1]},
            }
        },
    ],
)
def test_odd_models_make_a_design_or_a_refusal(models: dict[str, Any]) -> None:
    """Whatever a model says, what comes is a design that can be written down, or a refusal with a sentence."""
    with suppress(FormatError):
        assert read_design_text(_schema(models=models), "schema.json").report


def test_a_schema_that_is_read_and_written_says_the_same(shop: ImportResult) -> None:
    """The design of a schema is written as one that reads as the same design; only what none can say is told."""
    written, notes = write_onetable(shop.design)

    assert list(written) == ["onetable.json"]
    assert read_design_text(json.dumps(written["onetable.json"]), "schema.json").design == shop.design
    assert [each.place for each in notes] == ["onetable"]


@pytest.mark.parametrize("module", [support_desk, service_desk, terraform_review])
def test_a_design_keeps_its_keys_in_a_schema(module: Any) -> None:
    """Whoever reads the schema finds every entity by its tag, with the keys that it has; what is written otherwise is told."""
    told: Design = next(each for each in vars(module).values() if isinstance(each, Design))

    written, notes = write_onetable(told)

    places = {note.place for note in notes}
    for was, schema in zip(told.tables, written.values(), strict=True):
        again = read_design_text(json.dumps(schema), "schema.json")
        assert [each.tag for each in again.design.tables[0].entities] == [each.tag for each in was.entities]
        for each in was.entities:
            found = next(one for one in again.design.tables[0].entities if one.tag == each.tag)
            before = _sources(each)
            for what, template in _sources(found).items():
                assert template == before[what] or f"{each.name}.{what[1]}" in places


def _sources(found: EntityDesign) -> dict[tuple[str | None, str], str]:
    return {
        (key.index, source.attribute): source.template.source if source.template else f"{{{source.field}}}"
        for key in (found.key, *found.keys)
        if key is not None
        for source in key.sources
    }


def test_what_a_schema_cannot_say_is_told() -> None:
    """A key of several attributes is left out, a shard is for the program to give, a number has the digits that Tavola writes."""
    both = gsi("both", ("region", "day"), native=True)
    spread = gsi("spread", "GSI1PK", "GSI1SK")
    odd = design(
        table(
            entity(
                "Order", text("order_id"), text("region"), text("day"), number("version"), pk="ORDER#{order_id}", sk="V#{version}",
                keys=[key(both), key(spread, "ORDERS#{__shard__:04}", "{day}", shards=4)],
            ),
            indexes=[both, spread], name="../odd",
        )
    )  # fmt: skip

    written, notes = write_onetable(odd)

    [(file, schema)] = written.items()
    model = schema["models"]["order"]
    assert "/" not in file
    assert set(schema["indexes"]) == {"primary", "spread"}
    assert model["sk"]["value"] == "V#${version:19:0}"
    assert "value" not in model["GSI1PK"]
    places = [each.place for each in notes]
    assert "../odd.both" in places
    assert "Order.GSI1PK" in places
