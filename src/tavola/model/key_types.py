"""Key types: which of DynamoDB's types each key attribute of a table has."""

from __future__ import annotations

from typing import Literal, cast

from tavola.model.entity import entities_of, shape_of
from tavola.model.key_sources import KEY_TAGS
from tavola.model.tables import Table

KeyTag = Literal["B", "N", "S"]


def key_types(table: type[Table]) -> dict[str, KeyTag]:
    """Return the type of each key attribute, in the order of table and indexes.

    As the entities' keys write it; else as a field does, for an index that no pattern is on; else text.
    """
    written: dict[str, str] = {}
    fields: dict[str, str] = {}
    for entity in entities_of(table):
        shape = shape_of(entity)
        assert shape.key is not None, "what lives in a table has a key"
        for key in (shape.key.key, *shape.keys):
            written |= {source.attribute: source.tag for source in key.sources}
        for found in shape.fields.values():
            if len(found.converter.tags) == 1 and found.converter.tags <= KEY_TAGS:
                fields[found.attribute] = next(iter(found.converter.tags))
    names = list(table.settings.key_names)
    names += [name for index in table.indexes for name in index.attributes]
    return {name: cast(KeyTag, written.get(name) or fields.get(name, "S")) for name in names}
