"""Changes to a directory: adding and removing users, roles, policies and keys.

Each function returns a new directory, validated like one read from a file. Randomness is passed in.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from tavola.entropy import Entropy
from tavola.iam.directory import (
    SESSION_S_DEFAULT,
    AccessKey,
    Account,
    Directory,
    Document,
    Group,
    Role,
    User,
)
from tavola.iam.errors import AlreadyInDirectory, NotInDirectory
from tavola.iam.role_sessions import SESSION_KEY_BYTES
from tavola.iam.web_identity import OidcProvider
from tavola.protocol.arns import access_key_of

Holder: TypeAlias = Literal["user", "group", "role"]

_MEMBERS: dict[str, str] = {
    "user": "users",
    "group": "groups",
    "role": "roles",
    "policy": "policies",
    "provider": "oidc_providers",
}


def add_account(directory: Directory, number: str) -> Directory:
    """Return the directory with a new account."""
    if number in directory.accounts:
        raise AlreadyInDirectory(f"account {number} exists already")
    return _replace_account(directory, number, Account())


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
    session_s_max: int = SESSION_S_DEFAULT,
) -> Directory:
    """Return the directory with a new role; without a trust policy its account decides who may assume it."""
    role = Role(
        trust=trust or _default_trust(account),
        id=_id("AROA", entropy),
        tags=dict(tags or {}),
        boundary=boundary,
        session_s_max=session_s_max,
    )
    return _add_holder(directory, account, "role", name, role)


def put_provider(directory: Directory, account: str, issuer: str, provider: OidcProvider) -> Directory:
    """Return the directory with a trusted issuer of web identities added or replaced."""
    account_ = directory.account(account)
    providers = {**account_.oidc_providers, issuer: provider}
    return _replace_account(directory, account, replace(account_, oidc_providers=providers))


def replace_session_key(directory: Directory, entropy: Entropy) -> Directory:
    """Return the directory with a new session key, which ends all sessions."""
    return Directory(directory.accounts, entropy.bytes(SESSION_KEY_BYTES).hex())


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


def remove_entry(directory: Directory, account: str, kind: str, name: str) -> Directory:
    """Return the directory without a user, group, role, policy, provider or access key."""
    account_ = directory.account(account)
    if kind == "key":
        return _remove_key(directory, account, account_, name)
    members: dict[str, Any] = dict(getattr(account_, _MEMBERS[kind]))
    if name not in members:
        raise NotInDirectory(f"account {account} has no {kind} {name}")
    del members[name]
    return _replace_account(directory, account, replace(account_, **{_MEMBERS[kind]: members}))


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
    return Directory({**directory.accounts, account: changed}, directory.session_key)


def _remove_key(directory: Directory, account: str, account_: Account, key: str) -> Directory:
    users = {
        name: replace(user, keys=tuple(other_key for other_key in user.keys if other_key.id != key))
        for name, user in account_.users.items()
    }
    changed = replace(
        account_,
        users=users,
        root_keys=tuple(root_key for root_key in account_.root_keys if root_key.id != key),
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
