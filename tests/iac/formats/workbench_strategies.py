"""Strategies: designs that a Workbench model can hold, and models as somebody might have them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tavola.iac.formats.entity_builder import FIELD_TYPES
from tavola.keys import Template
from tavola.model.document import (
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    PatternDesign,
    Scaling,
    SourceDesign,
    TableDesign,
    TableSettings,
)

KEY_TAGS = st.sampled_from(["S", "N", "B"])
ATTRIBUTES = ["alpha", "beta", "gamma", "delta", "status", "at", "total", "items"]


def _field(name: str, tag: str) -> FieldDesign:
    return FieldDesign(name, name, FIELD_TYPES[tag], (tag,), key_kind="text" if tag in ("S", "N") else None)


@st.composite
def _entities(
    draw: st.DrawFn,
    name: str,
    keys: dict[str, Any],
    types: dict[str, str],
    names: tuple[str, ...],
    indexes: tuple[IndexDesign, ...],
) -> EntityDesign:
    fields = [
        _field(each, types[each])
        for each in draw(st.lists(st.sampled_from(sorted(types)), min_size=1, unique=True))
    ]
    texts = [each.name for each in fields if each.key_kind]
    sources: dict[str, SourceDesign] = {}
    plain: list[FieldDesign] = []
    for key in names:
        form = draw(st.integers(0, 2)) if keys[key] == "S" else 0
        if form == 1 and texts:
            chosen = draw(st.lists(st.sampled_from(texts), min_size=1, max_size=2, unique=True))
            literal = draw(st.sampled_from(["", "A#", "user#", "{{x}}#", "#META#"]))
            text = literal + "#".join(f"{{{each}}}" for each in chosen)
            sources[key] = SourceDesign(key, keys[key], template=Template.parse(text))
        elif form == 2:
            constant = draw(st.sampled_from(["META", "meta", "a#b", "x y"]))
            sources[key] = SourceDesign(key, keys[key], template=Template.parse(constant))
        else:
            plain.append(_field(key, keys[key]))
            sources[key] = SourceDesign(key, keys[key], field=key)
    has = {each.attribute for each in fields} | set(names)
    for attribute in has - set(names):
        if attribute in keys:
            sources[attribute] = SourceDesign(attribute, keys[attribute], field=attribute)
    key_designs = [
        KeyDesign(
            index.name,
            tuple(sources[each] for each in index.hash),
            tuple(sources[each] for each in index.range),
        )
        for index in indexes
        if set(index.attributes) <= has
    ]
    own = KeyDesign(None, (sources[names[0]],), tuple(sources[each] for each in names[1:]))
    partition = tuple(dict.fromkeys(own.hash[0].fields))
    sorts = tuple(
        dict.fromkeys(each for source in own.range for each in source.fields if each not in partition)
    )
    primary = PatternDesign("Key", None, partition, sorts, name)
    return EntityDesign(name, name, (*fields, *plain), own, tuple(key_designs), primary)


@st.composite
def _tables(draw: st.DrawFn, at: int) -> TableDesign:
    name = f"table_{at}"
    names = ("PK", "SK") if draw(st.booleans()) else ("PK",)
    types = {each: draw(st.sampled_from(sorted(FIELD_TYPES))) for each in ATTRIBUTES}
    keys: dict[str, Any] = {each: draw(KEY_TAGS) for each in names}
    indexes: list[IndexDesign] = []
    for number in range(draw(st.integers(0, 2))):
        able = [each for each in ATTRIBUTES if types[each] in ("S", "N", "B")]
        chosen = draw(st.lists(st.sampled_from([*able, *names]), min_size=1, max_size=2, unique=True))
        keys |= {each: types[each] for each in chosen if each not in names}
        projection: Any = draw(st.sampled_from(["ALL", "KEYS_ONLY", ("omega",), ("omega", "psi")]))
        label = f"index_{number}"
        indexes.append(IndexDesign(label, label, False, tuple(chosen[:1]), tuple(chosen[1:]), projection))
    units = draw(st.none() | st.integers(1, 100))
    scaling = draw(
        st.none() | st.builds(Scaling, st.integers(10, 20), st.integers(10, 20), target=st.integers(20, 90))
    )
    settings = TableSettings(
        name, names[0], names[1] if len(names) > 1 else None, None, None, "#", None, False, 35, None, "STANDARD",
        False, units, None if units is None else units + 1, {}, (), None if units is None else scaling,
    )  # fmt: skip
    entities = tuple(
        draw(_entities(f"Entity{at}{number}", keys, types, names, tuple(indexes)))
        for number in range(draw(st.integers(0, 3)))
    )
    return TableDesign(name, settings, keys, tuple(indexes), entities, foreign=True)


@st.composite
def held_designs(draw: st.DrawFn) -> Design:
    """Designs that a model has a place for."""
    return Design(tuple(draw(_tables(at)) for at in range(draw(st.integers(1, 2)))))


NAMES = st.sampled_from(["PK", "SK", "id", "Type", "email", "Order ID", "n", "GSI1PK", "a{b}", "x:y", "é"])
VALUES = st.one_of(
    st.builds(
        lambda text: {"S": text}, st.sampled_from(["", "USER#1", "USER#2", "ORDER#1#a", "x", "a|b", "é"])
    ),
    st.builds(lambda number: {"N": number}, st.sampled_from(["1", "2.50", 3, 4.5])),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"M": {"inner": {"S": "x"}}}),
    st.just({"M": {"M": {"HP": {"N": "50"}}}}),
    st.just({"L": [{"S": "a"}]}),
    st.just({"SS": ["a", "b"]}),
    st.just({"NULL": True}),
    st.just({"Q": 1}),
    st.just("bare"),
)
ITEMS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), max_size=4)
ATTRIBUTE = st.fixed_dictionaries(
    {
        "AttributeName": NAMES,
        "AttributeType": st.sampled_from(["S", "N", "B", "BOOL", "M", "L", "SS", "odd"]),
    },
    optional={"Extra": st.just(1)},
)
KEY = st.fixed_dictionaries(
    {
        "PartitionKey": st.builds(
            lambda name, kind, more: {"AttributeName": name, "AttributeType": kind, **more},
            NAMES,
            KEY_TAGS,
            st.sampled_from([{}, {"Hint": 1}]),
        )
    },
    optional={"SortKey": st.builds(lambda kind: {"AttributeName": "sort", "AttributeType": kind}, KEY_TAGS)},
)
PROJECTION = st.one_of(
    st.just({"ProjectionType": "ALL"}),
    st.just({"ProjectionType": "KEYS_ONLY", "Odd": 1}),
    st.builds(
        lambda names: {"ProjectionType": "INCLUDE", "NonKeyAttributes": names}, st.lists(NAMES, max_size=3)
    ),
)
ALIAS = st.sampled_from(
    ["PK", "SK", "USER#id", "#META#email", "Player ID", "USER#{id}", "<id>", "{", "id", ""]
)
FACET = st.fixed_dictionaries(
    {
        "KeyAttributeAlias": st.fixed_dictionaries(
            {"PartitionKeyAlias": ALIAS}, optional={"SortKeyAlias": ALIAS}
        )
    },
    optional={
        "NonKeyAttributes": st.lists(NAMES, max_size=4),
        "TableData": ITEMS,
        "DataAccess": st.just({"MySql": {}}),
    },
)
TABLE = st.fixed_dictionaries(
    {
        "KeyAttributes": KEY,
        "NonKeyAttributes": st.lists(ATTRIBUTE, max_size=6),
    },
    optional={
        "TableData": ITEMS,
        "BillingMode": st.sampled_from(["PAY_PER_REQUEST", "PROVISIONED"]),
        "ProvisionedCapacitySettings": st.just(
            {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}}
        ),
        "SampleDataFormats": st.just({"id": ["dataTypes", "String"]}),
        "TableFacets": st.lists(FACET, max_size=3),
        "GlobalSecondaryIndexes": st.lists(
            st.fixed_dictionaries({"KeyAttributes": KEY, "Projection": PROJECTION}), max_size=2
        ),
    },
)


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """Models of the Workbench, with dirt in them."""
    tables: list[dict[str, Any]] = draw(st.lists(TABLE, min_size=1, max_size=2))
    for at, table in enumerate(tables):
        table["TableName"] = f"table-{at}"
        for number, index in enumerate(table.get("GlobalSecondaryIndexes", ())):
            index["IndexName"] = f"index-{number}"
        for number, facet in enumerate(table.get("TableFacets", ())):
            facet["FacetName"] = f"Facet {at}{number}"
    return {
        "ModelName": "m",
        "ModelMetadata": {"Version": draw(st.sampled_from(["1.0", "3.0", "9"])), "Author": ""},
        "DataModel": tables,
    }
