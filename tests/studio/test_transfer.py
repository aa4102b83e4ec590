"""Import and export: every format round-trips; failures are reported by line and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tavola.client.connection import AsyncConnection
from tavola.protocol.faults import ProvisionedThroughputExceededFault
from tavola.studio.api.transfer import (
    ExportItemsRequest,
    ExportTableRequest,
    ImportedPiece,
    ImportPieceRequest,
    check_import,
    export_items,
    export_table,
    run_import,
)
from tavola.studio.edits import delimited
from tavola.studio.edits.delimited import ImportColumn
from tavola.studio.edits.files import FileForm, FileWriter, guess_form, read_piece
from tavola.studio.edits.selections import ItemSelection
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.planner import ItemQuery
from tavola.values import admit_item, equal
from tests.studio.edited import Stage, club, plain_table
from tests.studio.test_items import TEN

FORMS: tuple[FileForm, ...] = get_args(FileForm)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        '"',
        ",",
        "\t",
        "\r\n",
        "\n",
        "a,b",
        '""',
        "null",
        "true",
        "007",
        "=1+1",
        "é",
        "𝔘",
        "\u2028",
        "\x00",
    ]
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6) | st.sampled_from(
    ["a:S", ":", "$binary", "$map", '"', "a,b", "\n", "Item", "<script>", "S"]
)
numbers = st.from_regex(r"-?[1-9][0-9]{0,37}", fullmatch=True) | st.sampled_from(
    ["0", "0.5", "-0.00000000000000000000000000000000000001", "1" * 38, "1" + "0" * 125, "-1.5"]
)
binaries = st.binary(max_size=6).map(lambda data: b64encode(data).decode())
scalars = (
    texts.map(lambda text: {"S": text})
    | numbers.map(lambda number: {"N": number})
    | binaries.map(lambda data: {"B": data})
    | st.booleans().map(lambda truth: {"BOOL": truth})
    | st.just({"NULL": True})
    | st.lists(texts, min_size=1, max_size=3, unique=True).map(lambda members: {"SS": members})
    | st.lists(numbers, min_size=1, max_size=3, unique=True).map(lambda members: {"NS": members})
    | st.lists(binaries, min_size=1, max_size=3, unique=True).map(lambda members: {"BS": members})
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda members: {"L": members})
        | st.dictionaries(names, inner, max_size=3).map(lambda members: {"M": members})
    ),
    max_leaves=6,
)
items = st.builds(
    lambda more, id_, n: {**more, "id": {"S": id_}, "n": {"N": n}},
    st.dictionaries(names, values, max_size=5),
    texts.filter(bool),
    numbers,
)


async def _sent(response: Any) -> str:
    return "".join([chunk.decode() async for chunk in response.body_iterator])


def exported(stage: Stage, table: str, form: FileForm) -> str:
    async def asked() -> str:
        return await _sent(await export_table(stage.studio, ExportTableRequest(table, form)))

    return asyncio.run(asked())


def imported(stage: Stage, table: str, text: str, size: int = 1 << 30, **more: Any) -> list[ImportedPiece]:
    """Import a text in pieces of so many characters, as a page does."""
    done: list[ImportedPiece] = []
    at, length, line, state, form = 0, size, 1, "", more.pop("form", "auto")
    columns: tuple[ImportColumn, ...] = ()
    while at < len(text):
        last = at + length >= len(text)
        request = ImportPieceRequest(
            table,
            text[at : at + length],
            form=form,
            columns=columns,
            line=line,
            state=state,
            last=last,
            **more,
        )
        step = stage.call(run_import, request)
        at += len(
            text[at:].encode("utf-16-le")[: 2 * step.consumed].decode("utf-16-le")
        )  # as JavaScript counts
        line, state, form, columns = step.line, step.state, step.form, step.columns
        done.append(step)
        length = size if step.consumed else length * 2
        if last:
            break
    return done


def same(mine: Iterable[dict[str, Any]], theirs: Iterable[dict[str, Any]]) -> bool:
    def by_key(found: Iterable[dict[str, Any]]) -> dict[Any, Any]:
        return {(item["id"]["S"], item["n"]["N"]): item for item in found}

    one, two = by_key(mine), by_key(theirs)
    return one.keys() == two.keys() and all(equal({"M": one[k]}, {"M": two[k]}) for k in one)


@pytest.mark.parametrize("form", FORMS)
def test_an_exported_table_is_imported_equal(form: FileForm) -> None:
    """All ten types, 38 digits, empty text, HTML and bytes go out and come in the same, in one piece and in many."""
    with club() as stage:
        plain_table(stage)
        plain_table(stage, "whole")
        plain_table(stage, "pieces")
        stage.put({"id": {"S": 'a\n,"𝔘'}, "n": {"N": "1"}, **TEN}, "plain")
        stage.put(
            {"id": {"S": "b"}, "n": {"N": "2"}, "text": {"N": "5"}, "$map": {"M": {"$map": {"S": "x"}}}},
            "plain",
        )
        for number in range(40):
            stage.put({"id": {"S": f"c{number}"}, "n": {"N": "3"}, "text": {"S": f"line\n{number}"}}, "plain")

        text = exported(stage, "plain", form)
        whole = imported(stage, "whole", text)
        pieces = imported(stage, "pieces", text, 100)

        assert same(stage.items("whole"), stage.items("plain"))
        assert same(stage.items("pieces"), stage.items("plain"))
        assert sum(each.written for each in whole) == sum(each.written for each in pieces) == 42
        assert len(pieces) > 5


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(items, max_size=5), st.sampled_from(FORMS), st.booleans())
def test_what_is_written_is_read_back(found: list[dict[str, Any]], form: FileForm, complete: bool) -> None:
    """Any items, in any form, are read back equal: whatever their names and values are."""
    for item in found:
        admit_item(item)
    writer = FileWriter(form, ("id", "n"))
    # A header that is made of the first item alone must take the others too.
    text = writer.begin(found if complete else found[:1], complete=complete)
    text += "".join(map(writer.write, found)) + writer.end()

    piece = read_piece(text, form)

    assert [record.error for record in piece.records] == [""] * len(found)
    read = [record.item for record in piece.records]
    assert all(
        mine is not None and equal({"M": mine}, {"M": other}) for mine, other in zip(read, found, strict=True)
    )


def test_a_table_without_items_goes_out_and_in() -> None:
    """An empty file is a file."""
    with club() as stage:
        plain_table(stage)
        for form in FORMS:
            done = imported(stage, "plain", exported(stage, "plain", form), form=form)
            assert sum(each.written + len(each.failures) for each in done) == 0


def test_a_question_and_a_selection_are_exported() -> None:
    """What a query finds, or what was selected, is written and nothing else."""
    question = ItemQuery("studio-club", conditions=(QueryCondition("points", ">", ({"N": "5"},)),))
    with club() as stage:
        some = ItemSelection("studio-club", question=question)
        one = ItemSelection("studio-club", keys=({"PK": {"S": "MEMBER#m1"}, "SK": {"S": "MEMBER"}},))

        async def lines(selection: ItemSelection) -> list[Any]:
            response = await export_items(stage.studio, ExportItemsRequest(selection, "dynamodb-export"))
            return [json.loads(line)["Item"]["PK"]["S"] for line in (await _sent(response)).splitlines()]

        assert sorted(asyncio.run(lines(some))) == ["MEMBER#m1", "MEMBER#m2"]
        assert asyncio.run(lines(one)) == ["MEMBER#m1"]


def test_an_export_holds_a_page_and_not_the_table() -> None:
    """Each piece of the file is sent before the next page is read."""
    with club(members=0) as stage:
        plain_table(stage)
        for number in range(2_500):
            stage.put({"id": {"S": f"i{number}"}, "n": {"N": "1"}}, "plain")

        async def pieces() -> list[int]:
            response: Any = await export_table(stage.studio, ExportTableRequest("plain", "csv"))
            return [len(chunk) async for chunk in response.body_iterator]

        assert len(asyncio.run(pieces())) == 4


CSV = 'id,n,price,active,note\r\na,1,0.10,true,\r\nb,2,x,false,"two\nlines"\r\nb,2,3,true,late\r\n,4,5,true,none\r\nc,5\r\n'


def test_a_preview_guesses_types_and_reports_lines() -> None:
    """A file without types: numbers and truth are guessed, keys have the table's types, errors have their lines."""
    with club() as stage:
        plain_table(stage)
        stage.put({"id": {"S": "a"}, "n": {"N": "1"}}, "plain")
        response = stage.call(check_import, ImportPieceRequest("plain", CSV))
        types = tuple(
            ImportColumn(c.header, c.attribute, "N" if c.attribute == "price" else c.type)
            for c in response.columns
        )
        chosen = stage.call(check_import, ImportPieceRequest("plain", CSV, columns=types))

        assert response.form == "csv"
        assert [column.type for column in response.columns] == ["S", "N", "S", "BOOL", "S"]
        assert (response.records, response.ready, response.existing) == (5, 3, 1)
        assert [(failure.line, failure.source) for failure in response.failures] == [
            (6, ",4,5,true,none\r\n"),
            (7, "c,5\r\n"),
        ]
        assert response.rows[0].exists
        assert response.rows[0].item == {
            "id": {"S": "a"}, "n": {"N": "1"}, "price": {"S": "0.10"}, "active": {"BOOL": True},
        }  # fmt: skip
        assert (chosen.failures[0].line, "price" in chosen.failures[0].reason) == (3, True)
        assert stage.items("plain") == [{"id": {"S": "a"}, "n": {"N": "1"}}]


@pytest.mark.parametrize(
    ("mode", "written", "skipped", "failed", "stands"),
    [("refuse", 1, 0, 2, "old"), ("skip", 1, 2, 0, "old"), ("replace", 3, 0, 0, "0.10")],
)
def test_what_is_there_already_is_refused_skipped_or_replaced(
    mode: Any, written: int, skipped: int, failed: int, stands: str
) -> None:
    """The mode decides, for items of the table and for keys that the file itself has twice."""
    text = "id:S,n:N,price:S\na,1,0.10\nb,2,1\nb,2,2\n"
    with club() as stage:
        plain_table(stage)
        stage.put({"id": {"S": "a"}, "n": {"N": "1"}, "price": {"S": "old"}}, "plain")
        (done,) = imported(stage, "plain", text, mode=mode)

        assert (done.written, done.skipped, len(done.failures)) == (written, skipped, failed)
        result = {item["id"]["S"]: item["price"]["S"] for item in stage.items("plain")}
        assert result == {"a": stands, "b": "2" if mode == "replace" else "1"}
        assert [failure.line for failure in done.failures] == ([2, 4] if failed else [])


@pytest.mark.parametrize(
    ("form", "text", "line", "words"),
    [
        (
            "json",
            '[\n{"id": "a", "n": 1},\n{"id": "b", "n": },\n{"id": "c", "n": 2}\n]',
            3,
            "Expecting value in line 3",
        ),
        ("json", '{"id": "a", "n": 1}\n{"id": "b", "n": 1, "n": 2}\n{"id": "c", "n": 2}', 2, "duplicate"),
        ("json", '{"id": "a", "n": 1}\n{"id": "b", "n": NaN}\n{"id": "c", "n": 2}', 2, "NaN"),
        (
            "dynamodb-json",
            '{"id":{"S":"a"},"n":{"N":"1"}}\n{"id":"b"}\n{"id":{"S":"c"},"n":{"N":"2"}}',
            2,
            "not a DynamoDB JSON value",
        ),
        (
            "dynamodb-json",
            '{"id":{"S":"a"},"n":{"N":"1"}}\n{"id":{"S":"b"},"n":{"N":2}}\n{"id":{"S":"c"},"n":{"N":"2"}}',
            2,
            "numbers in quotes",
        ),
        ("csv", 'id:S,n:N\na,1\n"b"x,2\nc,2\n', 3, "closing quote"),
        ("csv", "id:S,n:N,s:SS\na,1,\nb,1,[}\nc,2,\n", 3, "must be JSON"),
        ("csv", "id:S,n:N,s:SS\na,1,\nb,1,[]\nc,2,\n", 3, "may not be empty"),
    ],
)
def test_an_invalid_record_is_reported_and_the_rest_is_written(
    form: Any, text: str, line: int, words: str
) -> None:
    """One broken record costs itself and no other."""
    with club() as stage:
        plain_table(stage)
        (done,) = imported(stage, "plain", text, form=form)

        assert sorted(item["id"]["S"] for item in stage.items("plain")) == ["a", "c"]
        assert [(failure.line, words in failure.reason) for failure in done.failures] == [(line, True)]


def test_a_truncated_file_is_reported() -> None:
    """An unclosed list or quote is reported, and complete records are read."""
    cut = read_piece('[\n{"id": "a"}', "json")
    quoted = read_piece('id:S\na\n"b', "csv")

    assert [record.error for record in cut.records] == [
        "", "the list is not closed; the end of the file may be missing",
    ]  # fmt: skip
    assert [record.line for record in quoted.records] == [2, 3]
    assert "unclosed" in quoted.records[1].error


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a,b\n1,2", "csv"),
        ("\ufeffa\tb,c\td\n", "tsv"),
        ('[{"a": 1}]', "json"),
        ('{"a": {"b": 1}}', "json"),
        ('{"a": {"S": "x"}}', "dynamodb-json"),
        ('{"Item": {"a": {"S": "x"}}}', "dynamodb-json"),
        ('{"Item": {"S": "x"}, "n": {"N": "1"}}', "dynamodb-json"),
        ('{"Item": {"a\\"b": {"SS": ["x"', "dynamodb-json"),
        ('{"a": {"BOOL": true}, "b": {"S": "', "dynamodb-json"),
        ('{"a": {"city": "', "json"),
    ],
)
def test_a_form_is_guessed_by_how_a_file_begins(text: str, form: str) -> None:
    """The format of a file is detected from its beginning."""
    assert guess_form(text) == form


def test_an_attribute_called_item_is_no_wrapping() -> None:
    """`{"Item": {"S": …}}` is an item whose key is called Item; AWS's exports have attributes there."""
    bare = read_piece('{"Item":{"S":"x"}}', "dynamodb-json").records[0]
    wrapped = read_piece('{"Item":{"Item":{"S":"x"}}}', "dynamodb-json").records[0]

    assert bare.item == wrapped.item == {"Item": {"S": "x"}}


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"SS": ["x"]}
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"$map": value}}
    return value


HARD: dict[str, Any] = {
    "empty text": {"S": ""}, "empty list": {"L": []}, "empty map": {"M": {}}, "empty bytes": {"B": ""},
    "nested": deep(31), "order": {"SS": ["b", "a", "", "ab"]}, "nul": {"B": "AAAAAA=="},
    "long": {"N": "-0.00000000000000000000000000000000000000000000000000000000000000000012345678901234567890123456789012345678"},
    "small": {"N": "1E-130"}, "great": {"N": "9.9999999999999999999999999999999999999E+125"}, "set": {"NS": ["1E+2", "-0.5", "0"]},
    'a,b;"c"\n\r\td': {"S": 'a,b;"c"\n\r\td'}, "\ufeffmark": {"S": "\ufeffmark"}, "=1+1": {"S": "=1+1"}, "+": {"S": "+1"},
    "-": {"S": "-1"}, "@": {"S": "@x"}, "a:N": {"S": "5"}, ":M": {"S": "rest"}, "Item": {"M": {"Item": {"S": "x"}}},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "type_", "keys"),
    [
        ("\ufeffid", "S", ["a", "\ufeff", '"', "[", "{", "\t,"]),
        ("{id", "N", ["1", "1E+100", "-1.5", "12345678901234567890123456789012345678"]),
        ("a,b", "B", ["AA==", "AAAA", "/+8="]),
        ("[x", "S", ["=cmd()", "new\r\nline", "'"]),
    ],
)
def test_every_value_under_every_key_goes_out_and_in(
    form: FileForm, name: str, type_: str, keys: list[str]
) -> None:
    """A table of one key of any type and name, guessed by how its file begins: what was exported is imported equal."""
    with club(members=0) as stage:
        for table in ("from", "into"):
            stage.engine.call(
                "CreateTable",
                {
                    "TableName": table,
                    "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": type_}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )
        for number, key in enumerate(keys):
            stage.put({name: {type_: key}, **(HARD if number % 2 else {})}, "from")

        done = imported(stage, "into", exported(stage, "from", form), 300)

        assert [failure for each in done for failure in each.failures] == []
        assert stage.items("into") == stage.items("from")


def test_a_quote_that_is_never_closed_costs_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of any length is read on: no piece grows beyond what a record can be."""
    monkeypatch.setattr(delimited, "RECORD_CHARACTERS_MAX", 1_000)
    text = 'id:S,n:N\na,1\n"b,2\nc,3\n' + "d,4\n" * 300

    piece = read_piece(text, "csv", last=False)

    assert (piece.records[1].error, piece.records[1].line) == ("unclosed quote", 3)
    assert piece.records[2].item == {"id": {"S": "c"}, "n": {"N": "3"}}
    assert piece.consumed == len(text)


def test_the_format_of_a_file_is_detected_from_its_header() -> None:
    """Commas in the names of a TSV do not make a CSV of it, nor do tabs in those of a CSV."""
    assert guess_form("a,b,c:S\tn:N\n") == "tsv"
    assert guess_form('"a\tb\tc:S",n:N\n') == "csv"


async def _export(stage: Stage, asked: ExportTableRequest, between: Any) -> list[dict[str, Any]]:
    """Return the items of an export, with something done before each piece is read."""
    response: Any = await export_table(stage.studio, asked)
    text = ""
    async for chunk in response.body_iterator:
        text += chunk.decode()
        between()
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_during_writes_has_every_unchanged_item() -> None:
    """Items that do not change are exported exactly once while others are written and deleted."""
    with club(members=0) as stage:
        plain_table(stage)
        for number in range(2_500):
            stage.put({"id": {"S": f"i{number:04}"}, "n": {"N": "1"}}, "plain")
        rounds = iter(range(100))

        def busy() -> None:
            at = next(rounds)
            for number in range(0, 2_500, 50):
                key = {"id": {"S": f"i{number:04}"}, "n": {"N": "1"}}
                stage.engine.call("DeleteItem", {"TableName": "plain", "Key": key})
                stage.put({"id": {"S": f"new{at}-{number}"}, "n": {"N": "1"}}, "plain")

        result = asyncio.run(_export(stage, ExportTableRequest("plain", "dynamodb-json"), busy))

        ids = [item["id"]["S"] for item in result]
        assert len(ids) == len(set(ids))
        assert {f"i{number:04}" for number in range(2_500) if number % 50} <= set(ids)


def test_a_file_is_an_attachment_that_no_browser_runs() -> None:
    """Whatever items hold, the answer is named by the table, kept as a file, and never taken for a page."""
    with club() as stage:
        plain_table(stage)
        stage.put({"id": {"S": "<script>"}, "n": {"N": "1"}}, "plain")
        arn: Any = stage.engine.call("DescribeTable", {"TableName": "plain"})
        for table in ("plain", arn["Table"]["TableArn"]):
            for form in FORMS:
                sent = asyncio.run(export_table(stage.studio, ExportTableRequest(table, form)))

                name = sent.headers["content-disposition"]
                assert name.startswith("attachment; filename*=UTF-8''plain.")
                assert sent.headers["x-content-type-options"] == "nosniff"
                assert "html" not in sent.headers["content-type"]


def test_a_throttle_is_waited_out() -> None:
    """A table of little capacity costs an export and an import time, and no record."""

    class Throttled:
        """A connection that refuses every second call."""

        def __init__(self, db: Any) -> None:
            self.db, self.calls = db, 0

        async def close(self) -> None:
            """Leave open what it calls through: that is another's."""

        async def call(self, operation: str, request: Any) -> Any:
            self.calls += 1
            if self.calls % 2:
                raise ProvisionedThroughputExceededFault
            return await self.db.call(operation, request)

    with club(members=0) as stage:
        plain_table(stage)
        stage.studio = replace(stage.studio, db=AsyncConnection(Throttled(stage.studio.db)))
        for mode in ("refuse", "replace"):
            text = "".join(json.dumps({"id": {"S": mode}, "n": {"N": str(n)}}) + "\n" for n in range(3))
            (done,) = imported(stage, "plain", text, mode=mode)
            assert (done.written, done.failures) == (3, ())

        assert len(exported(stage, "plain", "dynamodb-json").splitlines()) == 6
