"""The studio's API: one module per subject, one plain function over a `Studio` per endpoint.

The pages' TypeScript types are generated from the endpoints' types.
"""

from __future__ import annotations

from tavola.studio.api import (
    access,
    changes,
    cost,
    data,
    design,
    expensive_requests,
    heat,
    history,
    infrastructure,
    items,
    operations,
    patterns,
    session,
    simulation,
    solver,
    tables,
    targets,
    transfer,
)
from tavola.studio.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *session.ENDPOINTS,
    *tables.ENDPOINTS,
    *changes.ENDPOINTS,
    *items.ENDPOINTS,
    *transfer.ENDPOINTS,
    *history.ENDPOINTS,
    *data.ENDPOINTS,
    *patterns.ENDPOINTS,
    *operations.ENDPOINTS,
    *expensive_requests.ENDPOINTS,
    *access.ENDPOINTS,
    *heat.ENDPOINTS,
    *simulation.ENDPOINTS,
    *design.ENDPOINTS,
    *solver.ENDPOINTS,
    *infrastructure.ENDPOINTS,
    *targets.ENDPOINTS,
    *cost.ENDPOINTS,
)

BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}

__all__ = ["BY_NAME", "ENDPOINTS"]
