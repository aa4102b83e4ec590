"""Rows of refusals: an operation, what is asked, and AWS's whole sentence; with the tables they ask of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.asking import ENVELOPE, item, n, s, table_request
from tests.conformance.backends import Answer, Backend

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TABLE = "sentences"  # pk sk, with one item
HASH = "sentences-hash"  # pk alone
MULTI = "sentences-multi"  # an index of two hash and three range attributes
MISSING = "sentences-missing"
KEY = item(pk="p", sk="s")
STORED = {
    **KEY,
    **item(num=5, txt="abc"),
    "list": {"L": [s("x"), n(1)]},
    "map": {"M": {"in": n(1)}},
    "set": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
}
_ENVELOPED = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


@dataclass(frozen=True, slots=True)
class Row:
    """One refusal; `id` says the situation."""

    id: str
    operation: str
    request: Mapping[str, Any] | bytes
    text: str | None
    code: str = field(default="ValidationException")


def rows(found: Iterable[Row]) -> pytest.MarkDecorator:
    """Return the parametrisation of a test by rows."""
    listed = list(found)
    ids = [f"{row.operation}-{row.id}".replace(" ", "_") for row in listed]
    assert len(set(ids)) == len(ids), sorted(each for each in ids if ids.count(each) > 1)
    return pytest.mark.parametrize("row", listed, ids=ids)


def check(ask: Callable[..., Answer], row: Row) -> None:
    """Ask a row and compare the whole answer: status, code and sentence."""
    answer = ask(row.operation, row.request)

    got, wanted = (answer.status, answer.code, answer.text), (400, row.code, row.text)
    assert got == wanted, f"{row.request!r:.500}\n got {got}\nwant {wanted}"


def enveloped(operation: str, text: str) -> str:
    """Return a sentence marked [E] as the operation says it today."""
    return ENVELOPE + text if operation in _ENVELOPED else text


def member(path: str, rule: str, *, value: str = "null") -> str:
    """Return the classic sentence for one member."""
    return f"{ENVELOPE}Value {value} at '{path}' failed to satisfy constraint: {rule}"


def modern_member(path: str, rule: str) -> str:
    """Return the modern sentence for one member."""
    return f"{ENVELOPE}Value at '{path}' failed to satisfy constraint: {rule}"


def lay_tables(backend: Backend, client: DynamoDBClient) -> None:
    """Make the tables that the rows ask of; they outlive the test, for no row changes them."""
    wanted = (
        table_request(
            TABLE,
            "pk sk",
            gsi={"by-a": "a b:N | KEYS_ONLY", "by-c": "c"},
            lsi={"by-l": "pk l:N | KEYS_ONLY"},
        ),
        table_request(HASH, "pk"),
        table_request(MULTI, "pk", gsi={"multi": "h1 h2 / r1 r2:N r3"}),
    )
    with backend.on():
        for request in wanted:
            try:
                client.create_table(**request)
            except client.exceptions.ResourceInUseException:
                pass
            client.get_waiter("table_exists").wait(TableName=request["TableName"], WaiterConfig={"Delay": 1})
        client.put_item(TableName=TABLE, Item=STORED)
