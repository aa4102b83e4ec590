"""The REST interface of the support desk: one module per kind of resource, each with its routers; `web` mounts them.

    desk         the open desk that all routes use, and helpers for parameters
    callers      connections with the access keys of callers
    tickets      tickets, escalations, and a customer's own tickets
    timeline     events and feedback of a ticket
    attachments  files of a ticket
    dashboard    the desk's numbers
    sessions     sessions of users

The most frequent requests (a ticket, a customer's list, the dashboard) take the shortest path: a `DirectRoute`, one read, bytes.
"""

from tavola.apps.support_desk.rest import attachments, dashboard, sessions, tickets, timeline
from tavola.apps.support_desk.rest.attachments import FILE_BYTES_MAX, parse_content_type
from tavola.apps.support_desk.rest.callers import CallerConnections
from tavola.apps.support_desk.rest.desk import (
    DAYS,
    DAYS_MAX,
    CachedDashboard,
    DashboardCache,
    Desk,
    desk_of,
    parse_time,
)

__all__ = [
    "DAYS",
    "DAYS_MAX",
    "FILE_BYTES_MAX",
    "ROUTERS",
    "TAGS",
    "CachedDashboard",
    "CallerConnections",
    "DashboardCache",
    "Desk",
    "desk_of",
    "parse_content_type",
    "parse_time",
]

# In the order in which they are tried: the most frequent requests first.
ROUTERS = (
    tickets.direct,
    dashboard.direct,
    tickets.router,
    tickets.escalations,
    timeline.router,
    attachments.router,
    sessions.router,
    tickets.customers,
)
TAGS = (
    ("tickets", "Open, read, list and change tickets"),
    ("escalations", "Tickets assigned to engineers"),
    ("timeline", "Events of a ticket"),
    ("feedback", "Operators' ratings of answers"),
    ("attachments", "Files of a ticket"),
    ("dashboard", "Statistics"),
    ("sessions", "Sessions of users"),
    ("customers", "Customers' own tickets, read with their own access keys"),
    ("service", "Health checks and metrics"),
)
