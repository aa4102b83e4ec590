"""Index keys in tables that other code writes: which puts set an index key, and which omit it."""

from __future__ import annotations

from tavola.model.document import EntityDesign, KeyDesign, TableDesign, WritePattern


def templated_attributes(key: KeyDesign) -> frozenset[str]:
    """Return the attributes of an index key that a writer has to render from a template."""
    return frozenset(source.attribute for source in key.sources if source.template is not None)


def puts_writing_key(entity: EntityDesign, key: KeyDesign) -> tuple[WritePattern, ...]:
    """Return the puts that declare to write the whole index key; empty if no put declares it."""
    names = templated_attributes(key)
    puts = (write for write in entity.writes if write.kind == "put")
    return tuple(write for write in puts if names and names <= set(write.rewrites))


def omits_index_key(table: TableDesign, entity: EntityDesign, key: KeyDesign, write: WritePattern) -> bool:
    """Return whether a put omits an index key that other puts of the entity write."""
    if not table.foreign or key.index is None or write.kind != "put" or key.sparse:
        return False
    writers = puts_writing_key(entity, key)
    return bool(writers) and all(write is not each for each in writers)
