"""Serial: whether a history of concurrent transactions could have happened one after another, in real time.

Each transaction appends its own number to lists and reads lists whole. A list that is read shows the order of
the appends to it; from these orders follow the edges of a graph (who came before whom), and real time adds more.
A cycle means that no order of the transactions explains what was seen. The edges and their names are those of
Adya and of Elle; the code is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Transaction:
    """What one transaction did, and between which ticks of one clock it was asked and answered."""

    number: int
    appends: tuple[str, ...] = ()  # the lists that it added its number to
    reads: dict[str, tuple[int, ...]] = field(default_factory=dict)
    asked: int = 0
    answered: int | None = None  # None: nobody knows whether it was done
    refused: bool = False


def violations(history: Sequence[Transaction]) -> list[str]:
    """Return why a history is not strictly serializable; nothing if it is."""
    found: list[str] = []
    orders = _orders(history, found)
    by_number = {each.number: each for each in history}
    for key, order in orders.items():
        for number in order:
            writer = by_number.get(number)
            if writer is None or key not in writer.appends:
                found.append(f"{key} holds {number}, which nobody appended")
            elif writer.refused:
                found.append(f"aborted read: {key} holds {number}, which was refused")
        if len(set(order)) != len(order):
            found.append(f"{key} holds an append twice: {order}")
    if found:
        return found
    cycle = _cycle(len(history), _edges(history, orders))
    if cycle:
        named = " → ".join(str(history[place].number) for place in cycle if place < len(history))
        found.append(f"a cycle: {named}")
    return found


def lost(history: Sequence[Transaction], final: dict[str, tuple[int, ...]]) -> list[str]:
    """Return the acknowledged appends that are not in the lists at the end."""
    return [
        f"lost update: {each.number} was acknowledged and is not in {key}"
        for each in history
        if each.answered is not None and not each.refused
        for key in each.appends
        if each.number not in final.get(key, ())
    ]


def _orders(history: Sequence[Transaction], found: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the longest read of each list; every other read must be a beginning of it."""
    orders: dict[str, tuple[int, ...]] = {}
    for each in history:
        for key, seen in each.reads.items():
            if len(seen) > len(orders.get(key, ())):
                orders[key] = seen
    for each in history:
        for key, seen in each.reads.items():
            if orders.get(key, ())[: len(seen)] != seen:
                found.append(f"incompatible order: {each.number} read {seen} of {key}, others {orders[key]}")
    return orders


def _edges(history: Sequence[Transaction], orders: dict[str, tuple[int, ...]]) -> Iterable[tuple[int, int]]:
    place = {each.number: at for at, each in enumerate(history)}
    # What nobody saw in a list was appended after everything that somebody saw, if it was at all.
    unseen: dict[str, list[int]] = {}
    for at, each in enumerate(history):
        for key in each.appends:
            if not each.refused and each.number not in orders.get(key, ()):
                unseen.setdefault(key, []).append(at)
    for key, order in orders.items():
        yield from ((place[order[-1]], writer) for writer in unseen.get(key, ()))
        for first, second in pairwise(order):
            yield place[first], place[second]
    for at, each in enumerate(history):
        for key, seen in each.reads.items():
            order = orders.get(key, ())
            if seen:
                yield place[seen[-1]], at
            if len(seen) < len(order):
                yield at, place[order[len(seen)]]
            else:
                yield from ((at, writer) for writer in unseen.get(key, ()))
    yield from _time_edges(history)


def _time_edges(history: Sequence[Transaction]) -> Iterable[tuple[int, int]]:
    """Order whatever was answered before something else was asked, through one node for each answer."""
    moments: list[tuple[int, int, int]] = []
    for at, each in enumerate(history):
        moments.append((each.asked, 0, at))
        if each.answered is not None:
            moments.append((each.answered, 1, at))
    barrier = len(history) - 1
    for _, is_answer, at in sorted(moments):
        if is_answer:
            if barrier >= len(history):
                yield barrier, barrier + 1
            barrier += 1
            yield at, barrier
        elif barrier >= len(history):
            yield barrier, at


def _cycle(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the nodes of a cycle in their order; none if the graph has none."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    waiting: dict[int, int] = dict.fromkeys(range(count), 0)
    for first, second in edges:
        if first != second:
            after.setdefault(first, []).append(second)
            before.setdefault(second, []).append(first)
            waiting.setdefault(first, 0)
            waiting[second] = waiting.get(second, 0) + 1
    free = [node for node, number in waiting.items() if not number]
    while free:
        node = free.pop()
        del waiting[node]
        for following in after.get(node, ()):
            waiting[following] -= 1
            if not waiting[following]:
                free.append(following)
    if not waiting:
        return []
    # Whatever is left has somebody before it that is left too: going back must come round.
    path = [next(iter(waiting))]
    while True:
        previous = next(node for node in before[path[-1]] if node in waiting)
        if previous in path:
            return path[path.index(previous) :][::-1]
        path.append(previous)
