"""Tenancy: which writes a tenant may be given, so that nothing stands under another's name that it did not write.

IAM sees the partition key of a write, and of its other attributes the names alone. A tenant that may write the key attribute of an index may
put an item under another's name there, whatever its own partition. So what writes such an attribute is withheld, and whatever else a
tenant writes is held to attributes that are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tavola.iac.leading_keys import tenant_fields, text_after_tenant
from tavola.iac.required_actions import RequiredAction, updatable_attributes
from tavola.model import WritePattern
from tavola.model.document import Design, EntityDesign, TableDesign

_WRITES = ("PutItem", "UpdateItem", "BatchWriteItem")


def tenant_index_attributes(table: TableDesign) -> dict[str, str]:
    """Return the attributes that say in a global index whose an item is, each with its index."""
    found: dict[str, str] = {}
    indexes = {index.name for index in table.indexes if not index.local}
    for entity in table.entities:
        tenants = set(tenant_fields(entity))
        for key in entity.keys:
            if key.index in indexes:
                found |= {
                    source.attribute: str(key.index)
                    for source in key.hash
                    if tenants.intersection(source.fields)
                }
    return found


def restrict_to_tenant(
    table: TableDesign, entity: EntityDesign, write: WritePattern, asked: RequiredAction
) -> RequiredAction:
    """Return what a write asks as a tenant may: of attributes that are no guarded ones, or withheld, with the reason."""
    guarded = tenant_index_attributes(table)
    if asked.leading_tenant is None or asked.action not in _WRITES or not guarded:
        return asked
    if asked.action == "BatchWriteItem":
        return _withhold(asked, "IAM cannot hold a batch to attributes", guarded.values())
    names = updatable_attributes(table, entity, write.rewrites)
    meant = [name for name in names if name in guarded]
    if asked.action == "UpdateItem":
        meant = [name for name in meant if name in _written_attributes(entity, write)]
    if meant:
        why = f"IAM cannot see whose {' and '.join(meant)} a write says"
        return _withhold(asked, why, [guarded[name] for name in meant])
    return replace(asked, tenant_attributes=tuple(name for name in names if name not in guarded))


def list_unbounded_keys(design: Design) -> Iterator[str]:
    """Give the keys that name a tenant and do not end its name, so that no policy can tell it from a longer one."""
    for table in design.tables:
        for entity in table.entities:
            tenants = tenant_fields(entity)
            sources = [source for key in (entity.key, *entity.keys) if key is not None for source in key.hash]
            templates = {
                source.template.source: source.template for source in sources if source.template is not None
            }
            for text, template in templates.items():
                after = text_after_tenant(template, tenants)
                if after:
                    yield (
                        f"{entity.name} by {text!r} is left out: {after!r} follows the tenant there, and another's name may go on with "
                        f"it; put the delimiter {template.delimiter!r} after it"
                    )


def _withhold(asked: RequiredAction, why: str, indexes: Iterable[str]) -> RequiredAction:
    names = " and ".join(dict.fromkeys(indexes))
    return replace(
        asked,
        leading_tenant=None,
        withheld_reason=f"{why}, and it could put items under another's name in {names}",
    )


def _written_attributes(entity: EntityDesign, write: WritePattern) -> set[str]:
    """Return the attributes that an update writes: of fields, of every key that hangs on them, whole, and those that it names."""
    fields = {*write.changes, *write.adds}
    found = {field.attribute for field in entity.fields if field.name in fields} | set(write.rewrites)
    for key in entity.keys:
        if fields.intersection((*key.fields, *(member.field for member in key.members))):
            found |= {source.attribute for source in key.sources}
    return found
