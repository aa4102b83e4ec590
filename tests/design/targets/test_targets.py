"""Targets: their dated files, what a design needs of them, and the verdict on each need."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tavola.apps.support_desk.model as support_desk
from tavola.design.targets import (
    CapabilityAnswer,
    InvalidTargetFile,
    TargetFile,
    UnknownTarget,
    capabilities,
    check,
    find_target,
    find_uses,
    parse_target,
    targets,
    unmet_findings,
    write_target,
)
from tavola.model.document import Consumer, design_of
from tests.design.builders import decimal, design, entity, gsi, key, lsi, number, put, query, table, text

SUPPORT_DESK = design_of(support_desk)


def test_every_file_is_dated_and_has_a_source() -> None:
    """A target without a date or a source could not be checked; aws is the first of the list."""
    assert next(iter(targets())) == "aws"
    for target in targets().values():
        assert target.checked >= datetime.date(2026, 1, 1)
        assert target.source
        assert set(target.answers) == set(capabilities())


def test_what_differs_is_told() -> None:
    """An answer that is partial or depends on a version says what is otherwise."""
    for target in targets().values():
        for name, answer in target.answers.items():
            assert answer.remark or answer.value in ("yes", "no", "unknown"), (target.name, name)


def test_a_transaction_is_missing_on_alternator() -> None:
    """The support desk opens tickets in a transaction, which Alternator has not: an error with the place."""
    target = find_target("alternator")

    found = {
        (finding.severity, str(finding.place))
        for finding in unmet_findings(check(SUPPORT_DESK, target), target)
        if finding.rule == "target-transactions.write"
    }

    assert ("error", "Ticket: open a ticket") in found


def test_all_is_met_on_aws() -> None:
    """What the applications need, AWS has."""
    assert unmet_findings(check(SUPPORT_DESK, find_target("aws")), find_target("aws")) == ()


def test_unknown_is_said_as_unknown() -> None:
    """What nobody looked at is a warning that says so, and never fine."""
    target = find_target("phoenix")
    unknown = [verdict for verdict in check(SUPPORT_DESK, target) if verdict.answer.value == "unknown"]

    assert unknown
    assert not any(verdict.is_met for verdict in unknown)
    assert all("is unknown" in finding.message for finding in unmet_findings(unknown, target))


@pytest.mark.parametrize(
    ("version", "value"), [("", "version"), ("2024.2", "no"), ("2025.1", "yes"), ("2026.1.3", "yes")]
)
def test_a_version_decides(version: str, value: str) -> None:
    """What came with a version is there from it on, and depends where nobody says which."""
    target = find_target(f"alternator@{version}" if version else "alternator")

    assert target.answer("index.add-later").value == value


def test_uses_name_what_needs_them() -> None:
    """Each part of a design that asks something of the engine is told with its place."""
    many = gsi("many", ["a", "b"], ["c"], projection=("a",))
    near = lsi("near", "c")
    told = design(
        table(
            entity(
                "Thing", text("a", tenant=True), text("b", unique=True), text("c"), decimal("price"), number("rev", lock=True),
                pk="{a}", sk="{b}", keys=[key(many), key(near, "{a}", "{c}")],
                patterns=[query("Many", many, ("a", "b"), "c", transactional=True)],
                writes=[put("make", transactional=True), put("fill", items=25)],
                immutable=True,
            ),
            name=f"{'n' * 193}.dots", indexes=[many, near], ttl="gone", stream="NEW_IMAGE", encryption="alias/k",
            table_class="STANDARD_INFREQUENT_ACCESS", read_units=1, write_units=1, tags={"a": "b"}, replicas=("eu-west-1",),
            consumers=[Consumer("reader", events=("INSERT",))],
        )
    )  # fmt: skip

    used = {use.capability for use in find_uses(told)}

    never = {
        "index.add-later",
        "consumed-capacity",
        "consumed-capacity.indexes",
        "partiql",
        "backups",
        "export",
        "vectors",
    }
    assert used == set(capabilities()) - never


def test_names_are_told_where_one_is_wrong() -> None:
    """A target that there is not is refused with those that there are."""
    with pytest.raises(UnknownTarget, match="choose one of aws, alternator"):
        find_target("oracle")
    with pytest.raises(InvalidTargetFile, match="invalid version"):
        find_target("alternator@new")
    with pytest.raises(InvalidTargetFile, match="invalid version"):
        find_target("alternator@²")
    with pytest.raises(InvalidTargetFile, match="cannot be read"):
        find_target("nowhere.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "invalid TOML"),
        ('name = "x"', "checked must be a date"),
        ("checked = 2026-01-01", "name must be a non-empty string"),
        ('name="x"\ntitle="x"\nsource="x"\nchecked=2026-01-01\ncapabilities=1', "must be a table"),
        (
            'name="x"\ntitle="x"\nsource="x"\nchecked=2026-01-01\n[capabilities.flying]\nvalue="yes"',
            "unknown capability",
        ),
        (
            'name="x"\ntitle="x"\nsource="x"\nchecked=2026-01-01\n[capabilities.ttl]\nvalue="maybe"',
            "must be one of",
        ),
        (
            'name="x"\ntitle="x"\nsource="x"\nchecked=2026-01-01\n[capabilities.ttl]\nvalue="yes"\nremark=1',
            "must be strings",
        ),
        (
            'name="x"\ntitle="x"\nsource="x"\nchecked=2026-01-01\n[capabilities.ttl]\nvalue="yes"\nsince="abc"',
            "since must be a version",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(text: str, told: str) -> None:
    """What a file lacks or has wrongly is told with the file's name."""
    with pytest.raises(InvalidTargetFile, match=rf"mine\.toml.*{re.escape(told)}"):
        parse_target("mine.toml", text)


@given(st.text(min_size=1), st.text())
def test_a_file_says_what_was_written(title: str, told: str) -> None:
    """A target that is written and read again is the same, whatever signs stand in it."""
    target = TargetFile(
        "probed", title, datetime.date(2026, 1, 2), "calls", {"ttl": CapabilityAnswer("partial", told)}
    )

    assert parse_target("probed.toml", write_target(target)) == target


def test_a_probes_file_is_a_target(tmp_path: Path) -> None:
    """What a probe wrote is held against a design like any other target."""
    file = tmp_path / "mine.txt"  # whatever it is called
    file.write_text(
        write_target(
            TargetFile("probed", "mine", datetime.date(2026, 1, 2), "calls", {"ttl": CapabilityAnswer("yes")})
        )
    )

    verdicts = {
        each.use.capability: each.answer.value for each in check(SUPPORT_DESK, find_target(str(file)))
    }

    assert (verdicts["ttl"], verdicts["streams"]) == ("yes", "unknown")
