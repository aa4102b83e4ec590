"""Overview: which entity uses which index, and how, on a page."""

from __future__ import annotations

from tavola import design_of
from tavola.model.overview import overview
from tests.client import desk


def test_an_overloaded_index_tells_each_entity() -> None:
    """Every pattern stands in the table of its index, with its arguments, templates, members and shards."""
    page = overview(design_of(desk))

    shared = page.partition("## gsi1")[2].partition("## gsi2")[0]
    assert "| Ticket | ByCustomer | customer_id; then status, created_at, ticket_id |" in shared
    assert "| Feedback | ByCustomer | customer_id; then score |" in shared
    assert "`STATUS#{status}#{shard}` | `{created_at}` | shards: 8 by hash" in page
    assert "ByStatus → TicketRef" in page
    assert "- **TicketFile** in the table, `TICKET#{ticket_id}`: Ticket, Feedback, Event (all)" in page
