"""Probe: what a server can do, found out by small calls on tables of the probe's own.

About a hundred calls on a few tables that are made for it and taken away at the end, whatever happens. Every capability
gets an answer from what the server did; what the probe was denied or hindered to find out, or what small calls cannot
show, is unknown.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from tavola.client.backend import Backend
from tavola.clock import Clock
from tavola.design.targets.capabilities import UNKNOWN, Answer, TargetFile, capabilities
from tavola.design.targets.finders import FINDERS, Finder
from tavola.design.targets.probing import ProbeRun, is_unsupported
from tavola.entropy import Entropy
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault

WAIT_S = 60.0  # for a table or index to become active
CLEAR_S = 120.0  # for everything to be removed again, however short the other waits are

Told = Callable[[int, int], None]


class ProbeFailed(TavolaError):
    """A server that could not be probed at all: no table can be made there."""


def probe(
    backend: Backend,
    title: str,
    *,
    clock: Clock,
    entropy: Entropy,
    wait_s: float = WAIT_S,
    clear_s: float = CLEAR_S,
    progress: Told | None = None,
) -> tuple[TargetFile, tuple[str, ...]]:
    """Return what a server can do, and the tables and backups that could not be removed again.

    `title` is what the server is called. Each finding stands alone: one that is denied, throttled or hindered otherwise
    leaves its capability unknown, with what broke. `clear_s` is the patience for removing everything.
    """
    run = ProbeRun(backend, f"tavola-probe-{entropy.bytes(4).hex()}", wait_s)
    answers: dict[str, Answer] = dict.fromkeys(capabilities(), UNKNOWN)
    try:
        try:
            table = run.make("main")
        except TavolaError as error:
            raise ProbeFailed(f"no table can be made there, so nothing can be found out: {error}") from error
        for done, (name, find) in enumerate(FINDERS.items(), 1):
            answers[name] = _found(run, table, find)
            if progress is not None:
                progress(done, len(FINDERS))
    finally:
        left = run.clear(clear_s)
    today = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC).date()
    target = TargetFile("probed", title, today, f"{run.calls} calls of `tavola probe`", answers)
    return target, tuple(left)


def _found(run: ProbeRun, table: str, find: Finder) -> Answer:
    try:
        return find(run, table)
    except Fault as fault:
        message = f"{fault.code}: {fault}"
        if is_unsupported(fault):
            return Answer("no", message[:200])
        return Answer("unknown", f"it could not be found out: {message}"[:200])
    except TavolaError as error:
        return Answer("unknown", f"it could not be found out: {error}"[:200])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return Answer("unknown", f"its answer had another form: {type(error).__name__} {error}"[:200])
