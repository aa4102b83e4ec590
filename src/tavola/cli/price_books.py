"""Price books: the options that choose prices by region and day, by label, or from a file."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tavola.cli.errors import CommandError
from tavola.cli.parameters import Option

if TYPE_CHECKING:
    from tavola.prices import PriceBook

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class PriceOptions:
    """The options that choose a price book."""

    region: Annotated[
        str | None,
        Option(
            "--region",
            metavar="REGION",
            help="Region of the prices: us-east-1, us-west-2 or ap-northeast-2.",
            show_default=DEFAULT_REGION,
        ),
    ] = None
    date: Annotated[
        str | None,
        Option("--date", metavar="YYYY-MM-DD", help="Use the prices of this day. Default: the newest."),
    ] = None
    prices: Annotated[
        str | None,
        Option(
            "--prices", metavar="LABEL|FILE.toml", help="Your own price book, for example for another region."
        ),
    ] = None

    def load_book(self) -> PriceBook:
        """Return the chosen price book."""
        from tavola.prices import labelled_book, load_book, read_book

        if self.prices is not None:
            if self.region is not None or self.date is not None:
                other = "--region" if self.region is not None else "--date"
                raise CommandError(f"--prices and {other} cannot be combined.", "Use one of them.")
            return (
                read_book(Path(self.prices)) if self.prices.endswith(".toml") else labelled_book(self.prices)
            )
        region = self.region or DEFAULT_REGION
        if self.date is None:
            return load_book(region)
        try:
            day = datetime.date.fromisoformat(self.date)
        except ValueError as error:
            raise CommandError(f"{self.date!r} is not a date.", "Use the form --date 2026-08-01.") from error
        return load_book(region, day)
