"""Tenancy: which writes a tenant may be given, so that nothing stands under another's name that it did not write.

IAM sees the partition key of a write, and of its other attributes the names alone. A tenant that may write the key attribute of an index may
put an item under another's name there, whatever its own partition. So what writes such an attribute is withheld, and whatever else a
tenant writes is held to attributes that are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tavola.iac.asked import Asked, writable
from tavola.iac.leading import tenants_of, unbounded
from tavola.model import WritePattern
from tavola.model.document import Design, EntityDesign, TableDesign

_WRITES = ("PutItem", "UpdateItem", "BatchWriteItem")


def guarded_of(table: TableDesign) -> dict[str, str]:
    """Return the attributes that say in a global index whose an item is, each with its index."""
    found: dict[str, str] = {}
    indexes = {index.name for index in table.indexes if not index.local}
    for entity in table.entities:
        tenants = set(tenants_of(entity))
        for key in entity.keys:
            if key.index in indexes:
                found |= {
                    source.attribute: str(key.index)
                    for source in key.hash
                    if tenants.intersection(source.fields)
                }
    return found


def held(table: TableDesign, entity: EntityDesign, write: WritePattern, asked: Asked) -> Asked:
    """Return what a write asks as a tenant may: of attributes that are no guarded ones, or withheld, with the reason."""
    guarded = guarded_of(table)
    if asked.tenant is None or asked.action not in _WRITES or not guarded:
        return asked
    if asked.action == "BatchWriteItem":
        return _withheld(asked, "IAM cannot hold a batch to attributes", guarded.values())
    names = writable(table, entity, write.rewrites)
    meant = [name for name in names if name in guarded]
    if asked.action == "UpdateItem":
        meant = [name for name in meant if name in _touched(entity, write)]
    if meant:
        why = f"IAM cannot see whose {' and '.join(meant)} a write says"
        return _withheld(asked, why, [guarded[name] for name in meant])
    return replace(asked, tenant_attributes=tuple(name for name in names if name not in guarded))


def left_out(design: Design) -> Iterator[str]:
    """Give the keys that name a tenant and do not end its name, so that no policy can tell it from a longer one."""
    for table in design.tables:
        for entity in table.entities:
            tenants = tenants_of(entity)
            sources = [source for key in (entity.key, *entity.keys) if key is not None for source in key.hash]
            templates = {
                source.template.source: source.template for source in sources if source.template is not None
            }
            for text, template in templates.items():
                after = unbounded(template, tenants)
                if after:
                    yield (
                        f"{entity.name} by {text!r} is left out: {after!r} follows the tenant there, and another's name may go on with "
                        f"it; put the delimiter {template.delimiter!r} after it"
                    )


def _withheld(asked: Asked, why: str, indexes: Iterable[str]) -> Asked:
    names = " and ".join(dict.fromkeys(indexes))
    return replace(
        asked, tenant=None, withheld=f"{why}, and it could put items under another's name in {names}"
    )


def _touched(entity: EntityDesign, write: WritePattern) -> set[str]:
    """Return the attributes that an update writes: of fields, of every key that hangs on them, whole, and those that it names."""
    fields = {*write.changes, *write.adds}
    found = {field.attribute for field in entity.fields if field.name in fields} | set(write.rewrites)
    for key in entity.keys:
        if fields.intersection((*key.fields, *(member.field for member in key.members))):
            found |= {source.attribute for source in key.sources}
    return found
