"""`tavola lint` and `tavola explain`: what is printed, written and exited with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.design.lint import RULES

DESIGN = """
from tavola import Attr, Entity, Gsi, Need, PrimaryKey, Query, Table

class Shelf(Table, name="shelf"):
    by_author = Gsi(pk="GSI1PK", sk="GSI1SK")
    by_year = Gsi(pk="GSI2PK")  # tavola: ignore[unused-index] {reason}

class Book(Entity, table=Shelf):
    isbn: Attr[str]
    author: Attr[str]

    class Key(PrimaryKey["Book"], pk="BOOK#{{isbn}}", sk="BOOK"):
        isbn: str

    class ByAuthor(Query["Book"], on=Shelf.by_author, pk="AUTHOR#{{author}}", sk="{{isbn}}"):
        author: str

{more}
"""
QUIET = ["--ignore", "missing-traffic-estimates,reserved-words"]


@pytest.fixture
def shelf(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with a design, in the folder where the command is run; a test says what is in it."""
    told = {"reason": "the archive asks it", "more": "", **getattr(request, "param", {})}
    name = f"shelf_{abs(hash((request.node.nodeid, tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(DESIGN.format(**told))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


NEED = {"more": 'BY_TITLE = Need("by title", Book, "isbn", "author")\nBY_NAME = Need("by name", Book)'}


def test_a_sound_design_says_so(shelf: str) -> None:
    """A design without findings exits with 0, and tells what is ignored in it."""
    result = CliRunner().invoke(app, ["lint", shelf, *QUIET])

    assert result.exit_code == Exit.OK, result.output
    assert result.stdout == "No problems found in 1 table with 1 entity; 1 finding suppressed.\n"


@pytest.mark.parametrize("shelf", [NEED], indirect=True)
def test_findings_are_told_with_place_line_and_remedy(shelf: str) -> None:
    """Findings stand under their place with its line, and the command exits with 1."""
    result = CliRunner().invoke(app, ["lint", shelf, *QUIET])

    assert result.exit_code == Exit.FAILED
    assert f"by name  {shelf}.py:19" in result.stdout
    assert "[unserved-pattern]" in result.stdout
    assert "→ Add an index" in result.stdout
    assert "1 error; 1 finding suppressed" in result.stdout


@pytest.mark.parametrize("shelf", [{"reason": ""}], indirect=True)
def test_an_ignore_needs_a_reason(shelf: str) -> None:
    """What is ignored without a reason is told, and so is that."""
    result = CliRunner().invoke(app, ["lint", shelf, "--json", *QUIET])

    found = json.loads(result.stdout)
    assert result.exit_code == Exit.FAILED
    assert [each["rule"] for each in found["findings"]] == ["ignore-without-reason", "unused-index"]
    assert {(each["file"], each["line"]) for each in found["findings"]} == {(f"{shelf}.py", 6)}
    assert found["counts"] == {"error": 0, "warning": 2, "advice": 0}


@pytest.mark.parametrize("shelf", [NEED], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--select", "missing-traffic-estimates"], Exit.OK),
        (["--select", "missing-traffic-estimates", "--fail-on", "advice"], Exit.FAILED),
        (["--select", "unserved-pattern", "--fail-on", "error"], Exit.FAILED),
        (["--ignore", "unserved-pattern,missing-traffic-estimates"], Exit.OK),
    ],
)
def test_what_fails_can_be_chosen(shelf: str, arguments: list[str], code: Exit) -> None:
    """Advice alone fails only where it is asked for; rules are run or left out by name."""
    assert CliRunner().invoke(app, ["lint", shelf, *arguments]).exit_code == code


@pytest.mark.parametrize("shelf", [NEED], indirect=True)
def test_sarif_is_written_or_printed(shelf: str, tmp_path: Path) -> None:
    """A log goes into a file, whole, beside what is printed; or to standard output in its place."""
    written = CliRunner().invoke(app, ["lint", shelf, "--sarif", "out.sarif", *QUIET])
    printed = CliRunner().invoke(app, ["lint", shelf, "--sarif", "-", *QUIET])

    log = json.loads((tmp_path / "out.sarif").read_text())
    assert "1 error" in written.stdout
    assert json.loads(printed.stdout) == log
    found = log["runs"][0]["results"][0]
    assert found["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": f"{shelf}.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 19},
    }


@pytest.mark.parametrize("shelf", [NEED], indirect=True)
def test_sarif_is_told_from_the_repository_s_root(
    shelf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in a folder of a repository, files are named as the code host knows them."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "backend").mkdir()
    (tmp_path / f"{shelf}.py").rename(tmp_path / "backend" / f"{shelf}.py")
    monkeypatch.chdir(tmp_path / "backend")
    monkeypatch.syspath_prepend(str(tmp_path / "backend"))

    log = json.loads(CliRunner().invoke(app, ["lint", shelf, "--sarif", "-", *QUIET]).stdout)

    [run] = log["runs"]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": f"backend/{shelf}.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{tmp_path.as_uri()}/"}}


def test_two_texts_are_not_printed_as_one(shelf: str) -> None:
    """SARIF and JSON cannot both be printed."""
    result = CliRunner().invoke(app, ["lint", shelf, "--sarif", "-", "--json"])

    assert result.exit_code == Exit.USAGE
    assert result.stdout == ""
    assert "--sarif - and --json" in result.stderr


@pytest.mark.parametrize("shelf", [NEED], indirect=True)
def test_sarif_into_a_folder_that_is_not_there(shelf: str) -> None:
    """A file that cannot be written is told in a sentence, after the findings; 1 would say no more than these."""
    result = CliRunner().invoke(app, ["lint", shelf, "--sarif", "nowhere/out.sarif"])

    assert result.exit_code == Exit.USAGE
    assert "[unserved-pattern]" in result.stdout
    assert "nowhere/out.sarif cannot be written: No such file or directory." in result.stderr
    assert "Name another location with --sarif." in result.stderr


def test_policies_are_judged_with_the_design(shelf: str, tmp_path: Path) -> None:
    """A policy in a file is linted as if the design had it."""
    wild = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}],
    }
    (tmp_path / "wild.json").write_text(json.dumps(wild))

    result = CliRunner().invoke(
        app, ["lint", shelf, "--policy", "wild.json", "--select", "wildcard-policy", "--json"]
    )

    assert [each["place"] for each in json.loads(result.stdout)["findings"]] == ["wild"]


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_is_no_policy(shelf: str, tmp_path: Path, text: str) -> None:
    """A policy that cannot be read is told in a sentence, with the file."""
    (tmp_path / "policy.json").write_text(text)

    result = CliRunner().invoke(app, ["lint", shelf, "--policy", "policy.json"])

    assert result.exit_code == Exit.USAGE
    assert "policy.json is not" in result.stderr


def test_one_table_of_a_module_is_linted_alone() -> None:
    """What a module ignores in its other tables is nothing to this one."""
    result = CliRunner().invoke(app, ["lint", "tavola.apps.support_desk.model:Metrics"])

    assert result.exit_code == Exit.OK, result.stdout
    assert result.stdout.startswith("No problems found in 1 table")


TWO = {
    "more": """
# tavola: ignore[unserved-pattern] asked once a year, by an export
BY_NAME = Need("by name", Book)

class Log(Table, name="log"):
    pass

class Line(Entity, table=Log):
    line_id: Attr[str]

    class Key(PrimaryKey["Line"], pk="LINE#{line_id}", sk="LINE"):
        line_id: str

# tavola: ignore[unserved-pattern] nobody asks it
LINES = Need("all lines", Line)
"""
}


@pytest.mark.parametrize("shelf", [TWO], indirect=True)
@pytest.mark.parametrize("table", ["", ":Shelf", ":Log"])
def test_the_ignores_of_a_table_go_with_it(shelf: str, table: str) -> None:
    """What a module lets stand is let stand of one table of it too: of its needs as of its classes."""
    result = CliRunner().invoke(app, ["lint", f"{shelf}{table}", *QUIET])

    assert result.exit_code == Exit.OK, result.stdout
    assert result.stdout.startswith("No problems found"), result.stdout


WILD = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}],
}
LET = {"more": "# tavola: ignore[wildcard-policy@founder] it makes the tables, once"}


@pytest.mark.parametrize("shelf", [LET], indirect=True)
@pytest.mark.parametrize("table", ["", ":Shelf"])
def test_a_policy_in_a_file_may_be_let_stand(shelf: str, tmp_path: Path, table: str) -> None:
    """A module names the policy and says why; of another policy the same is found, and without one nothing is idle."""
    for name in ("founder", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps(WILD))

    def linted(*policies: str) -> list[tuple[str, str]]:
        given = [word for name in policies for word in ("--policy", f"{name}.json")]
        result = CliRunner().invoke(app, ["lint", f"{shelf}{table}", "--json", *given, *QUIET])
        return [(each["rule"], each["place"]) for each in json.loads(result.stdout)["findings"]]

    assert linted() == []
    assert linted("founder") == []
    assert linted("founder", "other") == [("wildcard-policy", "other")]


def test_a_policy_of_another_table_is_told(shelf: str, tmp_path: Path) -> None:
    """A policy that is about nothing of the design does not pass in silence."""
    statement = {
        "Effect": "Allow",
        "Action": "dynamodb:GetItem",
        "Resource": "arn:aws:dynamodb:*:*:table/shelv",
    }
    (tmp_path / "reader.json").write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    result = CliRunner().invoke(app, ["lint", shelf, "--policy", "reader.json", *QUIET])

    assert "but the design has the table shelf" in " ".join(result.stdout.split())


def test_a_document_is_linted_with_its_lines(shelf: str, tmp_path: Path) -> None:
    """A design document is linted as its module is; findings stand at its lines."""
    document = json.loads(CliRunner().invoke(app, ["design", shelf, "--json"]).stdout)
    (tmp_path / "shelf.json").write_text(json.dumps(document, indent=2))

    result = CliRunner().invoke(app, ["lint", "shelf.json", "--select", "unused-index", "--json"])

    [found] = json.loads(result.stdout)["findings"]
    lines = (tmp_path / "shelf.json").read_text().splitlines()
    assert (found["place"], found["file"]) == ("Shelf.by_year", "shelf.json")
    assert '"name": "by_year"' in lines[found["line"]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lint", "no_such_module_here"], "There is no module"),
        (["lint", "nowhere.json"], "nowhere.json"),
        (["explain", "unused-indx"], "Did you mean unused-index?"),
        (["lint", "tavola.apps.service_desk.model", "--select", "unused-indx"], "Did you mean unused-index?"),
    ],
)
def test_what_cannot_be_linted_is_told(arguments: list[str], sentence: str) -> None:
    """A design or a rule that is not there is told in a sentence, without a traceback."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == (Exit.NOT_FOUND if "nowhere.json" in arguments else Exit.USAGE)
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_of_no_known_form_is_no_finding(tmp_path: Path) -> None:
    """What cannot be read as a design exits with 2, since 1 says that there are findings."""
    (tmp_path / "what.json").write_text("{}")

    result = CliRunner().invoke(app, ["lint", str(tmp_path / "what.json")])

    assert result.exit_code == Exit.USAGE
    assert "what.json" in result.stderr


def test_a_rule_explains_itself() -> None:
    """`tavola explain RULE` says what, why, an example and what to do; without a rule it lists them all."""
    one = CliRunner().invoke(app, ["explain", "unused-index"]).stdout
    every = CliRunner().invoke(app, ["explain"]).stdout
    told = json.loads(CliRunner().invoke(app, ["explain", "unused-index", "--json"]).stdout)

    assert all(word in one for word in ("unused-index (warning)", "Why:", "Example:", "Fix:"))
    assert [line.split()[0] for line in every.splitlines()[1:]] == sorted(RULES)
    assert told["rules"][0]["instead"] == RULES["unused-index"].remedy


TERRAFORM = """
variable "stage" {{}}

resource "aws_dynamodb_table" "orders" {{
  name         = "orders"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"

  attribute {{
    name = "pk"
    type = "S"
  }}

  point_in_time_recovery {{
    enabled = {recovery}
  }}
}}
"""


@pytest.mark.parametrize(
    ("recovery", "found"), [("false", True), ('var.stage == "prod" ? true : false', False)]
)
def test_what_only_the_deployment_knows_is_no_finding(tmp_path: Path, recovery: str, found: bool) -> None:
    """A setting that a variable decides is not taken for off."""
    (tmp_path / "main.tf").write_text(TERRAFORM.format(recovery=recovery))

    result = CliRunner().invoke(app, ["lint", str(tmp_path / "main.tf"), "--production", "--json"])

    rules = {each["rule"] for each in json.loads(result.stdout)["findings"]}
    assert ("no-point-in-time-recovery" in rules) is found
    assert "no-customer-managed-key" in rules


@pytest.mark.parametrize("form", ["{}.py", "./{}.py", "./{}", "{}.py:Shelf"])
def test_the_file_of_a_module_is_as_good_as_its_name(shelf: str, form: str) -> None:
    """A Python file is imported, never taken for another tool's document."""
    result = CliRunner().invoke(app, ["lint", form.format(shelf), *QUIET])

    assert result.exit_code == Exit.OK, result.output
    assert result.stdout.startswith("No problems found in 1 table")


@pytest.mark.parametrize("package", [True, False])
def test_a_file_in_a_folder_is_imported_from_above_its_packages(
    shelf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: bool
) -> None:
    """A package is imported as one, with its relative imports; a plain folder is looked in."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    inside = tmp_path / f"{shelf}_in_{package}"
    inside.mkdir()
    text = (tmp_path / f"{shelf}.py").read_text()
    (inside / f"{shelf}_beside.py").write_text("NAME = 1\n")
    if package:
        (inside / "__init__.py").touch()
    (inside / f"{shelf}_own.py").write_text(
        f"from {'.' if package else ''}{shelf}_beside import NAME\n{text}"
    )

    result = CliRunner().invoke(app, ["lint", f"{inside.name}/{shelf}_own.py", *QUIET])

    assert result.exit_code == Exit.OK, result.output


def test_a_file_with_the_name_of_another_module_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is judged is the file that was named, never a module that has its name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").touch()

    result = CliRunner().invoke(app, ["lint", "json.py"])

    assert result.exit_code == Exit.USAGE
    assert "Another module is named json too" in result.stderr


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('Need("x", Book, per="isbn")', "line 18: TypeError: Need.__init__() got an unexpected keyword"),
        ("def", "line 18: SyntaxError: invalid syntax"),
        ("import nothing_of_the_kind", "line 18: No module named 'nothing_of_the_kind'"),
    ],
)
def test_a_module_that_breaks_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, told: str
) -> None:
    """The file and the line of the module itself, whatever it was that raised."""
    name = f"broken_{abs(hash((tmp_path, more)))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(DESIGN.format(reason="why", more=more))

    result = CliRunner().invoke(app, ["lint", name])

    assert result.exit_code == Exit.USAGE
    assert f"{name}.py, {told}" in result.stderr
    assert "shop.model:Shop" not in result.stderr


KEYLESS = """
from tavola import Attr, Entity, Need, WritePattern

class Book(Entity, writes=(WritePattern("print it", "put", item_bytes=500_000),)):
    isbn: Attr[str]
"""


@pytest.mark.parametrize(
    ("need", "code", "rules"),
    [
        ('ONE = Need("a book", Book, "isbn", single=True)', Exit.FAILED, ["unserved-pattern", "large-item"]),
        ("", Exit.FAILED, ["large-item", "table-without-entities"]),
    ],
)
def test_a_design_without_keys_is_not_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: str, code: Exit, rules: list[str]
) -> None:
    """What is asked is not served yet, entities are judged by what they say, and the solver is named."""
    name = f"keyless_{abs(hash((tmp_path, need)))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(KEYLESS + need)

    result = CliRunner().invoke(app, ["lint", name, "--json"])
    found = json.loads(result.stdout)["findings"]

    assert result.exit_code == code
    assert {each["rule"] for each in found} == set(rules)
    assert "tavola solve" in " ".join(each["remedy"] for each in found)
    quiet = CliRunner().invoke(app, ["lint", name, "--select", "unused-index"])
    assert quiet.stdout == "No problems found; no table was checked, only 1 entity without keys.\n"


def test_no_rule_left_is_no_sound_design(shelf: str) -> None:
    """A pipeline that runs no rule is told so."""
    result = CliRunner().invoke(app, ["lint", shelf, "--select", "unused-index", "--ignore", "unused-index"])

    assert result.exit_code == Exit.USAGE
    assert "No rule is left to run" in result.stderr


CONSUMED = """
from tavola import Attr, Consumer, Entity, PrimaryKey, Table

READER = Consumer("numbers", "{handler}", retries=3, failures="sqs", bisect=True{setting})

class Desk(Table, name="desk", stream="NEW_AND_OLD_IMAGES", consumers=(READER,)):
    pass

class Ticket(Entity, table=Desk):
    ticket_id: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{{ticket_id}}", sk="TICKET"):
        ticket_id: str
"""
HANDLER = """
raise SystemExit("lint must not run a handler")

def handler(event, context):
    return {"batchItemFailures": []}
"""


@pytest.mark.parametrize(
    ("setting", "severities"),
    [("", []), (", report_batch_item_failures=True", []), (", report_batch_item_failures=False", ["error"])],
)
def test_a_handler_that_reports_to_nobody_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, severities: list[str]
) -> None:
    """The handler's source is read from the package it is in, and neither it nor the package is run."""
    design = f"desk_{abs(hash((setting, tmp_path)))}"
    package = tmp_path / f"functions_{design}"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit\n")
    (package / "numbers.py").write_text(HANDLER)
    handler = f"{package.name}.numbers.handler"
    (tmp_path / f"{design}.py").write_text(CONSUMED.format(handler=handler, setting=setting))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = CliRunner().invoke(app, ["lint", design, "--select", "unread-item-failures", "--json"])

    found = json.loads(result.stdout)["findings"]
    assert [each["severity"] for each in found] == severities
    assert all(handler in each["message"] and each["line"] == 4 for each in found)
    assert result.exit_code == (Exit.FAILED if severities else Exit.OK)


def test_the_function_beside_a_template_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template's handler is looked for beside it, and the fix is spelled in the template's words."""
    template = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Desk:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: desk
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_IMAGE}
  Numbers:
    Type: AWS::Serverless::Function
    Properties:
      Handler: numbers_of_desk.handler
      Events:
        Changes:
          Type: DynamoDB
          Properties: {Stream: !GetAtt Desk.StreamArn, StartingPosition: LATEST}
"""
    (tmp_path / "template.yaml").write_text(template)
    monkeypatch.chdir(tmp_path)
    command = ["lint", "template.yaml", "--select", "unread-item-failures", "--json"]
    without = json.loads(CliRunner().invoke(app, command).stdout)["findings"]
    (tmp_path / "numbers_of_desk.py").write_text(HANDLER)
    beside = json.loads(CliRunner().invoke(app, command).stdout)["findings"]

    assert [each["severity"] for each in without] == ["advice"]
    assert [each["severity"] for each in beside] == ["error"]
    assert "FunctionResponseTypes: [ReportBatchItemFailures]" in beside[0]["remedy"]
