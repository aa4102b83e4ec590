"""Batches: members that come back unprocessed although nothing was wrong with them.

A batch on AWS is not a unit: any of its members may be left to be asked for again, and code that does not ask
again loses them. One member at least is always done, so whoever asks again comes to an end.
"""

from __future__ import annotations

from tavola.engine.emulation.chance import SeededChance


class UnprocessedMembers:
    """Chooses the members of batches that are left undone."""

    def __init__(self, share: float, chance: SeededChance) -> None:
        self._share = share
        self._chance = chance

    def choose_unprocessed(self, members: int) -> frozenset[int]:
        """Return the places of the members that a batch of so many leaves undone."""
        shares = [self._chance.share() for _ in range(members)]
        done = max(range(members), key=lambda place: shares[place], default=0)
        return frozenset(place for place, share in enumerate(shares) if share < self._share and place != done)
