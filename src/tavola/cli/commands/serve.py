"""`tavola serve`: an engine and its endpoint, until it is asked to stop."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from tavola import __version__
from tavola.cli.exits import Exit
from tavola.cli.failures import told
from tavola.cli.output import complain, log_to_terminal, note, say, say_json
from tavola.cli.settings import CACHE_MB, HOST, PORT, SYNC, TABLE_DELAY_MS, WORDING, option

Sync = Literal["full", "off"]
Words = Literal["current", "classic", "modern"]


def serve(
    file: Annotated[
        Path | None, typer.Argument(help="The file that keeps the data; without one it is in memory.")
    ] = None,
    host: Annotated[str, option(HOST)] = "127.0.0.1",
    port: Annotated[int, option(PORT)] = 8000,
    sync: Annotated[Sync, option(SYNC)] = "full",
    cache_mb: Annotated[int, option(CACHE_MB)] = int(CACHE_MB.default),
    wording: Annotated[Words, option(WORDING)] = "current",
    table_delay_ms: Annotated[int, option(TABLE_DELAY_MS)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print where it listens as one JSON line.")] = False,
) -> None:
    """Serve DynamoDB over HTTP, from memory or from FILE."""
    log_to_terminal()
    if file is not None and not file.parent.is_dir():
        complain(
            f"Cannot serve {file}.",
            f"The folder {file.parent} is not there.",
            "Make the folder, or name a file in another one.",
        )
        raise typer.Exit(Exit.NOT_FOUND)
    with told(f"Cannot serve {file or 'from memory'} on port {port}."):
        from tavola.engine import Engine
        from tavola.server import Endpoint
        from tavola.server import serve as listen

        def greet(endpoint: Endpoint) -> None:
            if as_json:
                say_json(
                    "tavola.serve/1",
                    {
                        "endpoint": endpoint.url,
                        "host": endpoint.host,
                        "port": endpoint.port,
                        "file": None if file is None else str(file.absolute()),
                    },
                )
            else:
                _greet(endpoint.url, host, endpoint.port, file, sync)
            if not is_loopback(host):
                note(
                    f"Warning: other machines can reach {host}, and whoever connects is let in: "
                    f"credentials are not verified."
                )

        engine = Engine.open(
            file, sync=sync, wording=wording, cache_mb=cache_mb, table_delay_ms=table_delay_ms
        )
        with closing(engine):
            listen(engine, host=host, port=port, ready=greet)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host in {"127.0.0.1", "localhost"} or host.endswith(".localhost"):
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _greet(url: str, host: str, port: int, file: Path | None, sync: Sync) -> None:
    kept = "each write on the disk before it is answered" if sync == "full" else "writes are not synced"
    where = "in memory, gone when this ends" if file is None else f"{file.absolute()} ({kept})"
    turned = ((HOST, host), (PORT, port))
    hint = "".join(f" {setting.flag} {value}" for setting, value in turned if value != setting.default)
    reach = "this machine alone can connect" if is_loopback(host) else "and anyone can connect"
    say(f"Tavola {__version__} serves DynamoDB at {url}")
    say(f"  data:         {where}")
    say(f"  credentials:  accepted as they come, {reach}; account and region tell tables apart")
    say(f'  use it with:  eval "$(tavola env{hint})"')
    say("Ctrl-C stops it.")
