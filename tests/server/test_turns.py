"""Heavy clients share a budget of each turn, and the one that was served longest ago is next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from tavola.server.turns import TurnQueue


class Loop:
    """Turns, made by hand."""

    def __init__(self) -> None:
        self.due: list[Callable[[], Any]] = []

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class Client:
    """A client whose requests each cost the same."""

    def __init__(self, queue: TurnQueue, name: str, served: list[str], cost_s: float = 1.0) -> None:
        self.queue = queue
        self.name = name
        self.served = served
        self.cost_s = cost_s
        self.is_heavy = cost_s > 0
        self.requests = 1

    def process_waiting(self) -> None:
        self.served.append(self.name)
        self.requests -= 1
        if self.cost_s:
            self.queue.add_cost(self.cost_s)
        if self.requests:
            self.queue.wait(self, 100.0)


def _queue(budget_s: float) -> tuple[Loop, TurnQueue]:
    loop = Loop()
    return loop, TurnQueue(cast(asyncio.AbstractEventLoop, loop), budget_s)


def test_a_turn_ends_when_its_budget_is_spent() -> None:
    """Of five heavy clients, two fit into the budget of each turn; nobody is forgotten."""
    loop, queue = _queue(2.0)
    served: list[str] = []
    for name in "abcde":
        queue.wait(Client(queue, name, served), 1.0)

    counts = []
    while loop.due:
        loop.turn()
        counts.append(len(served))

    assert counts[:3] == [2, 4, 5]
    assert served == list("abcde")


def test_the_client_that_was_served_longest_ago_is_next() -> None:
    """A client that has waited overtakes those that were served since."""
    loop, queue = _queue(1.0)
    served: list[str] = []
    greedy = [Client(queue, f"greedy {number}", served) for number in range(3)]
    for number, client in enumerate(greedy):
        client.requests = 5
        queue.wait(client, 10.0 + number)
    queue.wait(Client(queue, "patient", served), 2.0)

    loop.turn()

    assert served == ["patient"]


def test_what_was_spent_counts_for_one_turn() -> None:
    """Requests of heavy clients have to wait from the moment the budget is spent until the next turn."""
    loop, queue = _queue(1.0)

    queue.add_cost(0.6)
    states = [queue.is_spent]
    queue.add_cost(0.6)
    states.append(queue.is_spent)
    loop.turn()
    states.append(queue.is_spent)

    assert states == [False, True, False]


def test_new_requests_of_heavy_clients_come_after_those_that_wait() -> None:
    """While some wait, the budget of the turn counts as spent for requests that are read in it."""
    loop, queue = _queue(1.0)
    served: list[str] = []
    for name in "ab":
        queue.wait(Client(queue, name, served), 1.0)

    loop.turn()

    assert served == ["a"]
    assert queue.is_spent


def test_light_clients_continue_in_every_turn() -> None:
    """A pipeline of cheap requests needs no budget, and goes on once in each turn."""
    loop, queue = _queue(1.0)
    served: list[str] = []
    for name in "ab":
        queue.wait(Client(queue, name, served), 1.0)
    light = Client(queue, "light", served, cost_s=0.0)
    light.requests = 3
    queue.wait(light, 2.0)

    loop.turn()

    assert served == ["a", "light"]
    loop.turn()
    assert served == ["a", "light", "b", "light"]
