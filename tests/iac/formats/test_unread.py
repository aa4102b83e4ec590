"""Whatever stands in a file and is not read is told, whatever it is called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tavola.iac.formats import read_design
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.source_values import TrackedMapping, report_unread

FILES = Path(__file__).parent / "files"
UNHEARD = "UnheardOf"
FREE = (
    "TableData",
    "Tags",
    "tags",
    "Fn::Sub",
    "Fn::GetAtt",
    "items",
    "SampleDataFormats",
)  # any name may stand in them


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Give every object in a value whose members have names of the format's own."""
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            if name not in FREE:
                yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sam.json", ("Resources", "Users", "Properties")),
        ("sam.json", ("Resources", "Sessions", "Properties")),
        ("sam.json", ("Resources", "Welcome", "Properties", "Events", "Changes", "Properties")),
        ("described.json", (0,)),
        ("plan.json", ("planned_values", "root_module", "resources", 0, "values")),
        ("schema.json", ()),
        ("data_model.json", ("tables",)),
        ("players.json", ()),
        ("old_library.json", ("DataModel",)),
    ],
)
def test_a_member_that_nobody_knows_is_told_wherever_it_stands(
    tmp_path: Path, name: str, path: tuple[Any, ...]
) -> None:
    """A name put into any object of a table, a mapping or a model is in the report, with its place."""
    whole = json.loads((FILES / name).read_text())
    root = whole
    for step in path:
        root = root[step]
    silent = []
    for at in range(len(list(objects(root)))):
        changed = deepcopy(whole)
        inner = changed
        for step in path:
            inner = inner[step]
        target = list(objects(inner))[at]
        if any(each.startswith(("Fn::", "Ref")) for each in target):
            continue  # a function, which has one member
        target[UNHEARD] = 7
        (tmp_path / name).write_text(json.dumps(changed))
        if not any(UNHEARD in str(note) for note in read_design(tmp_path / name).report):
            silent.append({each: target[each] for each in list(target)[:4]})

    assert silent == []


def test_only_what_was_asked_for_counts_as_read() -> None:
    """Asking whether a member is there does not read it; reading an object does not read what is in it."""
    raw = TrackedMapping(
        {"a": {"b": 1, "c": 2}, "d": [{"e": 1}, {"e": 2, "f": 3}], "g": 4, "empty": [], "no": None}
    )
    assert "g" in raw
    assert raw["a"]["b"] == raw["d"][0]["e"] == 1
    report = ImportReport()

    report_unread(raw, "top", report, ignore=("f",))

    assert [str(note) for note in report.notes] == [
        "top: g is not imported",
        "top.a: c is not imported",
        "top.d[1]: e is not imported",
    ]
