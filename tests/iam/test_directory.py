"""The directory: a JSON document and back, checked with places."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tavola.iam import (
    Credential,
    Directory,
    InvalidDirectory,
    NotInDirectory,
    RoleSession,
    SessionKeyMissing,
    parse_directory,
    render_directory,
)
from tests.iam.tables import ACCOUNT, OTHER, policy

HERE = f"accounts.{ACCOUNT}"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}]}
KEY = {"id": "AKIA1", "secret": "s"}
SESSION_KEY = "5e" * 32
SESSION = RoleSession(
    ACCOUNT, "Agent", "AROA1", "s1", "ASIA1", 1, 2, policy=json.dumps(policy({})), tags=(("case", "7"),)
)
FULL: dict[str, Any] = {
    "policies": {"Read": policy({"Action": "dynamodb:Get*"})},
    "groups": {"Support": {"policies": ["Read"]}},
    "users": {
        "alice": {
            "groups": ["Support"],
            "policies": ["AmazonDynamoDBReadOnlyAccess"],
            "inline": {"own": policy({})},
            "boundary": "Read",
            "tags": {"team": "red"},
            "keys": [KEY],
        }
    },
    "roles": {"Agent": {"id": "AROA1", "trust": TRUST, "policies": ["Read"], "tags": {"team": "blue"}}},
    "root_keys": [{"id": "AKIA2", "secret": "s"}],
}


def _document(**account: Any) -> str:
    return json.dumps({"tavola_iam": 1, "session_key": SESSION_KEY, "accounts": {ACCOUNT: account}})


def _opened(directory: Directory, session: RoleSession = SESSION, key_id: str = "ASIA1") -> Credential | None:
    """Return the credential of a session's token."""
    return directory.credential(key_id, directory.signer.issue(session).token.encode())


def test_a_directory_survives_its_document() -> None:
    """What is written is read back as it was."""
    directory = parse_directory(_document(**FULL))
    text = render_directory(directory)

    assert parse_directory(text).accounts == directory.accounts
    assert parse_directory(text).session_key == SESSION_KEY
    assert render_directory(parse_directory(text)) == text


def test_every_key_has_its_principal() -> None:
    """A user's key, root's and a session's; a session has the tags of its role and its own."""
    directory = parse_directory(_document(**FULL))

    user, root, session = directory.credential("AKIA1"), directory.credential("AKIA2"), _opened(directory)
    assert user is not None
    assert root is not None
    assert session is not None
    assert user.principal.arn == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert root.principal.arn == f"arn:aws:iam::{ACCOUNT}:root"
    assert session.principal.arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s1"
    assert session.expires_at_s == 2
    assert session.principal.condition_keys()["aws:tokenissuetime"] == ("1",)
    assert session.principal.condition_keys()["aws:principaltag/case"] == ("7",)
    assert session.principal.condition_keys()["aws:principalarn"] == (f"arn:aws:iam::{ACCOUNT}:role/Agent",)
    assert user.principal.condition_keys()["aws:username"] == ("alice",)
    assert directory.credential("AKIA3") is None


def test_tags_of_a_session_replace_those_of_its_role() -> None:
    """A session tag hides the role's tag of the same name, in whatever case it is written."""
    directory = parse_directory(_document(**FULL))
    session = _opened(directory, msgspec.structs.replace(SESSION, tags=(("Team", "green"),)))
    assert session is not None

    assert session.principal.condition_keys()["aws:principaltag/team"] == ("green",)


def test_a_session_does_not_outlive_its_role() -> None:
    """A removed role, another role of the same name, another key id: the token opens nothing."""
    directory = parse_directory(_document(**FULL))
    again = {"Agent": {**FULL["roles"]["Agent"], "id": "AROA2"}}

    assert _opened(directory) is not None
    assert _opened(directory, key_id="ASIA2") is None
    assert _opened(parse_directory(_document(**{**FULL, "roles": {}}))) is None
    assert _opened(parse_directory(_document(**{**FULL, "roles": again}))) is None
    assert _opened(directory, msgspec.structs.replace(SESSION, account=OTHER)) is None


def test_without_a_session_key_no_role_is_assumed() -> None:
    """A file written by hand may have no session key; the error names the command that creates one."""
    directory = parse_directory(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: FULL}}))

    assert directory.credential("ASIA1", b"token") is None
    assert "session_key" not in render_directory(directory)
    with pytest.raises(SessionKeyMissing, match="tavola iam revoke-sessions"):
        _ = directory.signer


def test_everything_that_applies_is_found() -> None:
    """A user has its own policies, attached and inline, and those of its groups; bounds stand apart."""
    directory = parse_directory(_document(**FULL))
    session = _opened(directory)
    assert session is not None

    of_user = directory.policies_of(directory.user(ACCOUNT, "alice"))
    of_session = directory.policies_of(session.principal)

    assert [named.name for named in of_user.identity] == [
        "policy AmazonDynamoDBReadOnlyAccess of user alice",
        "inline policy own of user alice",
        "policy Read of group Support",
    ]
    assert of_user.boundary is not None
    assert of_user.boundary.name == "boundary Read"
    assert [named.name for named in of_session.identity] == ["policy Read of role Agent"]
    assert of_session.session is not None
    assert [named.name for named in of_session.session] == ["session policy"]
    assert directory.policies_of(directory.root(ACCOUNT)).identity == ()


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("{", "not valid JSON", "line 1"),
        ("[]", "expected an object with the members", "the document"),
        ('{"tavola_iam": 2, "accounts": {}}', "reads format 1", "tavola_iam"),
        ('{"tavola_iam": 1, "accounts": []}', "an object of accounts by id", "accounts"),
        ('{"tavola_iam": 1, "accounts": {"12": {}}}', "12 digits", "accounts.12"),
        ('{"tavola_iam": 1, "accounts": {"1": 1}}', "expected an object", "accounts.1"),
        ('{"tavola_iam": 1, "accounts": {"1": {}, "1": {}}}', "twice", "accounts"),
        (_document(persons={}), "unknown member 'persons'", HERE),
        (_document(users=[]), "an object, by name", f"{HERE}.users"),
        (_document(users={"a b": {}}), "is not a valid name", f"{HERE}.users"),
        (_document(users={"a": {"age": 3}}), "unknown member 'age'", f"{HERE}.users.a"),
        (
            _document(users={"a": {"keys": [{"id": 1}]}}),
            "expected text, not a number",
            f"{HERE}.users.a.keys[0].id",
        ),
        (_document(users={"a": {"keys": [{"id": "", "secret": ""}]}}), "an id", f"{HERE}.users.a.keys"),
        (
            _document(users={"a": {"policies": ["Nothing"]}}),
            "policy Nothing does not exist",
            f"{HERE}.users.a.policies",
        ),
        (
            _document(users={"a": {"boundary": "Nothing"}}),
            "policy Nothing does not exist",
            f"{HERE}.users.a.boundary",
        ),
        (
            _document(users={"a": {"groups": ["Nobody"]}}),
            "group Nobody does not exist",
            f"{HERE}.users.a.groups",
        ),
        (_document(users={"a": {"tags": {"x": "1", "X": "2"}}}), "only by case", f"{HERE}.users.a.tags"),
        (
            _document(users={"a": {"keys": [KEY]}, "b": {"keys": [KEY]}}),
            "occurs twice",
            f"{HERE}.users.b.keys",
        ),
        (_document(roles={"R": {}}), "member 'trust' is missing", f"{HERE}.roles.R"),
        (
            _document(roles={"R": {"trust": policy({})}}),
            "must not have a Resource",
            f"{HERE}.roles.R.trust.Statement[0]",
        ),
        (
            _document(roles={"R": {"trust": TRUST, "session_s_max": 60}}),
            "at most 3600 to 43200 seconds",
            f"{HERE}.roles.R.session_s_max",
        ),
        (
            json.dumps({"tavola_iam": 1, "session_key": "ab", "accounts": {}}),
            "32 bytes in hexadecimal",
            "session_key",
        ),
        (
            json.dumps({"tavola_iam": 1, "session_key": 7, "accounts": {}}),
            "32 bytes in hexadecimal",
            "session_key",
        ),
        (
            _document(policies={"P": policy({"Condition": {"StringLik": {}}})}),
            "did you mean StringLike?",
            f"{HERE}.policies.P.Statement[0].Condition.StringLik",
        ),
        (
            _document(users={"a": {"inline": {"P": policy({"Principal": "*"})}}}),
            "must not have a Principal",
            f"{HERE}.users.a.inline.P.Statement[0]",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text: str, reason: str, place: str) -> None:
    """A document is refused with what is wrong and where; a user called twice is no user."""
    with pytest.raises(InvalidDirectory) as refused:
        parse_directory(text)

    assert reason in refused.value.reason
    assert refused.value.place.startswith(place)


def test_people_are_found_by_name_and_by_arn() -> None:
    """A name means a user before a role; an ARN says which."""
    directory = parse_directory(_document(**FULL))

    def arn(text: str) -> str:
        return directory.principal(text, ACCOUNT).arn

    assert arn("alice") == arn(f"arn:aws:iam::{ACCOUNT}:user/alice") == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert arn("Agent") == arn(f"arn:aws:iam::{ACCOUNT}:role/Agent")
    assert arn("root") == arn(f"arn:aws:iam::{ACCOUNT}:root")
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s1"
    assert arn(session) == session
    for unknown in ("nobody", f"arn:aws:iam::{ACCOUNT}:user/nobody", "arn:aws:iam::999999999999:root"):
        with pytest.raises(NotInDirectory):
            directory.principal(unknown, ACCOUNT)
