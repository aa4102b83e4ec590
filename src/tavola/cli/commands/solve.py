"""`tavola solve`: keys and indexes for a design's entities and access patterns, with their price and their reasons."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.files import deliver
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import Option
from tavola.cli.price_books import Date, Prices, Region, load_chosen_book


class Style(StrEnum):
    """How indexes are keyed."""

    AUTO = "auto"
    NATIVE = "native"
    OVERLOADED = "overloaded"


def solve(
    target: DesignArgument,
    as_json: Annotated[
        bool, Option("--json", help="Print the design as a document, with prices and reasons.")
    ] = False,
    as_python: Annotated[
        bool, Option("--python", help="Print the Python module that declares the design.")
    ] = False,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FILE.json|FILE.py",
            help="Write the design into a file too: a document, or with --python or .py a module.",
        ),
    ] = None,
    alternatives: Annotated[
        int, Option("--alternatives", metavar="N", help="Other ways to show of each choice.", min=0)
    ] = 2,
    style: Annotated[
        Style,
        Option(
            "--style",
            help="Index keys of the items' own attributes, of templates, or as gives fewer indexes.",
        ),
    ] = Style.AUTO,
    region: Region = None,
    date: Date = None,
    prices: Prices = None,
) -> None:
    """Print the cheapest keys and fewest indexes that serve every access pattern of a design, and why they do.

    Keys that the design has are taken off first: only entities, access patterns and writes count, and `Need`s beside entities
    that have no key yet. What is asked seldom and written often decides as its rates say; without rates all count the same.
    """
    if as_json and as_python:
        complain("One form at a time.", "--json and --python were both given", "Leave one of them out.")
        raise click.exceptions.Exit(Exit.USAGE)
    with reporting_errors(f"Cannot solve {target}."):
        from tavola.design.solver import as_document, as_text
        from tavola.design.solver import solve as solve_

        solved = solve_(
            load_design(target, unkeyed=True), style=style.value, book=load_chosen_book(region, date, prices)
        )
        module = as_python or (out is not None and out.suffix == ".py")
        if out is not None:
            deliver(out, _module(solved, target) if module else _document(solved), "--out")
        if as_json:
            say_json("tavola.solve/1", as_document(solved, alternatives))
        elif as_python:
            if out is None:
                say(_module(solved, target).rstrip())
        else:
            say(as_text(solved, alternatives))
        if out is not None:
            note(f"The design is in {out}.")


def _module(solved: Any, target: str) -> str:
    from tavola.design.solver import render_declarations

    return render_declarations(solved.design, f"The design of {target}, as `tavola solve` found it.")


def _document(solved: Any) -> str:
    from tavola.model.document import write_document

    return json.dumps(write_document(solved.design), indent=2) + "\n"
