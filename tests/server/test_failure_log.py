"""The log of a store that refuses requests: one line, one a minute, one at the end."""

from __future__ import annotations

import logging

import pytest

from tavola.server.failure_log import QUIET_S, SUMMARY_S, FailureLog

REASON = "shop.db cannot be written: the disk is full"


class Time:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def failures(time: Time, caplog: pytest.LogCaptureFixture) -> FailureLog:
    caplog.set_level(logging.INFO, "tavola.server")
    return FailureLog(time)


def test_many_refusals_are_one_line(failures: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    """The first one is logged with its reason; the others are counted."""
    for _ in range(390):
        failures.count_refusals(REASON)
        failures.update(REASON)

    assert caplog.messages == [f"The store is not ready: {REASON}."]


def test_a_minute_later_they_are_summed_up(
    failures: FailureLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """A minute without refusals adds no line."""
    failures.count_refusals(REASON, 7)
    time.now_s += SUMMARY_S
    failures.update(REASON)
    time.now_s += SUMMARY_S
    failures.update(REASON)
    failures.count_refusals(REASON)
    time.now_s += SUMMARY_S
    failures.update(REASON)

    assert caplog.messages[1:] == [
        f"7 requests were refused in the last minute: {REASON}.",
        f"1 request was refused in the last minute: {REASON}.",
    ]


def test_the_recovery_is_one_line(failures: FailureLog, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    """It comes when nothing was refused for a while, so that an almost full disk does not alternate."""
    failures.count_refusals(REASON)
    for _ in range(20):
        failures.update(None)
        time.now_s += QUIET_S / 2
        failures.count_refusals(REASON)
    assert len(caplog.messages) == 1

    time.now_s += QUIET_S
    failures.update(None)
    failures.update(None)
    assert caplog.messages[1:] == [
        "The store accepts writes again. 21 requests were refused since the last line."
    ]


def test_a_reason_without_a_refusal_is_logged(failures: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    """A file that was deleted is reported before the first write fails, and a second reason is reported too."""
    failures.update("shop.db was deleted")
    failures.update("shop.db was deleted")
    failures.update(REASON)

    assert caplog.messages == [
        "The store is not ready: shop.db was deleted.",
        f"The store is not ready: {REASON}.",
    ]


def test_a_healthy_store_logs_nothing(
    failures: FailureLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """No episode, no line."""
    for _ in range(3):
        failures.update(None)
        time.now_s += SUMMARY_S

    assert caplog.messages == []
