"""All designs of the gallery by name, in the order of the documents that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tavola import AsyncConnection
from tavola.apps.gallery import (
    bill_of_materials,
    catalogue,
    customer_orders,
    iot_series,
    metrics,
    org_chart,
    organisation,
    profiles,
    seller_orders,
    social,
    tenancy,
    tournaments,
)
from tavola.apps.gallery.demonstrations import Sample

SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        module.SAMPLE.name: module.SAMPLE
        for module in (
            organisation,
            tournaments,
            iot_series,
            tenancy,
            seller_orders,
            profiles,
            social,
            org_chart,
            bill_of_materials,
            customer_orders,
            catalogue,
            metrics,
        )
    }
)


async def load_samples(db: AsyncConnection) -> int:
    """Create the tables of all samples and write missing items; return how many."""
    return sum([await sample.load_missing(db) for sample in SAMPLES.values()])
