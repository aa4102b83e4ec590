"""An unchanged boto3 against a server that verifies every caller and lets policies decide."""

from __future__ import annotations

import gzip
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tavola.clock import SYSTEM_CLOCK, ManualClock
from tavola.engine import Engine
from tavola.iam import DirectoryFile
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards, tls_context
from tests.server.certificates import make_certificates
from tests.server.directories import (
    ACCOUNT,
    OTHER_ACCOUNT,
    READER,
    SESSION,
    WRITER,
    allowing,
    user,
    write_directory,
)
from tests.server.raw import Raw, request, send_request
from tests.server.signing import SignedRequest, Signer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY: dict[str, Any] = {"pk": {"S": "o#1"}}


@dataclass(frozen=True, slots=True)
class Strict:
    """A server, and its clients by their keys."""

    endpoint: ServerEndpoint
    folder: Path
    authority: Path | None

    def client(self, key: tuple[str, ...], **config: Any) -> DynamoDBClient:
        """Return boto3's client with a key, and a token for a session."""
        found: DynamoDBClient = boto3.client(
            "dynamodb",
            endpoint_url=self.endpoint.url,
            region_name="eu-west-1",
            aws_access_key_id=key[0],
            aws_secret_access_key=key[1],
            aws_session_token=key[2] if len(key) > 2 else None,
            verify=None if self.authority is None else str(self.authority),
            config=Config(retries={"total_max_attempts": 1}, **config),
        )
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the access log; the server must have stopped."""
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]


@contextmanager
def _strict(folder: Path, *, tls: bool = False) -> Iterator[Strict]:
    directory = write_directory(folder / "iam.json")
    certificates = make_certificates(folder, "localhost", "127.0.0.1") if tls else None
    log = AccessLog(folder / "access.log")
    safeguards = Safeguards(
        tls=None if certificates is None else tls_context(certificates.certificate, certificates.key),
        callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK),
        log=log,
    )
    with Engine.open() as engine:
        with running(engine, safeguards=safeguards) as endpoint:
            yield Strict(endpoint, folder, None if certificates is None else certificates.authority)
        log.close()


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Strict]:
    with _strict(tmp_path) as served:
        served.client(WRITER).create_table(**TABLE)
        yield served


def _code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def test_callers_prove_themselves_and_policies_decide(strict: Strict) -> None:
    """I22 over HTTP: writers write, readers read, and calls that no policy allows are denied with AWS's message."""
    strict.client(WRITER).put_item(TableName="Orders", Item=KEY)
    assert strict.client(READER).get_item(TableName="Orders", Key=KEY)["Item"] == KEY
    assert strict.client(SESSION).get_item(TableName="Orders", Key=KEY)["Item"] == KEY

    with pytest.raises(ClientError) as refused:
        strict.client(READER).put_item(TableName="Orders", Item=KEY)
    assert _code(refused) == "AccessDeniedException"
    assert refused.value.response["Error"]["Message"] == (
        f"User: arn:aws:iam::{ACCOUNT}:user/reader is not authorized to perform: dynamodb:PutItem on resource: "
        f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/Orders because no identity-based policy allows the "
        f"dynamodb:PutItem action"
    )


def test_the_account_is_the_principals(strict: Strict) -> None:
    """The account is that of the key's owner, whatever the key looks like."""
    assert strict.client(OTHER_ACCOUNT).list_tables()["TableNames"] == []
    described = strict.client(WRITER).describe_table(TableName="Orders")["Table"]
    assert described["TableArn"] == f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/Orders"


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ((WRITER[0], "another secret"), "InvalidSignatureException"),
        (("AKIDNOBODY", "x"), "UnrecognizedClientException"),
        ((ACCOUNT, "x"), "UnrecognizedClientException"),  # digits are no way in
        (SESSION[:2], "UnrecognizedClientException"),
        ((*SESSION[:2], "another token"), "UnrecognizedClientException"),
        ((*WRITER, "a token"), "UnrecognizedClientException"),
    ],
)
def test_a_caller_without_proof_is_refused(strict: Strict, key: tuple[str, ...], code: str) -> None:
    """A wrong secret, an unknown key, a session without its token: AWS's refusal, before execution."""
    with pytest.raises(ClientError) as refused:
        strict.client(key).list_tables()

    assert _code(refused) == code


def test_a_bare_request_is_refused(strict: Strict) -> None:
    """Without a signature only the health check responds."""
    answer = send_request(strict.endpoint, request("ListTables", b"{}"))
    assert (answer.status, json.loads(answer.body)["__type"]) == (
        400,
        "com.amazon.coral.service#MissingAuthenticationTokenException",
    )
    assert send_request(strict.endpoint, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").status == 200


def test_json_is_refused_before_the_signature(strict: Strict) -> None:
    """AWS looks at the JSON, then at the target, then at the signature."""
    broken = send_request(strict.endpoint, request("ListTables", b"{"))
    assert json.loads(broken.body)["__type"].endswith("#SerializationException")
    unknown = send_request(strict.endpoint, request("Nothing", b"{}"))
    assert json.loads(unknown.body)["__type"].endswith("#UnknownOperationException")


def test_a_body_is_not_decoded_for_a_caller_without_credentials(strict: Strict) -> None:
    """A content coding, valid or not, is looked at only after the signature, which is over the body as sent."""
    for coding, body in (
        ("gzip", gzip.compress(b"{}")),
        ("gzip", gzip.compress(b"{")),
        ("gzip", b"junk"),
        ("aws-chunked", b"2;chunk-signature=0\r\n{}\r\n"),
    ):
        answer = send_request(strict.endpoint, request("ListTables", body, Content_Encoding=coding))
        assert json.loads(answer.body)["__type"].endswith("#MissingAuthenticationTokenException")


def test_a_body_is_not_parsed_for_a_caller_without_credentials(strict: Strict) -> None:
    """An empty body and a large one are refused for the missing signature, so no one can make the server parse."""
    for body in (b"", b"{" * 1024 * 1024):
        answer = send_request(strict.endpoint, request("ListTables", body))
        assert json.loads(answer.body)["__type"].endswith("#MissingAuthenticationTokenException")


def _sent(signed: SignedRequest, **changed: str) -> bytes:
    fields = {name.decode(): value.decode() for name, value in signed.fields.items()} | changed
    fields["content-length"] = str(len(signed.body))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {signed.url.decode()} HTTP/1.1\r\n{head}\r\n".encode() + signed.body


def test_a_signature_may_be_in_the_query(strict: Strict) -> None:
    """A URL that carries its signature is a request like another; together with a header it is refused."""
    signed = Signer(*WRITER, SYSTEM_CLOCK.now(), region="eu-west-1", in_query=True).sign(b"{}")
    answer = send_request(strict.endpoint, _sent(signed))
    assert (answer.status, json.loads(answer.body)) == (200, {"TableNames": ["Orders"]})

    both = send_request(strict.endpoint, _sent(signed, authorization="AWS4-HMAC-SHA256 x"))
    assert "Found both" in json.loads(both.body)["message"]
    absolute = send_request(
        strict.endpoint, _sent(signed).replace(b"POST /", b"POST http://localhost:8000/", 1)
    )
    assert absolute.status == 200


def test_a_tampered_body_is_refused_on_a_connection_that_goes_on(strict: Strict) -> None:
    """One bad request between two good ones does not affect them."""
    signed = Signer(*WRITER, SYSTEM_CLOCK.now(), region="eu-west-1").sign(b"{}")
    with Raw(strict.endpoint) as raw:
        statuses = []
        for body in (b"{}", b"[]", b"{}"):
            raw.send(_sent(signed).replace(b"\r\n\r\n{}", b"\r\n\r\n" + body))
            statuses.append(raw.answer().status)

    assert statuses == [200, 400, 200]


def test_any_name_reaches_a_server_that_verifies(strict: Strict) -> None:
    """The Host check is for servers that believe everyone; a page's Origin is refused all the same."""
    signed = Signer(*WRITER, SYSTEM_CLOCK.now(), region="eu-west-1", headers={"Host": "db.example:1"}).sign(
        b"{}"
    )
    assert send_request(strict.endpoint, _sent(signed)).status == 200

    assert send_request(strict.endpoint, _sent(signed, origin="http://db.example:1")).status == 403


def test_every_call_is_noted_with_its_caller(tmp_path: Path) -> None:
    """I22 over HTTP: the log has verified callers, unverified ones, and the policy that denied a call."""
    with _strict(tmp_path) as served:
        served.client(WRITER).create_table(**TABLE)
        served.client(SESSION).get_item(TableName="Orders", Key=KEY)
        for key in (READER, (READER[0], "wrong")):
            with pytest.raises(ClientError):
                served.client(key).scan(TableName="Orders")
    created, got, denied, unproved = served.records()

    assert created["userIdentity"]["userName"] == "writer"
    assert got["userIdentity"]["type"] == "AssumedRole"
    assert got["userIdentity"]["arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/batch/nightly"
    assert got["userIdentity"]["sessionContext"]["sessionIssuer"]["userName"] == "batch"
    assert (got["sourceIPAddress"], got["recipientAccountId"]) == ("127.0.0.1", ACCOUNT)
    assert "Botocore" in got["userAgent"]
    decisions = [record["additionalEventData"]["decision"] for record in (created, got, denied, unproved)]
    assert decisions == ["allowed", "allowed", "denied", "unauthenticated"]
    assert denied["errorCode"] == "AccessDeniedException"
    assert denied["additionalEventData"]["decidedBy"] == "no identity-based policy"
    assert (unproved["userIdentity"]["type"], unproved["userIdentity"]["accessKeyId"]) == (
        "Unknown",
        READER[0],
    )
    text = (tmp_path / "access.log").read_text()
    assert not any(secret in text for secret in (READER[1], WRITER[1], SESSION[1], SESSION[2], "o#1"))


def test_denied_statements_are_noted_with_their_tables(tmp_path: Path) -> None:
    """A denied statement names its table; for a partly denied batch, the record has the count."""
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["dynamodb:PartiQLSelect", "dynamodb:PartiQLInsert"],
        "Resource": "*",
    }
    with _strict(tmp_path) as served:
        client = served.client(WRITER)
        for name in ("Orders", "Closed"):
            client.create_table(**{**TABLE, "TableName": name})
        client.put_resource_policy(
            ResourceArn=f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/Closed",
            Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}),
        )
        with pytest.raises(ClientError) as refused:
            client.execute_statement(Statement="SELECT * FROM Closed WHERE pk = 'o#1'")
        some, none, every = (
            client.batch_execute_statement(
                Statements=[{"Statement": f"SELECT * FROM {name} WHERE pk = 'o#1'"} for name in names]
            )["Responses"]
            for names in (("Closed", "Orders", "Closed"), ("Orders",), ("Closed",))
        )
    alone, *batches = served.records()[-4:]

    assert _code(refused) == "AccessDeniedException"
    assert alone["requestParameters"] == {"tableName": "Closed"}
    assert [("Error" in each) for each in (*some, *none, *every)] == [True, False, True, False, True]
    result = [record["additionalEventData"] for record in batches]
    assert [each["decision"] for each in result] == ["denied", "allowed", "denied"]
    assert [each.get("deniedStatements") for each in result] == [2, None, 1]
    assert [table["tableName"] for table in batches[0]["requestParameters"]["tables"]] == ["Orders", "Closed"]
    assert [each["table"] for each in result[0]["consumed"]] == ["Orders"]
    assert batches[2]["requestParameters"] == {"tableName": "Closed"}


def test_a_server_with_a_certificate_uses_tls(tmp_path: Path) -> None:
    """Boto3 trusts the configured authority; plain HTTP is not answered."""
    with _strict(tmp_path, tls=True) as served:
        assert served.endpoint.url.startswith("https://")
        client = served.client(WRITER)
        client.create_table(**TABLE)
        client.put_item(TableName="Orders", Item={**KEY, "large": {"S": "x" * 300_000}})
        assert len(client.get_item(TableName="Orders", Key=KEY)["Item"]["large"]["S"]) == 300_000
        with Raw(served.endpoint) as raw:
            raw.send(request("ListTables", b"{}"))
            assert raw.closed()
        assert client.list_tables()["TableNames"] == ["Orders"]
        client.close()


# A directory that changes under the server.


def _callers(path: Path, clock: ManualClock) -> StrictCallers:
    return StrictCallers(DirectoryFile(path, clock), clock)


def _lets_in(callers: StrictCallers, key: tuple[str, str], clock: ManualClock) -> bool:
    from tavola.protocol.faults import Fault
    from tavola.server.callers import Peer

    signed = Signer(*key, clock.now()).sign()
    try:
        callers.admit(signed.url, signed.fields, signed.body, Peer())
    except Fault:
        return False
    return True


def test_a_change_of_the_directory_takes_effect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A removed key is refused within a second, an added one is accepted; the server continues."""
    clock = ManualClock(1_700_000_000)
    path = write_directory(tmp_path / "iam.json")
    callers = _callers(path, clock)
    new = ("AKIDNEW", "new/secret")
    assert _lets_in(callers, READER, clock)
    assert not _lets_in(callers, new, clock)

    write_directory(path, reader={}, newcomer=user(new, allowing("*")))
    clock.advance(1.5)
    callers.refresh()
    assert not _lets_in(callers, READER, clock)
    assert _lets_in(callers, new, clock)


def test_a_broken_directory_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable file leaves the last good one in force, and the server logs the reason once."""
    caplog.set_level(logging.INFO, "tavola.server")
    clock = ManualClock(1_700_000_000)
    path = write_directory(tmp_path / "iam.json")
    callers = _callers(path, clock)
    for content in ('{"tavola_iam": 1, "accounts": {"x": {}}}', "{"):
        path.write_text(content)
        for _ in range(3):
            clock.advance(1.5)
            callers.refresh()
        assert _lets_in(callers, READER, clock)
    assert sum("were not reloaded" in record.message for record in caplog.records) == 2

    os.remove(path)
    clock.advance(1.5)
    callers.refresh()
    assert _lets_in(callers, READER, clock)
    write_directory(path)
    clock.advance(1.5)
    callers.refresh()
    assert "Reloaded the users" in caplog.text
