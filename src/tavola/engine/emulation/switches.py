"""Switches: which effects of production are emulated, parsed from one line of text.

`throughput,gsi-lag=200ms,stale-reads=100ms,conflicts=20ms,unprocessed=0.1,interleave,ttl-delay=60s,seed=7`:
names, some with a value. `@N` after a switch gives it a seed of its own; `seed` is the seed of all others.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from tavola.errors import ErrorKind, TavolaError

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DAY_S = 86_400.0
_HISTORY_S = 3600.0  # how long changes are kept for stale reads

Kind = Literal["flag", "duration", "window", "share", "seed"]


class EmulationRefused(TavolaError):
    """The text of switches is invalid; the message lists the valid ones."""

    kind = ErrorKind.USAGE
    remedy = "See `tavola serve --help` and the how-to page on emulation."


class Switch(Struct, frozen=True):
    """One effect: its name, the kind of its value, and a description."""

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
        "Throttle requests that exceed the capacity of a table, index or partition.",
    ),
    Switch(
        "split-after",
        "duration",
        "split-after=5m",
        "How long a partition must be hot before it is split; requires throughput.",
    ),
    Switch(
        "gsi-lag",
        "duration",
        "gsi-lag=200ms",
        "Global indexes show changes up to this much later.",
        longest_s=_HISTORY_S / 2,
    ),
    Switch(
        "stale-reads",
        "duration",
        "stale-reads=100ms",
        "Eventually consistent reads may return a state up to this old.",
        longest_s=_HISTORY_S / 2,
    ),
    Switch(
        "conflicts",
        "duration",
        "conflicts=20ms",
        "A write transaction holds its items and its token for up to this long.",
    ),
    Switch(
        "unprocessed",
        "share",
        "unprocessed=0.1",
        "This share of a batch's members comes back unprocessed; at least one is processed.",
    ),
    Switch(
        "interleave",
        "window",
        "interleave=100ms",
        "Stream records of different items are reordered within windows of this length, and delivered at the end.",
    ),
    Switch(
        "ttl-delay",
        "duration",
        "ttl-delay=60s",
        "Expired items stay for up to this long.",
        longest_s=7 * _DAY_S,
    ),
    Switch("seed", "seed", "seed=7", "The seed of all random effects; 0 by default."),
)

_BY_NAME = {switch.name: switch for switch in SWITCHES}
SPLIT_AFTER_S = 300.0
_WINDOW_S = 0.1  # of `interleave` without a value


class Switches(Struct, frozen=True):
    """The settings of each switch; None or False means off."""

    throughput: bool = False
    split_after_s: float = SPLIT_AFTER_S
    gsi_lag_s: float | None = None
    stale_reads_s: float | None = None
    conflicts_s: float | None = None
    unprocessed: float | None = None
    interleave_s: float | None = None
    ttl_delay_s: float | None = None
    seed: int = 0
    seeds: tuple[tuple[str, int], ...] = ()  # of switches with a seed of their own

    def seed_of(self, switch: str) -> str:
        """Return the seed of a switch; it includes the name, so that no two switches share a sequence."""
        return f"{switch}:{dict(self.seeds).get(switch, self.seed)}"

    @property
    def needs_history(self) -> bool:
        """Whether reads may need the past of any table."""
        return self.gsi_lag_s is not None or self.stale_reads_s is not None

    @property
    def any(self) -> bool:
        """Whether anything is emulated."""
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
    """Return the switches in a text; an error lists the valid ones."""
    values: dict[str, float | int | bool] = {}
    seeds: dict[str, int] = {}
    for part in text.split(","):
        part = part.strip()
        if not part:
            raise EmulationRefused(f"{text!r} has an empty switch; {_list_switches()}")
        setting, _, seed = part.partition("@")
        name, equals, value = setting.partition("=")
        switch = _BY_NAME.get(name)
        if switch is None:
            raise EmulationRefused(f"{name!r} is not a switch; {_list_switches()}")
        if name in values:
            raise EmulationRefused(f"{name} occurs twice; write it once")
        values[name] = _value(switch, value if equals else None)
        if "@" in part:
            seeds[name] = _seed(f"the seed of {name}", seed)
    if "split-after" in values and "throughput" not in values:
        raise EmulationRefused("split-after requires throughput; write both")
    return Switches(
        throughput="throughput" in values,
        split_after_s=values.get("split-after", SPLIT_AFTER_S),
        gsi_lag_s=values.get("gsi-lag"),
        stale_reads_s=values.get("stale-reads"),
        conflicts_s=values.get("conflicts"),
        unprocessed=values.get("unprocessed"),
        interleave_s=values.get("interleave"),
        ttl_delay_s=values.get("ttl-delay"),
        seed=int(values.get("seed", 0)),
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
                    f"{switch.name} needs a number above 0 and up to 1; write for example {switch.example}"
                )
            return share
        case "window":
            return _WINDOW_S if text is None else _duration(switch, text)
        case "seed":
            return _seed("the seed", text or "")


def _duration(switch: Switch, text: str | None) -> float:
    match = _DURATION.fullmatch(text or "")
    seconds = 0.0 if match is None else float(match[1]) * _SECONDS[match[2]]
    if not 0 < seconds <= switch.longest_s:
        raise EmulationRefused(
            f"{switch.name} needs a time in ms, s, m or h, above 0 and up to {switch.longest_s / 60:.0f}m; "
            f"write for example {switch.example}"
        )
    return seconds


def _seed(what: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 2**63:
        raise EmulationRefused(f"{what} must be a whole number, 0 or more, not {text!r}")
    return int(text)


def _list_switches() -> str:
    return "valid switches: " + ", ".join(switch.example for switch in SWITCHES)
