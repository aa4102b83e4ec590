"""boto3 and botocore, unchanged, against an engine in this process."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread
from typing import Any, NoReturn

import boto3
import botocore.endpoint
import botocore.session
import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import DeferredRefreshableCredentials
from botocore.exceptions import EndpointConnectionError, HTTPClientError, NoCredentialsError, NoRegionError

import tavola
from tavola.backends.errors import MockRefused
from tavola.backends.mocking import current_mock
from tavola.clock import ManualClock
from tavola.connections import InvalidConnectionTarget
from tavola.engine import Engine, StoreInUse
from tests.backends.endpoints import deserted

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that would leave this machine fails the test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        assert address[0] in {"127.0.0.1", "::1"}, f"a connection to {address}"
        connect(self, address)

    def unresolved(host: Any, *rest: Any, **named: Any) -> Any:
        assert host in {"127.0.0.1", "::1"}, f"a look-up of {host}"
        return look_up(host, *rest, **named)

    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", unresolved)


def keyed(access_key: str = "testing", region: str = "us-east-1") -> boto3.Session:
    """Return a session with explicit credentials."""
    return boto3.Session(aws_access_key_id=access_key, aws_secret_access_key="secret", region_name=region)


def names(client: Any) -> list[str]:
    """Return the tables that a client sees."""
    found: list[str] = client.list_tables()["TableNames"]
    return found


class TestWhatWorks:
    """The parts of boto3 that people use."""

    @pytest.fixture(autouse=True)
    def mocked(self) -> Iterator[None]:
        """Everything in a mock, with the table."""
        with tavola.mock():
            boto3.client("dynamodb").create_table(**TABLE)
            yield

    def test_a_client(self) -> None:
        """A low-level client puts and gets, and receives AWS's response metadata."""
        client = boto3.client("dynamodb")
        client.put_item(TableName="Orders", Item={"pk": {"S": "a"}, "sk": {"N": "1"}})

        found = client.get_item(TableName="Orders", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})

        metadata = found["ResponseMetadata"]
        assert found["Item"] == {"pk": {"S": "a"}, "sk": {"N": "1"}}
        assert (metadata["HTTPStatusCode"], metadata["RetryAttempts"]) == (200, 0)
        assert len(metadata["RequestId"]) == 52
        assert metadata["HTTPHeaders"]["content-type"] == "application/x-amz-json-1.0"

    def test_a_resource(self) -> None:
        """A resource's table accepts Python's types and conditions, and describes itself."""
        table = boto3.resource("dynamodb").Table("Orders")
        table.put_item(Item={"pk": "a", "sk": 1, "tags": {"x", "y"}, "blob": b"\x00\xff", "none": None})
        table.put_item(Item={"pk": "a", "sk": 2})

        found = table.query(
            KeyConditionExpression=Key("pk").eq("a") & Key("sk").gte(1),
            FilterExpression=Attr("tags").exists(),
        )

        (item,) = found["Items"]
        assert (item["tags"], item["blob"].value, item["none"]) == ({"x", "y"}, b"\x00\xff", None)
        assert (table.table_status, table.item_count) == ("ACTIVE", 2)

    def test_numbers_are_exact(self) -> None:
        """A Decimal of 38 digits comes back digit for digit."""
        number = Decimal("1234567890123456789012345678901234567.8")
        table = boto3.resource("dynamodb").Table("Orders")
        table.put_item(Item={"pk": "a", "sk": 1, "n": number})

        assert table.get_item(Key={"pk": "a", "sk": 1})["Item"]["n"] == number

    def test_a_batch_writer_and_a_paginator(self) -> None:
        """Batches of more than 25 are written whole, and pages are followed to the end."""
        with boto3.resource("dynamodb").Table("Orders").batch_writer() as batch:
            for number in range(60):
                batch.put_item(Item={"pk": "a", "sk": number})

        pages = (
            boto3.client("dynamodb")
            .get_paginator("query")
            .paginate(
                TableName="Orders",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": "a"}},
                PaginationConfig={"PageSize": 25},
            )
        )

        assert [page["Count"] for page in pages] == [25, 25, 10]

    def test_waiters(self) -> None:
        """Waiters end at their first look."""
        client = boto3.client("dynamodb")
        client.get_waiter("table_exists").wait(TableName="Orders")
        client.delete_table(TableName="Orders")
        client.get_waiter("table_not_exists").wait(TableName="Orders")

    def test_a_transaction(self) -> None:
        """A transaction gets botocore's own token, and a cancelled one its reasons."""
        client = boto3.client("dynamodb")
        tokens: list[str] = []
        client.meta.events.register(
            "before-call.dynamodb.TransactWriteItems",
            lambda params, **_: tokens.append(params["body"].decode()),
        )
        item = {"pk": {"S": "a"}, "sk": {"N": "1"}}
        put = {"TableName": "Orders", "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        client.transact_write_items(TransactItems=[{"Put": put}])

        with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
            client.transact_write_items(TransactItems=[{"Put": put}])

        assert "ClientRequestToken" in tokens[0]
        assert [reason["Code"] for reason in caught.value.response["CancellationReasons"]] == [
            "ConditionalCheckFailed"
        ]

    def test_exceptions(self) -> None:
        """A fault is the modelled exception, with its text, its status and what AWS adds."""
        client = boto3.client("dynamodb")
        item = {"pk": {"S": "a"}, "sk": {"N": "1"}}
        client.put_item(TableName="Orders", Item=item)

        with pytest.raises(client.exceptions.ConditionalCheckFailedException) as caught:
            client.put_item(
                TableName="Orders",
                Item=item,
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.describe_table(TableName="Nothing")

        response = caught.value.response
        assert response["Error"]["Message"] == "The conditional request failed"
        assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert response["Item"] == item

    def test_streams_are_answered_too(self) -> None:
        """The streams service is routed to the engine as well."""
        client = boto3.client("dynamodbstreams", config=Config(retries={"total_max_attempts": 1}))
        try:
            answered = client.list_streams()["ResponseMetadata"]
        except client.exceptions.ClientError as error:
            answered = error.response["ResponseMetadata"]

        assert len(answered["RequestId"]) == 52

    def test_every_retry_mode(self) -> None:
        """The checksum and the body satisfy each of botocore's retry modes."""
        for mode in ("legacy", "standard", "adaptive"):
            client = boto3.client("dynamodb", config=Config(retries={"mode": mode}))
            assert names(client) == ["Orders"]

    def test_threads(self) -> None:
        """Workers that start inside the block are inside, with one client or one each."""
        shared = boto3.client("dynamodb")

        def put(number: int) -> None:
            client = shared if number % 2 else keyed().client("dynamodb")
            client.put_item(TableName="Orders", Item={"pk": {"S": "a"}, "sk": {"N": str(number)}})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, range(20)))

        assert shared.scan(TableName="Orders")["Count"] == 20


def test_clients_from_before() -> None:
    """Clients, resources and sessions made before the block are inside it, and outside again after it."""
    session = keyed()
    client = session.client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
    table = session.resource("dynamodb").Table("Orders")

    for _ in range(2):
        with tavola.mock():
            client.create_table(**TABLE)
            table.put_item(Item={"pk": "a", "sk": 1})
            assert session.client("dynamodb").scan(TableName="Orders")["Count"] == 1

    with pytest.raises(HTTPClientError, match="a look-up of dynamodb"):
        names(client)


def test_a_client_from_before_without_credentials() -> None:
    """A client without credentials works inside the mock, and lacks them again afterwards."""
    client = boto3.client("dynamodb", region_name="eu-west-1")
    with tavola.mock():
        assert names(client) == []

    with pytest.raises(NoCredentialsError):
        names(client)


def test_credentials_are_not_fetched() -> None:
    """Credentials that must be fetched, such as a role's, are never requested."""

    def fetch() -> NoReturn:
        raise AssertionError("credentials were fetched")

    before = botocore.session.Session()
    before._credentials = DeferredRefreshableCredentials(fetch, "assume-role")
    with tavola.mock():
        assert names(before.create_client("dynamodb", region_name="eu-west-1")) == []


def test_nothing_is_left_behind() -> None:
    """After the block botocore's methods, clients and sessions are unchanged."""
    methods = (
        botocore.endpoint.Endpoint.__dict__["make_request"],
        botocore.session.Session.__dict__["create_client"],
    )
    session = botocore.session.Session()
    client = keyed().client("dynamodb")
    events = ("choose-signer", "before-sign", "before-send")
    heard = [client.meta.events._emitter._handlers.prefix_search(f"{e}.dynamodb.GetItem") for e in events]
    with tavola.mock():
        names(client)
        session.create_client("dynamodb")

    assert heard == [
        client.meta.events._emitter._handlers.prefix_search(f"{e}.dynamodb.GetItem") for e in events
    ]
    assert methods == (
        botocore.endpoint.Endpoint.__dict__["make_request"],
        botocore.session.Session.__dict__["create_client"],
    )
    assert session.get_credentials() is None
    with pytest.raises(NoRegionError):
        session.create_client("dynamodb")


def test_an_error_in_the_block_ends_it() -> None:
    """A block that fails is left as one that does not."""
    method = botocore.endpoint.Endpoint.__dict__["make_request"]
    with pytest.raises(ZeroDivisionError), tavola.mock():
        _ = 1 / 0

    assert botocore.endpoint.Endpoint.__dict__["make_request"] is method


def test_nested_mocks() -> None:
    """The innermost answers, and leaves the tables of the outer as they were."""
    client = keyed().client("dynamodb")
    with tavola.mock() as outer:
        client.create_table(**TABLE)
        with tavola.mock() as inner:
            assert names(client) == []
            assert inner.engine is not outer.engine
        assert names(client) == ["Orders"]


def test_mocks_may_end_in_any_order() -> None:
    """Two mocks that overlap each end their own."""
    client = keyed().client("dynamodb")
    first, second = tavola.mock(), tavola.mock()
    first.__enter__()
    second.__enter__()
    client.create_table(**TABLE)
    first.__exit__(None, None, None)
    assert names(client) == ["Orders"]

    second.__exit__(None, None, None)
    assert not hasattr(botocore.endpoint.Endpoint.make_request, "__wrapped__")


def test_regions_and_accounts_are_separate() -> None:
    """A table is in the region of its client and in the account of its access key."""
    with tavola.mock():
        ours = keyed("111111111111", "eu-west-1").client("dynamodb")
        arn = ours.create_table(**TABLE)["TableDescription"]["TableArn"]

        assert arn == "arn:aws:dynamodb:eu-west-1:111111111111:table/Orders"
        assert names(keyed("111111111111", "eu-west-1").client("dynamodb")) == ["Orders"]
        assert names(keyed("111111111111", "us-east-1").client("dynamodb")) == []
        assert names(keyed("222222222222", "eu-west-1").client("dynamodb")) == []


def test_configured_region_and_key_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock's own region comes first, then the environment's, then the default in the code."""
    with tavola.mock(region="eu-north-1", account="333333333333"):
        described = boto3.client("dynamodb").create_table(**TABLE)["TableDescription"]
        assert described["TableArn"] == "arn:aws:dynamodb:eu-north-1:333333333333:table/Orders"

    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "444444444444")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with tavola.mock():
        described = boto3.client("dynamodb").create_table(**TABLE)["TableDescription"]
        assert described["TableArn"] == "arn:aws:dynamodb:ap-south-1:444444444444:table/Orders"
    with tavola.mock(region="eu-north-1"):
        described = boto3.client("dynamodb").create_table(**TABLE)["TableDescription"]
        assert described["TableArn"] == "arn:aws:dynamodb:eu-north-1:444444444444:table/Orders"
        for own in (
            boto3.client("dynamodb", "us-west-1"),
            boto3.Session(region_name="us-west-1").client("dynamodb"),
        ):
            assert own.meta.region_name == "us-west-1"


def test_a_mock_may_be_started_and_stopped() -> None:
    """setUp starts it, tearDown stops it; in between it acts like the block."""
    mocked = tavola.mock()
    handle = mocked.start()
    boto3.client("dynamodb").create_table(**TABLE)
    assert handle.connection.call("ListTables", {})["TableNames"] == ["Orders"]
    mocked.stop()

    assert current_mock() is None


def test_a_client_with_an_explicit_endpoint_is_mocked() -> None:
    """Code that calls a local server is answered too: no DynamoDB request leaves the process."""
    with deserted() as url, tavola.mock():
        assert names(keyed().client("dynamodb", endpoint_url=url)) == []


def test_other_services_are_left_alone() -> None:
    """A client of another service is not mocked, and fails as without a mock."""
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    with deserted() as url, tavola.mock():
        s3 = keyed().client("s3", endpoint_url=url, config=once)
        with pytest.raises(EndpointConnectionError):
            s3.list_buckets()
        with pytest.raises(NoRegionError):
            boto3.client("sqs")


def test_another_mock_of_everything_does_not_answer_dynamodb() -> None:
    """A handler for every service answers the others; DynamoDB is the mock's, in either order."""
    client = keyed().client("dynamodb")

    class Body(io.BytesIO):
        def stream(self, **_: Any) -> Iterator[bytes]:
            yield self.read()

    def answer(request: Any, **_: Any) -> Any:
        return AWSResponse(request.url, 200, {}, Body(b'{"TableNames":["Theirs"]}'))

    client.meta.events.register_first("before-send", answer)
    assert names(client) == ["Theirs"]
    with tavola.mock():
        assert names(client) == []
    assert names(client) == ["Theirs"]


def test_a_handler_for_one_operation_comes_first() -> None:
    """A test can still answer a single operation itself, as botocore lets it."""
    client = keyed().client("dynamodb")

    def broken(**_: Any) -> NoReturn:
        raise ConnectionResetError("planted")

    client.meta.events.register("before-send.dynamodb.ListTables", broken)
    with tavola.mock(), pytest.raises(ConnectionResetError, match="planted"):
        names(client)


def test_an_asynchronous_client_is_refused() -> None:
    """A client that sends asynchronously would get past the mock, so it is stopped with advice."""

    class AsyncEndpoint(botocore.endpoint.Endpoint):  # type: ignore[misc]  # botocore has no types
        async def _send(self, request: Any) -> None:
            raise AssertionError("it was sent")

    client = keyed().client("dynamodb")
    client._endpoint.__class__ = AsyncEndpoint
    with tavola.mock(), pytest.raises(MockRefused, match="tavola_endpoint"):
        names(client)


def test_a_call_under_way_at_the_end_is_still_caught() -> None:
    """A thread that is in the middle of a call when the block ends does not get to the network."""
    client = keyed().client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
    entered, left = Event(), Event()
    seen: list[BaseException] = []

    def pause(**_: Any) -> None:
        entered.set()
        left.wait(10)

    def late() -> None:
        try:
            names(client)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            seen.append(error)

    client.meta.events.register("request-created.dynamodb", pause)
    method = botocore.endpoint.Endpoint.__dict__["make_request"]
    with tavola.mock():
        thread = Thread(target=late)
        thread.start()
        assert entered.wait(10)
    left.set()
    thread.join()

    assert [type(error) for error in seen] == [MockRefused]
    assert botocore.endpoint.Endpoint.__dict__["make_request"] is method


class TestDecorator:
    """`mock` around functions."""

    def test_functions(self) -> None:
        """A decorated function runs inside a new mock each time, with and without parentheses."""

        @tavola.mock
        def bare(name: str) -> list[str]:
            client = boto3.client("dynamodb")
            client.create_table(**{**TABLE, "TableName": name})
            return names(client)

        @tavola.mock(region="eu-west-1")
        def called() -> str:
            arn: str = boto3.client("dynamodb").create_table(**TABLE)["TableDescription"]["TableArn"]
            return arn

        assert (bare("First"), bare(name="Second")) == (["First"], ["Second"])
        assert called().startswith("arn:aws:dynamodb:eu-west-1:")
        assert bare.__name__ == "bare"

    def test_recursion(self) -> None:
        """A function that calls itself is in a mock inside the mock."""

        @tavola.mock()
        def down(depth: int) -> list[int]:
            client = boto3.client("dynamodb")
            client.create_table(**TABLE)
            return [len(names(client)), *(down(depth - 1) if depth else [])]

        assert down(2) == [1, 1, 1]

    def test_coroutines(self) -> None:
        """An asynchronous function is mocked until it has been awaited, and each call ends its own mock."""

        @tavola.mock()
        async def made() -> list[str]:
            client = boto3.client("dynamodb")
            await asyncio.sleep(0)
            return names(client)

        async def both() -> list[list[str]]:
            return list(await asyncio.gather(made(), made()))

        assert asyncio.run(both()) == [[], []]
        assert not hasattr(botocore.endpoint.Endpoint.make_request, "__wrapped__")

    def test_generators(self) -> None:
        """A generator, such as a fixture, is inside from its first step to its last."""

        @tavola.mock()
        def fixture() -> Iterator[Any]:
            client = boto3.client("dynamodb")
            yield client
            names(client)

        steps = fixture()
        client = next(steps)
        assert names(client) == []
        assert list(steps) == []
        assert not hasattr(botocore.endpoint.Endpoint.make_request, "__wrapped__")

    def test_only_functions_can_be_decorated(self) -> None:
        """A class or an asynchronous generator would silently be outside, so it is refused."""

        async def generator() -> Any:
            yield 1

        for wrong in (TestDecorator, generator):
            with pytest.raises(MockRefused, match="decorates functions"):
                tavola.mock(wrong)


class TestHandle:
    """The handle that the block receives."""

    def test_the_connection_sees_the_same_tables(self) -> None:
        """Arrange or look by the connection, act by boto3."""
        with tavola.mock() as mocked:
            mocked.connection.call("CreateTable", TABLE)
            assert names(boto3.client("dynamodb")) == ["Orders"]
            assert mocked.engine.call("ListTables", {}) == {"TableNames": ["Orders"]}

    def test_reset(self) -> None:
        """After a reset boto3 and the connection both see no tables."""
        with tavola.mock() as mocked:
            client = boto3.client("dynamodb")
            client.create_table(**TABLE)
            mocked.reset()

            assert names(client) == []
            assert mocked.connection.call("ListTables") == {"TableNames": []}

    def test_an_existing_engine(self) -> None:
        """It is used, not reset, and left open; options that would open another are refused beside it."""
        engine = Engine.open()
        with tavola.mock(engine=engine) as mocked:
            boto3.client("dynamodb").create_table(**TABLE)
            assert mocked.engine is engine
            with pytest.raises(MockRefused, match="delete the tables"):
                mocked.reset()

        assert engine.call("ListTables", {}) == {"TableNames": ["Orders"]}
        with pytest.raises(InvalidConnectionTarget, match="sync does not apply"):
            tavola.mock(engine=engine, sync="off")
        with pytest.raises(InvalidConnectionTarget, match="path does not apply"):
            tavola.mock(engine=engine, path="shop.db")
        engine.close()

    def test_a_file(self, tmp_path: Path) -> None:
        """Items in a file are present in the next block, and only one block opens it at a time."""
        path = tmp_path / "shop.db"
        with tavola.mock(path=path):
            boto3.client("dynamodb").create_table(**TABLE)
            with pytest.raises(StoreInUse), tavola.mock(path=path):
                pytest.fail("two have the file")
        with tavola.mock(path=path) as mocked:
            assert names(boto3.client("dynamodb")) == ["Orders"]
            with pytest.raises(MockRefused):
                mocked.reset()

    def test_settings_reach_the_engine(self) -> None:
        """The test's clock is the engine's; an unknown setting is named."""
        clock = ManualClock(1_000_000_000.0)
        with tavola.mock(clock=clock):
            described = boto3.client("dynamodb").create_table(**TABLE)["TableDescription"]
            assert described["CreationDateTime"].timestamp() == 1_000_000_000.0

        wrong: Any = {"colour": "red"}
        with pytest.raises(InvalidConnectionTarget, match="colour is not a setting"):
            tavola.mock(**wrong)
