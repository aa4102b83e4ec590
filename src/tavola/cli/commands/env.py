"""`tavola env`: environment variables that point AWS SDKs at a server."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from tavola.cli.output import say, say_json
from tavola.cli.parameters import AsJson, Option
from tavola.cli.settings import HOST, PORT

Shell = Literal["sh", "fish", "powershell"]

# SDKs require credentials and a region; values that are already set are kept. boto3 reads AWS_DEFAULT_REGION.
DEFAULTS = {
    "AWS_ACCESS_KEY_ID": "tavola",
    "AWS_SECRET_ACCESS_KEY": "tavola",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
REGION_MARK = "TAVOLA_ENV_REGION"  # the region set here because none was set; --unset removes only that one


def env(
    host: Annotated[
        str, Option(HOST.flag, metavar=HOST.metavar, envvar=HOST.variable, help="Host of the server.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        Option(PORT.flag, envvar=PORT.variable, metavar="PORT", help="Port of the server.", min=0, max=65535),
    ] = 8000,
    tls: Annotated[bool, Option("--tls", help="The server uses HTTPS.")] = False,
    shell: Annotated[Shell, Option(help="Shell to print commands for.")] = "sh",
    unset: Annotated[bool, Option("--unset", help="Print commands that remove the variables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print environment variables that point AWS SDKs at a server.

    Set them in the current shell with: eval "$(tavola env)"
    """
    from tavola.server.endpoint import ServerEndpoint

    url = ServerEndpoint(host, port, tls).url
    always = {
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": url,
        "AWS_ENDPOINT_URL_STS": url,
        "TAVOLA_ENDPOINT": url,  # for Tavola's own commands
    }
    # A profile already provides credentials and a region; setting variables would override it for other services.
    defaults = {} if has_profile(Path.home()) else DEFAULTS
    if as_json:
        say_json("tavola.env/1", {"set": always, "set_if_unset": defaults})
        return
    for line in unset_lines(shell, always, DEFAULTS) if unset else lines(shell, always, defaults):
        say(line)


def has_profile(home: Path) -> bool:
    """Return whether the user has an AWS profile."""
    return any((home / ".aws" / name).exists() for name in ("credentials", "config"))


def unset_lines(shell: Shell, names: Iterable[str], defaults: Mapping[str, str]) -> list[str]:
    """Return the shell commands that remove the variables, and the defaults as far as `tavola env` has set them.

    A credential is removed if it has the default value, a region if it is the one that `REGION_MARK` records.
    """
    remove, compare, compare_with_mark = {
        "sh": (
            "unset {}",
            "if [ \"${{{}:-}}\" = '{}' ]; then {}; fi",
            'if [ -n "${{{mark}:-}}" ] && [ "${{{}:-}}" = "${mark}" ]; then {}; fi',
        ),
        "fish": (
            "set -e {}",
            "if test \"${}\" = '{}'; {}; end",
            'if set -q {mark}; and test "${}" = "${mark}"; {}; end',
        ),
        "powershell": (
            "Remove-Item Env:{} -ErrorAction SilentlyContinue",
            "if ($Env:{} -eq '{}') {{ {} }}",
            "if ($Env:{mark} -and $Env:{} -eq $Env:{mark}) {{ {} }}",
        ),
    }[shell]
    return [
        *(remove.format(name) for name in names),
        *(
            compare_with_mark.format(name, remove.format(name), mark=REGION_MARK)
            if name in REGIONS
            else compare.format(name, value, remove.format(name))
            for name, value in defaults.items()
        ),
        remove.format(REGION_MARK),
    ]


def lines(shell: Shell, always: dict[str, str], defaults: dict[str, str]) -> list[str]:
    """Return the shell commands that set these variables, and the defaults where they are unset."""
    regions = {defaults[name]: None for name in REGIONS if name in defaults}
    match shell:
        case "sh":
            other = {"AWS_REGION": "AWS_DEFAULT_REGION", "AWS_DEFAULT_REGION": "AWS_REGION"}
            nested = {
                name: f"${{{other[name]}:-{value}}}" if name in other else value
                for name, value in defaults.items()
            }
            mark = [
                f'if [ -z "${{AWS_REGION:-}}${{AWS_DEFAULT_REGION:-}}" ]; then export {REGION_MARK}={region}; fi'
                for region in regions
            ]
            return [
                *(f"export {name}={shlex.quote(value)}" for name, value in always.items()),
                *mark,
                *(f'export {name}="${{{name}:-{value}}}"' for name, value in nested.items()),
            ]
        case "fish":
            mark = [
                f"set -q AWS_REGION; or set -q AWS_DEFAULT_REGION; or set -gx {REGION_MARK} '{region}'"
                for region in regions
            ]
            return [
                *(f"set -gx {name} {_fish(value)}" for name, value in always.items()),
                *mark,
                *(f"set -q {name}; or set -gx {name} '{value}'" for name, value in defaults.items()),
            ]
        case "powershell":
            mark = [
                f"if (-not ($Env:AWS_REGION -or $Env:AWS_DEFAULT_REGION)) {{ $Env:{REGION_MARK} = '{region}' }}"
                for region in regions
            ]
            return [
                *(f"$Env:{name} = {_powershell(value)}" for name, value in always.items()),
                *mark,
                *(f"if (-not $Env:{name}) {{ $Env:{name} = '{value}' }}" for name, value in defaults.items()),
            ]


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
