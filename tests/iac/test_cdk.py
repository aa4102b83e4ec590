"""CDK: Python that says what the plan says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.iac import InfrastructurePlan, cdk_files, plan_infrastructure
from tavola.iac.cdk.python_text import PythonCode, format_string
from tavola.iac.plan import TablePlan
from tests.iac.samples import EVERYTHING, plan_sample

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("{}'\"\\\n"), max_size=20)
TABLE = TablePlan("prod-tickets", {"pk": "S"}, "pk", None)


def calls(plan: InfrastructurePlan, name: str) -> Iterator[dict[str, Any]]:
    """Give the named arguments of every call of something in a plan's app."""
    for node in ast.walk(ast.parse(cdk_files(plan)["app.py"])):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield {each.arg: each.value for each in node.keywords if each.arg is not None}


def test_keys_of_several_attributes_are_lists_of_the_construct() -> None:
    """A key of several attributes is partition_keys and sort_keys; one of a single attribute is not."""
    (tournaments,) = calls(plan_sample("tournaments"), "dynamodb.GlobalSecondaryIndexPropsV2")
    by_customer = list(calls(plan_infrastructure(EVERYTHING), "dynamodb.GlobalSecondaryIndexPropsV2"))[1]

    assert len(tournaments["partition_keys"].elts) == 2
    assert len(tournaments["sort_keys"].elts) == 3
    assert {"partition_key", "sort_key"} <= set(by_customer)


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_hostile_tags_come_back(tags: dict[str, str]) -> None:
    """Tags of any text are literals in the app, and mean themselves."""
    told = calls(InfrastructurePlan((replace(TABLE, tags=tags),)), "cdk.CfnTag")

    assert {ast.literal_eval(each["key"]): ast.literal_eval(each["value"]) for each in told} == tags


@given(TEXTS)
@settings(max_examples=100)
def test_a_text_beside_an_expression_is_itself(text: str) -> None:
    """In a formatted text the expression is evaluated, and nothing of the text is."""
    told = format_string(PythonCode("x"), text)

    assert eval(told.text, {"x": "X"}) == f"X{text}"


def test_the_project_is_whole() -> None:
    """The app comes with what `cdk deploy` asks for."""
    files = cdk_files(plan_sample("service_desk"))

    assert set(files) == {"app.py", "cdk.json", "requirements.txt"}
    assert "aws-cdk-lib>=" in files["requirements.txt"]
