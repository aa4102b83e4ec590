"""Servers under test: started, watched through /proc, and ended, each by its own process id."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final

from benchmarks.wire import Client

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STOP_S: Final = 10.0
_POLL_S: Final = 0.004  # asking more often would slow the start that is timed


class ServerFailed(Exception):
    """A server that did not start, or went away; str() says what was seen."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # where it is started; None: in its data folder


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A running server. `stop` ends it and takes its data away."""

    def __init__(self, launch: Launch, port: int, data: Path, log: Path) -> None:
        self.port = port
        self.data = data
        self._log = log
        self._log_file = log.open("wb")
        self.started_at = time.perf_counter()
        self._process = subprocess.Popen(
            launch.command,
            env={**os.environ, **launch.environment},
            cwd=launch.folder or data,
            stdin=subprocess.DEVNULL,
            stdout=self._log_file,
            stderr=subprocess.STDOUT,
        )
        self.client = Client(port)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def await_answer(self, timeout_s: float) -> float:
        """Seconds from the process's start to its first answer."""
        give_up = self.started_at + timeout_s
        while time.perf_counter() < give_up:
            if not self.alive:
                raise ServerFailed(f"ended at once with code {self._process.returncode}: {self.last_words()}")
            try:
                answer = self.client.call("ListTables", {})
            except (OSError, HTTPException):
                time.sleep(_POLL_S)
                continue
            if answer.status == 200:
                return time.perf_counter() - self.started_at
            time.sleep(_POLL_S)  # up, but not ready: some answer with an error at first
        raise ServerFailed(f"no answer within {timeout_s:.0f} s: {self.last_words()}")

    def last_words(self) -> str:
        """The last line of the server's log, for a message."""
        lines = self._log.read_bytes().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "its log is empty"

    def resident_mb(self) -> float:
        """Memory held now, in MB of a million bytes, children included."""
        return sum(_resident_bytes(pid) for pid in self._pids()) / 1e6

    def cpu_s(self) -> float:
        """Processor time used so far, user and system, all threads, children included."""
        return sum(_cpu_ticks(pid) for pid in self._pids()) / _TICKS_PER_S

    def disk_mb(self) -> float:
        """What the data folder holds, in MB of a million bytes."""
        total = 0
        for path in self.data.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:  # a store may drop a file while we count
                continue
        return total / 1e6

    def settle(self, timeout_s: float) -> bool:
        """Wait until the server rests, for work left over would slow the next engine; False: it did not."""
        give_up = time.monotonic() + timeout_s
        before, quiet = self.cpu_s(), 0
        while quiet < 2 and time.monotonic() < give_up:
            time.sleep(0.04)
            now = self.cpu_s()
            quiet = quiet + 1 if now - before <= 1 / _TICKS_PER_S else 0
            before = now
        return quiet == 2

    def stop(self) -> None:
        """End the process, kindly and then not, and remove its data."""
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_STOP_S)
        self._log_file.close()
        shutil.rmtree(self.data, ignore_errors=True)

    def _pids(self) -> list[int]:
        return [self._process.pid, *_descendants(self._process.pid)]


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in children.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in direct:
            found += [child, *_descendants(child)]
    return found


def _cpu_ticks(pid: int) -> int:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(after_name[11]) + int(after_name[12])


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0
