"""`tavola log`: search an access log by caller, operation, table, error, decision, key or time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.output import note, say
from tavola.cli.parameters import Argument, Option
from tavola.cli.targets import TIME_FORMS_HELP, parse_moment
from tavola.cli.terminal import align_columns
from tavola.errors import ErrorKind

_HEADER = ("TIME", "CALLER", "OPERATION", "TABLE", "RESULT", "DECISION", "MS", "READ", "WRITE")


def log(
    file: Annotated[Path, Argument(help="Access log, as named by `tavola serve --access-log`.")],
    user: Annotated[
        str | None, Option(metavar="NAME", help="User or role name, ARN, access key ID or account.")
    ] = None,
    operation: Annotated[str | None, Option(metavar="NAME", help="Operation, such as GetItem.")] = None,
    table: Annotated[str | None, Option(metavar="NAME", help="Table name.")] = None,
    index: Annotated[str | None, Option(metavar="NAME", help="Index name.")] = None,
    error: Annotated[
        str | None,
        Option(metavar="CODE", help="Error code; any: all failed calls; none: all successful calls."),
    ] = None,
    decision: Annotated[
        str | None,
        Option(
            metavar="DECISION", help="Access decision: open, allowed, denied, unauthenticated or refused."
        ),
    ] = None,
    key: Annotated[
        str | None, Option(metavar="HASH", help="Hash of a key, as shown in a log record.")
    ] = None,
    item: Annotated[
        str | None,
        Option(
            metavar="JSON",
            help="Key of an item in DynamoDB JSON, or only its partition key. Needs the log's secret file.",
        ),
    ] = None,
    since: Annotated[
        str | None, Option(metavar="TIME", help=f"Start of the period: {TIME_FORMS_HELP}.")
    ] = None,
    until: Annotated[str | None, Option(metavar="TIME", help="End of the period, in the same forms.")] = None,
    tail: Annotated[
        int | None, Option(metavar="COUNT", help="Show only the last COUNT calls.", min=1)
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print the matching records as JSON lines.")] = False,
) -> None:
    """Search the access log of a server, oldest call first."""
    with reporting_errors(f"Cannot read {file}."):
        from tavola.server.log_queries import AccessLogQuery, log_key, read_records

        check_access_log(file)
        query = AccessLogQuery(
            user=user,
            operation=operation,
            table=table,
            index=index,
            error=error,
            decision=decision,
            key=key if item is None else log_key(file, item),
            since_s=None if since is None else parse_moment(since) / 1_000_000,
            until_s=None if until is None else parse_moment(until) / 1_000_000,
        )
        matches = read_records(file, query)
        shown = matches if tail is None else iter(deque(matches, maxlen=tail))
        if as_json:
            for line, _ in shown:
                say(line.decode().rstrip("\n"))
            return
        rows = [_table_row(record) for _, record in shown]
    if not rows:
        note("No calls match.")
        return
    for text in align_columns([_HEADER, *rows]):
        say(text)


def check_access_log(file: Path) -> None:
    """Raise if an access log does not exist or is a folder."""
    from tavola.server.log_files import files_of

    remedy = "Name the file that `tavola serve --access-log` writes."
    if file.is_dir():
        raise CommandError(f"{file} is a folder.", remedy)
    if not any(files_of(file)):
        raise CommandError(f"{file} does not exist.", remedy, ErrorKind.NOT_FOUND)


def _table_row(record: Mapping[str, Any]) -> tuple[str, ...]:
    from tavola.server.log_queries import decision_of, tables_of

    identity = record.get("userIdentity") or {}
    caller = identity.get("userName") or identity.get("arn") or identity.get("accessKeyId") or "-"
    details = record.get("additionalEventData") or {}
    units = details.get("consumed") or ()
    tables = dict.fromkeys(
        place["tableName"] + (f"/{place['indexName']}" if "indexName" in place else "")
        for place in tables_of(record)
        if "tableName" in place
    )
    decided_by = f" ({details['decidedBy']})" if "decidedBy" in details else ""
    return (
        str(record.get("eventTime", "-")),
        caller,
        str(record.get("eventName", "-")),
        ",".join(tables) or "-",
        str(record.get("errorCode") or (f"{details['dropped']} dropped" if "dropped" in details else "ok")),
        (decision_of(record) or "-") + decided_by,
        f"{details.get('latencyMs', 0):.3f}",
        f"{sum(unit['reads'] for unit in units):g}",
        f"{sum(unit['writes'] for unit in units):g}",
    )
