"""Checkpoint of a projector, stored in an item of the table that holds the projector's marks.

A checkpoint that is ahead of its numbers would skip records, and the numbers would stay wrong. In one table, a backup, restore
or copy always contains the marks and the checkpoint of the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tavola.client.checkpoints import CheckpointRefused
from tavola.patterns.metrics import ProjectionMark
from tavola.patterns.recipe import D_co, PatternProgram, Recipe, call_client, key_class, recipe_method

CHECKPOINT_SOURCE = "!place"  # takes the place of an item's key in the mark; no item has this key


class MarkCheckpoint(Recipe[D_co]):
    """The checkpoint of the projector called `projector`; with a `Connection`, a `CheckpointStore`.

    It only reads and puts the item, which a policy for projectors allows; `clear` puts an empty one.
    """

    def __init__(self, db: D_co, mark: type[ProjectionMark], projector: str) -> None:
        super().__init__(db)
        self.mark = mark
        self.projector = projector
        self._key = key_class(mark, "source", "projector")(source=CHECKPOINT_SOURCE, projector=projector)

    @recipe_method
    def load(self) -> PatternProgram[Mapping[str, Any] | None]:
        """Return the checkpoint saved last, None if there is none; `CheckpointRefused` if it cannot be read."""
        item = yield from call_client(lambda db: db.get(self._key, consistent=True))
        if item is None or not item.place:
            return None
        try:
            checkpoint = json.loads(item.place)
        except ValueError:
            checkpoint = None
        if not isinstance(checkpoint, dict):
            raise CheckpointRefused(
                f"the checkpoint item (source {CHECKPOINT_SOURCE}) contains no checkpoint"
            )
        return checkpoint

    @recipe_method
    def save(self, checkpoint: Mapping[str, Any]) -> PatternProgram[None]:
        """Replace the stored checkpoint."""
        yield from self._put(json.dumps(checkpoint))

    @recipe_method
    def clear(self) -> PatternProgram[None]:
        """Remove the checkpoint."""
        yield from self._put("")

    def _put(self, text: str) -> PatternProgram[None]:
        item = self.mark(projector=self.projector, source=CHECKPOINT_SOURCE, kind="", place=text)
        yield from call_client(lambda db: db.put(item))
