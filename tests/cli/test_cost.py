"""`tavola cost`: a month on a page, as JSON, as rows and as a picture."""

from __future__ import annotations

import csv
import io
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app

DESIGN = """
from tavola import AccessPattern, Attr, Entity, Gsi, PrimaryKey, Query, Table, WritePattern, attr

class Orders(Table, name="orders", recovery=True):
    by_state = Gsi(pk="g1pk", sk="g1sk")

class Order(
    Entity,
    table=Orders,
    items=1_000_000,
    writes=(
        WritePattern("place an order", "put", per_second=20, item_bytes=1_500),
        WritePattern("ship it", "update", ("state",), per_second=20, item_bytes=1_500),
        WritePattern("forget it", "delete"),
    ),
):
    order_id: Attr[str]
    state: Attr[str] = attr(default="new")

    class Key(
        PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER",
        access=AccessPattern("an order", per_second=100, item_bytes=1_500, consistent=True),
    ):
        order_id: str

    class ByState(
        Query["Order"], on=Orders.by_state, pk="STATE#{state}", sk="{order_id}",
        access=AccessPattern("orders of a state", per_second=5, items=25, item_bytes=1_500),
    ):
        state: str
"""
EXAMPLE = [
    "--reads",
    "100",
    "--writes",
    "20",
    "--item-kb",
    "3",
    "--storage-gb",
    "50",
    "--hours-per-day",
    "12",
]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with a design, in the folder where the command is run."""
    (tmp_path / "orders_that_cost.py").write_text(DESIGN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "orders_that_cost"


def run(*arguments: str) -> Any:
    """Return what the command did."""
    return CliRunner().invoke(app, ["cost", *arguments])


def test_a_month_is_a_page(module: str) -> None:
    """A design's month is printed with its lines, patterns, ways, break-even points, changes and assumptions."""
    told = run(module)

    assert told.exit_code == 0, told.output
    page = told.stdout
    for word in (
        "730 hours per month, prices of us-east-1, 2026-08-01, in USD",
        "by_state: index key changes",
        "Order.ByState: orders of a state",
        "Provisioned, reserved 3 years",
        "Break-even points",
        "Possible savings, each on its own",
        "read “an order” with eventual consistency",
        "Order: forget it",
        "--free-tier",
    ):
        assert word in page, word


def test_json_has_the_same_sums(module: str) -> None:
    """The document's lines add up to its total, and its patterns to the requests; the page shows the same to the cent."""
    told = json.loads(run(module, "--json").stdout)

    assert told["schema"] == "tavola.cost/1"
    assert sum(Decimal(line["amount"]) for line in told["lines"]) == Decimal(told["total"])
    requests = ("reads", "writes", "transactions", "key changes")
    paid = sum(Decimal(line["amount"]) for line in told["lines"] if line["what"] in requests)
    assert sum(Decimal(each["amount"]) for each in told["access_patterns"]) == paid
    assert f"${Decimal(told['total']):,.2f}" in run(module).stdout
    assert told["unrated"] == ["Order: forget it"]
    assert (told["book"]["region"], told["book"]["date"], told["hours"]) == ("us-east-1", "2026-08-01", 730)


def test_csv_has_a_row_for_each(module: str) -> None:
    """Every line, every access pattern and the total are rows of one form."""
    rows = list(csv.DictReader(io.StringIO(run(module, "--csv").stdout)))

    lines = [Decimal(row["amount"]) for row in rows if row["row"] == "line"]
    total = next(Decimal(row["amount"]) for row in rows if row["row"] == "total")
    assert sum(lines) == total
    assert len([row for row in rows if row["row"] == "access pattern"]) == 5
    assert {row["date"] for row in rows} == {"2026-08-01"}


def test_a_chart_is_drawn(module: str, tmp_path: Path) -> None:
    """SVG and PNG are drawn by the file's name, the same each time; the SVG has the titles as text."""
    pytest.importorskip("matplotlib")

    for name in ("bill.svg", "bill.png", "again.svg"):
        told = run(module, "--chart", name)
        assert told.exit_code == 0, told.output

    svg = (tmp_path / "bill.svg").read_text()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "place an order" in svg
    assert svg == (tmp_path / "again.svg").read_text()
    assert (tmp_path / "bill.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(each.name for each in tmp_path.iterdir() if "bill" in each.name) == ["bill.png", "bill.svg"]


def test_a_chart_without_its_library_says_what_to_install(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without matplotlib a chart is refused with how to install it; everything else works."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    told = run(module, "--chart", "bill.svg")

    assert told.exit_code == Exit.FAILED
    assert "tavola[charts]" in told.output
    assert run(module).exit_code == 0


def test_the_documents_example_is_computed_again() -> None:
    """The support desk's example at its prices gives its figures, ours, today's, and why they differ."""
    told = run(*EXAMPLE, "--prices", "support-desk")

    assert told.exit_code == 0, told.output
    for figure in (
        "162.00",
        "32.40",
        "$206.90",
        "47.45",
        "28.47",
        "$88.42",
        "118.48",
        "$275.30",
        "$78.20",
        "$50.46",
    ):
        assert figure in told.stdout, figure
    assert "$0.13 per 1,000 RCU-hours instead of $0.65" in " ".join(told.stdout.split())
    document = json.loads(run(*EXAMPLE, "--prices", "support-desk", "--json").stdout)
    assert [Decimal(each["on_demand"]) for each in document["differences"]] == [
        Decimal("206.9"), Decimal("209.6"), Decimal("275.3"), Decimal("78.2"),
    ]  # fmt: skip


def test_the_example_at_todays_prices() -> None:
    """Without a label the same example has today's figures, and not a word of a document that nobody named."""
    told = run(*EXAMPLE)

    assert "prices of us-east-1, 2026-08-01" in told.stdout
    assert "$78.20" in told.stdout
    assert "what differs" not in told.stdout
    rows = list(csv.DictReader(io.StringIO(run(*EXAMPLE, "--csv").stdout)))
    assert Decimal(rows[0]["total"]) == Decimal("78.2")


def test_a_book_of_ones_own(module: str, tmp_path: Path) -> None:
    """A file of the same form is a price book, whatever it is called; an old one is said to be old."""
    (tmp_path / "mine.toml").write_text(
        'region = "moon-1"\ndate = 2020-01-01\ncurrency = "EUR"\nsource = "a letter"\n'
        '[prices.write_request_unit]\nprice = 1\nper = 1_000_000\nunit = "write"\nconfidence = "high"\n'
    )

    told = run(module, "--prices", "mine.toml")

    assert told.exit_code == 0, told.output
    assert "prices of moon-1, 2020-01-01, in EUR" in told.stdout
    assert "days old and may be out of date" in " ".join(told.stdout.split())
    assert "has no price for read_request_unit" in " ".join(told.stdout.split())


def test_measured_sizes_are_taken(module: str) -> None:
    """A table's size that was measured takes the place of its declared items, its indexes in proportion."""
    declared, measured = (
        json.loads(run(module, "--json", *more).stdout) for more in ((), ("--storage-gb", "orders=500"))
    )

    def held(told: dict[str, Any]) -> dict[str | None, Decimal]:
        return {
            each["index"]: Decimal(each["quantity"]) for each in told["lines"] if each["what"] == "storage"
        }

    assert held(measured)[None] == 500
    ratio = held(declared)["by_state"] / held(declared)[None]
    assert held(measured)["by_state"] / 500 == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), Exit.USAGE, "No design and no rates"),
        (("orders_that_cost", "--reads", "1"), Exit.USAGE, "A design and rates cannot be combined"),
        (("orders_that_cost", "--region", "atlantis"), Exit.USAGE, "no price book for region 'atlantis'"),
        (("orders_that_cost", "--date", "2001-01-01"), Exit.USAGE, "2024-10-31"),
        (("orders_that_cost", "--date", "yesterday"), Exit.USAGE, "not a date"),
        (("orders_that_cost", "--prices", "nobody"), Exit.USAGE, "support-desk"),
        (("orders_that_cost", "--prices", "none.toml"), Exit.FAILED, "cannot be read"),
        (("orders_that_cost", "--storage-gb", "basement=1"), Exit.USAGE, "Its tables are orders"),
        (("orders_that_cost", "--storage-gb", "much"), Exit.USAGE, "Use gigabytes"),
        (("orders_that_cost", "--chart", "bill.gif"), Exit.FAILED, ".svg or .png"),
        (("orders_that_cost", "--chart", "no/such/folder/bill.svg"), Exit.FAILED, "cannot be written"),
        (("--reads", "1", "--chart", "bill.svg"), Exit.USAGE, "Name a design"),
        (("--reads", "1", "--mode", "on-demand"), Exit.USAGE, "--mode needs a design"),
        (("--reads", "1", "--sparse-share", "0.2"), Exit.USAGE, "--sparse-share needs a design"),
        (("orders_that_cost", "--item-kb", "3"), Exit.USAGE, "cannot be combined with a design"),
        (
            ("orders_that_cost", "--prices", "patterns", "--region", "us-west-2"),
            Exit.USAGE,
            "--prices and --region",
        ),
        (
            ("orders_that_cost", "--prices", "patterns", "--date", "2026-08-01"),
            Exit.USAGE,
            "--prices and --date",
        ),
        (("orders_that_cost", "--json", "--csv"), Exit.USAGE, "--json and --csv"),
        (("--reads", "1e30"), Exit.FAILED, "reads per second must be at most"),
        (("--reads", "1", "--storage-gb", "1e30"), Exit.FAILED, "too much to compute"),
        (("orders_that_cost", "--storage-gb", "orders=1e20"), Exit.FAILED, "too much to compute"),
        (("json",), Exit.USAGE, "declares no table"),
        (("--reads", "1", "--item-kb", "500"), Exit.FAILED, "at most 400 KB"),
        (("no_such_module",), Exit.USAGE, "There is no module"),
    ],
)
def test_what_cannot_be_computed_is_told(
    module: str, arguments: tuple[str, ...], code: Exit, sentence: str
) -> None:
    """A wrong command, region, date, book, size or file is one clear sentence and a code, never a traceback."""
    told = run(*arguments)

    assert told.exit_code == code, told.output
    assert sentence in told.output
    assert "Traceback" not in told.output


def test_the_calculator_tells_what_a_book_lacks() -> None:
    """Storage that the book has no price for is not told as free of cost."""
    told = run("--reads", "1", "--writes", "1", "--storage-gb", "50", "--region", "ap-northeast-2")

    assert told.exit_code == 0, told.output
    assert "has no price for storage_gb_month" in " ".join(told.stdout.split())
    assert "unknown" in told.stdout


def test_the_calculator_takes_backups_and_the_free_tier() -> None:
    """What is given is in the sums."""

    def total(*more: str) -> Decimal:
        document = json.loads(
            run("--reads", "1", "--writes", "1", "--storage-gb", "50", "--json", *more).stdout
        )
        return Decimal(document["ways"][0]["total"])

    assert total("--backups", "5") - total() == Decimal(25)
    assert total("--free-tier") - total() == Decimal("-6.25")


def test_prices_of_a_day_that_was_asked_for_are_not_old(module: str) -> None:
    """Old prices that were asked for by their date are not called out of date."""
    told = run(module, "--date", "2025-01-01")

    assert "prices of us-east-1, 2024-11-01" in told.stdout
    assert "days old" not in told.stdout


def test_a_discount_above_all_is_refused(module: str, tmp_path: Path) -> None:
    """A book whose discount is more than the price is no book."""
    (tmp_path / "mine.toml").write_text(
        'region = "moon-1"\ndate = 2026-01-01\ncurrency = "EUR"\nsource = "a letter"\n'
        '[prices.write_request_unit]\nprice = 1\nper = 1_000_000\nunit = "write"\nconfidence = "high"\n'
        '[discounts.reserved_one_year]\npercent_max = 250\nterms = "t"\nsource = "s"\nconfidence = "high"\n'
    )

    told = run(module, "--prices", "mine.toml")

    assert told.exit_code == Exit.FAILED
    assert "percent_max must be 0 to 100" in told.output


def test_a_region_without_prices_says_which_have_them(module: str) -> None:
    """No price is invented: the regions that have a book are named, and that a file of one's own is taken."""
    told = run(module, "--region", "eu-west-1")

    assert told.exit_code == Exit.USAGE
    assert "available: ap-northeast-2, us-east-1, us-west-2" in told.stderr
    assert "--prices FILE.toml" in told.stderr


def test_all_savings_are_shown(module: str) -> None:
    """A page shows every saving that `--json` has, and where other keys are weighed."""
    page = " ".join(run(module).stdout.split())
    found = json.loads(run(module, "--json").stdout)

    assert "`tavola solve` compares other keys" in page
    assert found["savings"]
    assert all(each["sentence"] in page for each in found["savings"])
