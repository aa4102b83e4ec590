"""The marker `tavola_emulate`: a test's own engine does on purpose what production may do."""

from __future__ import annotations

from pathlib import Path

import pytest

import tavola

pytest_plugins = ["pytester"]


def test_a_marked_test_meets_hardships_and_another_does_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switches of the mark are on for that test alone, and the mark is known to strict pytest."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(tavola.__file__).parents[1]))
    pytester.makepyfile(
        """
        import pytest

        def left(tavola, tavola_table):
            tavola_table("notes", pk="S")
            writes = [{"PutRequest": {"Item": {"pk": {"S": str(number)}}}} for number in range(9)]
            answer = tavola.call("BatchWriteItem", {"RequestItems": {"notes": writes}})
            return len(answer["UnprocessedItems"].get("notes", []))

        @pytest.mark.tavola_emulate("unprocessed=1")
        def test_hard(tavola, tavola_table):
            assert left(tavola, tavola_table) == 8

        def test_easy(tavola, tavola_table):
            assert left(tavola, tavola_table) == 0
        """
    )
    result = pytester.runpytest_subprocess(
        "-p", "tavola.pytest_plugin", "-W", "error", "--strict-markers", timeout=50
    )

    result.assert_outcomes(passed=2)
