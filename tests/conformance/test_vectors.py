"""Vector indexes: membership, search results and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import OOM, definitions, item, put, refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tests.conformance.backends import Answer

Tables = Callable[..., str]
SendRaw = Callable[..., "Answer"]

INVALID = "One or more parameter values were invalid. "
BODY = '{"TableName":"%s","IndexName":"near","SearchVector":[{"N":"1"},{"N":"0"},{"N":"0"}],"TopK":1}'


def vector(*numbers: float | str) -> dict[str, Any]:
    """Return a vector as an item holds it."""
    return {"L": [{"N": str(number)} for number in numbers]}


def index(name: str = "near", **more: Any) -> dict[str, Any]:
    """Return a vector index of three dimensions, searched by cosine."""
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 3,
        "DistanceFunction": "COSINE",
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }


SCHEMA = [
    {"AttributeName": "tenant", "SearchSchemaElementType": "HASH"},
    {"AttributeName": "grade", "SearchSchemaElementType": "INLINE_FILTER"},
]
SEARCHED = {
    "AttributeDefinitions": definitions("pk tenant grade:N"),
    "VectorIndexes": [index(SearchSchema=SCHEMA)],
}


@pytest.fixture
def plain(client: DynamoDBClient, tables: Tables) -> str:
    """A table with an index for each distance function, and four vectors."""
    functions = {"near": "COSINE", "apart": "EUCLIDEAN", "along": "DOT_PRODUCT"}
    table = tables(VectorIndexes=[index(n, DistanceFunction=f) for n, f in functions.items()])
    vectors = {"a": (1, 0, 0), "b": (0, 1, 0), "c": (-1, 0, 0), "d": (0.6, 0.8, 0)}
    put(client, table, *(item(pk=pk, text=f"text {pk}", v=vector(*v)) for pk, v in vectors.items()))
    put(client, table, item(pk="bare", text="no vector"))
    return table


@pytest.fixture
def searched(client: DynamoDBClient, tables: Tables) -> str:
    """A table whose index is partitioned and filtered."""
    table = tables(**SEARCHED)
    put(
        client,
        table,
        item(pk="a", tenant="t1", grade=1, v=vector(1, 0, 0)),
        item(pk="b", tenant="t1", grade=2, v=vector(0.1, 1, 0)),
        item(pk="c", tenant="t2", grade=1, v=vector(1, 0, 0)),
        item(pk="d", tenant="t1", v=vector(0, 0, 1)),
        item(pk="e", grade=1, v=vector(1, 0, 0)),
    )
    return table


def search(client: DynamoDBClient, table: str, *numbers: float | str, **more: Any) -> list[dict[str, Any]]:
    """Return the results of a search."""
    request: dict[str, Any] = {"IndexName": "near", "TopK": 10, **more}
    found: Any = client.search_vectors(
        TableName=table, SearchVector=vector(*(numbers or (1, 0, 0)))["L"], **request
    )
    return list(found["SearchResults"])


def keys(results: list[dict[str, Any]]) -> str:
    """Return the keys that were found, in order, as one word."""
    return "".join(each["Item"]["pk"]["S"] for each in results)


@pytest.mark.parametrize(
    ("name", "order", "scores"),
    [
        ("near", "adbc", [0.0, 0.4, 1.0, 2.0]),
        ("apart", "adbc", [0.0, 0.8**0.5, 2.0**0.5, 2.0]),
        ("along", "adbc", [1.0, 0.6, 0.0, -1.0]),
    ],
)
def test_the_nearest_comes_first(
    client: DynamoDBClient, plain: str, name: str, order: str, scores: list[float]
) -> None:
    """Cosine and Euclid call the least the nearest, the dot product the most."""
    found = search(client, plain, IndexName=name)

    assert keys(found) == order
    assert [each["Score"] for each in found] == pytest.approx(scores, abs=1e-6)


def test_top_k_bounds_the_answer(client: DynamoDBClient, plain: str) -> None:
    """A search returns at most TopK results."""
    assert keys(search(client, plain, TopK=2)) == "ad"


def test_the_vector_is_reported_only_by_name(client: DynamoDBClient, plain: str) -> None:
    """A result has the projected attributes without the vector; requested by name it has 32-bit floats."""
    assert search(client, plain, TopK=1)[0]["Item"] == item(pk="a", text="text a")

    found = search(client, plain, 0.6, 0.8, 0, TopK=1, ProjectionExpression="pk, v")
    assert found[0]["Item"] == item(pk="d", v=vector("0.6", "0.8", "0"))


def test_unprojected_attributes_are_silently_absent(client: DynamoDBClient, tables: Tables) -> None:
    """KEYS_ONLY projects keys and the search schema, INCLUDE its list;

    the vector is treated like other attributes.
    """
    table = tables(
        AttributeDefinitions=definitions("pk tenant"),
        VectorIndexes=[
            index(
                "keys",
                Projection={"ProjectionType": "KEYS_ONLY"},
                SearchSchema=[{"AttributeName": "tenant", "SearchSchemaElementType": "INLINE_FILTER"}],
            ),
            index("some", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": ["text"]}),
        ],
    )
    put(client, table, item(pk="a", tenant="t", text="x", more="y", v=vector(1, 0, 0)))

    assert search(client, table, IndexName="keys")[0]["Item"] == item(pk="a", tenant="t")
    assert search(client, table, IndexName="some")[0]["Item"] == item(pk="a", text="x")
    projected = search(client, table, IndexName="keys", ProjectionExpression="pk, more, v")
    assert projected[0]["Item"] == item(pk="a")


def test_an_index_follows_every_kind_of_write(client: DynamoDBClient, plain: str) -> None:
    """Put, update, delete, batch and transaction are seen by the next search; removing the vector removes the entry."""
    assert keys(search(client, plain)) == "adbc"

    put(client, plain, item(pk="b", v=vector(1, 0.05, 0)))
    client.update_item(
        TableName=plain,
        Key=item(pk="c"),
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": vector(1, 0.1, 0)},
    )
    assert keys(search(client, plain)) == "abcd"

    client.update_item(TableName=plain, Key=item(pk="a"), UpdateExpression="REMOVE v")
    client.delete_item(TableName=plain, Key=item(pk="d"))
    assert keys(search(client, plain)) == "bc"

    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": plain, "Item": item(pk="e", v=vector(1, 0, 0))}},
            {"Delete": {"TableName": plain, "Key": item(pk="b")}},
        ]
    )
    put(client, plain, item(pk="f", v=vector(0.1, 0, 1)), item(pk="g", v=vector(0, 1, 0)))
    assert keys(search(client, plain)) == "ecfg"


def test_a_transaction_that_is_cancelled_leaves_the_index(client: DynamoDBClient, plain: str) -> None:
    """Nothing of it is found."""
    transaction: Any = [
        {"Put": {"TableName": plain, "Item": item(pk="x", v=vector(1, 0, 0))}},
        {
            "ConditionCheck": {
                "TableName": plain,
                "Key": item(pk="a"),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]
    assert (
        refused(client.transact_write_items, TransactItems=transaction).code == "TransactionCanceledException"
    )

    assert keys(search(client, plain)) == "adbc"


def test_a_search_stays_in_its_partition(client: DynamoDBClient, searched: str) -> None:
    """HASH is required; an item without it is in no partition, and a filter needs its attribute."""
    values = {":t": {"S": "t1"}}
    assert (
        keys(
            search(
                client, searched, SearchConditionExpression="tenant = :t", ExpressionAttributeValues=values
            )
        )
        == "abd"
    )
    both = search(
        client,
        searched,
        SearchConditionExpression="#t = :t AND :r = grade",
        ExpressionAttributeNames={"#t": "tenant"},
        ExpressionAttributeValues={**values, ":r": {"N": "1.0"}},
    )
    assert keys(both) == "a"
    missing = search(
        client,
        searched,
        SearchConditionExpression="tenant = :t",
        ExpressionAttributeValues={":t": {"S": "nobody"}},
    )
    assert missing == []


def test_a_zero_vector_is_neither_near_nor_far(client: DynamoDBClient, plain: str) -> None:
    """It has no direction: its cosine distance is 1, on either side."""
    put(client, plain, item(pk="z", v=vector(0, 0, 0)))

    assert {each["Score"] for each in search(client, plain, 0, 0, 0)} == {1.0}
    zero = [each["Score"] for each in search(client, plain) if each["Item"]["pk"]["S"] == "z"]
    assert zero == [1.0]


def test_scores_end_at_the_largest_float(client: DynamoDBClient, plain: str) -> None:
    """Sums use 64 bits, so terms may cancel; a score past 32 bits is reported as the largest float."""
    large = 3.4028234663852886e38
    put(client, plain, item(pk="m", v=vector("3e38", "3e38", "0")))

    found = search(client, plain, "3e38", "-3e38", 0, IndexName="along")
    assert next(each["Score"] for each in found if each["Item"]["pk"]["S"] == "m") == 0.0
    assert search(client, plain, "3e38", "3e38", 0, IndexName="along", TopK=1)[0]["Score"] == large
    assert search(client, plain, "-3e38", "-3e38", 0, IndexName="apart")[-1]["Score"] == large


def test_an_index_is_described(client: DynamoDBClient, searched: str) -> None:
    """The description has the settings, the state and the number of items."""
    described: Any = client.describe_table(TableName=searched)["Table"]
    (found,) = described["VectorIndexes"]

    size = found.pop("IndexSizeBytes")
    assert found == {
        **index(SearchSchema=SCHEMA),
        "IndexStatus": "ACTIVE",
        "ItemCount": 4,
        "IndexArn": f"{described['TableArn']}/index/near",
    }
    assert size > 0
    assert {each["AttributeName"] for each in described["AttributeDefinitions"]} == {"pk", "tenant", "grade"}


def test_a_live_table_gets_an_index(client: DynamoDBClient, tables: Tables) -> None:
    """It is filled from the stored items; unsuitable ones are skipped."""
    table = tables()
    put(
        client,
        table,
        item(pk="a", v=vector(1, 0, 0)),
        item(pk="b", v=vector(1, 0)),
        item(pk="c", v="no vector"),
        item(pk="d", v=vector(0, 1, 0)),
        item(pk="e"),
        item(pk="f", v={"L": [{"N": "1e60"}, {"N": "0"}, {"N": "0"}]}),
    )

    created: Any = [{"Create": index()}]
    answer: Any = client.update_table(TableName=table, VectorIndexUpdates=created)

    assert answer["TableDescription"]["TableStatus"] == "UPDATING"
    assert answer["TableDescription"]["VectorIndexes"][0]["IndexStatus"] == "CREATING"
    described = _settled(client, table)
    assert "Backfilling" not in described
    assert described["ItemCount"] == 2
    assert keys(search(client, table)) == "ad"
    client.update_item(
        TableName=table,
        Key=item(pk="b"),
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": {"S": "y"}},
    )
    put(client, table, item(pk="b", v=vector(1, 0.5, 0)))
    assert keys(search(client, table)) == "abd"


def _settled(client: DynamoDBClient, table: str) -> dict[str, Any]:
    for _ in range(5_000):
        found: Any = client.describe_table(TableName=table)["Table"]
        (described,) = found["VectorIndexes"]
        if described["IndexStatus"] == "ACTIVE":
            return dict(described)
    raise AssertionError("the index does not settle")


def test_an_index_is_deleted(client: DynamoDBClient, plain: str) -> None:
    """The items stay; a search no longer finds the index, and its name may be used again."""
    answer: Any = client.update_table(TableName=plain, VectorIndexUpdates=[{"Delete": {"IndexName": "near"}}])

    states = {each["IndexName"]: each["IndexStatus"] for each in answer["TableDescription"]["VectorIndexes"]}
    assert states == {"near": "DELETING", "apart": "ACTIVE", "along": "ACTIVE"}
    assert refused(search, client=client, table=plain).message == (
        "The table does not have the specified index: near"
    )
    assert client.scan(TableName=plain)["Count"] == 5
    assert keys(search(client, plain, IndexName="apart")) == "adbc"


def test_writes_report_the_bytes_of_each_vector_index(client: DynamoDBClient, tables: Tables) -> None:
    """An entry counts four bytes a dimension, its name and its projection, at least 1 KB;

    unchanged, nothing.
    """
    table = tables(VectorIndexes=[index(Dimensions=300, Projection={"ProjectionType": "KEYS_ONLY"})])
    whole: dict[str, Any] = {"TableName": table, "ReturnConsumedCapacity": "INDEXES"}
    full = item(pk="abc", v=vector(*range(300)), text="x" * 3000)

    made: Any = client.put_item(Item=full, **whole)["ConsumedCapacity"]
    again: Any = client.put_item(Item=full | item(text="other"), **whole)["ConsumedCapacity"]
    gone: Any = client.delete_item(Key=item(pk="abc"), **whole)["ConsumedCapacity"]
    total: Any = client.put_item(Item=full, TableName=table, ReturnConsumedCapacity="TOTAL")[
        "ConsumedCapacity"
    ]

    cost = {"near": {"VectorWriteRequestBytes": 4.0 * 300 + len("v") + len("pkabc")}}
    assert made["VectorIndexes"] == cost
    assert "VectorIndexes" not in again
    assert gone["VectorIndexes"] == cost
    assert set(total) == {"TableName", "CapacityUnits"}


def test_a_search_reports_its_bytes(client: DynamoDBClient, plain: str) -> None:
    """The same under TOTAL and INDEXES, absent under NONE; no capacity units."""
    request: dict[str, Any] = {
        "TableName": plain,
        "IndexName": "near",
        "SearchVector": vector(1, 0, 0)["L"],
        "TopK": 1,
    }
    for mode in ("TOTAL", "INDEXES"):
        answer: Any = client.search_vectors(**request, ReturnConsumedCapacity=mode)
        assert answer["ConsumedCapacity"] == {"VectorSearchRequestBytes": 1024.0}
    assert "ConsumedCapacity" not in client.search_vectors(**request, ReturnConsumedCapacity="NONE")


def test_only_a_search_reads_a_vector_index(client: DynamoDBClient, plain: str) -> None:
    """Query and Scan do not."""
    queried = refused(
        client.query,
        TableName=plain,
        IndexName="near",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": "a"}},
    )
    scanned = refused(client.scan, TableName=plain, IndexName="near")

    assert queried.message == "Query operation not supported on this index type."
    assert scanned.message == "Scan operation not supported on this index type."


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        (vector(1, 0), "Invalid size for parameter v, Expected: 3, Actual: 2 IndexName: near"),
        (
            {"S": "x"},
            "Invalid type for parameter v, Expected: 32-bit floating point number list IndexName: near",
        ),
        (
            {"L": [{"N": "1"}, {"S": "x"}, {"N": "0"}]},
            "Invalid type for parameter v[1], Expected: 32-bit floating point number, Actual: S. IndexName: near",
        ),
        (
            vector(0, 0, "1.3e40"),
            (
                "Invalid value for parameter v[2], Value: 1.3E+40 is outside valid range "
                "[-3.4028235E38, 3.4028235E38]. IndexName: near"
            ),
        ),
    ],
)
def test_a_wrong_vector_is_refused(
    client: DynamoDBClient, plain: str, held: dict[str, Any], sentence: str
) -> None:
    """A vector that the index cannot take refuses the whole write, however it is written."""
    invalid = item(pk="w", v=held)
    update: dict[str, Any] = {
        "Key": item(pk="w"),
        "UpdateExpression": "SET v = :v",
        "ExpressionAttributeValues": {":v": held},
    }

    assert refused(client.put_item, TableName=plain, Item=invalid).message == INVALID + sentence
    assert refused(client.update_item, TableName=plain, **update).message == INVALID + sentence
    batch: Any = {plain: [{"PutRequest": {"Item": invalid}}]}
    assert refused(client.batch_write_item, RequestItems=batch).message == INVALID + sentence
    assert "Item" not in client.get_item(TableName=plain, Key=item(pk="w"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            {"tenant": {"N": "1"}},
            f"{INVALID}Attribute 'tenant' type mismatch. Expected: S, Actual: N. IndexName: near",
        ),
        (
            {"grade": {"S": "1"}},
            f"{INVALID}Attribute 'grade' type mismatch. Expected: N, Actual: S. IndexName: near",
        ),
        (
            {"tenant": {"S": ""}},
            (
                "One or more parameter values are not valid. A value specified for a secondary index key is not "
                "supported. The AttributeValue for a key attribute cannot contain an empty string value. "
                "IndexName: near, IndexKey: tenant"
            ),
        ),
    ],
)
def test_a_wrong_value_of_the_search_schema_is_refused(
    client: DynamoDBClient, searched: str, wrong: dict[str, Any], sentence: str
) -> None:
    """A missing attribute is left out of the index; one of another type, or an empty partition, is refused."""
    invalid = item(pk="w", tenant="t1", v=vector(1, 0, 0)) | wrong

    assert refused(client.put_item, TableName=searched, Item=invalid).message == sentence


def test_an_update_is_held_to_what_it_writes(client: DynamoDBClient, tables: Tables) -> None:
    """An older attribute that does not fit the index stays, while other attributes change."""
    table = tables()
    put(client, table, item(pk="a", v="no vector"))
    created: Any = [{"Create": index()}]
    client.update_table(TableName=table, VectorIndexUpdates=created)
    _settled(client, table)

    client.update_item(
        TableName=table,
        Key=item(pk="a"),
        UpdateExpression="SET w = :w",
        ExpressionAttributeValues={":w": {"S": "x"}},
    )

    again = refused(
        client.update_item,
        TableName=table,
        Key=item(pk="a"),
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"S": "y"}},
    )
    assert again.message.startswith(f"{INVALID}Invalid type for parameter v")


_WITH = {"SearchConditionExpression": "tenant = :t", "ExpressionAttributeValues": {":t": {"S": "t1"}}}


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            {"TopK": 101},
            "Provided TopK value '101' is out of valid range. The value must be between 1 and 100 inclusive",
        ),
        ({"IndexName": "none"}, "The table does not have the specified index: none"),
        (
            {"SearchVector": vector(1, 0)["L"]},
            "Input search vector dimension 2 does not match vector index dimension 3",
        ),
        (
            {"SearchVector": [{"N": "1"}, {"S": "x"}]},
            (
                "Search vector contains invalid values. All values in the search vector must be a 32-bit "
                "floating-point number attribute"
            ),
        ),
        (
            {"SearchVector": vector(1, 0, "1e39")["L"]},
            (
                "Search vector contains invalid values. All values in the search vector must be a 32-bit "
                "floating-point number attribute"
            ),
        ),
        (
            {"SearchConditionExpression": None, "ExpressionAttributeValues": None},
            "SearchConditionExpression must be provided when SearchSchema has a HASH key",
        ),
        (
            {"SearchConditionExpression": "grade = :t", "ExpressionAttributeValues": {":t": {"N": "1"}}},
            "SearchConditionExpression must have all HASH attributes in configured SearchSchema",
        ),
        (
            {"SearchConditionExpression": "tenant < :t"},
            "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression",
        ),
        (
            {"SearchConditionExpression": "tenant = :t OR tenant = :t"},
            "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression",
        ),
        (
            {"SearchConditionExpression": "begins_with(tenant, :t)"},
            "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression",
        ),
        (
            {"SearchConditionExpression": "pk = :t"},
            (
                "SearchConditionExpression must not contain any attributes that is not in SearchSchema. "
                "Invalid attribute: pk"
            ),
        ),
        (
            {"SearchConditionExpression": "tenant.a = :t"},
            "Invalid SearchConditionExpression: SearchConditionExpression cannot have conditions on nested attributes",
        ),
        (
            {"SearchConditionExpression": "tenant = :t AND tenant = :t"},
            (
                "Invalid SearchConditionExpression: SearchConditionExpression must only contain one condition per "
                "attribute"
            ),
        ),
        (
            {"ExpressionAttributeValues": {":t": {"N": "1"}}},
            "Type of 'tenant' attribute in SearchConditionExpression (N) does not match type in search schema (S)",
        ),
        (
            {"ExpressionAttributeValues": {":t": {"S": ""}}},
            (
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
                "empty string value. Key: tenant"
            ),
        ),
        (
            {"SearchConditionExpression": "tenant ="},
            'Invalid SearchConditionExpression: Syntax error; token: "<EOF>", near: "="',
        ),
        (
            {"ProjectionExpression": "pk, pk"},
            (
                "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one "
                "of these paths; path one: [pk], path two: [pk]"
            ),
        ),
        (
            {"ExpressionAttributeNames": {"#n": "x"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}",
        ),
    ],
)
def test_a_search_is_refused_in_these_words(
    client: DynamoDBClient, searched: str, request_: dict[str, Any], sentence: str
) -> None:
    """Each wrong part of a search has its sentence."""
    request: dict[str, Any] = {
        "TableName": searched,
        "IndexName": "near",
        "SearchVector": vector(1, 0, 0)["L"],
        "TopK": 3,
        **_WITH,
        **request_,
    }
    members = {name: value for name, value in request.items() if value is not None}

    assert refused(client.search_vectors, **members).message == sentence


def test_a_body_is_refused_with_its_place(send_raw: SendRaw, plain: str) -> None:
    """The search endpoint has a separate deserializer, which counts columns."""
    body = BODY % plain
    nulled = body.replace('"near"', "null")
    broken = body.replace('"TopK":1}', '"TopK":3.5}')

    assert send_raw("SearchVectors", body.encode()).status == 200
    result = {
        name: send_raw("SearchVectors", text.encode()).body
        for name, text in {
            "missing": body.replace(',"TopK":1', ""),
            "null": nulled,
            "fraction": broken,
            "none": "{}",
        }.items()
    }

    short = len(body) - len(',"TopK":1')
    assert result["missing"]["message"] == f"missing field `TopK` at line 1 column {short}"
    assert result["none"]["message"] == "missing field `TableName` at line 1 column 2"
    null_at = nulled.index("null") + len("null")
    assert result["null"]["Message"] == f"invalid type: null, expected a string at line 1 column {null_at}"
    fraction_at = len(broken) - 1
    assert result["fraction"]["Message"] == (
        f"invalid type: floating point `3.5`, expected i32 at line 1 column {fraction_at}"
    )


def test_members_of_a_search_have_bounds(send_raw: SendRaw, plain: str) -> None:
    """A name that is too short, an empty vector and a TopK of zero are refused by the members' own bounds."""
    body = BODY % plain
    result = [
        send_raw("SearchVectors", text.encode()).body["message"]
        for text in (
            body.replace('"near"', '"ne"'),
            body.replace('[{"N":"1"},{"N":"0"},{"N":"0"}]', "[]"),
            body.replace('"TopK":1', '"TopK":0'),
        )
    ]

    assert result == [
        (
            "1 validation error detected: Value 'ne' at 'indexName' failed to satisfy constraint: Member must have "
            "length greater than or equal to 3"
        ),
        (
            "1 validation error detected: Value at 'SearchVector' failed to satisfy constraint: Member must have "
            "length greater than or equal to 1"
        ),
        (
            "1 validation error detected: Value at 'TopK' failed to satisfy constraint: Member must have value "
            "greater than or equal to 1"
        ),
    ]


def test_a_missing_table_is_not_searched(client: DynamoDBClient, fresh: Callable[[], str]) -> None:
    """The table is looked up after TopK is checked and before the index."""
    missing = refused(search, client=client, table=fresh())
    wrong = refused(search, client=client, table=fresh(), TopK=1000)

    assert (missing.code, missing.message) == ("ResourceNotFoundException", "Requested resource not found")
    assert wrong.code == "ValidationException"


@pytest.mark.parametrize(
    ("described", "sentence"),
    [
        (
            {
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
            },
            "Vector indexes are only supported for PAY_PER_REQUEST tables",
        ),
        ({"VectorIndexes": []}, "List of VectorIndexes is empty"),
        (
            {"VectorIndexes": [index(Dimensions=4097)]},
            "Number of dimensions must be between 1 and 4096 inclusive.",
        ),
        (
            {"VectorIndexes": [index(f"near{place}") for place in range(6)]},
            "VectorIndex count exceeds the per-table limit of 5",
        ),
        (
            {"VectorIndexes": [index(SearchSchema=SCHEMA)]},
            "One element in SearchSchema is not defined in attribute definitions",
        ),
        (
            {"VectorIndexes": [index(), index("other", Dimensions=4)]},
            (
                "Conflicting attribute definition for 'v'. All VectorIndexes on the same vector attribute must use the "
                "same dimensions."
            ),
        ),
        (
            {"AttributeDefinitions": definitions("pk v")},
            (
                "Conflicting attribute definition for 'v'. An attribute cannot be defined in AttributeDefinitions when "
                "used as a VectorAttribute."
            ),
        ),
        ({"VectorIndexes": [index(), index()]}, "Duplicate index name: near"),
        (
            {"VectorIndexes": [index(Projection={"ProjectionType": "INCLUDE"})]},
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (
            {
                "AttributeDefinitions": definitions("pk a b"),
                "VectorIndexes": [
                    index(
                        SearchSchema=[{"AttributeName": n, "SearchSchemaElementType": "HASH"} for n in "ab"]
                    )
                ],
            },
            "The SearchSchema exceeds the maximum allowed number of HASH attributes: 1",
        ),
    ],
)
def test_a_table_with_a_wrong_index_is_not_made(
    client: DynamoDBClient, fresh: Callable[[], str], described: dict[str, Any], sentence: str
) -> None:
    """Each wrong index has its sentence."""
    request: dict[str, Any] = {
        "TableName": fresh(),
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": definitions("pk"),
        "BillingMode": "PAY_PER_REQUEST",
        "VectorIndexes": [index()],
        **described,
    }

    assert refused(client.create_table, **request).message == OOM + sentence


def test_changes_of_vector_indexes_are_refused(client: DynamoDBClient, plain: str) -> None:
    """One online index at a time, no name twice, no key as a vector, and never without on-demand capacity."""

    def changed(*updates: dict[str, Any], **more: Any) -> Any:
        return refused(client.update_table, TableName=plain, VectorIndexUpdates=list(updates), **more)

    two = changed({"Create": index("x-1")}, {"Create": index("x-2")})
    assert (two.code, two.message) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )
    assert changed({"Create": index()}).message == "Attempting to create an index which already exists"
    assert changed({"Delete": {"IndexName": "none"}}).code == "ResourceNotFoundException"
    assert "must use the same dimensions" in changed({"Create": index("x-1", Dimensions=4)}).message
    assert changed({"Create": index("x-1", VectorAttribute={"AttributeName": "pk"})}).message == (
        f"{OOM}Attributes cannot be redefined. Please check that your attribute has the same type as previously "
        "defined. Existing schema: Schema:[SchemaElement: key{pk:S:HASH}] New schema: "
        "VectorIndexSchema:[VectorAttribute: key{pk:L:3}]"
    )
    undefined = changed({"Create": index("x-1", SearchSchema=SCHEMA)})
    assert undefined.message == f"{OOM}One element in SearchSchema is not defined in attribute definitions"
    assert changed({}).message == (
        f"{OOM}One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must not be null"
    )
    billed = refused(
        client.update_table,
        TableName=plain,
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    assert billed.message == f"{OOM}Vector indexes are only supported for PAY_PER_REQUEST tables"


def test_a_table_has_five_vector_indexes_at_most(client: DynamoDBClient, tables: Tables) -> None:
    """A sixth on a live table passes a limit of the account, not a rule of the request."""
    table = tables(VectorIndexes=[index(f"near{place}") for place in range(5)])

    sixth = refused(client.update_table, TableName=table, VectorIndexUpdates=[{"Create": index("more")}])

    assert (sixth.code, sixth.message) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of 5",
    )


def test_dropping_another_index_leaves_the_search_schema(client: DynamoDBClient, tables: Tables) -> None:
    """The types of a search schema's attributes stay defined when a global index is dropped."""
    table = tables(
        gsi={"by-tenant": "tenant"},
        AttributeDefinitions=definitions("pk tenant grade:N"),
        VectorIndexes=[index(SearchSchema=SCHEMA)],
    )
    client.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-tenant"}}])
    put(client, table, item(pk="a", tenant="t", v=vector(1, 0, 0)))

    found = search(
        client, table, SearchConditionExpression="tenant = :t", ExpressionAttributeValues={":t": {"S": "t"}}
    )
    assert keys(found) == "a"


def test_a_restored_table_has_its_vector_indexes(
    client: DynamoDBClient, searched: str, fresh: Callable[[], str]
) -> None:
    """A backup describes them, and a restored table can be searched."""
    target = fresh()
    made: Any = client.create_backup(TableName=searched, BackupName="before")
    arn = made["BackupDetails"]["BackupArn"]
    for _ in range(5_000):
        described: Any = client.describe_backup(BackupArn=arn)["BackupDescription"]
        if described["BackupDetails"]["BackupStatus"] == "AVAILABLE":
            break
    put(client, searched, item(pk="late", tenant="t1", v=vector(1, 0, 0)))

    client.restore_table_from_backup(TargetTableName=target, BackupArn=arn)

    client.get_waiter("table_exists").wait(TableName=target, WaiterConfig={"Delay": 1})
    result = described["SourceTableFeatureDetails"]["VectorIndexes"]
    assert result == [index(SearchSchema=SCHEMA)]
    values = {":t": {"S": "t1"}}
    found = search(client, target, SearchConditionExpression="tenant = :t", ExpressionAttributeValues=values)
    assert keys(found) == "abd"
    restored: Any = client.describe_table(TableName=target)["Table"]
    assert restored["VectorIndexes"][0]["ItemCount"] == 4
    client.delete_table(TableName=target)
    client.delete_backup(BackupArn=arn)
