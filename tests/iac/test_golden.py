"""What the writers make of the samples is what is kept, and the tools that it is for accept it.

After a change that is meant: `python -m tools.infrastructure`, and read the difference.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess

import pytest
import yaml

from tavola.iac.signing import is_unchanged
from tests.iac.reading import read_hcl
from tests.iac.samples import GOLDEN, SAMPLES, renderings, templates

FAST = ("tenancy.yaml",)  # cfn-lint takes its time


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_writers_write_what_is_kept(sample: str) -> None:
    """A sample's infrastructure is, letter for letter, what somebody read and kept."""
    for name, text in renderings(sample).items():
        assert (GOLDEN / name).read_text(encoding="utf-8") == text, name
        assert is_unchanged(text), name


def _findings(name: str) -> list[str]:
    from cfnlint.api import lint_all

    found = [match for match in lint_all(templates()[name]) if match.rule.severity != "informational"]
    return [f"{name}:{match.linenumber} {match.rule.id} {match.message}" for match in found]


@pytest.mark.parametrize("name", FAST)
def test_cfn_lint_finds_nothing(name: str) -> None:
    """The real cfn-lint has no error and no warning for a template with tables and policies."""
    assert _findings(name) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(templates()) - set(FAST)))
def test_cfn_lint_finds_nothing_in_the_others(name: str) -> None:
    """The real cfn-lint has no error and no warning for any template."""
    assert _findings(name) == []


def test_cfn_lint_would_find_something() -> None:
    """The validator is not asleep: a key of an attribute that is not defined is found."""
    from cfnlint.api import lint_all

    text = templates()["tournaments.yaml"].replace("AttributeName: bracket", "AttributeName: brackets", 1)

    assert lint_all(text)


@pytest.mark.parametrize("sample", SAMPLES)
def test_hcl_parses(sample: str) -> None:
    """python-hcl2 reads every module, and finds the tables."""
    read = read_hcl((GOLDEN / f"{sample}.tf").read_text())

    tables = [name for block in read["resource"] for name in block.get("aws_dynamodb_table", {})]
    assert len(tables) == len(SAMPLES[sample][0].tables)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
@pytest.mark.parametrize("sample", SAMPLES)
def test_terraform_fmt_changes_nothing(sample: str) -> None:
    """A module is laid out as `terraform fmt` would."""
    text = (GOLDEN / f"{sample}.tf").read_text()
    done = subprocess.run(["terraform", "fmt", "-"], input=text, capture_output=True, text=True, check=True)

    assert done.stdout == text


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_cdk_app_compiles(sample: str) -> None:
    """An app is Python, and has a stack."""
    tree = ast.parse((GOLDEN / f"{sample}_stack.txt").read_text())

    stacks = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(stacks) == 1
    assert stacks[0].endswith("Stack")


def test_yaml_and_json_are_one_template() -> None:
    """The two forms of a template say the same; only the mark's sum is another."""
    told = json.loads(templates()["service_desk.json"])
    read = yaml.load(templates()["service_desk.yaml"], Loader=ShortForms)

    assert read.pop("Metadata") != told.pop("Metadata")
    assert read == told


class ShortForms(yaml.SafeLoader):
    """YAML with CloudFormation's tags, read as the functions that they are short for."""


def _function(loader: ShortForms, tag: str, node: yaml.Node) -> dict[str, object]:
    name = tag if tag == "Ref" else f"Fn::{tag}"
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.ScalarNode)
    told = loader.construct_scalar(node)
    return {name: str(told).split(".", 1) if tag == "GetAtt" else told}


ShortForms.add_multi_constructor("!", _function)
