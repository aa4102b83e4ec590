"""Tenancy: resources of the tenants' customers, by type.

Tenant and customer together are the partition key of `TenantResourceIndex`, so every query names both: no query can return a
customer's resources of all tenants by mistake. Restricting a caller to its own tenant needs a policy with `dynamodb:LeadingKeys`, as in
the support desk.
"""

from __future__ import annotations

from typing import Any, Literal

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, expect_refusal, run_get, run_query

ResourceType = Literal["bucket", "database", "function"]


class Tenancy(tv.Table, name="gallery-tenancy", pk="PK", sk="SK"):
    """Resources of all tenants."""

    by_customer = tv.Gsi(
        pk=("tenantId", "customerId"), sk=("resourceType", "resourceId"), name="TenantResourceIndex"
    )


class Resource(
    tv.Entity, table=Tenancy, writes=(tv.WritePattern("A resource", "put", per_second=5, item_bytes=260),)
):
    """A resource of a tenant's customer."""

    tenant_id: tv.Attr[str] = tv.attr(name="tenantId")
    customer_id: tv.Attr[str] = tv.attr(name="customerId")
    resource_type: tv.Attr[ResourceType] = tv.attr(name="resourceType")
    resource_id: tv.Attr[str] = tv.attr(name="resourceId")
    plan: tv.Attr[str] = tv.attr(default="standard")

    class Key(
        tv.PrimaryKey["Resource"],
        pk="TENANT#{tenant_id}",
        sk="RESOURCE#{resource_id}",
        access=tv.AccessPattern("A resource by its id", per_second=50, items=1, item_bytes=260),
    ):
        tenant_id: str
        resource_id: str

    class OfCustomer(
        tv.Query["Resource"],
        on=Tenancy.by_customer,
        access=tv.AccessPattern(
            "The resources of a tenant's customer, all or of a type", per_second=20, items=12, item_bytes=260
        ),
    ):
        tenant_id: str
        customer_id: str
        resource_type: tv.Sort[ResourceType] = tv.sort()
        resource_id: tv.Sort[str] = tv.sort()


def resources() -> tuple[Resource, ...]:
    """Return resources of two tenants that have a customer with the same ID, and of another customer."""
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


SAMPLE = Sample(
    "tenancy",
    "SaaS tenancy",
    summary="Tenant and customer form the partition key, so that every query names both.",
    source="Patterns and best practices: common patterns of multi-attribute keys, multi-tenancy",
    tables=(Tenancy,),
    entities=resources,
)


@SAMPLE.demonstrate("drill-down", "Query customer, type and resource")
async def drill_down(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query a customer, one type of its resources, and one resource."""
    mine = Resource.OfCustomer(tenant_id="tenant-a", customer_id="cust-001")
    return (
        await run_query(db, "All resources of a customer", mine),
        await run_query(db, "Databases of the customer", mine.resource_type.eq("database")),
        await run_query(db, "One database", mine.resource_type.eq("database").resource_id.eq("database-12")),
        await run_get(
            db, "The same database by its ID", Resource.Key(tenant_id="tenant-a", resource_id="database-12")
        ),
    )


@SAMPLE.demonstrate("apart", "Separate tenants")
async def separate_tenants(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query the same customer ID in two tenants, and without a tenant."""
    without_tenant: dict[str, Any] = {"customer_id": "cust-001"}
    return (
        await run_query(
            db, "cust-001 of tenant-b", Resource.OfCustomer(tenant_id="tenant-b", customer_id="cust-001")
        ),
        await run_query(
            db,
            "cust-002 of tenant-b, which does not exist",
            Resource.OfCustomer(tenant_id="tenant-b", customer_id="cust-002"),
        ),
        expect_refusal("cust-001 of any tenant", lambda: Resource.OfCustomer(**without_tenant)),
    )
