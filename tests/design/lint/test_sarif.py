"""SARIF: what tools that read such logs rely on, and the lines that findings stand at."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tavola.design.findings import DesignPath
from tavola.design.lint import RULES, SourceFile, find_locations, lint, locate_place, sarif_log
from tavola.design.lint.locations import json_lines
from tavola.model.document import Ignore, Need, write_document
from tests.design.builders import design, entity, gsi, put, table, text

SHOP = design(
    table(
        entity("User", text("user_id"), text("name"), pk="USER#{user_id}", writes=[put("sign up")]),
        indexes=[gsi("by_mail", "GSI1PK"), gsi("by_age", "GSI2PK")],
    ),
    needs=[Need("by name", "User", "name")],
    ignores=[Ignore("unused-index", "Shop.by_age", "a job asks it")],
)
MODULE = """
class Shop(Table):
    by_mail = Gsi(pk="GSI1PK")
    by_age = Gsi(pk="GSI2PK")


class User(
    Entity,
    table=Shop,
    writes=(
        WritePattern("sign up", "put"),
    ),
):
    user_id: Attr[str]

    class Key(PrimaryKey["User"], pk="USER#{user_id}"):
        user_id: str


BY_NAME = Need(
    "by name",
    User,
)
"""
MAY_BE = {"error", "warning", "note", "none"}


def _log(*sources: SourceFile) -> dict[str, Any]:
    report = lint(SHOP, select=["unused-index", "unserved-pattern"])
    return sarif_log(report, tuple(RULES.values()), sources, "1.0")


def test_the_log_has_what_the_form_asks_for() -> None:
    """A log names its version and its tool, each rule once with its help, and each result its rule by name and number."""
    log = _log(SourceFile("shop/model.py", MODULE))

    [run] = log["runs"]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert run["tool"]["driver"]["name"] == "tavola"
    assert len({rule["id"] for rule in rules}) == len(rules) == len(RULES)
    for rule in rules:
        assert rule["help"]["text"]
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in MAY_BE
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in MAY_BE
        assert result["message"]["text"]
        [location] = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "shop/model.py"
    assert json.loads(json.dumps(log)) == log


def test_what_is_ignored_is_suppressed_with_its_reason() -> None:
    """A finding that somebody lets stand is in the log, so that it can be looked at."""
    [run] = _log()["runs"]

    told = {
        result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: result
        for result in run["results"]
    }

    assert told["Shop.by_age"]["suppressions"] == [{"kind": "inSource", "justification": "a job asks it"}]
    assert "suppressions" not in told["Shop.by_mail"]
    assert "physicalLocation" not in told["Shop.by_mail"]["locations"][0]


def test_places_of_a_module_have_their_lines() -> None:
    """Tables, indexes, entities, fields, queries, writes and needs stand where they are declared."""
    found = {name: at.line for name, at in find_locations([SourceFile("model.py", MODULE)]).items()}

    assert found == {
        "Shop": 2,
        "Shop.by_mail": 3,
        "Shop.by_age": 4,
        "User": 7,
        "User: sign up": 11,
        "User.user_id": 14,
        "User.Key": 16,
        "by name": 20,
    }


def test_places_of_a_document_have_their_lines() -> None:
    """In a document a place stands where its object begins."""
    text = json.dumps(write_document(SHOP), indent=2)
    lines = text.splitlines()

    found = find_locations([SourceFile("shop.json", text)])

    for name, sign in (
        ("Shop.by_mail", '"by_mail"'),
        ("User.name", '"name": "name"'),
        ("by name", '"by name"'),
    ):
        assert lines[found[name].line - 1].strip() == "{"
        assert sign in lines[found[name].line]


def test_a_place_without_a_line_takes_that_of_what_it_is_in() -> None:
    """What is inherited stands at its class, and what is nowhere at the top of the first file."""
    sources = [SourceFile("model.py", MODULE)]
    known = find_locations(sources)

    lines = [
        found.line
        for name in ("User.inherited", "User: made elsewhere", "Nobody")
        if (found := locate_place(DesignPath("field", "shop", name), known, sources)) is not None
    ]

    assert lines == [7, 7, 1]
    assert locate_place(DesignPath("table", "shop", "Shop"), {}, []) is None
    assert (
        find_locations(
            [
                SourceFile("broken.py", "class"),
                SourceFile("broken.json", "{"),
                SourceFile("main.tf", "resource {"),
            ]
        )
        == {}
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 1, 4]))
def test_every_value_of_a_json_text_has_a_line(value: Any, indent: int | None) -> None:
    """Each path of a text has the line on which its value begins, however the text is laid out."""
    text = json.dumps(value, indent=indent)

    found = json_lines(text)

    assert found[()] == 1
    assert len(found) == _values(value)
    assert max(found.values()) <= text.count("\n") + 1


def _values(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_values, inner))
