"""Records as the room keeps them, for tests of what happens to them."""

from __future__ import annotations

from typing import Any

from tavola.triggers.events import StreamRecord, lambda_record, stream_record
from tests.triggers.fake import ARN, START_S, change


def kept(number: int, key: str = "k", *, at_s: float = START_S, **more: Any) -> StreamRecord:
    """Return a record with this number."""
    return stream_record(lambda_record(change(number, key, at_s=at_s, **more), ARN), "id")


def several(*numbers: int) -> tuple[StreamRecord, ...]:
    """Return records with these numbers."""
    return tuple(kept(number) for number in numbers)
