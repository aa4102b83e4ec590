"""KeySpan: the sort keys that answer a query, as the single condition that DynamoDB allows."""

from __future__ import annotations

from msgspec import Struct


class KeySpan(Struct, frozen=True):
    """One text, all texts with a prefix, a range of texts, every text or none.

    Of `equal`, `prefix` and the two ends at most one kind is there. A range with both ends includes both, so
    that it is a BETWEEN.
    """

    equal: str | None = None
    prefix: str | None = None
    lower: str | None = None
    upper: str | None = None
    lower_inclusive: bool = True
    upper_inclusive: bool = True
    empty: bool = False  # nothing can answer: no request is needed, and DynamoDB would refuse it
    exact: bool = True  # False: a part drops digits, so values must be compared once more

    def condition(self) -> tuple[str, tuple[str, ...]] | None:
        """Return the operator of a key condition and its operands; None if there is nothing to say."""
        if self.equal is not None:
            return "=", (self.equal,)
        if self.prefix is not None:
            return "begins_with", (self.prefix,)
        if self.lower is not None and self.upper is not None:
            return "BETWEEN", (self.lower, self.upper)
        if self.lower is not None:
            return ">=" if self.lower_inclusive else ">", (self.lower,)
        if self.upper is not None:
            return "<=" if self.upper_inclusive else "<", (self.upper,)
        return None

    def holds(self, text: str) -> bool:
        """Tell whether a sort key lies inside; strings of Python compare as their UTF-8 does."""
        if self.empty:
            return False
        if self.equal is not None:
            return text == self.equal
        if self.prefix is not None:
            return text.startswith(self.prefix)
        if self.lower is not None and not (text >= self.lower if self.lower_inclusive else text > self.lower):
            return False
        return self.upper is None or (text <= self.upper if self.upper_inclusive else text < self.upper)
