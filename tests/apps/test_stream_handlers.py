"""The applications' stream handlers, run with the settings of their own generated infrastructure: nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tavola import AsyncConnection, Connection, ManualClock, connect, to_item
from tavola.apps.service_desk import model as service_desk
from tavola.apps.support_desk import metrics
from tavola.apps.support_desk import model as support_desk
from tavola.apps.terraform_review import model as terraform_review
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.model import ReviewFinding, Reviews
from tavola.design.lint import lint
from tavola.iac import PlanOptions, plan_infrastructure
from tavola.model.document import design_of
from tavola.triggers import EventSourceMapping, MemoryDeadLetters, Trigger
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import NOON, ReviewHistory, open_history
from tests.iac.consumer_mappings import FORMATS, imported_mapping, render, template_mappings

MODELS = {
    "service_desk": service_desk,
    "support_desk": support_desk,
    "terraform_review": terraform_review,
}
READERS = {"support_desk": support_desk.NUMBERS, "terraform_review": terraform_review.STATISTICS}


def generated(name: str, folder: Path, ending: str = "yaml") -> EventSourceMapping:
    """Return the mapping in an application's infrastructure."""
    plan = plan_infrastructure(design_of(MODELS[name]), PlanOptions(alarms=False, policies=False))
    return imported_mapping(render(plan, ending), ending, folder)


@pytest.mark.parametrize("name", MODELS)
def test_every_handler_fits_its_mapping(name: str) -> None:
    """Only two applications read a stream; their handlers return item failures and their mappings read them."""
    design = design_of(MODELS[name])
    consumers = [consumer for table in design.tables for consumer in table.consumers]
    mappings = list(template_mappings(plan_infrastructure(design, PlanOptions())))

    assert consumers == ([READERS[name]] if name in READERS else [])
    assert all(mapping.report_batch_item_failures for mapping in mappings)
    assert len(mappings) == len(consumers)
    assert lint(design, select=["unread-item-failures"]).findings == ()


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", READERS)
def test_the_generated_settings_are_those_of_the_application(name: str, ending: str, tmp_path: Path) -> None:
    """What a file says is what the application's own trigger runs with."""
    assert generated(name, tmp_path, ending) == EventSourceMapping.from_consumer(READERS[name])
    if name == "support_desk":
        assert EventSourceMapping.from_consumer(READERS[name]) == metrics.MAPPING


def test_the_support_desk_counts_all_but_the_poison(tmp_path: Path) -> None:
    """A ticket that cannot be read goes to the failures after its retries; the others are counted, flaky calls or not."""
    clock = ManualClock(NOON.timestamp())
    letters = MemoryDeadLetters()
    with closing(connect("memory:", clock=clock)) as db:
        db.create_tables(support_desk.Tickets, support_desk.Metrics)
        for number in range(6):
            db.create(_ticket(number))
        broken = {**to_item(_ticket(9)), "status": {"S": "sometimes"}}
        db.call("PutItem", {"TableName": "prod-tickets-unified", "Item": broken})
        handler = metrics.create_handler(db)
        trigger = Trigger(
            db,
            table="prod-tickets-unified",
            handler=handler,
            mapping=generated("support_desk", tmp_path),
            dead_letters=letters,
            dead_letter_payload=True,
            clock=ManualClock(NOON.timestamp()),
        )
        trigger.drain(10_000)
        counted = _count(db)

    assert counted == 6
    assert _keys(letters) == [broken["PK"]["S"]]
    assert trigger.statistics.failures >= 4
    assert trigger.statistics.unread_failures == 0


def test_the_terraform_review_counts_all_but_the_poison(tmp_path: Path, run: Run[Any]) -> None:
    """A finding that cannot be read goes to the failures after its retries; what else is in the stream is counted."""
    clock = ManualClock(NOON.timestamp())
    letters = MemoryDeadLetters()
    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        broken = run(_record_reviews(history))

        def handler(event: Mapping[str, Any], context: object) -> Any:
            return run(history.store.projector.handler(event, context))

        trigger = Trigger(
            SynchronousBackend(history.db, run),
            table=history.db.context.name_of(Reviews),
            handler=handler,
            mapping=generated("terraform_review", tmp_path),
            dead_letters=letters,
            dead_letter_payload=True,
            clock=ManualClock(NOON.timestamp()),
        )
        trigger.drain(10_000)
        stats = run(service.get_stack_stats(history.store, "prod-net"))

    assert stats is not None
    assert stats.total_reviews == 3
    assert _keys(letters, "SK") == [broken]
    assert trigger.statistics.failures >= 4
    assert trigger.statistics.unread_failures == 0


def test_a_mapping_that_does_not_read_it_is_loud(tmp_path: Path) -> None:
    """With the planted setting of a hand-made mapping, the desk's handler is not believed and the statistics say so."""
    with closing(connect("memory:", clock=ManualClock(NOON.timestamp()))) as db:
        db.create_tables(support_desk.Tickets, support_desk.Metrics)
        db.create(_ticket(0))
        broken = {**to_item(_ticket(9)), "status": {"S": "sometimes"}}
        db.call("PutItem", {"TableName": "prod-tickets-unified", "Item": broken})
        letters = MemoryDeadLetters()
        trigger = Trigger(
            db,
            table="prod-tickets-unified",
            handler=metrics.create_handler(db),
            mapping=EventSourceMapping(maximum_retry_attempts=1, bisect_batch_on_function_error=True),
            dead_letters=letters,
            dead_letter_payload=True,
            clock=ManualClock(NOON.timestamp()),
        )
        trigger.drain(10_000)
        counted = _count(db)

    assert counted == 1
    assert _keys(letters) == [broken["PK"]["S"]]
    assert trigger.statistics.unread_failures >= 2


@dataclass(frozen=True, slots=True)
class SynchronousBackend:
    """An asynchronous connection for a trigger, which calls from one thread."""

    db: AsyncConnection
    run: Run[Any]

    def call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the response to an operation."""
        response: dict[str, Any] = self.run(self.db.call(operation, request))
        return response


async def _record_reviews(history: ReviewHistory) -> str:
    """Record three reviews, and a finding that cannot be read; return the sort key of that."""
    for number in range(3):
        await history.record(f"run-{number}", "A", "B")
    page = await history.db.scan_table(Reviews, consistent=True)
    finding = next(item for item in page.items if isinstance(item, ReviewFinding))
    item = to_item(finding)
    item |= {"SK": {"S": f"{item['SK']['S']}x"}, "Severity": {"S": "grave"}}
    await history.db.call("PutItem", {"TableName": history.db.context.name_of(Reviews), "Item": item})
    return str(item["SK"]["S"])


def _ticket(number: int) -> support_desk.Ticket:
    return support_desk.Ticket(
        ticket_id=f"tkt_{number}",
        customer_id="cust-001",
        subject="x",
        symptom_text="x",
        created_at=NOON,
        updated_at=NOON,
    )


def _count(db: Connection) -> int:
    key = {"PK": {"S": f"METRIC#{metrics.DESK}"}, "SK": {"S": "total/status/NEW"}}
    item = db.call("GetItem", {"TableName": "prod-metrics", "Key": key}).get("Item", {})
    return int(item.get("count", {"N": "0"})["N"])


def _keys(letters: MemoryDeadLetters, name: str = "PK") -> list[str]:
    """Return the partition or sort keys of the records that were given up."""
    records = [record for letter in letters.documents for record in letter["payload"]["Records"]]
    return [record["dynamodb"]["Keys"][name]["S"] for record in records]
