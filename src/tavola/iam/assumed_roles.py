"""Assuming a role: who may, for how long, and with which tags and policies.

The role's trust policy must allow it (see `Guard.decide_trust`), and so must the caller's own policies unless the trust
policy names the caller itself. Session policies and the caller's request only ever narrow what the role allows. A session
that assumes a further role (chaining) passes on its transitive tags, which cannot be changed on the way, and lasts an hour
at most.

A denial is the same whether the role exists or not: callers cannot search for roles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tavola.entropy import Entropy
from tavola.iam.access_checks import StatedAccessCheck
from tavola.iam.directory import (
    MANAGED,
    SESSION_S_DEFAULT,
    SESSION_S_MAX,
    SESSION_S_MIN,
    Directory,
    Role,
)
from tavola.iam.errors import AssumeRoleDenied, NotInDirectory, SessionRefused
from tavola.iam.guard import Guard
from tavola.iam.patterns import Values
from tavola.iam.principals import Principal, provider_arn, role_arn
from tavola.iam.role_sessions import RoleCredentials, RoleSession
from tavola.iam.web_identity import WebIdentity
from tavola.protocol.arns import access_key_of
from tavola.protocol.policy_documents import PolicyRefused, parse_policy

_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}):role/(?:[!-~]{1,510}/)?[A-Za-z0-9_+=,.@-]{1,128}")
_SESSION_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{2,64}")

_CHAINED_S_MAX = 3600
_POLICY_CHARACTERS_MAX = 2048
_POLICY_ARNS_MAX = 10
_TAGS_MAX = 50
_TAG_KEY = re.compile(r"[\w\s.:/=+@-]{1,128}")
_TAG_VALUE = re.compile(r"[\w\s.:/=+@-]{0,256}")
_EXTERNAL_ID = re.compile(r"[A-Za-z0-9_+=,.@:/-]{2,1224}")
_POLICY_ARN = re.compile(r"arn:aws[a-z-]*:iam::(aws|[0-9]{12}):policy/(.+)")


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """The parameters with which a caller assumes a role; malformed ones are refused."""

    role_arn: str
    session_name: str
    duration_s: int | None = None
    policy: str | None = None
    policy_arns: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    transitive_tag_keys: tuple[str, ...] = ()
    external_id: str | None = None

    def __post_init__(self) -> None:
        _check_parameters(self)

    @property
    def account(self) -> str:
        """The account of the role."""
        return self.role_arn.split(":", 5)[4]

    @property
    def role(self) -> str:
        """The name of the role, after its path if it has one."""
        return self.role_arn.partition(":role/")[2]


def assume_role(
    directory: Directory, guard: Guard, request: RoleRequest, entropy: Entropy, now_s: float
) -> RoleCredentials:
    """Return credentials of a role for the guard's principal, or raise AssumeRoleDenied or SessionRefused."""
    caller = guard.principal
    inherited = _inherited_tags(caller, request)
    action = "sts:AssumeRoleWithWebIdentity" if caller.kind == "federated" else "sts:AssumeRole"
    denial = f"User: {caller.arn} is not authorized to perform: {action} on resource: {request.role_arn}"
    if caller.kind == "federated":
        denial = f"Not authorized to perform {action}"
    if caller.kind == "root":
        raise AssumeRoleDenied("Roles may not be assumed by root accounts.", "use the key of a user")
    account = directory.accounts.get(request.account)
    role = None if account is None else account.roles.get(request.role)
    if role is None:
        raise AssumeRoleDenied(denial, "the role does not exist")
    stated = _condition_values(request, role)
    for needed in (action, "sts:TagSession") if request.tags or inherited else (action,):
        access = StatedAccessCheck(needed, role_arn(request.account, request.role), None, stated)
        decision = guard.decide_trust(access, directory.trust_of(request.account, request.role))
        if not decision.allowed:
            is_untrusted = decision.missing_allow == "resource"
            reason = f"the role's trust policy does not allow {needed}" if is_untrusted else decision.reason
            raise AssumeRoleDenied(denial, reason)
    life_s = SESSION_S_DEFAULT if request.duration_s is None else request.duration_s
    if caller.session is not None and life_s > _CHAINED_S_MAX:
        _refuse(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining."
        )
    if life_s > role.session_s_max:
        _refuse("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
    keys = caller.identity_keys if caller.kind == "federated" else ()
    return issue_session(directory, request, entropy, now_s, inherited=inherited, condition_keys=keys)


def web_identity_principal(account: str, identity: WebIdentity) -> Principal:
    """Return the holder of a web identity token as a principal of the role's account."""
    arn = provider_arn(account, identity.issuer)
    provider: tuple[str, Values] = ("aws:federatedprovider", (arn,))
    return Principal(
        account, "federated", identity.issuer, arn, identity.subject,
        identity_keys=(provider, *identity.condition_keys),
    )  # fmt: skip


def issue_session(
    directory: Directory,
    request: RoleRequest,
    entropy: Entropy,
    now_s: float,
    *,
    inherited: Sequence[tuple[str, str]] = (),
    condition_keys: tuple[tuple[str, Values], ...] = (),
) -> RoleCredentials:
    """Return credentials of a role without asking who wants them; callers have decided that."""
    account = directory.account(request.account)
    role = account.roles.get(request.role)
    if role is None:
        raise NotInDirectory(f"account {request.account} has no role {request.role}")
    session = make_session(
        request, role.id, entropy, now_s, inherited=inherited, condition_keys=condition_keys
    )
    for name in session.policy_names:
        if name not in account.policies and name not in MANAGED:
            _refuse(f"Policy {name} does not exist in account {request.account}.")
    return directory.signer.issue(session)


def make_session(
    request: RoleRequest,
    role_id: str,
    entropy: Entropy,
    now_s: float,
    *,
    inherited: Sequence[tuple[str, str]] = (),
    condition_keys: tuple[tuple[str, Values], ...] = (),
) -> RoleSession:
    """Return a new session of a role, or refuse one whose policies and tags do not fit into a token."""
    session = RoleSession(
        account=request.account,
        role=request.role.rpartition("/")[2],
        role_id=role_id,
        name=request.session_name,
        key_id=access_key_of(request.account, entropy.bytes(5), "ASIA"),
        issued_at_s=int(now_s),
        expires_at_s=int(now_s) + (SESSION_S_DEFAULT if request.duration_s is None else request.duration_s),
        policy=request.policy,
        policy_names=tuple(_policy_name(arn, request.account) for arn in request.policy_arns),
        tags=(*inherited, *request.tags),
        transitive_tag_keys=(*(key for key, _ in inherited), *request.transitive_tag_keys),
        condition_keys=condition_keys,
    )
    if session.packed_percent > 100:
        raise SessionRefused(
            "PackedPolicyTooLarge",
            f"Packed size of session policies and tags is {session.packed_percent}% of the limit.",
        )
    return session


def _check_parameters(request: RoleRequest) -> None:
    if _ROLE_ARN.fullmatch(request.role_arn) is None:
        _refuse(f"{request.role_arn[:200]} is invalid")
    if _SESSION_NAME.fullmatch(request.session_name) is None:
        _refuse_value(
            "roleSessionName", r"have length 2 to 64 and satisfy regular expression pattern: [\w+=,.@-]*"
        )
    if request.duration_s is not None and not SESSION_S_MIN <= request.duration_s <= SESSION_S_MAX:
        is_short = request.duration_s < SESSION_S_MIN
        bound = (
            f"greater than or equal to {SESSION_S_MIN}"
            if is_short
            else f"less than or equal to {SESSION_S_MAX}"
        )
        _refuse_value("durationSeconds", f"have value {bound}")
    if request.external_id is not None and _EXTERNAL_ID.fullmatch(request.external_id) is None:
        _refuse_value(
            "externalId", r"have length 2 to 1224 and satisfy regular expression pattern: [\w+=,.@:\/-]*"
        )
    _check_tags(request)
    if len(request.policy_arns) > _POLICY_ARNS_MAX:
        _refuse_value("policyArns", f"have length less than or equal to {_POLICY_ARNS_MAX}")
    if request.policy is not None:
        if len(request.policy) > _POLICY_CHARACTERS_MAX:
            raise SessionRefused(
                "PackedPolicyTooLarge", f"A session policy has at most {_POLICY_CHARACTERS_MAX} characters"
            )
        try:
            parse_policy(request.policy, "identity")
        except PolicyRefused as refused:
            raise SessionRefused("MalformedPolicyDocument", str(refused)) from refused


def _condition_values(request: RoleRequest, role: Role) -> dict[str, Values]:
    """Return the values of the condition keys that a trust policy may test."""
    return {
        "sts:rolesessionname": (request.session_name,),
        "sts:externalid": () if request.external_id is None else (request.external_id,),
        "sts:transitivetagkeys": request.transitive_tag_keys,
        "aws:tagkeys": tuple(key for key, _ in request.tags),
        **{f"aws:requesttag/{key.lower()}": (value,) for key, value in request.tags},
        **{f"aws:resourcetag/{key.lower()}": (value,) for key, value in role.tags.items()},
    }


def _check_tags(request: RoleRequest) -> None:
    keys = [key.lower() for key, _ in request.tags]
    if len(keys) > _TAGS_MAX:
        _refuse_value("tags", f"have length less than or equal to {_TAGS_MAX}")
    for key, value in request.tags:
        if _TAG_KEY.fullmatch(key) is None or key.lower().startswith("aws:"):
            _refuse_value("tags.key", "be a tag key of 1 to 128 characters that does not begin with aws:")
        if _TAG_VALUE.fullmatch(value) is None:
            _refuse_value("tags.value", "be a tag value of at most 256 characters")
    if len(set(keys)) < len(keys):
        raise SessionRefused(
            "InvalidParameterValue",
            "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
        )
    if not {key.lower() for key in request.transitive_tag_keys} <= set(keys):
        raise SessionRefused(
            "InvalidParameterValue",
            "The specified transitive tag key must be included in the requested tags.",
        )


def _inherited_tags(caller: Principal, request: RoleRequest) -> tuple[tuple[str, str], ...]:
    """Return the transitive tags of the calling session; a request must not replace them."""
    if caller.session is None:
        return ()
    transitive = {key.lower() for key in caller.session.transitive_tag_keys}
    if any(key.lower() in transitive for key, _ in request.tags):
        raise SessionRefused(
            "InvalidParameterValue",
            "One of the specified tag keys can't be set because it conflicts with a transitive tag key from "
            "the calling session.",
        )
    return tuple(tag for tag in caller.session.tags if tag[0].lower() in transitive)


def _policy_name(arn: str, account: str) -> str:
    parts = _POLICY_ARN.fullmatch(arn)
    if parts is None or parts[1] not in ("aws", account):
        _refuse(f"ARN {arn[:200]} is not valid: name a policy of AWS or of account {account}.")
    return parts[2].rpartition("/")[2]


def _refuse(message: str) -> NoReturn:
    raise SessionRefused("ValidationError", message)


def _refuse_value(member: str, constraint: str) -> NoReturn:
    _refuse(
        f"1 validation error detected: Value at '{member}' failed to satisfy constraint: Member must {constraint}"
    )
