"""STS: the ordinary credential flows of an unchanged boto3, against a strict and an open server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import boto3
import msgspec
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tavola.clock import SYSTEM_CLOCK
from tavola.engine import Engine
from tavola.entropy import SYSTEM_ENTROPY, SeededEntropy
from tavola.iam import (
    Account,
    Directory,
    DirectoryFile,
    OidcProvider,
    RoleCredentials,
    RoleRequest,
    add_key,
    add_role,
    add_user,
    issue_session,
    put_inline_policy,
    put_policy,
    put_provider,
    replace_session_key,
    save_directory,
)
from tavola.protocol.arns import account_of_key
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.iam.test_web_identity import ISSUER, make_token, public_jwk, rsa_key
from tests.server.directories import ACCOUNT
from tests.server.raw import Answer, send_request
from tests.server.signing import Signer

REGION = "eu-west-1"
FORM = "application/x-www-form-urlencoded"
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/login.example.com/realms/shop"
SUBJECT = "login.example.com/realms/shop:sub"
TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ROLES = ("Desk", "Tenant", "Next", "Web")


def _arn(role: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{role}"


def _policy(*actions: str, **members: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*", **members}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _trust(principal: dict[str, str], *actions: str, **members: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": principal, "Action": list(actions), **members}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _own(variable: str) -> dict[str, Any]:
    """Return a policy on the items whose partition key is the value of a variable."""
    keys = {"dynamodb:LeadingKeys": [f"${{{variable}}}"]}
    return _policy("dynamodb:GetItem", "dynamodb:PutItem", Condition={"ForAllValues:StringEquals": keys})


@dataclass(frozen=True, slots=True)
class Keys:
    """An access key, and the token of a session."""

    key_id: str
    secret: str
    token: str | None = None


def _make_directory() -> tuple[Directory, Keys]:
    """Return a directory, and the key of alice, who may assume roles and nothing else."""
    chance = SeededEntropy(7)
    directory = replace_session_key(Directory({ACCOUNT: Account()}), chance)
    directory = add_user(directory, ACCOUNT, "alice", chance)
    directory, key = add_key(directory, ACCOUNT, "alice", chance)
    directory = put_inline_policy(directory, ACCOUNT, "user", "alice", "own", _policy("sts:*"))
    account = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    external = {"StringEquals": {"sts:ExternalId": "ext-1"}}
    trusts = {
        "Desk": _trust(account, "sts:AssumeRole"),
        "Tenant": _trust(account, "sts:AssumeRole", "sts:TagSession"),
        "Next": _trust({"AWS": _arn("Desk")}, "sts:AssumeRole", Condition=external),
        "Web": _trust(
            {"Federated": PROVIDER},
            "sts:AssumeRoleWithWebIdentity",
            Condition={"StringEquals": {"login.example.com/realms/shop:aud": "shop"}},
        ),
    }
    policies = {
        "Desk": _policy("dynamodb:*"),
        "Tenant": _own("aws:PrincipalTag/tenant"),
        "Next": _policy("dynamodb:ListTables"),
        "Web": _own(SUBJECT),
    }
    for role in ROLES:
        directory = add_role(directory, ACCOUNT, role, chance, trust=trusts[role])
        directory = put_inline_policy(directory, ACCOUNT, "role", role, "own", policies[role])
    directory = put_policy(directory, ACCOUNT, "ReadOrders", _policy("dynamodb:GetItem"))
    provider = OidcProvider(audiences=("shop",), keys=(public_jwk(rsa_key(), kid="rsa"),))
    return put_provider(directory, ACCOUNT, ISSUER, provider), Keys(key.id, key.secret)


DIRECTORY, ALICE = _make_directory()


@dataclass(frozen=True, slots=True)
class Served:
    """A server, its folder, and boto3's clients of it."""

    endpoint: ServerEndpoint
    folder: Path

    def client(self, service: str, keys: Keys | RoleCredentials | None = ALICE) -> Any:
        """Return boto3's client with some credentials."""
        if isinstance(keys, RoleCredentials):
            keys = Keys(keys.session.key_id, keys.secret, keys.token)
        return boto3.client(
            service,
            endpoint_url=self.endpoint.url,
            region_name=REGION,
            aws_access_key_id=keys and keys.key_id,
            aws_secret_access_key=keys and keys.secret,
            aws_session_token=keys and keys.token,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def assume(self, role: str, keys: Keys = ALICE, **members: Any) -> Keys:
        """Return the credentials of a role from AssumeRole."""
        answer = self.client("sts", keys).assume_role(RoleArn=_arn(role), RoleSessionName="s1", **members)
        return _keys_of(answer)

    def send(self, form: dict[str, str] | bytes, **headers: str) -> Answer:
        """Return the response to an unsigned form."""
        body = form if isinstance(form, bytes) else urlencode(form).encode()
        fields = {"host": "localhost", "content-type": FORM, "content-length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return send_request(self.endpoint, f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body)

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the access log; the server must have stopped."""
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]


def _keys_of(answer: Any) -> Keys:
    issued = answer["Credentials"]
    return Keys(issued["AccessKeyId"], issued["SecretAccessKey"], issued["SessionToken"])


@contextmanager
def _serve(folder: Path, directory: Directory | None = DIRECTORY) -> Iterator[Served]:
    """Serve a directory; without one, an open server."""
    log = AccessLog(folder / "access.log")
    callers = None
    if directory is not None:
        save_directory(folder / "iam.json", directory)
        callers = StrictCallers(DirectoryFile(folder / "iam.json"), SYSTEM_CLOCK)
    with Engine.open() as engine:
        with running(engine, safeguards=Safeguards(callers=callers, log=log)) as endpoint:
            yield Served(endpoint, folder)
        log.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with _serve(tmp_path) as served:
        yield served


@pytest.fixture
def orders(served: Served) -> Served:
    """The server with a table."""
    served.client("dynamodb", served.assume("Desk")).create_table(**TABLE)
    return served


def _code(act: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as refused:
        act()
    return str(refused.value.response["Error"]["Code"])


def _put(served: Served, keys: Keys, pk: str) -> Any:
    return served.client("dynamodb", keys).put_item(TableName="Orders", Item={"pk": {"S": pk}})


# AssumeRole and GetCallerIdentity.


def test_every_caller_learns_who_it_is(served: Served) -> None:
    """A user and a session get their ARN, id and account; no policy is needed for that."""
    user = served.client("sts").get_caller_identity()
    session = served.client("sts", served.assume("Desk")).get_caller_identity()

    assert user["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert user["UserId"].startswith("AIDA")
    assert session["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/Desk/s1"
    assert session["UserId"] == f"{DIRECTORY.accounts[ACCOUNT].roles['Desk'].id}:s1"
    assert user["Account"] == session["Account"] == ACCOUNT


def test_a_role_is_assumed(orders: Served) -> None:
    """I22 over HTTP: AssumeRole answers as AWS does, and DynamoDB's calls have the role's rights and not the user's."""
    answer = orders.client("sts").assume_role(RoleArn=_arn("Desk"), RoleSessionName="s1", DurationSeconds=900)
    keys = _keys_of(answer)

    assert keys.key_id.startswith("ASIA")
    assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/Desk/s1"
    assert 880 < answer["Credentials"]["Expiration"].timestamp() - time.time() <= 900
    assert "PackedPolicySize" not in answer
    assert _put(orders, keys, "o#1")["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert _code(lambda: _put(orders, ALICE, "o#1")) == "AccessDeniedException"


def test_session_tags_reach_policies(orders: Served) -> None:
    """A tag of the session fills `aws:PrincipalTag` in the role's policy: each tenant has its own items."""
    tags = [{"Key": "tenant", "Value": "acme"}]
    keys = orders.assume("Tenant", Tags=tags, TransitiveTagKeys=["tenant"])

    assert _put(orders, keys, "acme")
    assert _code(lambda: _put(orders, keys, "other")) == "AccessDeniedException"
    assert _code(lambda: _put(orders, orders.assume("Tenant"), "acme")) == "AccessDeniedException"


def test_session_policies_narrow(orders: Served) -> None:
    """An inline and a managed session policy: what one of them and the role allow."""
    policy = json.dumps(_policy("dynamodb:ListTables"))
    answer = orders.client("sts").assume_role(
        RoleArn=_arn("Desk"), RoleSessionName="s1", Policy=policy,
        PolicyArns=[{"arn": f"arn:aws:iam::{ACCOUNT}:policy/ReadOrders"}],
    )  # fmt: skip
    keys = _keys_of(answer)

    assert orders.client("dynamodb", keys).list_tables()["TableNames"] == ["Orders"]
    assert "Item" not in orders.client("dynamodb", keys).get_item(TableName="Orders", Key={"pk": {"S": "x"}})
    assert _code(lambda: _put(orders, keys, "o#1")) == "AccessDeniedException"
    assert 0 < answer["PackedPolicySize"] <= 100


def test_roles_are_chained(served: Served) -> None:
    """A session assumes the role that trusts its role, with the external id that is asked for, for an hour at most."""
    desk = served.assume("Desk")
    session = served.assume("Next", desk, ExternalId="ext-1")

    assert served.client("dynamodb", session).list_tables()["TableNames"] == []
    assert _code(lambda: served.assume("Next", desk)) == "AccessDenied"
    assert _code(lambda: served.assume("Next", ExternalId="ext-1")) == "AccessDenied"
    assert (
        _code(lambda: served.assume("Next", desk, ExternalId="ext-1", DurationSeconds=3601))
        == "ValidationError"
    )


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"RoleArn": _arn("None")}, "AccessDenied"),
        ({"RoleArn": _arn("Web")}, "AccessDenied"),
        ({"RoleArn": "arn:aws:iam::1:role/Desk"}, "ValidationError"),
        ({"RoleSessionName": "a b"}, "ValidationError"),
        ({"DurationSeconds": 7200}, "ValidationError"),
        ({"Policy": "{}"}, "MalformedPolicyDocument"),
        ({"Policy": "x" * 2049}, "PackedPolicyTooLarge"),
        ({"Tags": [{"Key": "a", "Value": ""}]}, "AccessDenied"),
        ({"Tags": [{"Key": "a", "Value": ""}, {"Key": "A", "Value": ""}]}, "InvalidParameterValue"),
    ],
)
def test_a_refusal_has_the_code_of_aws(served: Served, members: dict[str, Any], code: str) -> None:
    """Botocore's parser finds AWS's code in each error."""
    request = {"RoleArn": _arn("Desk"), "RoleSessionName": "s1", **members}
    assert _code(lambda: served.client("sts").assume_role(**request)) == code


# The credential flows of SDKs.


@pytest.fixture
def environment(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The process of a user whose variables point at the server, as `tavola env` prints them."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for service in ("DYNAMODB", "STS"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", served.endpoint.url)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(served.folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(served.folder / "credentials"))
    return served


def _write_profiles(served: Served, **profiles: dict[str, str]) -> None:
    text = "".join(
        f"[profile {name}]\n" + "".join(f"{key} = {value}\n" for key, value in members.items())
        for name, members in profiles.items()
    )
    (served.folder / "config").write_text(text)


LASTING = {"aws_access_key_id": ALICE.key_id, "aws_secret_access_key": ALICE.secret}


def _profile_arn(name: str | None) -> str:
    session = boto3.Session(profile_name=name)
    assert session.client("dynamodb").list_tables()["TableNames"] == []
    return str(session.client("sts").get_caller_identity()["Arn"])


def test_a_profile_with_a_source_profile(environment: Served) -> None:
    """A profile with role_arn and source_profile gets the role's credentials by itself."""
    desk = {
        "role_arn": _arn("Desk"),
        "source_profile": "base",
        "role_session_name": "me",
        "duration_seconds": "900",
    }
    _write_profiles(environment, base=LASTING, desk=desk)

    assert _profile_arn("desk") == f"arn:aws:sts::{ACCOUNT}:assumed-role/Desk/me"


def test_a_chain_of_profiles(environment: Served) -> None:
    """A profile whose source is a role, with an external id."""
    desk = {"role_arn": _arn("Desk"), "source_profile": "base"}
    last = {
        "role_arn": _arn("Next"),
        "source_profile": "desk",
        "external_id": "ext-1",
        "role_session_name": "me",
    }
    _write_profiles(environment, base=LASTING, desk=desk, last=last)

    assert _profile_arn("last") == f"arn:aws:sts::{ACCOUNT}:assumed-role/Next/me"


def test_a_profile_with_credentials_of_the_environment(
    environment: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile with credential_source uses the variables of the process."""
    desk = {"role_arn": _arn("Desk"), "credential_source": "Environment", "role_session_name": "me"}
    _write_profiles(environment, desk=desk)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ALICE.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ALICE.secret)

    assert _profile_arn("desk") == f"arn:aws:sts::{ACCOUNT}:assumed-role/Desk/me"


def test_a_web_identity_of_the_environment(environment: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN: a pod's token becomes a session without any access key."""
    desk = environment.client("dynamodb", environment.assume("Desk"))
    desk.create_table(**TABLE)
    (environment.folder / "token").write_text(_valid_token())
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(environment.folder / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", _arn("Web"))
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "pod")
    session = boto3.Session()

    assert (
        session.client("sts").get_caller_identity()["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/Web/pod"
    )
    dynamodb = session.client("dynamodb")
    assert dynamodb.put_item(TableName="Orders", Item={"pk": {"S": "alice"}})
    assert (
        _code(lambda: dynamodb.put_item(TableName="Orders", Item={"pk": {"S": "bob"}}))
        == "AccessDeniedException"
    )


def _valid_token(**claims: Any) -> str:
    return make_token(**{"exp": time.time() + 600, **claims})


def _assume_web(served: Served, token: str, role: str = "Web", **members: Any) -> Any:
    return served.client("sts", None).assume_role_with_web_identity(
        RoleArn=_arn(role), RoleSessionName="pod", WebIdentityToken=token, **members
    )


def test_a_web_identity_is_answered(served: Served) -> None:
    """The response names subject, audience and issuer."""
    answer = _assume_web(served, _valid_token(), DurationSeconds=900)

    assert answer["SubjectFromWebIdentityToken"] == "alice"
    assert (answer["Audience"], answer["Provider"]) == ("shop", ISSUER)
    assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/Web/pod"


@pytest.mark.parametrize(
    ("token", "role", "code"),
    [
        (lambda: _valid_token(exp=time.time() - 1), "Web", "ExpiredTokenException"),
        (lambda: make_token(rsa_key(2), exp=time.time() + 600), "Web", "InvalidIdentityToken"),
        (lambda: "not a token", "Web", "InvalidIdentityToken"),
        (_valid_token, "Desk", "AccessDenied"),
        (_valid_token, "None", "AccessDenied"),
    ],
)
def test_a_web_identity_is_refused(served: Served, token: Callable[[], str], role: str, code: str) -> None:
    """Each invalid token, and each role that does not trust its issuer, has AWS's code."""
    assert _code(lambda: _assume_web(served, token(), role)) == code


# Credentials that must not work.


def _session(
    directory: Directory = DIRECTORY, now_s: float | None = None, role: str = "Desk"
) -> RoleCredentials:
    moment = time.time() if now_s is None else now_s
    request = RoleRequest(_arn(role), "s1")
    return issue_session(directory, request, SYSTEM_ENTROPY, moment)


def _tampered() -> RoleCredentials:
    """Return a session whose token has another character in the middle."""
    issued = _session()
    place = len(issued.token) // 2
    other = "A" if issued.token[place] != "A" else "B"
    return msgspec.structs.replace(issued, token=issued.token[:place] + other + issued.token[place + 1 :])


def _swapped() -> Keys:
    """Return the key of one session with the token of another."""
    first, second = _session(), _session()
    return Keys(first.session.key_id, first.secret, second.token)


@pytest.mark.parametrize(
    ("keys", "of_dynamodb", "of_sts"),
    [
        (lambda: _session(now_s=time.time() - 3601), "ExpiredTokenException", "ExpiredToken"),
        (_tampered, "UnrecognizedClientException", "InvalidClientTokenId"),
        (_swapped, "UnrecognizedClientException", "InvalidClientTokenId"),
        (
            lambda: _session(replace_session_key(DIRECTORY, SYSTEM_ENTROPY)),
            "UnrecognizedClientException",
            "InvalidClientTokenId",
        ),
        (
            lambda: msgspec.structs.replace(_session(), secret="another"),
            "InvalidSignatureException",
            "SignatureDoesNotMatch",
        ),
        (
            lambda: Keys(_session().session.key_id, _session().secret),
            "UnrecognizedClientException",
            "InvalidClientTokenId",
        ),
        (lambda: Keys(ALICE.key_id, "another"), "InvalidSignatureException", "SignatureDoesNotMatch"),
        (
            lambda: Keys(ALICE.key_id, ALICE.secret, _session().token),
            "UnrecognizedClientException",
            "InvalidClientTokenId",
        ),
    ],
)
def test_credentials_that_are_not_valid(
    served: Served, keys: Callable[[], Keys | RoleCredentials], of_dynamodb: str, of_sts: str
) -> None:
    """An expired session, a changed token, one of another server, another secret: refused by both services."""
    bad = keys()

    assert _code(lambda: served.client("dynamodb", bad).list_tables()) == of_dynamodb
    assert _code(lambda: served.client("sts", bad).get_caller_identity()) == of_sts
    assert (
        _code(lambda: served.client("sts", bad).assume_role(RoleArn=_arn("Desk"), RoleSessionName="s1"))
        == of_sts
    )


def test_a_session_survives_a_restart_and_not_its_key(tmp_path: Path) -> None:
    """Another process with the same file knows the session; with another session key none does."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    with _serve(tmp_path / "a") as first:
        keys = first.assume("Desk")
    with _serve(tmp_path / "b") as second:
        assert second.client("dynamodb", keys).list_tables()["TableNames"] == []
    with _serve(tmp_path / "c", replace_session_key(DIRECTORY, SYSTEM_ENTROPY)) as third:
        assert _code(lambda: third.client("dynamodb", keys).list_tables()) == "UnrecognizedClientException"


def test_a_signature_is_for_one_service(served: Served) -> None:
    """A request that is signed for DynamoDB is refused by STS, whoever signed it."""
    body = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"}).encode()
    statuses = []
    for service in ("sts", "dynamodb"):
        signed = Signer(ALICE.key_id, ALICE.secret, time.time(), service=service).sign_form(body)
        fields = {name.decode(): value.decode() for name, value in signed.fields.items()}
        statuses.append(
            served.send(body, **{name: fields[name] for name in ("authorization", "x-amz-date", "host")})
        )

    assert [answer.status for answer in statuses] == [200, 403]
    assert b"scoped to correct service: 'sts'" in statuses[1].body


def test_an_unsigned_call_is_refused(served: Served) -> None:
    """Only AssumeRoleWithWebIdentity needs no signature."""
    for action in ("GetCallerIdentity", "AssumeRole"):
        form = {"Action": action, "Version": "2011-06-15", "RoleArn": _arn("Desk"), "RoleSessionName": "s1"}
        answer = served.send(form)

        assert answer.status == 403
        assert b"<Code>MissingAuthenticationToken</Code>" in answer.body


# The protocol.


def test_a_presigned_url_is_answered(served: Served) -> None:
    """A GET with its signature in the query, as programs pass it on to prove who they are; no other method."""
    url = urlsplit(served.client("sts").generate_presigned_url("get_caller_identity", HttpMethod="GET"))
    head = f"GET /?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n"
    answer = send_request(served.endpoint, head.encode())
    changed = send_request(served.endpoint, head.replace("Signature=", "Signature=0").encode())
    posted = send_request(served.endpoint, head.replace("GET", "POST", 1).encode())

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/xml"
    assert f"<Arn>arn:aws:iam::{ACCOUNT}:user/alice</Arn>".encode() in answer.body
    assert changed.status == 403
    assert posted.status == 400


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"Action": "GetSessionToken", "Version": "2011-06-15"}, "InvalidAction"),
        ({"Action": "GetCallerIdentity", "Version": "2010-01-01"}, "InvalidAction"),
        ({}, "InvalidAction"),
        (b"Action=AssumeRole&Action=GetCallerIdentity", "MalformedQueryString"),
        (b"Action=%ff", "InvalidAction"),
        (b"\xff", "MalformedQueryString"),
        (b"&".join(b"a%d=1" % number for number in range(300)), "MalformedQueryString"),
        (
            {
                "Action": "AssumeRoleWithWebIdentity",
                "RoleArn": _arn("Web"),
                "RoleSessionName": "s1",
                "PolicyArns.1.arn": "arn:aws:iam::aws:policy/AmazonDynamoDBReadOnlyAccess",
            },
            "MalformedQueryString",
        ),
        ({"Action": "x" * 70_000}, "ValidationError"),
        ({"Action": "AssumeRoleWithWebIdentity"}, "ValidationError"),
        (
            {"Action": "AssumeRoleWithWebIdentity", "RoleArn": "<&\x00>", "RoleSessionName": "s1"},
            "ValidationError",
        ),
        (
            {
                "Action": "AssumeRoleWithWebIdentity",
                "RoleArn": _arn("Web"),
                "RoleSessionName": "s1",
                "DurationSeconds": "9e9",
            },
            "ValidationError",
        ),
    ],
)
def test_a_malformed_form_is_refused(served: Served, form: dict[str, str] | bytes, code: str) -> None:
    """Too large, repeated, not UTF-8, unknown: 400 with a document that a parser reads."""
    from xml.etree import ElementTree

    answer = served.send(form)

    error = ElementTree.fromstring(answer.body).find("{*}Error")
    assert error is not None
    assert (answer.status, error.findtext("{*}Code")) == (400, code)


def test_parameters_of_query_and_body_belong_together(served: Served) -> None:
    """A form with a query: neither of them hides a parameter of the other one."""
    body = urlencode({"Action": "AssumeRole", "RoleArn": _arn("Desk"), "RoleSessionName": "s1"}).encode()
    head = (
        f"POST /?Policy=x HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nContent-Length: {len(body)}"
    )
    twice = send_request(served.endpoint, head.replace("Policy", "Action").encode() + b"\r\n\r\n" + body)

    assert b"<Code>MalformedQueryString</Code>" in twice.body
    unsigned = send_request(served.endpoint, head.encode() + b"\r\n\r\n" + body)
    assert b"<Code>MissingAuthenticationToken</Code>" in unsigned.body


def test_other_requests_are_what_they_were(served: Served) -> None:
    """A form with a target of DynamoDB is no request of STS, and the health pages answer."""
    assert (
        served.send(
            {"Action": "GetCallerIdentity"}, **{"x-amz-target": "DynamoDB_20120810.ListTables"}
        ).status
        == 404
    )
    assert send_request(served.endpoint, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").body.startswith(b"healthy")
    foreign = served.send({"Action": "GetCallerIdentity"}, origin="http://evil.example")
    assert foreign.status == 403


def test_a_file_without_a_session_key_says_what_to_do(tmp_path: Path) -> None:
    """A file written by hand: AssumeRole names the command that creates the key."""
    with _serve(tmp_path, Directory(DIRECTORY.accounts)) as served:
        with pytest.raises(ClientError, match="tavola iam revoke-sessions"):
            served.assume("Desk")


# The access log.


def test_calls_are_logged_without_secrets(tmp_path: Path) -> None:
    """I22 over HTTP: each call has its caller, the role, the issued key and the decision; no token, secret, policy or tag."""
    policy = json.dumps(_policy("dynamodb:ListTables", Resource="arn:aws:dynamodb:*:*:table/SecretName"))
    token = _valid_token(sub="subject-1")
    with _serve(tmp_path) as served:
        keys = served.assume("Tenant", Policy=policy, Tags=[{"Key": "tenant", "Value": "secret-value"}])
        served.client("sts", keys).get_caller_identity()
        assert _code(lambda: served.assume("Web")) == "AccessDenied"
        web = _keys_of(_assume_web(served, token))
        assert _code(lambda: _assume_web(served, token, "Desk")) == "AccessDenied"
        assert _code(lambda: _assume_web(served, "x.y.z")) == "InvalidIdentityToken"
        served.send({"Action": "AssumeRole"})
    assumed, asked, denied, web_assumed, _, invalid, unsigned = served.records()

    assert {record["eventSource"] for record in served.records()} == {"sts.amazonaws.com"}
    assert assumed["eventName"] == "AssumeRole"
    assert assumed["userIdentity"]["userName"] == "alice"
    assert assumed["requestParameters"] == {"roleArn": _arn("Tenant"), "roleSessionName": "s1"}
    assert assumed["responseElements"] == {"credentials": {"accessKeyId": keys.key_id}}
    assert assumed["resources"] == [{"type": "AWS::IAM::Role", "ARN": _arn("Tenant")}]
    assert (asked["eventName"], asked["userIdentity"]["accessKeyId"]) == ("GetCallerIdentity", keys.key_id)
    assert asked["userIdentity"]["arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/Tenant/s1"
    assert denied["errorCode"] == "AccessDeniedException"
    assert web_assumed["userIdentity"] == {
        "type": "WebIdentityUser",
        "principalId": f"{PROVIDER}:shop:subject-1",
        "userName": "subject-1",
        "identityProvider": PROVIDER,
    }
    assert (invalid["errorCode"], invalid["userIdentity"]["type"]) == ("InvalidIdentityToken", "Unknown")
    decisions = [record["additionalEventData"]["decision"] for record in served.records()]
    assert decisions == [
        "allowed",
        "allowed",
        "denied",
        "allowed",
        "denied",
        "unauthenticated",
        "unauthenticated",
    ]
    assert unsigned["errorCode"] == "MissingAuthenticationTokenException"
    text = (tmp_path / "access.log").read_text()
    hidden = (
        ALICE.secret,
        keys.secret,
        keys.token,
        web.secret,
        web.token,
        token,
        "SecretName",
        "secret-value",
    )
    assert not any(secret and secret in text for secret in hidden)


# An open server.


def test_an_open_server_gives_every_role(tmp_path: Path) -> None:
    """Programs with role profiles run unchanged: the session has the account of the role and works everywhere."""
    with _serve(tmp_path, None) as served:
        tavola = Keys("tavola", "tavola")
        sts = served.client("sts", tavola)
        answer = sts.assume_role(
            RoleArn="arn:aws:iam::999988887777:role/path/Deploy", RoleSessionName="ci", DurationSeconds=43200
        )
        keys = _keys_of(answer)
        served.client("dynamodb", keys).create_table(**TABLE)
        web = _keys_of(_assume_web(served, "any token"))

        assert sts.get_caller_identity()["Arn"] == "arn:aws:iam::000000000000:user/tavola"
        assert account_of_key(keys.key_id) == "999988887777"
        assert served.client("sts", keys).get_caller_identity() | {"ResponseMetadata": None} == {
            "Arn": "arn:aws:sts::999988887777:assumed-role/Deploy/ci",
            "UserId": "Deploy:ci",
            "Account": "999988887777",
            "ResponseMetadata": None,
        }
        assert served.client("dynamodb", keys).list_tables()["TableNames"] == ["Orders"]
        assert served.client("dynamodb", tavola).list_tables()["TableNames"] == []
        assert served.client("dynamodb", web).list_tables()["TableNames"] == []
        assert (
            _code(lambda: sts.assume_role(RoleArn="arn:aws:iam::1:role/x", RoleSessionName="s1"))
            == "ValidationError"
        )


def test_a_session_of_an_open_server_is_unknown_to_a_strict_one(tmp_path: Path) -> None:
    """What an open server gives to everyone opens nothing where callers are verified."""
    (tmp_path / "open").mkdir()
    (tmp_path / "strict").mkdir()
    with _serve(tmp_path / "open", None) as opened:
        keys = opened.assume("Desk")
    with _serve(tmp_path / "strict") as strict:
        assert _code(lambda: strict.client("dynamodb", keys).list_tables()) == "UnrecognizedClientException"


def test_a_presigned_session_of_an_open_server_knows_itself(tmp_path: Path) -> None:
    """The token may be in the query of a GET, too."""
    with _serve(tmp_path, None) as served:
        keys = served.assume("Desk", Keys("tavola", "tavola"))
        url = urlsplit(
            served.client("sts", keys).generate_presigned_url("get_caller_identity", HttpMethod="GET")
        )
        answer = send_request(
            served.endpoint, f"GET /?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
        )

    assert b"assumed-role/Desk/s1</Arn>" in answer.body
