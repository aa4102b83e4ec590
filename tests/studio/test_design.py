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
from tavola.client.connection import AsyncConnection
from tavola.design.lint import RULES, SourceFile
from tavola.engine import Engine
from tavola.iac import PlanError
from tavola.iac.formats import read_design_text
from tavola.model.document import Design, read_document, write_document
from tavola.protocol.faults import AccessDeniedFault
from tavola.studio.designs import DesignAnalysis, analysis, diff_lines
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, TablesLocation
from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.lint.cases.unused_index import FOUND as UNUSED
from tests.design.seeds import support_desk
from tests.studio.api_client import ApiClient

FILES = Path(__file__).parents[1] / "iac/formats/files"
DESK: Design = next(each for each in vars(support_desk).values() if isinstance(each, Design))
HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine without a table."""
    with closing(Engine.open()) as result:
        yield result


@pytest.fixture
def desk(engine: Engine) -> ApiClient:
    """A studio of a design that has many defects."""
    return ApiClient(engine, DESK, designs=("desk",))


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
    result = {"design"}
    for each in picture["tables"]:
        result.add(each["id"])
        result |= {node["id"] for part in ("entities", "keys", "indexes") for node in each[part]}
    return result


def test_everything_of_a_design_is_drawn_once(desk: ApiClient) -> None:
    """Each entity, each key and each index is a node, and each key leads from an entity to an index."""
    picture = desk.call("POST /design")

    tickets = next(each for each in picture["tables"] if each["name"] == "prod-tickets-unified")
    response = DESK.table("prod-tickets-unified")
    assert [each["entity"]["name"] for each in tickets["entities"]] == [
        each.name for each in response.entities
    ]
    assert [each["index"]["name"] for each in tickets["indexes"]] == [
        response.name,
        *(each.name for each in response.indexes),
    ]
    assert len(tickets["keys"]) == sum(1 + len(each.keys) for each in response.entities)
    ids = [node["id"] for part in ("entities", "keys", "indexes") for node in tickets[part]]
    assert len(ids) == len(set(ids))
    assert {each["entity"] for each in tickets["keys"]} <= set(ids)
    assert {each["index"] for each in tickets["keys"]} <= set(ids)


def _rules(findings: list[dict[str, Any]]) -> list[str]:
    return [each["finding"]["rule"] for each in findings]


def _rules_and_places(findings: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["finding"]["rule"], each["finding"]["place"]["name"]) for each in findings}


def _unused_index(api: ApiClient) -> Any:
    """Return the only finding of the rule `unused-index`."""
    findings = api.call("POST /design/findings")["findings"]
    [finding] = [each for each in findings if each["finding"]["rule"] == "unused-index"]
    return finding


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_reached_from_the_node_of_its_finding(name: str, engine: Engine) -> None:
    """A finding of any rule is pinned on a node that is drawn, and its remedy is a change that helps, or the rule's words."""
    case = _case(name)
    api = ApiClient(engine, case.FOUND)
    production = getattr(case, "PRODUCTION", False)
    nodes = _nodes(api.call("POST /design"))

    report = api.call("POST /design/findings", {"production": production})

    result = [each for each in report["findings"] if each["finding"]["rule"] == name]
    assert result
    for each in result:
        assert each["node"] in nodes
        remedy = api.call("POST /design/remedy", {"finding": each["id"], "production": production})
        assert remedy["rule"]["name"] == name
        assert remedy["rule"]["why"]
        assert remedy["rule"]["instead"]
        if remedy["summary"]:
            assert {line["sign"] for line in remedy["lines"]} & {"+", "-"}
            assert each["id"] in {gone["id"] for gone in remedy["resolved"]}
            assert not [new for new in remedy["introduced"] if new["finding"]["severity"] == "error"]


def test_a_finding_in_other_words_has_neither_come_nor_gone(desk: ApiClient) -> None:
    """If a fix only changes another finding's message, that finding is neither resolved nor introduced."""
    report = desk.call("POST /design/findings", {"production": True})
    remedies = {
        each["finding"]["place"]["name"]: desk.call(
            "POST /design/remedy", {"finding": each["id"], "production": True}
        )
        for each in report["findings"]
        if each["finding"]["rule"] in ("wrong-sort-order", "range-on-partition-key", "unserved-pattern")
    }

    assert len(remedies) >= 3
    for remedy in remedies.values():
        assert not _rules_and_places(remedy["resolved"]) & _rules_and_places(remedy["introduced"])
        left = len(report["findings"]) - len(remedy["resolved"]) + len(remedy["introduced"])
        assert left == sum(remedy["counts"].values())
    assert _rules(remedies["recent tickets"]["resolved"]) == ["unserved-pattern"]


def test_sums_are_of_the_tables_region(engine: Engine) -> None:
    """Costs use the prices of the tables' region, or of the requested one."""
    there = ApiClient(engine, UNUSED, where=TablesLocation("memory", "memory:", "us-west-2"))
    finding = _unused_index(there)

    own = there.call("POST /design/remedy", {"finding": finding["id"]})
    other = there.call("POST /design/remedy", {"finding": finding["id"], "region": "us-east-1"})

    assert "us-west-2" in own["prices"]
    assert "us-east-1" in other["prices"]


def test_a_fixed_design_can_be_analysed_again(engine: Engine) -> None:
    """The document of a remedy comes along with the next question: the finding is gone, and the month is its own."""
    api = ApiClient(engine, UNUSED)
    finding = _unused_index(api)
    remedy = api.call("POST /design/remedy", {"finding": finding["id"]})

    again = api.call("POST /design/findings", {"document": remedy["document"]})

    assert "unused-index" not in _rules(again["findings"])
    assert again["counts"] == remedy["counts"]
    read_document(json.loads(remedy["document"]))
    assert any("by_email" in line["text"] for line in remedy["python"] if line["sign"] == "-")


def test_an_unknown_finding_is_refused(desk: ApiClient) -> None:
    """An id of another design's finding is refused."""
    with pytest.raises(RequestRefused, match="no finding with this id"):
        desk.call("POST /design/remedy", {"finding": "unused-index-0"})


def test_findings_are_those_of_the_command_line(desk: ApiClient, desk_file: str) -> None:
    """What `tavola lint --json` prints is what the page gets, with ids and nodes beside."""
    command = json.loads(_command("lint", desk_file, "--json", "--production"))

    report = desk.call("POST /design/findings", {"production": True})

    assert len(report["findings"]) > 30
    findings = [
        {**each["finding"], **each["finding"]["place"], "place": each["finding"]["place"]["name"]}
        for each in report["findings"]
    ]
    for each in findings:
        del each["name"]
    for each in command["findings"]:
        del each["file"], each["line"]
    assert findings == command["findings"]
    assert report["counts"] == command["counts"]


def test_a_finding_has_the_line_of_its_source(engine: Engine) -> None:
    """Where the studio knows the files of a design, a finding names its file and line."""
    text = json.dumps(write_document(UNUSED), indent=2)
    api = ApiClient(
        engine, UNUSED, declared=(DeclaredDesign("shop.json", UNUSED, (SourceFile("shop.json", text),)),)
    )

    result = api.call("POST /design/findings", {"design": "shop.json"})["findings"]

    assert {each["location"]["file"] for each in result} == {"shop.json"}
    assert all(each["location"]["line"] >= 1 for each in result)


def test_rules_equal_the_command_lines(desk: ApiClient) -> None:
    """Every rule has its page: what, why, an example and what to do instead."""
    command = json.loads(_command("explain", "--json"))["rules"]

    pages = desk.call("GET /design/rules")["rules"]

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

    offer = ApiClient(engine, shop, designs=(str(path),)).call("POST /design/solve")

    assert json.loads(offer["text"]) == command["design"]
    assert (offer["total"], offer["total_before"]) == (command["month"]["total"], command["month"]["before"])
    assert (offer["month"]["book"], offer["month"]["hours"]) == (
        command["month"]["prices"],
        command["month"]["hours"],
    )
    assert [
        (each["place"], each["pattern"], each["sentence"], each["amount"], each["alternatives"])
        for each in offer["choices"]
    ] == [
        (each["place"], each["pattern"], each["sentence"], each["amount"], each["instead"])
        for each in command["choices"]
    ]
    assert [offer["scenarios"][each["pattern"]] for each in command["choices"]] == [
        each["scenario"] for each in command["choices"]
    ]
    assert offer["alternatives"] == command["alternatives"]
    assert [each["message"] for each in offer["findings"]] == [
        each["message"] for each in command["findings"]
    ]
    assert offer["notes"] == command["notes"]
    assert offer["python"].rstrip() == module.rstrip()
    assert offer["indexes_before"] == 1


def test_a_question_that_no_key_serves_is_refused_by_name(desk: ApiClient) -> None:
    """The solver's refusal names the question and what to do."""
    with pytest.raises(RequestRefused, match="tickets of a tier") as refused:
        desk.call("POST /design/solve")
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
    form: str, command: list[str], desk: ApiClient, desk_file: str, tmp_path: Path
) -> None:
    """Each file has the very text that the command writes."""
    values = desk.call("POST /design/infrastructure", {"form": form})
    files = {each["name"]: each["text"] for each in values["files"]}

    if form in ("terraform", "cdk", "onetable"):
        _command(
            *command, desk_file, "--onetable" if form == "onetable" else "--output", str(tmp_path / "out")
        )
        written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
        assert {name: text.rstrip("\n") for name, text in files.items()} == {
            name: written[name].rstrip("\n") for name in files
        }
        assert set(files) == set(written)
    else:
        [response] = files.values()
        assert response.rstrip("\n") == _command(*command, desk_file).rstrip("\n")


def test_options_of_infrastructure_are_followed(desk: ApiClient) -> None:
    """Alarms and policies are left out where they are not wanted, and the command that does the same says so."""
    whole = desk.call("POST /design/infrastructure", {"form": "cloudformation"})
    bare = desk.call(
        "POST /design/infrastructure", {"form": "cloudformation", "alarms": False, "policies": False}
    )

    assert "AWS::CloudWatch::Alarm" in whole["files"][0]["text"]
    assert "AWS::CloudWatch::Alarm" not in bare["files"][0]["text"]
    assert bare["command"] == "tavola iac cloudformation desk --output infra --no-alarms --no-policies"


def test_a_command_is_quoted_for_the_shell(engine: Engine) -> None:
    """What is to be copied into a shell is one word where a file's name has several; what is not a KMS key is refused."""
    api = ApiClient(engine, UNUSED, designs=("my shop.json",))
    merged = ApiClient(engine, DESK, designs=("one", "two"))

    response = api.call("POST /design/infrastructure", {"form": "terraform", "key": "alias/x"})
    brought = api.call(
        "POST /design/infrastructure", {"form": "policies", "document": json.dumps(write_document(UNUSED))}
    )
    several = merged.call("POST /design/infrastructure", {"form": "policies"})
    with pytest.raises(PlanError, match="is not a KMS key"):
        api.call("POST /design/infrastructure", {"form": "terraform", "key": "alias/x; rm -rf ~"})

    assert response["command"] == "tavola iac terraform 'my shop.json' --output infra --kms-key alias/x"
    assert brought["command"] == several["command"] == "tavola iac policies design.json"


def test_a_workbench_model_comes_back(desk: ApiClient) -> None:
    """What is exported for NoSQL Workbench is read again with the same tables, indexes and entities."""
    values = desk.call("POST /design/infrastructure", {"form": "workbench"})

    back = desk.call("POST /design/import", {"text": values["files"][0]["text"], "name": "model.json"})

    again = read_design_text(back["document"], "design.json").design
    assert back["format"] == "workbench"
    assert [each.name for each in again.tables] == [each.name for each in DESK.tables]
    for response, was in zip(again.tables, DESK.tables, strict=True):
        assert {each.name for each in response.indexes} == {each.name for each in was.indexes}
        assert {each.name.lower() for each in response.entities} == {
            each.name.lower() for each in was.entities
        }


@pytest.mark.parametrize(
    ("file", "format_"),
    [("onetable.json", "onetable"), ("schema.json", "mcp-schema")],
)
def test_a_file_of_another_tool_becomes_a_design(file: str, format_: str, desk: ApiClient) -> None:
    """A file is imported, reported and drawn from the returned document; the studio's own design is unchanged."""
    result = desk.call("POST /design/import", {"text": (FILES / file).read_text(), "name": file})

    picture = desk.call("POST /design", {"document": result["document"]})

    assert result["format"] == format_
    assert result["report"]
    assert [each["name"] for each in picture["tables"]] == result["tables"]
    assert picture["own"] is False
    assert desk.call("POST /design")["own"] is True


@pytest.mark.parametrize(
    ("told", "name"),
    [("", ""), ("{", "x.json"), ('{"a": 1}', "x.json"), ("resource x", "main.tf"), ("[" * 5000, "x.json")],
)
def test_text_in_no_known_format_is_refused_with_a_remedy(told: str, name: str, desk: ApiClient) -> None:
    """Text in no known format is refused with the supported formats."""
    with pytest.raises(RequestRefused) as refused:
        desk.call("POST /design/import", {"text": told, "name": name})
    assert refused.value.problem.code == "import-refused"
    assert "Terraform" in refused.value.problem.remedy


def test_a_document_that_is_none_is_refused_wherever_it_comes_along(desk: ApiClient) -> None:
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
                desk.call(endpoint, {"document": text_, **more})
            assert refused.value.problem.code == "document-refused"


def test_names_with_markup_stay_names(engine: Engine) -> None:
    """A name that is HTML goes through every answer as text."""
    odd = design(table(entity(HTML, text("user_id"), pk="USER#{user_id}"), label=HTML, name="shop"))
    document = json.dumps(write_document(odd))
    api = ApiClient(engine)

    result = api.call("POST /design/import", {"text": document, "name": "odd.json"})
    picture = api.call("POST /design", {"document": result["document"]})

    assert picture["tables"][0]["entities"][0]["entity"]["name"] == HTML
    assert api.call("POST /design/findings", {"document": result["document"]})["findings"]


def test_a_live_table_is_imported_and_compared_with_a_design() -> None:
    """A described table becomes a design without entities; its differences from a design are listed."""
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
        api = ApiClient(engine, shop)

        live = api.call("GET /design/live", {"table": "shop"})
        drift = api.call("POST /design/drift")["tables"]
        missing = ApiClient(engine, DESK).call("POST /design/drift", {"table": "prod-metrics"})["tables"]

    assert live["tables"] == ["shop"]
    assert live["entities"] == 0
    changes = {each["kind"]: each for each in drift[0]["comparison"]["changes"]}
    assert drift[0]["comparison"]["exists"] is True
    assert changes["add index"]["place"] == "by_mail"
    assert [each["comparison"]["exists"] for each in missing] == [False]


class _Bad:
    """A connection that fails at one operation, or at all."""

    def __init__(self, db: Any, error: Exception, operation: str = "") -> None:
        self.db, self.error, self.operation = db, error, operation

    async def close(self) -> None:
        """Leave open what it calls through: that is another's."""

    async def call(self, operation: str, request: Mapping[str, Any]) -> Any:
        if self.operation in ("", operation):
            raise self.error
        return await self.db.call(operation, request)


class _BadDay(ApiClient):
    """A studio whose tables do not answer."""

    def failing(self, error: Exception, operation: str = "") -> _BadDay:
        self.error, self.operation = error, operation
        return self

    def studio(self, db: Any) -> Any:
        return super().studio(AsyncConnection(_Bad(db, self.error, self.operation)))


def test_a_lost_endpoint_leaves_the_design_to_be_looked_at(engine: Engine) -> None:
    """The diagram and the findings need no endpoint; the comparison reports the problem for each table."""
    lost = _BadDay(engine, UNUSED).failing(EndpointUnreachable("http://127.0.0.1:1", "refused"))

    picture = lost.call("POST /design")
    [drift] = lost.call("POST /design/drift")["tables"]

    assert picture["tables"]
    assert drift["problem"]["code"] == "endpoint-lost"
    assert drift["problem"]["remedy"]


def test_a_denied_setting_is_unknown_and_a_lost_endpoint_is_an_error(engine: Engine) -> None:
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

        denied = day.failing(AccessDeniedFault("no"), "DescribeTimeToLive").call(
            "GET /design/live", {"table": "shop"}
        )
        with pytest.raises(EndpointUnreachable):
            day.failing(EndpointUnreachable("http://127.0.0.1:1", "refused"), "DescribeTimeToLive").call(
                "GET /design/live", {"table": "shop"}
            )

    assert denied["report"][0]["place"] == "DescribeTimeToLive"
    assert "AccessDeniedException" in denied["report"][0]["message"]
    assert "Unknown" in str(ApiClient(engine).call("POST /design", {"document": denied["document"]}))


def test_targets_are_checked_as_the_command_line_does(desk: ApiClient, desk_file: str) -> None:
    """Each cell has the verdict of `tavola check`, with a reason's source and its date."""
    command = json.loads(_command("check", desk_file, "--target", "alternator", "--json"))
    matrix = desk.call("POST /design/targets")

    verdicts = {
        each["capability"]: (each["value"], each["remark"], each["source"]) for each in command["verdicts"]
    }
    [target] = [each for each in matrix["targets"] if each["name"] == "alternator"]
    assert {
        name: (answer["value"], answer["remark"], answer["source"] or target["source"])
        for name, answer in target["answers"].items()
    } == verdicts
    assert {each["capability"]["name"] for each in matrix["needed"]} == set(verdicts)
    assert all(each["checked"] and each["source"] for each in matrix["targets"])
    assert matrix["targets"][0]["name"] == "aws"


def test_tables_with_an_entity_of_one_name_are_two_designs(engine: Engine) -> None:
    """Designs that were put together are judged apart: each table has its own."""
    one = table(entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"), label="First")
    other = table(entity("Ticket", text("caller_id"), pk="C#{caller_id}"), label="Second")
    api = ApiClient(engine, Design((one, other)))

    picture = api.call("POST /design", {"table": "second"})

    assert picture["names"] == ["First", "Second"]
    assert [each["name"] for each in picture["tables"]] == ["second"]
    assert [tuple(each) for each in picture["tables_of"]] == [("first", "First"), ("second", "Second")]


def test_a_studio_without_a_design_refuses(engine: Engine) -> None:
    """Without a design nothing can be drawn, and an unknown name is refused."""
    with pytest.raises(RequestRefused, match="No design"):
        ApiClient(engine).call("POST /design")
    with pytest.raises(RequestRefused, match="Design not found"):
        ApiClient(engine, DESK, designs=("desk",)).call("POST /design", {"design": "other"})


def test_a_difference_shows_what_changed_and_a_little_around() -> None:
    """Lines that stay are left out, but for three on either side, and that is marked."""
    old = [str(number) for number in range(30)]
    new = [*old[:15], "new", *old[16:]]

    lines = diff_lines("\n".join(old), "\n".join(new))

    assert [f"{line.sign}{line.text}" for line in lines] == [
        " …", " 12", " 13", " 14", "-15", "+new", " 16", " 17", " 18", " …",
    ]  # fmt: skip
    assert diff_lines("same", "same") == ()


def test_a_long_diff_is_truncated_with_a_count() -> None:
    """Lines that repeat by the thousand are compared in a moment, and what is not shown is counted or said."""
    row = ["{", '"type": "text",', '"nullable": false', "},"]
    old = [line for number in range(3000) for line in (f'"name": "{number}",', *row)]
    renamed = [line.replace('"name"', '"attribute"') for line in old]
    longer = [*old, *old]

    lines = diff_lines("\n".join(old), "\n".join(renamed))
    inserted = diff_lines("\n".join(longer), "\n".join(["new", *longer[:-1], "other"]))

    assert len(lines) == 2001
    assert "more lines" in lines[-1].text
    assert [line.text for line in inserted if line.sign == "+"] == ["new"]
    assert not [line for line in inserted if line.sign == "-"]
    assert "are not compared" in inserted[-1].text


def test_a_long_solver_run_does_not_block_other_requests() -> None:
    """Who asks the same waits and gets the same; who asks something else of the design does not wait."""
    about, begun, go_on = DesignAnalysis("desk", DESK), threading.Event(), threading.Event()
    result: list[object] = []

    def search() -> object:
        begun.set()
        assert go_on.wait(10)
        return object()

    searchers = [
        threading.Thread(target=lambda: result.append(about.get_or_compute("solved", search)))
        for _ in range(2)
    ]
    for each in searchers:
        each.start()
    assert begun.wait(10)

    quick = about.get_or_compute("text", lambda: "at once")

    assert quick == "at once"
    assert not result
    go_on.set()
    for each in searchers:
        each.join(10)
    assert len(result) == 2
    assert result[0] is result[1]


def test_what_is_kept_of_a_design_is_bounded(desk: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of answers the last are kept, and of designs that questions brought."""
    about = DesignAnalysis("desk", DESK)
    for number in range(500):
        about.get_or_compute(("remedy", number), lambda: "a whole document")
    assert about.get_or_compute(("remedy", 499), lambda: "another") == "a whole document"
    assert about.get_or_compute(("remedy", 0), lambda: "another") == "another"

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
        desk.call("POST /design/document", {"document": document})
    assert len(read) == 9  # the last was known, the first no more
    assert threading.main_thread().name not in read  # the loop has others to serve
