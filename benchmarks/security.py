"""Cost of security: Tavola beside itself, with one safeguard at a time.

`python -m benchmarks.security --seconds 2` runs this section alone. All modes get the same requests, signed and
prepared before the clock starts, from wrk; they take turns within a round, so that all see the same noise.
"""

import argparse
import hashlib
import hmac
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks import load, machine, workload
from benchmarks.costs import HEADER, put_into, sections
from benchmarks.report import markdown_table, text_table
from benchmarks.results import Cost
from benchmarks.servers import Launch, Server, free_port
from benchmarks.wire import Answer, Client

SECTION: Final = "Cost of security"
ITEMS: Final = 10_000
PREPARED: Final = 6_000  # requests of each operation, sent again and again
CONNECTIONS: Final = 16
OPERATIONS: Final = ("get", "put")
KEY_ID: Final = "AKIAIOSFODNN7EXAMPLE"
SECRET: Final = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"  # AWS's own example
ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"

Tell = Callable[[str], None]

_LUA: Final = """\
local requests, next_one = {}, 0
local file = io.open(PATH, "rb")
while true do
   local length = file:read("*n")
   if not length then break end
   file:read(1)
   requests[#requests + 1] = file:read(length)
end
file:close()

function request()
   next_one = next_one % #requests + 1
   return requests[next_one]
end

function done(summary, latency, requests)
   local e = summary.errors
   io.write(string.format(
      '\\n@@{"requests":%d,"duration_us":%d,"status":%d,"socket":%d,"timeout":%d,"p50_us":%d,"p99_us":%d}\\n',
      summary.requests, summary.duration, e.status, e.connect + e.read + e.write, e.timeout,
      summary.requests > 0 and latency:percentile(50) or 0,
      summary.requests > 0 and latency:percentile(99) or 0))
end
"""


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to serve: a name, and the options it adds; `{folder}` is the server's own."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    share_max: Mapping[str, float] | None = None  # of an operation's rate that it may cost, by operation

    @property
    def secure(self) -> bool:
        """Whether it speaks TLS."""
        return "--tls-cert" in self.options


_STRICT: Final = ("--auth", "strict", "--iam", "{folder}/iam.json")
_LOG: Final = ("--access-log", "{folder}/access.log")
MODES: Final = (
    Mode("open", "open"),
    Mode("log", "access log", _LOG, {"get": 0.10, "put": 0.10}),
    Mode("strict", "strict, with policies", _STRICT, {"get": 0.40}),
    Mode("leading", "strict, with a condition on LeadingKeys", _STRICT, {"get": 0.40}),
    Mode("both", "strict, policies and access log", (*_STRICT, *_LOG)),
    Mode("tls", "TLS", ("--tls-cert", "{folder}/cert.pem", "--tls-key", "{folder}/key.pem")),
)
POLICY: Final[dict[str, Any]] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "Tickets",
            "Effect": "Allow",
            "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query"],
            "Resource": [
                f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{workload.TABLE}",
                f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{workload.TABLE}/index/*",
            ],
        },
        {
            "Sid": "Fill",
            "Effect": "Allow",
            "Action": ["dynamodb:CreateTable", "dynamodb:ListTables", "dynamodb:BatchWriteItem"],
            "Resource": "*",
        },
        {"Sid": "NeverDrop", "Effect": "Deny", "Action": "dynamodb:DeleteTable", "Resource": "*"},
    ],
}


def signed(target: str, body: bytes, port: int, now: datetime) -> bytes:
    """A request as an SDK sends it, with a true signature."""
    date, day = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}"
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "host": f"127.0.0.1:{port}",
        "x-amz-date": date,
        "x-amz-target": f"DynamoDB_20120810.{target}",
    }
    names = ";".join(headers)
    shown = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"POST\n/\n\n{shown}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{day}/{REGION}/dynamodb/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={names}, Signature={signature}"
    told = {
        **headers,
        "authorization": credential,
        "user-agent": "aws-sdk/1.0 tavola-benchmark",
        "accept-encoding": "identity",
        "amz-sdk-invocation-id": "8b3e0a52-5f0c-4b0a-9d0e-6f6a1c1f7a10",
        "content-length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body


class SignedClient(Client):
    """Calls one operation after another, signed, over TLS if need be."""

    def __init__(self, port: int, secure: bool) -> None:
        super().__init__(port)
        self._context = ssl._create_unverified_context() if secure else None

    def call(self, target: str, request: Mapping[str, Any] | str) -> Answer:
        """Send one operation; OSError or HTTPException where no answer comes."""
        body = (request if isinstance(request, str) else json.dumps(request)).encode()
        head = signed(target, body, self.port, datetime.now(UTC)).partition(b"\r\n\r\n")[0].decode()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_s)
            if self._context is None
            else http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=self.timeout_s, context=self._context
            )
        )
        try:
            connection.request("POST", "/", body=body, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()


def measure(
    modes: Sequence[Mode], operations: Sequence[str], rounds: int, seconds: int, folder: Path, tell: Tell
) -> list[Cost]:
    """Start a server a mode, fill them alike, and let them take turns."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise load.LoadFailed("wrk is not installed, and nothing else here sends prepared requests")
    standing: list[tuple[Mode, Server]] = []
    try:
        for mode in modes:
            server = _stand_up(mode, folder / mode.name)
            standing.append((mode, server))
            tell(f"{mode.title}: up and filled with {ITEMS:,} items")
        taken: dict[tuple[str, str], list[tuple[load.Drive, float]]] = {}
        scripts = {
            (mode.name, operation): _prepare(operation, server.port, folder / mode.name)
            for mode, server in standing
            for operation in operations
        }
        for turn in range(rounds):
            for operation in operations:
                shift = turn % len(standing)
                for mode, server in standing[shift:] + standing[:shift]:
                    script = scripts[mode.name, operation]
                    before = server.cpu_s()
                    seen = _drive(wrk, script, server.port, mode.secure, seconds)
                    server.settle(10.0)
                    cpu_us = (server.cpu_s() - before) / max(1, seen.requests) * 1e6
                    taken.setdefault((mode.name, operation), []).append((seen, cpu_us))
                    rate = seen.requests / seen.seconds
                    tell(
                        f"round {turn + 1}/{rounds}, {operation}, {mode.title}: {rate:,.0f}/s, {cpu_us:.1f} µs"
                    )
    finally:
        for _, server in standing:
            server.stop()
    return [
        Cost(
            SECTION,
            mode.title,
            operation,
            tuple(seen.requests / seen.seconds for seen, _ in runs),
            tuple(cpu_us for _, cpu_us in runs),
            sum(seen.errors for seen, _ in runs),
            (mode.share_max or {}).get(operation),
        )
        for operation in operations
        for mode in modes
        for runs in (taken[mode.name, operation],)
    ]


def _stand_up(mode: Mode, folder: Path) -> Server:
    folder.mkdir(parents=True)
    _equip(mode, folder)
    port = free_port()
    options = tuple(option.format(folder=folder) for option in mode.options)
    command = (sys.executable, "-m", "tavola", "serve", "--port", str(port), *options)
    source = str(Path(__file__).resolve().parents[1] / "src")
    server = Server(Launch(command, {"PYTHONPATH": source}), port, folder, folder.with_suffix(".txt"))
    server.client = SignedClient(port, mode.secure)
    try:
        server.await_answer(15.0)
        server.client.call("CreateTable", workload.create_table_request())
        body, draw = workload.seed_body(), workload.seed_draw(ITEMS)
        for numbers in draw.in_order(workload.BATCH_ITEMS):
            answer = server.client.call("BatchWriteItem", body.render(draw, numbers))
            if answer.status != 200:
                raise load.LoadFailed(f"{mode.title}: {answer.refusal}")
    except BaseException:
        server.stop()
        raise
    return server


def _equip(mode: Mode, folder: Path) -> None:
    """Write the certificate and the directory that a mode needs."""
    if mode.secure:
        files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"))
        kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        subject = ("-subj", "/CN=localhost", "-days", "2")
        command = ("openssl", "req", "-x509", *kind, "-nodes", *files, *subject)
        subprocess.run(command, check=True, capture_output=True, timeout=30)
    if "--iam" in mode.options:
        write_directory(folder / "iam.json", leading=mode.name == "leading")


def write_directory(path: Path, *, leading: bool = False) -> None:
    """Write a directory with one user, whose policy allows the load and not much else.

    With a condition on the leading keys it must be decided anew for each request.
    """
    first, *others = POLICY["Statement"]
    own = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["TICKET#*"]}}
    policy = {**POLICY, "Statement": [{**first, "Condition": own} if leading else first, *others]}
    key = {"id": KEY_ID, "secret": SECRET}
    user = {"id": "AIDAIOSFODNN7EXAMPLE", "inline": {"load": policy}, "keys": [key]}
    path.write_text(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: {"users": {"loader": user}}}}))


def _prepare(operation: str, port: int, folder: Path) -> Path:
    """Write signed requests of one operation, and the script that sends them."""
    timed = workload.BY_NAME[operation]
    draw = timed.draw(ITEMS, first_sequence=7)
    now = datetime.now(UTC)
    bodies = (timed.body.render(draw, numbers).encode() for numbers in islice(draw.numbers(), PREPARED))
    requests = [signed(timed.target, body, port, now) for body in bodies]
    stored, script = folder / f"{operation}.requests", folder / f"{operation}.lua"
    stored.write_bytes(b"".join(b"%d\n%b" % (len(request), request) for request in requests))
    script.write_text(_LUA.replace("PATH", json.dumps(str(stored))))
    return script


def _drive(wrk: str, script: Path, port: int, secure: bool, seconds: int) -> load.Drive:
    url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/"
    done = subprocess.run(
        (wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url),
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    return load.read_wrk(done.stdout, done.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the section alone and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.security", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="of each timed run (default 2)")
    parser.add_argument("--rounds", type=int, default=3, help="the median of these counts (default 3)")
    parser.add_argument("--modes", default=",".join(mode.name for mode in MODES), help="with commas")
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="with commas")
    parser.add_argument("--output", type=Path, help="a file for the section as Markdown")
    parser.add_argument("--into", type=Path, help="a results.json to put this section into")
    options = parser.parse_args(arguments)
    modes = [mode for mode in MODES if mode.name in options.modes.split(",")]

    def tell(words: str) -> None:
        sys.stderr.write(f"[{datetime.now(UTC):%H:%M:%S}] {words}\n")

    with tempfile.TemporaryDirectory(prefix="tavola-security-") as folder:
        began_s, busy_s = time.monotonic(), machine.busy_s() - machine.own_s()
        costs = measure(
            modes, options.operations.split(","), options.rounds, options.seconds, Path(folder), tell
        )
        foreign_s = machine.busy_s() - machine.own_s() - busy_s
        tell(
            f"{foreign_s / (time.monotonic() - began_s):.2f} cores of {os.cpu_count()} were busy beside wrk's side"
        )
    found = sections(costs)[SECTION]
    sys.stdout.write(text_table(HEADER, found) + "\n")
    if options.output is not None:
        options.output.write_text(f"## {SECTION}\n\n{markdown_table(HEADER, found)}\n")
    if options.into is not None:
        put_into(options.into, costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
