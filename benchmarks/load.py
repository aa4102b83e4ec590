"""Load: filling a table, and driving a server as fast as it answers.

wrk drives it where wrk is to be had. A loader in this process takes its place where it is not, and
then the results say so: a fast server answers more than Python asks. It also times what is so slow
that wrk, which drops what is under way at the end, would count too little.
"""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Final

from benchmarks.template import Draw, Template, render_lua

_TIMEOUT_S: Final = 60  # for one answer
_APT_S: Final = 300


class LoadFailed(Exception):
    """A load that could not be carried through; str() says why."""


@dataclass(frozen=True, slots=True)
class Drive:
    """What one timed load saw."""

    requests: int
    seconds: float
    errors: int
    p50_ms: float
    p99_ms: float


Driver = Callable[[Template, Draw, int, int, int], Drive]  # request, numbers, port, connections, seconds


def find_wrk() -> tuple[str | None, str]:
    """wrk's path, installed from Debian's packages if need be and allowed; else None; and a word on it."""
    found = shutil.which("wrk")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ("apt-get", "install", "--yes", "--quiet", "wrk")
        try:
            subprocess.run(command, capture_output=True, timeout=_APT_S, check=False)
        except subprocess.TimeoutExpired:
            pass
        found = shutil.which("wrk")
    if found is None:
        return None, "own loader in Python: wrk is not installed, so fast servers show less than they can"
    said = subprocess.run((found, "-v"), capture_output=True, text=True, check=False).stdout.split()
    return found, f"wrk {said[1] if len(said) > 1 else ''}, one thread".replace(" ,", ",")


def wrk_driver(wrk: str) -> Driver:
    """Drive with wrk: one thread, keep-alive connections, a generated Lua script."""

    def drive(request: Template, draw: Draw, port: int, connections: int, seconds: int) -> Drive:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "load.lua"
            script.write_text(render_lua(request, draw))
            command = (wrk, "-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={_TIMEOUT_S}s")
            try:
                done = subprocess.run(
                    (*command, "-s", str(script), f"http://127.0.0.1:{port}/"),
                    capture_output=True,
                    text=True,
                    timeout=seconds + _TIMEOUT_S + 10,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise LoadFailed("wrk did not come to an end") from error
        return read_wrk(done.stdout, done.stderr)

    return drive


def read_wrk(out: str, err: str) -> Drive:
    """What wrk's last line told."""
    line = out.rpartition("@@")[2].strip() if "@@" in out else ""
    if not line:
        raise LoadFailed(f"wrk said: {(err or out).strip()[-200:]}")
    said = json.loads(line)
    return Drive(
        requests=said["requests"],
        seconds=said["duration_us"] / 1e6,
        errors=said["status"] + said["socket"] + said["timeout"],
        p50_ms=said["p50_us"] / 1e3,
        p99_ms=said["p99_us"] / 1e3,
    )


def is_slow(drive: Drive, connections: int) -> bool:
    """Too few answers to count by: wrk drops what is under way at the end, up to one a connection."""
    return drive.requests < 10 * connections


def own_driver(request: Template, draw: Draw, port: int, connections: int, seconds: int) -> Drive:
    """Drive from this process, by asyncio, and wait for the last answer: for slow servers, or without wrk."""
    requests = (request.render(draw, numbers).encode() for numbers in draw.numbers())
    tally = asyncio.run(_drive(requests, port, connections, time.perf_counter() + seconds))
    took = sorted(tally.took_s) or [0.0]
    centiles = quantiles(took, n=100) if len(took) > 1 else took * 99
    return Drive(len(tally.took_s), tally.seconds, tally.errors, centiles[49] * 1e3, centiles[98] * 1e3)


def fill(request: Template, draw: Draw, step: int, port: int, limit_s: float) -> float:
    """Send every item once; the seconds it took. LoadFailed where an answer is bad or time runs out."""
    requests = (request.render(draw, numbers).encode() for numbers in draw.in_order(step))
    return send_all(requests, -(-draw.span // step), port, limit_s)


def send_all(requests: Iterator[bytes], count: int, port: int, limit_s: float) -> float:
    """Send `count` prepared requests over a few connections, each once; the seconds it took."""
    tally = asyncio.run(_drive(requests, port, 8, time.perf_counter() + limit_s))
    if tally.errors:
        raise LoadFailed(f"{tally.errors} of {count} requests failed: {tally.first_error}")
    if len(tally.took_s) < count:
        raise LoadFailed(f"{len(tally.took_s)} of {count} requests answered in {limit_s:.0f} s")
    return tally.seconds


class _Tally:
    def __init__(self) -> None:
        self.took_s: list[float] = []  # of the answers that were a success
        self.errors = 0
        self.first_error = ""
        self.seconds = 0.0

    def note_error(self, words: str) -> None:
        self.errors += 1
        self.first_error = self.first_error or words


async def _drive(requests: Iterator[bytes], port: int, connections: int, deadline: float) -> _Tally:
    tally = _Tally()
    started = time.perf_counter()
    await asyncio.gather(*(_converse(requests, port, deadline, tally) for _ in range(connections)))
    tally.seconds = time.perf_counter() - started
    return tally


async def _converse(requests: Iterator[bytes], port: int, deadline: float, tally: _Tally) -> None:
    """One connection's requests, one after another, until they or the time run out."""
    writer: asyncio.StreamWriter | None = None
    try:
        for request in requests:
            began = time.perf_counter()
            if began >= deadline or tally.errors > 100:
                break
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    if writer is None:
                        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
                    writer.write(request)
                    status, stays, body = await read_answer(reader)
            except (OSError, EOFError, ValueError, TimeoutError) as error:
                tally.note_error(f"{type(error).__name__} {error}".strip())
                stays = False
            else:
                if status == 200 and b'"UnprocessedItems":{"' not in body:
                    tally.took_s.append(time.perf_counter() - began)
                else:
                    tally.note_error(f"status {status}: {body[:120].decode(errors='replace')}")
            if not stays and writer is not None:
                writer.close()
                writer = None
    finally:
        if writer is not None:
            writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    """Status, whether the connection stays open, and the body; by length, by chunks or by its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    version, status = first.split(" ")[:2]
    headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    stays = headers.get("connection", "").lower() != "close" and version != "HTTP/1.0"
    if "content-length" in headers:
        return int(status), stays, await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return int(status), False, await reader.read()
    pieces: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return int(status), stays, b"".join(pieces)
