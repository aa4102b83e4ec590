"""Books: the prices that a command line asks for, by region and day, by label, or in a file of one's own."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from tavola.cli.parameters import Option

DEFAULT_REGION = "us-east-1"

Region: TypeAlias = Annotated[
    str | None,
    Option(
        "--region",
        help="Whose prices: of us-east-1, us-west-2 or ap-northeast-2.",
        show_default=DEFAULT_REGION,
    ),
]
Date: TypeAlias = Annotated[
    str | None,
    Option("--date", metavar="YYYY-MM-DD", help="The newest prices of this day or before."),
]
Prices: TypeAlias = Annotated[
    str | None,
    Option(
        "--prices",
        metavar="LABEL|FILE.toml",
        help="A price book of your own, for any other region; or the one that retells a document.",
    ),
]


def load_chosen_book(region: str | None, date: str | None, prices: str | None) -> Any:
    """Return the price book that options ask for; `--prices` stands alone."""
    from tavola.design.cost import CostRefused
    from tavola.prices import labelled_book, load_book, read_book

    if prices is not None:
        beside = [name for name, value in (("--region", region), ("--date", date)) if value is not None]
        if beside:
            raise CostRefused(f"--prices and {beside[0]} cannot both be followed; give one of them")
        return read_book(Path(prices)) if prices.endswith(".toml") else labelled_book(prices)
    if date is None:
        return load_book(region or DEFAULT_REGION)
    try:
        day = datetime.date.fromisoformat(date)
    except ValueError as error:
        raise CostRefused(f"{date!r} is no date; give one as --date 2026-08-01") from error
    return load_book(region or DEFAULT_REGION, day)
