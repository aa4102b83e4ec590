"""`tavola design`: a design on a page, or as a document that tools read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tavola.cli.designs import DesignRefused, load_tables
from tavola.cli.failures import told
from tavola.cli.output import say


def design(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:TABLE]|FILE.json",
            help="The module that declares the design, looked for here too, and a table of it; or a document.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole design as a document.")] = False,
) -> None:
    """Print which entity uses which key and index, and how; or with --json the whole design for other tools."""
    with told(f"Cannot show {target}."):
        found = _design(target)
        if as_json:
            from tavola.model.document import write_document

            say(json.dumps(write_document(found), indent=2))
        else:
            from tavola.model.overview import overview

            say(overview(found).rstrip())


def _design(target: str) -> Any:
    from tavola.model.document import design_of, read_document

    if target.endswith(".json"):
        try:
            return read_document(json.loads(Path(target).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise DesignRefused(target, str(error)) from error
    tables = load_tables(target)
    module, _, name = target.partition(":")
    return design_of(*tables) if name else design_of(sys.modules[module])
