"""Rows of refusals: an operation, a request and AWS's whole message; with the tables they use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import Answer, Backend
from tests.conformance.requests import ENVELOPE, item, n, s, table_request

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
    """One refusal; `id` names the case."""

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


def check(send_raw: Callable[..., Answer], row: Row) -> None:
    """Send a row's request and compare the whole response: status, code and message."""
    answer = send_raw(row.operation, row.request)

    got, expected = (answer.status, answer.code, answer.text), (400, row.code, row.text)
    assert got == expected, f"{row.request!r:.500}\n got {got}\nwant {expected}"


def enveloped(operation: str, text: str) -> str:
    """Return a message marked [E] as the operation renders it today."""
    return ENVELOPE + text if operation in _ENVELOPED else text


def member(path: str, rule: str, *, value: str = "null") -> str:
    """Return the classic sentence for one member."""
    return f"{ENVELOPE}Value {value} at '{path}' failed to satisfy constraint: {rule}"


def modern_member(path: str, rule: str) -> str:
    """Return the modern sentence for one member."""
    return f"{ENVELOPE}Value at '{path}' failed to satisfy constraint: {rule}"


def create_tables(backend: Backend, client: DynamoDBClient) -> None:
    """Create the tables that the rows use; they outlive the test because no row changes them."""
    requests = (
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
        for request in requests:
            try:
                client.create_table(**request)
            except client.exceptions.ResourceInUseException:
                pass
            client.get_waiter("table_exists").wait(TableName=request["TableName"], WaiterConfig={"Delay": 1})
        client.put_item(TableName=TABLE, Item=STORED)
