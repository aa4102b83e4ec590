"""`tavola iam explain`: whether a caller may perform an action, and which policy statement decides."""

from __future__ import annotations

import sys
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.files import read_text
from tavola.cli.output import say, say_json, warn
from tavola.cli.parameters import Argument, AsJson, Option
from tavola.cli.settings import IAM, option
from tavola.cli.targets import parse_json_object
from tavola.cli.terminal import style
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.iam.directory import Directory
    from tavola.iam.explanations import DescribedTable
    from tavola.iam.guard import ExplainedDecision, Guard


def explain(
    principal: Annotated[str, Argument(metavar="PRINCIPAL", help="User, role, root, or the ARN of one.")],
    action: Annotated[
        str, Argument(metavar="ACTION", help="Action such as dynamodb:GetItem; with --request, GetItem.")
    ],
    resource: Annotated[str | None, Argument(help="Table name or ARN; not with --request.")] = None,
    iam: Annotated[Path, option(IAM)] = Path("iam.json"),
    account: Annotated[str | None, Option("--account", metavar="ID", help="Account of the principal.")] = None,
    region: Annotated[str, Option("--region", metavar="REGION", help="Region of the table.")] = "us-east-1",
    key: Annotated[
        list[str] | None, Option("--key", metavar="VALUE", help="Partition key value; repeatable.")
    ] = None,
    context: Annotated[
        list[str] | None, Option("--context", metavar="KEY=VALUE", help="Condition key; repeatable.")
    ] = None,
    request: Annotated[
        str | None, Option("--request", metavar="JSON|@FILE|-", help="Request body to explain.")
    ] = None,
    table_key: Annotated[
        str | None,
        Option("--table-key", metavar="KEYS", help="With --request: the table's key, 'pk' or 'pk sk'; 'pk:N' is a number."),
    ] = None,
    index: Annotated[
        list[str] | None,
        Option(
            "--index", metavar="NAME=KEYS",
            help="With --request: an index and its key, 'NAME=pk sk' or 'NAME=a b / c'; repeatable.",
        ),
    ] = None,
    resource_policy: Annotated[
        Path | None, Option("--resource-policy", metavar="FILE", help="Resource policy of the table.")
    ] = None,
    source_ip: Annotated[str | None, Option("--source-ip", metavar="ADDRESS", help="Client address.")] = None,
    secure: Annotated[bool, Option("--secure/--plain", help="Whether the request uses TLS.")] = True,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show whether an action is allowed, and why.

    Exits with 1 if it is denied.
    """
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

        check_iam_file(iam)
        if (request is None) == (resource is None):
            raise CommandError(
                "Exactly one of RESOURCE and --request is needed.",
                "Use `explain USER dynamodb:GetItem TABLE --key VALUE`, or `explain USER GetItem --request JSON`.",
            )
        directory = load_directory(iam)
        warn_about_unknown_names(directory)
        _warn_about_unknown_action(action)
        caller = directory.principal(principal, account_of(directory, account))
        scope = Scope(caller.account, region)
        connection = ConnectionProperties(source_ip=source_ip, secure=secure)
        guard = Guards().guard(directory, caller, scope, connection)
        policy = None if resource_policy is None else read_text(resource_policy, "--resource-policy")
        if request is not None:
            explained = _explain_request(
                guard, action, request, DescribedTable(scope, table_key, index or [], policy)
            )
        else:
            explained = (
                explain_action(
                    guard, action, resource or "", scope, keys=key or (), context=_parse_context(context or []), policy=policy
                ),
            )  # fmt: skip
    explanation = render_explanation(caller, explained)
    if as_json:
        say_json("tavola.iam.explain/1", asdict(explanation))
    else:
        for call_explanation in explained:
            _say_decision(call_explanation)
        if not explained:
            say("The request needs no permission.")
    raise click.exceptions.Exit(Exit.OK if explanation.allowed else Exit.FAILED)


def check_iam_file(path: Path) -> None:
    """Raise if a file of users and roles does not exist."""
    if not path.exists():
        remedy = "Create one with `tavola iam init`, or name it with --iam."
        raise CommandError(f"{path} does not exist.", remedy, ErrorKind.NOT_FOUND)


def _explain_request(
    guard: Guard, operation: str, request: str, table: DescribedTable
) -> tuple[ExplainedDecision, ...]:
    from tavola.iam import ConditionMisfit, UnknownConditionKey, explain_request

    if request == "-":
        text = sys.stdin.read()
    elif request.startswith("@"):
        text = read_text(Path(request[1:]), "--request @FILE")
    else:
        text = request
    try:
        parse_json_object("--request", text, '{"TableName": "t", "Key": {"pk": {"S": "a"}}}')
    except CommandError as error:
        error.kind = ErrorKind.INVALID  # of the request, which may be in a file
        raise
    try:
        return explain_request(guard, operation, text.encode(), table)
    except UnknownConditionKey as error:
        raise CommandError(str(error), "Describe the key with --table-key.") from error
    except ConditionMisfit as error:
        raise CommandError(str(error), "Describe the key with --table-key or --index.") from error


def _parse_context(options: list[str]) -> dict[str, list[str]]:
    """Return condition keys with their values; a repeated key has several."""
    values: dict[str, list[str]] = {}
    for text in options:
        name, _, value = text.partition("=")
        values.setdefault(name.lower(), []).append(value)
    return values


def _say_decision(explained: ExplainedDecision) -> None:
    decision = explained.decision
    label = style("ALLOWED", "success") if decision.allowed else style("DENIED", "error")
    say(f"{label}  {explained.action} on {explained.resource}")
    say(f"  {decision.reason}")
    for evaluated in explained.evaluated:
        effect = "Deny " if evaluated.rule.denies else "Allow"
        outcome = (
            f"condition not met: {evaluated.place}" if evaluated.outcome == "condition" else evaluated.outcome
        )
        say(f"    {effect}  {evaluated.rule.name}: {outcome}")


def warn_about_unknown_names(directory: Directory) -> None:
    """Warn about actions and condition keys in policies that do not exist; AWS accepts them, and they have no effect."""
    from tavola.iam import unknown_actions, unknown_keys

    for place, action in unknown_actions(directory):
        warn(f"{place} names the action {action}, which DynamoDB does not have.")
    for place, key, similar in unknown_keys(directory):
        warn(f"{place} names the condition key {key}, which AWS does not have.{_suggest(similar)}")


def _warn_about_unknown_action(action: str) -> None:
    from tavola.iam import ACTIONS

    if action.startswith("dynamodb:") and action.lower() not in {known.lower() for known in ACTIONS}:
        similar = get_close_matches(action, ACTIONS, n=1)
        warn(f"DynamoDB has no action {action}.{_suggest(similar[0] if similar else None)}")


def _suggest(name: str | None) -> str:
    return f" Did you mean {name}?" if name else ""


def account_of(directory: Directory, account: str | None) -> str:
    """Return the account to use: the named one, or the only one in the file."""
    from tavola.iam import NotInDirectory

    if account is not None:
        return account
    if len(directory.accounts) == 1:
        return next(iter(directory.accounts))
    raise NotInDirectory(f"the file has {len(directory.accounts)} accounts; choose one with --account")
