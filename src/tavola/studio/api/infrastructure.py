"""Export a design to other tools' files, and import their files as a design."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import structs

from tavola.iac import (
    PlanOptions,
    cdk_files,
    derive_policies,
    index_steps,
    plan_infrastructure,
    render_policy,
    render_template,
    terraform_files,
)
from tavola.iac.formats import (
    FormatError,
    FormatNote,
    ImportResult,
    read_design_text,
    write_onetable,
    write_workbench,
)
from tavola.protocol.faults import Fault, ResourceNotFoundFault
from tavola.studio.designs import DesignAnalysis, design_text, find_analysis
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import DOCUMENT_BYTES_MAX, ApiMessage, DesignRequest, TableRequest, TextFile

InfrastructureFormat = Literal[
    "terraform",
    "cloudformation",
    "cloudformation-json",
    "cdk",
    "policies",
    "workbench",
    "onetable",
    "document",
]


class InfrastructureRequest(DesignRequest, kw_only=True):
    """The design to export, the file format, and what to generate beside the tables."""

    form: InfrastructureFormat
    alarms: bool = True
    policies: bool = True
    endpoint: bool = False  # a VPC gateway endpoint
    key: str | None = None  # KMS key for tables that name none: `new`, or a key


class InfrastructureFiles(ApiMessage):
    """The generated files, notes about them, and the equivalent command."""

    form: InfrastructureFormat
    files: tuple[TextFile, ...]
    notes: tuple[str, ...]
    command: str


async def export_infrastructure(studio: Studio, params: InfrastructureRequest) -> InfrastructureFiles:
    """Return a design as files for another tool."""
    subject = await find_analysis(studio, params.design, params.document)
    moment = datetime.fromtimestamp(studio.clock.now(), UTC)
    return await studio.run_in_thread(_export_files, subject, params, moment)


def _export_files(
    subject: DesignAnalysis, params: InfrastructureRequest, moment: datetime
) -> InfrastructureFiles:
    match params.form:
        case "workbench":
            model, report = write_workbench(
                subject.design, None, onto=None, date=moment.strftime("%b %d, %Y, %I:%M %p")
            )
            text = json.dumps(model, indent=2, ensure_ascii=False)
            return _build_files(subject, params, {"model.json": text}, tuple(map(str, report)))
        case "onetable":
            schemas, report = write_onetable(subject.design)
            files = {
                name: json.dumps(schema, indent=2, ensure_ascii=False) for name, schema in schemas.items()
            }
            return _build_files(subject, params, files, tuple(map(str, report)))
        case "document":
            return _build_files(subject, params, {"design.json": subject.text}, ())
        case "policies":
            policies = derive_policies(subject.design)
            documents = {policy.role: render_policy(policy, region="*", account="*") for policy in policies}
            notes = tuple(f"{policy.role}: {note}." for policy in policies for note in policy.notes)
            return _build_files(subject, params, {"policies.json": json.dumps(documents, indent=2)}, notes)
        case _:
            key = params.key or None
            options = PlanOptions(
                alarms=params.alarms, policies=params.policies, endpoint=params.endpoint, key=key
            )
            plan = plan_infrastructure(subject.design, options)
            notes = tuple(f"{note}." for note in plan.notes)
            if params.form == "terraform":
                notes = (*notes, *(f"{step}." for step in index_steps(plan, None)))
            return _build_files(subject, params, _render_plan(plan, params.form), notes)


def _render_plan(plan: Any, form: str) -> dict[str, str]:
    match form:
        case "terraform":
            return terraform_files(plan)
        case "cdk":
            return cdk_files(plan)
        case "cloudformation-json":
            return {"template.json": render_template(plan, "json")}
        case _:
            return {"template.yaml": render_template(plan, "yaml")}


def _build_files(
    subject: DesignAnalysis, params: InfrastructureRequest, files: dict[str, str], notes: tuple[str, ...]
) -> InfrastructureFiles:
    rendered = tuple(TextFile(name, text) for name, text in files.items())
    return InfrastructureFiles(params.form, rendered, notes, " ".join(_export_command(subject, params)))


def _export_command(subject: DesignAnalysis, params: InfrastructureRequest) -> Iterator[str]:
    target = shlex.quote(subject.target) if subject.target else "design.json"
    match params.form:
        case "workbench":
            yield f"tavola design {target} --workbench model.json"
        case "onetable":
            yield f"tavola design {target} --onetable schemas"
        case "document":
            yield f"tavola design {target} --json"
        case "policies":
            yield f"tavola iac policies {target}"
        case form:
            yield f"tavola iac {form.removesuffix('-json')} {target} --output infra"
            if form == "cloudformation-json":
                yield "--format json"
            for word, on in (
                ("--no-alarms", not params.alarms),
                ("--no-policies", not params.policies),
                ("--vpc-endpoint", params.endpoint),
            ):
                if on:
                    yield word
            if params.key:
                yield f"--kms-key {shlex.quote(params.key)}"


class ImportRequest(ApiMessage):
    """The text of a file, and its name, which helps to detect the format."""

    text: str
    name: str = ""


class ImportedDesign(ApiMessage):
    """An imported design as `tavola import --json` prints it; other design endpoints accept the document."""

    format: str
    document: str
    report: tuple[FormatNote, ...]
    tables: tuple[str, ...]
    entities: int
    needs: int
    samples: int


async def import_design(studio: Studio, params: ImportRequest) -> ImportedDesign:
    """Return the design in a file's text; it is not stored."""
    try:
        imported = await studio.run_in_thread(read_design_text, params.text, params.name)
    except FormatError as refused:
        notes = " ".join(getattr(refused, "__notes__", ()))
        raise RequestRefused(
            "import-refused",
            "The file cannot be imported",
            f"{refused}. {notes}".strip(),
            "Fix the file, or choose a CloudFormation, Terraform, NoSQL Workbench, OneTable, describe-table, awslabs or "
            "Tavola design file.",
        ) from refused
    return _imported_design(imported)


def _imported_design(imported: ImportResult) -> ImportedDesign:
    design = imported.design
    return ImportedDesign(
        imported.format,
        design_text(design),
        imported.report,
        tuple(table.name for table in design.tables),
        sum(len(table.entities) for table in design.tables) + len(design.views),
        len(design.needs),
        len(imported.samples),
    )


async def import_live_table(studio: Studio, params: TableRequest) -> ImportedDesign:
    """Return the design of a live table, as far as DynamoDB describes it."""
    name = {"TableName": params.table}
    described = await studio.db.call("DescribeTable", name)
    answers: list[dict[str, Any]] = [described]
    refused: list[FormatNote] = []
    for operation, request in (
        ("DescribeTimeToLive", name),
        ("DescribeContinuousBackups", name),
        ("ListTagsOfResource", {"ResourceArn": described["Table"]["TableArn"]}),
    ):
        try:
            answers.append(await studio.db.call(operation, request))
        except ResourceNotFoundFault:
            raise  # deleted in the meantime
        except Fault as fault:  # permission to describe the table does not include these
            refused.append(
                FormatNote(operation, f"the call failed ({fault.code}), so its settings are unknown")
            )
    text = json.dumps(answers, default=str)
    imported = _imported_design(await studio.run_in_thread(read_design_text, text, "describe-table.json"))
    return structs.replace(imported, report=(*refused, *imported.report))


ENDPOINTS = (
    Endpoint("POST", "/design/infrastructure", export_infrastructure, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/import", import_design, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("GET", "/design/live", import_live_table),
)
