"""Switches: which hardships of production are emulated, parsed from one line of text.

`throughput,gsi-lag=200ms,stale-reads=100ms,conflicts=20ms,unprocessed=0.1,interleave,ttl-delay=60s,seed=7`:
names, some with a value, each with `@N` behind it for a seed of its own; `seed` is that of all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tavola.errors import ErrorKind, TavolaError

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DAY_S = 86_400.0
_REMEMBERED_S = 3600.0  # how far back a read can look: as long as changes are kept for it

Kind = Literal["flag", "duration", "window", "share", "seed"]


class EmulationRefused(TavolaError):
    """A line of switches that cannot be understood; the sentence says what there is."""

    kind = ErrorKind.USAGE
    remedy = "See `tavola serve --help`, and the guide's page on emulation."


@dataclass(frozen=True, slots=True)
class Switch:
    """One hardship: its name, what its value is, and a sentence."""

    name: str
    kind: Kind
    example: str
    sentence: str
    longest_s: float = _DAY_S


SWITCHES = (
    Switch(
        "throughput",
        "flag",
        "throughput",
        "Throttle what exceeds a table's or index's capacity, or that of one partition.",
    ),
    Switch(
        "split-after",
        "duration",
        "split-after=5m",
        "How long a partition must be hot before it is split for heat; with throughput only.",
    ),
    Switch(
        "gsi-lag",
        "duration",
        "gsi-lag=200ms",
        "Global indexes show changes up to so much later.",
        longest_s=_REMEMBERED_S / 2,
    ),
    Switch(
        "stale-reads",
        "duration",
        "stale-reads=100ms",
        "Eventually consistent reads may show what was there up to so long ago.",
        longest_s=_REMEMBERED_S / 2,
    ),
    Switch(
        "conflicts",
        "duration",
        "conflicts=20ms",
        "A write transaction holds its items, and its token, for up to so long.",
    ),
    Switch(
        "unprocessed",
        "share",
        "unprocessed=0.1",
        "This share of a batch's members comes back unprocessed; one at least is done.",
    ),
    Switch(
        "interleave",
        "window",
        "interleave=100ms",
        "Stream records of different items within so much time change places, and come when it is over.",
    ),
    Switch(
        "ttl-delay",
        "duration",
        "ttl-delay=60s",
        "Expired items stay for up to so long.",
        longest_s=7 * _DAY_S,
    ),
    Switch("seed", "seed", "seed=7", "What chance is made from; 0 unless told."),
)

_BY_NAME = {switch.name: switch for switch in SWITCHES}
SPLIT_AFTER_S = 300.0
_WINDOW_S = 0.1  # of an interleave without a time


@dataclass(frozen=True, slots=True)
class Switches:
    """What is emulated; what is None or False is not."""

    throughput: bool = False
    split_after_s: float = SPLIT_AFTER_S
    gsi_lag_s: float | None = None
    stale_reads_s: float | None = None
    conflicts_s: float | None = None
    unprocessed: float | None = None
    interleave_s: float | None = None
    ttl_delay_s: float | None = None
    seed: int = 0
    seeds: tuple[tuple[str, int], ...] = ()  # of switches that have their own

    def seed_of(self, switch: str) -> str:
        """Return what a switch's chance is made from: its name too, so that no two share a sequence."""
        return f"{switch}:{dict(self.seeds).get(switch, self.seed)}"

    @property
    def needs_history(self) -> bool:
        """Tell whether reads may need the past of any table."""
        return self.gsi_lag_s is not None or self.stale_reads_s is not None

    @property
    def any(self) -> bool:
        """Tell whether anything is emulated at all."""
        return self.throughput or any(
            value is not None
            for value in (
                self.gsi_lag_s,
                self.stale_reads_s,
                self.conflicts_s,
                self.unprocessed,
                self.interleave_s,
                self.ttl_delay_s,
            )
        )


def parse_switches(text: str) -> Switches:
    """Return the switches that a line names; refuse it with what there is."""
    found: dict[str, float | int | bool] = {}
    seeds: dict[str, int] = {}
    for part in text.split(","):
        part = part.strip()
        if not part:
            raise EmulationRefused(f"{text!r} has an empty switch; {_offer()}")
        setting, _, seed = part.partition("@")
        name, equals, value = setting.partition("=")
        switch = _BY_NAME.get(name)
        if switch is None:
            raise EmulationRefused(f"{name!r} cannot be emulated; {_offer()}")
        if name in found:
            raise EmulationRefused(f"{name} is given twice; give it once")
        found[name] = _value(switch, value if equals else None)
        if "@" in part:
            seeds[name] = _whole(f"the seed of {name}", seed, least=0)
    if "split-after" in found and "throughput" not in found:
        raise EmulationRefused("split-after has nothing to split without throughput; give both")
    return Switches(
        throughput="throughput" in found,
        split_after_s=found.get("split-after", SPLIT_AFTER_S),
        gsi_lag_s=found.get("gsi-lag"),
        stale_reads_s=found.get("stale-reads"),
        conflicts_s=found.get("conflicts"),
        unprocessed=found.get("unprocessed"),
        interleave_s=found.get("interleave"),
        ttl_delay_s=found.get("ttl-delay"),
        seed=int(found.get("seed", 0)),
        seeds=tuple(seeds.items()),
    )


def _value(switch: Switch, text: str | None) -> float | int | bool:
    match switch.kind:
        case "flag":
            if text is not None:
                raise EmulationRefused(f"{switch.name} takes no value; write {switch.example}")
            return True
        case "duration":
            return _duration(switch, text)
        case "share":
            try:
                share = float(text or "")
            except ValueError:
                share = -1.0
            if not 0 < share <= 1:
                raise EmulationRefused(
                    f"{switch.name} needs a share above 0 and up to 1; write for instance {switch.example}"
                )
            return share
        case "window":
            return _WINDOW_S if text is None else _duration(switch, text)
        case "seed":
            return _whole("the seed", text or "", least=0)


def _duration(switch: Switch, text: str | None) -> float:
    found = _DURATION.fullmatch(text or "")
    seconds = 0.0 if found is None else float(found[1]) * _SECONDS[found[2]]
    if not 0 < seconds <= switch.longest_s:
        raise EmulationRefused(
            f"{switch.name} needs a time in ms, s, m or h, above 0 and up to {switch.longest_s / 60:.0f}m; "
            f"write for instance {switch.example}"
        )
    return seconds


def _whole(what: str, text: str, *, least: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**63:
        raise EmulationRefused(f"{what} must be a whole number from {least} on, not {text!r}")
    return int(text)


def _offer() -> str:
    return "there are: " + ", ".join(switch.example for switch in SWITCHES)
