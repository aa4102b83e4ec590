"""Documents: Terraform's policies that are written as blocks of statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.iac.formats.hcl_functions import encode_json
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.unresolved import Unresolved
from tavola.iac.formats.value_reader import ValueReader

DOCUMENT = "aws_iam_policy_document"


def render_policy_json(values: Mapping[str, Any], report: ImportReport, place: str) -> str | Unresolved:
    """Return the JSON of a policy that is written as blocks."""
    read = ValueReader(report)
    statements: list[dict[str, Any]] = []
    for raw in read.objects(values.get("statement"), place):
        statement: dict[str, Any] = {"Effect": raw.get("effect") or "Allow"}
        if raw.get("sid"):
            statement["Sid"] = raw["sid"]
        for argument, member in (
            ("actions", "Action"),
            ("not_actions", "NotAction"),
            ("resources", "Resource"),
            ("not_resources", "NotResource"),
        ):
            if raw.get(argument) is not None:
                statement[member] = raw[argument]
        principals = read.objects(raw.get("principals"), place)
        if principals:
            statement["Principal"] = {str(each.get("type")): each.get("identifiers") for each in principals}
        conditions: dict[str, dict[str, Any]] = {}
        for each in read.objects(raw.get("condition"), place):
            conditions.setdefault(str(each.get("test")), {})[str(each.get("variable"))] = each.get("values")
        if conditions:
            statement["Condition"] = conditions
        statements.append(statement)
    for argument in ("source_policy_documents", "override_policy_documents", "source_json", "override_json"):
        if values.get(argument):
            report.add(f"{place}.{argument}", "what it adds to the statements is not followed; left out")
    told = encode_json({"Version": values.get("version") or "2012-10-17", "Statement": statements})
    if isinstance(told, Unresolved):
        return Unresolved(_restore_iam_variables(told.text))
    return _restore_iam_variables(told)


def _restore_iam_variables(text: str) -> str:
    """Return a document with its variables as IAM spells them, where HCL has `&{…}`."""
    return text.replace("\\u0026{", "${")
