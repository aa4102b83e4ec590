"""The journal: what is kept of a change, and that time never goes back in it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.clock import ManualClock
from tavola.engine.journal import DIFFERS, INSERT, MODIFY, REMOVE, Journal, new_image
from tavola.engine.storage import Store
from tavola.engine.store_time import StoreTime

OLD, NEW = b'{"pk":{"S":"a"},"v":{"N":"1"}}', b'{"pk":{"S":"a"},"v":{"N":"2"}}'
ITEM: dict[str, Any] = {"pk": {"S": "a"}, "v": {"N": "2"}}


def store() -> closing[Store]:
    return closing(Store.open(None, sync="off", cache_mb=16))


def journal(kept: Store, view: str | None, *, history: bool, time: StoreTime | None = None) -> Journal:
    if not kept.log_numbers():
        kept.create_log(1)
    time = time or StoreTime(kept, ManualClock())
    return Journal(kept.log(1), time, view, history=history, key_names=("pk",))


@given(old=st.binary(max_size=400), new=st.binary(max_size=400), shared=st.binary(max_size=400))
def test_a_difference_gives_the_new_image_back(old: bytes, new: bytes, shared: bytes) -> None:
    """Whatever two images have in common, what is kept of the new one restores it to the byte."""
    with store() as kept:
        noted = journal(kept, "NEW_AND_OLD_IMAGES", history=False)
        before, after = shared + old + shared, shared + new + shared

        noted.note(b"k", MODIFY, before, after, None)

        (row,) = noted.log.read(0, 1, 9)
        assert new_image(row) == after
        assert row.old == before


def test_a_small_change_of_a_large_item_keeps_little(tmp_path: object) -> None:
    """Two images that differ in one byte cost one of them and a few bytes more."""
    with store() as kept:
        noted = journal(kept, "NEW_AND_OLD_IMAGES", history=True)
        before = b"x" * 100_000 + b"1" + b"y" * 100_000

        noted.note(b"k", MODIFY, before, before.replace(b"1", b"2"), None)

        (row,) = noted.log.read(0, 1, 9)
        assert row.mark & DIFFERS
        assert row.new is not None
        assert len(row.new) < 20


@pytest.mark.parametrize(
    ("view", "history", "images"),
    [
        ("NEW_AND_OLD_IMAGES", False, [(None, NEW), (OLD, NEW), (OLD, None)]),
        ("NEW_IMAGE", False, [(None, NEW), (None, NEW), (OLD, None)]),
        ("NEW_IMAGE", True, [(None, NEW), (OLD, NEW), (OLD, None)]),
        ("OLD_IMAGE", False, [(None, NEW), (OLD, None), (OLD, None)]),
        (None, True, [(None, None), (OLD, None), (OLD, None)]),
    ],
)
def test_what_is_kept_is_what_someone_may_ask_for(
    view: str | None, history: bool, images: list[tuple[bytes | None, bytes | None]]
) -> None:
    """A stream keeps what its view shows, or one image for its keys; history keeps what was before."""
    with store() as kept:
        noted = journal(kept, view, history=history)

        noted.note(b"k", INSERT, None, NEW, ITEM)
        noted.note(b"k", MODIFY, OLD, NEW, ITEM)
        noted.note(b"k", REMOVE, OLD, None, ITEM)

        rows = noted.log.read(0, 9, 9)
        assert [(row.old, new_image(row)) for row in rows] == images


def test_time_in_a_log_never_goes_back() -> None:
    """When the clock is set back, changes go on from the latest time there was, more slowly, also after a restart."""
    clock = ManualClock(1_000.0)
    with store() as kept:
        time = StoreTime(kept, clock)
        noted = journal(kept, None, history=True, time=time)
        for moment in (1_000.0, 500.0):
            clock.set(moment)
            time.tick()
            noted.note(b"a", INSERT, None, NEW, ITEM)
        time = StoreTime(kept, clock)
        again = journal(kept, None, history=True, time=time)
        time.tick()
        for moment in (502.0, 1_010.0):
            clock.set(moment)
            time.tick()
            again.note(b"a", INSERT, None, NEW, ITEM)

        rows = again.log.read(0, 9, 9)
        assert [row.at_us for row in rows] == [1_000_000_000, 1_000_000_001, 1_001_000_001, 1_255_000_001]
        assert [row.id for row in rows] == [1, 2, 3, 4]


@given(times=st.lists(st.integers(0, 50), min_size=1, max_size=40), asked=st.integers(-5, 60))
def test_a_moment_is_found_by_halving(times: list[int], asked: int) -> None:
    """The place of a time is that of the last change at or before it."""
    clock = ManualClock()
    with store() as kept:
        clock.set(0.0)
        time = StoreTime(kept, clock)
        noted = journal(kept, None, history=True, time=time)
        for at_s in sorted(times):
            clock.set(float(at_s))
            time.tick()
            noted.note(b"k", INSERT, None, NEW, ITEM)

        assert noted.log.id_at(asked * 1_000_000) == sum(at_s <= asked for at_s in times)


def test_the_last_change_is_never_trimmed() -> None:
    """Ids go on where they were, however much was forgotten."""
    with store() as kept:
        noted = journal(kept, None, history=True)
        for _ in range(5):
            noted.note(b"k", INSERT, None, NEW, ITEM)

        trimmed = noted.log.trim(100, 100)

        assert trimmed == 4
        assert noted.log.span()[:2] == (5, 5)
        assert journal(kept, None, history=True).position == 5
        assert noted.log.trim(100, 100) == 0
