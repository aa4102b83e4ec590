"""Tenancy: what the customers of tenants have, by kind.

Tenant and customer are both the partition of `TenantResourceIndex`, so that a question cannot be asked without saying whose: there is no way to
ask for one customer's resources over all tenants by mistake. That a caller may name only its own tenant is another matter, for a
policy with `dynamodb:LeadingKeys`; the support desk shows it.
"""

from __future__ import annotations

from typing import Any, Literal

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, got, refused

ResourceType = Literal["bucket", "database", "function"]


class Tenancy(Table, name="gallery-tenancy", pk="PK", sk="SK"):
    """Resources of all tenants."""

    by_customer = Gsi(
        pk=("tenantId", "customerId"), sk=("resourceType", "resourceId"), name="TenantResourceIndex"
    )


class Resource(
    Entity, table=Tenancy, writes=(WritePattern("A resource", "put", per_second=5, item_bytes=260),)
):
    """Something that a tenant's customer has."""

    tenant_id: Attr[str] = attr(name="tenantId")
    customer_id: Attr[str] = attr(name="customerId")
    resource_type: Attr[ResourceType] = attr(name="resourceType")
    resource_id: Attr[str] = attr(name="resourceId")
    plan: Attr[str] = attr(default="standard")

    class Key(
        PrimaryKey["Resource"],
        pk="TENANT#{tenant_id}",
        sk="RESOURCE#{resource_id}",
        access=AccessPattern("A resource by its id", per_second=50, items=1, item_bytes=260),
    ):
        tenant_id: str
        resource_id: str

    class OfCustomer(
        Query["Resource"],
        on=Tenancy.by_customer,
        access=AccessPattern(
            "The resources of a tenant's customer, all or of a type", per_second=20, items=12, item_bytes=260
        ),
    ):
        tenant_id: str
        customer_id: str
        resource_type: Sort[ResourceType] = sort()
        resource_id: Sort[str] = sort()


def resources() -> tuple[Resource, ...]:
    """Return two tenants with a customer of the same id each, and another customer."""
    kinds: tuple[ResourceType, ...] = ("bucket", "database", "function")
    owners = (("tenant-a", "cust-001"), ("tenant-a", "cust-002"), ("tenant-b", "cust-001"))
    return tuple(
        Resource(
            tenant_id=tenant,
            customer_id=customer,
            resource_type=kind,
            resource_id=f"{kind}-{customer[-1]}{number}",
            plan="standard" if number % 2 else "large",
        )
        for tenant, customer in owners
        for kind in kinds
        for number in (1, 2)
    )


async def drill_down(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for a customer, a type of theirs, and one resource."""
    mine = Resource.OfCustomer(tenant_id="tenant-a", customer_id="cust-001")
    return (
        await asked(db, "All of a customer's", mine),
        await asked(db, "Their databases", mine.resource_type.eq("database")),
        await asked(db, "One of them", mine.resource_type.eq("database").resource_id.eq("database-12")),
        await got(db, "The same by its id", Resource.Key(tenant_id="tenant-a", resource_id="database-12")),
    )


async def apart(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for customers of one id at two tenants, and without a tenant."""
    anybody: dict[str, Any] = {"customer_id": "cust-001"}
    return (
        await asked(
            db, "cust-001 of tenant-b", Resource.OfCustomer(tenant_id="tenant-b", customer_id="cust-001")
        ),
        await asked(
            db,
            "cust-002 of tenant-b, which has none",
            Resource.OfCustomer(tenant_id="tenant-b", customer_id="cust-002"),
        ),
        refused("cust-001 of any tenant", lambda: Resource.OfCustomer(**anybody)),
    )


SAMPLE = Sample(
    name="tenancy",
    title="SaaS tenancy",
    shows="Questions that cannot be asked without saying whose: tenant and customer are the partition.",
    source="Patterns and best practices: common patterns of multi-attribute keys, multi-tenancy",
    tables=(Tenancy,),
    entities=resources,
    demonstrations=(
        Demonstration("drill-down", "Customer, type, resource", drill_down),
        Demonstration("apart", "Tenants are kept apart", apart),
    ),
)
