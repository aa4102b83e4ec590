"""The directory: a JSON document and back, checked with places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.iam import InvalidDirectory, NotInDirectory, parse_directory, render_directory
from tests.iam.tables import ACCOUNT, policy

HERE = f"accounts.{ACCOUNT}"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}]}
KEY = {"id": "AKIA1", "secret": "s"}
SESSION = {
    "role": "Agent",
    "name": "s1",
    "key": "ASIA1",
    "secret": "s",
    "token": "t",
    "issued_at_s": 1,
    "expires_at_s": 2,
    "tags": {"case": "7"},
}
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
    "roles": {"Agent": {"trust": TRUST, "policies": ["Read"], "tags": {"team": "blue"}}},
    "sessions": [{**SESSION, "policy": policy({})}],
    "root_keys": [{"id": "AKIA2", "secret": "s"}],
}


def _document(**account: Any) -> str:
    return json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: account}})


def test_a_directory_survives_its_document() -> None:
    """What is written is read back as it was."""
    directory = parse_directory(_document(**FULL))
    text = render_directory(directory)

    assert parse_directory(text).accounts == directory.accounts
    assert render_directory(parse_directory(text)) == text


def test_every_key_has_its_principal() -> None:
    """A user's key, root's and a session's; a session has the tags of its role and its own."""
    directory = parse_directory(_document(**FULL))

    user, root, session = (directory.credential(key) for key in ("AKIA1", "AKIA2", "ASIA1"))
    assert user is not None
    assert root is not None
    assert session is not None
    assert user.principal.arn == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert root.principal.arn == f"arn:aws:iam::{ACCOUNT}:root"
    assert session.principal.arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s1"
    assert (session.token, session.expires_at_s) == ("t", 2)
    assert session.principal.condition_keys()["aws:principaltag/case"] == ("7",)
    assert session.principal.condition_keys()["aws:principalarn"] == (f"arn:aws:iam::{ACCOUNT}:role/Agent",)
    assert user.principal.condition_keys()["aws:username"] == ("alice",)
    assert directory.credential("AKIA3") is None


def test_everything_that_applies_is_found() -> None:
    """A user has its own policies, attached and inline, and those of its groups; bounds stand apart."""
    directory = parse_directory(_document(**FULL))
    session = directory.credential("ASIA1")
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
        (_document(sessions=[SESSION]), "role Agent does not exist", f"{HERE}.sessions.ASIA1"),
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
    kept = directory.principal(f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s1", ACCOUNT)
    assert kept.session_key == "ASIA1"
    for unknown in ("nobody", f"arn:aws:iam::{ACCOUNT}:user/nobody", "arn:aws:iam::999999999999:root"):
        with pytest.raises(NotInDirectory):
            directory.principal(unknown, ACCOUNT)
