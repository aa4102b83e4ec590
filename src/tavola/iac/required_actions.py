"""The DynamoDB actions that an access pattern needs, as IAM sees them, and the partition keys they are restricted to.

IAM conditions can restrict the partition key of a request (`dynamodb:LeadingKeys`) by patterns with `*`. The patterns here come from key templates: text
stays, a tenant's field becomes the caller's tag, any other field becomes `*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tavola.iac.grants import TableReference
from tavola.keys import Template, part_for
from tavola.model import UNIQUE, VERSION_ATTRIBUTE
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign

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
    reference: TableReference
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
        return bool(self.actions) and all(each.leading_tenant is not None for each in self.actions)


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
