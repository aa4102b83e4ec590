"""Line-by-line difference of two texts with a few lines of context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

_AROUND = 3
_MATCHED_MAX = (
    1_000  # lines that are compared each with each; a document's lines repeat, so that takes its square
)
_COMPARED_MAX = 10_000  # lines from the first that differs on
_LINES_MAX = 2_000  # of a difference; a person reads fewer


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference; `…` alone stands for those that are left out because they stay."""

    sign: Literal["+", "-", " "]
    text: str


def diff_lines(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return what changed from one text to another; nothing where they are the same, and how much is left out of a long one."""
    told = tuple(_lines(before.splitlines(), after.splitlines()))
    if len(told) <= _LINES_MAX:
        return told
    return (
        *told[:_LINES_MAX],
        DiffLine(" ", f"… and {len(told) - _LINES_MAX:,} lines of the difference more"),
    )


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    shared = min(len(old), len(new))
    first = _common_prefix(old, new, shared)
    last = _common_prefix(old[::-1], new[::-1], shared - first)
    start, stop = max(0, first - _AROUND), max(0, last - _AROUND)
    was, now = old[start : len(old) - stop], new[start : len(new) - stop]
    cut = max(len(was), len(now)) > _COMPARED_MAX
    matcher = SequenceMatcher(
        None, was[:_COMPARED_MAX], now[:_COMPARED_MAX], autojunk=len(was) > _MATCHED_MAX
    )
    groups = list(matcher.get_grouped_opcodes(_AROUND))
    if cut and groups and groups[-1][-1][0] != "equal" and len(matcher.get_opcodes()) > 1:
        del groups[-1][-1]  # it may be no change, but where the comparison ends
    end = 0
    for group in filter(None, groups):
        if group[0][1] + start > end:
            yield DiffLine(" ", "…")
        for word, old_from, old_to, new_from, new_to in group:
            if word == "equal":
                yield from (DiffLine(" ", text) for text in was[old_from:old_to])
                continue
            yield from (DiffLine("-", text) for text in was[old_from:old_to])
            yield from (DiffLine("+", text) for text in now[new_from:new_to])
        end = group[-1][2] + start
    if cut:
        yield DiffLine(" ", f"… what comes after {_COMPARED_MAX:,} lines is too much to be compared here")
    elif 0 < end < len(old):
        yield DiffLine(" ", "…")


def _common_prefix(one: list[str], other: list[str], most: int) -> int:
    """Return how many lines are the same at the beginning of both."""
    return next((at for at in range(most) if one[at] != other[at]), most)
