"""API: every question that a page or the command line may ask, one module a noun.

An endpoint is a plain function over a `Studio`; its types are the pages' types too.
"""

from __future__ import annotations

from tavola.studio.api import (
    access,
    browsing,
    bulk,
    changes,
    cost,
    dearest,
    design,
    heat,
    infrastructure,
    items,
    operations,
    past,
    patterns,
    replays,
    restoring,
    samples,
    session,
    simulating,
    solving,
    tables,
    targets,
    transfer,
)
from tavola.studio.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *session.ENDPOINTS,
    *samples.ENDPOINTS,
    *changes.ENDPOINTS,
    *items.ENDPOINTS,
    *bulk.ENDPOINTS,
    *transfer.ENDPOINTS,
    *past.ENDPOINTS,
    *restoring.ENDPOINTS,
    *tables.ENDPOINTS,
    *browsing.ENDPOINTS,
    *patterns.ENDPOINTS,
    *operations.ENDPOINTS,
    *dearest.ENDPOINTS,
    *replays.ENDPOINTS,
    *access.ENDPOINTS,
    *heat.ENDPOINTS,
    *simulating.ENDPOINTS,
    *design.ENDPOINTS,
    *solving.ENDPOINTS,
    *infrastructure.ENDPOINTS,
    *targets.ENDPOINTS,
    *cost.ENDPOINTS,
)

BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}

__all__ = ["BY_NAME", "ENDPOINTS"]
