"""`tavola import` of a design: a foreign file becomes our document, and its sample items a table's."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tavola.cli.files import deliver
from tavola.cli.output import note, say, say_json
from tavola.cli.targets import Target, TargetRefused


def import_design(
    source: str, out: Path | None, *, as_json: bool, samples: AbstractContextManager[Target] | None
) -> None:
    """Print or write the document of the design in a file; with `samples` put its items into a store or endpoint."""
    from tavola.iac.formats import FormatUnknown, read_design
    from tavola.model.document import write_document

    try:
        imported = read_design(source)
    except FormatUnknown as refused:
        refused.add_note("to import items into a new table, give --table and --hash")
        raise
    for remark in imported.report:
        note(str(remark))
    document = write_document(imported.design)
    loaded = None
    if samples is not None:
        with samples as target:
            loaded = _load(target, imported)
    if out is not None:
        deliver(out, json.dumps(document, indent=2), "--out")
    if as_json:
        report = [{"place": each.place, "message": each.message} for each in imported.report]
        members: dict[str, Any] = {"format": imported.format, "design": document, "report": report}
        if loaded is not None:
            members["loaded"], members["kept"] = loaded
        say_json("tavola.import-design/1", members)
    elif loaded is not None:
        say(_sample_summary(*loaded, ", ".join(table.name for table in imported.design.tables)))
    elif out is None:
        say(json.dumps(document, indent=2))
    if out is not None:
        note(f"The design is in {out}; `tavola lint {out}` judges it.")


def _sample_summary(loaded: int, kept: int, tables: str) -> str:
    if not loaded and not kept:
        verb = "are" if "," in tables else "is"
        return f"There are no sample items in it; {tables} {verb} there without any."
    beside = f"; {kept:,} were there already, and are as they were" if kept else ""
    return f"{loaded:,} sample item{'' if loaded == 1 else 's'} {'is' if loaded == 1 else 'are'} in {tables}{beside}."


def _load(target: Target, imported: Any) -> tuple[int, int]:
    """Make the tables that are not there, put every sample item that is not there, and count both."""
    from tavola.iac import Deployment
    from tavola.protocol.faults import ConditionalCheckFailedFault, Fault

    work = Deployment(target.connection, imported.design)
    for comparison in work.compare():
        for change in comparison.changes:
            if not comparison.exists and change.kind == "create":
                work.apply(change)
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
            raise TargetRefused(
                f"the sample item {key} of {sample.table} is none that can be stored: {fault.message}; mend it in "
                f"the file, and import again: the {loaded:,} before it are there, and stay"
            ) from fault
    return loaded, kept
