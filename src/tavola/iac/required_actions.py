"""The DynamoDB actions that an access pattern needs, as IAM sees them, and the partition keys they are restricted to.

IAM conditions can restrict the partition key of a request (`dynamodb:LeadingKeys`) by patterns with `*`. The patterns here come from key templates: text
stays, a tenant's field becomes the caller's tag, any other field becomes `*`.

A tenant's policy needs more care, so that no tenant can place items under another tenant's name. IAM sees the partition key of a write, and only the names
of its other attributes. A tenant that may write the key attribute of an index could place an item under another tenant there. So writes of
such attributes are withheld, and all other writes are restricted to attributes that are not index keys naming a tenant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tavola.iac.grants import ResourceReference
from tavola.keys import Template, part_for
from tavola.model import UNIQUE, VERSION_ATTRIBUTE, WritePattern
from tavola.model.document import Design, EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign

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
        return _withhold(action, "IAM cannot restrict the attributes of a batch", guarded.values())
    names = updatable_attributes(table, entity, write.rewrites)
    written = [name for name in names if name in guarded]
    if action.action == "UpdateItem":
        written = [name for name in written if name in _written_attributes(entity, write)]
    if written:
        reason = f"IAM cannot see which tenant a write puts into {' and '.join(written)}"
        return _withhold(action, reason, [guarded[name] for name in written])
    return replace(action, tenant_attributes=tuple(name for name in names if name not in guarded))


def list_unbounded_keys(design: Design) -> Iterator[str]:
    """Yield the keys that contain a tenant without ending its name, so that no policy can tell it from a longer name."""
    for table in design.tables:
        for entity in table.entities:
            tenants = tenant_fields(entity)
            sources = [source for key in entity.all_keys for source in key.hash]
            templates = {
                source.template.source: source.template for source in sources if source.template is not None
            }
            for text, template in templates.items():
                following = text_after_tenant(template, tenants)
                if following:
                    yield (
                        f"{entity.name} by {text!r} is not allowed: {following!r} follows the tenant, and another tenant's name may continue with "
                        f"it; put the delimiter {template.delimiter!r} after it"
                    )


def _withhold(action: RequiredAction, reason: str, indexes: Iterable[str]) -> RequiredAction:
    names = " and ".join(dict.fromkeys(indexes))
    return replace(
        action,
        leading_tenant=None,
        withheld_reason=f"{reason}, so a tenant could write items of another tenant in {names}",
    )


def _written_attributes(entity: EntityDesign, write: WritePattern) -> set[str]:
    """Return the attributes that an update writes: its fields, every key that depends on them, and those it names."""
    fields = {*write.changes, *write.adds}
    attributes = {field.attribute for field in entity.fields if field.name in fields} | set(write.rewrites)
    for key in entity.keys:
        if fields.intersection((*key.fields, *(member.field for member in key.members))):
            attributes |= {source.attribute for source in key.sources}
    return attributes


ANY = "*"
LEADING_KEYS = (
    "dynamodb:LeadingKeys",
    "dynamodb:SecondPartitionKeyValues",
    "dynamodb:ThirdPartitionKeyValues",
    "dynamodb:FourthPartitionKeyValues",
)

LeadingKeys = tuple[str, ...]  # a pattern for each attribute of a partition key

_WILDCARDS = re.compile(r"[*?$]")


def escape_pattern(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return _WILDCARDS.sub(lambda match: f"${{{match[0]}}}", text)


def principal_tag(field: str) -> str:
    """Return the policy variable for the caller's tag with a field's name."""
    return f"${{aws:PrincipalTag/{field}}}"


def is_exact(pattern: str) -> bool:
    """Return whether a pattern has no wildcard."""
    return "*" not in pattern.replace("${*}", "")


def leading_keys(entity: EntityDesign, key: KeyDesign) -> LeadingKeys:
    """Return the partition keys of an entity's items, in the table or in an index."""
    return tuple(_pattern(entity, source, ()) for source in key.hash)


def tenant_leading_keys(entity: EntityDesign, key: KeyDesign) -> LeadingKeys | None:
    """Return the partition keys of a tenant's items; None if the key does not contain the tenant."""
    tenants = tenant_fields(entity)
    if not any(name in source.fields for source in key.hash for name in tenants):
        return None
    if any(text_after_tenant(source.template, tenants) for source in key.hash if source.template is not None):
        return None
    return tuple(_pattern(entity, source, tenants) for source in key.hash)


def collection_leading_keys(
    template: Template, fields: Iterable[FieldDesign]
) -> tuple[LeadingKeys, LeadingKeys | None]:
    """Return the partition keys of a collection, and those of a tenant's own."""
    tenants = tuple(field.name for field in fields if field.tenant)
    has_tenant = any(name in template.fields for name in tenants) and not text_after_tenant(template, tenants)
    return (_glob(template, ()),), ((_glob(template, tenants),) if has_tenant else None)


def guard_leading_keys(
    table: TableDesign, entity: EntityDesign, field: FieldDesign
) -> tuple[LeadingKeys, LeadingKeys]:
    """Return the partition keys of the guard items of a unique field: those of values, and those of digests of long values."""
    delimiter = table.settings.delimiter
    parts = {name: part_for("text") for name in ("entity", "unique", "rest")}
    patterns = []
    for word in (UNIQUE, f"LONG{UNIQUE}"):
        template = Template.parse(delimiter.join((word, "{entity}", "{unique}", "{rest}")), delimiter)
        text = template.bind(parts).render({"entity": entity.tag, "unique": field.name, "rest": "x"})
        patterns.append((escape_pattern(text[:-1]) + ANY,))
    return patterns[0], patterns[1]


def tenant_fields(entity: EntityDesign) -> tuple[str, ...]:
    """Return the fields that name the tenant of an item."""
    return tuple(field.name for field in entity.fields if field.tenant)


def text_after_tenant(template: Template, tenants: tuple[str, ...]) -> str:
    """Return the text that follows a tenant in a template without ending its name; empty if every name is ended.

    A name ends at the end of the key or at the delimiter, which names must not contain. With `{tenant}-`, the pattern
    for `acme` would match the items of `acme-eu`.
    """
    for segment, after in zip(template.segments, template.segments[1:], strict=False):
        if isinstance(segment, str) or segment.field not in tenants:
            continue
        if not isinstance(after, str):
            return f"{{{after.field}}}"
        if not after.startswith(template.delimiter):
            return after
    return ""


def covers(wide: LeadingKeys, narrow: LeadingKeys) -> bool:
    """Return whether one pattern allows everything that another does: it is the same, or `*`."""
    return len(wide) == len(narrow) and all(
        one in (ANY, other) for one, other in zip(wide, narrow, strict=True)
    )


def _pattern(entity: EntityDesign, source: SourceDesign, tenants: tuple[str, ...]) -> str:
    if source.template is not None:
        return _glob(source.template, tenants)
    return principal_tag(source.field) if source.field is not None and source.field in tenants else ANY


def _glob(template: Template, tenants: tuple[str, ...]) -> str:
    parts = [
        escape_pattern(segment)
        if isinstance(segment, str)
        else principal_tag(segment.field)
        if segment.field in tenants
        else ANY
        for segment in template.segments
    ]
    return re.sub(r"(?<!\{)\*(\*)+", ANY, "".join(parts))


Enclosing = Literal["", "TransactGetItems", "TransactWriteItems"]


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """One action on one resource that an access pattern needs."""

    action: str  # for example GetItem
    reference: ResourceReference
    leading: LeadingKeys = ()  # a pattern for each attribute of the partition key; empty for a scan
    leading_tenant: LeadingKeys | None = (
        None  # for a tenant's own items; None: the key does not contain the tenant
    )
    attributes: tuple[str, ...] = ()  # that the request may name; empty: any
    specific: bool = False  # the request names the attributes it reads
    enclosing: Enclosing = ""
    tenant_attributes: tuple[str, ...] | None = None  # that a tenant's request may name; None: `attributes`
    withheld_reason: str = ""  # why a tenant does not get it, although the key would allow it


@dataclass(frozen=True, slots=True)
class PatternActions:
    """An access pattern and all actions that it needs."""

    title: str
    place: str  # such as Ticket.ByCustomer
    kind: Literal["read", "write"]
    actions: tuple[RequiredAction, ...]

    @property
    def is_tenant_scoped(self) -> bool:
        """Whether IAM can restrict all of its actions to one tenant's items."""
        return bool(self.actions) and all(action.leading_tenant is not None for action in self.actions)


def updatable_attributes(
    table: TableDesign, entity: EntityDesign, rewrites: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the attributes that an update of an entity may name.

    IAM does not distinguish an attribute in a condition from one that is changed, and a condition may use any field.
    So these are all attributes of the entity, and none of other entities that share its partition key.
    """
    settings = table.settings
    names = [*settings.key_names, *(field.attribute for field in entity.fields)]
    names += [source.attribute for key in entity.keys for source in key.sources]
    names += rewrites
    if not table.foreign:
        names += [name for name in (settings.tag, settings.ttl) if name is not None]
        names += [VERSION_ATTRIBUTE] if entity.version > 1 else []
    return tuple(dict.fromkeys(names))
