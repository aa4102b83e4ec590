"""`tavola iam explain`: what would be decided, and by which statement."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import click

from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from tavola.iam.directory import Directory
    from tavola.iam.explanations import DescribedTable
    from tavola.iam.guard import ExplainedDecision, Guard


def explain(
    who: Annotated[str, Argument(help="A user, a role, root, or an ARN of one.")],
    action: Annotated[
        str, Argument(help="An action, dynamodb:GetItem; with --request an operation, GetItem.")
    ],
    resource: Annotated[
        str | None, Argument(help="A table's name or the ARN of what is accessed; not with --request.")
    ] = None,
    iam: Annotated[
        Path, Option("--iam", envvar="TAVOLA_IAM", help="The file of users, roles and policies.")
    ] = Path("iam.json"),
    account: Annotated[str | None, Option("--account", help="The account of WHO.")] = None,
    region: Annotated[str, Option("--region", help="The region of the table.")] = "us-east-1",
    key: Annotated[
        list[str] | None, Option("--key", help="A partition-key value; may be given often.")
    ] = None,
    context: Annotated[
        list[str] | None,
        Option("--context", help="Another condition key as KEY=VALUE; may be given often."),
    ] = None,
    request: Annotated[
        str | None, Option("--request", help="The request's JSON, or @FILE, or - for standard input.")
    ] = None,
    table_key: Annotated[
        str | None,
        Option("--table-key", help="The table's key for --request, as `pk` or `pk sk`; `pk:N` is a number."),
    ] = None,
    index: Annotated[
        list[str] | None,
        Option(
            "--index", help="An index and its key, as `NAME=pk sk` or `NAME=a b / c`; may be given often."
        ),
    ] = None,
    resource_policy: Annotated[
        Path | None, Option("--resource-policy", help="A file with the policy on the table.")
    ] = None,
    source_ip: Annotated[str | None, Option("--source-ip", help="Where the request comes from.")] = None,
    secure: Annotated[bool, Option("--secure/--plain", help="Whether it comes by TLS.")] = True,
    as_json: Annotated[bool, Option("--json", help="Print the decision as JSON.")] = False,
) -> None:
    """Show whether a caller may perform an action, and which statement decides. Exits with 1 if not."""
    if not iam.exists():
        complain(
            "Cannot explain.",
            f"There is no file {iam}.",
            "Make one with `tavola iam init`, or name it with --iam.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    if (request is None) == (resource is None):
        complain(
            "Cannot explain.",
            "Either a resource or a request says what is asked.",
            "Write `explain WHO dynamodb:GetItem TABLE --key VALUE`, or `explain WHO GetItem --request JSON`.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    with reporting_errors("Cannot explain."):
        from tavola.iam import (
            ConnectionProperties,
            DescribedTable,
            Guards,
            explain_action,
            load_directory,
            render_explanation,
        )
        from tavola.protocol.arns import Scope

        directory = load_directory(iam)
        warn(directory)
        _warn_of(action)
        principal = directory.principal(who, account_of(directory, account))
        scope = Scope(principal.account, region)
        guard = Guards().guard(
            directory, principal, scope, ConnectionProperties(source_ip=source_ip, secure=secure)
        )
        policy = None if resource_policy is None else text_of(resource_policy, "--resource-policy")
        if request is not None:
            described = DescribedTable(scope, table_key, index or [], policy)
            explained = _of_request(guard, action, request, described)
        else:
            stated = _context_of(context or [])
            explained = (
                explain_action(
                    guard, action, resource or "", scope, keys=key or (), context=stated, policy=policy
                ),
            )
    document = render_explanation(principal, explained)
    if as_json:
        say_json("tavola.iam.explain/1", document)
    else:
        for each in explained:
            _say(each)
    if not explained and not as_json:
        say("NOTHING  the request touches nothing that needs a permission")
    raise click.exceptions.Exit(Exit.OK if document["allowed"] else Exit.FAILED)


def _of_request(
    guard: Guard, operation: str, request: str, table: DescribedTable
) -> tuple[ExplainedDecision, ...]:
    from tavola.iam import ConditionMisfit, KeyUnknown, explain_request

    if request == "-":
        text = sys.stdin.read()
    elif request.startswith("@"):
        text = text_of(Path(request[1:]), "--request @FILE")
    else:
        text = request
    explained: tuple[ExplainedDecision, ...]
    try:
        explained = explain_request(guard, operation, text.encode(), table)
    except KeyUnknown as error:
        _complain(str(error), "--table-key")
    except ConditionMisfit as error:
        _complain(str(error), "--table-key or --index")
    return explained


def _complain(why: str, option: str) -> NoReturn:
    complain("Cannot explain.", why, f"Describe the key with {option}.")
    raise click.exceptions.Exit(Exit.USAGE)


def _context_of(given: list[str]) -> dict[str, list[str]]:
    """Return condition keys with their values; a key that is given often has several."""
    values: dict[str, list[str]] = {}
    for text in given:
        name, _, value = text.partition("=")
        values.setdefault(name.lower(), []).append(value)
    return values


def _say(explained: ExplainedDecision) -> None:
    decision = explained.decision
    say(f"{'ALLOWED' if decision.allowed else 'DENIED'}  {explained.action} on {explained.resource}")
    say(f"  {decision.reason}")
    for each in explained.evaluated:
        effect = "Deny " if each.rule.denies else "Allow"
        outcome = f"condition does not hold: {each.place}" if each.outcome == "condition" else each.outcome
        say(f"    {effect}  {each.rule.name}: {outcome}")


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
