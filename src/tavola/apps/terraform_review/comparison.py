"""Comparison: two versions' code, line by line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

Sign = Literal["+", "-", " ", "@"]
Line = tuple[Sign, str]

LINES_MAX: Final = 4_000  # of each side between what both begin and end with: its cost grows with the square
CONTEXT_LINES: Final = 3


async def compare_code(before: str, after: str) -> list[Line] | None:
    """Return the lines that differ with some around them; None where there are too many to compare."""
    return await asyncio.to_thread(differing_lines, before, after)


def differing_lines(before: str, after: str) -> list[Line] | None:
    """Return the lines that differ, as a unified diff has them; `@` begins a stretch and says where it is."""
    old, new = before.splitlines(), after.splitlines()
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > LINES_MAX:
        return None
    # Of what both begin and end with, the matcher sees the context alone.
    skipped = max(0, head - CONTEXT_LINES)
    kept = max(0, tail - CONTEXT_LINES)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    told: list[Line] = []
    for group in SequenceMatcher(None, old, new, autojunk=True).get_grouped_opcodes(CONTEXT_LINES):
        _, old_from, _, new_from, _ = group[0]
        _, _, old_to, _, new_to = group[-1]
        place = f"-{_range(skipped + old_from, old_to - old_from)} +{_range(skipped + new_from, new_to - new_from)}"
        told.append(("@", f"@@ {place} @@"))
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                told += [(" ", line) for line in old[old_start:old_end]]
            else:
                told += [("-", line) for line in old[old_start:old_end]]
                told += [("+", line) for line in new[new_start:new_end]]
    return told


def unified(lines: Sequence[Line]) -> str:
    """Return lines as the text of a unified diff."""
    return "".join(f"{'' if sign == '@' else sign}{text}\n" for sign, text in lines)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"
