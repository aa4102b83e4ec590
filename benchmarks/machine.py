"""The machine of a run: what a reader must know to weigh its numbers."""

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path


def describe() -> str:
    """Processor, memory, system and Python, in a line."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{len(os.sched_getaffinity(0))} cores of {_processor()}, {memory_gb:.0f} GB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def busy_s() -> float:
    """Processor time that everything on this machine has taken, and that a hypervisor has kept from it."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_s() -> float:
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def sync_us(folder: Path, tries: int = 60) -> float:
    """What appending 4 KB and syncing it costs on the disk that the stores lie on."""
    folder.mkdir(parents=True, exist_ok=True)
    took: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(tries):
            began = time.perf_counter()
            file.write(os.urandom(4096))
            file.flush()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6
