"""Soak: a server on a file under a mixed load for a long time; its memory, open files and WAL must stay bounded.

`python -m tests.durability.soak --minutes 30 --seed 1` starts `tavola serve FILE` with a stream retention of 20 seconds, so
that stream records are trimmed (once a minute), and with items that expire. Four clients write and read over HTTP, and a fifth reads the
stream and scans. At each interval the server's process and files are measured. The first fifth of the samples is warm-up:
caches fill. Of the rest, the median memory of the last third may exceed that of the first third by `RSS_RATIO_MAX` and
`RSS_MARGIN_MB` together; open files by `FILES_MARGIN`; the WAL may never exceed `WAL_MB_MAX` (checkpoints begin at 16 MB).

A leak below the margin is not found: of 8 MB in ten minutes, or a few bytes for each request.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.durability.serving import STREAM_OPERATIONS

RSS_RATIO_MAX, RSS_MARGIN_MB = 1.05, 8.0
FILES_MARGIN = 2
WAL_MB_MAX = 32.0
CLIENTS = 4
KEYS = 2000
SERVER = """
import tavola.limits
tavola.limits.STREAM_RETENTION_S = 20
from tavola.cli.launch import run
run()
"""
TABLE: dict[str, Any] = {
    "TableName": "soak",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
TTL = {"TableName": "soak", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ends"}}


@dataclass(frozen=True, slots=True)
class SoakSample:
    """The server at one time, and its answers since the sample before."""

    at_s: float
    rss_mb: float
    open_files: int
    wal_mb: float
    file_mb: float
    requests: int
    p50_ms: float
    p99_ms: float


@dataclass(slots=True)
class SoakLoad:
    """What the clients share: whether to stop, their latencies since the last sample, and their failures."""

    port: int
    stop: threading.Event = field(default_factory=threading.Event)
    latencies_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def start(self, work: Any, seed: int) -> threading.Thread:
        """Start a client on a connection of its own."""

        def run() -> None:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                work(self, connection, Random(seed))
            except (OSError, HTTPException, AssertionError) as error:
                self.failures.append(repr(error))
                self.stop.set()
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def send(self, connection: HTTPConnection, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and measure it; raise if it fails."""
        service = "DynamoDBStreams" if operation in STREAM_OPERATIONS else "DynamoDB"
        headers = {"X-Amz-Target": f"{service}_20120810.{operation}"}
        headers["Content-Type"] = "application/x-amz-json-1.0"
        before = time.perf_counter()
        connection.request("POST", "/", json.dumps(request), headers)
        answer = connection.getresponse()
        body = answer.read()
        self.latencies_s.append(time.perf_counter() - before)
        if answer.status != 200:
            raise AssertionError(f"{operation}: {answer.status} {body[:200]!r}")
        result: dict[str, Any] = json.loads(body)
        return result


def write_and_read(load: SoakLoad, connection: HTTPConnection, random: Random) -> None:
    """Put, get, query, update, transact and delete, until the load stops."""
    while not load.stop.is_set():
        number = random.randrange(KEYS)
        key = {"pk": {"S": f"p{number % 50}"}, "sk": {"S": f"{number}"}}
        ends = {"N": str(int(time.time()) + random.randint(1, 30))}
        item = {**key, "v": {"S": "x" * random.choice((50, 500, 8000))}}
        item |= {"ends": ends} if random.random() < 0.3 else {}
        update = {
            "TableName": "soak",
            "Key": key,
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        other = {**item, "sk": {"S": f"{number}-twin"}}
        query = {
            "TableName": "soak",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": key["pk"]},
            "Limit": 20,
        }
        actions = [{"Put": {"TableName": "soak", "Item": other}}, {"Update": update}]
        requests: list[tuple[str, dict[str, Any]]] = [
            ("PutItem", {"TableName": "soak", "Item": item}),
            ("GetItem", {"TableName": "soak", "Key": key}),
            ("Query", query),
            ("UpdateItem", update),
            ("TransactWriteItems", {"TransactItems": actions}),
            ("DeleteItem", {"TableName": "soak", "Key": key}),
        ]
        operation, request = random.choices(requests, weights=(4, 6, 2, 2, 1, 2))[0]
        load.send(connection, operation, request)


def read_stream_and_scan(load: SoakLoad, connection: HTTPConnection, random: Random) -> None:
    """Read each shard of the stream from its latest record on, and a page of a scan now and then."""
    arn = load.send(connection, "DescribeTable", {"TableName": "soak"})["Table"]["LatestStreamArn"]
    iterators: dict[str, str | None] = {}
    while not load.stop.wait(0.05):
        described = load.send(connection, "DescribeStream", {"StreamArn": arn})["StreamDescription"]
        for shard in (each["ShardId"] for each in described["Shards"]):
            if shard not in iterators:
                start = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"}
                iterators[shard] = load.send(connection, "GetShardIterator", start)["ShardIterator"]
            if iterators[shard] is not None:
                page = load.send(connection, "GetRecords", {"ShardIterator": iterators[shard]})
                iterators[shard] = page.get("NextShardIterator")
        load.send(
            connection, "Scan", {"TableName": "soak", "Segment": random.randrange(8), "TotalSegments": 8}
        )


def run(
    folder: Path, seconds: float, seed: int, interval_s: float, program: str = SERVER
) -> tuple[list[SoakSample], list[str]]:
    """Run the load against a server of its own; return the samples, and what failed."""
    file = folder / "soak.db"
    words = [sys.executable, "-c", program, "serve", str(file), "--port", "0", "--json"]
    words += ["--ttl-interval-s", "1", "--cache-mb", "16"]  # so that the cache is full soon
    samples: list[SoakSample] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        load = SoakLoad(json.loads(server.stdout.readline())["port"])
        threads: list[threading.Thread] = []
        try:
            connection = HTTPConnection("127.0.0.1", load.port, timeout=30)
            load.send(connection, "CreateTable", TABLE)
            load.send(connection, "UpdateTimeToLive", TTL)
            connection.close()
            threads = [load.start(write_and_read, seed * 100 + number) for number in range(CLIENTS)]
            threads.append(load.start(read_stream_and_scan, seed))
            started = time.monotonic()
            while time.monotonic() - started < seconds and not load.stop.wait(interval_s):
                samples.append(sample(server.pid, file, load, time.monotonic() - started))
        finally:
            load.stop.set()
            for thread in threads:
                thread.join()
            server.terminate()
    return samples, load.failures


def sample(pid: int, file: Path, load: SoakLoad, at_s: float) -> SoakSample:
    """Measure the server's process and files, and take the latencies since the last time."""
    latencies, load.latencies_s = load.latencies_s, []
    points = quantiles(latencies, n=100) if len(latencies) > 1 else [0.0] * 99
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    rss_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    wal = file.with_name(f"{file.name}-wal")
    return SoakSample(
        at_s=round(at_s, 1),
        rss_mb=round(rss_kb / 1024, 1),
        open_files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        wal_mb=round(wal.stat().st_size / 2**20, 1) if wal.exists() else 0.0,
        file_mb=round(file.stat().st_size / 2**20, 1),
        requests=len(latencies),
        p50_ms=round(points[49] * 1000, 2),
        p99_ms=round(points[98] * 1000, 2),
    )


def leaks(samples: Sequence[SoakSample], rss_margin_mb: float = RSS_MARGIN_MB) -> list[str]:
    """Return what grew beyond its bound."""
    warm = samples[len(samples) // 5 :]
    third = len(warm) // 3
    if third < 2:
        return [f"{len(samples)} samples are too few"]
    first, last = warm[:third], warm[-third:]
    wrong = []
    before, after = (median(each.rss_mb for each in part) for part in (first, last))
    if after > before * RSS_RATIO_MAX + rss_margin_mb:
        wrong.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    files = [max(each.open_files for each in part) for part in (first, last)]
    if files[1] > files[0] + FILES_MARGIN:
        wrong.append(f"open files grew from {files[0]} to {files[1]}")
    longest = max(each.wal_mb for each in samples)
    if longest > WAL_MB_MAX:
        wrong.append(f"the WAL grew to {longest:.0f} MB")
    return wrong


def write_report(samples: Sequence[SoakSample], wrong: Sequence[str], folder: Path) -> None:
    """Write soak.json, soak.md with at most 24 rows, and soak.svg."""
    rows = [asdict(each) for each in samples]
    (folder / "soak.json").write_text(json.dumps({"wrong": list(wrong), "samples": rows}, indent=1))
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---:|" * len(rows[0])]
    chosen = rows[:: max(1, len(rows) // 24)]
    lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in chosen]
    (folder / "soak.md").write_text(
        "\n".join([*lines, "", *(wrong or ["Nothing grew beyond its bound."]), ""])
    )
    figure = Figure(figsize=(8, 8), layout="constrained")
    FigureCanvasAgg(figure)
    names = ("rss_mb", "open_files", "wal_mb", "file_mb", "p99_ms")
    for name, axis in zip(names, figure.subplots(len(names), 1, sharex=True), strict=True):
        axis.plot([row["at_s"] for row in rows], [row[name] for row in rows], color="#1f6f8b")
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_ylim(bottom=0)
    figure.savefig(folder / "soak.svg", metadata={"Date": None})


def main() -> int:
    """Run the soak, print where its report is, and return 1 if something grew or failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval-s", type=float, default=5)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/soak"), help="new folder for file and report"
    )
    options = parser.parse_args()
    if options.folder.exists():
        parser.error(f"{options.folder} exists; give a new folder with --folder")
    options.folder.mkdir(parents=True)
    samples, failures = run(options.folder, options.minutes * 60, options.seed, options.interval_s)
    wrong = leaks(samples) + failures
    if samples:
        write_report(samples, wrong, options.folder)
    result = "; ".join(wrong) or "nothing grew beyond its bound"
    sys.stdout.write(f"seed {options.seed}: {result}; see {options.folder}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
