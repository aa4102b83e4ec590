"""Full, over HTTP: what clients, health checks and the log see of a server whose file cannot be written; run in a child.

`python -m tests.durability.full_served tmpfs FOLDER` expects a small file system at FOLDER. `… limit FOLDER` lowers the size
that a file may have, `… deleted FOLDER` deletes the file. Prints each thing that is wrong, one a line.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tavola.clock import monotonic
from tavola.engine import Engine
from tests.durability.state import scan

_TABLE = {
    "TableName": "full",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
_REFUSED = 390  # requests that are refused before there is space again
_PUTS_MAX = 5000
_WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server in a process of its own, one connection to it, and the file that its log goes to."""

    connection: HTTPConnection
    process: subprocess.Popen[bytes]
    log: Path

    def call(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and body of an operation's response."""
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
        }
        self.connection.request("POST", "/", json.dumps(request), headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def put(self, name: str) -> tuple[int, str]:
        """Put an item of 2 KB; return the status, and the message of a failure."""
        item = {"pk": {"S": name}, "v": {"S": name[-1] * 2000}}
        status, body = self.call("PutItem", {"TableName": "full", "Item": item})
        return status, str(body.get("message", body.get("Message", "")))

    def readiness(self) -> tuple[int, str]:
        """Return the status of /readyz, and its reason."""
        self.connection.request("GET", "/readyz")
        response = self.connection.getresponse()
        return response.status, str(json.loads(response.read()).get("reason", ""))

    def wait_for_readiness(self, status: int) -> str | None:
        """Ask until /readyz has a status, and return its reason; None if it does not get there."""
        until_s = monotonic() + _WAIT_S
        while monotonic() < until_s:
            found, reason = self.readiness()
            if found == status:
                return reason
        return None

    def lines(self, text: str) -> int:
        """Return the number of lines of the log with a text."""
        return sum(text in line for line in self.log.read_text().splitlines())


@contextmanager
def _serve(path: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "tavola", "serve", str(path), "--port", "0", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("wb") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())
            connection = HTTPConnection(address["host"], address["port"], timeout=_WAIT_S)
            try:
                yield Served(connection, process, log)
            finally:
                connection.close()
                process.kill()


def _fill(server: Served, acknowledged: set[str]) -> tuple[int, str]:
    """Put until a put is refused; return its status and message."""
    for number in range(len(acknowledged), len(acknowledged) + _PUTS_MAX):
        status, message = server.put(f"p{number}")
        if status != 200:
            return status, message
        acknowledged.add(f"p{number}")
    return 200, "never refused"


def refuse_and_recover(
    folder: Path, phrase: str, begin: Callable[[Served], None], free: Callable[[Served], None]
) -> list[str]:
    """Let writes be refused, make space, and go on; return what is wrong. `phrase` must be in each refusal."""
    wrong: list[str] = []
    acknowledged: set[str] = set()
    path = folder / "store.db"
    with _serve(path) as server:
        server.call("CreateTable", _TABLE)
        begin(server)
        status, message = _fill(server, acknowledged)
        if status != 500 or phrase not in message:
            wrong.append(f"the first refusal is {status}: {message}")
        refusals = [server.put(f"refused{number}") for number in range(_REFUSED)]
        acknowledged |= {f"refused{n}" for n, (status, _) in enumerate(refusals) if status == 200}
        unclear = {message for status, message in refusals if status != 200 and phrase not in message}
        if unclear or sum(status != 200 for status, _ in refusals) < _REFUSED // 2:
            wrong.append(f"{len(unclear)} refusals are unclear: {sorted(unclear)[:2]}")
        reason = server.wait_for_readiness(503)
        if reason is None or phrase not in reason:
            wrong.append(f"/readyz says {reason!r}")
        if server.call("GetItem", {"TableName": "full", "Key": {"pk": {"S": "p0"}}})[1].get("Item") is None:
            wrong.append("reads are not answered")
        if server.lines("Traceback") or server.lines("The store is not ready") != 1:
            wrong.append(f"the log is {server.log.read_text()[:1000]}")
        free(server)
        if server.wait_for_readiness(200) is None:
            wrong.append(f"with space, /readyz says {server.readiness()}")
        for number in range(20):
            status, message = server.put(f"after{number}")
            acknowledged.add(f"after{number}")
            if status != 200:
                wrong.append(f"with space, a put is refused with {status}: {message}")
    with Engine.open(path) as engine:
        found = {item["pk"]["S"] for item in scan(engine, "full")}
    if not found >= acknowledged or found - acknowledged:
        wrong.append(f"{len(found)} items are there, {len(acknowledged)} were acknowledged")
    return wrong


def on_small_disk(folder: Path) -> list[str]:
    """Fill a small file system; the space comes from a file that is deleted."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    return refuse_and_recover(
        folder, "store.db cannot be written: the disk is full", lambda _: None, lambda _: ballast.unlink()
    )


def under_a_limit(folder: Path) -> list[str]:
    """Let no file of the server grow past a limit."""

    def limit(size: int) -> Callable[[Served], None]:
        def apply(server: Served) -> None:
            _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))

        return apply

    return refuse_and_recover(folder, "raise the limit on the size of files", limit(1 << 20), limit(1 << 26))


def deleted(folder: Path) -> list[str]:
    """Delete the file of a server: writes stop with a reason, reads go on, and the log says it once."""
    wrong: list[str] = []
    path = folder / "store.db"
    with _serve(path) as server:
        server.call("CreateTable", _TABLE)
        server.put("before")
        path.unlink()
        reason = server.wait_for_readiness(503)
        if reason is None or "store.db was deleted" not in reason:
            wrong.append(f"/readyz says {reason!r}")
        refusals = {server.put(f"{number}") for number in range(_REFUSED)}
        if len(refusals) != 1 or not all("store.db was deleted" in message for _, message in refusals):
            wrong.append(f"the refusals are {refusals}")
        if server.call("GetItem", {"TableName": "full", "Key": {"pk": {"S": "before"}}})[0] != 200:
            wrong.append("reads are not answered")
        if server.lines("Traceback") or server.lines("store.db was deleted") != 1:
            wrong.append(f"the log is {server.log.read_text()[:1000]}")
    if path.exists():
        wrong.append("the file was made again")
    if not os.path.exists(f"{path}-wal"):
        wrong.append("the log of the deleted file is gone")
    return wrong


if __name__ == "__main__":
    kinds = {"tmpfs": on_small_disk, "limit": under_a_limit, "deleted": deleted}
    sys.stdout.write("".join(f"{each}\n" for each in kinds[sys.argv[1]](Path(sys.argv[2]))))
