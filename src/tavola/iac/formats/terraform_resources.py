"""Read Terraform resources, from HCL or from the output of `terraform show -json`, into a design.

A plan omits values that are unknown until it is applied, such as the ARN of a stream; the references in its configuration
show which resource they come from.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from tavola.iac.formats.hcl_functions import encode_json
from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult
from tavola.iac.formats.related_resources import (
    ScalingTarget,
    add_consumers,
    add_scaling,
    note_managed_policy,
    read_consumer,
    read_policy,
    stream_arn,
    table_arn,
    table_in_arn,
)
from tavola.iac.formats.source_values import (
    Unresolved,
    ValueReader,
    as_text,
    report_unread,
    show_value,
    track,
)
from tavola.iac.formats.table_definitions import NO_ENTITIES, give_tables_unique_names, read_table
from tavola.model.document import Consumer, Design, Policy, TableDesign

PLAN_FORMAT = "terraform-json"
_INSTANCE_KEY = re.compile(r"\[[^\]]*\]")


def is_terraform_plan(raw: Any) -> bool:
    """Return whether data is a Terraform plan or state."""
    return isinstance(raw, Mapping) and any(
        isinstance(raw.get(name), Mapping) and "root_module" in raw[name]
        for name in ("planned_values", "values")
    )


def read_terraform_plan(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of the tables in a plan or state."""
    report = ImportReport("a block")
    module_values = raw.get("planned_values", raw.get("values"))
    root = module_values.get("root_module") if isinstance(module_values, Mapping) else None
    if not isinstance(root, Mapping):
        raise FormatError("root_module is not an object; create the file again with terraform show -json")
    planned = list(_resources(root, report))
    prior = raw.get("prior_state")  # holds the data sources that a plan has already read
    values = prior.get("values") if isinstance(prior, Mapping) else None
    before = values.get("root_module") if isinstance(values, Mapping) else None
    known = {resource.place for resource in planned}
    planned += [
        resource
        for resource in (_resources(before, report) if isinstance(before, Mapping) else ())
        if resource.kind == DOCUMENT and resource.place not in known
    ]
    configuration = raw.get("configuration")
    top = configuration.get("root_module") if isinstance(configuration, Mapping) else None
    plan_references = _PlanReferences(dict(_references(top, "")), planned)
    resources = [
        replace(resource, values=track({**plan_references.resolve_arguments(resource), **resource.values}))
        for resource in planned
    ]
    return design_of_resources(resources, report, PLAN_FORMAT)


def _resources(module: Mapping[str, Any], report: ImportReport) -> Iterator[TerraformResource]:
    entries = module.get("resources")
    for entry in entries if isinstance(entries, list) else ():
        values = entry.get("values") if isinstance(entry, Mapping) else None
        if not isinstance(values, Mapping) or not isinstance(entry.get("type"), str):
            report.add("resources", "ignored a resource without type or values")
            continue
        name = as_text(entry.get("name")) or "table"
        index = as_text(entry.get("index"))
        place = as_text(entry.get("address")) or name
        present = {argument: value for argument, value in values.items() if value is not None}
        if entry["type"] == TABLE:
            if entry.get("mode") == "data":
                report.add(place, "a data source refers to a table of another configuration; not imported")
                continue
            if not as_text(present.get("name")):
                report.add(place, "the name is unknown before apply; using the address as the table's name")
                present["name"] = place
        if entry["type"] == DOCUMENT and "json" not in present:
            present["json"] = render_policy_json(present, report, place)
        yield TerraformResource(entry["type"], name if index is None else f"{name}_{index}", place, present)
    inner = module.get("child_modules")
    for child in inner if isinstance(inner, list) else ():
        if isinstance(child, Mapping):
            yield from _resources(child, report)


def _references(module: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the address of each configured resource, without indexes, and the expressions of its arguments."""
    entries = module.get("resources") if isinstance(module, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("expressions"), Mapping):
            yield f"{prefix}{entry.get('address')}", entry["expressions"]
    calls = module.get("module_calls") if isinstance(module, Mapping) else None
    for name, call in calls.items() if isinstance(calls, Mapping) else ():
        if isinstance(call, Mapping):
            yield from _references(call.get("module"), f"{prefix}module.{name}.")


@dataclass(frozen=True, slots=True)
class _PlanReferences:
    """The references of a configuration, for arguments whose values a plan does not know yet."""

    expressions: Mapping[str, Mapping[str, Any]]
    resources: list[TerraformResource]

    def resolve_arguments(self, resource: TerraformResource) -> dict[str, Any]:
        """Return the arguments that are unknown in the plan but given by reference in its configuration."""
        resolved: dict[str, Any] = {}
        bare = _INSTANCE_KEY.sub("", resource.place)
        module = resource.place.rpartition(f"{resource.kind}.")[0]
        for argument, expression in self.expressions.get(bare, {}).items():
            references = expression.get("references") if isinstance(expression, Mapping) else None
            names = (
                [name for name in references if isinstance(name, str)] if isinstance(references, list) else []
            )
            if argument not in resource.values and names:
                resolved[argument] = self._resolve_reference(argument, names, module)
        return resolved

    def _resolve_reference(self, argument: str, references: list[str], module: str) -> Any:
        """Return the value of an argument from its reference; unresolved unless it refers to a table or a policy document."""
        first = references[0]
        address, _, attribute = first.rpartition(".")
        for resource in self.resources:
            if f"{module}{address}" not in (resource.place, _INSTANCE_KEY.sub("", resource.place)):
                continue
            if resource.kind == DOCUMENT and attribute == "json":
                return resource.values.get("json")
            if resource.kind == TABLE and argument != "policy":
                name = as_text(resource.values.get("name")) or ""
                arns = {"arn": table_arn(name), "stream_arn": stream_arn(name)}
                return Unresolved(arns[attribute]) if attribute in arns else name
        return Unresolved(f"${{{first}}}")


DOCUMENT = "aws_iam_policy_document"


def render_policy_json(values: Mapping[str, Any], report: ImportReport, place: str) -> str | Unresolved:
    """Return the JSON of an aws_iam_policy_document."""
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
            statement["Principal"] = {
                str(principal.get("type")): principal.get("identifiers") for principal in principals
            }
        conditions: dict[str, dict[str, Any]] = {}
        for entry in read.objects(raw.get("condition"), place):
            test, variable = str(entry.get("test")), str(entry.get("variable"))
            conditions.setdefault(test, {})[variable] = entry.get("values")
        if conditions:
            statement["Condition"] = conditions
        statements.append(statement)
    for argument in ("source_policy_documents", "override_policy_documents", "source_json", "override_json"):
        if values.get(argument):
            report.add(f"{place}.{argument}", "statements of other documents are not merged; not imported")
    document = encode_json({"Version": values.get("version") or "2012-10-17", "Statement": statements})
    if isinstance(document, Unresolved):
        return Unresolved(_restore_iam_variables(document.text))
    return _restore_iam_variables(document)


def _restore_iam_variables(text: str) -> str:
    """Return a document with IAM variables as `${…}`, which HCL writes `&{…}`."""
    return text.replace("\\u0026{", "${")


TABLE = "aws_dynamodb_table"
_INDEX = "aws_dynamodb_global_secondary_index"
_REPLICA = "aws_dynamodb_table_replica"
_RESOURCE_POLICY = "aws_dynamodb_resource_policy"
_READ_ELSEWHERE = (_REPLICA, _RESOURCE_POLICY)
_MAPPING = "aws_lambda_event_source_mapping"
_TARGET = "aws_appautoscaling_target"
_SCALING_POLICY = "aws_appautoscaling_policy"
_POLICIES = ("aws_iam_policy", "aws_iam_role_policy", "aws_iam_user_policy", "aws_iam_group_policy")
_ATTACHMENTS = tuple(f"{policy}_attachment" for policy in _POLICIES)
_READ = (TABLE, _INDEX, _MAPPING, _TARGET, _SCALING_POLICY)  # unread arguments of these are reported
_NOT_DESIGN = frozenset(  # Meta-arguments, and attributes that a plan or state has of an existing resource.
    """
    count for_each provider depends_on lifecycle timeouts region id arn stream_arn stream_label tags_all
    uuid state state_transition_reason kms_key_arn last_modified last_processing_result function_arn
    alarm_arns service_namespace policy_type role_arn predefined_metric_specification
    """.split()
)
ARGUMENT_NAMES: Mapping[str, str] = {
    "TableName": "name",
    "KeySchema": "key_schema",
    "AttributeDefinitions": "attribute",
    "BillingMode": "billing_mode",
    "ProvisionedThroughput": "read_capacity",
    "ReadCapacityUnits": "read_capacity",
    "WriteCapacityUnits": "write_capacity",
    "StreamSpecification": "stream_view_type",
    "TimeToLiveSpecification": "ttl",
    "PointInTimeRecoverySpecification": "point_in_time_recovery",
    "RecoveryPeriodInDays": "recovery_period_in_days",
    "SSESpecification": "server_side_encryption",
    "TableClass": "table_class",
    "DeletionProtectionEnabled": "deletion_protection_enabled",
    "Tags": "tags",
    "Replicas": "replica",
    "LocalSecondaryIndexes": "local_secondary_index",
    "GlobalSecondaryIndexes": "global_secondary_index",
    "IndexName": "name",
    "Projection": "projection_type",
    "AttributeName": "attribute_name",
    "KeyType": "key_type",
    "HASH": "hash_key",
    "RANGE": "range_key",
}
"""Terraform's names for members of CreateTable, and for the partition and sort key."""


@dataclass(frozen=True, slots=True)
class TerraformResource:
    """A resource with evaluated arguments; its blocks are lists of objects."""

    kind: str
    name: str
    place: str  # its address, such as aws_dynamodb_table.orders
    values: Mapping[str, Any]
    file: str = ""
    line: int = 0  # 0 if the resource comes from a plan


def design_of_resources(
    resources: Sequence[TerraformResource], report: ImportReport, form: str
) -> ImportResult:
    """Return the design of all tables among the resources."""
    tables = [
        _read_table_resource(resource, report)
        for resource in merge_index_resources(resources, report)
        if resource.kind == TABLE
    ]
    if not tables:
        kinds = ", ".join(sorted({resource.kind for resource in resources})[:6])
        raise report.attach_notes(
            FormatError(f"no aws_dynamodb_table resource found{f', only {kinds}' if kinds else ''}")
        )
    related = _RelatedResources(resources, report)
    scaled = add_scaling(give_tables_unique_names(tables, report), related.scaling(), report)
    complete = add_consumers(scaled, related.consumers(), report)
    related.report_replicas()
    policies = tuple(related.policies([table.name for table in complete]))
    related.report_unread()
    report.add("", NO_ENTITIES)
    return ImportResult(Design(tuple(complete), policies=policies), report.notes, form)


def _read_table_resource(resource: TerraformResource, report: ImportReport) -> TableDesign:
    """Return the table of a resource; an error names the file and line of the resource."""
    try:
        body = table_body(resource.values, resource.place, report)
        return read_table(body, resource.place, report, resource.name, ARGUMENT_NAMES)
    except FormatError as refused:
        if not resource.line:
            raise
        place = f"line {resource.line}, {refused.place}"
        raise FormatError(refused.reason, place, refused.file or resource.file) from refused


def table_body(values: Mapping[str, Any], place: str, report: ImportReport) -> dict[str, Any]:
    """Return the arguments of a table in CreateTable's names."""
    read = ValueReader(report)

    def block(name: str, of: Mapping[str, Any] = values) -> Mapping[str, Any]:
        return read.object(of.get(name), f"{place}.{name}")

    ttl, recovery, encryption = (
        block(name) for name in ("ttl", "point_in_time_recovery", "server_side_encryption")
    )
    tags = values.get("tags")
    replicas = read.objects(values.get("replica"), f"{place}.replica")
    strong = any(as_text(replica.get("consistency_mode")) == "STRONG" for replica in replicas)
    if not isinstance(tags, Mapping):
        if tags is not None:
            report.add(f"{place}.tags", f"{show_value(tags)} does not resolve to a map; tags not imported")
        tags = {}
    body: dict[str, Any] = {
        "TableName": values.get("name"),
        "KeySchema": _schema(values, place, read),
        "AttributeDefinitions": [
            {"AttributeName": entry.get("name"), "AttributeType": entry.get("type")}
            for entry in read.objects(values.get("attribute"), f"{place}.attribute")
        ],
        "BillingMode": values.get("billing_mode") or "PROVISIONED",
        "ProvisionedThroughput": {
            "ReadCapacityUnits": values.get("read_capacity"),
            "WriteCapacityUnits": values.get("write_capacity"),
        },
        "StreamSpecification": {
            "StreamEnabled": values.get("stream_enabled"),
            "StreamViewType": values.get("stream_view_type"),
        },
        "TimeToLiveSpecification": {
            "AttributeName": ttl.get("attribute_name"),
            "Enabled": ttl.get("enabled", bool(ttl)),
        },
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": recovery.get("enabled"),
            "RecoveryPeriodInDays": recovery.get("recovery_period_in_days") or None,
        },
        "SSESpecification": {
            "SSEEnabled": encryption.get("enabled"),
            "KMSMasterKeyId": encryption.get("kms_key_arn") or None,
        },
        "TableClass": values.get("table_class") or None,
        "DeletionProtectionEnabled": values.get("deletion_protection_enabled"),
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "Replicas": [{"RegionName": replica.get("region_name")} for replica in replicas],
        "MultiRegionConsistency": "STRONG" if strong else None,
    }
    for member, argument in (
        ("LocalSecondaryIndexes", "local_secondary_index"),
        ("GlobalSecondaryIndexes", "global_secondary_index"),
    ):
        body[member] = [
            _index(raw, values, f"{place}.{argument}", read)
            for raw in read.objects(values.get(argument), f"{place}.{argument}")
        ]
    return body


def _schema(values: Mapping[str, Any], place: str, read: ValueReader) -> list[dict[str, Any]]:
    """Return a key schema, from key_schema blocks or from hash_key and range_key."""
    blocks = read.objects(values.get("key_schema"), f"{place}.key_schema")
    if blocks:
        return [
            {"AttributeName": block.get("attribute_name"), "KeyType": block.get("key_type")}
            for block in blocks
        ]
    schema: list[dict[str, Any]] = []
    for argument, kind in (("hash_key", "HASH"), ("range_key", "RANGE")):
        name = values.get(argument)
        if name in (None, ""):
            continue
        if as_text(name) is None:
            raise FormatError(
                f"expected the name of an attribute, not {show_value(name)}", f"{place}.{argument}"
            )
        schema.append({"AttributeName": name, "KeyType": kind})
    return schema


def _index(raw: Mapping[str, Any], table: Mapping[str, Any], place: str, read: ValueReader) -> dict[str, Any]:
    schema = _schema(raw, place, read)
    if place.endswith("local_secondary_index"):
        hash_ = next((element for element in _schema(table, place, read) if element["KeyType"] == "HASH"), {})
        schema = [hash_, *(element for element in schema if element["KeyType"] == "RANGE")]
    units = {"ReadCapacityUnits": raw.get("read_capacity"), "WriteCapacityUnits": raw.get("write_capacity")}
    return {
        "IndexName": raw.get("name"),
        "KeySchema": schema,
        "Projection": {
            "ProjectionType": raw.get("projection_type"),
            "NonKeyAttributes": raw.get("non_key_attributes") or None,
        },
        "ProvisionedThroughput": units if any(units.values()) else None,
    }


def merge_index_resources(
    resources: Sequence[TerraformResource], report: ImportReport
) -> list[TerraformResource]:
    """Return the resources with separate index resources merged into their tables."""
    merged = list(resources)
    read = ValueReader(report)
    for index in resources:
        if index.kind != _INDEX:
            continue
        name = as_text(index.values.get("table_name"))
        at = next(
            (
                position
                for position, resource in enumerate(merged)
                if resource.kind == TABLE and as_text(resource.values.get("name")) == name
            ),
            None,
        )
        if at is None:
            report.add(index.place, f"table {name} is not in these files; index not imported")
            continue
        projection = read.object(index.values.get("projection"), f"{index.place}.projection")
        schema = read.objects(index.values.get("key_schema"), f"{index.place}.key_schema")
        own = {
            "name": index.values.get("index_name"),
            "projection_type": projection.get("projection_type"),
            "non_key_attributes": projection.get("non_key_attributes"),
            "key_schema": index.values.get("key_schema"),
        }
        typed = [{"name": part.get("attribute_name"), "type": part.get("attribute_type")} for part in schema]
        values = merged[at].values
        known = read.objects(values.get("attribute"), merged[at].place)
        names = {attribute.get("name") for attribute in known}
        attributes = [*known, *(attribute for attribute in typed if attribute["name"] not in names)]
        merged[at] = replace(
            merged[at],
            values=ChainMap(
                {
                    "attribute": attributes,
                    "global_secondary_index": [
                        *read.objects(values.get("global_secondary_index"), merged[at].place),
                        own,
                    ],
                },
                cast(Any, values),
            ),
        )
    return merged


class _RelatedResources:
    """The consumers, auto scaling and policies that refer to the tables of a configuration."""

    def __init__(self, resources: Sequence[TerraformResource], report: ImportReport) -> None:
        self.resources = resources
        self.report = report
        self.read = ValueReader(report)

    def of_kind(self, *kinds: str) -> Iterator[TerraformResource]:
        return (resource for resource in self.resources if resource.kind in kinds)

    def scaling(self) -> Iterator[ScalingTarget]:
        target_values: dict[tuple[str | None, str | None], Any] = {}
        for policy in self.of_kind(_SCALING_POLICY):
            name = "target_tracking_scaling_policy_configuration"
            scaled = (
                as_text(policy.values.get("resource_id")),
                as_text(policy.values.get("scalable_dimension")),
            )
            target_values[scaled] = self.read.object(policy.values.get(name), policy.place).get(
                "target_value"
            )
        for target in self.of_kind(_TARGET):
            resource = as_text(target.values.get("resource_id")) or ""
            dimension = as_text(target.values.get("scalable_dimension")) or ""
            if dimension.startswith("dynamodb:"):
                yield ScalingTarget(
                    target.place,
                    resource,
                    dimension,
                    self.read.integer(target.values.get("min_capacity"), f"{target.place}.min_capacity", 1),
                    self.read.integer(target.values.get("max_capacity"), f"{target.place}.max_capacity", 1),
                    self.read.integer(
                        target_values.get((resource, dimension)), f"{target.place}.target_value", 1
                    ),
                )

    def consumers(self) -> Iterator[tuple[str, str, Consumer]]:
        for resource in self.of_kind(_MAPPING):
            values = resource.values
            source = values.get("event_source_arn")
            if source is None and values.get("self_managed_event_source"):
                continue
            arn = as_text(source) or ""
            if _is_of_another_service(arn):
                continue
            function_name = as_text(values.get("function_name")) or ""
            function = self._function(function_name)
            criteria = self.read.object(values.get("filter_criteria"), resource.place)
            destination = self.read.object(values.get("destination_config"), resource.place)
            failure = self.read.object(destination.get("on_failure"), resource.place)
            raw = {
                "Enabled": values.get("enabled", True),
                "BatchSize": values.get("batch_size"),
                "MaximumBatchingWindowInSeconds": values.get("maximum_batching_window_in_seconds"),
                "ParallelizationFactor": values.get("parallelization_factor"),
                "MaximumRetryAttempts": values.get("maximum_retry_attempts"),
                "MaximumRecordAgeInSeconds": values.get("maximum_record_age_in_seconds"),
                "BisectBatchOnFunctionError": values.get("bisect_batch_on_function_error"),
                "FunctionResponseTypes": values.get("function_response_types"),
                "StartingPosition": values.get("starting_position"),
                "FilterCriteria": {
                    "Filters": [
                        {"Pattern": one.get("pattern")}
                        for one in self.read.objects(criteria.get("filter"), resource.place)
                    ]
                },
                "DestinationConfig": {"OnFailure": {"Destination": failure.get("destination_arn")}},
            }
            own: dict[str, Any] | None = None
            if function is not None:
                names = (("handler", "Handler"), ("timeout", "Timeout"), ("memory_size", "MemorySize"))
                own = {member: function.values.get(argument) for argument, member in names}
            name = resource.name if function is None else function.name
            consumer = read_consumer(
                name, raw, own, resource.place, self.report, existing_function=function_name
            )
            if consumer is not None:
                yield resource.place, arn, consumer

    def _function(self, reference: str) -> TerraformResource | None:
        """Return the function that a mapping invokes, given by reference, name or ARN."""
        match = re.search(r"aws_lambda_function\.([\w-]+)", reference)
        for resource in self.of_kind("aws_lambda_function"):
            if match is not None and resource.name == match[1]:
                return resource
            if reference and reference.rpartition(":")[2] == as_text(resource.values.get("function_name")):
                return resource
        return None

    def report_replicas(self) -> None:
        """Note that replica resources are not imported."""
        for resource in self.of_kind(_REPLICA):
            name = table_in_arn(as_text(resource.values.get("global_table_arn")) or "") or "a table"
            self.report.add(
                resource.place, f"the Region of this replica of {name} is set by its provider; not imported"
            )

    def policies(self, tables: list[str]) -> Iterator[Policy]:
        seen: set[str] = set()
        for resource in (*self.of_kind(*_POLICIES, _RESOURCE_POLICY), *self.of_kind(DOCUMENT)):
            document = resource.values.get("json" if resource.kind == DOCUMENT else "policy")
            policy = read_policy(resource.name, document, resource.place, tables, self.report)
            if policy is None:
                continue
            text = json.dumps(policy.document, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield policy
        for resource in self.of_kind(*_ATTACHMENTS, "aws_iam_role"):
            arns = resource.values.get(
                "managed_policy_arns" if resource.kind == "aws_iam_role" else "policy_arn"
            )
            for arn in arns if isinstance(arns, list) else [arns]:
                arn_text = as_text(arn) or ""
                if arn is not None and "aws_iam_policy." not in arn_text:
                    note_managed_policy(arn_text, resource.place, self.report)
            for inner in self.read.objects(resource.values.get("inline_policy"), resource.place):
                policy_name = as_text(inner.get("name")) or resource.name
                policy = read_policy(
                    policy_name, inner.get("policy"), f"{resource.place}.inline_policy", tables, self.report
                )
                if policy is not None:
                    yield policy

    def report_unread(self) -> None:
        """Report unread arguments, and DynamoDB resources that a design cannot describe."""
        for resource in self.resources:
            dimension = as_text(resource.values.get("scalable_dimension")) or "dynamodb:"
            if resource.kind == _MAPPING and _is_of_another_service(
                as_text(resource.values.get("event_source_arn")) or ""
            ):
                continue
            if resource.kind in _READ and dimension.startswith("dynamodb:"):
                report_unread(resource.values, resource.place, self.report, ignore=_NOT_DESIGN)
            elif resource.kind.startswith("aws_dynamodb_") and resource.kind not in _READ_ELSEWHERE:
                note = f"{resource.kind} has no equivalent in a design; not imported"
                self.report.add(resource.place, note)


def _is_of_another_service(arn: str) -> bool:
    """Return whether an ARN, or a reference to one, is known not to be a table's stream."""
    if arn.startswith("arn:"):
        return arn.split(":", 3)[2] not in ("dynamodb", "") and "$" not in arn.split(":", 3)[2]
    return arn.startswith("${aws_") and not arn.startswith("${aws_dynamodb_")
