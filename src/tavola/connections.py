"""`connect` and `connect_async`: from a target such as "memory:" or "aws:eu-west-1" to a connection.

This module chooses and configures the backend. Each backend is imported only for a target that needs it: a program that
talks to AWS loads neither the engine nor SQLite.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct

from tavola.backends.credentials import Credentials
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import ErrorKind, TavolaError

if TYPE_CHECKING:  # loaded by `connect`: the client always, the engine only for `memory:` and `file:`
    from tavola.client.connection import AsyncConnection, Connection
    from tavola.client.context import Context
    from tavola.client.retries import RetryPolicy
    from tavola.engine import Buckets, Engine
    from tavola.model import Table
    from tavola.protocol.arns import Scope
    from tavola.protocol.message_style import MessageStyle

FORMS = '"memory:", "file:PATH", "http://HOST:PORT", "https://HOST" or "aws:REGION"'

_REGION = re.compile(r"[a-z0-9-]{1,63}")
_ACCOUNT = re.compile(r"[0-9]{12}")
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}/?")
_DATABASE_NAME = re.compile(r"[^:]+\.(?:db|sqlite3?|tavola)")


class EngineSettings(TypedDict, total=False):
    """ConnectionSettings of an engine that `connect` opens; see `Engine.open`."""

    clock: Clock
    entropy: Entropy
    sync: str
    wording: MessageStyle
    cache_mb: int
    table_delay_ms: int
    ttl_interval_s: float
    key: str
    emulate: str
    buckets: str | os.PathLike[str] | Buckets


class ClientSettings(TypedDict, total=False):
    """ConnectionSettings of the client.

    `table_names` maps tables to their deployed names, by class, class name or name in the model; `table_prefix` is put before
    the names of all others. `cursor_secret` signs page cursors; without it, cursors are valid in this process only.
    `retry_policy` says how often throttled calls are repeated.
    """

    table_names: Mapping[str, str] | Mapping[type[Table], str] | Mapping[str | type[Table], str]
    table_prefix: str
    cursor_secret: bytes
    retry_policy: RetryPolicy


class ConnectionSettings(EngineSettings, ClientSettings, total=False):
    """All settings of `connect`; `profile` is an AWS profile, `timeout_s` the timeout of a response.

    `credentials` replace those that botocore would find.
    """

    profile: str
    credentials: Credentials
    timeout_s: float


ENGINE_SETTINGS = frozenset(EngineSettings.__annotations__)
_CLIENT = frozenset(ClientSettings.__annotations__)
_ENDPOINT = frozenset(ConnectionSettings.__annotations__) - ENGINE_SETTINGS - _CLIENT


class InvalidConnectionTarget(TavolaError):
    """A target or setting of `connect` that is not valid."""

    code = "connection-target-refused"
    kind = ErrorKind.USAGE
    remedy = "Use a server with --endpoint, or a store file with --store."


def connect(
    target: str | Engine,
    *,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[ConnectionSettings],
) -> Connection:
    """Return a connection to "memory:", "file:PATH", "http://HOST:PORT", "https://HOST" or "aws:REGION".

    The target may also be an open `Engine`; closing the connection does not close it.

    `region` and `account` select the tables; the defaults are us-east-1 and 000000000000. For a URL, the defaults are what
    botocore finds configured, and the account is sent as the access key, by which local servers separate accounts. On AWS the
    region is in the target ("aws:" uses botocore's) and the account is that of the credentials.

    The client takes `table_names`, `table_prefix`, `cursor_secret`, `retry_policy`, `clock` and `entropy`; an endpoint also
    `profile`, `credentials` and `timeout_s`; an engine in this process also `sync`, `cache_mb`, `table_delay_ms`, `ttl_interval_s`, `key`,
    `emulate`, `buckets` and `wording` (see `Engine.open`).
    """
    from tavola.client.connection import Connection  # noqa: PLC0415 - loads the client

    context, settings = _client_context(target, region, settings)
    resolved = _resolve_target(target, region, account, settings)
    if isinstance(resolved, _EmbeddedTarget):
        from tavola.backends.embedded import EmbeddedBackend  # noqa: PLC0415 - loads the engine

        backend = EmbeddedBackend(resolved.engine, resolved.scope, owned=resolved.owned)
        return Connection(backend, _name_of(target), context)
    from tavola.backends.http import HttpBackend  # noqa: PLC0415 - loads sockets

    return Connection(HttpBackend(resolved.configuration, **resolved.settings), _name_of(target), context)


def connect_async(
    target: str | Engine,
    *,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[ConnectionSettings],
) -> AsyncConnection:
    """Return a connection for programs on an event loop; target and settings are those of `connect`.

    It is used on one loop, asyncio's own or uvloop. An engine in this process runs on the loop itself.
    """
    from tavola.client.connection import AsyncConnection  # noqa: PLC0415 - loads the client

    context, settings = _client_context(target, region, settings)
    resolved = _resolve_target(target, region, account, settings)
    if isinstance(resolved, _EmbeddedTarget):
        from tavola.backends.embedded import AsyncEmbeddedBackend  # noqa: PLC0415 - loads the engine

        backend = AsyncEmbeddedBackend(resolved.engine, resolved.scope, owned=resolved.owned)
        return AsyncConnection(backend, _name_of(target), context)
    from tavola.backends.async_http import AsyncHttpBackend  # noqa: PLC0415 - loads sockets

    http = AsyncHttpBackend(resolved.configuration, **resolved.settings)
    return AsyncConnection(http, _name_of(target), context)


def _name_of(target: str | Engine) -> str:
    return target if isinstance(target, str) else "an engine in this process"


def _client_context(
    target: str | Engine, region: str | None, settings: ConnectionSettings
) -> tuple[Context, ConnectionSettings]:
    """Return the client's context, and the settings that remain for the engine or the endpoint."""
    from tavola.client.context import Context  # noqa: PLC0415 - as above
    from tavola.client.retries import RetryPolicy  # noqa: PLC0415 - as above

    entropy = settings.get("entropy", SYSTEM_ENTROPY)
    engine = _engine_in(target)
    clock = SYSTEM_CLOCK if engine is None else engine.clock
    text = target if isinstance(target, str) else ""
    context = Context(
        names=settings.get("table_names", {}),
        prefix=settings.get("table_prefix", ""),
        clock=settings.get("clock", clock),
        entropy=entropy,
        secret=settings.get("cursor_secret", b""),
        retry_policy=settings.get("retry_policy") or RetryPolicy(entropy=entropy),
        region=region or (text.removeprefix("aws:") if text.startswith("aws:") else None),
    )
    is_embedded = text.startswith(("memory:", "file:"))
    own = _CLIENT if is_embedded else _CLIENT | {"clock", "entropy"}  # otherwise these are the client's only
    rest: Any = {name: value for name, value in settings.items() if name not in own}
    return context, rest


class _EmbeddedTarget(Struct, frozen=True):
    """A target in this process."""

    engine: Engine
    scope: Scope
    owned: bool


class _RemoteTarget(Struct, frozen=True):
    """A target over HTTP, with the configuration of its backend."""

    configuration: Any
    settings: dict[str, Any]


def _resolve_target(
    target: str | Engine, region: str | None, account: str | None, settings: ConnectionSettings
) -> _EmbeddedTarget | _RemoteTarget:
    """Parse a target; refuse invalid ones, and settings that do not apply."""
    check_scope(region, account)
    engine = _engine_in(target)
    if engine is not None:
        _check_open(settings)
        return _EmbeddedTarget(engine, scope_of(region, account), owned=False)
    if not isinstance(target, str):
        raise InvalidConnectionTarget(f"{target!r} is not a valid target; use {FORMS}, or an open engine")
    scheme, colon, rest = target.partition(":")
    if colon and scheme == "memory" and not rest:
        return _open_embedded(target, None, region, account, settings)
    if colon and scheme == "file":
        return _open_embedded(target, _path_of(target, rest), region, account, settings)
    if scheme in {"http", "https"} and rest.startswith("//"):
        return _configure_remote(target, _url_of(target), region, account, settings)
    if colon and scheme == "aws" and (not rest or _REGION.fullmatch(rest)):
        if region is not None:
            raise InvalidConnectionTarget(
                f'region does not apply to {target}; put it in the target: "aws:{region}"'
            )
        if account is not None:
            raise InvalidConnectionTarget(f"account does not apply to {target}; the credentials decide it")
        return _configure_remote(target, None, rest or None, None, settings)
    likely = likely_target(target)
    suggestion = "" if likely is None else f"; did you mean {likely}?"
    raise InvalidConnectionTarget(f"{target!r} is not a valid target; use {FORMS}{suggestion}")


def likely_target(text: str) -> str | None:
    """Return the target that a text without its prefix probably means: `localhost:8000`, `desk.db`."""
    if _HOST_AND_PORT.fullmatch(text):
        return f"http://{text}"
    return f"file:{text}" if _DATABASE_NAME.fullmatch(text) else None


def _engine_in(target: object) -> Engine | None:
    """Return the target if it is an engine, without loading the engine for targets that are text."""
    if isinstance(target, str):
        return None
    from tavola.engine import Engine  # noqa: PLC0415 - loaded already if the target is one

    return target if isinstance(target, Engine) else None


def _open_embedded(
    target: str, path: Path | None, region: str | None, account: str | None, settings: ConnectionSettings
) -> _EmbeddedTarget:
    check_settings(target, settings, ENGINE_SETTINGS)
    from tavola.engine import Engine  # noqa: PLC0415 - only a target in this process loads it

    engine = Engine.open(path, **engine_options(settings))
    return _EmbeddedTarget(engine, scope_of(region, account), owned=True)


def scope_of(region: str | None, account: str | None) -> Scope:
    from tavola.protocol.arns import DEFAULT_SCOPE, Scope  # noqa: PLC0415 - only an engine in this process needs them

    return Scope(account or DEFAULT_SCOPE.account, region or DEFAULT_SCOPE.region)


def _check_open(settings: Mapping[str, object]) -> None:
    """Refuse settings that apply only when an engine is opened, and settings of an endpoint."""
    for name in settings:
        if name in ENGINE_SETTINGS:
            raise InvalidConnectionTarget(f"{name} does not apply to an open engine; pass it to Engine.open")
    check_settings("an engine in this process", settings, _CLIENT | {"clock", "entropy"})


def _configure_remote(
    target: str, endpoint: str | None, region: str | None, account: str | None, settings: ConnectionSettings
) -> _RemoteTarget:
    check_settings(target, settings, _ENDPOINT)
    rest: dict[str, Any] = {
        name: value for name, value in settings.items() if name not in {"profile", "credentials"}
    }
    credentials = settings.get("credentials")
    if credentials is not None and (account is not None or "profile" in settings):
        other = "profile" if account is None else "account"
        raise InvalidConnectionTarget(
            f"credentials and {other} both identify the caller of {target}; use one of them"
        )
    if settings.get("timeout_s", 1.0) <= 0:
        raise InvalidConnectionTarget("timeout_s is the timeout of a response in seconds; use more than 0")
    try:
        from tavola.backends.aws import AwsConfiguration  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        from tavola.backends.errors import extra_missing  # noqa: PLC0415 - as above
        from tavola.backends.http import LocalConfiguration, is_local  # noqa: PLC0415 - as above

        missing = extra_missing(error, f'connect("{target}")')
        if endpoint is None or not is_local(endpoint) or "profile" in settings:
            raise missing from error
        return _RemoteTarget(
            LocalConfiguration(endpoint, region=region, account=account, credentials=credentials), rest
        )
    profile = settings.get("profile")
    configuration = AwsConfiguration(
        region=region, endpoint=endpoint, account=account, profile=profile, credentials=credentials
    )
    return _RemoteTarget(configuration, rest)


def engine_options(settings: ConnectionSettings | EngineSettings) -> Any:
    """Return the settings as keyword arguments of `Engine.open`, typed as Any."""
    return dict(settings)


def check_settings(target: str, settings: Mapping[str, object], apply: frozenset[str]) -> None:
    for name in settings:
        if name not in apply:
            raise InvalidConnectionTarget(
                f"{name} does not apply to {target}; valid settings: region, account, {', '.join(sorted(apply))}"
                if name in ENGINE_SETTINGS | _ENDPOINT
                else f"{name} is not a setting; valid settings: "
                f"region, account, {', '.join(sorted(ENGINE_SETTINGS | _ENDPOINT | _CLIENT))}"
            )


def check_scope(region: str | None, account: str | None) -> None:
    if region is not None and not _REGION.fullmatch(region):
        raise InvalidConnectionTarget(f"{region!r} is not a region; use one such as eu-west-1")
    if account is not None and not _ACCOUNT.fullmatch(account):
        raise InvalidConnectionTarget(
            f"{account!r} is not an account; use twelve digits such as 123456789012"
        )


def _path_of(target: str, rest: str) -> Path:
    if rest.startswith("//"):  # as a URL: file:///var/lib/shop.db
        host, slash, path = rest[2:].partition("/")
        rest = slash + path if not host else ""
    if not rest:
        raise InvalidConnectionTarget(
            f'{target!r} does not name a local file; use "file:shop.db" or "file:/var/lib/shop.db"'
        )
    return Path(rest).expanduser()


def _url_of(target: str) -> str:
    try:
        parts = urlsplit(target)
        usable = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or parts.path not in {"", "/"} or parts.query or parts.fragment or parts.username:
        raise InvalidConnectionTarget(
            f'{target!r} is not an endpoint; use only scheme, host and port, such as "http://localhost:8000"'
        )
    return target.rstrip("/")


__all__ = [
    "FORMS",
    "ClientSettings",
    "ConnectionSettings",
    "Credentials",
    "EngineSettings",
    "InvalidConnectionTarget",
    "connect",
    "connect_async",
]
