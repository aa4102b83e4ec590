"""Which keys answer a need, and how well."""

from __future__ import annotations

import pytest

from tavola.design.lint.rule import LintContext
from tavola.model.document import Given, Need
from tests.design.builders import choice, design, entity, gsi, key, moment, table, text

BY_CUSTOMER = gsi("by_customer", "GSI1PK", "GSI1SK")
QUEUE = gsi("queue", ["queue", "status"], ["created_at"])
OPEN = gsi("open", "GSI2PK", "GSI2SK")
TICKET = entity(
    "Ticket",
    text("ticket_id"),
    text("customer"),
    text("queue"),
    choice("status", "NEW", "OPEN", "DONE"),
    moment("created_at"),
    moment("due", nullable=True),
    pk="TICKET#{ticket_id}",
    keys=[
        key(BY_CUSTOMER, "CUSTOMER#{customer}", "STATUS#{status}#{created_at}"),
        key(QUEUE),
        key(OPEN, "OPEN", "{due}", sparse=True, members={"status": ["NEW", "OPEN"]}),
    ],
)
SUBJECT = LintContext(design(table(TICKET, indexes=[BY_CUSTOMER, QUEUE, OPEN])))
NEW = Given("status", "=", {"S": "NEW"})


@pytest.mark.parametrize(
    ("need", "index", "operation", "obstacle"),
    [
        (Need("by id", "Ticket", "ticket_id"), None, "get", ""),
        (Need("of a customer", "Ticket", "customer"), "by_customer", "query", ""),
        (Need("and a status", "Ticket", ("customer", "status")), "by_customer", "query", ""),
        (Need("a status in June", "Ticket", ("customer", "status", Given("created_at", "between"))), "by_customer", "query", ""),
        (Need("in June", "Ticket", ("customer", Given("created_at", "between"))), "by_customer", "filter", "gap"),
        (Need("by queue", "Ticket", ("customer", "queue")), "by_customer", "filter", ""),
        (Need("of a queue", "Ticket", ("queue", "status")), "queue", "query", ""),
        (Need("half a queue", "Ticket", "queue"), "queue", "scan", "partial"),
        (Need("due, new", "Ticket", (NEW, Given("due", "<")), "due"), "open", "query", ""),
        (Need("due, done", "Ticket", (Given("status", "=", {"S": "DONE"}), Given("due", "<")), "due"), None, "scan", ""),
    ],
    ids=lambda told: told.name if isinstance(told, Need) else "",
)  # fmt: skip
def test_the_best_key_for_a_need(need: Need, index: str | None, operation: str, obstacle: str) -> None:
    """A key serves with a get, a query or a filter; what none serves takes a scan, and what nearly serves says why not."""
    paths = SUBJECT.access_paths(need)
    best = next((each for each in paths if each.obstacle == obstacle and each.key.index == index), paths[0])

    assert (best.key.index, best.operation, best.obstacle) == (index, operation, obstacle)
    assert paths[0].operation == operation


def test_an_order_is_the_keys_or_not() -> None:
    """An order holds behind what is given with equality, and nowhere else."""
    newest = Need("newest", "Ticket", "customer", "created_at")
    newest_of_status = Need("newest of a status", "Ticket", ("customer", "status"), "created_at")

    assert not SUBJECT.access_paths(newest)[0].ordered
    assert SUBJECT.access_paths(newest_of_status)[0].ordered


def test_a_stretch_of_days_is_a_query_for_each() -> None:
    """A partition by day serves a stretch of time, with one query a day."""
    by_day = gsi("by_day", "GSI1PK", "GSI1SK")
    event = entity(
        "Event", text("event_id"), moment("at"), pk="EVENT#{event_id}", keys=[key(by_day, "{at:day}", "{at}")]
    )
    subject = LintContext(design(table(event, indexes=[by_day])))

    best = subject.access_paths(Need("of June", "Event", Given("at", "between"), "at"))[0]

    assert (best.operation, best.partition_ranges, best.ordered) == ("query", ("at",), True)


def test_several_entities_are_served_by_one_key_of_all() -> None:
    """What is fetched together is served where each of it has a key."""
    order = entity("Order", text("order_id"), pk="ORDER#{order_id}")
    line = entity("Line", text("order_id"), text("line"), pk="ORDER#{order_id}", sk="LINE#{line}")
    subject = LintContext(design(table(order, line)))

    assert subject.access_paths(Need("whole order", ("Order", "Line"), "order_id"))[0].operation == "query"
    assert subject.access_paths(Need("of nobody", ("Order", "Nobody"), "order_id")) == ()
