"""Interleaving: two or more verbs whose calls are made in every order that two programs could make them in.

A verb is a generator of calls, so a test can stop it between two of them. That shows a race each time it runs, and not
once in a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tavola.client.connection import Connection
from tavola.client.effects import RunBlocking, Sleep
from tavola.patterns.recipe import PatternProgram


class Running:
    """One verb under way."""

    def __init__(self, steps: PatternProgram[Any]) -> None:
        self._steps = steps
        self._next: Any = None
        self.done = False
        self.outcome: Any = None  # what it came to: a result, or the error it ended with
        self._resume(lambda: next(steps))

    def step(self, db: Connection) -> None:
        """Make the next call and go on to the one after it."""
        wanted = self._next
        try:
            answer = None
            if isinstance(wanted, RunBlocking):
                answer = wanted.function()
            elif not isinstance(wanted, Sleep):
                answer = wanted(db)
        except Exception as error:  # noqa: BLE001 - it is the verb's
            thrown = error
            self._resume(lambda: self._steps.throw(thrown))
        else:
            self._resume(lambda: self._steps.send(answer))

    def _resume(self, go: Callable[[], Any]) -> None:
        try:
            self._next = go()
        except StopIteration as stopped:
            self.done, self.outcome = True, stopped.value
        except Exception as error:  # noqa: BLE001 - it is the verb's
            self.done, self.outcome = True, error


def interleavings(
    make: Callable[[], tuple[Connection, Sequence[PatternProgram[Any]]]], most: int = 400
) -> Iterator[list[Any]]:
    """Give the outcomes of each order, from a fresh start every time; `most` orders, in a fixed sequence."""
    prefix: list[int] = []
    for _ in range(most):
        db, verbs = make()
        running = [Running(verb) for verb in verbs]
        choices: list[list[int]] = []
        at = 0
        while alive := [number for number, each in enumerate(running) if not each.done]:
            chosen = prefix[at] if at < len(prefix) else 0
            choices.append(alive)
            if at >= len(prefix):
                prefix.append(0)
            running[alive[chosen]].step(db)
            at += 1
            if at > 200:
                raise AssertionError("a verb does not come to an end")
        yield [each.outcome for each in running]
        del prefix[at:]
        while prefix and prefix[-1] + 1 >= len(choices[len(prefix) - 1]):
            prefix.pop()
        if not prefix:
            return
        prefix[-1] += 1
