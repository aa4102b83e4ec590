"""Asked: what an access pattern asks of DynamoDB, as IAM would see it."""

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

    action: str  # such as GetItem
    reference: TableReference
    leading: LeadingKeys = ()  # of what is asked, a pattern for each attribute of the partition key; none: of a scan
    leading_tenant: LeadingKeys | None = (
        None  # the same for a tenant's own; None: the key does not say whose it is
    )
    attributes: tuple[str, ...] = ()  # that the request may name; none: any
    specific: bool = False  # it names what it reads
    enclosing: Enclosing = ""
    tenant_attributes: tuple[str, ...] | None = None  # that a tenant's request may name; None: the same
    withheld_reason: str = ""  # why a tenant is not given it, where the key alone would allow it


@dataclass(frozen=True, slots=True)
class PatternActions:
    """An access pattern, and everything that is asked for it."""

    title: str
    place: str  # such as Ticket.ByCustomer
    kind: Literal["read", "write"]
    actions: tuple[RequiredAction, ...]

    @property
    def is_tenant_scoped(self) -> bool:
        """Whether all of it can be told to be one tenant's own."""
        return bool(self.actions) and all(each.leading_tenant is not None for each in self.actions)


def updatable_attributes(
    table: TableDesign, entity: EntityDesign, rewrites: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the attributes that an update of an entity may name.

    IAM does not tell an attribute that a condition looks at from one that is changed, and a condition may look at any field: so
    they are all of the entity's, and none of another's that shares its partition key.
    """
    settings = table.settings
    told = [*settings.key_names, *(field.attribute for field in entity.fields)]
    told += [source.attribute for key in entity.keys for source in key.sources]
    told += rewrites
    if not table.foreign:
        told += [name for name in (settings.tag, settings.ttl) if name is not None]
        told += [VERSION_ATTRIBUTE] if entity.version > 1 else []
    return tuple(dict.fromkeys(told))
