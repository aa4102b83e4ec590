"""The workload: what it sends is what it says it sends."""

import json
from itertools import islice
from typing import Any

import pytest

from benchmarks.wire import Answer, http_template
from benchmarks.workload import (
    BY_NAME,
    OPERATIONS,
    comparable,
    create_table_request,
    delete_request,
    item_text,
)


def requests_of(name: str, count: int, items: int = 10_000) -> list[dict[str, Any]]:
    """The first requests of an operation's load."""
    operation = BY_NAME[name]
    draw = operation.draw(items)
    return [json.loads(operation.body.render(draw, numbers)) for numbers in islice(draw.numbers(), count)]


def size_of(value: dict[str, Any]) -> int:
    """An attribute value's bytes by DynamoDB's rules, closely enough for this item."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content)
        case "N":
            return len(content) // 2 + 1
        case "SS":
            return sum(map(len, content))
        case "L":
            return 3 + sum(1 + size_of(member) for member in content)
        case "M":
            return 3 + sum(1 + len(name) + size_of(member) for name, member in content.items())
        case _:
            return 1


def test_the_item_is_of_about_one_kilobyte() -> None:
    """One write unit, nearly full: at most 1,024 bytes and not much less."""
    (request,) = requests_of("put", 1)

    size = sum(len(name) + size_of(value) for name, value in request["Item"].items())

    assert 960 <= size <= 1024


@pytest.mark.parametrize("name", [operation.name for operation in OPERATIONS if operation.writes])
def test_no_write_repeats_another(name: str) -> None:
    """A store may skip the work for bytes that it already holds, so no two writes are alike."""
    sent = [json.dumps(request) for request in requests_of(name, 500)]

    assert len(set(sent)) == len(sent)


def test_a_put_of_one_attribute_keeps_the_index_keys() -> None:
    """An item replaced under `put` stays where the filling put it in both indexes."""
    for request in requests_of("put", 100):
        item = request["Item"]
        number = int(item["pk"]["S"].removeprefix("TICKET#"))
        assert number < 5_000
        assert item["gsi1pk"]["S"] == f"STATUS#{number % 200:06d}"
        assert item["gsi2pk"]["S"] == f"AGENT#{number // 50:06d}"


def test_moved_items_are_not_those_that_stay() -> None:
    """`put-moved` keeps to the upper half, so `put` never has to move an item back."""
    numbers = [
        int(request["Item"]["pk"]["S"].removeprefix("TICKET#")) for request in requests_of("put-moved", 200)
    ]

    assert min(numbers) >= 5_000


def test_a_batch_and_a_transaction_name_no_key_twice() -> None:
    """DynamoDB refuses a request that names one key twice."""
    for batch in requests_of("batch", 50, items=2_000):
        keys = [put["PutRequest"]["Item"]["pk"]["S"] for put in batch["RequestItems"]["tickets"]]
        assert len(set(keys)) == 25
    for transaction in requests_of("transact", 50, items=2_000):
        puts = [each["Put"]["Item"]["pk"]["S"] for each in transaction["TransactItems"] if "Put" in each]
        updates = [
            each["Update"]["Key"]["pk"]["S"] for each in transaction["TransactItems"] if "Update" in each
        ]
        assert len({*puts, *updates}) == 3


def test_new_items_are_deleted_by_the_numbers_they_were_put_with() -> None:
    """What `put-new` adds, `delete_request` takes away."""
    put = requests_of("put-new", 3)
    deleted = delete_request(range(3))["RequestItems"]["tickets"]

    assert [each["DeleteRequest"]["Key"]["pk"] for each in deleted] == [each["Item"]["pk"] for each in put]


def test_the_indexes_keys_are_all_defined_and_carried() -> None:
    """Every key attribute of the table is defined, and every item has it."""
    defined = {each["AttributeName"] for each in create_table_request()["AttributeDefinitions"]}

    assert defined <= item_text(0).keys()


def test_a_request_announces_its_length() -> None:
    """The Content-Length header says how long the body is."""
    operation = BY_NAME["put"]
    draw = operation.draw(10_000)

    text = http_template(operation.target, operation.body, 8000).render(draw, next(draw.numbers()))
    head, _, body = text.partition("\r\n\r\n")

    assert f"Content-Length: {len(body)}" in head
    assert "X-Amz-Target: DynamoDB_20120810.PutItem" in head


def test_sets_compare_without_order() -> None:
    """An engine may give a set's members in any order."""
    assert comparable({"a": {"SS": ["x", "y"]}}) == comparable({"a": {"SS": ["y", "x"]}})
    assert comparable({"a": {"L": ["x", "y"]}}) != comparable({"a": {"L": ["y", "x"]}})


def test_a_short_query_is_a_wrong_answer() -> None:
    """A query that gives fewer items than asked for does not count as fast."""
    (request,) = requests_of("query", 1)
    asked = request["ExpressionAttributeValues"][":p"]
    items = [{"gsi1pk": asked, "gsi1sk": {"S": f"{number:02d}"}} for number in range(20)]

    def unused(target: str, body: object) -> Answer:
        raise AssertionError("a query is judged by its answer alone")

    def judged(given: list[dict[str, Any]]) -> str | None:
        return BY_NAME["query"].check(unused, request, Answer(200, json.dumps({"Items": given}).encode()))

    assert judged(items) is None
    assert judged(items[:19]) is not None
    assert judged(items[::-1]) is not None
