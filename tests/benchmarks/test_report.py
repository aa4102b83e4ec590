"""The report: numbers as a person reads them, and a document that reads back."""

from benchmarks.report import failure_lines, markdown, markdown_table, number, summary, text_table
from benchmarks.results import Direct, Failure, Footprint, Results
from tests.benchmarks.test_bars import sample

RESULTS = Results(
    about={"date": "2026-11-01 12:00 UTC", "machine": "two cores"},
    versions={"tavola": "0.1.0", "dynalite": "4.0.0"},
    samples=(
        sample("tavola", 48_000),
        sample("dynalite", 8_000),
        sample("tavola", 900, stage="scale"),
        sample("tavola", 800, stage="scale", items=1_000_000),
        sample("moto", 700, operation="put", errors=4),
        sample("tavola", 7_000, operation="put"),
    ),
    failures=(
        Failure("dynalite", "memory", 10_000, "transact", "status 400"),
        Failure("dynalite", "disk", 10_000, "transact", "status 400"),
        Failure("moto", "disk", 0, "", "it keeps everything in memory"),
    ),
    footprints=(Footprint("peers", "tavola", "memory", 10_000, (0.25,), 42.0, 60.0, 70.0, 1.5, 0.0),),
    direct=(Direct("memory", 10_000, "get", 200_000.0),),
    empty_engine_ms=0.8,
)


def test_a_run_reads_back_from_json() -> None:
    """results.json holds the whole run: the report can be made again from it."""
    assert Results.from_json(RESULTS.to_json()) == RESULTS


def test_numbers_keep_the_digits_they_deserve() -> None:
    """Large rates are whole with separators, small ones keep three digits, none is a dash."""
    assert [number(value) for value in (48_123.4, 2.0149, 71.26, None)] == ["48,123", "2.01", "71.3", "–"]


def test_tables_line_up() -> None:
    """On a terminal names stand to the left and numbers to the right."""
    assert text_table(("op", "rate"), [("GetItem", "1"), ("Scan", "100")]) == (
        "op       rate\nGetItem     1\nScan      100"
    )
    assert markdown_table(("op", "rate"), [("Get", "1")]) == "| op | rate |\n| --- | ---: |\n| Get | 1 |"


def test_the_summary_tells_ratio_and_what_falls_short() -> None:
    """A person at the terminal sees the ratio, the void rate and the bars not met."""
    text = summary(RESULTS)

    assert "6.0×" in text
    assert "failed (4 errors)" in text
    assert "targets met" in text


def test_a_reason_that_holds_twice_is_told_once() -> None:
    """What is missing is named with its reason, places gathered."""
    assert failure_lines(RESULTS) == [
        "dynalite, transact (memory 10,000, disk 10,000): status 400",
        "moto server (disk): it keeps everything in memory",
    ]


def test_the_document_has_every_part() -> None:
    """results.md holds the bars, the rates, the growth, the footprint, the calls and the method."""
    text = markdown(RESULTS)

    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Targets",
        "## Rates",
        "## Ours as the table grows",
        "## Server CPU time, µs per request",
        "## Latency, ms: median and 99th percentile",
        "## Start, memory, disk",
        "## In process",
        "## Not measured",
        "## Method",
    ]
    assert "| GetItem | 48,000 | 8,000 |" in text
