"""`tavola log`: what an access log says, asked by user, operation, table, error, decision, key or time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain, note, say
from tavola.cli.parameters import Argument, Option

_HEADER = ("time", "caller", "operation", "table", "answer", "decision", "ms", "reads", "writes")


def log(
    file: Annotated[Path, Argument(help="The access log, as `tavola serve --access-log` was given it.")],
    user: Annotated[
        str | None, Option(help="A user's or role's name, an ARN, an access key or an account.")
    ] = None,
    operation: Annotated[str | None, Option(help="An operation, such as GetItem.")] = None,
    table: Annotated[str | None, Option(help="A table's name.")] = None,
    index: Annotated[str | None, Option(help="The name of an index that was read.")] = None,
    error: Annotated[
        str | None, Option(help="An error's code; any: whatever failed; none: whatever did not.")
    ] = None,
    decision: Annotated[str | None, Option(help="open, allowed, denied, unauthenticated or refused.")] = None,
    key: Annotated[str | None, Option(help="The hash of a key, as a record has it.")] = None,
    item: Annotated[
        str | None,
        Option(
            help="A key in DynamoDB JSON, hash attribute first: calls for that item, or with the hash attribute "
            "alone those for its partition. Needs the log's secret beside it."
        ),
    ] = None,
    since: Annotated[str | None, Option(help="From then: 2026-11-01T09:30:00Z, or 15m ago.")] = None,
    until: Annotated[str | None, Option(help="Up to then, in the same forms.")] = None,
    tail: Annotated[int | None, Option(help="The last so many of them.", min=1)] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print the records as they are, one JSON line each.")
    ] = False,
) -> None:
    """Print the calls that an access log has, oldest first."""
    with reporting_errors(f"Cannot read {file}."):
        from tavola.server.log_files import files_of
        from tavola.server.log_queries import AccessLogQuery, read_records

        if not any(files_of(file)):
            complain(
                f"Cannot read {file}.",
                "There is no such file.",
                "Name the file that `tavola serve --access-log` was given.",
            )
            raise click.exceptions.Exit(Exit.NOT_FOUND)
        query = AccessLogQuery(
            user=user,
            operation=operation,
            table=table,
            index=index,
            error=error,
            decision=decision,
            key=key if item is None else _hash(file, item),
            since_s=_moment(since),
            until_s=_moment(until),
        )
        found = read_records(file, query)
        shown = found if tail is None else iter(deque(found, maxlen=tail))
        if as_json:
            for line, _ in shown:
                say(line.decode().rstrip("\n"))
            return
        rows = [row(record) for _, record in shown]
        if not rows:
            note("No call in the log is like that.")
            return
        widths = [max(len(cells[place]) for cells in (_HEADER, *rows)) for place in range(len(_HEADER))]
        for cells in (_HEADER, *rows):
            say("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def row(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a record as a line for a person."""
    from tavola.server.log_queries import decision_of, places_of

    identity = record.get("userIdentity") or {}
    caller = identity.get("userName") or identity.get("arn") or identity.get("accessKeyId") or "-"
    beside = record.get("additionalEventData") or {}
    units = beside.get("consumed") or ()
    tables = dict.fromkeys(
        place["tableName"] + (f"/{place['indexName']}" if "indexName" in place else "")
        for place in places_of(record)
        if "tableName" in place
    )
    decided = decision_of(record) or "-"
    return (
        str(record.get("eventTime", "-")),
        caller,
        str(record.get("eventName", "-")),
        ",".join(tables) or "-",
        str(record.get("errorCode") or (f"{beside['dropped']} dropped" if "dropped" in beside else "ok")),
        decided + (f" ({beside['decidedBy']})" if "decidedBy" in beside else ""),
        f"{beside.get('latencyMs', 0):.3f}",
        f"{sum(unit['reads'] for unit in units):g}",
        f"{sum(unit['writes'] for unit in units):g}",
    )


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    from tavola.clock import SYSTEM_CLOCK
    from tavola.server.log_queries import parse_moment

    moment = parse_moment(text, SYSTEM_CLOCK.now())
    if moment is None:
        complain(
            "Cannot tell that time.",
            f"{text!r} is neither a date and time nor a while.",
            "Write 2026-11-01T09:30:00Z, or 15m, 2h or 3d for so long ago.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    return moment


def _hash(file: Path, item: str) -> str:
    from tavola.server.errors import LogKeyMalformed, LogSecretUnreadable
    from tavola.server.log_queries import log_key

    try:
        return log_key(file, item)
    except LogSecretUnreadable as error:
        complain(
            "Cannot look for an item.",
            f"The log's secret {error.place} cannot be read.",
            "Ask whoever runs the server for it, or give the hash with --key.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND) from error
    except LogKeyMalformed as error:
        complain(
            "Cannot look for that item.",
            f"{item} is no key.",
            'Write it as DynamoDB JSON, hash attribute first: {"pk": {"S": "o#1"}, "sk": {"S": "2026"}}.',
        )
        raise click.exceptions.Exit(Exit.USAGE) from error
