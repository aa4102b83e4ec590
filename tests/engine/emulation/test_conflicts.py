"""Conflicts: what is held is let go in time, and is never kept for longer than it matters."""

from __future__ import annotations

from tavola.clock import ManualClock
from tavola.engine.emulation.chance import SeededChance
from tavola.engine.emulation.conflicts import Conflicts, HeldUntil
from tavola.protocol.arns import Scope

HERE = Scope("000000000000", "us-east-1")


def test_an_item_held_twice_is_held_until_the_later_end() -> None:
    """A second hold never ends the first one early."""
    held = HeldUntil()
    held.hold("a", 0.0, 10.0)
    held.hold("a", 1.0, 2.0)

    assert held.holds("a", 9.0)
    assert not held.holds("a", 10.0)


def test_what_is_over_is_forgotten() -> None:
    """Holding goes on for ever in little room: what is over goes when something new comes."""
    held = HeldUntil()
    for number in range(10_000):
        held.hold(number, number * 1.0, number + 5.0)

    assert len(held) <= 6


def test_holds_are_of_the_stated_length_at_most() -> None:
    """Whatever chance says, an item is free after the longest time, and a token is its owner's alone."""
    clock = ManualClock()
    conflicts = Conflicts(clock, 2.0, SeededChance("conflicts:1"))
    lengths = []
    for number in range(200):
        conflicts.hold_transaction([(1, b"%d" % number)], HERE, f"t{number}")
        held_s = 0.0
        while conflicts.blocks_write((1, b"%d" % number)):
            clock.advance(1 / 16)
            held_s += 1 / 16
        lengths.append(held_s)
    conflicts.hold_transaction([], HERE, "mine")

    assert max(lengths) <= 2.0
    assert 0.8 < sum(lengths) / len(lengths) < 1.2
    assert conflicts.in_progress(HERE, "mine")
    assert not conflicts.in_progress(Scope("111111111111", "us-east-1"), "mine")
