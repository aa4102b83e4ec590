"""The DynamoDB actions that an access pattern needs, as IAM sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.iac.grants import TableReference
from tavola.iac.leading_keys import LeadingKeys
from tavola.model import VERSION_ATTRIBUTE
from tavola.model.document import EntityDesign, TableDesign

Enclosing = Literal["", "TransactGetItems", "TransactWriteItems"]


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """One action on one resource that an access pattern needs."""

    action: str  # for example GetItem
    reference: TableReference
    leading: LeadingKeys = ()  # a pattern for each attribute of the partition key; empty for a scan
    leading_tenant: LeadingKeys | None = (
        None  # the same for a tenant's own items; None: the key does not contain the tenant
    )
    attributes: tuple[str, ...] = ()  # that the request may name; empty: any
    specific: bool = False  # it names what it reads
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
