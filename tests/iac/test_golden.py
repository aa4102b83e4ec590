"""Files of the writers equal the reviewed ones in golden/, and the tools that read such files accept them.

After an intended change: `python -m tools.infrastructure`, and review the diff.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess

import pytest
import yaml

from tavola.iac import cdk_files, render_template, render_terraform
from tavola.iac.files import is_unchanged
from tests.iac.reading import read_hcl
from tests.iac.samples import GOLDEN, REVIEWED, SAMPLES, plan_sample, renderings


@pytest.mark.parametrize("sample", REVIEWED)
def test_files_equal_the_reviewed_ones(sample: str) -> None:
    """Each file of a sample is character for character the reviewed one, and its signature is valid."""
    for name, text in renderings(sample).items():
        assert (GOLDEN / name).read_text(encoding="utf-8") == text, name
        assert is_unchanged(text), name


def _lint(template: str) -> list[str]:
    from cfnlint.api import lint_all

    matches = [match for match in lint_all(template) if match.rule.severity != "informational"]
    return [f"line {match.linenumber} {match.rule.id} {match.message}" for match in matches]


def test_cfn_lint_accepts_a_template_with_policies() -> None:
    """cfn-lint reports no error and no warning for a template with tables and policies."""
    assert _lint(render_template(plan_sample("tenancy"))) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("sample", sorted(set(SAMPLES) - {"tenancy"}))
def test_cfn_lint_accepts_every_template(sample: str, form: str) -> None:
    """cfn-lint reports no error and no warning for any template, in either form."""
    if form == "json" and sample != "service_desk":
        pytest.skip("one template shows that JSON is accepted")
    assert _lint(render_template(plan_sample(sample), "json" if form == "json" else "yaml")) == []


def test_cfn_lint_finds_a_planted_error() -> None:
    """A key attribute without a definition is reported."""
    text = render_template(plan_sample("tournaments"))

    assert _lint(text.replace("AttributeName: bracket", "AttributeName: brackets", 1))


@pytest.mark.parametrize("sample", SAMPLES)
def test_hcl_parses(sample: str) -> None:
    """python-hcl2 parses every module and finds its tables."""
    read = read_hcl(render_terraform(plan_sample(sample)))

    tables = [name for block in read["resource"] for name in block.get("aws_dynamodb_table", {})]
    assert len(tables) == len(SAMPLES[sample][0].tables)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
@pytest.mark.parametrize("sample", SAMPLES)
def test_terraform_fmt_changes_nothing(sample: str) -> None:
    """A module has the layout of `terraform fmt`."""
    text = render_terraform(plan_sample(sample))
    done = subprocess.run(["terraform", "fmt", "-"], input=text, capture_output=True, text=True, check=True)

    assert done.stdout == text


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_cdk_app_compiles(sample: str) -> None:
    """An app is valid Python with one stack."""
    tree = ast.parse(cdk_files(plan_sample(sample))["app.py"])

    stacks = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(stacks) == 1
    assert stacks[0].endswith("Stack")


@pytest.mark.parametrize("sample", SAMPLES)
def test_yaml_and_json_are_one_template(sample: str) -> None:
    """Both forms of a template hold the same data; only the signature differs."""
    plan = plan_sample(sample)
    from_json = json.loads(render_template(plan, "json"))
    from_yaml = yaml.load(render_template(plan), Loader=ShortForms)

    assert from_yaml.pop("Metadata") != from_json.pop("Metadata")
    assert from_yaml == from_json


class ShortForms(yaml.SafeLoader):
    """Load CloudFormation's short tags as the functions that they stand for."""


def _function(loader: ShortForms, tag: str, node: yaml.Node) -> dict[str, object]:
    name = tag if tag == "Ref" else f"Fn::{tag}"
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.ScalarNode)
    text = loader.construct_scalar(node)
    return {name: str(text).split(".", 1) if tag == "GetAtt" else text}


ShortForms.add_multi_constructor("!", _function)
