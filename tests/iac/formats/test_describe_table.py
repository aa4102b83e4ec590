"""Descriptions of tables as designs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tavola.backends.embedded import EmbeddedBackend
from tavola.client.connection import Connection
from tavola.engine import Engine
from tavola.iac.formats import FormatError, read_design
from tavola.model.document import IndexDesign

FILES = Path(__file__).parent / "files"


def test_answers_about_one_table_belong_together() -> None:
    """TTL, recovery and tags in the list are of the table before them."""
    matches, blobs = read_design(FILES / "described.json").design.tables
    settings = matches.settings

    assert (settings.ttl, settings.recovery, settings.recovery_days) == ("expiresAt", True, 20)
    assert (settings.tags, settings.replicas) == ({"Team": "games"}, ("us-east-1",))
    assert settings.encryption == "arn:aws:kms:eu-west-1:123456789012:key/1"
    assert (settings.table_class, settings.deletion_protection) == ("STANDARD_INFREQUENT_ACCESS", True)
    assert (settings.read_units, blobs.settings.read_units, blobs.settings.write_units) == (None, 3, 2)
    assert blobs.settings.ttl is None
    assert matches.indexes == (
        IndexDesign("by-round", "by_round", False, ("tournament", "region"), ("round",), "ALL", True),
    )


def test_what_our_own_engine_describes_is_read(tmp_path: Path) -> None:
    """A description of a table that Tavola made gives its keys and indexes back."""
    with Connection(EmbeddedBackend(Engine.open(None)), "memory:") as db:
        db.call(
            "CreateTable",
            {
                "TableName": "one",
                "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "N"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        described = db.call("DescribeTable", {"TableName": "one"})
    (tmp_path / "one.json").write_text(json.dumps(described))

    (table,) = read_design(tmp_path / "one.json").design.tables

    assert (table.name, table.settings.hash, table.key_types) == ("one", "a", {"a": "N"})


def test_what_was_not_asked_is_told(tmp_path: Path) -> None:
    """A description alone says nothing of TTL and recovery, and the report says how to have them."""
    answers = json.loads((FILES / "described.json").read_text())
    (tmp_path / "one.json").write_text(json.dumps(answers[0]))

    report = "\n".join(map(str, read_design(tmp_path / "one.json").report))

    assert "the output of describe-time-to-live is missing" in report
    assert "the output of describe-continuous-backups is missing" in report
    assert "the output of list-tags-of-resource is missing" in report
    (table,) = read_design(tmp_path / "one.json").design.tables
    assert table.settings.unknown[-3:] == ("ttl", "recovery", "tags")


def test_an_answer_before_its_table_is_told(tmp_path: Path) -> None:
    """What comes before any table belongs to none; a table told twice is taken once."""
    answers = json.loads((FILES / "described.json").read_text())
    (tmp_path / "two.json").write_text(json.dumps([answers[1], answers[0], answers[0]]))

    imported = read_design(tmp_path / "two.json")
    report = "\n".join(map(str, imported.report))

    assert len(imported.design.tables) == 1
    assert "ignored: no table precedes it" in report
    assert "an earlier table is also named 'matches'" in report


def test_a_list_without_a_table_is_refused(tmp_path: Path) -> None:
    """Answers about a table without the table are no design."""
    (tmp_path / "none.json").write_text('[{"TimeToLiveDescription": {}}]')

    with pytest.raises(FormatError, match="unknown file format"):
        read_design(tmp_path / "none.json")


def test_what_was_not_asked_is_told_of_each_table(tmp_path: Path) -> None:
    """Answers about one table are none about the next; an index that is being deleted is none; the rest is named."""
    one = json.loads((FILES / "described.json").read_text())[0]
    two = json.loads(json.dumps(one).replace('"matches"', '"games"'))
    two["Table"]["OnDemandThroughput"] = {"MaxReadRequestUnits": 5}
    two["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] = "DELETING"
    beside = [
        {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}},
        {
            "ContinuousBackupsDescription": {
                "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}
            }
        },
    ]
    (tmp_path / "list.json").write_text(json.dumps([one, *beside, two]))
    imported = read_design(tmp_path / "list.json")
    report = "\n".join(map(str, imported.report))

    assert imported.design.table("matches").settings.ttl == "ttl"
    assert "matches: the output of describe" not in report
    assert "games: the output of describe-time-to-live is missing" in report
    assert "games: the output of describe-continuous-backups is missing" in report
    assert imported.design.table("games").indexes == ()
    assert "by-round is being deleted" in report
    assert "[3].Table: OnDemandThroughput is not imported" in report
