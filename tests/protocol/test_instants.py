"""Instants: the ways to write a time, and text that is not a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.protocol.faults import ValidationFault
from tavola.protocol.instants import instant_of, instant_text, parse_instant

AT_US = 1_794_823_200_000_000  # 2026-11-16T10:00:00Z


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("2026-11-16T10:00:00Z", AT_US),
        ("2026-11-16T10:00:00", AT_US),
        (" 2026-11-16 10:00:00+00:00 ", AT_US),
        ("2026-11-16T11:30:00.25+01:30", AT_US + 250_000),
        ("2026-11-16", AT_US - 36_000_000_000),
        ("1794823200", AT_US),
        ("1794823200.0000015", AT_US + 1),
        ("0", 0),
    ],
)
def test_a_text_names_a_moment(text: str, at_us: int) -> None:
    """ISO 8601 and epoch seconds, to the microsecond; without a zone it is UTC."""
    assert parse_instant(text) == at_us
    assert instant_of(text) == at_us


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01", "-5", "1e9", "10000-01-01", "999999999999", "\u0663"]
)
def test_a_text_that_names_none(text: str) -> None:
    """It is refused with what would do."""
    with pytest.raises(ValidationFault, match=r"(write one|a time) such as"):
        parse_instant(text)


def test_pythons_times() -> None:
    """A datetime must have a zone; a number is epoch seconds."""
    there = timezone(timedelta(hours=-8))

    assert instant_of(datetime(2026, 11, 16, 10, tzinfo=UTC)) == AT_US
    assert instant_of(datetime(2026, 11, 16, 2, tzinfo=there)) == AT_US
    assert instant_of(1_794_823_200) == AT_US
    assert instant_of(1_794_823_200.5) == AT_US + 500_000
    with pytest.raises(ValidationFault, match="has no time zone"):
        instant_of(datetime(2026, 11, 16, 10))  # noqa: DTZ001 - the point
    wrong: Any
    for wrong in (-1, float("nan"), float("inf"), 1e20):
        with pytest.raises(ValidationFault, match="between 1970 and 9999"):
            instant_of(wrong)


@pytest.mark.parametrize("wrong", [None, [], object, True, b"2026-11-16"])
def test_what_is_no_time_at_all(wrong: Any) -> None:
    """It is refused in a sentence that says what would do."""
    with pytest.raises(
        ValidationFault, match="is not a time; pass a datetime with a time zone, or a string such as"
    ):
        instant_of(wrong)


@pytest.mark.parametrize("text", ["9999-12-31T12:00:00Z", "1969-12-31T23:59:59.5+00:00", "0001-01-01"])
def test_a_time_out_of_range_is_reported_as_it_was_given(text: str) -> None:
    """Anyone who wrote it finds it in the sentence, and nothing of how it is computed with."""
    moment = datetime.fromisoformat(text)
    asked: list[str | datetime] = [text] if moment.tzinfo is None else [text, moment]
    for each in asked:
        with pytest.raises(ValidationFault, match="is not between 1970 and 9999") as refused:
            instant_of(each)
        assert (text if each is text else moment.isoformat()) in str(refused.value)
        assert "datetime.datetime" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["1" * 5000, "1794823200." + "0" * 5000, "2026-11-16T10:00:00." + "5" * 5000]
)
def test_a_text_longer_than_any_time_is_none(text: str) -> None:
    """It is refused, and only its beginning is reported."""
    with pytest.raises(ValidationFault, match="is not a time; write one such as") as refused:
        parse_instant(text)
    assert len(str(refused.value)) < 250


@given(st.integers(0, 253_370_764_800_000_000))
def test_a_moment_is_written_and_read(at_us: int) -> None:
    """What is reported can be asked, to the microsecond."""
    assert parse_instant(instant_text(at_us)) == at_us
