"""The probe: finds the capabilities of an endpoint with small calls on its own tables.

About a hundred calls on a few tables, which are removed at the end in any case. An answer is what the server did; what was denied,
blocked or cannot be seen with small calls is unknown.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from tavola.client.backend import Backend
from tavola.clock import Clock
from tavola.design.targets.capabilities import UNKNOWN, CapabilityAnswer, TargetFile, capabilities
from tavola.design.targets.finders import FINDERS, Finder
from tavola.design.targets.probing import ProbeRun, is_unsupported
from tavola.entropy import Entropy
from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import Fault

WAIT_S = 60.0  # for a table or index to become active
CLEAR_S = 120.0  # for everything to be removed again, however short the other waits are

Progress = Callable[[int, int], None]  # tests done, tests in all


class ProbeError(TavolaError):
    """An endpoint that cannot be probed, since it lets no table be created."""

    code = "probe-failed"


def probe(
    backend: Backend,
    title: str,
    *,
    clock: Clock,
    entropy: Entropy,
    wait_s: float = WAIT_S,
    clear_s: float = CLEAR_S,
    progress: Progress | None = None,
) -> tuple[TargetFile, tuple[str, ...]]:
    """Return the capabilities of an endpoint, and the tables and backups that could not be removed.

    `title` names the endpoint. Tests are independent: one that is denied, throttled or otherwise blocked leaves its capability unknown,
    with the reason. `clear_s` limits the time for removing everything.
    """
    run = ProbeRun(backend, f"tavola-probe-{entropy.bytes(4).hex()}", wait_s)
    answers: dict[str, CapabilityAnswer] = dict.fromkeys(capabilities(), UNKNOWN)
    try:
        try:
            table = run.create_table("main")
        except TavolaError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            raise ProbeError(f"cannot create a table at the endpoint: {error}") from error
        for done, (name, find) in enumerate(FINDERS.items(), 1):
            answers[name] = _find_answer(run, table, find)
            if progress is not None:
                progress(done, len(FINDERS))
    finally:
        left = run.clear(clear_s)
    today = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC).date()
    target = TargetFile("probed", title, today, f"{run.calls} calls of `tavola probe`", answers)
    return target, tuple(left)


def _find_answer(run: ProbeRun, table: str, find: Finder) -> CapabilityAnswer:
    try:
        return find(run, table)
    except Fault as fault:
        message = f"{fault.code}: {fault}"
        if is_unsupported(fault):
            return CapabilityAnswer("no", message[:200])
        return CapabilityAnswer("unknown", f"the test failed: {message}"[:200])
    except TavolaError as error:
        return CapabilityAnswer("unknown", f"the test failed: {error}"[:200])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return CapabilityAnswer("unknown", f"unexpected response: {type(error).__name__} {error}"[:200])
