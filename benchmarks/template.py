"""Template: a text of fixed length with numbers that change from request to request.

One template is rendered by two hands, Lua for wrk and Python for everything else, so that every
loader sends the same load. Widths are fixed: a request's Content-Length never changes.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

WIDTHS: Final = {
    "item": 8,  # a stored item's number
    "group_a": 6,  # the partition of the first index that item belongs to
    "group_b": 6,  # and of the second
    "drawn_a": 6,  # a partition drawn at random: the item moves there
    "drawn_b": 6,
    "sequence": 12,  # never the same twice on one server
}
SEQUENCE_BASE: Final[int] = 10 ** (WIDTHS["sequence"] - 1)  # no leading zero: a canonical number as it stands
DRAWN_B_FACTOR: Final = 31  # so that a moved item does not land in equal partitions of both indexes

_MARK: Final = re.compile(r"<(" + "|".join(WIDTHS) + r")\+(\d+)>")


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one number: what it counts, and for which of the request's items."""

    kind: str
    offset: int

    @property
    def width(self) -> int:
        """Digits; shorter numbers get zeros in front."""
        return WIDTHS[self.kind]


@dataclass(frozen=True, slots=True)
class Template:
    """Fixed texts with a slot between each two: one text more than there are slots."""

    texts: tuple[str, ...]
    slots: tuple[Slot, ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        """Read `<item+0>` marks as slots: the kind, then which of the request's items it is for."""
        assert text.isascii(), "bytes and characters must agree, or Content-Length lies"
        pieces = _MARK.split(text)
        kinds, offsets = pieces[1::3], pieces[2::3]
        slots = tuple(Slot(kind, int(offset)) for kind, offset in zip(kinds, offsets, strict=True))
        return cls(tuple(pieces[0::3]), slots)

    @property
    def length(self) -> int:
        """The bytes of every rendering."""
        return sum(map(len, self.texts)) + sum(slot.width for slot in self.slots)

    def after(self, text: str) -> "Template":
        """This template with fixed text in front of it."""
        return Template((text + self.texts[0], *self.texts[1:]), self.slots)

    def render(self, draw: "Draw", numbers: "Numbers") -> str:
        """The text for one request."""
        pieces = [self.texts[0]]
        for slot, text in zip(self.slots, self.texts[1:], strict=True):
            pieces.append(f"{draw.number(slot, numbers):0{slot.width}d}")
            pieces.append(text)
        return "".join(pieces)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is drawn afresh for one request."""

    index: int
    drawn: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Draw:
    """Which items a load touches, and how its numbers come about.

    `stride` keeps the items of one request apart (a batch may not name a key twice).
    """

    low: int  # the first item touched
    span: int  # how many items from there
    groups: int  # partitions in each index
    group_items: int = 1  # items in each: the first index deals items out in turn, the second in runs
    stride: int = 1
    first_sequence: int = 0
    seed: int = 1

    def number(self, slot: Slot, numbers: Numbers) -> int:
        """The number that a slot shows."""
        item = self.low + (numbers.index + slot.offset * self.stride) % self.span
        match slot.kind:
            case "item":
                return item
            case "group_a":
                return item % self.groups
            case "group_b":
                return item // self.group_items % self.groups
            case "drawn_a":
                return (numbers.drawn + slot.offset) % self.groups
            case "drawn_b":
                return (numbers.drawn * DRAWN_B_FACTOR + slot.offset) % self.groups
            case "sequence":
                return SEQUENCE_BASE + numbers.sequence
            case _:
                raise AssertionError(f"no such slot: {slot.kind}")

    def numbers(self) -> Iterator[Numbers]:
        """Endlessly, the numbers of one request after another."""
        chance = random.Random(self.seed)
        sequence = self.first_sequence
        while True:
            yield Numbers(chance.randrange(self.span), chance.randrange(self.groups), sequence)
            sequence += 1

    def in_order(self, step: int) -> Iterator[Numbers]:
        """Every item once, `step` items to a request: for filling a table."""
        for sequence, index in enumerate(range(0, self.span, step)):
            yield Numbers(index, index % self.groups, self.first_sequence + sequence)


_LUA: Final = """\
local texts = {texts}
local low, span, groups, group_items, stride = {low}, {span}, {groups}, {group_items}, {stride}
local sequence = {first_sequence} - 1
local format, random, floor, concat = string.format, math.random, math.floor, table.concat
math.randomseed({seed})

local out = {{}}
for i, text in ipairs(texts) do out[2 * i - 1] = text end

function request()
   local index, drawn, item = random(0, span - 1), random(0, groups - 1)
   sequence = sequence + 1
{body}
   return concat(out)
end

function done(summary, latency, requests)
   local e = summary.errors
   io.write(format(
      '\\n@@{{"requests":%d,"duration_us":%d,"status":%d,"socket":%d,"timeout":%d,"p50_us":%d,"p99_us":%d}}\\n',
      summary.requests, summary.duration, e.status, e.connect + e.read + e.write, e.timeout,
      summary.requests > 0 and latency:percentile(50) or 0,
      summary.requests > 0 and latency:percentile(99) or 0))
end
"""


def render_lua(template: Template, draw: Draw) -> str:
    """A wrk script that sends the template, and at the end prints one JSON line after `@@`."""
    lines: list[str] = []
    current: int | None = None
    for place, slot in enumerate(template.slots):
        if slot.kind in ("item", "group_a", "group_b") and slot.offset != current:
            current = slot.offset
            lines.append(f"item = low + (index + {slot.offset} * stride) % span")
        lines.append(f'out[{2 * place + 2}] = format("%0{slot.width}.0f", {_lua_number(slot)})')
    return _LUA.format(
        texts="{" + ", ".join(map(_lua_string, template.texts)) + "}",
        low=draw.low,
        span=draw.span,
        groups=draw.groups,
        group_items=draw.group_items,
        stride=draw.stride,
        first_sequence=draw.first_sequence,
        seed=draw.seed,
        body="\n".join("   " + line for line in lines),
    )


def _lua_number(slot: Slot) -> str:
    return {
        "item": "item",
        "group_a": "item % groups",
        "group_b": "floor(item / group_items) % groups",
        "drawn_a": f"(drawn + {slot.offset}) % groups",
        "drawn_b": f"(drawn * {DRAWN_B_FACTOR} + {slot.offset}) % groups",
        "sequence": f"{SEQUENCE_BASE} + sequence",
    }[slot.kind]


def _lua_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'
