"""`tavola import` of a design: convert a file of another tool to a design document, and load its sample items."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tavola.cli.errors import CommandError
from tavola.cli.files import write_result
from tavola.cli.output import count_noun, note, remark, say, say_json
from tavola.cli.targets import Target
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.iac.formats import ImportResult


def import_design(
    source: str, output: Path | None, *, as_json: bool, samples: AbstractContextManager[Target] | None
) -> None:
    """Print or write the document of the design in a file; with `samples`, put its sample items into that target."""
    from tavola.iac.formats import FormatError, UnknownFormat, read_design
    from tavola.model.document import write_document

    try:
        imported = read_design(source)
    except FormatError as error:
        if isinstance(error, UnknownFormat):
            error.add_note("to import items into a new table, add --table-name and --partition-key")
        if error.kind is ErrorKind.INVALID:
            error.kind = ErrorKind.USAGE  # the exit code of `tavola lint` for a design that cannot be read
        raise
    for each in imported.report:
        remark(str(each))
    document = write_document(imported.design)
    counts = None
    if samples is not None:
        with samples as target:
            counts = _load_samples(target, imported)
    if output is not None:
        write_result(output, json.dumps(document, indent=2), "--output")
    if as_json:
        report = [{"place": remark.place, "message": remark.message} for remark in imported.report]
        members: dict[str, Any] = {"format": imported.format, "design": document, "report": report}
        if counts is not None:
            members["loaded"], members["kept"] = counts
        say_json("tavola.import-design/1", members)
    elif counts is not None:
        say(_sample_summary(*counts, ", ".join(table.name for table in imported.design.tables)))
    elif output is None:
        say(json.dumps(document, indent=2))
    if output is not None:
        note(f"Wrote the design to {output}. Check it with: tavola lint {output}")


def _sample_summary(loaded: int, kept: int, tables: str) -> str:
    if not loaded and not kept:
        return f"Created {tables}; the file has no sample items."
    unchanged = f"; {count_noun(kept, 'item')} existed already and did not change" if kept else ""
    return f"Loaded {count_noun(loaded, 'sample item')} into {tables}{unchanged}."


def _load_samples(target: Target, imported: ImportResult) -> tuple[int, int]:
    """Create missing tables and put the sample items that do not exist yet; return how many were put and skipped."""
    from tavola.iac import Deployment
    from tavola.protocol.faults import ConditionalCheckFailedFault, Fault

    deployment = Deployment(target.connection, imported.design)
    for comparison in deployment.compare():
        for change in comparison.changes:
            if not comparison.exists and change.kind == "create":
                deployment.apply(change)
    loaded = kept = 0
    for sample in imported.samples:
        settings = imported.design.table(sample.table).settings
        try:
            target.call(
                "PutItem",
                TableName=sample.table,
                Item=dict(sample.item),
                ConditionExpression="attribute_not_exists(#key)",
                ExpressionAttributeNames={"#key": settings.hash},
            )
            loaded += 1
        except ConditionalCheckFailedFault:
            kept += 1
        except Fault as fault:
            key = json.dumps({name: sample.item[name] for name in settings.key_names})
            raise CommandError(
                f"The sample item {key} of {sample.table} cannot be stored: {fault.message}",
                f"Fix it in the file and import again; the {count_noun(loaded, 'item')} before it are stored.",
                ErrorKind.INVALID,
            ) from fault
    return loaded, kept
