"""`tavola iam explain`: what would be decided, and by which statement."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

import typer

from tavola.cli.exits import Exit
from tavola.cli.failures import told
from tavola.cli.output import complain, note, say, say_json

# Rooms are entered when a command runs, so that others need not load them; their types stay outside too.
Directory: TypeAlias = Any
Explained: TypeAlias = Any
Guard: TypeAlias = Any
TableFacts: TypeAlias = Any


def explain(
    who: Annotated[str, typer.Argument(help="A user, a role, root, or an ARN of one.")],
    action: Annotated[
        str, typer.Argument(help="An action, dynamodb:GetItem; with --request an operation, GetItem.")
    ],
    resource: Annotated[
        str | None, typer.Argument(help="A table's name or the ARN of what is accessed; not with --request.")
    ] = None,
    iam: Annotated[
        Path, typer.Option("--iam", envvar="TAVOLA_IAM", help="The file of users, roles and policies.")
    ] = Path("iam.json"),
    account: Annotated[str | None, typer.Option("--account", help="The account of WHO.")] = None,
    region: Annotated[str, typer.Option("--region", help="The region of the table.")] = "us-east-1",
    key: Annotated[
        list[str] | None, typer.Option("--key", help="A partition-key value; may be given often.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", help="Another condition key as KEY=VALUE; may be given often."),
    ] = None,
    request: Annotated[
        str | None, typer.Option("--request", help="The request's JSON, or @FILE, or - for standard input.")
    ] = None,
    table_key: Annotated[
        str | None,
        typer.Option(
            "--table-key", help="The table's key for --request, as `pk` or `pk sk`; `pk:N` is a number."
        ),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index", help="An index and its key, as `NAME=pk sk` or `NAME=a b / c`; may be given often."
        ),
    ] = None,
    resource_policy: Annotated[
        Path | None, typer.Option("--resource-policy", help="A file with the policy on the table.")
    ] = None,
    source_ip: Annotated[
        str | None, typer.Option("--source-ip", help="Where the request comes from.")
    ] = None,
    secure: Annotated[bool, typer.Option("--secure/--plain", help="Whether it comes by TLS.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decision as JSON.")] = False,
) -> None:
    """Say whether somebody may do something, and which statement decides; exit code 1 if not."""
    if not iam.exists():
        complain(
            "Cannot explain.",
            f"There is no file {iam}.",
            "Make one with `tavola iam init`, or name it with --iam.",
        )
        raise typer.Exit(Exit.NOT_FOUND)
    if (request is None) == (resource is None):
        complain(
            "Cannot explain.",
            "Either a resource or a request says what is asked.",
            "Write `explain WHO dynamodb:GetItem TABLE --key VALUE`, or `explain WHO GetItem --request JSON`.",
        )
        raise typer.Exit(Exit.USAGE)
    with told("Cannot explain."):
        from tavola.iam import Circumstances, Guards, load_directory
        from tavola.protocol import Scope

        directory = load_directory(iam)
        warn(directory)
        _warn_of(action)
        principal = directory.principal(who, account_of(directory, account))
        scope = Scope(principal.account, region)
        guard = Guards().guard(directory, principal, scope, Circumstances(source_ip=source_ip, secure=secure))
        policy = None if resource_policy is None else text_of(resource_policy, "--resource-policy")
        if request is not None:
            facts = Facts(scope, table_key, index or [], policy)
            explained = _of_request(guard, action, request, facts)
        else:
            explained = (_of_arguments(guard, action, resource or "", scope, key, context, policy),)
    allowed = all(each.decision.allowed for each in explained)
    if as_json:
        told_of = {
            "principal": principal.arn,
            "allowed": allowed,
            "accesses": [_plain(each) for each in explained],
        }
        say_json("tavola.iam.explain/1", told_of)
    else:
        for each in explained:
            _say(each)
    if not explained and not as_json:
        say("NOTHING  the request touches nothing that needs a permission")
    raise typer.Exit(Exit.OK if allowed else Exit.FAILED)


class Facts:
    """Tables as the command line describes them, in the place of an engine's."""

    def __init__(self, scope: Any, table_key: str | None, indexes: list[str], policy: str | None) -> None:
        self._scope = scope
        self._policy = policy
        self._types: dict[str, str] = {}
        self._key = None if table_key is None else self._names(table_key)
        self._indexes = {name: self._names(key) for name, _, key in (text.partition("=") for text in indexes)}

    @property
    def is_described(self) -> bool:
        """Tell whether the table's key was given."""
        return self._key is not None

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the table that was described, whichever is asked for."""
        from tavola.protocol import TableFacts as Known
        from tavola.protocol import table_arn

        if self._key is None:
            return None
        hashes, ranges = self._key
        return Known(
            arn=name_or_arn if name_or_arn.startswith("arn:") else table_arn(self._scope, name_or_arn),
            hash=hashes[0],
            range=ranges[0] if ranges else None,
            types=self._types,
            indexes=self._indexes,
            policy=self._policy,
        )

    def iterator_stream(self, iterator: str) -> str | None:
        """Return nothing: an iterator means something to the engine that gave it."""
        return None

    def _names(self, key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the partition and the sort attributes of a key in words: `pk sk`, or `a b / c d`."""
        hashes, _, ranges = key.partition("/") if "/" in key else key.strip().partition(" ")
        both = []
        for words in (hashes, ranges):
            names = [word.partition(":") for word in words.split()]
            self._types |= {name: kind or "S" for name, _, kind in names}
            both.append(tuple(name for name, _, _ in names))
        return both[0], both[1]


def _of_request(guard: Guard, operation: str, request: str, facts: Facts) -> tuple[Explained, ...]:
    from tavola.protocol import parse

    name = operation.removeprefix("dynamodb:")
    if request == "-":
        text = sys.stdin.read()
    elif request.startswith("@"):
        text = text_of(Path(request[1:]), "--request @FILE")
    else:
        text = request
    parsed = parse(name, text.encode())
    if not facts.is_described and any(each.is_of_items for each in guard.asked(name, parsed, facts)):
        _complain(
            "Policies go by the values of keys, and nothing says which attribute is one.", "--table-key"
        )
    asked = list(guard.asked(name, parsed, facts))
    if name == "Query" and not any(each.values("dynamodb:leadingkeys") for each in asked):
        _complain("The key condition does not fit the key that was described.", "--table-key or --index")
    return tuple(guard.explain_access(each) for each in asked)


def _complain(why: str, option: str) -> NoReturn:
    complain("Cannot explain.", why, f"Describe the key with {option}.")
    raise typer.Exit(Exit.USAGE)


def _of_arguments(
    guard: Guard,
    action: str,
    resource: str,
    scope: Any,
    keys: list[str] | None,
    context: list[str] | None,
    policy: str | None,
) -> Explained:
    from tavola.iam import StatedAccess
    from tavola.protocol import TableFacts as Known
    from tavola.protocol import table_arn

    arn = resource if resource == "*" or resource.startswith("arn:") else table_arn(scope, resource)
    values: dict[str, tuple[str, ...]] = {}
    for text in context or ():
        name, _, value = text.partition("=")
        values[name.lower()] = (*values.get(name.lower(), ()), value)
    if keys:
        values |= dict.fromkeys(("dynamodb:leadingkeys", "dynamodb:firstpartitionkeyvalues"), tuple(keys))
    facts = Known(arn=arn, hash="", range=None, types={}, indexes={}, policy=policy)
    named = action if ":" in action else f"dynamodb:{action}"
    return guard.explain_access(StatedAccess(named, arn, facts, values))


def _say(explained: Explained) -> None:
    decision = explained.decision
    say(f"{'ALLOWED' if decision.allowed else 'DENIED'}  {explained.action} on {explained.resource}")
    say(f"  {decision.reason}")
    for each in explained.considered:
        effect = "Deny " if each.rule.denies else "Allow"
        outcome = f"condition does not hold: {each.place}" if each.outcome == "condition" else each.outcome
        say(f"    {effect}  {each.rule.name}: {outcome}")


def _plain(explained: Explained) -> dict[str, Any]:
    return {
        "action": explained.action,
        "resource": explained.resource,
        "allowed": explained.decision.allowed,
        "reason": explained.decision.reason,
        "decided_by": None if explained.decision.rule is None else _rule(explained.decision.rule),
        "considered": [
            {**_rule(each.rule), "outcome": each.outcome, "condition": each.place}
            for each in explained.considered
        ],
    }


def _rule(rule: Any) -> dict[str, Any]:
    return {
        "source": rule.source,
        "policy": rule.policy,
        "statement": rule.place,
        "sid": rule.sid,
        "effect": "Deny" if rule.denies else "Allow",
    }


def warn(directory: Directory) -> None:
    """Say what policies name that exists nowhere: on AWS it is taken too, and does nothing."""
    from tavola.iam import unknown_actions, unknown_keys

    for place, action in unknown_actions(directory):
        note(f"Warning: DynamoDB has no action {action}, which {place} names.")
    for place, key, meant in unknown_keys(directory):
        near = f"; did you mean {meant}?" if meant else ""
        note(f"Warning: AWS has no condition key {key}, which {place} names{near}")


def _warn_of(action: str) -> None:
    from tavola.iam import ACTIONS

    if action.startswith("dynamodb:") and action.lower() not in {known.lower() for known in ACTIONS}:
        near = get_close_matches(action, ACTIONS, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        note(f"Warning: DynamoDB has no action {action}{meant}")


def text_of(path: Path, option: str) -> str:
    """Return what a file holds that an option names."""
    from tavola.iam import DocumentUnreadable

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentUnreadable(path, option, str(error)) from error


def account_of(directory: Directory, account: str | None) -> str:
    """Return the account that is meant; where there is one alone, it need not be named."""
    from tavola.iam import NotInDirectory

    numbers: list[str] = sorted(directory.accounts)
    if account is not None:
        return account
    if len(numbers) == 1:
        return numbers[0]
    raise NotInDirectory(f"there are {len(numbers)} accounts; say which with --account")
