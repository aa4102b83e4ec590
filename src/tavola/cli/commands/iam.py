"""`tavola iam`: the file of users, roles and policies that `tavola serve --auth strict` goes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from tavola.cli.commands.iam_explain import account_of, explain, text_of, warn
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import Argument, Group, Option

DEFAULT_ACCOUNT = "000000000000"
if TYPE_CHECKING:
    from tavola.iam.directory import Directory

MadeKind = Literal["user", "group", "role", "policy", "key"]

FileOption = Annotated[
    Path, Option("--iam", envvar="TAVOLA_IAM", help="The file of users, roles and policies.")
]
AccountOption = Annotated[str | None, Option("--account", help="The account; without it the one there is.")]
JsonOption = Annotated[bool, Option("--json", help="Print the result as JSON.")]
TagOption = Annotated[list[str] | None, Option("--tag", help="A tag as KEY=VALUE; may be given often.")]
BoundaryOption = Annotated[
    str | None, Option("--boundary", help="A policy that bounds what is allowed, by name.")
]
WhoArgument = Annotated[str, Argument(help="Whom: user/NAME, group/NAME or role/NAME.")]

app = Group("iam", help="Users, roles and policies for `tavola serve --auth strict`, in a file.")
app.add(explain)


@app.add
def init(
    file: Annotated[Path | None, Argument(help="The file to make; without it --iam names it.")] = None,
    iam: FileOption = Path("iam.json"),
    account: Annotated[str, Option("--account", help="The account's twelve digits.")] = DEFAULT_ACCOUNT,
    user: Annotated[str, Option("--user", help="The first user, who may do everything.")] = "admin",
    as_json: JsonOption = False,
) -> None:
    """Make a file with an account and a first user, and print that user's key."""
    path = file or iam
    if path.exists():
        complain(
            f"Cannot make {path}.", "It is there already.", "Name another file, or remove this one first."
        )
        raise click.exceptions.Exit(Exit.CONFLICT)
    with reporting_errors(f"Cannot make {path}."):
        from tavola.entropy import SYSTEM_ENTROPY
        from tavola.iam import Account, Directory, add_key, add_user, attach_policy, save_directory

        directory = Directory({account: Account()})
        directory = add_user(directory, account, user, SYSTEM_ENTROPY)
        directory = attach_policy(directory, account, "user", user, "AdministratorAccess")
        directory, key = add_key(directory, account, user, SYSTEM_ENTROPY)
        save_directory(path, directory)
    note(f"Made {path}, for your eyes alone: user {user} of account {account} may do everything.")
    _say_key(as_json, key.id, key.secret)


@app.add_as("add-account")
def add_account_(
    number: Annotated[str, Argument(help="Its twelve digits.")], iam: FileOption = Path("iam.json")
) -> None:
    """Add an account."""
    from tavola.iam import add_account

    _change(iam, f"Cannot add account {number}.", lambda directory: add_account(directory, number))
    note(f"Added account {number}.")


@app.add_as("add-user")
def add_user_(
    name: Annotated[str, Argument(help="The user's name.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
    group: Annotated[list[str] | None, Option("--group", help="A group it belongs to.")] = None,
    tag: TagOption = None,
    boundary: BoundaryOption = None,
    key: Annotated[bool, Option("--key", help="Give it an access key too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a user, who may do nothing until a policy is attached."""
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_key, add_user

    made: list[Any] = []

    def change(directory: Directory) -> Directory:
        number = account_of(directory, account)
        changed = add_user(
            directory,
            number,
            name,
            SYSTEM_ENTROPY,
            tags=_tags(tag),
            groups=tuple(group or ()),
            boundary=boundary,
        )
        if key:
            changed, access = add_key(changed, number, name, SYSTEM_ENTROPY)
            made.append(access)
        return changed

    _change(iam, f"Cannot add user {name}.", change)
    note(f"Added user {name}.")
    for access in made:
        _say_key(as_json, access.id, access.secret)


@app.add_as("add-group")
def add_group_(
    name: Annotated[str, Argument(help="The group's name.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
) -> None:
    """Add a group, whose policies its users share."""
    from tavola.iam import add_group

    _change(
        iam, f"Cannot add group {name}.", lambda found: add_group(found, account_of(found, account), name)
    )
    note(f"Added group {name}.")


@app.add_as("add-role")
def add_role_(
    name: Annotated[str, Argument(help="The role's name.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
    trust: Annotated[
        Path | None, Option("--trust", help="A file with the policy that says who may take it on.")
    ] = None,
    tag: TagOption = None,
    boundary: BoundaryOption = None,
) -> None:
    """Add a role; without --trust the users of its account may take it on."""
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_role

    def change(directory: Directory) -> Directory:
        return add_role(
            directory,
            account_of(directory, account),
            name,
            SYSTEM_ENTROPY,
            trust=None if trust is None else _document(trust, "--trust"),
            tags=_tags(tag),
            boundary=boundary,
        )

    _change(iam, f"Cannot add role {name}.", change)
    note(f"Added role {name}.")


@app.add_as("add-key")
def add_key_(
    user: Annotated[str, Argument(help="The user's name, or root.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a user an access key more, and print it; the secret is shown this once."""
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import add_key

    made: list[Any] = []

    def change(directory: Directory) -> Directory:
        changed, key = add_key(directory, account_of(directory, account), user, SYSTEM_ENTROPY)
        made.append(key)
        return changed

    _change(iam, f"Cannot add a key for {user}.", change)
    _say_key(as_json, made[0].id, made[0].secret)


@app.add_as("attach")
def attach_(
    who: WhoArgument,
    policy: Annotated[str, Argument(help="The policy's name; AWS's own such as AdministratorAccess too.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
    file: Annotated[
        Path | None, Option("--file", help="A file with the policy, put under its name first.")
    ] = None,
    inline: Annotated[
        bool, Option("--inline", help="Keep the policy of --file with its holder alone.")
    ] = False,
) -> None:
    """Attach a policy to a user, group or role."""
    from tavola.iam import attach_policy, put_inline_policy, put_policy

    kind, name = _who(who)
    if inline and file is None:
        complain(f"Cannot attach {policy}.", "--inline has no policy.", "Name one with --file.")
        raise click.exceptions.Exit(Exit.USAGE)

    def change(directory: Directory) -> Directory:
        number = account_of(directory, account)
        if file is not None and inline:
            return put_inline_policy(directory, number, kind, name, policy, _document(file, "--file"))
        if file is not None:
            directory = put_policy(directory, number, policy, _document(file, "--file"))
        return attach_policy(directory, number, kind, name, policy)

    changed = _change(iam, f"Cannot attach {policy} to {who}.", change)
    note(f"Attached {policy} to {who}.")
    warn(changed)


@app.add_as("detach")
def detach_(
    who: WhoArgument,
    policy: Annotated[str, Argument(help="The policy's name.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
) -> None:
    """Take a policy, attached or inline, from a user, group or role."""
    from tavola.iam import detach_policy

    kind, name = _who(who)
    _change(
        iam,
        f"Cannot detach {policy} from {who}.",
        lambda found: detach_policy(found, account_of(found, account), kind, name, policy),
    )
    note(f"Detached {policy} from {who}.")


@app.add_as("list")
def list_(iam: FileOption = Path("iam.json"), as_json: JsonOption = False) -> None:
    """Show who there is and which policies they have; never a secret."""
    directory = _load(iam, f"Cannot list {iam}.")
    rows = [row for number in sorted(directory.accounts) for row in _rows(number, directory.accounts[number])]
    if as_json:
        names = ("account", "kind", "name", "policies", "more")
        say_json("tavola.iam.list/1", {"entries": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    _say_table(
        ("ACCOUNT", "KIND", "NAME", "POLICIES", ""),
        [(account, kind, name, ", ".join(held), more) for account, kind, name, held, more in rows],
    )


@app.add_as("assume-role")
def assume_role_(
    role: Annotated[str, Argument(help="The role's name.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
    session: Annotated[str, Option("--session", help="What the session is called.")] = "tavola",
    by: Annotated[
        str | None,
        Option("--by", help="The user in whose name; refused if the role does not trust it."),
    ] = None,
    duration_s: Annotated[
        int, Option("--duration-s", help="How long it lasts [s].", min=900, max=43200)
    ] = 3600,
    policy: Annotated[
        Path | None, Option("--policy", help="A file with a policy that narrows the session.")
    ] = None,
    tag: TagOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take on a role for a while, and print the credentials of that session."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.entropy import SYSTEM_ENTROPY
    from tavola.iam import assume_role

    made: list[Any] = []

    def change(directory: Directory) -> Directory:
        number = account_of(directory, account)
        changed, opened = assume_role(
            directory,
            number,
            role,
            session,
            SYSTEM_ENTROPY,
            now_s=SYSTEM_CLOCK.now(),
            life_s=duration_s,
            by=None if by is None else directory.principal(by, number),
            policy=None if policy is None else _document(policy, "--policy"),
            tags=_tags(tag),
        )
        made.append(opened)
        return changed

    _change(iam, f"Cannot take on role {role}.", change)
    _say_key(as_json, made[0].key, made[0].secret, made[0].token, made[0].expires_at_s)


@app.add_as("remove")
def remove_(
    kind: Annotated[MadeKind, Argument(help="What: user, group, role, policy or key.")],
    name: Annotated[str, Argument(help="Its name; of a key or session, the access key's id.")],
    iam: FileOption = Path("iam.json"),
    account: AccountOption = None,
) -> None:
    """Remove a user, group, role, policy, access key or session."""
    from tavola.iam import remove_entry

    _change(
        iam,
        f"Cannot remove {kind} {name}.",
        lambda found: remove_entry(found, account_of(found, account), kind, name),
    )
    note(f"Removed {kind} {name}.")


def _load(path: Path, what: str) -> Directory:
    if not path.exists():
        complain(what, f"There is no file {path}.", "Make one with `tavola iam init`, or name it with --iam.")
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    with reporting_errors(what):
        from tavola.iam import load_directory

        return load_directory(path)


def _change(path: Path, what: str, change: Callable[[Directory], Directory]) -> Directory:
    """Read the file, change what it holds and write it whole; on any refusal it stays as it was."""
    directory = _load(path, what)
    with reporting_errors(what):
        from tavola.iam import save_directory

        changed = change(directory)
        save_directory(path, changed)
    return changed


def _document(path: Path, option: str) -> dict[str, Any]:
    """Return a policy from a file; it is validated when it is stored."""
    from tavola.protocol.policy_documents import load_document

    found: dict[str, Any] = load_document(text_of(path, option))
    return found


def _who(text: str) -> tuple[Literal["user", "group", "role"], str]:
    kind, _, name = text.partition("/")
    if name:
        if kind == "user":
            return "user", name
        if kind == "group":
            return "group", name
        if kind == "role":
            return "role", name
    complain(
        f"Cannot tell whom {text!r} means.",
        "It is no user, group or role.",
        "Write user/NAME, group/NAME or role/NAME.",
    )
    raise click.exceptions.Exit(Exit.USAGE)


def _tags(texts: list[str] | None) -> dict[str, str]:
    return dict(text.partition("=")[::2] for text in texts or ())


def _say_key(
    as_json: bool, key: str, secret: str, token: str | None = None, expires_at_s: int | None = None
) -> None:
    if as_json:
        found = {"access_key_id": key, "secret_access_key": secret}
        if token is not None:
            found["session_token"] = token
        say_json(
            "tavola.iam.key/1", {**found, **({} if expires_at_s is None else {"expires_at_s": expires_at_s})}
        )
        return
    say(f"export AWS_ACCESS_KEY_ID={key}")
    say(f"export AWS_SECRET_ACCESS_KEY={secret}")
    if token is not None:
        say(f"export AWS_SESSION_TOKEN={token}")


def _rows(number: str, account: Any) -> list[tuple[str, str, str, list[str], str]]:
    rows: list[tuple[str, str, str, list[str], str]] = []
    for kind, held in (("user", account.users), ("group", account.groups), ("role", account.roles)):
        for name, each in sorted(held.items()):
            policies = [*each.policies, *(f"{inline} (inline)" for inline in each.inline)]
            more = [f"boundary {each.boundary}"] if getattr(each, "boundary", None) else []
            more += [f"group {group}" for group in getattr(each, "groups", ())]
            more += [
                f"key {key.id}{'' if key.active else ' (inactive)'}" for key in getattr(each, "keys", ())
            ]
            more += [f"{tag}={value}" for tag, value in getattr(each, "tags", {}).items()]
            rows.append((number, kind, name, policies, ", ".join(more)))
    rows += [(number, "root", "root", [], f"key {key.id}") for key in account.root_keys]
    rows += [(number, "policy", name, [], "") for name in sorted(account.policies)]
    rows += [
        (number, "session", f"{session.role}/{session.name}", [], f"key {session.key}")
        for session in account.sessions
    ]
    return rows


def _say_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    for row in (heads, *rows):
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
