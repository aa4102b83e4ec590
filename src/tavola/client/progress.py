"""Progress: how far long work has come, as its callback is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """How much is done of how much."""

    done: int  # entities of a batch, items that a scan went through
    total: int | None  # None: nobody knows; of a table it is what DescribeTable says, some hours old on AWS
    unprocessed: int = 0  # of a batch: what DynamoDB left and is asked again
    written: int = 0  # of a scan: items that were rewritten


ProgressReporter: TypeAlias = Callable[[Progress], object]
