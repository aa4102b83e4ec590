"""Carrying: which puts of other code write the key of an index, and which leave it out."""

from __future__ import annotations

from tavola.model.document import EntityDesign, KeyDesign, TableDesign, WritePattern


def templated_attributes(key: KeyDesign) -> frozenset[str]:
    """Return the attributes of an index key that somebody has to write, as no field is one by itself."""
    return frozenset(source.attribute for source in key.sources if source.template is not None)


def puts_writing_key(entity: EntityDesign, key: KeyDesign) -> tuple[WritePattern, ...]:
    """Return the puts that say they write all of an index key; none of them: nobody says how it is written."""
    names = templated_attributes(key)
    puts = (write for write in entity.writes if write.kind == "put")
    return tuple(write for write in puts if names and names <= set(write.rewrites))


def omits_index_key(table: TableDesign, entity: EntityDesign, key: KeyDesign, write: WritePattern) -> bool:
    """Tell whether a put leaves out an index key that other puts of the entity write."""
    if not table.foreign or key.index is None or write.kind != "put" or key.sparse:
        return False
    having = puts_writing_key(entity, key)
    return bool(having) and all(write is not each for each in having)
