"""The two desks: ours on a file, synced, and the one written by hand on DynamoDB Local; filled, served, ended."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from benchmarks.applications.routes import SAMPLED
from benchmarks.peers import ENGINES
from benchmarks.servers import Launch, Server, free_port

Tell = Callable[[str], None]

OURS: Final = "tavola"
BASELINE: Final = "baseline"
TITLES: Final = {OURS: "Tavola, in process", BASELINE: "boto3 on DynamoDB Local"}
START_S_MAX: Final = 1800.0
_STOP_S: Final = 60.0
_BATCH: Final = 25
_WRITERS: Final = 4


@dataclass(frozen=True, slots=True)
class Desk:
    """A desk that answers."""

    name: str
    tickets: int
    port: int
    fill_s: float
    ids: tuple[str, ...]
    customers: tuple[str, ...]
    servers: tuple[Server, ...]

    def cpu_s(self) -> float:
        """Processor time that everything behind the desk's port has taken."""
        return sum(server.cpu_s() for server in self.servers)


@contextmanager
def ours(folder: Path, tickets: int, tell: Tell) -> Iterator[Desk]:
    """Our desk over a file with a generated month of tickets, each write on the disk before it is answered.

    A file of that many that is there already is taken as it is; what was created in earlier runs stays in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "desk.db"
    began = time.perf_counter()
    if not file.exists():
        _generate(file, tickets)
    fill_s = time.perf_counter() - began
    tell(f"{tickets:,} tickets of ours are there")
    _warm(file)
    port = free_port()
    command = (
        sys.executable,
        "-m",
        "tavola",
        "app",
        "support-desk",
        "--store",
        str(file),
        "--state",
        f"{file}.apps",
    )
    running = folder / "running"  # the server's own, gone with it
    running.mkdir(exist_ok=True)
    server = Server(Launch((*command, "--port", str(port))), port, running, folder / "desk.log")
    try:
        _await(server, port, "/readyz", b'"following"')
        ids, customers = _sampled(port)
        yield Desk(OURS, tickets, port, fill_s, ids, customers, (server,))
    finally:
        server.stop()


def _warm(file: Path) -> None:
    """Read a file once, so that the system has it in memory as it would after a day's work."""
    with file.open("rb", buffering=0) as stream:
        while stream.read(1 << 22):
            pass


def _generate(file: Path, tickets: int) -> None:
    """Have `tavola demo` make its file, and end it when that is done."""
    command = (
        "demo",
        str(file),
        "--tickets",
        str(tickets),
        "--reviews",
        "10",
        "--port",
        "0",
        "--apps-port",
        "0",
    )
    with subprocess.Popen(
        (sys.executable, "-m", "tavola", *command, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        if process.wait(_STOP_S) or not told:
            raise RuntimeError("`tavola demo` did not make its file")


def _sampled(port: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return tickets and customers from all over the month, as the desk lists them."""
    ids: list[str] = []
    customers: set[str] = set()
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    now = datetime.now(UTC)
    for hour in range(0, 30 * 24, 3):
        until = (now - timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M:%SZ")
        connection.request("GET", f"/tickets?to={until}&limit=100")
        for ticket in json.load(connection.getresponse())["items"]:
            ids.append(ticket["ticket_id"])
            customers.add(ticket["customer_id"])
    return tuple(ids), tuple(sorted(customers))


@contextmanager
def baseline(folder: Path, tickets: int, peers: Path, tell: Tell) -> Iterator[Desk]:
    """The desk written by hand; DynamoDB Local keeps its data in memory, which is the faster of its two ways."""
    folder.mkdir(parents=True)
    local = next(each for each in ENGINES if each.name == "dynamodb-local")
    with ExitStack() as standing:
        database_port, port = free_port(), free_port()
        data = folder / "local"
        data.mkdir()
        launch = local.obtain(peers).launch("memory", data, database_port)
        database = Server(launch, database_port, data, folder / "local.log")
        standing.callback(database.stop)
        database.await_answer(local.start_s_max)
        environment = {**os.environ, "BASELINE_ENDPOINT": f"http://127.0.0.1:{database_port}"}
        began = time.perf_counter()
        done = subprocess.run(
            (sys.executable, "-m", "benchmarks.applications.desks", str(tickets)),
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = json.loads(done.stdout)
        fill_s = time.perf_counter() - began
        tell(f"{tickets:,} tickets of the baseline are there")
        command = (
            sys.executable, "-m", "uvicorn", "benchmarks.applications.baseline:app", "--port", str(port),
            "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning",
        )  # fmt: skip
        web_data = folder / "web"
        web_data.mkdir()
        web = Server(
            Launch(command, {"BASELINE_ENDPOINT": environment["BASELINE_ENDPOINT"]}, Path.cwd()),
            port, web_data, folder / "web.log",
        )  # fmt: skip
        standing.callback(web.stop)
        _await(web, port, "/dashboard")
        yield Desk(
            BASELINE, tickets, port, fill_s, tuple(told["ids"]), tuple(told["customers"]), (web, database)
        )


def _await(server: Server, port: int, path: str, words: bytes = b"") -> None:
    """Wait until a path is answered with 200, and with these words: numbers that are being made keep a desk busy."""
    give_up = time.perf_counter() + START_S_MAX
    while time.perf_counter() < give_up:
        if not server.alive:
            raise RuntimeError(f"the desk ended: {server.last_words()}")
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status == 200 and words in answer.read():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"no answer of {path} in {START_S_MAX:.0f} s: {server.last_words()}")


def fill_baseline(tickets: int) -> dict[str, list[str]]:
    """Fill the baseline's table as its own code would have, and return some of what it holds."""
    from benchmarks.applications import baseline as desk

    desk.create_tables()
    now = datetime.now(UTC)
    customers = [f"cust-{number:05d}" for number in range(max(1, tickets // 60))]

    def made(number: int) -> dict[str, Any]:
        return {
            "ticket_id": f"tkt_{number:08d}",
            "customer": {"id": customers[number % len(customers)]},
            "status": desk.STATUSES[number % len(desk.STATUSES)],
            "created_at": (now - timedelta(seconds=2 * number)).isoformat(),
            "symptom_text": f"The printer on floor {number % 40} shows E-42 and prints nothing at all.",
            "priority": "P3",
        }

    def put(first: int) -> None:
        requests = []
        for number in range(first, min(first + _BATCH, tickets)):
            ticket = made(number)
            requests.append({"PutRequest": {"Item": desk.item_of(ticket)}})
        desk.resource.batch_write_item(RequestItems={desk.TABLE: requests})

    with concurrent.futures.ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(put, range(0, tickets, _BATCH)))
    for status in desk.STATUSES:
        desk.metrics.put_item(
            Item={"metric_name": f"tickets_by_status#{status}", "count_value": tickets // len(desk.STATUSES)}
        )
    desk.metrics.put_item(
        Item={"metric_name": "avg_resolution_time", "total_time": 7200 * tickets, "count_value": tickets}
    )
    step = max(1, tickets // SAMPLED)
    return {
        "ids": [f"tkt_{number:08d}" for number in range(0, tickets, step)],
        "customers": customers[:SAMPLED],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(fill_baseline(int(sys.argv[1]))))
