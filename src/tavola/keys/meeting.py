"""Decide whether two templates can produce the same text.

Each template is a sequence of shapes (literals and sets of possible characters), which is a small finite automaton. The two
automata are walked side by side; if both can end at once, a common text exists. The answer "no" is certain. The answer
"yes" may be wrong, for example if a field occurs twice in a template: both occurrences are treated as independent.
"""

from __future__ import annotations

from collections.abc import Sequence

from tavola.keys.part import Shape, Signs

Choices = tuple[Shape, ...]


class _Automaton:
    """Places, where each may lead on a sign, and where without one; the last place is the end."""

    def __init__(self, run: Sequence[Choices]) -> None:
        self.steps: list[list[tuple[Signs, int]]] = [[]]
        self.free: list[list[int]] = [[]]
        at = 0
        for choices in run:
            ends = [self._walk(at, shape) for shape in choices]
            at = self._place()
            for end in ends:
                self.free[end].append(at)
        self.end = at

    def _place(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _walk(self, start: int, shape: Shape) -> int:
        # From a place of its own: a loop must not be open to the other choices.
        at = self._place()
        self.free[start].append(at)
        for held, often in shape:
            following = self._place()
            if often == "one":
                self.steps[at].append((held, following))
            else:
                self.free[at].append(following)
                self.steps[following].append((held, following))
            at = following
        return at


def shapes_intersect(one: Sequence[Choices], other: Sequence[Choices]) -> bool:
    """Tell whether some text fits both runs."""
    left, right = _Automaton(one), _Automaton(other)
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        a, b = todo.pop()
        if (a, b) == (left.end, right.end):
            return True
        reached = [(following, b) for following in left.free[a]]
        reached += [(a, following) for following in right.free[b]]
        reached += [
            (to_a, to_b) for held, to_a in left.steps[a] for also, to_b in right.steps[b] if held & also
        ]
        for pair in reached:
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return False
