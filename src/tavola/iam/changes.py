"""Changes: a directory with somebody more, or less, or with other policies.

Each gives a new directory, checked as one that is read from a file; chance comes in as an argument.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from tavola.entropy import Entropy
from tavola.iam.directory import Account, Directory, Document, Group, Key, Role, Session, User
from tavola.iam.errors import AlreadyInDirectory, AssumeRefused, NotInDirectory
from tavola.iam.policy import reach_of
from tavola.iam.principals import Principal
from tavola.protocol.accounts import access_key_of
from tavola.protocol.policy_documents import PolicyDocument

Holder: TypeAlias = Literal["user", "group", "role"]

SESSION_S_MIN, SESSION_S_MAX = 900, 12 * 3600
_MEMBERS: dict[str, str] = {"user": "users", "group": "groups", "role": "roles", "policy": "policies"}


def add_account(directory: Directory, number: str) -> Directory:
    """Return the directory with an account."""
    if number in directory.accounts:
        raise AlreadyInDirectory(f"account {number} is there already")
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
    """Return the directory with a user, who has no key and may do nothing yet."""
    user = User(id=_id("AIDA", entropy), tags=dict(tags or {}), groups=groups, boundary=boundary)
    return _added(directory, account, "user", name, user)


def add_group(directory: Directory, account: str, name: str) -> Directory:
    """Return the directory with a group."""
    return _added(directory, account, "group", name, Group())


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
    """Return the directory with a role; without a trust policy the users of its account may take it on."""
    role = Role(
        trust=trust or _trusting(account), id=_id("AROA", entropy), tags=dict(tags or {}), boundary=boundary
    )
    return _added(directory, account, "role", name, role)


def put_policy(directory: Directory, account: str, name: str, document: Document) -> Directory:
    """Return the directory with a policy under a name, in the place of one that had it."""
    found = directory.account(account)
    return _with(directory, account, replace(found, policies={**found.policies, name: document}))


def attach(directory: Directory, account: str, holder: Holder, name: str, policy: str) -> Directory:
    """Return the directory with a policy attached to somebody; attached already, it stays."""
    held = _held(directory, account, holder, name)
    return _changed(
        directory,
        account,
        holder,
        name,
        replace(held, policies=tuple(dict.fromkeys((*held.policies, policy)))),
    )


def detach(directory: Directory, account: str, holder: Holder, name: str, policy: str) -> Directory:
    """Return the directory with a policy, attached or inline, taken from somebody."""
    held = _held(directory, account, holder, name)
    if policy in held.inline:
        left = {each: document for each, document in held.inline.items() if each != policy}
        return _changed(directory, account, holder, name, replace(held, inline=left))
    if policy not in held.policies:
        raise NotInDirectory(f"{holder} {name} has no policy {policy}")
    kept = tuple(each for each in held.policies if each != policy)
    return _changed(directory, account, holder, name, replace(held, policies=kept))


def put_inline(
    directory: Directory, account: str, holder: Holder, name: str, policy: str, document: Document
) -> Directory:
    """Return the directory with a policy that is somebody's own."""
    held = _held(directory, account, holder, name)
    return _changed(directory, account, holder, name, replace(held, inline={**held.inline, policy: document}))


def add_key(directory: Directory, account: str, user: str, entropy: Entropy) -> tuple[Directory, Key]:
    """Return the directory with an access key more, of a user or of `root`, and that key."""
    key = Key(id=_key_id(directory, account, "AKIA", entropy), secret=_secret(entropy, 30))
    found = directory.account(account)
    if user == "root":
        return _with(directory, account, replace(found, root_keys=(*found.root_keys, key))), key
    held = _held(directory, account, "user", user)
    assert isinstance(held, User), "asked for a user"
    return _changed(directory, account, "user", user, replace(held, keys=(*held.keys, key))), key


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
) -> tuple[Directory, Session]:
    """Return the directory with a session of a role, and that session; those that have ended are left out.

    `by` asks in somebody's name, and is refused if the role does not trust them; without it, whoever has the
    directory asks.
    """
    if not SESSION_S_MIN <= life_s <= SESSION_S_MAX:
        raise AssumeRefused(f"a session lives {SESSION_S_MIN} to {SESSION_S_MAX} seconds, not {life_s}")
    if by is not None and not trusts(directory.trust_of(account, role), by):
        raise AssumeRefused(
            f"User: {by.arn} is not authorized to perform: sts:AssumeRole on resource: "
            f"arn:aws:iam::{account}:role/{role}"
        )
    found = directory.account(account)
    if role not in found.roles:
        raise NotInDirectory(f"account {account} has no role {role}")
    made = Session(
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
    kept = tuple(each for each in found.sessions if each.expires_at_s > now_s)
    return _with(directory, account, replace(found, sessions=(*kept, made))), made


def trusts(trust: PolicyDocument, principal: Principal) -> bool:
    """Tell whether a role's trust policy lets a principal take it on; conditions of one are never met here."""
    reached = [
        statement
        for statement in trust.statements
        if reach_of(statement, principal) != "nobody"
        and any(action in ("*", "sts:*", "sts:AssumeRole") for action in statement.actions or ())
    ]
    if any(not statement.allows for statement in reached):
        return False
    return any(not statement.conditions for statement in reached)


def remove(directory: Directory, account: str, kind: str, name: str) -> Directory:
    """Return the directory without a user, group, role, policy, access key or session."""
    found = directory.account(account)
    if kind == "key":
        return _without_key(directory, account, found, name)
    members: dict[str, Any] = dict(getattr(found, _MEMBERS[kind]))
    if name not in members:
        raise NotInDirectory(f"account {account} has no {kind} {name}")
    del members[name]
    changed = replace(found, **{_MEMBERS[kind]: members})
    if kind == "role":
        changed = replace(changed, sessions=tuple(each for each in found.sessions if each.role != name))
    return _with(directory, account, changed)


def _added(
    directory: Directory, account: str, kind: Holder, name: str, held: User | Group | Role
) -> Directory:
    if name in getattr(directory.account(account), _MEMBERS[kind]):
        raise AlreadyInDirectory(f"account {account} has a {kind} {name} already")
    return _changed(directory, account, kind, name, held)


def _held(directory: Directory, account: str, kind: Holder, name: str) -> User | Group | Role:
    held: User | Group | Role | None = getattr(directory.account(account), _MEMBERS[kind]).get(name)
    if held is None:
        raise NotInDirectory(f"account {account} has no {kind} {name}")
    return held


def _changed(
    directory: Directory, account: str, kind: Holder, name: str, held: User | Group | Role
) -> Directory:
    found = directory.account(account)
    member = _MEMBERS[kind]
    return _with(directory, account, replace(found, **{member: {**getattr(found, member), name: held}}))


def _with(directory: Directory, account: str, changed: Account) -> Directory:
    return Directory({**directory.accounts, account: changed})


def _without_key(directory: Directory, account: str, found: Account, key: str) -> Directory:
    users = {
        name: replace(user, keys=tuple(each for each in user.keys if each.id != key))
        for name, user in found.users.items()
    }
    changed = replace(
        found,
        users=users,
        root_keys=tuple(each for each in found.root_keys if each.id != key),
        sessions=tuple(each for each in found.sessions if each.key != key),
    )
    if changed == found:
        raise NotInDirectory(f"account {account} has no access key {key}")
    return _with(directory, account, changed)


def _trusting(account: str) -> Document:
    trusted = {"AWS": f"arn:aws:iam::{account}:root"}
    statement = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _key_id(directory: Directory, account: str, prefix: str, entropy: Entropy) -> str:
    while True:
        found = access_key_of(account, entropy.bytes(5), prefix)
        if directory.credential(found) is None:
            return found


def _id(prefix: str, entropy: Entropy) -> str:
    return prefix + base64.b32encode(entropy.bytes(10)).decode()


def _secret(entropy: Entropy, count: int) -> str:
    return base64.b64encode(entropy.bytes(count)).decode()
