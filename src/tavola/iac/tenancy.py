"""Decide which writes a tenant's policy may allow, so that no tenant can place items under another tenant's name.

IAM sees the partition key of a write, and only the names of its other attributes. A tenant that may write the key attribute of an index
could place an item under another tenant there. So writes of such attributes are withheld, and all other writes are restricted to attributes that
are not index keys naming a tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tavola.iac.required_actions import RequiredAction, tenant_fields, text_after_tenant, updatable_attributes
from tavola.model import WritePattern
from tavola.model.document import Design, EntityDesign, TableDesign

_WRITES = ("PutItem", "UpdateItem", "BatchWriteItem")


def tenant_index_attributes(table: TableDesign) -> dict[str, str]:
    """Return the attributes that name the tenant in a global index, each with its index."""
    attributes: dict[str, str] = {}
    indexes = {index.name for index in table.indexes if not index.local}
    for entity in table.entities:
        tenants = set(tenant_fields(entity))
        for key in entity.keys:
            if key.index in indexes:
                attributes |= {
                    source.attribute: str(key.index)
                    for source in key.hash
                    if tenants.intersection(source.fields)
                }
    return attributes


def restrict_to_tenant(
    table: TableDesign, entity: EntityDesign, write: WritePattern, action: RequiredAction
) -> RequiredAction:
    """Return a write action as a tenant may have it: without tenant index attributes, or withheld with the reason."""
    guarded = tenant_index_attributes(table)
    if action.leading_tenant is None or action.action not in _WRITES or not guarded:
        return action
    if action.action == "BatchWriteItem":
        return _withhold(action, "IAM cannot hold a batch to attributes", guarded.values())
    names = updatable_attributes(table, entity, write.rewrites)
    written = [name for name in names if name in guarded]
    if action.action == "UpdateItem":
        written = [name for name in written if name in _written_attributes(entity, write)]
    if written:
        reason = f"IAM cannot see whose {' and '.join(written)} a write says"
        return _withhold(action, reason, [guarded[name] for name in written])
    return replace(action, tenant_attributes=tuple(name for name in names if name not in guarded))


def list_unbounded_keys(design: Design) -> Iterator[str]:
    """Yield the keys that contain a tenant without ending its name, so that no policy can tell it from a longer name."""
    for table in design.tables:
        for entity in table.entities:
            tenants = tenant_fields(entity)
            sources = [source for key in (entity.key, *entity.keys) if key is not None for source in key.hash]
            templates = {
                source.template.source: source.template for source in sources if source.template is not None
            }
            for text, template in templates.items():
                following = text_after_tenant(template, tenants)
                if following:
                    yield (
                        f"{entity.name} by {text!r} is left out: {following!r} follows the tenant there, and another's name may go on with "
                        f"it; put the delimiter {template.delimiter!r} after it"
                    )


def _withhold(action: RequiredAction, reason: str, indexes: Iterable[str]) -> RequiredAction:
    names = " and ".join(dict.fromkeys(indexes))
    return replace(
        action,
        leading_tenant=None,
        withheld_reason=f"{reason}, and it could put items under another's name in {names}",
    )


def _written_attributes(entity: EntityDesign, write: WritePattern) -> set[str]:
    """Return the attributes that an update writes: its fields, every key that depends on them, and those it names."""
    fields = {*write.changes, *write.adds}
    attributes = {field.attribute for field in entity.fields if field.name in fields} | set(write.rewrites)
    for key in entity.keys:
        if fields.intersection((*key.fields, *(member.field for member in key.members))):
            attributes |= {source.attribute for source in key.sources}
    return attributes
