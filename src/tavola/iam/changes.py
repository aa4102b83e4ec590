"""Changes to a directory: adding and removing users, roles, policies and keys.

Each function returns a new directory, validated like one read from a file. Randomness is passed in.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from tavola.entropy import Entropy
from tavola.iam.directory import AccessKey, Account, Directory, Document, Group, Role, RoleSession, User
from tavola.iam.errors import AlreadyInDirectory, AssumeRoleDenied, NotInDirectory
from tavola.iam.policy import principal_reach
from tavola.iam.principals import Principal
from tavola.protocol.arns import access_key_of
from tavola.protocol.policy_documents import PolicyDocument

Holder: TypeAlias = Literal["user", "group", "role"]

SESSION_S_MIN, SESSION_S_MAX = 900, 12 * 3600
_MEMBERS: dict[str, str] = {"user": "users", "group": "groups", "role": "roles", "policy": "policies"}


def add_account(directory: Directory, number: str) -> Directory:
    """Return the directory with a new account."""
    if number in directory.accounts:
        raise AlreadyInDirectory(f"account {number} exists already")
    return Directory({**directory.accounts, number: Account()})


def add_user(
    directory: Directory,
    account: str,
    name: str,
    entropy: Entropy,
    *,
    tags: Mapping[str, str] | None = None,
    groups: tuple[str, ...] = (),
    boundary: str | None = None,
) -> Directory:
    """Return the directory with a new user, without keys or permissions."""
    user = User(id=_id("AIDA", entropy), tags=dict(tags or {}), groups=groups, boundary=boundary)
    return _add_holder(directory, account, "user", name, user)


def add_group(directory: Directory, account: str, name: str) -> Directory:
    """Return the directory with a new group."""
    return _add_holder(directory, account, "group", name, Group())


def add_role(
    directory: Directory,
    account: str,
    name: str,
    entropy: Entropy,
    *,
    trust: Document | None = None,
    tags: Mapping[str, str] | None = None,
    boundary: str | None = None,
) -> Directory:
    """Return the directory with a new role; without a trust policy the users of its account may assume it."""
    role = Role(
        trust=trust or _default_trust(account),
        id=_id("AROA", entropy),
        tags=dict(tags or {}),
        boundary=boundary,
    )
    return _add_holder(directory, account, "role", name, role)


def put_policy(directory: Directory, account: str, name: str, document: Document) -> Directory:
    """Return the directory with a named policy added or replaced."""
    account_ = directory.account(account)
    return _replace_account(
        directory, account, replace(account_, policies={**account_.policies, name: document})
    )


def attach_policy(directory: Directory, account: str, holder: Holder, name: str, policy: str) -> Directory:
    """Return the directory with a policy attached to a user, group or role; attaching it twice is allowed."""
    held = _find_holder(directory, account, holder, name)
    return _replace_holder(
        directory,
        account,
        holder,
        name,
        replace(held, policies=tuple(dict.fromkeys((*held.policies, policy)))),
    )


def detach_policy(directory: Directory, account: str, holder: Holder, name: str, policy: str) -> Directory:
    """Return the directory with an attached or inline policy removed from a user, group or role."""
    held = _find_holder(directory, account, holder, name)
    if policy in held.inline:
        left = {name: document for name, document in held.inline.items() if name != policy}
        return _replace_holder(directory, account, holder, name, replace(held, inline=left))
    if policy not in held.policies:
        raise NotInDirectory(f"{holder} {name} has no policy {policy}")
    active = tuple(other_policy for other_policy in held.policies if other_policy != policy)
    return _replace_holder(directory, account, holder, name, replace(held, policies=active))


def put_inline_policy(
    directory: Directory, account: str, holder: Holder, name: str, policy: str, document: Document
) -> Directory:
    """Return the directory with an inline policy added or replaced."""
    held = _find_holder(directory, account, holder, name)
    return _replace_holder(
        directory, account, holder, name, replace(held, inline={**held.inline, policy: document})
    )


def add_key(directory: Directory, account: str, user: str, entropy: Entropy) -> tuple[Directory, AccessKey]:
    """Return the directory with a new access key for a user or for `root`, and the key."""
    key = AccessKey(id=_key_id(directory, account, "AKIA", entropy), secret=_secret(entropy, 30))
    account_ = directory.account(account)
    if user == "root":
        return _replace_account(
            directory, account, replace(account_, root_keys=(*account_.root_keys, key))
        ), key
    held = _find_holder(directory, account, "user", user)
    assert isinstance(held, User), "the holder of kind user is a User"
    return _replace_holder(directory, account, "user", user, replace(held, keys=(*held.keys, key))), key


def assume_role(
    directory: Directory,
    account: str,
    role: str,
    session: str,
    entropy: Entropy,
    *,
    now_s: float,
    life_s: int = 3600,
    by: Principal | None = None,
    policy: Document | None = None,
    tags: Mapping[str, str] | None = None,
) -> tuple[Directory, RoleSession]:
    """Return the directory with a new session of a role, and the session; expired sessions are dropped.

    With `by`, the role's trust policy must allow that principal; without it, the owner of the directory acts and no
    trust is needed.
    """
    if not SESSION_S_MIN <= life_s <= SESSION_S_MAX:
        raise AssumeRoleDenied(f"a session lasts {SESSION_S_MIN} to {SESSION_S_MAX} seconds, not {life_s}")
    if by is not None and not trusts(directory.trust_of(account, role), by):
        raise AssumeRoleDenied(
            f"User: {by.arn} is not authorized to perform: sts:AssumeRole on resource: "
            f"arn:aws:iam::{account}:role/{role}"
        )
    account_ = directory.account(account)
    if role not in account_.roles:
        raise NotInDirectory(f"account {account} has no role {role}")
    session_ = RoleSession(
        role=role,
        name=session,
        key=_key_id(directory, account, "ASIA", entropy),
        secret=_secret(entropy, 30),
        token=_secret(entropy, 120),
        issued_at_s=int(now_s),
        expires_at_s=int(now_s) + life_s,
        policy=policy,
        tags=dict(tags or {}),
    )
    active = tuple(session for session in account_.sessions if session.expires_at_s > now_s)
    return _replace_account(directory, account, replace(account_, sessions=(*active, session_))), session_


def trusts(trust: PolicyDocument, principal: Principal) -> bool:
    """Return whether a trust policy lets a principal assume the role.

    Statements with conditions never do here.
    """
    reached = [
        statement
        for statement in trust.statements
        if principal_reach(statement, principal) != "none"
        and any(action in ("*", "sts:*", "sts:AssumeRole") for action in statement.actions or ())
    ]
    if any(not statement.allows for statement in reached):
        return False
    return any(not statement.conditions for statement in reached)


def remove_entry(directory: Directory, account: str, kind: str, name: str) -> Directory:
    """Return the directory without a user, group, role, policy, access key or session."""
    account_ = directory.account(account)
    if kind == "key":
        return _remove_key(directory, account, account_, name)
    members: dict[str, Any] = dict(getattr(account_, _MEMBERS[kind]))
    if name not in members:
        raise NotInDirectory(f"account {account} has no {kind} {name}")
    del members[name]
    changed = replace(account_, **{_MEMBERS[kind]: members})
    if kind == "role":
        changed = replace(
            changed, sessions=tuple(session for session in account_.sessions if session.role != name)
        )
    return _replace_account(directory, account, changed)


def _add_holder(
    directory: Directory, account: str, kind: Holder, name: str, held: User | Group | Role
) -> Directory:
    if name in getattr(directory.account(account), _MEMBERS[kind]):
        raise AlreadyInDirectory(f"account {account} already has a {kind} {name}")
    return _replace_holder(directory, account, kind, name, held)


def _find_holder(directory: Directory, account: str, kind: Holder, name: str) -> User | Group | Role:
    held: User | Group | Role | None = getattr(directory.account(account), _MEMBERS[kind]).get(name)
    if held is None:
        raise NotInDirectory(f"account {account} has no {kind} {name}")
    return held


def _replace_holder(
    directory: Directory, account: str, kind: Holder, name: str, held: User | Group | Role
) -> Directory:
    account_ = directory.account(account)
    member = _MEMBERS[kind]
    return _replace_account(
        directory, account, replace(account_, **{member: {**getattr(account_, member), name: held}})
    )


def _replace_account(directory: Directory, account: str, changed: Account) -> Directory:
    return Directory({**directory.accounts, account: changed})


def _remove_key(directory: Directory, account: str, account_: Account, key: str) -> Directory:
    users = {
        name: replace(user, keys=tuple(other_key for other_key in user.keys if other_key.id != key))
        for name, user in account_.users.items()
    }
    changed = replace(
        account_,
        users=users,
        root_keys=tuple(root_key for root_key in account_.root_keys if root_key.id != key),
        sessions=tuple(session for session in account_.sessions if session.key != key),
    )
    if changed == account_:
        raise NotInDirectory(f"account {account} has no access key {key}")
    return _replace_account(directory, account, changed)


def _default_trust(account: str) -> Document:
    trusted = {"AWS": f"arn:aws:iam::{account}:root"}
    statement = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _key_id(directory: Directory, account: str, prefix: str, entropy: Entropy) -> str:
    while True:
        key_id = access_key_of(account, entropy.bytes(5), prefix)
        if directory.credential(key_id) is None:
            return key_id


def _id(prefix: str, entropy: Entropy) -> str:
    return prefix + base64.b32encode(entropy.bytes(10)).decode()


def _secret(entropy: Entropy, count: int) -> str:
    return base64.b64encode(entropy.bytes(count)).decode()
