"""Launch: a serving process restarts itself with huge pages of memory.

A table of a million items spans gigabytes, and address translation is a large part of the cost of a read there. glibc can
request pages of 2 MB, but only if its tunables say so before the process starts. So `tavola serve` and `tavola demo` set
them and execute themselves again, before anything else is loaded; that takes about 20 ms. Tunables that are already set
are kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

_VARIABLE = "GLIBC_TUNABLES"
_TUNABLES = "glibc.malloc.hugetlb=1"
_GLIBC_SINCE = (2, 35)
_KERNEL_SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def run() -> NoReturn:
    """Run the command line, after a restart if that gives the process huge pages."""
    if (
        wants_large_pages(sys.argv[1:], os.environ)
        and glibc_version() >= _GLIBC_SINCE
        and _are_huge_pages_offered()
    ):
        environment = {**os.environ, _VARIABLE: _TUNABLES}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    from tavola.cli.main import run as run_command

    run_command()


def wants_large_pages(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether the command serves and glibc's tunables are not set yet."""
    return (
        arguments[:1] in (["serve"], ["demo"]) and "--help" not in arguments and _VARIABLE not in environment
    )


def glibc_version() -> tuple[int, ...]:
    """Return the version of glibc in this process; empty with another C library."""
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION") or ""
        return tuple(map(int, version.split()[1].split(".")))
    except (AttributeError, ValueError, IndexError, OSError):
        return ()


def _are_huge_pages_offered() -> bool:
    try:
        with open(_KERNEL_SETTING, encoding="ascii") as setting:
            return "[never]" not in setting.read()
    except OSError:
        return False
