"""The design in the studio: drawn, judged, mended, solved, written for other tools and read from them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola.backends.errors import EndpointUnreachable
from tavola.cli.main import app
from tavola.design.lint import RULES, SourceFile
from tavola.engine import Engine
from tavola.handles import AsyncConnection
from tavola.iac import PlanRefused
from tavola.iac.formats import read_design_text
from tavola.model.document import Design, read_document, write_document
from tavola.protocol.faults import AccessDeniedFault
from tavola.studio.designs import DesignAnalysis, analysis, diff_lines
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, TablesLocation
from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.lint.cases.unused_index import FOUND as UNUSED
from tests.design.seeds import support_desk
from tests.studio.asking import Asking

FILES = Path(__file__).parents[1] / "iac/formats/files"
DESK: Design = next(each for each in vars(support_desk).values() if isinstance(each, Design))
HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine without a table."""
    with closing(Engine.open()) as found:
        yield found


@pytest.fixture
def desk(engine: Engine) -> Asking:
    """A studio of a design that has many defects."""
    return Asking(engine, DESK, designs=("desk",))


@pytest.fixture
def desk_file(tmp_path: Path) -> str:
    """The same design as a document in a file."""
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(write_document(DESK), indent=2))
    return str(path)


def _command(*arguments: str) -> str:
    return CliRunner().invoke(app, list(arguments)).stdout


def _case(name: str) -> Any:
    return import_module(f"tests.design.lint.cases.{name.replace('-', '_')}")


def _nodes(picture: dict[str, Any]) -> set[str]:
    found = {"design"}
    for each in picture["tables"]:
        found.add(each["id"])
        found |= {node["id"] for part in ("entities", "keys", "indexes") for node in each[part]}
    return found


def test_everything_of_a_design_is_drawn_once(desk: Asking) -> None:
    """Each entity, each key and each index is a node, and each key leads from an entity to an index."""
    picture = desk.ask("POST /design")

    tickets = next(each for each in picture["tables"] if each["name"] == "prod-tickets-unified")
    told = DESK.table("prod-tickets-unified")
    assert [each["name"] for each in tickets["entities"]] == [each.name for each in told.entities]
    assert [each["name"] for each in tickets["indexes"]] == [told.name, *(each.name for each in told.indexes)]
    assert len(tickets["keys"]) == sum(1 + len(each.keys) for each in told.entities)
    ids = [node["id"] for part in ("entities", "keys", "indexes") for node in tickets[part]]
    assert len(ids) == len(set(ids))
    assert {each["entity"] for each in tickets["keys"]} <= set(ids)
    assert {each["index"] for each in tickets["keys"]} <= set(ids)


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_reached_from_the_node_of_its_finding(name: str, engine: Engine) -> None:
    """A finding of any rule is pinned on a node that is drawn, and its remedy is a change that helps, or the rule's words."""
    case = _case(name)
    asking = Asking(engine, case.FOUND)
    production = getattr(case, "PRODUCTION", False)
    nodes = _nodes(asking.ask("POST /design"))

    report = asking.ask("POST /design/findings", {"production": production})

    found = [each for each in report["findings"] if each["rule"] == name]
    assert found
    for each in found:
        assert each["node"] in nodes
        remedy = asking.ask("POST /design/remedy", {"finding": each["id"], "production": production})
        assert remedy["rule"]["name"] == name
        assert remedy["rule"]["why"]
        assert remedy["rule"]["instead"]
        if remedy["summary"]:
            assert {line["sign"] for line in remedy["lines"]} & {"+", "-"}
            assert each["id"] in {gone["id"] for gone in remedy["gone"]}
            assert not [new for new in remedy["new"] if new["severity"] == "error"]


def test_a_finding_in_other_words_has_neither_come_nor_gone(desk: Asking) -> None:
    """A remedy that changes what another finding tells of (an index more in a list) ends that finding no more than it brings it."""
    report = desk.ask("POST /design/findings", {"production": True})
    told = {
        each["place"]: desk.ask("POST /design/remedy", {"finding": each["id"], "production": True})
        for each in report["findings"]
        if each["rule"] in ("wrong-order", "partition-inequality", "unserved-pattern")
    }

    assert len(told) >= 3
    for remedy in told.values():
        ended = {(each["rule"], each["place"]) for each in remedy["gone"]}
        assert not ended & {(each["rule"], each["place"]) for each in remedy["new"]}
        left = len(report["findings"]) - len(remedy["gone"]) + len(remedy["new"])
        assert left == sum(remedy["counts"].values())
    assert [each["rule"] for each in told["recent tickets"]["gone"]] == ["unserved-pattern"]


def test_sums_are_of_the_tables_region(engine: Engine) -> None:
    """A month is told at the prices of where the tables are, and at those that are asked for."""
    there = Asking(engine, UNUSED, where=TablesLocation("memory", "memory:", "us-west-2"))
    [finding] = [
        each for each in there.ask("POST /design/findings")["findings"] if each["rule"] == "unused-index"
    ]

    own = there.ask("POST /design/remedy", {"finding": finding["id"]})
    other = there.ask("POST /design/remedy", {"finding": finding["id"], "region": "us-east-1"})

    assert "us-west-2" in own["prices"]
    assert "us-east-1" in other["prices"]


def test_an_altered_design_can_be_asked_about_in_its_turn(engine: Engine) -> None:
    """The document of a remedy comes along with the next question: the finding is gone, and the month is its own."""
    asking = Asking(engine, UNUSED)
    [finding] = [
        each for each in asking.ask("POST /design/findings")["findings"] if each["rule"] == "unused-index"
    ]
    remedy = asking.ask("POST /design/remedy", {"finding": finding["id"]})

    again = asking.ask("POST /design/findings", {"document": remedy["document"]})

    assert "unused-index" not in {each["rule"] for each in again["findings"]}
    assert again["counts"] == remedy["counts"]
    read_document(json.loads(remedy["document"]))
    assert any("by_email" in line["text"] for line in remedy["python"] if line["sign"] == "-")


def test_a_finding_that_is_not_there_is_said_so(desk: Asking) -> None:
    """An id of another design's finding is refused."""
    with pytest.raises(RequestRefused, match="no finding of this id"):
        desk.ask("POST /design/remedy", {"finding": "unused-index-0"})


def test_findings_are_those_of_the_command_line(desk: Asking, desk_file: str) -> None:
    """What `tavola lint --json` prints is what the page gets, with ids and nodes beside."""
    command = json.loads(_command("lint", desk_file, "--json", "--production"))

    report = desk.ask("POST /design/findings", {"production": True})

    assert len(report["findings"]) > 30
    beside = ("id", "node", "mechanical", "reason", "file", "line")
    told = [
        {word: value for word, value in each.items() if word not in beside} for each in report["findings"]
    ]
    assert told == [
        {word: value for word, value in each.items() if word not in beside} for each in command["findings"]
    ]
    assert report["counts"] == command["counts"]


def test_a_finding_has_the_line_of_its_source(engine: Engine) -> None:
    """Where the studio knows the files of a design, a finding names its file and line."""
    told = json.dumps(write_document(UNUSED), indent=2)
    asking = Asking(
        engine, UNUSED, declared=(DeclaredDesign("shop.json", UNUSED, (SourceFile("shop.json", told),)),)
    )

    found = asking.ask("POST /design/findings", {"design": "shop.json"})["findings"]

    assert {each["file"] for each in found} == {"shop.json"}
    assert all(each["line"] >= 1 for each in found)


def test_rules_are_told_as_the_command_line_explains_them(desk: Asking) -> None:
    """Every rule has its page: what, why, an example and what to do instead."""
    command = json.loads(_command("explain", "--json"))["rules"]

    pages = desk.ask("GET /design/rules")["rules"]

    assert len(pages) == len(RULES)
    mechanical = [each.pop("mechanical") for each in pages]
    assert sorted(command, key=lambda each: each["name"]) == pages
    assert sum(mechanical) >= 55


def test_the_offer_is_that_of_the_command_line(engine: Engine, tmp_path: Path) -> None:
    """`tavola solve` prints the same design, the same prices and the same module."""
    by_mail = gsi("by_mail", "GSI1PK")
    shop = design(
        table(
            entity(
                "User", text("user_id"), text("mail"), pk="USER#{user_id}", keys=[key(by_mail, "MAIL#{mail}")],
                patterns=[query("ByMail", by_mail, "mail", per_second=5)],
            ),
            indexes=[by_mail],
        )
    )  # fmt: skip
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(write_document(shop)))
    command = json.loads(_command("solve", str(path), "--json", "--alternatives", "3"))
    module = _command("solve", str(path), "--python")

    offer = Asking(engine, shop, designs=(str(path),)).ask("POST /design/solve")

    assert {word: offer[word] for word in command if word != "schema"} == {
        word: told for word, told in command.items() if word != "schema"
    }
    assert offer["python"].rstrip() == module.rstrip()
    assert offer["indexes_before"] == 1


def test_a_question_that_no_key_serves_is_refused_by_name(desk: Asking) -> None:
    """The solver's refusal names the question and what to do."""
    with pytest.raises(RequestRefused, match="tickets of a tier") as refused:
        desk.ask("POST /design/solve")
    assert refused.value.problem.status == 409


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ("terraform", ["iac", "terraform"]),
        ("cloudformation", ["iac", "cloudformation"]),
        ("cloudformation-json", ["iac", "cloudformation", "--format", "json"]),
        ("cdk", ["iac", "cdk"]),
        ("policies", ["iac", "policies"]),
        ("onetable", ["design"]),
        ("document", ["design", "--json"]),
    ],
)
def test_files_are_those_of_the_command_line(
    form: str, command: list[str], desk: Asking, desk_file: str, tmp_path: Path
) -> None:
    """Each file has the very text that the command writes."""
    given = desk.ask("POST /design/infrastructure", {"form": form})
    files = {each["name"]: each["text"] for each in given["files"]}

    if form in ("terraform", "cdk", "onetable"):
        _command(*command, desk_file, "--onetable" if form == "onetable" else "--out", str(tmp_path / "out"))
        written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
        assert {name: text.rstrip("\n") for name, text in files.items()} == {
            name: written[name].rstrip("\n") for name in files
        }
        assert set(files) == set(written)
    else:
        [told] = files.values()
        assert told.rstrip("\n") == _command(*command, desk_file).rstrip("\n")


def test_options_of_infrastructure_are_followed(desk: Asking) -> None:
    """Alarms and policies are left out where they are not wanted, and the command that does the same says so."""
    whole = desk.ask("POST /design/infrastructure", {"form": "cloudformation"})
    bare = desk.ask(
        "POST /design/infrastructure", {"form": "cloudformation", "alarms": False, "policies": False}
    )

    assert "AWS::CloudWatch::Alarm" in whole["files"][0]["text"]
    assert "AWS::CloudWatch::Alarm" not in bare["files"][0]["text"]
    assert bare["command"] == "tavola iac cloudformation desk --out infra --no-alarms --no-policies"


def test_a_command_is_quoted_for_the_shell(engine: Engine) -> None:
    """What is to be copied into a shell is one word where a file's name has several; what is no key is refused."""
    asking = Asking(engine, UNUSED, designs=("my shop.json",))
    merged = Asking(engine, DESK, designs=("one", "two"))

    told = asking.ask("POST /design/infrastructure", {"form": "terraform", "key": "alias/x"})
    brought = asking.ask(
        "POST /design/infrastructure", {"form": "policies", "document": json.dumps(write_document(UNUSED))}
    )
    several = merged.ask("POST /design/infrastructure", {"form": "policies"})
    with pytest.raises(PlanRefused, match="is no key"):
        asking.ask("POST /design/infrastructure", {"form": "terraform", "key": "alias/x; rm -rf ~"})

    assert told["command"] == "tavola iac terraform 'my shop.json' --out infra --kms-key alias/x"
    assert brought["command"] == several["command"] == "tavola iac policies design.json"


def test_a_workbench_model_comes_back(desk: Asking) -> None:
    """What is exported for NoSQL Workbench is read again with the same tables, indexes and entities."""
    given = desk.ask("POST /design/infrastructure", {"form": "workbench"})

    back = desk.ask("POST /design/import", {"text": given["files"][0]["text"], "name": "model.json"})

    again = read_design_text(back["document"], "design.json").design
    assert back["format"] == "workbench"
    assert [each.name for each in again.tables] == [each.name for each in DESK.tables]
    for told, was in zip(again.tables, DESK.tables, strict=True):
        assert {each.name for each in told.indexes} == {each.name for each in was.indexes}
        assert {each.name.lower() for each in told.entities} == {each.name.lower() for each in was.entities}


@pytest.mark.parametrize(
    ("file", "format_"),
    [("onetable.json", "onetable"), ("schema.json", "mcp-schema")],
)
def test_a_file_of_another_tool_becomes_a_design(file: str, format_: str, desk: Asking) -> None:
    """The file's text is read, told of, and drawn by the document that comes back; the studio's own design stays."""
    found = desk.ask("POST /design/import", {"text": (FILES / file).read_text(), "name": file})

    picture = desk.ask("POST /design", {"document": found["document"]})

    assert found["format"] == format_
    assert found["report"]
    assert [each["name"] for each in picture["tables"]] == found["tables"]
    assert picture["own"] is False
    assert desk.ask("POST /design")["own"] is True


@pytest.mark.parametrize(
    ("told", "name"),
    [("", ""), ("{", "x.json"), ('{"a": 1}', "x.json"), ("resource x", "main.tf"), ("[" * 5000, "x.json")],
)
def test_what_is_no_design_is_refused_with_what_to_give(told: str, name: str, desk: Asking) -> None:
    """Text of nothing known is told apart from a failure."""
    with pytest.raises(RequestRefused) as refused:
        desk.ask("POST /design/import", {"text": told, "name": name})
    assert refused.value.problem.code == "import-refused"
    assert "Terraform" in refused.value.problem.remedy


def test_a_document_that_is_none_is_refused_wherever_it_comes_along(desk: Asking) -> None:
    """A broken document is refused by each question alike."""
    for endpoint, more in (
        ("POST /design", {}),
        ("POST /design/findings", {}),
        ("POST /design/solve", {}),
        ("POST /design/targets", {}),
        ("POST /design/infrastructure", {"form": "terraform"}),
    ):
        for text_ in ('{"format": "tavola-design"}', ""):
            with pytest.raises(RequestRefused) as refused:
                desk.ask(endpoint, {"document": text_, **more})
            assert refused.value.problem.code == "document-refused"


def test_names_with_markup_stay_names(engine: Engine) -> None:
    """A name that is HTML goes through every answer as text."""
    odd = design(table(entity(HTML, text("user_id"), pk="USER#{user_id}"), label=HTML, name="shop"))
    document = json.dumps(write_document(odd))
    asking = Asking(engine)

    found = asking.ask("POST /design/import", {"text": document, "name": "odd.json"})
    picture = asking.ask("POST /design", {"document": found["document"]})

    assert picture["tables"][0]["entities"][0]["name"] == HTML
    assert asking.ask("POST /design/findings", {"document": found["document"]})["findings"]


def test_a_table_that_stands_becomes_a_design_and_is_held_against_one() -> None:
    """What DynamoDB describes is a design without entities; what it has otherwise than a design is told, with its node."""
    by_mail = gsi("by_mail", "GSI1PK")
    shop = design(
        table(
            entity("User", text("user_id"), pk="USER#{user_id}"), indexes=[by_mail], deletion_protection=False
        )
    )
    with closing(Engine.open()) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "shop",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
            },
        )
        asking = Asking(engine, shop)

        live = asking.ask("GET /design/live", {"table": "shop"})
        drift = asking.ask("POST /design/drift")["tables"]
        missing = Asking(engine, DESK).ask("POST /design/drift", {"table": "prod-metrics"})["tables"]

    assert live["tables"] == ["shop"]
    assert live["entities"] == 0
    changes = {each["kind"]: each for each in drift[0]["changes"]}
    assert drift[0]["exists"] is True
    assert changes["add index"]["node"] == "index:shop/by_mail"
    assert [each["exists"] for each in missing] == [False]


class _Bad:
    """Tables that fail as they are told to: at one operation, or at every one."""

    def __init__(self, db: Any, error: Exception, operation: str = "") -> None:
        self.db, self.error, self.operation = db, error, operation

    async def close(self) -> None:
        """Leave open what it calls through: that is another's."""

    async def call(self, operation: str, request: Mapping[str, Any]) -> Any:
        if self.operation in ("", operation):
            raise self.error
        return await self.db.call(operation, request)


class _BadDay(Asking):
    """A studio whose tables do not answer."""

    def failing(self, error: Exception, operation: str = "") -> _BadDay:
        self.error, self.operation = error, operation
        return self

    def studio(self, db: Any) -> Any:
        return super().studio(AsyncConnection(_Bad(db, self.error, self.operation)))


def test_a_lost_endpoint_leaves_the_design_to_be_looked_at(engine: Engine) -> None:
    """Drawing and judging ask no table; what is held against one tells the problem in its place."""
    lost = _BadDay(engine, UNUSED).failing(EndpointUnreachable("http://127.0.0.1:1", "refused"))

    picture = lost.ask("POST /design")
    [drift] = lost.ask("POST /design/drift")["tables"]

    assert picture["tables"]
    assert drift["problem"]["code"] == "endpoint-lost"
    assert drift["problem"]["remedy"]


def test_what_may_not_be_asked_of_a_table_is_not_known_and_what_is_lost_is_told(engine: Engine) -> None:
    """A denied DescribeTimeToLive leaves the rest of the table to be shown; an endpoint that goes away is a problem."""
    with closing(Engine.open()) as own:
        own.call(
            "CreateTable",
            {
                "TableName": "shop",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "N"}],
            },
        )
        day = _BadDay(own)

        denied = day.failing(AccessDeniedFault("no"), "DescribeTimeToLive").ask(
            "GET /design/live", {"table": "shop"}
        )
        with pytest.raises(EndpointUnreachable):
            day.failing(EndpointUnreachable("http://127.0.0.1:1", "refused"), "DescribeTimeToLive").ask(
                "GET /design/live", {"table": "shop"}
            )

    assert denied["report"][0]["place"] == "DescribeTimeToLive"
    assert "AccessDeniedException" in denied["report"][0]["message"]
    assert "Not known" in str(Asking(engine).ask("POST /design", {"document": denied["document"]}))


def test_targets_are_checked_as_the_command_line_does(desk: Asking, desk_file: str) -> None:
    """Each cell has the verdict of `tavola check`, with a reason's source and its date."""
    command = json.loads(_command("check", desk_file, "--target", "alternator", "--json"))
    matrix = desk.ask("POST /design/targets")

    said = {each["capability"]: (each["value"], each["told"], each["source"]) for each in command["verdicts"]}
    cells = {
        row["name"]: next(each for each in row["cells"] if each["target"] == "alternator")
        for row in matrix["rows"]
    }
    assert {name: (each["value"], each["text"], each["source"]) for name, each in cells.items()} == said
    assert all(each["checked"] and each["source"] for row in matrix["rows"] for each in row["cells"])
    assert matrix["targets"][0]["name"] == "aws"


def test_tables_with_an_entity_of_one_name_are_two_designs(engine: Engine) -> None:
    """Designs that were put together are judged apart: each table has its own."""
    one = table(entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"), label="First")
    other = table(entity("Ticket", text("caller_id"), pk="C#{caller_id}"), label="Second")
    asking = Asking(engine, Design((one, other)))

    picture = asking.ask("POST /design", {"table": "second"})

    assert picture["names"] == ["First", "Second"]
    assert [each["name"] for each in picture["tables"]] == ["second"]
    assert [tuple(each) for each in picture["tables_of"]] == [("first", "First"), ("second", "Second")]


def test_a_studio_without_a_design_says_so(engine: Engine) -> None:
    """Nothing is drawn where nothing is declared, and a name that is none is told."""
    with pytest.raises(RequestRefused, match="no design"):
        Asking(engine).ask("POST /design")
    with pytest.raises(RequestRefused, match="no such design"):
        Asking(engine, DESK, designs=("desk",)).ask("POST /design", {"design": "other"})


def test_a_difference_shows_what_changed_and_a_little_around() -> None:
    """Lines that stay are left out, but for three on either side, and that is marked."""
    old = [str(number) for number in range(30)]
    new = [*old[:15], "new", *old[16:]]

    lines = diff_lines("\n".join(old), "\n".join(new))

    assert [f"{line.sign}{line.text}" for line in lines] == [
        " …", " 12", " 13", " 14", "-15", "+new", " 16", " 17", " 18", " …",
    ]  # fmt: skip
    assert diff_lines("same", "same") == ()


def test_a_long_difference_says_how_much_is_left_out() -> None:
    """Lines that repeat by the thousand are compared in a moment, and what is not shown is counted or said."""
    row = ["{", '"type": "text",', '"nullable": false', "},"]
    old = [line for number in range(3000) for line in (f'"name": "{number}",', *row)]
    renamed = [line.replace('"name"', '"attribute"') for line in old]
    longer = [*old, *old]

    lines = diff_lines("\n".join(old), "\n".join(renamed))
    inserted = diff_lines("\n".join(longer), "\n".join(["new", *longer[:-1], "other"]))

    assert len(lines) == 2001
    assert "lines of the difference more" in lines[-1].text
    assert [line.text for line in inserted if line.sign == "+"] == ["new"]
    assert not [line for line in inserted if line.sign == "-"]
    assert "too much to be compared" in inserted[-1].text


def test_a_long_search_holds_up_nobody_else() -> None:
    """Who asks the same waits and gets the same; who asks something else of the design does not wait."""
    about, begun, go_on = DesignAnalysis("desk", DESK), threading.Event(), threading.Event()
    found: list[object] = []

    def search() -> object:
        begun.set()
        assert go_on.wait(10)
        return object()

    searchers = [
        threading.Thread(target=lambda: found.append(about.cached("solved", search))) for _ in range(2)
    ]
    for each in searchers:
        each.start()
    assert begun.wait(10)

    quick = about.cached("text", lambda: "at once")

    assert quick == "at once"
    assert not found
    go_on.set()
    for each in searchers:
        each.join(10)
    assert len(found) == 2
    assert found[0] is found[1]


def test_what_is_kept_of_a_design_is_bounded(desk: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of answers the last are kept, and of designs that questions brought."""
    about = DesignAnalysis("desk", DESK)
    for number in range(500):
        about.cached(("remedy", number), lambda: "a whole document")
    assert about.cached(("remedy", 499), lambda: "another") == "a whole document"
    assert about.cached(("remedy", 0), lambda: "another") == "another"

    read: list[str] = []
    real = analysis._read_document

    def reading(text_: str) -> DesignAnalysis:
        read.append(threading.current_thread().name)
        return real(text_)

    monkeypatch.setattr(analysis, "_read_document", reading)
    documents = [
        json.dumps(write_document(design(table(entity("User", text("id"), pk="U#{id}"), label=f"T{number}"))))
        for number in range(8)
    ]
    for document in (*documents, documents[-1], documents[0]):
        desk.ask("POST /design/document", {"document": document})
    assert len(read) == 9  # the last was known, the first no more
    assert threading.main_thread().name not in read  # the loop has others to serve
