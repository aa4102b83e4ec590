"""A line-by-line diff of the code of two versions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

Sign = Literal["+", "-", " ", "@"]
DiffLine = tuple[Sign, str]

LINES_MAX: Final = 4_000  # per side, without the common start and end: the cost is quadratic
CONTEXT_LINES: Final = 3


async def diff_code(before: str, after: str) -> list[DiffLine] | None:
    """Return the differing lines with context, computed in a thread; None if there are too many lines to compare."""
    return await asyncio.to_thread(diff_lines, before, after)


def diff_lines(before: str, after: str) -> list[DiffLine] | None:
    """Return the lines of a unified diff; a line with the sign `@` starts a hunk and holds its position."""
    old, new = before.splitlines(), after.splitlines()
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > LINES_MAX:
        return None
    # The matcher gets only the context of the common start and end.
    skipped = max(0, head - CONTEXT_LINES)
    trimmed = max(0, tail - CONTEXT_LINES)
    old, new = old[skipped : len(old) - trimmed], new[skipped : len(new) - trimmed]
    lines: list[DiffLine] = []
    for group in SequenceMatcher(None, old, new, autojunk=True).get_grouped_opcodes(CONTEXT_LINES):
        _, old_from, _, new_from, _ = group[0]
        _, _, old_to, _, new_to = group[-1]
        ranges = f"-{_hunk_range(skipped + old_from, old_to - old_from)} +{_hunk_range(skipped + new_from, new_to - new_from)}"
        lines.append(("@", f"@@ {ranges} @@"))
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                lines += [(" ", line) for line in old[old_start:old_end]]
            else:
                lines += [("-", line) for line in old[old_start:old_end]]
                lines += [("+", line) for line in new[new_start:new_end]]
    return lines


def render_diff(lines: Sequence[DiffLine]) -> str:
    """Return diff lines as the text of a unified diff."""
    return "".join(f"{'' if sign == '@' else sign}{text}\n" for sign, text in lines)


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _hunk_range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"
