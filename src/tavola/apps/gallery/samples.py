"""Samples: all designs of the gallery, by name, in the order in which the documents tell of them."""

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
from tavola.apps.gallery.showing import Sample

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
    """Make the tables of all samples and store the items that are not there; return how many."""
    return sum([await sample.complete(db) for sample in SAMPLES.values()])
