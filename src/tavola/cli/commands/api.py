"""`tavola api`: every question of the studio, asked without a browser and answered as the same JSON."""

from __future__ import annotations

import inspect
import sys
from dataclasses import MISSING, fields
from typing import Annotated, Any

import click

from tavola.cli.commands.studio import IamFile, Live, LogFile, ReadOnly, StudioEndpoint, StudioStore
from tavola.cli.exits import Exit
from tavola.cli.output import complain, note, say, say_bytes, say_json
from tavola.cli.parameters import Argument, Option
from tavola.cli.studio_options import (
    StudioOptions,
    StudioTarget,
    open_studio,
    open_studio_target,
    reporting_studio_errors,
)
from tavola.cli.targets import Account, Region, StoreKey
from tavola.errors import TavolaError

_EXITS = {
    400: Exit.FAILED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    502: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}


def api(
    method: Annotated[
        str | None,
        Argument(help="GET or POST; without it the questions are listed."),
    ] = None,
    path: Annotated[str | None, Argument(help="Of the question, as /tables.")] = None,
    body: Annotated[
        str | None,
        Argument(metavar="[JSON]", help="What is asked, as a JSON object; - reads it."),
    ] = None,
    designs: Annotated[
        list[str] | None,
        Option("--design", metavar="DESIGN", help="A design of the tables, as `tavola studio` takes it."),
    ] = None,
    store: StudioStore = None,
    endpoint: StudioEndpoint = None,
    read_only: ReadOnly = False,
    live: Live = False,
    access_log: LogFile = None,
    iam: IamFile = None,
    region: Region = None,
    account: Account = None,
    store_key: StoreKey = None,
    as_json: Annotated[
        bool, Option("--json", help="List the questions as one JSON line; an answer is JSON anyway.")
    ] = False,
) -> None:
    """Ask a question of the studio's API and print its answer; without one, list what can be asked."""
    what = "Cannot list the questions." if method is None else f"Cannot answer {method} {path}."
    with reporting_studio_errors(what):
        from tavola.studio import BY_NAME, ENDPOINTS

        if method is None:
            _list(ENDPOINTS, as_json=as_json)
            return
        found = BY_NAME.get(f"{method.upper()} {path}")
        if found is None:
            complain(what, "There is no such question.", "See the questions there are with `tavola api`.")
            raise click.exceptions.Exit(Exit.USAGE)
        given = sys.stdin.buffer.read() if body == "-" else (body or "{}").encode()
        keys = (None, None, store_key)
        options = StudioOptions(
            tuple(designs or ()), store, endpoint, region, account, keys, read_only, live, access_log, iam
        )
        import asyncio  # which other commands need not load

        with open_studio_target(options) as kept:
            try:
                asyncio.run(_answer(kept, found, given))
            except TavolaError as error:
                _complain(what, error)


async def _answer(kept: StudioTarget, endpoint: Any, given: bytes) -> None:
    from tavola.studio import encode_response

    question = endpoint.parse_body(given)
    async with open_studio(kept) as studio:
        answer = await endpoint.call(studio, question)
        if not endpoint.raw:
            say(encode_response(answer).decode())
        elif hasattr(answer, "body_iterator"):
            async for part in answer.body_iterator:
                say_bytes(part if isinstance(part, bytes) else part.encode())
        else:
            say_bytes(answer.body)


def _complain(what: str, error: TavolaError) -> None:
    from tavola.studio import problem_of

    problem = problem_of(error)
    complain(what, f"{problem.title}: {problem.detail}", problem.remedy or None)
    usage = problem.code == "request-malformed"
    raise click.exceptions.Exit(Exit.USAGE if usage else _EXITS.get(problem.status, Exit.FAILED)) from error


def _list(endpoints: tuple[Any, ...], *, as_json: bool) -> None:
    """Print the questions, each with what it takes; a star is beside what has to be given."""
    rows = [
        (each, _members(each), (inspect.getdoc(each.handler) or "").partition("\n")[0]) for each in endpoints
    ]
    if as_json:
        listed = [
            {
                "method": each.method,
                "path": each.path,
                "changes": each.is_write,
                "raw": each.raw,
                "takes": [{"name": name, "needed": needed, "type": kind} for name, needed, kind in members],
                "says": sentence,
            }
            for each, members, sentence in rows
        ]
        say_json("tavola.api/1", {"endpoints": listed})
        return
    for each, members, sentence in rows:
        taken = ", ".join(f"{name}{'*' if needed else ''}" for name, needed, _ in members)
        say(f"{each.name}{'  (changes)' if each.is_write else ''}")
        say(f"    {sentence}")
        if taken:
            say(f"    {taken}")
    note("What has a * must be given: tavola api GET /session, tavola api POST PATH '{\"name\": …}'")


def _members(endpoint: Any) -> list[tuple[str, bool, str]]:
    return [
        (each.name, each.default is MISSING and each.default_factory is MISSING, str(each.type))
        for each in fields(endpoint.request_type)
    ]
