"""Load: filling a table, and driving a server as fast as it answers.

wrk drives it where wrk is to be had. A loader in this process takes its place where it is not, and
then the results say so: a fast server answers more than Python asks. It also times what is so slow
that wrk, which drops what is under way at the end, would count too little.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Final

from benchmarks.template import Draw, Template, render_lua

_TIMEOUT_S: Final = 60  # for one answer
_APT_S: Final = 300
_BUFFER_BYTES: Final = 1 << 23  # an answer is 1 MB of items at most, in JSON under twice that
_ERRORS_MAX: Final = 100  # a loader gives up then


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
    first_error: str = ""


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
        first_error=f"{said['status']} bad statuses, {said['socket']} of the socket, {said['timeout']} timeouts",
        p50_ms=said["p50_us"] / 1e3,
        p99_ms=said["p99_us"] / 1e3,
    )


def too_few(answers: float, connections: int) -> bool:
    """Too few to count by for wrk, which at the end drops what is under way, up to one a connection."""
    return answers < 10 * connections


def own_driver(request: Template, draw: Draw, port: int, connections: int, seconds: int) -> Drive:
    """Drive from this process, and wait for the last answer: for slow servers, or where there is no wrk."""
    requests = (request.render(draw, numbers).encode() for numbers in draw.numbers())
    tally = _drive(requests, port, connections, time.perf_counter() + seconds)
    took = sorted(tally.took_s) or [0.0]
    centiles = quantiles(took, n=100) if len(took) > 1 else took * 99
    middle_ms, high_ms = centiles[49] * 1e3, centiles[98] * 1e3
    return Drive(len(tally.took_s), tally.seconds, tally.errors, middle_ms, high_ms, tally.first_error)


def fill(request: Template, draw: Draw, step: int, port: int, limit_s: float) -> float:
    """Send every item once; the seconds it took. LoadFailed where an answer is bad or time runs out."""
    requests = (request.render(draw, numbers).encode() for numbers in draw.in_order(step))
    return send_all(requests, -(-draw.span // step), port, limit_s)


def send_all(requests: Iterator[bytes], count: int, port: int, limit_s: float) -> float:
    """Send `count` prepared requests over a few connections, each once; the seconds it took."""
    tally = _drive(requests, port, 8, time.perf_counter() + limit_s)
    if tally.errors:
        raise LoadFailed(f"{tally.errors} of {count} requests failed: {tally.first_error}")
    if len(tally.took_s) < count:
        raise LoadFailed(f"{len(tally.took_s)} of {count} requests answered in {limit_s:.0f} s")
    return tally.seconds


class _Tally:
    """What the connections of one drive saw together."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._turn = threading.Lock()
        self.took_s: list[float] = []  # of the answers that were a success
        self.errors = 0
        self.first_error = ""
        self.seconds = 0.0

    def next_request(self) -> bytes | None:
        with self._turn:
            return next(self._requests, None)

    def note_error(self, words: str) -> None:
        with self._turn:
            self.errors += 1
            self.first_error = self.first_error or words


def _drive(requests: Iterator[bytes], port: int, connections: int, deadline: float) -> _Tally:
    """A thread a connection: they wait in the kernel, and large answers are copied once."""
    tally = _Tally(requests)
    threads = [
        threading.Thread(target=_converse, args=(port, deadline, tally), daemon=True)
        for _ in range(connections)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.seconds = time.perf_counter() - started
    return tally


def _converse(port: int, deadline: float, tally: _Tally) -> None:
    """One connection's requests, one after another, until they or the time run out."""
    wire: socket.socket | None = None
    buffer = bytearray(_BUFFER_BYTES)
    while time.perf_counter() < deadline and tally.errors <= _ERRORS_MAX:
        request = tally.next_request()
        if request is None:
            break
        began = time.perf_counter()
        try:
            if wire is None:
                wire = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire.sendall(request)
            status, stays, body = read_answer(wire, buffer)
        except (OSError, ValueError) as error:
            tally.note_error(f"{type(error).__name__} {error}".strip())
            stays = False
        else:
            if status == 200 and b'"UnprocessedItems":{"' not in body[:200]:
                tally.took_s.append(time.perf_counter() - began)
            else:
                tally.note_error(f"status {status}: {body[:120].decode(errors='replace')}")
        if not stays and wire is not None:
            wire.close()
            wire = None
    if wire is not None:
        wire.close()


def read_answer(wire: socket.socket, buffer: bytearray) -> tuple[int, bool, bytes]:
    """Status, whether the connection stays open, and how the body begins.

    The body ends by its length, by an empty chunk or with the connection; it is read to its end into
    `buffer`, which is used anew for each answer. A chunked body is left in its chunks.
    """
    view = memoryview(buffer)
    filled = 0
    while (head_end := buffer.find(b"\r\n\r\n", 0, filled)) < 0:
        filled += _receive(wire, view[filled:])
    first, *lines = bytes(view[:head_end]).decode("latin-1").split("\r\n")
    version, status = first.split(" ")[:2]
    headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    stays = headers.get("connection", "").lower() != "close" and version != "HTTP/1.0"
    start = head_end + 4
    if "content-length" in headers:
        end = start + int(headers["content-length"])
        while filled < end:
            filled += _receive(wire, view[filled:])
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        while buffer[filled - 5 : filled] != b"0\r\n\r\n":
            filled += _receive(wire, view[filled:])
    else:
        stays = False
        while count := wire.recv_into(view[filled:]):
            filled += count
    return int(status), stays, bytes(view[start : min(filled, start + 400)])


def _receive(wire: socket.socket, room: memoryview) -> int:
    count = wire.recv_into(room)
    if not count:
        raise ConnectionError("the server closed the connection in an answer, or the answer is too large")
    return count
