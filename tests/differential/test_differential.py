"""Tavola beside AWS's DynamoDB Local: the same bodies, and no difference that is not on the list."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.differential.answers import Difference, Order, differences
from tests.differential.generator import World
from tests.differential.known import RowRefused, read_rows
from tests.differential.opponents import Answer, Tavola, dynamodb_local, local_is_here, tavola
from tests.differential.page import PAGE, made_part, table
from tests.differential.runner import Runner
from tests.differential.scripts import ScriptError, corpus, read_script, step

needs_local = pytest.mark.skipif(
    not local_is_here(), reason="no Java, or no jar: `make differential` fetches it"
)
ROWS = read_rows()
SEEDS = range(1, 5)
REQUESTS = 150  # of a seed


@needs_local
def test_the_corpus_shows_the_known_differences_and_no_other() -> None:
    """Every difference is a row of known.toml, and every row still occurs."""
    with tavola() as ours, dynamodb_local() as theirs:
        runner = Runner(ours, theirs, ROWS)
        for _, steps in corpus():
            runner.run(steps)
    gone = [row.what for row in ROWS if row.what not in runner.tally.seen]

    assert not runner.tally.findings, "\n\n".join(finding.told() for finding in runner.tally.findings)
    assert not gone, f"no longer occurs: {gone}"


@needs_local
def test_seeded_requests_differ_only_as_known() -> None:
    """Requests drawn at random show no difference that the list does not have."""
    with tavola() as ours, dynamodb_local() as theirs:
        runner = Runner(ours, theirs, [row for row in ROWS if row.generated])
        for seed in SEEDS:
            runner.run(World(seed).steps(REQUESTS))

    assert not runner.tally.findings, "\n\n".join(finding.told() for finding in runner.tally.findings)


def test_the_page_shows_the_rows() -> None:
    """The table in docs/reference/fidelity.md is the one that known.toml makes."""
    assert made_part(PAGE.read_text(encoding="utf-8")) == table(ROWS)


def test_the_corpus_is_large_enough_and_can_be_read() -> None:
    """Every script is read, and together they ask some hundred things."""
    counts = {noun: len(steps) for noun, steps in corpus()}

    assert sum(counts.values()) > 500
    assert {row.noun for row in ROWS} <= set(counts)


@dataclass
class _Liar:
    """An engine whose answers are changed on their way."""

    inner: Tavola

    def ask(self, operation: str, body: bytes) -> Answer:
        """Return the engine's answer, with one item fewer or another word."""
        answer = self.inner.ask(operation, body)
        if "Items" in answer.body:
            return Answer(200, answer.body | {"Items": answer.body["Items"][1:]})
        if answer.status != 200:
            return Answer(answer.status, answer.body | {"message": "no"})
        return answer


def test_a_planted_difference_is_found() -> None:
    """The runner sees a lost item and another sentence."""
    steps = dict(corpus())["scans"]
    with tavola() as ours, tavola() as theirs:
        runner = Runner(ours, _Liar(theirs), ())
        runner.run(steps)
    found = {(finding.difference.operation, finding.difference.place) for finding in runner.tally.findings}

    assert found == {("Scan", "Items"), ("Scan", "refusal"), ("Query", "refusal")}


def test_an_engine_agrees_with_itself() -> None:
    """Two engines answer a seed alike: nothing that the runner compares is chance."""
    with tavola() as ours, tavola() as theirs:
        runner = Runner(ours, theirs, ())
        runner.run(World(7).steps(REQUESTS))

    assert runner.tally.findings == []
    assert runner.tally.refused < runner.tally.compared * 0.6


def test_order_counts_where_dynamodb_gives_one() -> None:
    """Items of a query are ordered, ties of an index and items of a scan are not; nor are members of a set."""
    one, two = {"h": {"N": "1"}, "pk": {"S": "a"}}, {"h": {"N": "1"}, "pk": {"S": "b"}}
    there, back = Answer(200, {"Items": [one, two]}), Answer(200, {"Items": [two, one]})

    assert len(differences("Query", there, back)) == 2
    assert differences("Query", there, back, order=Order(by=("h",))) == []
    assert differences("Scan", there, back, order=Order(strict=False)) == []
    sets = [Answer(200, {"Item": {"s": {"SS": members}}}) for members in (["a", "b"], ["b", "a"])]
    assert differences("GetItem", *sets) == []


def test_a_row_allows_what_it_says_and_no_more() -> None:
    """`…` stands for anything; operation, place, words and request all have to fit."""
    (row,) = read_rows(
        '[[row]]\nnoun = "n"\nwhat = "w"\noperation = "Scan|Query"\nrequest = "…gsi…"\n'
        'tavola = "a … c"\nlocal = ["b", "d"]\nright = "either"\nsource = "?"'
    )
    fits = Difference("Query", "refusal", "a b c", "d")

    assert row.allows(fits, '{"IndexName": "gsi"}')
    assert not row.allows(fits, "{}")
    assert not row.allows(Difference("Query", "Items", "a b c", "d"), "gsi")
    assert not row.allows(Difference("PutItem", "refusal", "a b c", "d"), "gsi")
    assert not row.allows(Difference("Query", "refusal", "a b c", "e"), "gsi")


@pytest.mark.parametrize(
    "fault",
    ["", 'noun = "n"', 'right = "nobody"', 'colour = "red"'],
    ids=["empty", "part", "right", "member"],
)
def test_a_row_that_is_not_whole_is_refused(fault: str) -> None:
    """A row says everything, and nothing else."""
    whole = (
        'what = "w"\ntavola = ""\nlocal = ""\nsource = ""\n' if "=" in fault and "noun" not in fault else ""
    )

    with pytest.raises(RowRefused):
        read_rows(f"[[row]]\n{whole}{fault}")


def test_a_script_reads_as_json_with_fewer_quotes() -> None:
    """Bare words are text, counts repeat, a star follows pages, and `!` sends what it is."""
    asked = read_script(
        "# A rule.\n"
        "Query* {TableName: t, Limit: 2,\n"
        '    ExpressionAttributeValues: {:a: {N: 5}, :b: {S: "x, y"}}, Deep: [{S: k%d}]^2, Long: ab^2, Flag: {S: =5}}\n'
        "GetItem !{"
    )

    assert asked[0] == step(
        "Query",
        {
            "TableName": "t",
            "Limit": 2,
            "ExpressionAttributeValues": {":a": {"N": "5"}, ":b": {"S": "x, y"}},
            "Deep": [{"S": "k0"}, {"S": "k1"}],
            "Long": "abab",
            "Flag": {"S": 5},
        },
        "A rule.",
        follow=True,
    )
    assert (asked[1].request, asked[1].body) == (None, b"{")
    with pytest.raises(ScriptError, match="script:1"):
        read_script("Query {TableName")
