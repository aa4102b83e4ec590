"""What the source of a handler says about its response, without running it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola import Attr, Consumer, Entity, PrimaryKey, Table
from tavola.model.document import Design, design_of, handler_modules, returns_item_failures, with_handlers


class Desk(Table, name="desk", stream="NEW_IMAGE"):
    pass


class Ticket(Entity, table=Desk):
    ticket_id: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str


def read_by(*consumers: Consumer) -> Design:
    """Return a design with these consumers."""
    design = design_of(Desk)
    return replace(design, tables=tuple(replace(table, consumers=consumers) for table in design.tables))


@pytest.mark.parametrize(
    "source",
    [
        'def handler(event, context):\n    return {"batchItemFailures": []}',
        'def handler(event, context):\n    response = {}\n    response["batchItemFailures"] = []\n    return response',
        "def handler(event, context):\n    return dict(batchItemFailures=[])",
        "router = Router(Desk, report_batch_item_failures=True)\nhandler = router.handler",
        "handler = tavola.Router(Desk, report_batch_item_failures=READS).handler",
        "projector = Projector[Connection, Number, Mark](db, Desk, report_batch_item_failures=True)",
        "def handler(event, context):\n    return process_partial_response(event, record, processor, context)",
        "exports.handler = async () => ({ batchItemFailures: [] });",
    ],
)
def test_a_handler_that_returns_failures_is_recognized(source: str) -> None:
    """A literal, an assignment, a router or projector that reports, AWS's own helper; in other languages the word."""
    assert returns_item_failures(source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        '"""It never returns batchItemFailures."""\ndef handler(event, context):\n    raise ValueError',
        "# batchItemFailures\nhandler = Router(Desk).handler",
        "handler = Router(Desk, report_batch_item_failures=False).handler",
        'NUMBERS = Consumer("numbers", report_batch_item_failures=True)',
        'assert handler(event)["batchItemFailures"] == []',
        "exports.handler = async () => { throw new Error() }",
    ],
)
def test_a_handler_that_raises_is_not(source: str) -> None:
    """Words, comments, settings of the mapping and reading a response are no response."""
    assert not returns_item_failures(source)


def test_a_handlers_module_is_named_as_python_and_as_lambda_name_it() -> None:
    """The longest name first: what precedes the function is a module, or a class in one."""
    assert handler_modules(Consumer("n", "shop.numbers.handler")) == ("shop.numbers", "shop")
    assert handler_modules(Consumer("n", "shop.numbers:handler")) == ("shop.numbers", "shop")
    assert handler_modules(Consumer("n", "src/numbers.handler")) == ("src.numbers", "src")
    assert handler_modules(Consumer("n", "handler")) == handler_modules(Consumer("n")) == ()


def test_consumers_learn_what_their_handlers_return() -> None:
    """The first module that is known decides; what is declared stays; without a source nothing is said."""
    reports, raises = 'def handler(e, c): return {"batchItemFailures": []}', "def handler(e, c): raise"
    design = read_by(
        Consumer("a", "shop.a.handler"),
        Consumer("b", "shop.b.handler"),
        Consumer("c", "gone.handler"),
        Consumer("d", "shop.b.handler", returns_batch_item_failures=True),
    )
    found = with_handlers(design, {"shop.a": reports, "shop.b": raises, "shop": reports})

    assert [each.returns_batch_item_failures for each in found.tables[0].consumers] == [
        True,
        False,
        False,
        True,
    ]
