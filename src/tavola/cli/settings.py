"""Settings: the options that can also be set by an environment variable, one row each.

The help of the commands and docs/reference/settings.md are generated from these rows. An option wins over its environment
variable (`TAVOLA_PORT` for `--port`), and the variable over the default.
"""

from __future__ import annotations

from dataclasses import dataclass

from tavola.cli.parameters import Option


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, default, help text, unit and bounds."""

    name: str
    default: str | int
    help: str
    unit: str = ""
    least: int | None = None
    most: int | None = None
    metavar: str | None = None
    variable_name: str = ""

    @property
    def flag(self) -> str:
        """The option that sets it."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return self.variable_name or f"TAVOLA_{self.name.upper().replace('-', '_')}"


def option(setting: Setting, flag: str | None = None, help_: str | None = None) -> Option:
    """Return a setting as an option of a command, under its own flag or another, with its own help or another."""
    return Option(
        flag or setting.flag,
        envvar=setting.variable,
        help=help_ or setting.help,
        metavar=setting.metavar,
        min=setting.least,
        max=setting.most,
    )


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a text that separates them by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _port(name: str, default: int, what: str) -> Setting:
    return Setting(name, default, f"Port {what}; 0 picks a free port.", least=0, most=65535, metavar="PORT")


HOST = Setting(
    "host",
    "127.0.0.1",
    "Address to listen on. The default accepts only local connections.",
    metavar="ADDRESS",
)
PORT = _port("port", 8000, "to listen on")
SYNC = Setting("sync", "full", "When a write is confirmed: after fsync (full), or before it (off).")
CACHE_MB = Setting(
    "cache-mb", 1024, "Page cache for a database file, in MB.", "MB", least=1, most=65536, metavar="MB"
)
WORDING = Setting(
    "wording",
    "current",
    "Error message wording: what AWS sends today (current), the older (classic) or the newer (modern) wording only.",
)
TABLE_DELAY_MS = Setting(
    "table-delay-ms",
    0,
    "How long a new table or index stays CREATING, in ms.",
    "ms",
    least=0,
    most=3_600_000,
    metavar="MS",
)
EMULATE = Setting(
    "emulate",
    "",
    "Production behaviour to emulate, separated by commas: throughput, split-after=5m, gsi-lag=200ms, stale-reads=100ms, "
    "conflicts=20ms, unprocessed=0.1, interleave=100ms, ttl-delay=60s, seed=7; see docs/how-to/emulation.md.",
    metavar="LIST",
)
AUTH = Setting(
    "auth", "open", "Accept any credentials (open), or verify signatures and enforce IAM policies (strict)."
)
IAM = Setting(
    "iam", "", "File of users, roles and policies; create one with `tavola iam init`.", metavar="FILE"
)
TLS_CERT = Setting("tls-cert", "", "Certificate chain for HTTPS, as PEM.", metavar="FILE")
TLS_KEY = Setting(
    "tls-key", "", "Private key of the certificate, as PEM without a passphrase.", metavar="FILE"
)
ALLOW_HOST = Setting(
    "allow-host",
    "",
    "Further host names of this machine to accept in requests, separated by commas.",
    metavar="NAMES",
)
CORS = Setting(
    "cors",
    "",
    "Origin of a web application whose pages may use this server, such as http://localhost:3000; repeatable. With "
    "`--auth strict` also `*`, for any.",
    metavar="ORIGIN",
)
BUFFER_MB = Setting(
    "buffer-mb",
    256,
    "Memory for the requests and responses of all clients together, in MB.",
    "MB",
    least=64,
    most=65536,
    metavar="MB",
)
ACCESS_LOG = Setting(
    "access-log", "", "Record every call in this file; read it with `tavola log`.", metavar="FILE"
)
ACCESS_LOG_MB = Setting(
    "access-log-mb",
    64,
    "Size at which the access log is rotated, in MB.",
    "MB",
    least=1,
    most=65536,
    metavar="MB",
)
ACCESS_LOG_FILES = Setting(
    "access-log-files", 8, "Number of access log files to keep.", least=1, most=10_000, metavar="COUNT"
)
KEY_FILE = Setting(
    "key-file",
    "",
    "File with the encryption key, on one line. A new database is created encrypted.",
    metavar="FILE",
)
KEY_COMMAND = Setting("key-command", "", "Command that prints the encryption key.", metavar="COMMAND")
STORE_KEY = Setting(
    "store-key",
    "",
    "Encryption key. Prefer TAVOLA_KEY: other users can see command lines.",
    metavar="KEY",
    variable_name="TAVOLA_KEY",
)
BUCKETS = Setting(
    "buckets", "", "Folder that stands in for S3: each of its folders is a bucket.", metavar="FOLDER"
)
TTL_INTERVAL_S = Setting(
    "ttl-interval-s",
    60,
    "Interval between deletions of expired items, in seconds.",
    "s",
    least=1,
    most=86_400,
    metavar="S",
)
APPS_PORT = _port("apps-port", 8001, "of the applications")
BLOBS = Setting(
    "blobs",
    "",
    "Where to keep large values: a folder or s3://BUCKET/PREFIX. Default: a folder in --state.",
    metavar="LOCATION",
)
STATE = Setting(
    "state",
    "",
    "Folder for the application's secret, stream checkpoints and blobs. Default: FILE.apps beside a file, or a folder in "
    ".tavola for an endpoint.",
    metavar="FOLDER",
)
SECRET_FILE = Setting(
    "secret-file",
    "",
    "File with the secret that signs cursors and hashes phone numbers. Default: one is generated in --state.",
    metavar="FILE",
)
TABLE_PREFIX = Setting(
    "table-prefix", "", "Prefix of the names of the application's tables.", metavar="PREFIX"
)
ENVIRONMENT = Setting(
    "environment",
    "dev",
    "Environment of the reviews, such as staging or prod; it is the suffix of the table name.",
    metavar="NAME",
)
CALLER_HEADER = Setting(
    "caller-header",
    "",
    "Request header in which an authenticating proxy passes the caller's name, for the audit trail. The proxy must remove "
    "this header from incoming requests.",
    metavar="HEADER",
)
KEEP_TICKETS = Setting(
    "keep-tickets",
    0,
    "Days to keep a closed ticket and its files; 0 keeps it forever.",
    "days",
    least=0,
    most=36_500,
    metavar="DAYS",
)
KEEP_EVENTS = Setting(
    "keep-events",
    0,
    "Days to keep the events of a ticket; 0 keeps them forever.",
    "days",
    least=0,
    most=36_500,
    metavar="DAYS",
)
STUDIO_REGION = Setting(
    "studio-region", "us-east-1", "Region of the tables that the studio shows.", metavar="REGION"
)
STUDIO_PORT = _port("studio-port", 8001, "of the studio")
BASE_PATH = Setting(
    "base-path", "", "URL path of the studio behind a reverse proxy, such as /studio.", metavar="PATH"
)

SETTINGS = (
    *(HOST, PORT, SYNC, CACHE_MB, WORDING, TABLE_DELAY_MS, EMULATE),
    *(AUTH, IAM, TLS_CERT, TLS_KEY, ALLOW_HOST, CORS, BUFFER_MB, ACCESS_LOG, ACCESS_LOG_MB, ACCESS_LOG_FILES),
    *(KEY_FILE, KEY_COMMAND, STORE_KEY, TTL_INTERVAL_S, BUCKETS),
)
"""The settings of `tavola serve`."""

APP_SETTINGS = (
    *(APPS_PORT, BLOBS, STATE, SECRET_FILE, TABLE_PREFIX),
    *(ENVIRONMENT, CALLER_HEADER, KEEP_TICKETS, KEEP_EVENTS),
)
"""The settings of `tavola app` and `tavola demo`."""

STUDIO_SETTINGS = (STUDIO_PORT, BASE_PATH, STUDIO_REGION)
"""The settings of `tavola studio` and `tavola serve --studio`."""
