"""Routers: all routes in the order in which they are tried: first what is asked most."""

from __future__ import annotations

from tavola.apps.support_desk.rest import dashboards, escalations, files, mine, sessions, tickets, timelines

ROUTERS = (
    tickets.direct,
    dashboards.direct,
    tickets.router,
    escalations.router,
    timelines.router,
    files.router,
    sessions.router,
    mine.router,
)
TAGS = (
    ("tickets", "Tickets: opened, read, listed, changed"),
    ("escalations", "Tickets in the hands of engineers"),
    ("timeline", "What happened to a ticket"),
    ("feedback", "What operators said"),
    ("attachments", "Files that hang on a ticket"),
    ("dashboard", "The desk's numbers"),
    ("sessions", "Who is at the desk"),
    ("customers", "Customers, with their own access keys"),
    ("service", "Health and measures"),
)
