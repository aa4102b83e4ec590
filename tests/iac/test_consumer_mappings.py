"""Infrastructure that is generated for a consumer, run with its own settings on the embedded engine: nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tavola import Attr, Connection, Consumer, Entity, EntityChange, PrimaryKey, Router, Table, connect
from tavola.clock import ManualClock
from tavola.design.lint import lint
from tavola.iac import PlanOptions, cdk_files, plan_infrastructure
from tavola.iac.formats import read_design
from tavola.model.document import Design, design_of
from tavola.triggers import EventSourceMapping, MemoryDeadLetters, Trigger
from tests.iac.consumer_mappings import FORMATS, imported_mapping, render, template_mappings

START_S = 1_700_000_000.0
TICKETS = frozenset(f"t-{number}" for number in range(8))


class Desk(Table, name="desk", stream="NEW_AND_OLD_IMAGES", consumers=(Consumer("numbers"),)):
    pass


class Ticket(Entity, table=Desk):
    ticket_id: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str


CONSUMERS = {
    "defaults": Consumer("numbers"),
    "bounded": Consumer("numbers", retries=2, bisect=True, failures="sqs", events=("INSERT", "REMOVE")),
    "unread": Consumer("numbers", report_batch_item_failures=False, retries=2, bisect=True),
    "filtered": Consumer(
        "numbers",
        batch_size=3,
        window_s=1,
        parallelization=2,
        retries=2,
        bisect=True,
        filters=({"dynamodb": {"NewImage": {"ticket_id": {"S": [{"prefix": "t-"}]}}}},),
    ),
}


def declared(consumer: Consumer) -> Design:
    """Return the design with this consumer instead of its own."""
    design = design_of(Desk)
    return replace(design, tables=tuple(replace(table, consumers=(consumer,)) for table in design.tables))


@pytest.fixture
def db() -> Iterator[Connection]:
    with closing(connect("memory:", clock=ManualClock(START_S))) as connection:
        connection.create_tables(Desk)
        connection.put_many([Ticket(ticket_id=name) for name in sorted(TICKETS)])
        yield connection


def run(
    db: Connection, mapping: EventSourceMapping, *, report: bool, poison: str = ""
) -> tuple[Trigger, set[str], set[str]]:
    """Drain the stream with a router that fails once for each item it sees; return what is handled, and what is given up."""
    router = Router(Desk, report_batch_item_failures=report)
    handled: set[str] = set()
    flaky = {"t-1", "t-6"}

    @router.on(Ticket)
    def handle(change: EntityChange[Ticket]) -> None:
        assert change.new is not None
        name = change.new.ticket_id
        if name in flaky:
            flaky.remove(name)
            raise TimeoutError("not now")
        if name == poison:
            raise ValueError("never")
        handled.add(name)

    letters = MemoryDeadLetters()
    trigger = Trigger(
        db,
        table="desk",
        handler=router.handler,
        mapping=mapping,
        dead_letters=letters,
        dead_letter_payload=True,
        clock=ManualClock(START_S),
    )
    trigger.drain(10_000)
    records = [record for letter in letters.documents for record in letter["payload"]["Records"]]
    return trigger, handled, {record["dynamodb"]["NewImage"]["ticket_id"]["S"] for record in records}


@pytest.mark.parametrize("report", [False, True], ids=["raises", "reports"])
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumer_runs_with_its_generated_settings(
    db: Connection, tmp_path: Path, name: str, ending: str, report: bool
) -> None:
    """The settings survive the way through the file, and with them each ticket is handled, or the poison given up alone."""
    consumer = CONSUMERS[name]
    text = render(plan_infrastructure(declared(consumer), PlanOptions()), ending)
    mapping = imported_mapping(text, ending, tmp_path)
    assert mapping == EventSourceMapping.from_consumer(consumer)
    assert mapping.report_batch_item_failures == consumer.report_batch_item_failures
    poison = "t-3" if consumer.retries >= 0 else ""

    trigger, handled, given_up = run(db, mapping, report=report, poison=poison)

    assert handled == TICKETS - {poison}
    assert given_up == {poison} - {""}
    assert trigger.statistics.failures >= 2
    unread = report and not consumer.report_batch_item_failures
    assert bool(trigger.statistics.unread_failures) == unread


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_template_asks_lambda_for_the_same(name: str) -> None:
    """The properties themselves, given to Lambda's API, are the same mapping: the importer adds and drops nothing."""
    (mapping,) = template_mappings(plan_infrastructure(declared(CONSUMERS[name]), PlanOptions()))
    wanted = EventSourceMapping.from_consumer(CONSUMERS[name])

    assert replace(mapping, filter_criteria=mapping.filters) == replace(
        wanted, filter_criteria=wanted.filters
    )


def test_the_default_reads_item_failures_in_every_format() -> None:
    """A handler may be deployed by hand and return what failed, so infrastructure reads that unless it is switched off."""
    plan = plan_infrastructure(declared(Consumer("numbers")), PlanOptions())

    assert "ReportBatchItemFailures" in render(plan, "yaml")
    assert 'function_response_types = ["ReportBatchItemFailures"]' in " ".join(render(plan, "tf").split())
    assert "report_batch_item_failures=True" in cdk_files(plan)["app.py"]


def test_the_planted_template_is_found_by_the_linter_and_by_the_trigger(
    db: Connection, tmp_path: Path
) -> None:
    """A template without the setting: an advice before it is deployed, and an error when its records fail."""
    text = render(plan_infrastructure(declared(Consumer("numbers")), PlanOptions()), "yaml")
    lines = [line for line in text.splitlines() if "ReportBatchItemFailures" not in line]
    planted = "\n".join(line for line in lines if "FunctionResponseTypes" not in line)
    mapping = imported_mapping(planted, "yaml", tmp_path)
    design = read_design(tmp_path / "infrastructure.yaml").design

    trigger, handled, _ = run(db, mapping, report=True)

    assert not mapping.report_batch_item_failures
    assert trigger.statistics.unread_failures == 2
    assert handled == TICKETS
    (finding,) = lint(design, select=["unread-item-failures"]).findings
    assert (finding.severity, finding.place.name) == ("advice", design.tables[0].consumers[0].name)


SAM = {
    "Transform": "AWS::Serverless-2016-10-31",
    "Resources": {
        "Desk": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "TableName": "desk",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
            },
        },
        "Numbers": {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "InlineCode": 'def handler(event, context):\n    return {"batchItemFailures": []}\n',
                "Events": {
                    "Stream": {
                        "Type": "DynamoDB",
                        "Properties": {
                            "Stream": {"Fn::GetAtt": ["Desk", "StreamArn"]},
                            "StartingPosition": "TRIM_HORIZON",
                            "BatchSize": 5,
                        },
                    }
                },
            },
        },
    },
}


@pytest.mark.parametrize("reads", [False, True])
def test_sam_keeps_the_setting_and_shows_what_the_code_returns(
    db: Connection, tmp_path: Path, reads: bool
) -> None:
    """A function whose inline code returns item failures is an error unless its event reads them."""
    template = json.loads(json.dumps(SAM))
    if reads:
        event = template["Resources"]["Numbers"]["Properties"]["Events"]["Stream"]["Properties"]
        event["FunctionResponseTypes"] = ["ReportBatchItemFailures"]
    mapping = imported_mapping(json.dumps(template), "json", tmp_path)
    trigger, handled, _ = run(db, mapping, report=True)

    assert mapping.report_batch_item_failures == reads
    assert handled == TICKETS
    assert bool(trigger.statistics.unread_failures) == (not reads)
    found = lint(
        read_design(tmp_path / "infrastructure.json").design, select=["unread-item-failures"]
    ).findings
    assert [finding.severity for finding in found] == ([] if reads else ["error"])
