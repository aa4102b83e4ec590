"""`tavola serve`: serve DynamoDB until a signal stops the process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tavola import __version__
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import check_parent_exists
from tavola.cli.keys import StoreKeyOptions
from tavola.cli.output import log_to_terminal, own_command, say, say_json, warn
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.settings import (
    ACCESS_LOG,
    ACCESS_LOG_FILES,
    ACCESS_LOG_MB,
    ALLOW_HOST,
    AUTH,
    BUCKETS,
    BUFFER_MB,
    CACHE_MB,
    CORS,
    EMULATE,
    HOST,
    IAM,
    PORT,
    STUDIO_PORT,
    STUDIO_REGION,
    SYNC,
    TABLE_DELAY_MS,
    TLS_CERT,
    TLS_KEY,
    TTL_INTERVAL_S,
    WORDING,
    option,
    split_names,
)
from tavola.cli.terminal import style

if TYPE_CHECKING:
    import ssl

    from tavola.server.authorization import StrictCallers
    from tavola.server.endpoint import ServerEndpoint

_SYNC_TEXTS = {"full": "each write is synced before it is confirmed", "off": "writes are not synced"}


def serve(
    file: Annotated[Path | None, Argument(help="Database file. Default: keep the data in memory.")] = None,
    host: Annotated[str, option(HOST)] = "127.0.0.1",
    port: Annotated[int, option(PORT)] = 8000,
    sync: Annotated[Literal["full", "off"], option(SYNC)] = "full",
    cache_mb: Annotated[int, option(CACHE_MB)] = int(CACHE_MB.default),
    wording: Annotated[Literal["current", "classic", "modern"], option(WORDING)] = "current",
    table_delay_ms: Annotated[int, option(TABLE_DELAY_MS)] = 0,
    emulate: Annotated[str, option(EMULATE)] = "",
    auth: Annotated[Literal["open", "strict"], option(AUTH)] = "open",
    iam: Annotated[Path | None, option(IAM)] = None,
    tls_cert: Annotated[Path | None, option(TLS_CERT)] = None,
    tls_key: Annotated[Path | None, option(TLS_KEY)] = None,
    allow_host: Annotated[str, option(ALLOW_HOST)] = "",
    cors: Annotated[list[str] | None, option(CORS)] = None,
    buffer_mb: Annotated[int, option(BUFFER_MB)] = int(BUFFER_MB.default),
    access_log: Annotated[Path | None, option(ACCESS_LOG)] = None,
    access_log_mb: Annotated[int, option(ACCESS_LOG_MB)] = int(ACCESS_LOG_MB.default),
    access_log_files: Annotated[int, option(ACCESS_LOG_FILES)] = int(ACCESS_LOG_FILES.default),
    ttl_interval_s: Annotated[int, option(TTL_INTERVAL_S)] = int(TTL_INTERVAL_S.default),
    buckets: Annotated[Path | None, option(BUCKETS)] = None,
    store_key: StoreKeyOptions = BUNDLE,
    studio: Annotated[bool, Option("--studio", help="Also serve the studio for these tables.")] = False,
    studio_port: Annotated[int, option(STUDIO_PORT)] = int(STUDIO_PORT.default),
    studio_design: Annotated[
        list[str] | None, Option(metavar="DESIGN", help="Design of the tables for the studio; repeatable.")
    ] = None,
    studio_region: Annotated[str, option(STUDIO_REGION)] = str(STUDIO_REGION.default),
    as_json: Annotated[bool, Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve DynamoDB over HTTP, in memory or from a file."""
    log_to_terminal()
    what = f"Cannot serve {file} on port {port}." if file else f"Cannot start the server on port {port}."
    with reporting_errors(what), ExitStack() as opened:
        from tavola.engine import Engine
        from tavola.host_names import is_loopback
        from tavola.server.access_log import AccessLog
        from tavola.server.listener import serve as listen
        from tavola.server.safeguards import Safeguards, ServerLimits

        if file is not None:
            check_parent_exists(file)
        _check_combinations(auth, iam, tls_cert, tls_key)
        check_origins(cors or (), verified=auth == "strict")
        if auth == "open" and iam is not None:
            warn(f"{iam} is ignored without --auth strict; all callers are accepted.")
            iam = None
        log = None
        if access_log is not None:
            log = AccessLog(
                access_log, file_bytes_max=access_log_mb * 1024 * 1024, files_max=access_log_files
            )
            opened.enter_context(closing(log))
        safeguards = Safeguards(
            tls=_tls_context(tls_cert, tls_key),
            callers=None if iam is None else _strict_callers(iam),
            log=log,
            hosts=split_names(allow_host),
            origins=tuple(cors or ()),
        )
        limits = ServerLimits(buffer_bytes_max=buffer_mb * 1024 * 1024)

        def greet(endpoint: ServerEndpoint, studio_url: str | None = None) -> None:
            if as_json:
                members = {
                    "endpoint": endpoint.url,
                    "host": endpoint.host,
                    "port": endpoint.port,
                    "file": None if file is None else str(file.absolute()),
                    "auth": auth,
                    "access_log": None if access_log is None else str(access_log.absolute()),
                    "studio": studio_url,
                }
                say_json("tavola.serve/1", members)
            else:
                data = (
                    "in memory, lost when the process ends"
                    if file is None
                    else f"{file.absolute()} ({_SYNC_TEXTS[sync]})"
                )
                _greet(endpoint, data, emulate, iam, access_log, studio_url, is_local=is_loopback(host))
            if not is_loopback(host) and iam is None:
                warn(
                    f"other machines can reach {host}, and credentials are not verified. "
                    "Use --auth strict to verify them."
                )

        engine = Engine.open(
            file,
            sync=sync,
            wording=wording,
            cache_mb=cache_mb,
            table_delay_ms=table_delay_ms,
            emulate=emulate or None,
            ttl_interval_s=ttl_interval_s,
            key=_read_key(file, store_key),
            buckets=buckets,
        )
        opened.enter_context(closing(engine))
        if not studio:
            listen(engine, host=host, port=port, limits=limits, safeguards=safeguards, ready=greet)
            return
        from tavola.cli.server_loop import run_until_signal
        from tavola.cli.studio_beside_server import StudioSettings, serve_both, studio_target

        # The studio has no TLS, so beside a protected endpoint it is local; `--auth strict` makes its users sign in.
        is_protected = auth == "strict" or tls_cert is not None
        studio_settings = StudioSettings(
            "127.0.0.1" if is_protected else host, studio_port, tuple(studio_design or ()), studio_region
        )
        target = studio_target(studio_settings, engine, file, access_log)
        run_until_signal(
            lambda stopping: serve_both(
                engine, host, port, limits, safeguards, studio_settings, target, stopping
            ),
            lambda addresses: greet(*addresses),
        )


def _read_key(file: Path | None, options: StoreKeyOptions) -> str | None:
    """Return the key of the file; data in memory has none, and TAVOLA_KEY does not apply to it."""
    if file is None and options.key_file is None and options.key_command is None:
        return None
    key = options.read_key()
    if key is not None and file is None:
        raise CommandError("Data in memory is not encrypted.", "Name a FILE, or leave out the key.")
    return key


def _check_combinations(auth: str, iam: Path | None, tls_cert: Path | None, tls_key: Path | None) -> None:
    """Reject options that need another one."""
    if auth == "strict" and iam is None:
        raise CommandError(
            "--auth strict needs a file of users and roles.",
            "Create one with `tavola iam init iam.json`, and name it with --iam iam.json.",
        )
    if (tls_cert is None) != (tls_key is None):
        present, missing = (TLS_CERT, TLS_KEY) if tls_key is None else (TLS_KEY, TLS_CERT)
        raise CommandError(f"{present.flag} needs {missing.flag}.", "Give both, or neither for plain HTTP.")


def check_origins(origins: Sequence[str], *, verified: bool) -> None:
    """Reject origins that no browser sends, and `*` for a server that does not verify signatures."""
    from tavola.host_names import parse_origin

    for origin in origins:
        if origin == "*" and not verified:
            raise CommandError(
                "--cors '*' needs --auth strict: without signatures, any web page that you visit could read and change "
                "the tables.",
                "Name the origin of your application, such as --cors http://localhost:3000.",
            )
        if origin != "*" and str(parse_origin(origin)) != origin.lower():
            raise CommandError(
                f"--cors {origin} is not the origin of a web page.",
                "Write scheme, host and port as the browser shows them, without a path and without a default port, such "
                "as http://localhost:3000 or https://shop.example.",
            )


def _tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None or key is None:
        return None
    from tavola.server.safeguards import tls_context

    return tls_context(certificate, key)


def _strict_callers(iam: Path) -> StrictCallers:
    from tavola.clock import SYSTEM_CLOCK
    from tavola.iam import DirectoryFile
    from tavola.server.authorization import StrictCallers

    return StrictCallers(DirectoryFile(iam), SYSTEM_CLOCK)


def env_command(host: str, port: int, *, tls: bool = False) -> str:
    """Return the shell command that points AWS SDKs at an endpoint."""
    options = ((HOST, host), (PORT, port))
    arguments = "".join(f" {setting.flag} {value}" for setting, value in options if value != setting.default)
    return f'eval "$({own_command()} env{arguments}{" --tls" if tls else ""})"'


def _greet(
    endpoint: ServerEndpoint,
    data: str,
    emulate: str,
    iam: Path | None,
    access_log: Path | None,
    studio_url: str | None,
    *,
    is_local: bool,
) -> None:
    if iam is None:
        reach = "only this machine can connect" if is_local else "anyone can connect"
        credentials = f"not verified ({reach}); account and region select the tables"
    else:
        credentials = f"verified, with the policies in {iam.absolute()}"
    say(f"Tavola {__version__} serves DynamoDB at {style(endpoint.url, 'heading')}")
    say(f"  data:         {data}")
    say(f"  credentials:  {credentials}")
    if emulate:
        say(f"  emulating:    {emulate}")
    if access_log is not None:
        say(f"  access log:   {access_log.absolute()}")
    if studio_url is not None:
        sign_in = "" if iam is None else " (sign in with an access key)"
        say(f"  studio:       {studio_url}{sign_in}")
    key_hint = "" if iam is None else ", and use a key from `tavola iam`"
    say(f"  use it with:  {env_command(endpoint.host, endpoint.port, tls=endpoint.secure)}{key_hint}")
    say("Press Ctrl-C to stop.")
