"""`tavola design`: a design as an overview, as a document, as a NoSQL Workbench model, or as OneTable schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

from tavola.cli.designs import DesignArgument, DesignLoadError, is_file, load_design
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import make_folder, write_result
from tavola.cli.output import count_noun, is_terminal, note, say, terminal_width
from tavola.cli.parameters import Option
from tavola.cli.terminal import style

if TYPE_CHECKING:
    from tavola.iac.formats.import_result import SampleItem
    from tavola.model.document import Design, IndexDesign, TableDesign
    from tavola.model.overview import KeyUse


def design(
    design: DesignArgument,
    as_json: Annotated[bool, Option("--json", help="Print the design as a design document.")] = False,
    workbench: Annotated[
        Path | None,
        Option("--workbench", metavar="FILE|-", help="Write a NoSQL Workbench model; - prints it."),
    ] = None,
    base_model: Annotated[
        Path | None,
        Option(
            "--base-model",
            metavar="FILE",
            help="With --workbench: update this model and keep the rest of it.",
        ),
    ] = None,
    onetable: Annotated[
        Path | None, Option("--onetable", metavar="FOLDER", help="Write a OneTable schema for each table.")
    ] = None,
) -> None:
    """Show the entities, keys and indexes of a design.

    Prints a page that fits the terminal, and Markdown into a pipe or file.
    """
    with reporting_errors(f"Cannot show {design}."):
        formats = {"--json": as_json, "--workbench": workbench, "--onetable": onetable}
        chosen = [option for option, value in formats.items() if value]
        if len(chosen) > 1:
            raise CommandError(f"{chosen[0]} and {chosen[1]} cannot be combined.", "Use one of them.")
        if base_model is not None and workbench is None:
            raise CommandError("--base-model needs --workbench.", "Add --workbench FILE, or leave it out.")
        if workbench is not None:
            _write_model(design, workbench, base_model)
        elif onetable is not None:
            _write_schemas(design, onetable)
        elif as_json:
            from tavola.model.document import write_document

            say(json.dumps(write_document(load_design(design)), indent=2))
        else:
            from tavola.model.overview import overview

            loaded = load_design(design)
            say(render_page(loaded, terminal_width()) if is_terminal() else overview(loaded).rstrip())


def render_page(design: Design, width: int) -> str:
    """Return a design for a terminal: each key with its entities, their key templates and access patterns."""
    return "\n\n".join("\n".join(_table_lines(table, width)) for table in design.tables)


def _table_lines(table: TableDesign, width: int) -> Iterator[str]:
    from tavola.model.overview import describe_settings, key_uses

    yield style(f"Table {table.name}", "heading")
    for text in (table.description, describe_settings(table)):
        yield from wrap(text, width)
    yield ""
    yield style(f"Primary key: {' / '.join(table.settings.key_names)}", "heading")
    yield from _use_lines(key_uses(table), width)
    for index in table.indexes:
        kind = "Local index" if index.local else "Index"
        yield ""
        yield from (
            style(line, "heading") for line in wrap(f"{kind} {index.name}: {_spell_index_key(index)}", width)
        )
        projection = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
        yield from wrap(f"Projection: {projection}", width, subsequent_indent="  ")
        yield from _use_lines(key_uses(table, index.name), width)
    if table.collections:
        yield ""
        yield style("Collections: entities that one query returns", "heading")
    for collection in table.collections:
        members = ", ".join(f"{m.entity}{' (many)' if m.many else ''}" for m in collection.members)
        text = f"  {collection.name}: {members}; {'table' if collection.index is None else collection.index} {collection.partition.source}"
        yield from wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


def _use_lines(uses: Sequence[KeyUse], width: int) -> Iterator[str]:
    """Yield an entity with its key templates once, and below it each pattern with its purpose and its arguments."""
    if not uses:
        yield "  No access pattern uses it."
    for entity, group in groupby(uses, key=lambda use: use.entity):
        patterns = list(group)
        yield from _key_lines(entity, patterns[0], width)
        for use in patterns:
            title = f": {use.title}" if use.title else ""
            yield from wrap(
                f"    {use.pattern}, by {use.arguments}{title}", width, subsequent_indent="      "
            )


def _key_lines(entity: str, use: KeyUse, width: int) -> Iterator[str]:
    """Yield an entity's key on one line if it fits, else partition and sort key on a line each."""
    halves = [" + ".join(half) for half in (use.partition, use.sort) if half]
    included = "" if use.included == "all" else f"  ({use.included})"
    line = f"  {entity}  {' / '.join(halves)}"
    if len(line) + len(included) <= width:
        yield line + included
        return
    if len(line) <= width:
        yield line
    else:
        yield f"  {entity}"
        yield from (f"    {'/ ' if number else ''}{half}" for number, half in enumerate(halves))
    if included:
        yield f"    {included.strip()}"


def _spell_index_key(index: IndexDesign) -> str:
    return " / ".join(", ".join(half) for half in (index.hash, index.range) if half)


def _write_model(design: str, path: Path, base_model: Path | None) -> None:
    from datetime import UTC, datetime

    from tavola.clock import SYSTEM_CLOCK
    from tavola.iac.formats import read_design, write_workbench

    samples: Sequence[SampleItem] | None = None
    if is_file(design):
        imported = read_design(design)
        for remark in imported.report:
            note(str(remark))
        loaded, samples = imported.design, imported.samples or None
    else:
        loaded = load_design(design)
    base = None if base_model is None else read_design(base_model)
    if base is not None and base.format != "workbench":
        raise DesignLoadError(
            str(base_model), f"{base_model} is not a NoSQL Workbench model", "Name a NoSQL Workbench model."
        )
    if base is not None and samples == base.samples:
        samples = None  # the base model has them
    now = datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
    model, report = write_workbench(
        loaded,
        samples,
        onto=None if base is None else base.source,
        date=now.strftime("%b %d, %Y, %I:%M %p"),
    )
    write_result(path, json.dumps(model, indent=2, ensure_ascii=False), "--workbench")
    for remark in report:
        note(str(remark))
    if str(path) != "-":
        note(f"Wrote the model to {path}.")


def _write_schemas(design: str, folder: Path) -> None:
    from tavola.iac.formats import write_onetable

    schemas, report = write_onetable(load_design(design))
    make_folder(folder, "--onetable")
    for name, schema in schemas.items():
        write_result(folder / name, json.dumps(schema, indent=2, ensure_ascii=False), "--onetable")
    for remark in report:
        note(str(remark))
    note(f"Wrote {count_noun(len(schemas), 'schema')} to {folder}.")
