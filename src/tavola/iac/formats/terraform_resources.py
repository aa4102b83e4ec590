"""Read Terraform resources, from HCL or from a plan, into a design."""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from tavola.iac.formats.hcl_functions import encode_json
from tavola.iac.formats.import_result import FormatRefused, ImportReport, ImportResult
from tavola.iac.formats.related_resources import (
    ScalingTarget,
    add_consumers,
    add_scaling,
    note_managed_policy,
    read_consumer,
    read_policy,
    table_in_arn,
)
from tavola.iac.formats.source_values import Unresolved, ValueReader, as_text, report_unread, show_value
from tavola.iac.formats.table_definitions import NO_ENTITIES, give_tables_unique_names, read_table
from tavola.model.document import Consumer, Design, Policy, TableDesign

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


TABLE = "aws_dynamodb_table"
_INDEX = "aws_dynamodb_global_secondary_index"
_REPLICA = "aws_dynamodb_table_replica"
_RESOURCE_POLICY = "aws_dynamodb_resource_policy"
_MAPPING = "aws_lambda_event_source_mapping"
_TARGET = "aws_appautoscaling_target"
_AIM = "aws_appautoscaling_policy"
_POLICIES = ("aws_iam_policy", "aws_iam_role_policy", "aws_iam_user_policy", "aws_iam_group_policy")
_ATTACHMENTS = tuple(f"{each}_attachment" for each in _POLICIES)
_READ = (TABLE, _INDEX, _MAPPING, _TARGET, _AIM)  # of which every member is read or told
_BESIDE = frozenset(
    (
        # Of Terraform itself, or what a plan and a state say of a thing that stands.
        *("count", "for_each", "provider", "depends_on", "lifecycle", "timeouts", "region", "id", "arn"),
        *(
            "stream_arn",
            "stream_label",
            "tags_all",
            "uuid",
            "state",
            "state_transition_reason",
            "kms_key_arn",
        ),
        *("last_modified", "last_processing_result", "function_arn", "alarm_arns", "service_namespace"),
        *("policy_type", "role_arn", "predefined_metric_specification"),
    )
)
ARGUMENT_NAMES: Mapping[str, str] = {
    "TableName": "name",
    "KeySchema": "hash_key",
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
}
"""What Terraform calls the members of CreateTable."""


@dataclass(frozen=True, slots=True)
class TerraformResource:
    """A resource with evaluated arguments; its blocks are lists of objects."""

    kind: str
    name: str
    place: str
    values: Mapping[str, Any]


def design_of_resources(
    resources: Sequence[TerraformResource], report: ImportReport, form: str
) -> ImportResult:
    """Return the design of the tables among some resources."""
    tables = [
        read_table(table_body(each.values, each.place, report), each.place, report, each.name, ARGUMENT_NAMES)
        for each in merge_index_resources(resources, report)
        if each.kind == TABLE
    ]
    if not tables:
        kinds = ", ".join(sorted({each.kind for each in resources})[:6]) or "no resource"
        raise report.attach_notes(
            FormatRefused(
                f"there is no aws_dynamodb_table in it, but {kinds}; name a file or folder with a table"
            )
        )
    around = _RelatedResources(resources, report)
    done = add_scaling(give_tables_unique_names(tables, report), around.scaling(), report)
    done = around.note_replicas(add_consumers(done, around.consumers(), report))
    policies = tuple(around.policies([table.name for table in done]))
    around.report_unread()
    report.add("", NO_ENTITIES)
    return ImportResult(Design(tuple(done), policies=policies), report.notes, form)


def table_body(values: Mapping[str, Any], place: str, report: ImportReport) -> dict[str, Any]:
    """Return the arguments of a table as CreateTable has them."""
    read = ValueReader(report)

    def block(name: str, of: Mapping[str, Any] = values) -> Mapping[str, Any]:
        return read.object(of.get(name), f"{place}.{name}")

    ttl, recovery, encryption = (
        block(name) for name in ("ttl", "point_in_time_recovery", "server_side_encryption")
    )
    tags = values.get("tags")
    replicas = read.objects(values.get("replica"), f"{place}.replica")
    strong = any(as_text(each.get("consistency_mode")) == "STRONG" for each in replicas)
    if not isinstance(tags, Mapping):
        if tags is not None:
            report.add(
                f"{place}.tags", f"{show_value(tags)} is known to the deployment alone; the tags are left out"
            )
        tags = {}
    body: dict[str, Any] = {
        "TableName": values.get("name"),
        "KeySchema": _schema(values, place, read),
        "AttributeDefinitions": [
            {"AttributeName": each.get("name"), "AttributeType": each.get("type")}
            for each in read.objects(values.get("attribute"), f"{place}.attribute")
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
        "Replicas": [{"RegionName": each.get("region_name")} for each in replicas],
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
    """Return a key schema, from blocks of it or from the arguments for single attributes."""
    blocks = read.objects(values.get("key_schema"), f"{place}.key_schema")
    if blocks:
        return [
            {"AttributeName": each.get("attribute_name"), "KeyType": each.get("key_type")} for each in blocks
        ]
    return [
        {"AttributeName": name, "KeyType": kind}
        for argument, kind in (("hash_key", "HASH"), ("range_key", "RANGE"))
        if (name := values.get(argument)) not in (None, "")
    ]


def _index(raw: Mapping[str, Any], table: Mapping[str, Any], place: str, read: ValueReader) -> dict[str, Any]:
    schema = _schema(raw, place, read)
    if place.endswith("local_secondary_index"):
        own = next((each for each in _schema(table, place, read) if each["KeyType"] == "HASH"), {})
        schema = [own, *(each for each in schema if each["KeyType"] == "RANGE")]
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
    found = list(resources)
    read = ValueReader(report)
    for index in resources:
        if index.kind != _INDEX:
            continue
        name = as_text(index.values.get("table_name"))
        at = next(
            (
                at
                for at, each in enumerate(found)
                if each.kind == TABLE and as_text(each.values.get("name")) == name
            ),
            None,
        )
        if at is None:
            report.add(index.place, f"its table {name} is not here, so it is left out")
            continue
        projection = read.object(index.values.get("projection"), f"{index.place}.projection")
        schema = read.objects(index.values.get("key_schema"), f"{index.place}.key_schema")
        own = {
            "name": index.values.get("index_name"),
            "projection_type": projection.get("projection_type"),
            "non_key_attributes": projection.get("non_key_attributes"),
            "key_schema": index.values.get("key_schema"),
        }
        typed = [{"name": each.get("attribute_name"), "type": each.get("attribute_type")} for each in schema]
        values = found[at].values
        known = read.objects(values.get("attribute"), found[at].place)
        names = {each.get("name") for each in known}
        found[at] = replace(
            found[at],
            values=ChainMap(
                {
                    "attribute": [*known, *(each for each in typed if each["name"] not in names)],
                    "global_secondary_index": [
                        *read.objects(values.get("global_secondary_index"), found[at].place),
                        own,
                    ],
                },
                cast(Any, values),
            ),
        )
    return found


class _RelatedResources:
    """What stands around the tables of a configuration."""

    def __init__(self, resources: Sequence[TerraformResource], report: ImportReport) -> None:
        self.resources = resources
        self.report = report
        self.read = ValueReader(report)

    def of_kind(self, *kinds: str) -> Iterator[TerraformResource]:
        return (each for each in self.resources if each.kind in kinds)

    def scaling(self) -> Iterator[ScalingTarget]:
        aims: dict[tuple[str | None, str | None], Any] = {}
        for each in self.of_kind(_AIM):
            name = "target_tracking_scaling_policy_configuration"
            whose = (as_text(each.values.get("resource_id")), as_text(each.values.get("scalable_dimension")))
            aims[whose] = self.read.object(each.values.get(name), each.place).get("target_value")
        for each in self.of_kind(_TARGET):
            resource = as_text(each.values.get("resource_id")) or ""
            dimension = as_text(each.values.get("scalable_dimension")) or ""
            if dimension.startswith("dynamodb:"):
                yield ScalingTarget(
                    each.place,
                    resource,
                    dimension,
                    self.read.integer(each.values.get("min_capacity"), f"{each.place}.min_capacity", 1),
                    self.read.integer(each.values.get("max_capacity"), f"{each.place}.max_capacity", 1),
                    self.read.integer(aims.get((resource, dimension)), f"{each.place}.target_value", 1),
                )

    def consumers(self) -> Iterator[tuple[str, str, Consumer]]:
        for each in self.of_kind(_MAPPING):
            values = each.values
            told = values.get("event_source_arn")
            if told is None and values.get("self_managed_event_source"):
                continue
            arn = as_text(told) or ""
            if _is_of_another_service(arn):
                continue
            function = self._function(as_text(values.get("function_name")) or "")
            criteria = self.read.object(values.get("filter_criteria"), each.place)
            destination = self.read.object(values.get("destination_config"), each.place)
            failure = self.read.object(destination.get("on_failure"), each.place)
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
                        for one in self.read.objects(criteria.get("filter"), each.place)
                    ]
                },
                "DestinationConfig": {"OnFailure": {"Destination": failure.get("destination_arn")}},
            }
            own: dict[str, Any] | None = None
            if function is not None:
                names = (("handler", "Handler"), ("timeout", "Timeout"), ("memory_size", "MemorySize"))
                own = {member: function.values.get(argument) for argument, member in names}
            name = each.name if function is None else function.name
            there = as_text(each.values.get("function_name")) or ""
            consumer = read_consumer(name, raw, own, each.place, self.report, existing_function=there)
            if consumer is not None:
                yield each.place, arn, consumer

    def _function(self, told: str) -> TerraformResource | None:
        """Return the function that a mapping calls, by a reference to it or by its name."""
        found = re.search(r"aws_lambda_function\.([\w-]+)", told)
        for each in self.of_kind("aws_lambda_function"):
            if found is not None and each.name == found[1]:
                return each
            if told and told.rpartition(":")[2] == as_text(each.values.get("function_name")):
                return each
        return None

    def note_replicas(self, tables: list[TableDesign]) -> list[TableDesign]:
        for each in self.of_kind(_REPLICA):
            name = table_in_arn(as_text(each.values.get("global_table_arn")) or "") or "a table"
            self.report.add(
                each.place, f"the region of this replica of {name} is its provider's; it is left out"
            )
        return tables

    def policies(self, tables: list[str]) -> Iterator[Policy]:
        seen: set[str] = set()
        for each in (*self.of_kind(*_POLICIES, _RESOURCE_POLICY), *self.of_kind(DOCUMENT)):
            document = each.values.get("json" if each.kind == DOCUMENT else "policy")
            policy = read_policy(each.name, document, each.place, tables, self.report)
            if policy is None:
                continue
            told = json.dumps(policy.document, sort_keys=True)
            if told not in seen:
                seen.add(told)
                yield policy
        for each in self.of_kind(*_ATTACHMENTS, "aws_iam_role"):
            arns = each.values.get("managed_policy_arns" if each.kind == "aws_iam_role" else "policy_arn")
            for arn in arns if isinstance(arns, list) else [arns]:
                told = as_text(arn) or ""
                if arn is not None and "aws_iam_policy." not in told:
                    note_managed_policy(told, each.place, self.report)
            for inner in self.read.objects(each.values.get("inline_policy"), each.place):
                own = as_text(inner.get("name")) or each.name
                policy = read_policy(
                    own, inner.get("policy"), f"{each.place}.inline_policy", tables, self.report
                )
                if policy is not None:
                    yield policy

    def report_unread(self) -> None:
        """Tell what nobody has read: members of what was read, and resources of tables that are none of a design's."""
        for each in self.resources:
            dimension = as_text(each.values.get("scalable_dimension")) or "dynamodb:"
            if each.kind == _MAPPING and _is_of_another_service(
                as_text(each.values.get("event_source_arn")) or ""
            ):
                continue
            if each.kind in _READ and dimension.startswith("dynamodb:"):
                report_unread(each.values, each.place, self.report, ignore=_BESIDE)
            elif each.kind.startswith("aws_dynamodb_") and each.kind not in (_REPLICA, _RESOURCE_POLICY):
                self.report.add(each.place, f"a design has no place for {each.kind}; it is left out")


def _is_of_another_service(arn: str) -> bool:
    """Tell whether an ARN, or a reference to one, is known to be no stream of a table."""
    if arn.startswith("arn:"):
        return arn.split(":", 3)[2] not in ("dynamodb", "") and "$" not in arn.split(":", 3)[2]
    return arn.startswith("${aws_") and not arn.startswith("${aws_dynamodb_")
