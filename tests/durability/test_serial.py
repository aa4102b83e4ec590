"""The checker of histories, on histories whose verdict is known."""

from __future__ import annotations

import pytest

from tests.durability.serial import Transaction, lost, violations


def _write(number: int, *keys: str, at: tuple[int, int | None]) -> Transaction:
    return Transaction(number, appends=keys, asked=at[0], answered=at[1])


def _read(number: int, *, at: tuple[int, int], **lists: tuple[int, ...]) -> Transaction:
    return Transaction(number, reads=dict(lists), asked=at[0], answered=at[1])


def test_a_serial_history_is_accepted() -> None:
    """One after another is an order."""
    history = [
        _write(1, "x", "y", at=(0, 1)),
        _read(2, x=(1,), y=(1,), at=(2, 3)),
        _write(3, "x", at=(4, 5)),
        _read(4, x=(1, 3), y=(1,), at=(6, 7)),
    ]

    assert violations(history) == []
    assert lost(history, {"x": (1, 3), "y": (1,)}) == []


def test_concurrent_transactions_may_take_either_order() -> None:
    """What overlaps in time may be seen or not."""
    history = [_write(1, "x", at=(0, 9)), _read(2, x=(), at=(1, 2)), _read(3, x=(1,), at=(3, 4))]

    assert violations(history) == []


def test_a_write_of_unknown_end_may_be_seen_or_not() -> None:
    """A transaction without an answer has no place in real time."""
    unanswered = _write(1, "x", at=(0, None))

    assert violations([unanswered, _read(2, x=(), at=(5, 6)), _read(3, x=(1,), at=(7, 8))]) == []
    assert lost([unanswered], {}) == []


@pytest.mark.parametrize(
    ("flaw", "history"),
    [
        ("a torn read", [_write(1, "x", "y", at=(0, 9)), _read(2, x=(1,), y=(), at=(1, 2))]),
        ("a stale read", [_write(1, "x", at=(0, 1)), _read(2, x=(), at=(2, 3)), _read(3, x=(1,), at=(4, 5))]),
        (
            "two orders of one list",
            [
                _write(1, "x", at=(0, 9)),
                _write(2, "x", at=(0, 9)),
                _read(3, x=(1, 2), at=(1, 2)),
                _read(4, x=(2, 1), at=(1, 2)),
            ],
        ),
        (
            "two orders of two lists",
            [
                _write(1, "x", at=(0, 9)),
                _write(2, "y", at=(0, 9)),
                _read(3, x=(1,), y=(), at=(0, 9)),
                _read(4, x=(), y=(2,), at=(0, 9)),
            ],
        ),
        ("an append seen twice", [_write(1, "x", at=(0, 1)), _read(2, x=(1, 1), at=(2, 3))]),
        ("an append of nobody", [_read(2, x=(7,), at=(2, 3))]),
        (
            "a refused append",
            [Transaction(1, appends=("x",), asked=0, answered=1, refused=True), _read(2, x=(1,), at=(2, 3))],
        ),
        (
            "writes against real time",
            [_write(1, "x", at=(0, 1)), _write(2, "x", at=(2, 3)), _read(3, x=(2, 1), at=(4, 5))],
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_history_that_no_order_explains_is_refused(flaw: str, history: list[Transaction]) -> None:
    """The checker says so of each anomaly it is fed."""
    assert violations(history), flaw


def test_an_acknowledged_append_that_is_gone_is_found() -> None:
    """A lost update shows at the end."""
    assert lost([_write(1, "x", at=(0, 1))], {"x": ()})
