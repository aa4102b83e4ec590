"""Access: the log's records and a policy's explanation are what the command line prints, word for word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from tavola import connect, connect_async
from tavola.cli.main import app
from tavola.cli.studio_options import access_log_reader, directory_reader
from tavola.engine import Engine
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault
from tavola.server.access_log import AccessLog, secret_path
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tavola.studio.api.access import (
    ExplainRequest,
    LogRequest,
    explain_access,
    list_principals,
    read_log,
)
from tavola.studio.endpoint import encode_response
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import LogQuery, Studio, TablesLocation
from tavola.studio.types import NoParameters

R = TypeVar("R")

TICKETS = {
    "TableName": "Tickets",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "owner")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "ByOwner",
            "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "Tags": [{"Key": "team", "Value": "desk"}],
}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Tickets"
READER = "arn:aws:iam::000000000000:role/reader"
KEY = {"pk": {"S": "ann"}, "sk": {"S": "1"}}


def _policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


DIRECTORY = {
    "tavola_iam": 1,
    "accounts": {
        "000000000000": {
            "policies": {
                "OwnRows": _policy(
                    {
                        "Sid": "Own",
                        "Effect": "Allow",
                        "Action": ["dynamodb:GetItem", "dynamodb:Query"],
                        "Resource": [ARN, f"{ARN}/index/*"],
                        "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["ann"]}},
                    }
                ),
                "NoDeletes": _policy(
                    {"Sid": "Never", "Effect": "Deny", "Action": "dynamodb:Delete*", "Resource": "*"},
                    {
                        "Effect": "Allow",
                        "Action": "dynamodb:*",
                        "Resource": "*",
                        "Condition": {"StringEquals": {"aws:ResourceTag/team": "desk"}},
                    },
                ),
            },
            "users": {"ann": {"policies": ["OwnRows"]}, "bob": {"policies": ["NoDeletes"]}},
            "roles": {
                "reader": {
                    "trust": _policy(
                        {
                            "Effect": "Allow",
                            "Principal": {"AWS": "*"},
                            "Action": "sts:AssumeRole",
                        }
                    )
                }
            },
        }
    },
}


def run(answer: Awaitable[R]) -> R:
    """Wait for an answer."""

    async def waited() -> R:
        return await answer

    return asyncio.run(waited())


@pytest.fixture
def iam(tmp_path: Path) -> Path:
    path = tmp_path / "iam.json"
    path.write_text(json.dumps(DIRECTORY))
    return path


@pytest.fixture
def studio(iam: Path) -> Iterator[Studio]:
    with Engine.open() as engine:
        engine.call("CreateTable", TICKETS)
        yield Studio(
            db=connect_async(engine),
            where=TablesLocation("memory", "memory", "us-east-1"),
            engine=engine,
            directory=directory_reader(iam),
        )


def _printed(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["iam", "explain", *arguments, "--json"])
    response: dict[str, Any] = json.loads(result.stdout)
    return response


@pytest.mark.parametrize(
    ("who", "operation", "request_", "allowed"),
    [
        ("ann", "GetItem", {"TableName": "Tickets", "Key": KEY}, True),
        ("ann", "GetItem", {"TableName": "Tickets", "Key": {**KEY, "pk": {"S": "bob"}}}, False),
        ("reader", "GetItem", {"TableName": "Tickets", "Key": KEY}, False),
        ("root", "DeleteItem", {"TableName": "Tickets", "Key": KEY}, True),
        (
            "ann",
            "Query",
            {
                "TableName": "Tickets",
                "IndexName": "ByOwner",
                "KeyConditionExpression": "#o = :o",
                "ExpressionAttributeNames": {"#o": "owner"},
                "ExpressionAttributeValues": {":o": {"S": "ann"}},
            },
            True,
        ),
        ("ann", "BatchGetItem", {"RequestItems": {"Tickets": {"Keys": [KEY]}}}, False),
    ],
)
def test_an_explanation_is_the_command_lines(
    studio: Studio, iam: Path, who: str, operation: str, request_: dict[str, Any], allowed: bool
) -> None:
    """The key comes from the live table here and from words there; the document is the same."""
    response = run(explain_access(studio, ExplainRequest(who, operation=operation, request=request_)))

    printed = _printed(
        *(who, operation, "--iam", str(iam), "--request", json.dumps(request_)),
        *("--table-key", "pk sk", "--index", "ByOwner=owner"),
    )
    assert {"schema": printed["schema"], **json.loads(encode_response(response))} == printed
    assert response.allowed is allowed
    assert response.accesses


def test_an_action_on_a_resource_is_explained_as_the_command_line_does(studio: Studio, iam: Path) -> None:
    """Stated conditions count; the deciding statement is named by its policy and sid."""
    request = ExplainRequest("bob", action="dynamodb:DeleteItem", resource="Tickets", keys=("ann",))

    response = run(explain_access(studio, request))

    printed = _printed("bob", "dynamodb:DeleteItem", "Tickets", "--iam", str(iam), "--key", "ann")
    assert (
        json.loads(encode_response(response))["accesses"][0]["decided_by"]
        == printed["accesses"][0]["decided_by"]
    )
    assert not response.allowed
    assert response.accesses[0].decided_by is not None
    assert (response.accesses[0].decided_by.policy, response.accesses[0].decided_by.sid) == (
        "policy NoDeletes of user bob",
        "Never",
    )


def test_tags_and_policies_of_the_live_table_are_considered(studio: Studio) -> None:
    """Tags and the resource policy, which the command line takes as options, are read from the table."""
    get = {"TableName": "Tickets", "Key": KEY}

    by_tag = run(explain_access(studio, ExplainRequest("bob", operation="GetItem", request=get)))
    grant = {"Effect": "Allow", "Principal": {"AWS": READER}, "Action": "dynamodb:GetItem", "Resource": ARN}
    assert studio.engine is not None
    studio.engine.call("PutResourcePolicy", {"ResourceArn": ARN, "Policy": json.dumps(_policy(grant))})
    by_resource = run(explain_access(studio, ExplainRequest("reader", operation="GetItem", request=get)))

    assert by_tag.allowed
    assert by_resource.allowed
    assert by_resource.accesses[0].decided_by is not None
    assert by_resource.accesses[0].decided_by.source == "resource"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (ExplainRequest("ann"), "question-missing"),
        (ExplainRequest("ann", operation="Nonsense", request={}), "operation-unknown"),
        (
            ExplainRequest("ann", operation="GetItem", request={"TableName": "Gone", "Key": KEY}),
            "table-missing",
        ),
        (
            ExplainRequest(
                "ann",
                operation="Query",
                request={
                    "TableName": "Tickets",
                    "KeyConditionExpression": "nokey = :v",
                    "ExpressionAttributeValues": {":v": {"S": "x"}},
                },
            ),
            "condition-misfit",
        ),
    ],
)
def test_what_cannot_be_explained_says_why(studio: Studio, asked: ExplainRequest, code: str) -> None:
    """A question without a subject, an operation or table that is not there, a condition on no key."""
    with pytest.raises(RequestRefused) as refused:
        run(explain_access(studio, asked))

    assert refused.value.problem.code == code
    assert refused.value.problem.detail


def test_a_malformed_request_is_refused_as_dynamodb_refuses_it(studio: Studio) -> None:
    """The words are DynamoDB's own."""
    with pytest.raises(Fault):
        run(explain_access(studio, ExplainRequest("ann", operation="GetItem", request={"TableName": 7})))


def test_every_principal_in_the_directory_can_be_explained(studio: Studio) -> None:
    """Users, roles and the root, each with the policies that it has."""
    response = run(list_principals(studio, NoParameters()))

    assert [(each.principal.kind, each.principal.name) for each in response.principals] == [
        ("user", "ann"),
        ("user", "bob"),
        ("session", "reader"),
        ("root", "root"),
    ]
    assert response.principals[0].policies == ("policy OwnRows of user ann",)
    assert "GetItem" in response.operations
    assert "dynamodb:GetItem" in response.actions


def test_the_log_gives_the_records_of_the_command_line_newest_first(tmp_path: Path) -> None:
    """The same records, as they are written; filters and pages as `tavola log` has them."""
    path = tmp_path / "access.log"
    written = AccessLog(path)
    with Engine.open() as engine:
        engine.call("CreateTable", TICKETS)
        with (
            running(engine, safeguards=Safeguards(log=written)) as where,
            connect(where.url, region="us-east-1", account="000000000000") as connection,
        ):
            for place in range(7):
                item = {**KEY, "sk": {"S": str(place)}}
                connection.call("PutItem", {"TableName": "Tickets", "Item": item})
            connection.call("Scan", {"TableName": "Tickets", "IndexName": "ByOwner"})
            connection.call("GetItem", {"TableName": "Tickets", "Key": KEY})
            with pytest.raises(Fault):
                connection.call("GetItem", {"TableName": "Gone", "Key": KEY})
        written.close()
        studio = Studio(
            db=connect_async(engine),
            where=TablesLocation("memory", "", "us-east-1"),
            log=access_log_reader(path),
        )

        def printed(*options: str) -> list[Any]:
            result = CliRunner().invoke(app, ["log", str(path), *options, "--json"])
            return [json.loads(line) for line in result.stdout.splitlines()]

        whole = run(read_log(studio, LogRequest()))
        gets = run(read_log(studio, LogRequest(operation="GetItem", fault="any")))
        page = run(read_log(studio, LogRequest(limit=4)))
        following = run(read_log(studio, LogRequest(limit=4, skip=4, until_s=page.until_s)))

        expected = json.dumps(KEY)
        of_item = run(read_log(studio, LogRequest(item=expected)))
        (hashed,) = of_item.rows[0].record["requestParameters"]["keys"]

        assert [row.record for row in of_item.rows] == printed("--item", expected)[::-1]
        assert [row.operation for row in of_item.rows] == ["GetItem", "PutItem"]
        assert run(read_log(studio, LogRequest(key=hashed))).rows == of_item.rows
        assert [row.record for row in run(read_log(studio, LogRequest(index="ByOwner"))).rows] == printed(
            "--index", "ByOwner"
        )
        assert len(run(read_log(studio, LogRequest(index="ByOwner"))).rows) == 1
        assert [row.record for row in whole.rows] == printed()[::-1]
        assert [row.record for row in gets.rows] == printed("--operation", "GetItem", "--error", "any")[::-1]
        assert [row.record for row in (*page.rows, *following.rows)] == [row.record for row in whole.rows[:8]]
        assert (page.more, whole.more) == (True, False)
        assert whole.rows[0].answer == "ResourceNotFoundException"
        assert (whole.rows[1].places, whole.rows[1].reads) == (("Tickets",), 0.5)
        assert whole.rows[3].writes == 1.0


@pytest.mark.parametrize(
    ("item", "code", "words"),
    [
        ("no json", "log-key-malformed", "is not a key"),
        ('{"pk": "x"}', "log-key-malformed", "is not a key"),
        ('{"pk": {"S": "x"}}', "log-secret-unreadable", "cannot be read"),
    ],
)
def test_an_item_filter_that_cannot_work_is_refused_with_the_reason(
    tmp_path: Path, item: str, code: str, words: str
) -> None:
    """Its key is hashed with the log's secret: without the one or the other there is nothing to look for."""
    path = tmp_path / "access.log"
    path.write_text("")
    if code == "log-key-malformed":
        secret_path(path).write_text("00" * 32)
    with Engine.open() as engine:
        studio = Studio(
            db=connect_async(engine),
            where=TablesLocation("memory", "", "us-east-1"),
            log=access_log_reader(path),
        )
        with pytest.raises(TavolaError) as refused:
            run(read_log(studio, LogRequest(item=item)))

    assert problem_of(refused.value).code == code
    assert words in problem_of(refused.value).detail


def test_lines_of_another_program_are_passed_over(tmp_path: Path) -> None:
    """A file may hold anything: what is no record breaks neither the page nor the command."""
    path = tmp_path / "access.log"
    lines = ["{}", "[1]", '"x"', '{"eventTime": 7}', '{"eventTime": "soon"}', '{"eventTime', ""]
    good = {"eventTime": "2026-11-16T10:00:00Z", "eventName": "GetItem", "requestParameters": None}
    path.write_text("\n".join([*lines, json.dumps(good), '{"requestParameters": [1]}', ""]))
    with Engine.open() as engine:
        studio = Studio(
            db=connect_async(engine),
            where=TablesLocation("memory", "", "us-east-1"),
            log=access_log_reader(path),
        )
        response = run(read_log(studio, LogRequest(until_s=4e9)))

    assert [row.record for row in response.rows] == [good]


def test_paging_stops_at_its_maximum_and_reports_it() -> None:
    """Beyond twenty thousand records no page comes twice: the last one says that there are more."""

    def many(question: LogQuery) -> Iterator[dict[str, Any]]:
        return iter([{"eventTime": "", "eventID": str(place)} for place in range(question.limit)])

    with Engine.open() as engine:
        studio = Studio(db=connect_async(engine), where=TablesLocation("memory", "", "us-east-1"), log=many)
        before = run(read_log(studio, LogRequest(limit=200, skip=19_700)))
        last = run(read_log(studio, LogRequest(limit=200, skip=19_900)))
        beyond = run(read_log(studio, LogRequest(limit=200, skip=30_000)))

    assert (len(before.rows), before.more, before.deep) == (200, True, False)
    assert (len(last.rows), last.more, last.deep) == (100, False, True)
    assert (beyond.rows, beyond.more, beyond.deep) == ((), False, True)


def test_without_a_log_or_a_directory_the_refusal_has_a_remedy(studio: Studio) -> None:
    """Without a log or a directory the error says which option to start with."""
    bare = Studio(db=studio.db, where=studio.where)

    for request in (read_log(bare, LogRequest()), list_principals(bare, NoParameters())):
        with pytest.raises(RequestRefused) as refused:
            run(request)
        assert "tavola" in refused.value.problem.remedy
