"""Units: bytes to what DynamoDB bills, without the rounding mistakes that are often made."""

from __future__ import annotations

import pytest

from tavola.values import index_units, read_units, transact_read_units, transact_write_units, write_units

_KB = 1024


def test_a_read_of_four_and_a_half_kilobytes_is_two_units() -> None:
    """Pitfall 11: a read rounds up to whole steps of 4 KB; `int((kb + 3) / 4)` returns 1 here."""
    assert read_units(4 * _KB + 512, consistent=True) == 2.0


def test_a_write_of_one_point_nine_kilobytes_is_two_units() -> None:
    """Pitfall 11: a write rounds up to whole kilobytes; `int(kb)` returns 1 here."""
    assert write_units(0, 1_946) == 2.0


@pytest.mark.parametrize(("kilobytes", "units"), [(1, 0.5), (4, 0.5), (5, 1.0), (9, 1.5), (20, 2.5)])
def test_an_eventual_read_costs_half_a_unit(kilobytes: int, units: float) -> None:
    """Pitfall 11: half a unit is not rounded: a thousand reads of 1 KB are 500."""
    assert read_units(kilobytes * _KB, consistent=False) == units
    assert 1_000 * read_units(_KB, consistent=False) == 500


@pytest.mark.parametrize(
    ("bytes_", "read", "written"),
    [
        (0, 1.0, 1.0),
        (1, 1.0, 1.0),
        (1_024, 1.0, 1.0),
        (1_025, 1.0, 2.0),
        (4_096, 1.0, 4.0),
        (4_097, 2.0, 5.0),
        (20 * _KB, 5.0, 20.0),
        (400 * _KB, 100.0, 400.0),
    ],
)
def test_a_step_begun_is_paid(bytes_: int, read: float, written: float) -> None:
    """A step is paid whole from its first byte, and nothing at all costs one."""
    assert read_units(bytes_, consistent=True) == read
    assert write_units(0, bytes_) == written


def test_a_write_pays_for_the_larger_image() -> None:
    """Making an item smaller costs what it was; deleting it too."""
    assert write_units(3_000, 100) == write_units(100, 3_000) == write_units(3_000, 0) == 3.0


def test_a_transaction_pays_twice() -> None:
    """Reads in a transaction are consistent ones, twice; writes are twice on the table."""
    assert transact_read_units(4_097) == 4.0
    assert transact_write_units(0, 1_025) == 4.0
    assert transact_write_units(0, 0) == 2.0


@pytest.mark.parametrize(
    ("before", "after", "moved", "same", "units"),
    [
        (None, None, False, False, 0.0),
        (None, 1_500, False, False, 2.0),
        (1_500, None, False, False, 2.0),
        (1_500, 1_500, False, True, 0.0),
        (1_500, 2_500, False, False, 3.0),
        (1_500, 2_500, True, False, 5.0),
    ],
)
def test_an_index_pays_for_what_changes_in_it(
    before: int | None, after: int | None, moved: bool, same: bool, units: float
) -> None:
    """Entering and leaving cost one entry, a change the larger, a move both, and no change nothing."""
    assert index_units(before, after, moved=moved, same=same) == units
