"""Random well-formed requests to every endpoint: each is answered or refused, and none ends in an internal error."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import types
import typing
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import msgspec
import msgspec.inspect
import pytest
from starlette.testclient import TestClient

from tavola import connect_async
from tavola.cli.studio_options import load_declared_designs, merge_designs
from tavola.engine import Engine
from tavola.studio import ENDPOINTS, Endpoint, Monitor, Studio, TablesLocation, create
from tavola.studio.types import AttributeValue, Document, Item

TIMES = 8
STREAMS = {"GET /changes"}  # has no end
TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "by")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-who",
            "KeySchema": [{"AttributeName": "by", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
TEXTS = (
    *("", "Orders", "gallery-shop", "nobody", "\0", "a" * 3000, "é😀", "-1", "1e999", "NaN", "{}", "[]"),
    *("2026-01-01T00:00:00Z", "9999-99-99", "latest", "start", "pk", "<b>", "../x", "INSERT,,", "S"),
    *("arn:aws:dynamodb:x:y:table/Orders", "1700000000", "SELECT * FROM Orders", "SELECT", "Query"),
)
VALUES: tuple[dict[str, Any], ...] = (
    *({"S": "a"}, {"N": "1"}, {"N": "x"}, {"S": 1}, {}, {"Q": 1}, {"S": "a", "N": "1"}, {"B": "!!"}),
    *({"B": "YQ=="}, {"L": [{"N": "1"}]}, {"L": "x"}, {"M": {"a": {"S": "b"}}}, {"M": []}, {"SS": []}),
    *({"SS": ["a", "a"]}, {"NS": ["1", "x"]}, {"NULL": False}, {"BOOL": "x"}, {"N": "1" * 39}, {"S": ""}),
)
DOCUMENTS: tuple[dict[str, Any], ...] = (
    *({}, {"TableName": "Orders"}, {"TableName": 5}, {"Statement": "SELECT * FROM Orders"}),
    *({"a": [1, {"b": None}]}, {"TableName": "Orders", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}),
)
NUMBERS = (0, 1, -1, 5, 1000, 2**31, 2**63 - 1, -(2**63))
MEASURES = (0, 1, -1, 0.5, 1e308, 1e-308, 3600)


class Oddities:
    """Questions of any type, well formed and seldom sensible; the same for the same name."""

    def __init__(self, name: str) -> None:
        self._chance = random.Random(name)

    def of(self, hint: Any) -> Any:
        """Return something of a type that questions are made of."""
        choose, inner = self._chance.choice, typing.get_args(hint)
        if hint == Item:
            names = ("pk", "sk", "by", "x", "", '"')
            return {choose(names): choose(VALUES) for _ in range(choose((0, 1, 2, 3)))}
        if hint in (AttributeValue, Document):
            return choose(VALUES if choose((True, False)) else DOCUMENTS)
        if dataclasses.is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
            return self.question(hint)
        plain = {str: TEXTS, int: NUMBERS, float: MEASURES, bool: (True, False), type(None): (None,)}
        if hint in plain:
            return choose(plain[hint])
        match typing.get_origin(hint):
            case typing.Literal:
                return choose(inner)
            case typing.Union | types.UnionType:
                return self.of(choose(inner))
            case origin if origin in (tuple, list):
                return [self.of(inner[0]) for _ in range(choose((0, 1, 1, 2)))]
            case origin if isinstance(origin, type) and issubclass(origin, Mapping):
                return {choose(TEXTS): self.of(inner[1]) for _ in range(choose((0, 1, 2)))}
            case _:
                raise AssertionError(f"no oddity of {hint}")

    def question(self, asks: Any) -> dict[str, Any]:
        """Return a question of a type, with all that it needs and some of the rest."""
        hints = typing.get_type_hints(asks)
        result: dict[str, Any] = {}
        info = msgspec.inspect.type_info(asks)
        assert isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType)
        for field in info.fields:
            if field.required or self._chance.random() < 0.5:
                result[field.name] = self.of(hints[field.name])
            if field.name == "table" and self._chance.random() < 0.75:
                result["table"] = "Orders"  # else little is asked but whether it is there
            if field.name == "hours":
                result["hours"] = self._chance.choice((0, -1, 0.1))  # of a simulation, which takes its time
        return result


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    """A studio on a table with an item, a stream and a past, and a design of another."""
    declared = load_declared_designs(("tavola.apps.gallery.customer_orders",))
    with closing(Engine.open()) as engine:
        engine.call("CreateTable", TABLE)
        engine.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}})
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "Orders",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        watch = Monitor(engine.clock)
        engine.observe(watch)
        yield Studio(
            db=connect_async(engine),
            where=TablesLocation("memory", "memory:", "us-east-1", "000000000000"),
            engine=engine,
            monitor=watch,
            design=merge_designs(declared),
            declared=declared,
        )


def unforeseen(studio: Studio, endpoint: Endpoint) -> list[str]:
    """Return those of some random requests that end in an internal error."""
    client = TestClient(create(studio, endpoints=(endpoint,)), base_url="http://127.0.0.1")
    result = re.search('tavola-token" content="([0-9a-f]+)"', client.get("/").text)
    assert result is not None
    oddities = Oddities(endpoint.name)
    failed = []
    for _ in range(TIMES):
        request = oddities.question(endpoint.request_type)
        if endpoint.method == "GET":
            response = {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in request.items()
            }
            answer = client.get(f"/api{endpoint.path}", params=response)
        else:
            token = {"X-Tavola-Token": result[1]}
            answer = client.post(f"/api{endpoint.path}", content=json.dumps(request), headers=token)
        if answer.status_code >= 500 and answer.json()["problem"]["code"] == "unexpected":
            failed.append(json.dumps(request))
    return failed


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if each.name not in STREAMS], ids=lambda each: each.name
)
def test_an_unusual_request_is_answered_or_refused(studio: Studio, endpoint: Endpoint) -> None:
    """A request that its types allow gets a response, or a problem that says what is wrong."""
    assert not unforeseen(studio, endpoint)


@dataclasses.dataclass(frozen=True, slots=True)
class Fragile:
    """What the planted question asks."""

    key: Item


async def fragile(studio: Studio, asked: Fragile) -> str:
    return str(asked.key["pk"]["S"])


def test_a_failing_endpoint_is_detected(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    """An endpoint that trusts what it is sent does not pass."""
    assert unforeseen(studio, Endpoint("POST", "/fragile", fragile))
    assert "KeyError" in caplog.text
