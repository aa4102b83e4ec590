"""`tavola api`: call the studio's API without a browser, with the same JSON responses."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import click

from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.output import note, print_error, say, say_bytes, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.studio_options import StudioOptions, StudioTarget, open_studio, open_studio_target
from tavola.cli.terminal import style
from tavola.errors import TavolaError

if TYPE_CHECKING:
    from tavola.studio import Endpoint

# Every other status: Exit.FAILED
_EXIT_CODES = {
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    502: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}


def api(
    method: Annotated[str | None, Argument(help="GET or POST. Default: list the endpoints.")] = None,
    path: Annotated[str | None, Argument(help="Path of the endpoint, such as /session.")] = None,
    body: Annotated[
        str | None, Argument(metavar="[JSON]", help="Request as a JSON object; - reads standard input.")
    ] = None,
    designs: Annotated[
        list[str] | None,
        Option(
            "--design",
            metavar="DESIGN",
            help="Design of the tables, as `tavola studio` takes it; repeatable.",
        ),
    ] = None,
    tables: StudioOptions = BUNDLE,
    as_json: Annotated[
        bool, Option("--json", help="List the endpoints as JSON; responses are always JSON.")
    ] = False,
) -> None:
    """Call the studio's API, or list its endpoints."""
    what = (
        "Cannot list the endpoints."
        if method is None
        else f"Cannot call {method} {path or ''}".rstrip() + "."
    )
    with reporting_errors(what):
        from tavola.studio import BY_NAME, ENDPOINTS

        if method is None:
            _list(ENDPOINTS, as_json=as_json)
            return
        if path is None:
            raise CommandError(
                "The path of the endpoint is missing.", "List the endpoints with `tavola api`."
            )
        endpoint = BY_NAME.get(f"{method.upper()} {path}")
        if endpoint is None:
            raise CommandError(
                f"The API has no endpoint {method.upper()} {path}.", "List them with `tavola api`."
            )
        request = sys.stdin.buffer.read() if body == "-" else (body or "{}").encode()
        import asyncio  # not needed by the list

        with open_studio_target(tables, designs or ()) as target:
            try:
                asyncio.run(_call(target, endpoint, request))
            except TavolaError as error:
                _report(what, error)


async def _call(target: StudioTarget, endpoint: Endpoint, request: bytes) -> None:
    from tavola.studio import encode_response

    parsed = endpoint.parse_body(request)
    async with open_studio(target) as studio:
        response = await endpoint.call(studio, parsed)
        if not endpoint.raw:
            say(encode_response(response).decode())
        elif hasattr(response, "body_iterator"):
            async for part in response.body_iterator:
                say_bytes(part if isinstance(part, bytes) else part.encode())
        else:
            say_bytes(response.body)


def _report(what: str, error: TavolaError) -> None:
    """Print an error as the studio's pages show it, and exit."""
    from tavola.studio import problem_of

    problem = problem_of(error)
    print_error(what, f"{problem.title}: {problem.detail}", problem.remedy or None)
    code = Exit.USAGE if problem.code == "request-malformed" else _EXIT_CODES.get(problem.status, Exit.FAILED)
    raise click.exceptions.Exit(code) from error


def _list(endpoints: Sequence[Endpoint], *, as_json: bool) -> None:
    """Print the endpoints with their parameters; a star marks the required ones."""
    rows = [
        (endpoint, endpoint.parameters, (inspect.getdoc(endpoint.handler) or "").partition("\n")[0])
        for endpoint in endpoints
    ]
    if as_json:
        listed = [
            {
                "method": endpoint.method,
                "path": endpoint.path,
                "is_write": endpoint.is_write,
                "raw": endpoint.raw,
                "parameters": [
                    {"name": name, "required": required, "type": kind} for name, required, kind in parameters
                ],
                "summary": summary,
            }
            for endpoint, parameters, summary in rows
        ]
        say_json("tavola.api/1", {"endpoints": listed})
        return
    for endpoint, parameters, summary in rows:
        say(f"{style(endpoint.name, 'heading')}{'  (write)' if endpoint.is_write else ''}")
        say(f"    {summary}")
        if parameters:
            say(f"    {', '.join(f'{name}*' if required else name for name, required, _ in parameters)}")
    note("* required. Examples: tavola api GET /session, tavola api POST PATH '{\"name\": …}'")
