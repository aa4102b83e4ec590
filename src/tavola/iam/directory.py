"""The directory of accounts: users, groups, roles, policies, keys, and trusted issuers of web identities.

The credentials of role sessions are not in it: `role_sessions` derives them from its session key.

A directory is parsed from JSON and rendered to it. Parsing checks every name, reference and policy and reports errors
with their location. Directories are immutable: a change builds a new one, so readers never see a partial update.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from tavola.iam.errors import InvalidDirectory, NotInDirectory, SessionKeyMissing
from tavola.iam.principals import Principal, role_arn, session_arn, user_arn
from tavola.iam.role_sessions import SESSION_KEY_BYTES, RoleSession, SessionSigner
from tavola.iam.web_identity import OidcProvider, ProviderRefused, TrustedIssuer, import_provider
from tavola.protocol.policy_documents import (
    PolicyDocument,
    PolicyRefused,
    load_document,
    parse_policy,
    read_policy,
)


def _allowing(*actions: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}],
    }


MANAGED: dict[str, dict[str, Any]] = {
    "AdministratorAccess": _allowing("*"),
    "AmazonDynamoDBFullAccess": _allowing("dynamodb:*"),
    "AmazonDynamoDBReadOnlyAccess": _allowing(
        "dynamodb:BatchGetItem",
        "dynamodb:Describe*",
        "dynamodb:Get*",
        "dynamodb:List*",
        "dynamodb:PartiQLSelect",
        "dynamodb:Query",
        "dynamodb:Scan",
    ),
}
"""By their AWS name, under which they can be attached without being defined."""


FORMAT = 1

SESSION_S_MIN, SESSION_S_DEFAULT, SESSION_S_MAX = 900, 3600, 12 * 3600
"""How long a session of a role lasts; a role's own maximum is between the default and the last."""

_ACCOUNT = re.compile(r"[0-9]{12}")
_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{1,128}")

Document: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["user", "group", "role", "policy"]


class _DocumentPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of the JSON document; members with default values are not written."""


class AccessKey(_DocumentPart, frozen=True):
    """An access key of a user or of an account's root."""

    id: str
    secret: str
    active: bool = True


class Group(_DocumentPart, frozen=True):
    """Policies shared by several users."""

    policies: tuple[str, ...] = ()  # names of attached policies
    inline: dict[str, Document] = {}


class User(_DocumentPart, frozen=True):
    """A person or program with its own keys."""

    id: str = ""
    policies: tuple[str, ...] = ()
    inline: dict[str, Document] = {}
    groups: tuple[str, ...] = ()
    boundary: str | None = None  # the name of a policy
    tags: dict[str, str] = {}
    keys: tuple[AccessKey, ...] = ()


class Role(_DocumentPart, frozen=True):
    """Permissions that a principal can assume for a limited time."""

    trust: Document
    id: str = ""
    policies: tuple[str, ...] = ()
    inline: dict[str, Document] = {}
    boundary: str | None = None
    tags: dict[str, str] = {}
    session_s_max: int = SESSION_S_DEFAULT


class Account(_DocumentPart, frozen=True):
    """All users, groups, roles, policies and trusted issuers of one account."""

    policies: dict[str, Document] = {}
    groups: dict[str, Group] = {}
    users: dict[str, User] = {}
    roles: dict[str, Role] = {}
    oidc_providers: dict[str, OidcProvider] = {}  # by the issuer's URL
    root_keys: tuple[AccessKey, ...] = ()


class Credential(msgspec.Struct, frozen=True):
    """An access key with its secret and the principal it belongs to."""

    key_id: str
    secret: str
    principal: Principal
    token: str | None = None
    expires_at_s: float | None = None
    active: bool = True


class NamedPolicy(msgspec.Struct, frozen=True):
    """A policy with its display name."""

    name: str
    document: PolicyDocument


class Policies(msgspec.Struct, frozen=True):
    """The policies of a principal; `boundary` and `session` are None if not set."""

    identity: tuple[NamedPolicy, ...]
    boundary: NamedPolicy | None = None
    session: tuple[NamedPolicy, ...] | None = None  # what one of them allows


class Directory:
    """All principals, their keys and their policies."""

    def __init__(self, accounts: Mapping[str, Account], session_key: str | None = None) -> None:
        """Check the accounts; `session_key` is hexadecimal, and without it no role can be assumed."""
        self.accounts = dict(accounts)
        self.session_key = session_key
        self._signer = None if session_key is None else SessionSigner(_session_key_bytes(session_key))
        self._issuers: dict[str, dict[str, TrustedIssuer]] = {}  # by account
        self._parsed: dict[tuple[str, ...], PolicyDocument] = {}
        self._credentials: dict[str, Credential] = {}
        for number, account in self.accounts.items():
            self._check(number, account)

    @property
    def signer(self) -> SessionSigner:
        """The signer of session tokens."""
        if self._signer is None:
            raise SessionKeyMissing
        return self._signer

    def credential(self, key_id: str, token: bytes | None = None) -> Credential | None:
        """Return the credential of an access key, or of a session's key with its token; None if it is unknown."""
        known = self._credentials.get(key_id)
        if known is not None or token is None or self._signer is None:
            return known
        opened = self._signer.open(token)
        if opened is None or opened.session.key_id != key_id:
            return None
        session = opened.session
        account = self.accounts.get(session.account)
        role = None if account is None else account.roles.get(session.role)
        if role is None or role.id != session.role_id:
            return None  # removed since, perhaps replaced by another one
        principal = session_principal(session.account, session.role, role, session.name, session)
        return Credential(
            key_id, opened.secret, principal, token=opened.token, expires_at_s=session.expires_at_s
        )

    def issuers(self, account: str) -> Mapping[str, TrustedIssuer]:
        """Return the issuers of web identities that an account trusts, by their URL."""
        return self._issuers.get(account, {})

    def credentials(self) -> Iterator[Credential]:
        """Yield every credential."""
        return iter(self._credentials.values())

    def account(self, number: str) -> Account:
        """Return an account."""
        known_account = self.accounts.get(number)
        if known_account is None:
            raise NotInDirectory(f"account {number} does not exist")
        return known_account

    def user(self, account: str, name: str) -> Principal:
        """Return a user as a principal."""
        user = self.account(account).users.get(name)
        if user is None:
            raise NotInDirectory(f"account {account} has no user {name}")
        return Principal(
            account, "user", name, user_arn(account, name), user.id or name, tuple(user.tags.items())
        )

    def root(self, account: str) -> Principal:
        """Return the root of an account as a principal."""
        self.account(account)
        return Principal(account, "root", "root", f"arn:aws:iam::{account}:root", account)

    def role_session(self, account: str, name: str, session: str = "session") -> Principal:
        """Return a session of a role as a principal, without requiring an access key."""
        role = self.account(account).roles.get(name)
        if role is None:
            raise NotInDirectory(f"account {account} has no role {name}")
        return session_principal(account, name, role, session)

    def principal(self, arn_or_name: str, account: str) -> Principal:
        """Return the principal with an ARN, or the user or role with a name."""
        match = re.fullmatch(
            r"arn:aws:(?:iam|sts)::([0-9]{12}):(root|user|role|assumed-role)(?:/([^/]+))?(?:/([^/]+))?",
            arn_or_name,
        )
        if match is None:
            known = self.account(account)
            if arn_or_name == "root":
                return self.root(account)
            if arn_or_name in known.users:
                return self.user(account, arn_or_name)
            if arn_or_name in known.roles:
                return self.role_session(account, arn_or_name)
            raise NotInDirectory(f"account {account} has no user or role {arn_or_name!r}")
        number, kind, name, session = match.groups()
        if kind == "root":
            return self.root(number)
        if kind == "user":
            return self.user(number, name or "")
        return self.role_session(number, name or "", session or "session")

    def policies_of(self, principal: Principal) -> Policies:
        """Return the policies of a principal, each with its display name."""
        account = self.account(principal.account)
        if principal.kind in ("root", "federated"):
            return Policies(())
        holder: User | Role
        if principal.kind == "user":
            holder, kind = account.users[principal.name], "user"
        else:
            holder, kind = account.roles[principal.name], "role"
        places: list[tuple[str, ...]] = [*_places(holder, kind, principal.name)]
        for group in getattr(holder, "groups", ()):
            places += _places(account.groups[group], "group", group)
        identity = tuple(
            NamedPolicy(_describe_location(place), self._parsed[_key(principal.account, place)])
            for place in places
        )
        boundary = None
        if holder.boundary is not None:
            place = ("policies", holder.boundary)
            boundary = NamedPolicy(
                f"boundary {holder.boundary}", self._parsed[_key(principal.account, place)]
            )
        session = principal.session
        return Policies(
            identity, boundary, None if session is None else self._session_policies(account, session)
        )

    def _session_policies(self, account: Account, session: RoleSession) -> tuple[NamedPolicy, ...] | None:
        """Return the policies that limit a session; one that was removed since allows nothing."""
        if not session.is_limited:
            return None
        named = [
            NamedPolicy(f"session policy {name}", self._parsed[session.account, "policies", name])
            if name in account.policies
            else NamedPolicy(f"session policy {name}", read_policy(MANAGED[name], "identity"))
            for name in session.policy_names
            if name in account.policies or name in MANAGED
        ]
        if session.policy is not None:
            named.append(NamedPolicy("session policy", parse_policy(session.policy, "identity")))
        return tuple(named)

    def documents(self) -> Iterator[tuple[str, PolicyDocument]]:
        """Yield every policy of users, groups and roles with its location in the file."""
        for place, document in self._parsed.items():
            if place[-1] != "trust":
                yield ".".join(place[1:]), document

    def trust_of(self, account: str, role: str) -> PolicyDocument:
        """Return the trust policy of a role."""
        self.role_session(account, role)
        return self._parsed[account, "roles", role, "trust"]

    def _check(self, number: str, account: Account) -> None:
        path = f"accounts.{number}"
        if _ACCOUNT.fullmatch(number) is None:
            _refuse("an account id has 12 digits", path)
        for name, document in account.policies.items():
            _check_name(name, f"{path}.policies")
            self._parse(document, "identity", (number, "policies", name))
        for name, group in account.groups.items():
            _check_name(name, f"{path}.groups")
            self._check_holder(number, account, group, ("groups", name))
        for name, user in account.users.items():
            _check_name(name, f"{path}.users")
            self._check_holder(number, account, user, ("users", name))
            for group_name in user.groups:
                if group_name not in account.groups:
                    _refuse(f"group {group_name} does not exist", f"{path}.users.{name}.groups")
            for key in user.keys:
                self._add_credential(
                    Credential(key.id, key.secret, self.user(number, name), active=key.active),
                    f"{path}.users.{name}.keys",
                )
        for name, role in account.roles.items():
            _check_name(name, f"{path}.roles")
            self._check_holder(number, account, role, ("roles", name))
            self._parse(role.trust, "trust", (number, "roles", name, "trust"))
            if not SESSION_S_DEFAULT <= role.session_s_max <= SESSION_S_MAX:
                _refuse(
                    f"a role's sessions last at most {SESSION_S_DEFAULT} to {SESSION_S_MAX} seconds",
                    f"{path}.roles.{name}.session_s_max",
                )
        for key in account.root_keys:
            self._add_credential(
                Credential(key.id, key.secret, self.root(number), active=key.active), f"{path}.root_keys"
            )
        for issuer, provider in account.oidc_providers.items():
            try:
                self._issuers.setdefault(number, {})[issuer] = import_provider(issuer, provider)
            except ProviderRefused as refused:
                raise InvalidDirectory(str(refused), f"{path}.oidc_providers.{issuer}") from refused

    def _check_holder(
        self, number: str, account: Account, holder: Group | User | Role, place: tuple[str, str]
    ) -> None:
        path = ".".join(("accounts", number, *place))
        for name in holder.policies:
            if name not in account.policies and name not in MANAGED:
                _refuse(f"policy {name} does not exist", f"{path}.policies")
            if name in MANAGED:
                self._parse(MANAGED[name], "identity", (number, "policies", name))
        boundary = getattr(holder, "boundary", None)
        if boundary is not None:
            if boundary not in account.policies and boundary not in MANAGED:
                _refuse(f"policy {boundary} does not exist", f"{path}.boundary")
            if boundary in MANAGED:
                self._parse(MANAGED[boundary], "identity", (number, "policies", boundary))
        for name, document in holder.inline.items():
            _check_name(name, f"{path}.inline")
            self._parse(document, "identity", (number, *place, "inline", name))
        tags: dict[str, str] = getattr(holder, "tags", {})
        for key in tags:
            if not key or [other.lower() for other in tags].count(key.lower()) > 1:
                _refuse("a tag key must not be empty or differ from another only by case", f"{path}.tags")

    def _add_credential(self, credential: Credential, place: str) -> None:
        if not credential.key_id or not credential.secret:
            _refuse("an access key needs an id and a secret", place)
        if credential.key_id in self._credentials:
            _refuse(f"access key {credential.key_id} occurs twice", place)
        self._credentials[credential.key_id] = credential

    def _parse(self, document: Document, kind: Literal["identity", "trust"], place: tuple[str, ...]) -> None:
        try:
            self._parsed[place] = read_policy(document, kind)
        except PolicyRefused as refused:
            raise InvalidDirectory(refused.reason, ".".join(("accounts", *place, refused.place))) from refused


def parse_directory(text: str) -> Directory:
    """Parse a directory from JSON; errors carry their location."""
    try:
        data = load_document(text)
    except PolicyRefused as refused:
        raise InvalidDirectory("not valid JSON", refused.place) from refused
    if not isinstance(data, dict) or set(data) | {"session_key"} != {"tavola_iam", "session_key", "accounts"}:
        _refuse(
            'expected an object with the members "tavola_iam", "accounts" and perhaps "session_key"',
            "the document",
        )
    if data["tavola_iam"] != FORMAT:
        _refuse(f"this version of Tavola reads format {FORMAT}, not {data['tavola_iam']!r}", "tavola_iam")
    if not isinstance(data["accounts"], dict):
        _refuse("expected an object of accounts by id", "accounts")
    _check_once(data["accounts"], "accounts")
    return Directory(
        {number: _account(content, f"accounts.{number}") for number, content in data["accounts"].items()},
        data.get("session_key"),
    )


def render_directory(directory: Directory) -> str:
    """Return a directory as readable, editable JSON."""
    plain = {number: msgspec.to_builtins(account) for number, account in sorted(directory.accounts.items())}
    key = {} if directory.session_key is None else {"session_key": directory.session_key}
    document = {"tavola_iam": FORMAT, **key, "accounts": plain}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _session_key_bytes(text: Any) -> bytes:
    try:
        key = bytes.fromhex(text)
    except (TypeError, ValueError):
        key = b""
    if len(key) != SESSION_KEY_BYTES:
        _refuse(f"expected {SESSION_KEY_BYTES} bytes in hexadecimal", "session_key")
    return key


_P = TypeVar("_P", bound=msgspec.Struct)


def _account(data: Any, place: str) -> Account:
    """Return an account; its parts are converted one by one so that each error has a location."""
    if not isinstance(data, dict):
        _refuse("expected an object", place)
    _check_once(data, place)
    parts: dict[str, Any] = dict(data)
    shapes_by_member = (("groups", Group), ("users", User), ("roles", Role), ("oidc_providers", OidcProvider))
    for member, shape in shapes_by_member:
        held = parts.get(member)
        if held is None:
            continue
        if not isinstance(held, dict):
            _refuse(f"{member} are an object, by name", f"{place}.{member}")
        _check_once(held, f"{place}.{member}")
        parts[member] = {
            name: _convert(content, shape, f"{place}.{member}.{name}") for name, content in held.items()
        }
    shapes = {name: parts.pop(name) for name, _ in shapes_by_member if name in parts}
    account = _convert(parts, Account, place)
    return msgspec.structs.replace(account, **shapes)


def _check_once(members: Any, place: str) -> None:
    repeated = getattr(members, "repeated", None)
    if repeated is not None:
        _refuse(f"{repeated!r} occurs twice; remove one", place)


def _convert(data: Any, shape: type[_P], place: str) -> _P:
    _check_once(data, place)
    try:
        return msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        problem, _, inside = str(error).partition(" - at `$")
        raise InvalidDirectory(_describe_problem(problem), place + inside.rstrip("`")) from error


_PROBLEMS = (  # msgspec's sentences, and ours
    (re.compile(r"Object contains unknown field `(.*)`", re.DOTALL), "unknown member {0!r}"),
    (re.compile(r"Object missing required field `(.*)`"), "member {0!r} is missing"),
    (re.compile(r"Expected `(.*)`, got `(.*)`"), "expected {0}, not {1}"),
)
_TYPE_WORDS = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _describe_problem(problem: str) -> str:
    """Return a validation error in the words of JSON."""
    for pattern, sentence in _PROBLEMS:
        if match := pattern.fullmatch(problem):
            words = (
                " or ".join(_TYPE_WORDS.get(word, word) for word in group.split(" | "))
                for group in match.groups()
            )
            return sentence.format(*words)
    return problem


def session_principal(
    account: str, name: str, role: Role, session_name: str, session: RoleSession | None = None
) -> Principal:
    """Return a session of a role as a principal; its tags replace those of the role."""
    tags = () if session is None else session.tags
    replaced = {key.lower() for key, _ in tags}
    return Principal(
        account=account,
        kind="session",
        name=name,
        arn=session_arn(account, name, session_name),
        id=f"{role.id or name}:{session_name}",
        tags=(*(tag for tag in role.tags.items() if tag[0].lower() not in replaced), *tags),
        role_arn=role_arn(account, name),
        session=session,
        identity_keys=() if session is None else session.condition_keys,
    )


def _places(holder: Group | User | Role, kind: str, name: str) -> Iterator[tuple[str, ...]]:
    for policy in holder.policies:
        yield ("policies", policy, kind, name)
    for policy in holder.inline:
        yield (f"{kind}s", name, "inline", policy)


def _key(account: str, place: tuple[str, ...]) -> tuple[str, ...]:
    return (account, *place[:2]) if place[0] == "policies" else (account, *place)


def _describe_location(place: tuple[str, ...]) -> str:
    if place[0] == "policies":
        return f"policy {place[1]} of {place[2]} {place[3]}"
    return f"inline policy {place[3]} of {place[0].removesuffix('s')} {place[1]}"


def _check_name(name: str, place: str) -> None:
    if _NAME.fullmatch(name) is None:
        _refuse(f"{name!r} is not a valid name; use up to 128 letters, digits or _+=,.@-", place)


def _refuse(reason: str, place: str) -> NoReturn:
    raise InvalidDirectory(reason, place)
