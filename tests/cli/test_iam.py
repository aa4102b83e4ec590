"""`tavola iam`."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.iam import load_directory
from tests.iam.test_web_identity import ec_key, public_jwk, public_pem, rsa_key

OWN: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "Own",
            "Effect": "Allow",
            "Action": ["dynamodb:GetItem", "dynamodb:Query"],
            "Resource": "arn:aws:dynamodb:*:*:table/Tickets",
            "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}},
        }
    ],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAVOLA_IAM", raising=False)
    return tmp_path


def _run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["iam", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def _json(*arguments: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_run(*arguments, "--json", code=code))
    return found


@pytest.fixture
def alice(folder: Path) -> Path:
    """A file with a user alice, who may read her own tickets."""
    _run("init")
    _run("add-user", "alice")
    (folder / "own.json").write_text(json.dumps(OWN))
    _run("attach", "user/alice", "Own", "--file", "own.json")
    return folder / "iam.json"


def test_a_new_file_has_a_user_who_may_do_everything(folder: Path) -> None:
    """`init` prints what SDKs need, keeps the file from others' eyes, and makes none where one is."""
    printed = _run("init")
    second = CliRunner().invoke(app, ["iam", "init"])

    key, secret = (line.partition("=")[2] for line in printed.splitlines())
    credential = load_directory(folder / "iam.json").credential(key)
    assert credential is not None
    assert credential.secret == secret
    assert stat.S_IMODE((folder / "iam.json").stat().st_mode) == 0o600
    assert second.exit_code == Exit.CONFLICT
    assert "exists already" in second.stderr
    assert _run("explain", "admin", "dynamodb:DeleteTable", "Orders").startswith("ALLOWED")


def test_a_file_may_be_named(folder: Path) -> None:
    """By its place, by --iam or by the environment; without one a person is told what to do."""
    _run("init", "people.json", "--account", "111122223333")
    _run("add-user", "bob", "--iam", "people.json")
    named = CliRunner().invoke(app, ["iam", "list"], env={"TAVOLA_IAM": "people.json"})
    nowhere = CliRunner().invoke(app, ["iam", "list"])

    assert "111122223333  user  bob" in named.stdout
    assert nowhere.exit_code == Exit.NOT_FOUND
    assert "Create one with `tavola iam init`" in nowhere.stderr


def test_users_roles_and_keys_are_added(alice: Path) -> None:
    """Each command changes one thing, and `list` shows all of them and no secret."""
    _run("add-group", "Support")
    _run("attach", "group/Support", "AmazonDynamoDBReadOnlyAccess")
    made = _json("add-user", "bob", "--group", "Support", "--tag", "team=red", "--access-key")
    _run("add-role", "Agent", "--tag", "team=blue")
    _run("attach", "role/Agent", "narrow", "--file", "own.json", "--inline")
    _run("attach", "user/bob", "AdministratorAccess")
    before = alice.read_text()
    session = _json(
        "assume-role", "Agent", "--by", "bob", "--session-name", "s1", "--duration-seconds", "900"
    )
    more = _json("add-key", "alice")
    listed = _run("list")

    assert made["access_key_id"].startswith("AKIA")
    assert set(session) == {
        *("schema", "access_key_id", "secret_access_key", "session_token", "expires_at_s")
    }
    for shown in (
        "Support",
        "bob",
        "Agent",
        "narrow (inline)",
        "team=red",
        more["access_key_id"],
    ):
        assert shown in listed
    for secret in (made["secret_access_key"], more["secret_access_key"]):
        assert secret not in listed
        assert secret in alice.read_text()
    assert session["session_token"] not in alice.read_text()
    assert json.loads(before)["session_key"] not in listed
    entries = _json("list")["entries"]
    assert {entry["kind"] for entry in entries} == {"user", "group", "role", "policy"}


def test_a_role_is_assumed_as_a_user_would(alice: Path) -> None:
    """With --by, trust and the user's policies count and the error says which is missing; without, the owner acts."""
    _run("add-role", "Agent", "--max-session-duration", "7200")
    denied = CliRunner().invoke(app, ["iam", "assume-role", "Agent", "--by", "alice"])
    _run("assume-role", "Agent", "--by", "admin", "--duration-seconds", "7200")
    long = CliRunner().invoke(
        app, ["iam", "assume-role", "Agent", "--by", "admin", "--duration-seconds", "7201"]
    )
    before = alice.read_bytes()
    session = _json("assume-role", "Agent", "--tag", "team=red", "--duration-seconds", "43200")
    credential = load_directory(alice).credential(session["access_key_id"], session["session_token"].encode())

    assert denied.exit_code == Exit.FAILED
    assert "no identity-based policy allows it" in denied.stderr
    assert "MaxSessionDuration" in long.stderr
    assert alice.read_bytes() == before  # a session is stored nowhere
    assert credential is not None
    assert credential.secret == session["secret_access_key"]
    assert credential.principal.condition_keys()["aws:principaltag/team"] == ("red",)


def test_sessions_are_revoked(alice: Path) -> None:
    """A new session key ends all sessions; a file without one gets it with the first session."""
    _run("add-role", "Agent")
    document = json.loads(alice.read_text())
    del document["session_key"]
    alice.write_text(json.dumps(document))
    session = _json("assume-role", "Agent")
    key, token = session["access_key_id"], session["session_token"].encode()

    assert load_directory(alice).credential(key, token) is not None
    _run("revoke-sessions")
    assert load_directory(alice).credential(key, token) is None


def test_issuers_of_web_identities_are_added(alice: Path) -> None:
    """From PEM, JWK and JWK set; a private key is refused; listed with its audiences, and removed by its URL."""
    issuer = "https://login.example.com"
    public = {"kid": "k1", **public_jwk(ec_key())}
    for name, text in (
        ("key.pem", public_pem(rsa_key())),
        ("key.json", json.dumps(public)),
        ("set.json", json.dumps({"keys": [public]})),
        ("private.pem", rsa_key().as_pem(private=True).decode()),
        ("neither", "text"),
    ):
        (alice.parent / name).write_text(text)
    files = ("--key", "key.pem", "--key", "key.json", "--key", "set.json")
    _run("add-provider", issuer, "--audience", "shop", "--audience", "desk", *files)
    stored = load_directory(alice).accounts["000000000000"].oidc_providers[issuer]

    assert (stored.audiences, len(stored.keys)) == (("shop", "desk"), 3)
    assert "provider  https://login.example.com" in _run("list")
    assert "audience shop, audience desk" in _run("list")
    for name, said in (("private.pem", "a private key"), ("neither", "neither PEM nor JSON")):
        refused = CliRunner().invoke(app, ["iam", "add-provider", issuer, "--audience", "a", "--key", name])
        assert refused.exit_code != 0
        assert said in refused.stderr
    _run("remove", "provider", issuer)
    assert issuer not in _run("list")


def test_what_was_added_is_taken_away(alice: Path) -> None:
    """Detached, a policy stays for others; removed, it is gone."""
    _run("detach", "user/alice", "Own")
    _run("remove", "policy", "Own")
    _run("remove", "user", "alice")

    assert list(load_directory(alice).accounts["000000000000"].users) == ["admin"]
    assert CliRunner().invoke(app, ["iam", "remove", "user", "alice"]).exit_code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add-user", "alice"), Exit.CONFLICT, "already has a user alice"),
        (("add-key", "nobody"), Exit.NOT_FOUND, "has no user nobody"),
        (("attach", "alice", "Own"), Exit.USAGE, "Use user/NAME, group/NAME or role/NAME."),
        (("attach", "user/alice", "x", "--inline"), Exit.USAGE, "Name the policy document with --file."),
        (("attach", "user/alice", "Else"), Exit.FAILED, "policy Else does not exist"),
        (("attach", "user/alice", "x", "--file", "none.json"), Exit.NOT_FOUND, "none.json cannot be read"),
        (
            ("attach", "user/alice", "x", "--file", "none.json"),
            Exit.NOT_FOUND,
            "readable file with --file.",
        ),
        (
            ("explain", "alice", "GetItem", "--request", "@none.json"),
            Exit.NOT_FOUND,
            "readable file with --request @FILE.",
        ),
        (
            ("explain", "alice", "GetItem", "T", "--resource-policy", "none.json"),
            Exit.NOT_FOUND,
            "readable file with --resource-policy.",
        ),
        (
            ("attach", "user/alice", "Bad", "--file", "bad.json"),
            Exit.FAILED,
            "Statement[0].Condition.StringLik",
        ),
        (("assume-role", "None"), Exit.NOT_FOUND, "has no role None"),
        (
            ("add-user", "bob", "--account", "111122223333"),
            Exit.NOT_FOUND,
            "account 111122223333 does not exist",
        ),
        (("explain", "nobody", "dynamodb:GetItem", "Tickets"), Exit.NOT_FOUND, "no user or role 'nobody'"),
        (("explain", "alice", "dynamodb:GetItem"), Exit.USAGE, "Exactly one of RESOURCE and --request"),
        (("explain", "alice", "GetItem", "--request", "{"), Exit.FAILED, "--request is not valid JSON"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    alice: Path, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    """A refusal says what to do, has its exit code, and leaves the file as it was."""
    bad = {"Statement": [{**OWN["Statement"][0], "Condition": {"StringLik": {}}}]}
    (alice.parent / "bad.json").write_text(json.dumps(bad))
    before = alice.read_bytes()

    result = CliRunner().invoke(app, ["iam", *arguments])

    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert alice.read_bytes() == before


def test_a_mistyped_action_is_told(alice: Path) -> None:
    """AWS takes an action that it does not have, and so does this; a person is warned."""
    (alice.parent / "typo.json").write_text(json.dumps(OWN).replace("GetItem", "GetItm"))

    result = CliRunner().invoke(app, ["iam", "attach", "user/alice", "Typo", "--file", "typo.json"])

    assert result.exit_code == 0
    assert "names the action dynamodb:GetItm, which DynamoDB does not have" in result.stderr


def test_a_mistyped_key_or_variable_is_told(alice: Path) -> None:
    """AWS takes these too; a person is warned when one is attached and when a decision is explained."""
    policy = {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Action": "dynamodb:GetItem",
            "Resource": "arn:aws:dynamodb:*:*:table/${aws:usrname}",
            "Condition": {
                "StringEquals": {"aws:PrincipalTg/team": "a", "aws:SourceIp": "::1", "s3:prefix": "b"}
            },
        },
    }
    (alice.parent / "typo.json").write_text(json.dumps(policy))

    attached = CliRunner().invoke(app, ["iam", "attach", "user/alice", "Typo", "--file", "typo.json"])
    explained = CliRunner().invoke(app, ["iam", "explain", "alice", "dynamodb:GetItme", "Tickets"])

    assert attached.exit_code == 0
    for told in (attached.stderr, explained.stderr):
        assert "names the condition key aws:usrname" in told
        assert "Did you mean aws:username?" in told
        assert "Did you mean aws:PrincipalTag/team?" in told
        assert told.count("condition key") == 2
    assert "no action dynamodb:GetItme. Did you mean dynamodb:GetItem?" in explained.stderr


def test_an_explanation_says_which_statement_decided(alice: Path) -> None:
    """By arguments: allowed with exit code 0, denied with 1, each with every statement and what became of it."""
    allowed = _run("explain", "alice", "GetItem", "Tickets", "--key", "alice")
    denied = _json("explain", "alice", "dynamodb:GetItem", "Tickets", "--key", "bob", code=Exit.FAILED)

    assert allowed.splitlines() == [
        "ALLOWED  dynamodb:GetItem on arn:aws:dynamodb:us-east-1:000000000000:table/Tickets",
        "  allowed by policy Own of user alice, Statement[0] (Own)",
        "    Allow  policy Own of user alice, Statement[0] (Own): decided",
    ]
    assert denied["allowed"] is False
    (access,) = denied["accesses"]
    assert access["decided_by"] is None
    assert access["considered"][0]["condition"] == (
        "Statement[0].Condition.ForAllValues:StringEquals.dynamodb:LeadingKeys"
    )


def test_a_request_is_explained_access_by_access(alice: Path) -> None:
    """From a request's JSON, with the table's key in words: as the server would decide it."""
    query = {
        "TableName": "Tickets",
        "KeyConditionExpression": "pk = :p AND sk > :s",
        "ExpressionAttributeValues": {":p": {"S": "alice"}, ":s": {"N": "7"}},
    }
    (alice.parent / "query.json").write_text(json.dumps(query))
    asked = ("explain", "alice", "Query", "--request")

    by_file = _run(*asked, "@query.json", "--table-key", "pk sk:N")
    unknown = CliRunner().invoke(app, ["iam", *asked, json.dumps(query)])
    unfit = CliRunner().invoke(app, ["iam", *asked, json.dumps(query), "--table-key", "pk sk"])
    on_index = {**query, "IndexName": "ByDay", "KeyConditionExpression": "a = :p AND b = :s"}
    index = _json(*asked, json.dumps(on_index), "--table-key", "pk", "--index", "ByDay=a b:N /", code=1)

    assert by_file.startswith("ALLOWED  dynamodb:Query")
    assert unknown.exit_code == unfit.exit_code == Exit.USAGE
    assert "Describe the key with --table-key" in unknown.stderr
    assert "does not match the described key" in unfit.stderr
    assert index["accesses"][0]["resource"].endswith("table/Tickets/index/ByDay")


def test_a_resource_policy_and_circumstances_are_taken_into_account(alice: Path) -> None:
    """What would stand on the table, and where the request would come from."""
    grant = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::000000000000:user/alice"},
        "Action": "dynamodb:PutItem",
        "Resource": "*",
        "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "Bool": {"aws:SecureTransport": "true"}},
    }
    (alice.parent / "table.json").write_text(json.dumps({"Version": "2012-10-17", "Statement": [grant]}))
    asked = ("explain", "alice", "dynamodb:PutItem", "Tickets", "--resource-policy", "table.json")

    assert "allowed by resource policy, Statement[0]" in _run(*asked, "--source-ip", "10.1.1.1")
    _run(*asked, "--source-ip", "10.1.1.1", "--plain", code=1)
    _run(*asked, "--source-ip", "11.1.1.1", code=1)
    _run(*asked, "--context", "aws:SourceIp=10.9.9.9")
