"""ModelError: a declaration that cannot be honoured, or a value that does not fit its declaration."""

from __future__ import annotations

from tavola.errors import TavolaError


class ModelError(TavolaError):
    """What is wrong with a declaration: the class, the part of it, and what to do."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place.rpartition("<locals>.")[2]  # the class, not the function it is declared in
        self.problem = problem
        super().__init__(f"{self.place}: {problem}")


class QueryRefused(ModelError):
    """A question that its access pattern cannot answer, such as one that skips a part of the sort key."""


class ValueNotStorable(ModelError):
    """A value, or a type of values, that DynamoDB cannot hold without loss."""


class ItemUnreadable(ModelError):
    """A stored item that its entity cannot be made from."""


class DocumentRefused(ModelError):
    """A design's document that cannot be read; its place is a JSON path."""
