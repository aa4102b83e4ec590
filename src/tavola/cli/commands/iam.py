"""`tavola iam`: the file of users, roles and policies for `tavola serve --auth strict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from tavola.cli.commands.iam_explain import account_of, check_iam_file, explain, warn_about_unknown_names
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import check_parent_exists, read_text
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, CommandGroup, Option
from tavola.cli.settings import IAM, option
from tavola.cli.terminal import align_columns
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.iam.directory import Account, Directory

PrincipalKind: TypeAlias = Literal["user", "group", "role"]

DEFAULT_ACCOUNT = "000000000000"
DEFAULT_FILE = Path("iam.json")

FileOption = Annotated[Path, option(IAM)]
TagOption = Annotated[list[str] | None, Option("--tag", metavar="KEY=VALUE", help="Tag; repeatable.")]
BoundaryOption = Annotated[
    str | None, Option("--permissions-boundary", metavar="POLICY", help="Policy that limits the permissions.")
]
PrincipalArgument = Annotated[str, Argument(metavar="PRINCIPAL", help="user/NAME, group/NAME or role/NAME.")]

app = CommandGroup(
    "iam", help="Manage users, roles and policies for `tavola serve --auth strict`.", no_args_is_help=True
)
app.add(explain)


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """The options that name a file of users and roles, and an account in it."""

    iam: FileOption = DEFAULT_FILE
    account: Annotated[
        str | None, Option("--account", metavar="ID", help="Account. Default: the only one in the file.")
    ] = None

    def update(self, what: str, change: Callable[[Directory, str], Directory]) -> Directory:
        """Apply a change to the account and save the file; an error leaves the file as it was."""
        return update_file(
            self.iam, what, lambda directory: change(directory, account_of(directory, self.account))
        )


@app.add
def init(
    file: Annotated[Path | None, Argument(help="File to create, instead of --iam.")] = None,
    iam: FileOption = DEFAULT_FILE,
    account: Annotated[
        str, Option("--account", metavar="ID", help="Account ID, 12 digits.")
    ] = DEFAULT_ACCOUNT,
    user: Annotated[
        str, Option("--user", metavar="NAME", help="Name of the first, administrative user.")
    ] = "admin",
    as_json: AsJson = False,
) -> None:
    """Create a file with an account and an administrator.

    Prints the administrator's access key.
    """
    path = file or iam
    with reporting_errors(f"Cannot create {path}."):
        from tavola.entropy import SYSTEM_ENTROPY
        from tavola.iam import (
            Account,
            Directory,
            add_key,
            add_user,
            attach_policy,
            replace_session_key,
            save_directory,
        )

        check_parent_exists(path)
        if path.exists():
            raise CommandError(
                f"{path} exists already.", "Choose another file, or delete this one first.", ErrorKind.IN_USE
            )
        directory = replace_session_key(Directory({account: Account()}), SYSTEM_ENTROPY)
        directory = add_user(directory, account, user, SYSTEM_ENTROPY)
        directory = attach_policy(directory, account, "user", user, "AdministratorAccess")
        directory, key = add_key(directory, account, user, SYSTEM_ENTROPY)
        save_directory(path, directory)
    note(f"Created {path}, readable only by you. User {user} is the administrator of account {account}.")
    _say_credentials(as_json, key.id, key.secret)


@app.add_as("add-account")
def add_account_(
    account: Annotated[str, Argument(help="Account ID, 12 digits.")], iam: FileOption = DEFAULT_FILE
) -> None:
    """Add an account."""
    from tavola.iam import add_account

    update_file(iam, f"Cannot add account {account}.", lambda directory: add_account(directory, account))
    note(f"Added account {account}.")


@app.add_as("add-user")
def add_user_(
    name: Annotated[str, Argument(help="Name of the user.")],
    group: Annotated[
        list[str] | None, Option("--group", metavar="NAME", help="Group of the user; repeatable.")
    ] = None,
    tag: TagOption = None,
    boundary: BoundaryOption = None,
    access_key: Annotated[bool, Option("--access-key", help="Create an access key and print it.")] = False,
    as_json: AsJson = False,
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Add a user; attach a policy to give it permissions."""
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_key, add_user

    created: list[Any] = []

    def change(directory: Directory, account: str) -> Directory:
        directory = add_user(
            directory,
            account,
            name,
            SYSTEM_ENTROPY,
            tags=_parse_tags(tag),
            groups=tuple(group or ()),
            boundary=boundary,
        )
        if access_key:
            directory, key = add_key(directory, account, name, SYSTEM_ENTROPY)
            created.append(key)
        return directory

    directory_options.update(f"Cannot add user {name}.", change)
    note(f"Added user {name}.")
    for key in created:
        _say_credentials(as_json, key.id, key.secret)


@app.add_as("add-group")
def add_group_(
    name: Annotated[str, Argument(help="Name of the group.")], directory_options: DirectoryOptions = BUNDLE
) -> None:
    """Add a group of users that share policies."""
    from tavola.iam import add_group

    directory_options.update(
        f"Cannot add group {name}.", lambda directory, account: add_group(directory, account, name)
    )
    note(f"Added group {name}.")


@app.add_as("add-role")
def add_role_(
    name: Annotated[str, Argument(help="Name of the role.")],
    trust: Annotated[
        Path | None,
        Option(
            "--trust",
            metavar="FILE",
            help="Trust policy. Default: users of the account whose policies allow sts:AssumeRole.",
        ),
    ] = None,
    tag: TagOption = None,
    boundary: BoundaryOption = None,
    max_session_duration: Annotated[
        int,
        Option(
            "--max-session-duration",
            metavar="S",
            help="Longest session that callers get.",
            min=3600,
            max=43200,
        ),
    ] = 3600,
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Add a role."""
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_role

    def change(directory: Directory, account: str) -> Directory:
        return add_role(
            directory,
            account,
            name,
            SYSTEM_ENTROPY,
            trust=None if trust is None else _read_policy(trust, "--trust"),
            tags=_parse_tags(tag),
            boundary=boundary,
            session_s_max=max_session_duration,
        )

    directory_options.update(f"Cannot add role {name}.", change)
    note(f"Added role {name}.")


@app.add_as("add-provider")
def add_provider_(
    issuer: Annotated[
        str, Argument(metavar="ISSUER", help="URL of the issuer, exactly as in the claim iss of its tokens.")
    ],
    audience: Annotated[
        list[str], Option("--audience", metavar="TEXT", help="Accepted audience of a token; repeatable.")
    ],
    key: Annotated[
        list[Path],
        Option("--key", metavar="FILE", help="Public key as PEM, JWK or JWK set; repeatable."),
    ],
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Trust an issuer of web identity tokens.

    Roles whose trust policy names the issuer can then be assumed with its tokens, signed with RS256 or ES256.
    """
    from tavola.iam import OidcProvider, put_provider

    what = f"Cannot add {issuer}."
    with reporting_errors(what):
        keys = tuple(public_key for path in key for public_key in _read_public_keys(path))
        provider = OidcProvider(audiences=tuple(audience), keys=keys)
    directory_options.update(
        what, lambda directory, account: put_provider(directory, account, issuer, provider)
    )
    note(f"Tokens of {issuer} are accepted for roles that trust it.")


@app.add_as("add-key")
def add_key_(
    user: Annotated[str, Argument(help="Name of the user, or root.")],
    as_json: AsJson = False,
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Create an access key for a user and print it.

    The secret cannot be shown again.
    """
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_key

    created: list[Any] = []

    def change(directory: Directory, account: str) -> Directory:
        directory, key = add_key(directory, account, user, SYSTEM_ENTROPY)
        created.append(key)
        return directory

    directory_options.update(f"Cannot add a key for {user}.", change)
    _say_credentials(as_json, created[0].id, created[0].secret)


@app.add_as("attach")
def attach_(
    principal: PrincipalArgument,
    policy: Annotated[str, Argument(help="Policy name, also of an AWS policy such as AdministratorAccess.")],
    file: Annotated[
        Path | None, Option("--file", metavar="FILE", help="Create the policy from this document first.")
    ] = None,
    inline: Annotated[
        bool, Option("--inline", help="With --file: store the policy with the principal only.")
    ] = False,
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Attach a policy to a user, group or role."""
    from tavola.iam import attach_policy, put_inline_policy, put_policy

    what = f"Cannot attach {policy} to {principal}."
    with reporting_errors(what):
        kind, name = _parse_principal(principal)
        if inline and file is None:
            raise CommandError("--inline needs --file.", "Name the policy document with --file.")

    def change(directory: Directory, account: str) -> Directory:
        if file is not None and inline:
            return put_inline_policy(directory, account, kind, name, policy, _read_policy(file, "--file"))
        if file is not None:
            directory = put_policy(directory, account, policy, _read_policy(file, "--file"))
        return attach_policy(directory, account, kind, name, policy)

    changed = directory_options.update(what, change)
    note(f"Attached {policy} to {principal}.")
    warn_about_unknown_names(changed)


@app.add_as("detach")
def detach_(
    principal: PrincipalArgument,
    policy: Annotated[str, Argument(help="Name of the policy.")],
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Detach a policy, or delete an inline policy."""
    from tavola.iam import detach_policy

    what = f"Cannot detach {policy} from {principal}."
    with reporting_errors(what):
        kind, name = _parse_principal(principal)
    directory_options.update(
        what, lambda directory, account: detach_policy(directory, account, kind, name, policy)
    )
    note(f"Detached {policy} from {principal}.")


@app.add_as("list")
def list_(iam: FileOption = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """List users, groups, roles, policies and providers.

    Secrets are not shown.
    """
    directory = _load(iam, f"Cannot list {iam}.")
    rows = [row for number in sorted(directory.accounts) for row in _rows(number, directory.accounts[number])]
    if as_json:
        names = ("account", "kind", "name", "policies", "more")
        say_json("tavola.iam.list/1", {"entries": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    cells = [(account, kind, name, ", ".join(policies), more) for account, kind, name, policies, more in rows]
    for line in align_columns([("ACCOUNT", "KIND", "NAME", "POLICIES", "DETAILS"), *cells]):
        say(line)


@app.add_as("assume-role")
def assume_role_(
    role: Annotated[str, Argument(help="Name of the role.")],
    session_name: Annotated[
        str, Option("--session-name", metavar="NAME", help="Name of the session.")
    ] = "tavola",
    by: Annotated[
        str | None,
        Option("--by", metavar="USER", help="Check that this user may assume the role."),
    ] = None,
    duration_seconds: Annotated[
        int, Option("--duration-seconds", metavar="S", help="Lifetime of the session.", min=900, max=43200)
    ] = 3600,
    policy: Annotated[
        Path | None, Option("--policy", metavar="FILE", help="Session policy that narrows the permissions.")
    ] = None,
    tag: TagOption = None,
    as_json: AsJson = False,
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Assume a role and print the temporary credentials.

    Without --by, you act as the owner of the file: no policy is checked.
    """
    from tavola.clock import SYSTEM_CLOCK
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import (
        CompiledPolicies,
        Guard,
        RoleRequest,
        assume_role,
        issue_session,
        replace_session_key,
    )
    from tavola.protocol.arns import DEFAULT_SCOPE, Scope

    what = f"Cannot assume role {role}."
    directory = _load(directory_options.iam, what)
    if directory.session_key is None:
        directory = update_file(
            directory_options.iam, what, lambda loaded: replace_session_key(loaded, SYSTEM_ENTROPY)
        )
    with reporting_errors(what):
        account = account_of(directory, directory_options.account)
        request = RoleRequest(
            role_arn=f"arn:aws:iam::{account}:role/{role}",
            session_name=session_name,
            duration_s=duration_seconds,
            policy=None if policy is None else read_text(policy, "--policy"),
            tags=tuple(_parse_tags(tag).items()),
        )
        now_s = SYSTEM_CLOCK.now()
        if by is None:
            issued = issue_session(directory, request, SYSTEM_ENTROPY, now_s)
        else:
            compiled = CompiledPolicies(directory, directory.principal(by, account))
            guard = Guard(compiled, Scope(account, DEFAULT_SCOPE.region))
            issued = assume_role(directory, guard, request, SYSTEM_ENTROPY, now_s)
    _say_credentials(as_json, issued.session.key_id, issued.secret, issued.token, issued.session.expires_at_s)


@app.add_as("revoke-sessions")
def revoke_sessions_(iam: FileOption = DEFAULT_FILE) -> None:
    """End all sessions of roles.

    Replaces the key that signs their tokens; a file written by hand gets its first one.
    """
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import replace_session_key

    update_file(
        iam, "Cannot revoke sessions.", lambda directory: replace_session_key(directory, SYSTEM_ENTROPY)
    )
    note("All sessions have ended. Servers that read this file refuse their tokens from now on.")


@app.add_as("remove")
def remove_(
    kind: Annotated[
        Literal["user", "group", "role", "policy", "provider", "key"],
        Argument(metavar="KIND", help="user, group, role, policy, provider (of web identities), or key."),
    ],
    name: Annotated[str, Argument(help="Its name; for a key, the access key ID; for a provider, its URL.")],
    directory_options: DirectoryOptions = BUNDLE,
) -> None:
    """Remove a user, group, role, policy, provider or key."""
    from tavola.iam import remove_entry

    directory_options.update(
        f"Cannot remove {kind} {name}.",
        lambda directory, account: remove_entry(directory, account, kind, name),
    )
    note(f"Removed {kind} {name}.")


def _load(path: Path, what: str) -> Directory:
    with reporting_errors(what):
        from tavola.iam import load_directory

        check_iam_file(path)
        return load_directory(path)


def update_file(path: Path, what: str, change: Callable[[Directory], Directory]) -> Directory:
    """Load a file, change the directory and save it; an error leaves the file as it was."""
    directory = _load(path, what)
    with reporting_errors(what):
        from tavola.iam import save_directory

        changed = change(directory)
        save_directory(path, changed)
    return changed


def _read_policy(path: Path, option_name: str) -> dict[str, Any]:
    """Return a policy from a file; it is validated when it is stored."""
    from tavola.protocol.policy_documents import load_document

    document: dict[str, Any] = load_document(read_text(path, option_name))
    return document


def _read_public_keys(path: Path) -> list[str | dict[str, Any]]:
    """Return the keys in a file; they are validated when they are stored."""
    import msgspec

    text = read_text(path, "--key")
    if "-----BEGIN" in text:
        return [text]
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        document = None
    if not isinstance(document, dict):
        raise CommandError(f"{path} is neither PEM nor JSON.", "Give a public key as PEM, JWK or JWK set.")
    keys: list[str | dict[str, Any]] = document.get("keys", [document])
    return keys


def _parse_principal(text: str) -> tuple[PrincipalKind, str]:
    kinds: tuple[PrincipalKind, ...] = ("user", "group", "role")
    for kind in kinds:
        if text.startswith(f"{kind}/") and len(text) > len(kind) + 1:
            return kind, text.removeprefix(f"{kind}/")
    raise CommandError(f"{text!r} is not a principal.", "Use user/NAME, group/NAME or role/NAME.")


def _parse_tags(texts: list[str] | None) -> dict[str, str]:
    return dict(text.partition("=")[::2] for text in texts or ())


def _say_credentials(
    as_json: bool, key: str, secret: str, token: str | None = None, expires_at_s: int | None = None
) -> None:
    if as_json:
        members = {
            "access_key_id": key, "secret_access_key": secret, "session_token": token, "expires_at_s": expires_at_s,
        }  # fmt: skip
        say_json("tavola.iam.key/1", {name: value for name, value in members.items() if value is not None})
        return
    say(f"export AWS_ACCESS_KEY_ID={key}")
    say(f"export AWS_SECRET_ACCESS_KEY={secret}")
    if token is not None:
        say(f"export AWS_SESSION_TOKEN={token}")


def _rows(number: str, account: Account) -> list[tuple[str, str, str, list[str], str]]:
    rows: list[tuple[str, str, str, list[str], str]] = []
    principals: dict[str, Any] = {"user": account.users, "group": account.groups, "role": account.roles}
    for kind, entries in principals.items():
        for name, entry in sorted(entries.items()):
            policies = [*entry.policies, *(f"{inline} (inline)" for inline in entry.inline)]
            details = [f"boundary {entry.boundary}"] if getattr(entry, "boundary", None) else []
            details += [f"group {group}" for group in getattr(entry, "groups", ())]
            details += [
                f"key {key.id}{'' if key.active else ' (inactive)'}" for key in getattr(entry, "keys", ())
            ]
            details += [f"{tag}={value}" for tag, value in getattr(entry, "tags", {}).items()]
            rows.append((number, kind, name, policies, ", ".join(details)))
    rows += [(number, "root", "root", [], f"key {key.id}") for key in account.root_keys]
    rows += [(number, "policy", name, [], "") for name in sorted(account.policies)]
    rows += [
        (number, "provider", issuer, [], ", ".join(f"audience {audience}" for audience in provider.audiences))
        for issuer, provider in sorted(account.oidc_providers.items())
    ]
    return rows
