"""Assuming roles: whom a role trusts, for how long, and that nothing widens what it allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.iam import (
    Account,
    AssumeRoleDenied,
    Directory,
    NotInDirectory,
    Principal,
    Role,
    RoleCredentials,
    RoleRequest,
    SessionRefused,
    StatedAccessCheck,
    User,
    WebIdentity,
    assumed_roles,
    guard,
    issue_session,
    web_identity_principal,
)
from tests.iam.tables import ACCOUNT, ARN, NOW_S, OTHER, SCOPE, policy
from tests.planted import plant

ROOT = f"arn:aws:iam::{ACCOUNT}:root"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/Agent"
ISSUER = "https://login.example.com/realms/shop"
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/login.example.com/realms/shop"
MAY_ASSUME = policy({"Action": "sts:*"})
GET = policy({"Action": "dynamodb:GetItem"})
BOTH = ["sts:AssumeRole", "sts:TagSession"]


def _trust(*statements: dict[str, Any]) -> dict[str, Any]:
    filled = [{"Effect": "Allow", "Action": "sts:AssumeRole", **statement} for statement in statements]
    return {"Version": "2012-10-17", "Statement": filled}


def _by(arn: str, **members: Any) -> dict[str, Any]:
    return {"Principal": {"AWS": arn}, **members}


def _role(*trust: dict[str, Any], **members: Any) -> Role:
    return Role(_trust(*trust), **{"inline": {"get": GET}, "id": "AROA1", **members})


def _directory() -> Directory:
    alice, bob = f"arn:aws:iam::{ACCOUNT}:user/alice", f"arn:aws:iam::{ACCOUNT}:user/bob"
    tagged = f"arn:aws:iam::{ACCOUNT}:role/Tagged"
    web = {"Principal": {"Federated": PROVIDER}, "Action": "sts:AssumeRoleWithWebIdentity"}
    is_alice = {"StringEquals": {"login.example.com/realms/shop:sub": "alice"}}
    home = Account(
        policies={"Get": GET},
        users={
            "alice": User(inline={"own": MAY_ASSUME}),
            "bob": User(),
            "limited": User(inline={"own": policy({"Action": "sts:AssumeRole", "Resource": ROLE})}),
            "bounded": User(inline={"own": MAY_ASSUME}, boundary="Get"),
        },
        roles={
            "Agent": _role(_by(ROOT), session_s_max=7200, tags={"team": "blue"}),
            "Direct": _role(_by(bob)),
            "External": _role(_by(ROOT, Condition={"StringEquals": {"sts:ExternalId": "e-1"}})),
            "Named": _role(_by(ROOT, Condition={"StringLike": {"sts:RoleSessionName": "${aws:username}-*"}})),
            "Tagged": _role(_by(ROOT, Action=BOTH), inline={"all": policy({"Action": "*"})}),
            "RedOnly": _role(_by(ROOT, Action=BOTH, Condition={"StringEquals": {"aws:RequestTag/team": "red"}})),
            "Chained": _role(_by(tagged, Action=BOTH), session_s_max=43200),
            "Foreign": _role(_by(f"arn:aws:iam::{OTHER}:user/carol")),
            "Partner": _role(_by(f"arn:aws:iam::{OTHER}:root")),
            "ForDave": _role(_by(f"arn:aws:iam::{OTHER}:user/dave")),
            "Denied": _role(_by(ROOT), _by(alice, Effect="Deny")),
            "Anyone": _role({"Principal": "*", "Action": "sts:*"}),
            "WebAction": _role({**web, "Action": "sts:AssumeRole"}),
            "Web": _role({**web, "Condition": is_alice}),
            "WebButBob": _role(
                web, {**web, "Effect": "Deny", "Condition": {"StringEquals": {"login.example.com/realms/shop:sub": "bob"}}}
            ),
        },
    )  # fmt: skip
    away = Account(users={"carol": User(inline={"own": MAY_ASSUME}), "dave": User()})
    return Directory({ACCOUNT: home, OTHER: away}, "5e" * 32)


DIRECTORY = _directory()


def _web(subject: str) -> Principal:
    keys = (
        ("login.example.com/realms/shop:sub", (subject,)),
        ("login.example.com/realms/shop:aud", ("shop",)),
    )
    return web_identity_principal(ACCOUNT, WebIdentity(ISSUER, subject, "shop", keys))


def _who(who: str) -> Principal:
    if who.startswith("web/"):
        return _web(who[4:])
    if who == "root":
        return DIRECTORY.root(ACCOUNT)
    account = OTHER if who in ("carol", "dave") else ACCOUNT
    return DIRECTORY.user(account, who)


def _request(
    role: str = "Agent", account: str = ACCOUNT, kind: type[RoleRequest] = RoleRequest, **members: Any
) -> RoleRequest:
    return kind(**{"role_arn": f"arn:aws:iam::{account}:role/{role}", "session_name": "s1", **members})


def _with(role: str = "Agent", **members: Any) -> dict[str, Any]:
    """Return the parameters of a request that is refused."""
    return {"role": role, **members}


def _assume(
    who: str | Principal, request: RoleRequest, roles: Any = assumed_roles, guards: Any = guard
) -> RoleCredentials:
    principal = _who(who) if isinstance(who, str) else who
    compiled = guards.CompiledPolicies(DIRECTORY, principal)
    own_guard = guards.Guard(compiled, SCOPE, clock=ManualClock(NOW_S))
    issued: RoleCredentials = roles.assume_role(DIRECTORY, own_guard, request, SeededEntropy(1), NOW_S)
    return issued


def _principal(issued: RoleCredentials) -> Principal:
    credential = DIRECTORY.credential(issued.session.key_id, issued.token.encode())
    assert credential is not None
    return credential.principal


def _may(principal: Principal, action: str, guards: Any = guard) -> bool:
    checked = guards.Guard(guards.CompiledPolicies(DIRECTORY, principal), SCOPE)
    return bool(checked.decide(StatedAccessCheck(action, ARN, None, {})).allowed)


ALLOWED: list[tuple[str, RoleRequest]] = [
    ("alice", _request()),
    ("limited", _request()),
    ("alice", _request(duration_s=7200)),
    ("alice", _request(duration_s=900)),
    ("bob", _request("Direct")),
    ("alice", _request("External", external_id="e-1")),
    ("alice", _request("Named", session_name="alice-1")),
    ("alice", _request("Tagged", tags=(("team", "red"),), transitive_tag_keys=("Team",))),
    ("alice", _request("RedOnly", tags=(("team", "red"),))),
    ("carol", _request("Foreign")),
    ("carol", _request("Partner")),
    ("bob", _request("Denied", role_arn=f"arn:aws:iam::{ACCOUNT}:role/Direct")),
    ("bob", _request("Anyone")),
    ("web/alice", _request("Web")),
    ("web/alice", _request("WebButBob")),
]

# Who, what, and the part of the policies that says no.
DENIED: list[tuple[str, RoleRequest, str]] = [
    ("bob", _request(), "no identity-based policy"),
    ("limited", _request("External", external_id="e-1"), "no identity-based policy"),
    ("alice", _request("Direct"), "trust policy does not allow sts:AssumeRole"),
    ("bounded", _request(), "no permissions boundary"),
    ("alice", _request("External"), "trust policy"),
    ("alice", _request("External", external_id="e-2"), "trust policy"),
    ("alice", _request("Named", session_name="bob-1"), "trust policy"),
    ("alice", _request(tags=(("team", "red"),)), "trust policy does not allow sts:TagSession"),
    ("alice", _request("RedOnly", tags=(("team", "blue"),)), "trust policy"),
    ("alice", _request("RedOnly"), "trust policy"),
    ("alice", _request("Foreign"), "trust policy"),
    ("dave", _request("Partner"), "no identity-based policy"),
    ("dave", _request("ForDave"), "no identity-based policy"),
    ("carol", _request(), "trust policy"),
    ("alice", _request("Denied"), "denied by trust policy"),
    ("alice", _request("None"), "does not exist"),
    ("alice", _request("path/Agent"), "does not exist"),
    ("alice", _request(account="999999999999"), "does not exist"),
    ("root", _request("Anyone"), "use the key of a user"),
    ("web/bob", _request("Web"), "trust policy"),
    ("web/bob", _request("WebButBob"), "denied by trust policy"),
    ("web/alice", _request("Anyone"), "trust policy"),
    ("web/alice", _request("WebAction"), "trust policy does not allow sts:AssumeRoleWithWebIdentity"),
    ("web/alice", _request(), "trust policy"),
]

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (_with(role_arn="Agent"), "ValidationError", "Agent is invalid"),
    (_with(role_arn=f"arn:aws:iam::{ACCOUNT}:role/a b"), "ValidationError", "is invalid"),
    (_with(session_name="x"), "ValidationError", "roleSessionName"),
    (_with(session_name="a b"), "ValidationError", "roleSessionName"),
    (_with(session_name="s" * 65), "ValidationError", "roleSessionName"),
    (_with(duration_s=899), "ValidationError", "greater than or equal to 900"),
    (_with(duration_s=43201), "ValidationError", "less than or equal to 43200"),
    (_with(duration_s=7201), "ValidationError", "exceeds the MaxSessionDuration"),
    (_with(external_id="x"), "ValidationError", "externalId"),
    (_with(policy="{"), "MalformedPolicyDocument", "invalid Json"),
    (_with(policy=json.dumps(_trust(_by(ROOT)))), "MalformedPolicyDocument", "Resource"),
    (_with(policy=" " * 2049), "PackedPolicyTooLarge", "2048"),
    (_with(policy_arns=("arn:aws:iam::aws:policy/x",) * 11), "ValidationError", "policyArns"),
    (_with(policy_arns=("Get",)), "ValidationError", "is not valid"),
    (_with(policy_arns=(f"arn:aws:iam::{OTHER}:policy/Get",)), "ValidationError", "is not valid"),
    (
        _with(policy_arns=(f"arn:aws:iam::{ACCOUNT}:policy/Else",)),
        "ValidationError",
        "Else does not exist",
    ),
    (_with("Tagged", tags=(("a", "1"), ("A", "2"))), "InvalidParameterValue", "Duplicate"),
    (_with("Tagged", tags=(("aws:a", "1"),)), "ValidationError", "tags.key"),
    (_with("Tagged", tags=(("", "1"),)), "ValidationError", "tags.key"),
    (_with("Tagged", tags=(("a", "x" * 257),)), "ValidationError", "tags.value"),
    (_with("Tagged", tags=(("a", "<"),)), "ValidationError", "tags.value"),
    (_with("Tagged", tags=tuple((f"k{at}", "") for at in range(51))), "ValidationError", "'tags'"),
    (_with("Tagged", transitive_tag_keys=("a",)), "InvalidParameterValue", "must be included"),
    (
        _with("Tagged", tags=tuple((f"k{at}", Random(at).randbytes(100).hex()) for at in range(50))),
        "PackedPolicyTooLarge",
        "% of the limit",
    ),
]


@pytest.mark.parametrize(("who", "request_"), ALLOWED)
def test_a_trusted_caller_gets_a_session(who: str, request_: RoleRequest) -> None:
    """Named by the trust policy, or by its account and allowed by its own policies: the role's session is theirs."""
    session = _assume(who, request_).session

    assert session.arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/{session.role}/{request_.session_name}"
    assert session.expires_at_s - session.issued_at_s == (request_.duration_s or 3600)
    assert session.issued_at_s == NOW_S


@pytest.mark.parametrize(("who", "request_", "reason"), DENIED)
def test_a_caller_without_trust_is_denied(who: str, request_: RoleRequest, reason: str) -> None:
    """Trust policy, own policies, boundary and conditions must all agree; the reason is not in the caller's message."""
    with pytest.raises(AssumeRoleDenied) as denied:
        _assume(who, request_)

    assert reason in denied.value.reason
    assert denied.value.reason not in denied.value.message


def test_a_denial_does_not_say_whether_the_role_exists() -> None:
    """A missing role and one that trusts others are denied in the same words."""
    messages = []
    for role in ("Foreign", "Missing"):
        with pytest.raises(AssumeRoleDenied) as denied:
            _assume("alice", _request(role))
        messages.append(denied.value.message.replace(role, "X"))

    assert messages[0] == messages[1]


@pytest.mark.parametrize(("request_", "code", "message"), REFUSED)
def test_invalid_parameters_are_refused(request_: dict[str, Any], code: str, message: str) -> None:
    """Each has AWS's code, and a message that names what is wrong."""
    with pytest.raises(SessionRefused) as refused:
        _assume("alice", _request(**request_))

    assert refused.value.aws_code == code
    assert message in refused.value.message


def test_session_policies_only_narrow() -> None:
    """What role and session policies both allow is allowed; a wider session policy adds nothing."""
    plain = _principal(_assume("alice", _request()))
    wider = _principal(_assume("alice", _request(policy=json.dumps(policy({"Action": "*"})))))
    elsewhere = json.dumps(policy({"Action": "dynamodb:PutItem"}))
    narrow = _principal(_assume("alice", _request(policy=elsewhere)))
    either = _principal(
        _assume("alice", _request(policy=elsewhere, policy_arns=(f"arn:aws:iam::{ACCOUNT}:policy/Get",)))
    )
    managed = _principal(
        _assume(
            "alice", _request("Tagged", policy_arns=("arn:aws:iam::aws:policy/AmazonDynamoDBReadOnlyAccess",))
        )
    )

    assert _may(plain, "dynamodb:GetItem")
    assert _may(wider, "dynamodb:GetItem")
    assert not _may(wider, "dynamodb:PutItem")
    assert not _may(narrow, "dynamodb:GetItem")
    assert _may(either, "dynamodb:GetItem")  # one of several session policies is enough
    assert not _may(either, "dynamodb:PutItem")
    assert _may(managed, "dynamodb:GetItem")
    assert not _may(managed, "dynamodb:PutItem")


def test_a_removed_session_policy_allows_nothing() -> None:
    """A session that was narrowed by a policy does not become wider when the policy is removed."""
    issued = _assume("alice", _request(policy_arns=(f"arn:aws:iam::{ACCOUNT}:policy/Get",)))
    home = DIRECTORY.accounts[ACCOUNT]
    users = {name: user for name, user in home.users.items() if name != "bounded"}
    without = Directory({ACCOUNT: Account(users=users, roles=home.roles)}, DIRECTORY.session_key)
    credential = without.credential(issued.session.key_id, issued.token.encode())
    assert credential is not None
    checked = guard.Guard(guard.CompiledPolicies(without, credential.principal), SCOPE)

    assert _may(_principal(issued), "dynamodb:GetItem")
    assert not checked.decide(StatedAccessCheck("dynamodb:GetItem", ARN, None, {})).allowed


def test_session_tags_are_principal_tags() -> None:
    """Tags of the request replace the role's; transitive ones pass to the next session and cannot be replaced there."""
    tags = (("team", "red"), ("case", "7"))
    first = _principal(_assume("alice", _request("Tagged", tags=tags, transitive_tag_keys=("team",))))
    second = _principal(_assume(first, _request("Chained", tags=(("step", "2"),))))
    known = second.condition_keys()

    assert first.condition_keys()["aws:principaltag/case"] == ("7",)
    assert known["aws:principaltag/team"] == ("red",)
    assert known["aws:principaltag/step"] == ("2",)
    assert "aws:principaltag/case" not in known
    assert second.session is not None
    assert second.session.transitive_tag_keys == ("team",)
    with pytest.raises(SessionRefused, match="conflicts with a transitive tag key"):
        _assume(first, _request("Chained", tags=(("Team", "blue"),)))


def test_inherited_tags_need_the_permission_to_tag() -> None:
    """A role whose trust policy does not allow sts:TagSession cannot be assumed with transitive tags."""
    first = _principal(
        _assume("alice", _request("Tagged", tags=(("team", "red"),), transitive_tag_keys=("team",)))
    )

    with pytest.raises(AssumeRoleDenied, match="sts:TagSession"):
        _assume(first, _request("Agent"))


def test_chained_sessions_last_an_hour() -> None:
    """A session that assumes a role gets at most an hour, whatever the role's maximum is."""
    first = _principal(_assume("alice", _request("Tagged")))

    assert _assume(first, _request("Chained", duration_s=3600)).session.expires_at_s == NOW_S + 3600
    with pytest.raises(SessionRefused, match="role chaining"):
        _assume(first, _request("Chained", duration_s=3601))


def test_a_session_policy_limits_the_next_role() -> None:
    """A session that was narrowed cannot assume a role that its policy does not include."""
    narrowed = _principal(_assume("alice", _request("Tagged", policy=json.dumps(GET))))

    with pytest.raises(AssumeRoleDenied, match="no session policy"):
        _assume(narrowed, _request("Chained"))


def test_a_web_identity_is_known_in_its_session() -> None:
    """The claims are condition keys of later requests, so that `${issuer:sub}` can be a leading key; they end with the chain."""
    known = _principal(_assume("web/alice", _request("Web"))).condition_keys()

    assert known["login.example.com/realms/shop:sub"] == ("alice",)
    assert known["aws:federatedprovider"] == (PROVIDER,)
    assert known["aws:principaltype"] == ("AssumedRole",)


def test_the_owner_of_the_file_needs_no_trust() -> None:
    """`issue_session` asks no policy, but not for roles that do not exist."""
    request = _request("Foreign", duration_s=43200)
    issued = issue_session(DIRECTORY, request, SeededEntropy(1), NOW_S)

    assert issued.session.expires_at_s == NOW_S + 43200
    with pytest.raises(NotInDirectory, match="no role None"):
        issue_session(DIRECTORY, _request("None"), SeededEntropy(1), NOW_S)


def test_key_ids_differ_and_name_the_account() -> None:
    """Each session has a key of its own in AWS's format, which encodes the account of the role."""
    from tavola.protocol.arns import account_of_key

    chance = SeededEntropy(1)
    keys = {issue_session(DIRECTORY, _request(), chance, NOW_S).session.key_id for _ in range(50)}

    assert len(keys) == 50
    assert {account_of_key(key) for key in keys} == {ACCOUNT}


# The same rules as violations of them, for planted faults.


def _violations(roles: Any, guards: Any) -> list[str]:
    """Return the rules above that these modules break."""
    found = []
    for who, request, _ in DENIED:
        if _succeeds(lambda: _assume(who, request, roles, guards), AssumeRoleDenied):  # noqa: B023
            found.append(f"{who} assumes {request.role_arn}")
    for members, code, _ in REFUSED:
        if _succeeds(
            lambda: _assume("alice", _request(**members, kind=roles.RoleRequest), roles, guards),  # noqa: B023
            SessionRefused,
        ):
            found.append(f"{code}: {members}")
    tags = _request("Tagged", tags=(("team", "red"),), transitive_tag_keys=("team",))
    tagged = _principal(_assume("alice", tags, roles, guards))
    plain = _principal(_assume("alice", _request("Tagged"), roles, guards))
    for name, session, request in (
        ("transitive tag replaced", tagged, _request("Chained", tags=(("TEAM", "blue"),))),
        ("inherited tag without permission", tagged, _request("Agent")),
        ("long chain", plain, _request("Chained", duration_s=3601)),
    ):
        if _succeeds(lambda: _assume(session, request, roles, guards), (AssumeRoleDenied, SessionRefused)):  # noqa: B023
            found.append(name)
    chained = _principal(_assume(tagged, _request("Chained"), roles, guards))
    if chained.condition_keys().get("aws:principaltag/team") != ("red",):
        found.append("transitive tag lost")
    narrowed = _principal(_assume("alice", _request(policy=json.dumps(MAY_ASSUME)), roles, guards))
    if _may(narrowed, "dynamodb:GetItem", guards):
        found.append("session policy ignored")
    return found


def _succeeds(act: Callable[[], object], refusal: type[Exception] | tuple[type[Exception], ...]) -> bool:
    try:
        act()
    except refusal:
        return False
    return True


def test_nothing_is_assumed_that_may_not_be() -> None:
    """The rules as one list: none is broken."""
    assert _violations(assumed_roles, guard) == []


PLANTED: dict[str, tuple[Any, str, str]] = {
    "trust is optional": (guard, "if not is_denied_explicitly and not any(rule.holds(values) for rule in rules.grants):", "if False:"),
    "trust is enough": (
        guard,
        "is_denied_explicitly = not decision.allowed and decision.rule is not None",
        "is_denied_explicitly, decision = False, Decision(True)",
    ),
    "every account is this one": (guard, "cross_account=owner_of(access.resource) != self.principal.account,", "cross_account=False,"),
    "session policies": (guard, "if policies.session is None\n            else tuple(", "if True\n            else tuple("),
    "decision": (assumed_roles, "if not decision.allowed:", "if False:"),
    "root": (assumed_roles, 'if caller.kind == "root":', "if False:"),
    "tag permission": (assumed_roles, 'if request.tags or inherited else (action,)', "if False else (action,)"),
    "inherited tag permission": (assumed_roles, "if request.tags or inherited else", "if request.tags else"),
    "chain": (assumed_roles, "if caller.session is not None and life_s > _CHAINED_S_MAX:", "if False:"),
    "role's maximum": (assumed_roles, "if life_s > role.session_s_max:", "if False:"),
    "web action": (assumed_roles, '"sts:AssumeRoleWithWebIdentity" if caller.kind == "federated" else "sts:AssumeRole"', '"sts:AssumeRole"'),
    "external id": (assumed_roles, '() if request.external_id is None else (request.external_id,)', '("e-1",)'),
    "session name": (assumed_roles, '"sts:rolesessionname": (request.session_name,)', '"sts:rolesessionname": ("alice-1",)'),
    "request tags": (assumed_roles, "(value,) for key, value in request.tags}", '("red",) for key, value in request.tags}'),
    "session name's form": (assumed_roles, "if _SESSION_NAME.fullmatch(request.session_name) is None:", "if False:"),
    "duration": (assumed_roles, "not SESSION_S_MIN <= request.duration_s <= SESSION_S_MAX", "False"),
    "transitive tags": (assumed_roles, "if any(key.lower() in transitive for key, _ in request.tags):", "if False:"),
    "transitive tags inherited": (assumed_roles, "if tag[0].lower() in transitive)", "if False)"),
    "session policy kept": (assumed_roles, "        policy=request.policy,\n", ""),
    "policy of another account": (assumed_roles, 'or parts[1] not in ("aws", account)', ""),
    "unknown policy": (assumed_roles, "if name not in account.policies and name not in MANAGED:", "if False:"),
    "packed size": (assumed_roles, "if session.packed_percent > 100:", "if False:"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_missing_check_is_found(name: str) -> None:
    """Without one of the checks, some rule is broken: the list above is meaningful."""
    module, check, without = PLANTED[name]
    copy = plant(module, check, without)
    roles, guards = (copy, guard) if module is assumed_roles else (assumed_roles, copy)
    try:
        found = _violations(roles, guards)
    except (AssumeRoleDenied, SessionRefused) as error:  # it denies what is allowed
        found = [str(error)]

    assert found
