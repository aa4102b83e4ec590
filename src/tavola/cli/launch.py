"""Launch: a process that serves starts itself anew with large pages of memory.

A table of a million items is spread over gigabytes, and much of what a read costs there is finding the
memory it lies in. glibc can ask the system for pages of 2 MB, but only if its tunables say so before the
process starts. So `tavola serve` and `tavola demo` set them and start again in their own place, some 10 ms, before anything
else is loaded. Whoever has set the tunables keeps them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

_VARIABLE = "GLIBC_TUNABLES"
_TUNABLES = "glibc.malloc.hugetlb=1"
_GLIBC_SINCE = (2, 35)
_SYSTEM_SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def run() -> NoReturn:
    """Run the command line of this process, started anew if that gives it large pages."""
    if wants_large_pages(sys.argv[1:], os.environ) and glibc_version() >= _GLIBC_SINCE and _are_offered():
        environment = {**os.environ, _VARIABLE: _TUNABLES}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    from tavola.cli.main import run as run_command

    run_command()


def wants_large_pages(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Tell whether a command is one that serves, and nobody has chosen glibc's tunables yet."""
    return (
        arguments[:1] in (["serve"], ["demo"]) and "--help" not in arguments and _VARIABLE not in environment
    )


def glibc_version() -> tuple[int, ...]:
    """Return the version of glibc in this process; nothing where there is another library."""
    try:
        told = os.confstr("CS_GNU_LIBC_VERSION") or ""
        return tuple(map(int, told.split()[1].split(".")))
    except (AttributeError, ValueError, IndexError, OSError):
        return ()


def _are_offered() -> bool:
    try:
        with open(_SYSTEM_SETTING, encoding="ascii") as setting:
            return "[never]" not in setting.read()
    except OSError:
        return False
