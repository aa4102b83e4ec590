"""`tavola iac`: printed, or written where it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app

DESK = "tavola.apps.service_desk.model"


@pytest.mark.parametrize(
    ("vendor", "told"),
    [
        ("terraform", 'resource "aws_dynamodb_table" "poc_itsm_tickets"'),
        ("cloudformation", "Type: AWS::DynamoDB::Table"),
        ("cdk", "self.poc_itsm_tickets = dynamodb.TableV2("),
    ],
)
def test_infrastructure_is_printed(vendor: str, told: str) -> None:
    """Without --output the whole goes to standard output, and nothing else does."""
    done = CliRunner().invoke(app, ["iac", vendor, DESK])

    assert done.exit_code == 0, done.output
    assert told in done.stdout
    assert done.stderr == ""


def test_a_template_may_be_json() -> None:
    """--format json is a template in JSON; --json is the command's answer for a program."""
    template = CliRunner().invoke(app, ["iac", "cloudformation", DESK, "--format", "json", "--no-alarms"])
    answer = CliRunner().invoke(app, ["iac", "cloudformation", DESK, "--json"])

    assert "Conditions" not in json.loads(template.stdout)
    told = json.loads(answer.stdout)
    assert told["schema"] == "tavola.iac/1"
    assert list(told["files"]) == ["template.yaml"]


def test_infrastructure_is_written(tmp_path: Path) -> None:
    """--output is a folder, or a file by its ending, and each file is told."""
    runs = (
        (
            "terraform",
            "module",
            ["alarms.tf", "outputs.tf", "policies.tf", "tables.tf", "variables.tf", "versions.tf"],
        ),
        ("terraform", "one/desk.tf", ["desk.tf"]),
        ("cloudformation", "stack", ["template.yaml"]),
        ("cloudformation", "two/desk.json", ["desk.json"]),
        ("cdk", "app", ["app.py", "cdk.json", "requirements.txt"]),
        ("cdk", "three/desk.py", ["desk.py"]),
    )
    for vendor, out, names in runs:
        done = CliRunner().invoke(app, ["iac", vendor, DESK, "--output", str(tmp_path / out)])
        folder = tmp_path / out if "." not in out else (tmp_path / out).parent

        assert done.exit_code == 0, done.output
        assert sorted(path.name for path in folder.iterdir()) == names
        assert all(name in done.stderr for name in names)
    json.loads((tmp_path / "two" / "desk.json").read_text())


def test_one_file_leaves_the_others_of_its_folder(tmp_path: Path) -> None:
    """With --output one file is written: another design's, also Tavola's own, stays beside it, and is not written over."""
    reviews = "tavola.apps.terraform_review.model"
    for target, name in ((DESK, "desk.tf"), (reviews, "reviews.tf")):
        done = CliRunner().invoke(app, ["iac", "terraform", target, "--output", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    over = CliRunner().invoke(app, ["iac", "terraform", reviews, "--output", str(tmp_path / "desk.tf")])

    assert sorted(path.name for path in tmp_path.iterdir()) == ["desk.tf", "reviews.tf"]
    assert over.exit_code == Exit.FAILED
    assert "belongs to another design, with the table" in over.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("terraform", DESK, "--kms-key", ""), "'' is not a KMS key; give new, or the ARN"),
        (("terraform", DESK, "--kms-key", "hello world"), "is not a KMS key"),
        (("policies", DESK, "--account", "abc"), "--account abc is not valid"),
        (("policies", DESK, "--region", "Dublin"), "--region Dublin is not valid"),
    ],
)
def test_an_option_that_says_nothing_is_told(arguments: tuple[str, ...], why: str) -> None:
    """A variable of a pipeline that is not set is a sentence, and no infrastructure."""
    done = CliRunner().invoke(app, ["iac", *arguments])

    assert done.exit_code in (Exit.FAILED, Exit.USAGE)
    assert why in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_an_arn_is_of_its_regions_partition(region: str, partition: str) -> None:
    """What is printed for a region names resources that are there."""
    done = CliRunner().invoke(app, ["iac", "policies", DESK, "reader", "--region", region])
    resources = [
        each for told in json.loads(done.stdout)["Statement"] for each in told["Resource"] if each != "*"
    ]

    assert resources
    assert all(each.startswith(f"arn:{partition}:dynamodb:{region}:*:table/") for each in resources)


def test_policies_refuse_what_comes_in_clear() -> None:
    """However they are written, policies are the same; for a server that has no TLS it can be left out."""
    one, other = (
        json.loads(CliRunner().invoke(app, ["iac", "policies", DESK, "reader", *options]).stdout)["Statement"]
        for options in ((), ("--allow-http",))
    )

    assert one[:-1] == other
    assert (one[-1]["Effect"], one[-1]["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_a_file_of_ones_own_is_told_and_kept(tmp_path: Path) -> None:
    """A file that is not Tavola's is named, with what to do; --force writes over it."""
    (tmp_path / "template.yaml").write_text("mine")
    command = ["iac", "cloudformation", DESK, "--output", str(tmp_path)]
    done = CliRunner().invoke(app, command)

    assert done.exit_code == Exit.FAILED
    assert "was not generated by Tavola" in done.stderr
    assert "--force" in done.stderr
    assert (tmp_path / "template.yaml").read_text() == "mine"
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0


@pytest.mark.parametrize("target", ["no_such_module", "none.json", "broken.json", "empty.json"])
def test_what_is_no_design_is_told(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that is no design, or an empty one, is one sentence and an exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.json").write_text('{"format": "tavola-design", "version": 1, "tables": []}')
    done = CliRunner().invoke(app, ["iac", "terraform", target, "--output", "there"])

    assert done.exit_code in (Exit.FAILED, Exit.USAGE, Exit.NOT_FOUND)
    assert "Cause:" in done.stderr
    assert not (tmp_path / "there").exists()


def test_a_template_too_big_for_one_request_is_told(tmp_path: Path) -> None:
    """What must go through a bucket is said when it is written; an ending that no template has is no folder."""
    desk = "tavola.apps.support_desk.model"
    big = CliRunner().invoke(app, ["iac", "cloudformation", desk, "--output", str(tmp_path / "t.yaml")])
    odd = CliRunner().invoke(app, ["iac", "cloudformation", desk, "--output", str(tmp_path / "t.txt")])

    assert "--s3-bucket" in big.stderr
    assert odd.exit_code != 0
    assert "does not have the suffix of a template" in odd.stderr
    assert not (tmp_path / "t.txt").exists()


def test_an_option_that_is_forgotten_takes_nothing_away(tmp_path: Path) -> None:
    """Written again without its key and endpoint, a module stays as it is, whoever it is for, and what would go is named."""
    for vendor, out in (("terraform", "module"), ("cloudformation", "t.yaml"), ("cdk", "stack")):
        command = ["iac", vendor, DESK, "--output", str(tmp_path / out)]
        assert CliRunner().invoke(app, [*command, "--kms-key", "new", "--vpc-endpoint"]).exit_code == 0
        less = CliRunner().invoke(app, command)

        assert less.exit_code == Exit.FAILED
        assert "the VPC endpoint, the KMS key, which the new file lacks" in less.stderr
        assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
