"""Decisions: who wins when policies disagree, and in which words AWS denies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.iam import (
    Account,
    Directory,
    Guards,
    Principal,
    Role,
    RoleSession,
    StatedAccessCheck,
    User,
    denial_message,
)
from tavola.protocol.arns import Scope
from tests.iam.tables import ACCOUNT, ARN, OTHER, SCOPE, Tables, policy

GET = {"Action": "dynamodb:GetItem"}
DENY = {"Effect": "Deny"}
ALICE = f"arn:aws:iam::{ACCOUNT}:user/alice"
AGENT = f"arn:aws:iam::{ACCOUNT}:role/Agent"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s1"
FOREIGN = f"arn:aws:dynamodb:us-east-1:{OTHER}:table/Orders"
SAID = f"is not authorized to perform: dynamodb:GetItem on resource: {ARN}"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]}


def _session(directory: Directory, statements: list[dict[str, Any]] | None) -> Principal:
    """Return a session of the role with a session policy."""
    narrowed = None if statements is None else json.dumps(policy(*statements))
    session = RoleSession(ACCOUNT, "Agent", "", "s1", "ASIA", 0, 2**40, policy=narrowed)
    credential = directory.credential("ASIA", directory.signer.issue(session).token.encode())
    assert credential is not None
    return credential.principal


def _directory(
    identity: list[dict[str, Any]],
    *,
    boundary: list[dict[str, Any]] | None = None,
) -> Directory:
    inline = {"own": policy(*identity)} if identity else {}
    bound = None if boundary is None else "bound"
    return Directory(
        {
            ACCOUNT: Account(
                policies={} if boundary is None else {"bound": policy(*boundary)},
                users={"alice": User(inline=inline, boundary=bound)},
                roles={"Agent": Role(TRUST, inline=inline, boundary=bound)},
            )
        },
        "5e" * 32,
    )


def _said(
    directory: Directory,
    who: str = "user",
    *,
    session: list[dict[str, Any]] | None = None,
    on: dict[str, Any] | None = None,
    resource: str = ARN,
) -> str:
    """Return "allowed by …", or the words of the denial; `session` is the session policy of the role's session."""
    principal: Principal
    if who == "user":
        principal = directory.user(ACCOUNT, "alice")
    elif who == "root":
        principal = directory.root(ACCOUNT)
    else:
        principal = _session(directory, session)
    guard = Guards().guard(directory, principal, SCOPE)
    facts = Tables(policy=None if on is None else json.dumps(on)).known
    decision = guard.decide(StatedAccessCheck("dynamodb:GetItem", resource, facts, {}))
    if decision.allowed:
        return decision.reason
    return denial_message(decision, principal, "dynamodb:GetItem", resource)


def _grant(*principals: str, **members: Any) -> dict[str, Any]:
    return policy({**GET, "Principal": {"AWS": list(principals)}, **members})


def test_what_nobody_allows_is_denied() -> None:
    """Without a policy nothing is allowed, and the denial says that no identity-based policy allows it."""
    assert _said(_directory([])) == (
        f"User: {ALICE} {SAID} because no identity-based policy allows the dynamodb:GetItem action"
    )
    assert _said(_directory([]), "session").startswith(f"User: {SESSION} is not authorized")


def test_a_deny_wins_wherever_it_stands() -> None:
    """One Deny outweighs any number of Allows, and the words name the kind of policy it is in."""
    with_deny = "with an explicit deny in"
    bounded = _directory([GET], boundary=[{}, DENY])

    assert _said(_directory([GET])) == "allowed by inline policy own of user alice, Statement[0]"
    assert _said(_directory([GET, DENY])) == f"User: {ALICE} {SAID} {with_deny} an identity-based policy"
    assert _said(bounded) == f"User: {ALICE} {SAID} {with_deny} a permissions boundary"
    assert (
        _said(_directory([GET]), "session", session=[{}, DENY])
        == f"User: {SESSION} {SAID} {with_deny} a session policy"
    )
    assert _said(_directory([GET]), on=_grant("*", **DENY)) == (
        f"User: {ALICE} {SAID} {with_deny} a resource-based policy"
    )


def test_bounds_allow_nothing_and_pass_nothing_more() -> None:
    """A boundary or session policy narrows what is allowed, and the denial says which of them did."""
    elsewhere = [{"Action": "dynamodb:Query"}]

    assert _said(_directory([], boundary=[GET])).endswith(
        "no identity-based policy allows the dynamodb:GetItem action"
    )
    assert _said(_directory([GET], boundary=elsewhere)).endswith(
        "because no permissions boundary allows the dynamodb:GetItem action"
    )
    assert _said(_directory([GET]), "session", session=elsewhere).endswith(
        "because no session policy allows the dynamodb:GetItem action"
    )
    assert _said(_directory([GET], boundary=[GET]), "session", session=[GET]).startswith("allowed")


@pytest.mark.parametrize(
    ("who", "named", "allowed"),
    [
        ("user", ALICE, True),
        ("user", ACCOUNT, False),
        ("user", AGENT, False),
        ("user", f"arn:aws:iam::{OTHER}:user/alice", False),
        ("session", SESSION, True),
        ("session", AGENT, True),
        ("session", ALICE, False),
        ("session", f"arn:aws:sts::{ACCOUNT}:assumed-role/Agent/s2", False),
    ],
)
def test_within_an_account_the_resource_may_allow_alone(who: str, named: str, allowed: bool) -> None:
    """A resource's policy is enough if it names the principal; to name the account leaves it to the account."""
    assert _said(_directory([]), who, on=_grant(named)).startswith("allowed") is allowed


def test_a_grant_by_name_passes_bounds_and_a_grant_to_a_role_does_not() -> None:
    """What is granted to a user or session itself is not narrowed by silence; what is granted to its role is."""
    silent = [{"Action": "dynamodb:Query"}]

    assert _said(_directory([], boundary=silent), on=_grant(ALICE)).startswith("allowed")
    assert _said(_directory([]), "session", session=silent, on=_grant(SESSION)).startswith("allowed")
    assert "no permissions boundary" in _said(_directory([], boundary=silent), "session", on=_grant(AGENT))
    assert "no session policy" in _said(_directory([]), "session", session=silent, on=_grant(AGENT))


def test_between_accounts_it_takes_both() -> None:
    """Another account's table needs its own policy and the caller's; to name the caller's account is enough there."""
    lacking = _said(_directory([GET]), resource=FOREIGN)

    assert lacking.endswith("because no resource-based policy allows the dynamodb:GetItem action")
    assert "no identity-based policy" in _said(_directory([]), on=_grant(ALICE), resource=FOREIGN)
    assert _said(_directory([GET]), on=_grant(ACCOUNT), resource=FOREIGN).startswith("allowed")
    assert _said(_directory([GET]), on=_grant(ALICE), resource=FOREIGN).startswith("allowed")
    assert "no resource-based policy" in _said(_directory([]), "root", resource=FOREIGN)
    assert _said(_directory([]), "root", on=_grant(ACCOUNT), resource=FOREIGN).startswith("allowed")


def test_root_may_everything_but_what_a_table_denies() -> None:
    """An account's root needs no policy; a table's Deny holds for it too, except to take the policy away."""
    directory = _directory([])
    closed = _grant("*", **DENY, Action="*")
    guard = Guards().guard(directory, directory.root(ACCOUNT), SCOPE)
    facts = Tables(policy=json.dumps(closed)).known

    delete = guard.decide(StatedAccessCheck("dynamodb:DeleteResourcePolicy", ARN, facts, {}))

    assert _said(directory, "root") == "allowed: the root user may do everything in its account"
    assert "explicit deny in a resource-based policy" in _said(directory, "root", on=closed)
    assert delete.allowed


def test_not_principal_spares_only_whom_it_names_in_full() -> None:
    """A Deny for all but somebody needs the account and the role beside the name, as on AWS."""
    root = f"arn:aws:iam::{ACCOUNT}:root"

    def denied(who: str, *spared: str) -> bool:
        closed = policy({**DENY, "NotPrincipal": {"AWS": list(spared)}})
        return "explicit deny" in _said(_directory([GET]), who, on=closed)

    assert not denied("user", ALICE, root)
    assert denied("user", ALICE)
    assert not denied("session", SESSION, AGENT, root)
    assert denied("session", AGENT, root)


def test_a_policy_on_a_table_that_cannot_be_read_lets_nobody_in() -> None:
    """Damage closes; it never opens."""
    directory = _directory([GET])
    guard = Guards().guard(directory, directory.user(ACCOUNT, "alice"), Scope(ACCOUNT, "us-east-1"))
    facts = Tables(policy="{").known

    assert not guard.decide(StatedAccessCheck("dynamodb:GetItem", ARN, facts, {})).allowed


def test_the_order_of_policies_decides_nothing_but_the_name() -> None:
    """Statements are unordered: the same ones in any order decide the same."""
    statements = [GET, {**DENY, "Action": "dynamodb:Scan"}, {"Action": "dynamodb:Query"}]

    said = {_said(_directory(order)).split(",")[0] for order in (statements, statements[::-1])}

    assert said == {"allowed by inline policy own of user alice"}
