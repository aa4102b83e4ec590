"""The plan: which servers stand side by side, at which sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.measure import Stage
from benchmarks.peers import ENGINES, Engine
from benchmarks.results import OURS, Contender
from benchmarks.workload import OPERATIONS

PEER_ITEMS_MAX: Final = 100_000  # beyond this the peers take minutes to fill, and ours stands alone


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose; as it stands, the full programme."""

    engines: tuple[str, ...] = tuple(engine.name for engine in ENGINES)
    storages: tuple[str, ...] = ("memory", "disk")
    operations: tuple[str, ...] = tuple(operation.name for operation in OPERATIONS)
    items: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    connections: tuple[int, ...] = (1, 16)
    rounds: int = 3
    seconds: int = 2
    warm_s: int = 2
    starts: int = 3
    repeats: int = 1
    fill_s_max: int = 180
    minutes: int = 120

    @classmethod
    def short(cls) -> "Settings":
        """A look in a few minutes: one size, one round."""
        once = cls(rounds=1, seconds=1, warm_s=0, starts=1, repeats=0)
        return replace(once, items=(10_000,), connections=(16,), minutes=20)


def stages(settings: Settings, engines: Sequence[Engine]) -> list[Stage]:
    """Every size with all engines that can hold it, then ours alone, small beside large.

    The smallest size is measured at every number of connections, the next at the most alone. Ours is
    measured small *and* large in one stage, so that both see the same noise.
    """
    planned: list[Stage] = []
    smallest = min(settings.items)
    for items in settings.items:
        if items <= PEER_ITEMS_MAX:
            contenders = tuple(
                Contender(engine.name, storage, items)
                for engine in engines
                for storage in settings.storages
                if storage == "memory" or engine.disk is not None
            )
            most = (max(settings.connections),)
            planned.append(Stage("peers", contenders, settings.connections if items == smallest else most))
        elif any(engine.name == OURS for engine in engines):
            sizes = (10_000, items) if smallest > PEER_ITEMS_MAX else (smallest, items)
            contenders = tuple(
                Contender(OURS, storage, size) for storage in settings.storages for size in sizes
            )
            planned.append(Stage("scale", contenders, settings.connections))
    return [stage for stage in planned if stage.contenders]
