"""`tavola design`: a design on a page, as a document that tools read, as a model of NoSQL Workbench, or as schemas of OneTable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import DesignArgument, DesignRefused, is_file, load_design
from tavola.cli.failures import reporting_errors
from tavola.cli.files import FileRefused, deliver
from tavola.cli.output import note, say
from tavola.cli.parameters import Option


def design(
    target: DesignArgument,
    as_json: Annotated[bool, Option("--json", help="Print the whole design as a document.")] = False,
    workbench: Annotated[
        Path | None,
        Option(
            "--workbench", metavar="FILE|-", help="Write a NoSQL Workbench model to a file, or to the output."
        ),
    ] = None,
    onto: Annotated[
        Path | None,
        Option(
            "--onto",
            metavar="FILE",
            help="With --workbench: the model it came from; what did not change stays.",
        ),
    ] = None,
    onetable: Annotated[
        Path | None,
        Option("--onetable", metavar="DIR", help="Write a OneTable schema for each table into a folder."),
    ] = None,
) -> None:
    """Print which entity uses which key and index, and how; or with --json the whole design for other tools."""
    if onto is not None and workbench is None:
        raise click.BadParameter("--onto says more of --workbench, which is not given")
    forms = [
        word for word, on in (("--json", as_json), ("--workbench", workbench), ("--onetable", onetable)) if on
    ]
    if len(forms) > 1:
        raise click.BadParameter(f"{forms[0]} and {forms[1]} are two forms; give one of them")
    with reporting_errors(f"Cannot show {target}."):
        if workbench is not None:
            _write_model(target, workbench, onto)
            return
        if onetable is not None:
            _write_schemas(target, onetable)
            return
        found = load_design(target)
        if as_json:
            from tavola.model.document import write_document

            say(json.dumps(write_document(found), indent=2))
        else:
            from tavola.model.overview import overview

            say(overview(found).rstrip())


def _write_model(target: str, workbench: Path, onto: Path | None) -> None:
    from datetime import UTC, datetime

    from tavola.clock import SYSTEM_CLOCK
    from tavola.iac.formats import read_design, write_workbench

    samples: Any = None
    if is_file(target):
        imported = read_design(target)
        for remark in imported.report:
            note(str(remark))
        found, samples = imported.design, imported.samples or None
    else:
        found = load_design(target)
    before = None if onto is None else read_design(onto)
    if before is not None and before.format != "workbench":
        raise DesignRefused(str(onto), "it is no model of NoSQL Workbench, which alone can be written onto")
    if before is not None and samples == before.samples:
        samples = None  # they are in it already
    moment = datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
    model, report = write_workbench(
        found,
        samples,
        onto=None if before is None else before.source,
        date=moment.strftime("%b %d, %Y, %I:%M %p"),
    )
    deliver(workbench, json.dumps(model, indent=2, ensure_ascii=False), "--workbench")
    for remark in report:
        note(str(remark))
    if str(workbench) != "-":
        note(f"The model is in {workbench}.")


def _write_schemas(target: str, folder: Path) -> None:
    from tavola.iac.formats import write_onetable

    schemas, report = write_onetable(load_design(target))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileRefused(str(folder), error.strerror or str(error), "--onetable") from error
    for name, schema in schemas.items():
        deliver(folder / name, json.dumps(schema, indent=2, ensure_ascii=False), "--onetable")
    for remark in report:
        note(str(remark))
    note(f"{len(schemas)} schema{'' if len(schemas) == 1 else 's'} in {folder}.")
