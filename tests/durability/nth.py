"""The n-th call fails: a scenario is run with its first write failing, its second, its third …

until a run passes untouched. Once, and from then on always; as a broken disk, as a full one, with half of a
write done. Each run says what is wrong with what the engine then reported, and with what comes back from the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import apsw
import msgspec

from tavola.engine import Engine, StoreError
from tavola.protocol.faults import Fault, InternalServerFault
from tests.durability import history as work
from tests.durability.disk import Disk, Plan
from tests.durability.history import History, Step, Unavailable, history_of, open_store, perform
from tests.durability.power import NAME, checkpoint_every, scratch
from tests.durability.recovery import faults_after
from tests.durability.state import read_state

_PROBE = ("PutItem", {"TableName": work.TABLE, "Item": {"pk": {"S": "probe"}, "sk": {"N": "0"}}})


@dataclass(frozen=True, slots=True)
class Scenario:
    """A history that is opened, done and closed; `reopened` closes and opens it half way."""

    name: str
    history: History
    checkpoint_pages: int | None = None
    reopened: bool = False
    cache_mb: int = 1  # 0: so little that a write must read from the disk


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run with one planned failure came to."""

    plan: Plan
    hit: bool  # the planned call was reached
    faults: tuple[str, ...]


def scenarios() -> list[Scenario]:
    """Return the scenarios: puts, a transaction, an index filled, groups, checkpoints, closing."""
    random = Random(7)
    made = Step((work.create_table(),))

    def puts(count: int, padding: int | None = None) -> list[Step]:
        return [Step((work.put(random, number, padding),)) for number in range(count)]

    writes = [Step((work.update(random),)), Step((work.delete(random),)), Step((work.batch(random, 3),))]
    transactions = [Step((work.transact(random, number),)) for number in range(2)]
    groups = [Step(tuple(work.put(random, i * 10 + j) for j in range(3))) for i in range(2)]
    indexed = [*puts(5), Step((work.add_index(),)), *puts(1), Step((work.drop_index(),))]
    mixed = [*puts(3), *transactions, *groups]
    return [
        Scenario("puts", history_of([made, *puts(3), *writes])),
        Scenario("transactions", history_of([made, *puts(1), *transactions])),
        Scenario("index", history_of([made, *indexed])),
        Scenario("groups", history_of([made, *groups])),
        Scenario("checkpoints", history_of([made, *puts(4, 5000), *groups]), checkpoint_pages=6),
        Scenario("reopened", history_of([made, *mixed]), reopened=True),
        Scenario("cold", history_of([made, *puts(4, 20_000), *transactions[:1], *writes[:1]]), cache_mb=0),
    ]


def plans(nth: int) -> list[Plan]:
    """Return every way in which the n-th call of a kind may fail."""
    return [
        Plan("write", nth),
        Plan("write", nth, sticky=True),
        Plan("write", nth, short=True),
        Plan("write", nth, full=True),
        Plan("write", nth, full=True, sticky=True),
        Plan("write", nth, full=True, short=True),
        Plan("sync", nth),
        Plan("sync", nth, sticky=True),
        Plan("truncate", nth),
        Plan("truncate", nth, sticky=True),
        Plan("read", nth),
        Plan("read", nth, sticky=True),
    ]


def run_all(disk: Disk, scenario: Scenario, *, stride: int = 1, first: int = 1) -> Iterator[Outcome]:
    """Run a scenario with the n-th call failing for each n, until each kind of failure finds no call left."""
    alive = {replace(plan, nth=0) for plan in plans(0)}
    nth = first
    while alive:
        for plan in plans(nth):
            kind = replace(plan, nth=0)
            if kind in alive:
                outcome = run(disk, scenario, plan)
                if not outcome.hit:
                    alive.discard(kind)
                yield outcome
        nth += stride


def run(disk: Disk, scenario: Scenario, plan: Plan) -> Outcome:
    """Do a scenario with one planned failure, then open what is left of it on a sound disk."""
    pages = scenario.checkpoint_pages
    with scratch() as folder, checkpoint_every(pages) if pages else nullcontext():
        path = folder / NAME
        faults: list[str] = []
        disk.arm(plan)
        acknowledged = _live(disk, scenario, plan, path, faults)
        hit = disk.failed > 0
        disk.arm(None)
        if not hit and acknowledged != len(scenario.history.steps):
            faults.append(f"untouched, yet only {acknowledged} steps were acknowledged")
        faults += faults_after(path, scenario.history, acknowledged)
    return Outcome(plan, hit, tuple(f"{scenario.name}: {plan}: {fault}" for fault in faults))


def _live(disk: Disk, scenario: Scenario, plan: Plan, path: Path, faults: list[str]) -> int:
    """Open, do the steps and close; return how many were acknowledged until the engine failed."""
    history = scenario.history
    acknowledged = 0
    try:
        engine = open_store(path, cache_mb=scenario.cache_mb)
    except StoreError:
        return acknowledged  # it could not even be opened, and said so
    except apsw.Error as error:
        faults.append(f"opening raised {error!r}, which is no error of the store's")
        return acknowledged
    try:
        for place, step in enumerate(history.steps):
            if scenario.reopened and place == len(history.steps) // 2:
                try:
                    engine.close()
                    engine = open_store(path, cache_mb=scenario.cache_mb)
                except StoreError:
                    return acknowledged
                except apsw.Error as error:
                    faults.append(f"opening again raised {error!r}, which is no error of the store's")
                    return acknowledged
            try:
                perform(engine, step)
            except Unavailable as raised:
                if _after_failure(disk, engine, history, acknowledged, plan, str(raised), faults):
                    return acknowledged
                try:
                    if perform(engine, step) == (place in history.refused):
                        faults.append(f"step {place} has another answer when it is tried again")
                except Unavailable as again:
                    faults.append(f"step {place} fails again although there is room: {again}")
                    return acknowledged
            except (StoreError, Fault, AssertionError) as error:
                faults.append(f"a step came to what it should not: {error!r}")
                _check_reads(engine, history, acknowledged, plan, faults)
                return acknowledged
            acknowledged += 1
        return acknowledged
    finally:
        try:
            engine.close()
        except StoreError:
            pass  # it says so, and the log stays for the next opening


def _after_failure(
    disk: Disk,
    engine: Engine,
    history: History,
    acknowledged: int,
    plan: Plan,
    result: str,
    faults: list[str],
) -> bool:
    """Note what is wrong with an engine that has just failed; tell whether that was its end."""
    if not disk.failed:
        faults.append(f"a step failed before any call did: {result}")
    if not result:
        faults.append("the refusal says nothing")
    _check_reads(engine, history, acknowledged, plan, faults)
    if plan.full:
        # Space is freed: the next write must work, and the failed step have left nothing.
        disk.plan = None
        if engine.write_failure is not None:
            faults.append(f"a full disk was taken for a broken one: {engine.write_failure}")
            return True
        return False
    if plan.kind in ("sync", "write", "truncate"):
        if engine.write_failure is None:
            faults.append(f"after a failed {plan.kind} the engine says that all is well")
        else:
            _check_refusal(engine, faults)
    return True


def _check_reads(engine: Engine, history: History, acknowledged: int, plan: Plan, faults: list[str]) -> None:
    try:
        state = read_state(engine)
    except InternalServerFault as fault:
        if plan.kind != "read" or not plan.sticky:
            faults.append(f"reads are not answered any more: {fault}")
    except (Fault, StoreError, msgspec.DecodeError) as error:
        faults.append(f"a read raised {error!r}")
    else:
        if not state.agrees(history.states[acknowledged]):
            seen = [place for place, each in enumerate(history.states) if state.agrees(each)]
            faults.append(f"after {acknowledged} steps and a failure, reads show state {seen}")


def _check_refusal(engine: Engine, faults: list[str]) -> None:
    try:
        engine.call(*_PROBE)
    except InternalServerFault as fault:
        if str(fault) != engine.write_failure:
            faults.append(f"the refusal is reported as {fault}")
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            faults.append(f"a write after the failure was refused as {fault!r}")
    else:
        faults.append("a write after the failure was acknowledged")
