"""`tavola solve`: find keys and indexes for the entities and access patterns of a design."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import write_result
from tavola.cli.output import note, say, say_json, terminal_width
from tavola.cli.parameters import BUNDLE, AsJson, Option
from tavola.cli.price_books import PriceOptions
from tavola.cli.terminal import style_report

if TYPE_CHECKING:
    from tavola.model.document import Design

_WIDTH_MAX = 110  # longer lines are hard to read


def solve(
    design: DesignArgument,
    as_json: AsJson = False,
    as_python: Annotated[
        bool, Option("--python", help="Print the solution as a Python module that declares it.")
    ] = False,
    output: Annotated[
        Path | None,
        Option(
            "--output", metavar="FILE.json|FILE.py",
            help="Write the solution to a file: a design document, or a module with --python or .py.",
        ),
    ] = None,
    alternatives: Annotated[
        int, Option("--alternatives", metavar="N", help="Number of alternatives to show for each choice.", min=0)
    ] = 2,
    style: Annotated[
        Literal["native", "overloaded", "auto"],
        Option(
            "--style",
            help="Index keys: item attributes (native), key templates (overloaded), or whichever needs fewer indexes.",
        ),
    ] = "auto",
    price_options: PriceOptions = BUNDLE,
) -> None:  # fmt: skip
    """Find the cheapest keys and indexes for access patterns.

    Reads the entities, access patterns, writes and `Need`s of the design and ignores its current keys. Declared rates decide
    whether reads or writes matter more; without rates, all access patterns have the same weight.
    """
    with reporting_errors(f"Cannot solve {design}."):
        from tavola.design.solver import as_document, as_text
        from tavola.design.solver import solve as find_solution

        if as_json and as_python:
            raise CommandError("--json and --python cannot be combined.", "Use one of them.")
        solution = find_solution(
            load_design(design, allow_unkeyed=True), style=style, book=price_options.load_book()
        )
        if output is not None:
            is_module = as_python or output.suffix == ".py"
            text = _render_module(solution.design, design) if is_module else _render_document(solution.design)
            write_result(output, text, "--output")
        if as_json:
            say_json("tavola.solve/1", as_document(solution, alternatives))
        elif not as_python:
            say(style_report(as_text(solution, alternatives, min(terminal_width(), _WIDTH_MAX))))
        elif output is None:
            say(_render_module(solution.design, design).rstrip())
        if output is not None:
            note(f"Wrote the design to {output}.")


def _render_module(design: Design, name: str) -> str:
    from tavola.design.solver import render_declarations

    return render_declarations(design, f"The design of {name}, as solved by `tavola solve`.")


def _render_document(design: Design) -> str:
    from tavola.model.document import write_document

    return json.dumps(write_document(design), indent=2) + "\n"
