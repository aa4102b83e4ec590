"""Recovery: opening what a crash left, and saying what is wrong with it.

I1: each acknowledged step is there. I2: no step is there in part. I4: indexes equal a rebuild. I5: the stream
tells of exactly the changes that are there. I7: a token sent again has no second effect.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tavola.engine import StoreError
from tests.durability.history import History, open_store, perform
from tests.durability.state import faults_in, read_state, settle, stream_faults


def faults_after(path: Path, history: History, acknowledged: int) -> list[str]:
    """Return what is wrong with a store of which this many steps were acknowledged when it crashed."""
    try:
        engine = open_store(path)
    except (StoreError, msgspec.DecodeError) as error:
        return [f"I10 a store that only crashed cannot be opened: {error!r}"]
    try:
        settle(engine)
        state = read_state(engine)
        allowed = history.states[acknowledged : acknowledged + 2]
        wrong = [f"I4 {fault}" for fault in faults_in(engine)]
        wrong += [f"I5 {fault}" for fault in stream_faults(engine)]
        if state not in allowed:
            found = history.states.index(state) if state in history.states else None
            return [*wrong, _describe_difference(history, acknowledged, found)]
        reached = acknowledged + allowed.index(state)
        sent = [
            place
            for place, step in enumerate(history.steps[: reached + 1])
            if step.token and place not in history.refused
        ]
        if sent:
            perform(engine, history.steps[sent[-1]])
            if read_state(engine) != history.states[max(reached, sent[-1] + 1)]:
                wrong.append(f"I7 the token of step {sent[-1]} had a second effect")
        return wrong
    except Exception as error:  # noqa: BLE001  # whatever comes out of reading is the finding
        return [f"I10 a store that only crashed cannot be read: {error!r}"]
    finally:
        engine.close()


def _describe_difference(history: History, acknowledged: int, found: int | None) -> str:
    if found is None:
        return f"I2 after {acknowledged} of {len(history.steps)} steps the state is that of no step"
    return f"I1 after {acknowledged} acknowledged steps the state is that of step {found}"
