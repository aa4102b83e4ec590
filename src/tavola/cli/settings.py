"""Settings: what a person may turn, one row each. The help and the manual are made from these rows.

A setting is given as an option, or else by the environment (`TAVOLA_PORT` for `--port`), or else it has
its default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tavola.cli.parameters import Option


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be turned: its name, its default, its unit and a sentence."""

    name: str
    default: str | int
    unit: str
    sentence: str
    least: int | None = None
    most: int | None = None

    @property
    def flag(self) -> str:
        """The option that sets it."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"TAVOLA_{self.name.upper().replace('-', '_')}"


HOST = Setting("host", "127.0.0.1", "", "The address to listen on; the default lets only this machine in.")
PORT = Setting("port", 8000, "", "The port to listen on; 0 takes a free one.", least=0, most=65535)
SYNC = Setting(
    "sync",
    "full",
    "",
    "When a write to a file counts as done: on the disk (full), or when the system has it (off).",
)
CACHE_MB = Setting(
    "cache-mb",
    1024,
    "MB",
    "The most memory that pages of a file may take, as they are read; what is in memory takes what it needs.",
    least=1,
    most=65536,
)
WORDING = Setting(
    "wording",
    "current",
    "",
    "Which words refusals use: AWS's mixture of today (current), the older (classic), the newer (modern).",
)
TABLE_DELAY_MS = Setting(
    "table-delay-ms", 0, "ms", "How long a new table or index stays CREATING.", least=0, most=3_600_000
)
EMULATE = Setting(
    "emulate",
    "",
    "",
    "What production does to requests and shall happen here too: throughput, gsi-lag=200ms, stale-reads=100ms, "
    "conflicts=20ms, unprocessed=0.1, interleave, ttl-delay=60s and seed=7, in one text with commas between.",
)
AUTH = Setting(
    "auth",
    "open",
    "",
    "Whether callers prove who they are: every signature is verified and every policy holds (strict), or all are "
    "taken at their word (open).",
)
IAM = Setting(
    "iam", "", "", "The file of users, roles and policies for --auth strict; `tavola iam init` makes one."
)
TLS_CERT = Setting("tls-cert", "", "", "The certificate for HTTPS, with those that lead to its root, as PEM.")
TLS_KEY = Setting("tls-key", "", "", "The key of the certificate, as PEM without a passphrase.")
ALLOW_HOST = Setting(
    "allow-host",
    "",
    "",
    "Names beside localhost, addresses and --host by which this machine is called, with commas between them.",
)
ACCESS_LOG = Setting("access-log", "", "", "The file that every call is noted in; `tavola log` reads it.")
ACCESS_LOG_MB = Setting(
    "access-log-mb", 64, "MB", "The size at which the access log begins a new file.", least=1, most=65536
)
ACCESS_LOG_FILES = Setting(
    "access-log-files",
    8,
    "",
    "How many files of the access log are kept, the newest among them.",
    least=1,
    most=10_000,
)
KEY_FILE = Setting(
    "key-file",
    "",
    "",
    "The file that holds the key of an encrypted store, in one line; a new file is made encrypted.",
)
KEY_COMMAND = Setting("key-command", "", "", "A command that prints the key of an encrypted store.")
KEY = Setting(
    "key", "", "", "The key of an encrypted store itself; set TAVOLA_KEY, since others can see an option."
)
BUCKETS = Setting(
    "buckets",
    "",
    "",
    "The folder whose folders stand for the buckets of S3, for exports, imports and bulk loads.",
)
TTL_INTERVAL_S = Setting(
    "ttl-interval-s", 60, "s", "How often expired items are looked for and deleted.", least=1, most=86_400
)
APPS_PORT = Setting(
    "apps-port", 8001, "", "The port of the applications; 0 takes a free one.", least=0, most=65535
)
BLOBS = Setting(
    "blobs",
    "",
    "",
    "Where large values are kept: a folder, or s3://BUCKET/PREFIX; unless given, the folder --state has one.",
)
STATE = Setting(
    "state",
    "",
    "",
    "The folder of what belongs to the records and is not in the table: the secret, how far changes are counted, blobs. "
    "Unless given, FILE.apps beside a file, and a folder in .tavola for an endpoint.",
)
SECRET_FILE = Setting(
    "secret-file",
    "",
    "",
    "The file that holds the secret which signs cursors and hides telephone numbers; unless given, one is made in --state.",
)
TABLE_PREFIX = Setting("table-prefix", "", "", "What stands before the names of the applications' tables.")
ENVIRONMENT = Setting(
    "environment",
    "dev",
    "",
    "The environment whose reviews they are; it ends the name of the Terraform review's table: prod, staging.",
)
CALLER_HEADER = Setting(
    "caller-header",
    "",
    "",
    "The header in which a proxy before the Terraform review names the caller, who is then the one that the audit trail tells; the proxy must "
    "take it out of what callers send.",
)
KEEP_TICKETS = Setting(
    "keep-tickets",
    0,
    "days",
    "How long the support desk keeps a ticket after it was closed, with its files; 0 keeps it for ever.",
    least=0,
    most=36_500,
)
KEEP_EVENTS = Setting(
    "keep-events",
    0,
    "days",
    "How long the support desk keeps what happened to a ticket; 0 keeps it for ever.",
    least=0,
    most=36_500,
)

STUDIO_REGION = Setting(
    "studio-region",
    "us-east-1",
    "",
    "Whose tables the studio shows beside `tavola serve`: those of this region.",
)
STUDIO_PORT = Setting(
    "studio-port", 8001, "", "The port of the studio; 0 takes a free one.", least=0, most=65535
)
BASE_PATH = Setting(
    "base-path",
    "",
    "",
    "The path that the studio is below, such as /studio, where a proxy before it has other things at its root.",
)

SETTINGS = (
    *(HOST, PORT, SYNC, CACHE_MB, WORDING, TABLE_DELAY_MS, EMULATE),
    *(AUTH, IAM, TLS_CERT, TLS_KEY, ALLOW_HOST, ACCESS_LOG, ACCESS_LOG_MB, ACCESS_LOG_FILES),
    *(KEY_FILE, KEY_COMMAND, KEY, TTL_INTERVAL_S, BUCKETS),
)

APP_SETTINGS = (
    *(APPS_PORT, BLOBS, STATE, SECRET_FILE, TABLE_PREFIX),
    *(ENVIRONMENT, CALLER_HEADER, KEEP_TICKETS, KEEP_EVENTS),
)
"""Those of the applications, of `tavola app` and `tavola demo`."""

STUDIO_SETTINGS = (STUDIO_PORT, BASE_PATH, STUDIO_REGION)
"""Those of the studio, of `tavola studio` and `tavola serve --studio`."""


def option(setting: Setting) -> Any:
    """Return a setting as an option of a command."""
    unit = f" [{setting.unit}]" if setting.unit else ""
    return Option(
        setting.flag,
        envvar=setting.variable,
        help=f"{setting.sentence}{unit}",
        min=setting.least,
        max=setting.most,
    )
