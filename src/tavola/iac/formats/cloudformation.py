"""Read the tables of a CloudFormation or SAM template, with the resources connected to them.

A template has keys, indexes and settings, but no entities and no access patterns; the report says so.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult
from tavola.iac.formats.intrinsics import TABLES, Resolver
from tavola.iac.formats.related_resources import (
    ScalingTarget,
    add_consumers,
    add_scaling,
    note_managed_policy,
    read_consumer,
    read_policy,
)
from tavola.iac.formats.source_values import TrackedMapping, ValueReader, as_text, report_unread, show_value
from tavola.iac.formats.table_definitions import NO_ENTITIES, give_tables_unique_names, read_table
from tavola.model.document import Consumer, Design, Policy, TableDesign

FORMAT = "cloudformation"
_FUNCTIONS = ("AWS::Lambda::Function", "AWS::Serverless::Function")
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_SCALING_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_READ = "dynamodb:table:ReadCapacityUnits"
_WRITE = "dynamodb:table:WriteCapacityUnits"
_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::UserPolicy", "AWS::IAM::RolePolicy")
_HOLDERS = ("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group", "AWS::Serverless::Function")
_MAPPING = "AWS::Lambda::EventSourceMapping"
_NESTED = ("AWS::CloudFormation::Stack", "AWS::Serverless::Application")
_NOT_DESIGN = frozenset(  # properties that are read from elsewhere or have no effect on a design
    ("ServiceNamespace", "RoleARN", "PolicyName", "PolicyType", "PredefinedMetricSpecification", "SSEType")
)


def is_cloudformation(raw: Any) -> bool:
    """Return whether data is a template: it has a format version, or resources with AWS types."""
    if not isinstance(raw, Mapping):
        return False
    resources = raw.get("Resources")
    if "AWSTemplateFormatVersion" in raw or not isinstance(resources, Mapping):
        return "AWSTemplateFormatVersion" in raw or (isinstance(resources, list) and len(raw) == 1)
    return any(
        isinstance(resource, Mapping) and ("::" in str(resource.get("Type")) or "Properties" in resource)
        for resource in resources.values()
    )


def read_cloudformation(template: Mapping[str, Any]) -> ImportResult:
    """Return the design of a template's tables."""
    report = ImportReport("a mapping")
    if not isinstance(template.get("Resources"), Mapping):
        raise FormatError("Resources is missing or not a mapping of logical ids to resources")
    stack = _Template(template, report)
    tables = give_tables_unique_names([stack.table(logical) for logical in stack.of_type(*TABLES)], report)
    if not tables:
        kinds = sorted(
            {
                as_text(resource.get("Type")) or "resources without Type"
                for resource in stack.resources.values()
            }
        )
        types = ", ".join(kinds[:6])
        stack.report_unread()
        raise report.attach_notes(
            FormatError(f"no AWS::DynamoDB::Table resource found{f', only {types}' if types else ''}")
        )
    scaled_tables = add_scaling(tables, stack.scaling(), report)
    final_tables = add_consumers(scaled_tables, stack.consumers(), report)
    policies = tuple(stack.policies([table.name for table in final_tables]))
    stack.report_unread()
    report.add("", NO_ENTITIES)
    return ImportResult(Design(tuple(final_tables), policies=policies), report.notes, FORMAT)


class _Template:
    """The resources of a template that a design describes."""

    def __init__(self, template: Mapping[str, Any], report: ImportReport) -> None:
        self.report = report
        self.read = ValueReader(report)
        self.resolver = Resolver(template, report)
        self.resources: dict[str, Mapping[str, Any]] = {}
        self.function_globals = self.read.object(
            self.read.object(template.get("Globals"), "Globals").get("Function"), "Globals.Function"
        )
        self._members: dict[str, TrackedMapping] = {}
        self.global_scaling: list[ScalingTarget] = []
        for logical, resource in self.resolver.resources.items():
            place = f"Resources.{logical}"
            if logical.startswith("Fn::"):
                report.add(place, "Fn::ForEach is not expanded; its resources are not imported")
            elif not isinstance(resource, Mapping):
                report.add(
                    place, f"ignored {show_value(resource)}: expected a resource with Type and Properties"
                )
            elif "Condition" in resource and not self.resolver.holds(resource["Condition"], place):
                report.add(
                    place,
                    f"condition {resource['Condition']} is false with the default parameters; not imported",
                )
            else:
                self.resources[logical] = resource

    def properties(self, logical: str) -> TrackedMapping:
        """Return a resource's resolved properties, which record what is read."""
        if logical not in self._members:
            self._members[logical] = TrackedMapping(self.resolver.properties(logical))
        return self._members[logical]

    def of_type(self, *types: str) -> Iterator[str]:
        """Yield the logical ids of resources of these types."""
        for logical, resource in self.resources.items():
            if resource.get("Type") in types:
                yield logical

    def table(self, logical: str) -> TableDesign:
        place = f"Resources.{logical}"
        properties = self.properties(logical)
        kind = self.resources[logical].get("Type")
        body: dict[str, Any] = {"TableName": self.resolver.table_name(logical)}
        if properties.get("TableName") is None:
            self.report.add(
                place,
                f"TableName is not set, so CloudFormation generates one; using the logical id {logical}",
            )
        if kind == "AWS::Serverless::SimpleTable":
            body |= _simple(properties)
        else:
            body["BillingMode"] = properties.get("BillingMode", "PROVISIONED")
        if kind == "AWS::DynamoDB::GlobalTable":
            body |= self._global(properties, body["TableName"], place)
        stream = properties.get("StreamSpecification")
        if isinstance(stream, Mapping):  # a template has no StreamEnabled
            body["StreamSpecification"] = ChainMap({"StreamEnabled": True}, cast(Any, stream))
        return read_table(ChainMap(body, cast(Any, properties)), place, self.report, logical)

    def _global(self, properties: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
        """Return the properties that a global table sets per replica, taken from the first replica."""
        replicas = self.read.objects(properties.get("Replicas"), f"{place}.Replicas")
        first: Mapping[str, Any] = replicas[0] if replicas else {}
        if len(replicas) > 1:
            self.report.add(f"{place}.Replicas", "using the settings of the first replica for all")
        reads = self.read.object(first.get("ReadProvisionedThroughputSettings"), place)
        writes = self.read.object(properties.get("WriteProvisionedThroughputSettings"), place)
        units = {"ReadCapacityUnits": reads.get("ReadCapacityUnits")}
        for settings, word, dimension in ((reads, "Read", _READ), (writes, "Write", _WRITE)):
            scaling = self.read.object(settings.get(f"{word}CapacityAutoScalingSettings"), place)
            if scaling:
                tracking = self.read.object(scaling.get("TargetTrackingScalingPolicyConfiguration"), place)
                units[f"{word}CapacityUnits"] = scaling.get("SeedCapacity") or scaling.get("MinCapacity")
                self.global_scaling.append(
                    self._target(f"table/{name}", dimension, scaling, tracking.get("TargetValue"), place)
                )
        key = self.read.object(first.get("SSESpecification"), place).get("KMSMasterKeyId")
        encryption = self.read.object(properties.get("SSESpecification"), place)
        sse = {
            "SSEEnabled": encryption.get("SSEEnabled"),
            "KMSMasterKeyId": key or encryption.get("KMSMasterKeyId"),
        }
        members = ("PointInTimeRecoverySpecification", "DeletionProtectionEnabled", "TableClass", "Tags")
        return {
            **{member: first[member] for member in members if member in first},
            "SSESpecification": sse,
            "ProvisionedThroughput": units,
            "Replicas": [{"RegionName": replica.get("Region")} for replica in replicas][1:],
        }

    def _target(
        self, resource: str, dimension: str, raw: Mapping[str, Any], target_value: Any, place: str
    ) -> ScalingTarget:
        return ScalingTarget(
            place,
            resource,
            dimension,
            self.read.integer(raw.get("MinCapacity"), f"{place}.MinCapacity", 1),
            self.read.integer(raw.get("MaxCapacity"), f"{place}.MaxCapacity", 1),
            self.read.integer(target_value, f"{place}.TargetValue", 1),
        )

    def scaling(self) -> Iterator[ScalingTarget]:
        yield from self.global_scaling
        target_values: dict[tuple[str, str], Any] = {}
        for logical in self.of_type(_SCALING_POLICY):
            properties = self.properties(logical)
            tracking = self.read.object(
                properties.get("TargetTrackingScalingPolicyConfiguration"), f"Resources.{logical}"
            )
            target = as_text(properties.get("ScalingTargetId"))
            resource = as_text(properties.get("ResourceId")) or ""
            dimension = as_text(properties.get("ScalableDimension")) or ""
            target_values[(target, "") if target else (resource, dimension)] = tracking.get("TargetValue")
        for logical in self.of_type(_TARGET):
            properties = self.properties(logical)
            resource = as_text(properties.get("ResourceId")) or ""
            dimension = as_text(properties.get("ScalableDimension")) or ""
            target_value = target_values.get(
                (f"${{{logical}}}", ""), target_values.get((resource, dimension))
            )
            if dimension.startswith("dynamodb:"):
                yield self._target(resource, dimension, properties, target_value, f"Resources.{logical}")

    def consumers(self) -> Iterator[tuple[str, str, Consumer]]:
        for logical in self.of_type(_MAPPING):
            if self._reads_elsewhere(logical):
                continue
            properties = self.properties(logical)
            function_name = as_text(properties.get("FunctionName")) or ""
            raw_properties = self.resources[logical].get("Properties")
            function = self._function(
                raw_properties.get("FunctionName") if isinstance(raw_properties, Mapping) else None
            )
            place = f"Resources.{logical}"
            consumer = read_consumer(
                function or logical,
                properties,
                self._function_properties(function),
                place,
                self.report,
                existing_function=function_name,
            )
            if consumer is not None:
                yield place, as_text(properties.get("EventSourceArn")) or "", consumer
        for logical in self.of_type("AWS::Serverless::Function"):
            properties = self.properties(logical)
            events = properties.get("Events")
            for name, event in events.items() if isinstance(events, Mapping) else ():
                mapping = event.get("Properties") if isinstance(event, Mapping) else None
                if not isinstance(mapping, Mapping) or event.get("Type") != "DynamoDB":
                    continue
                place = f"Resources.{logical}.Events.{name}"
                stream = as_text(mapping.get("Stream")) or ""
                consumer = read_consumer(
                    logical, mapping, self._function_properties(logical), place, self.report
                )
                report_unread(mapping, place, self.report)
                if consumer is not None:
                    yield place, stream, consumer

    def _reads_elsewhere(self, logical: str) -> bool:
        """Return whether a mapping is known to read something other than a table's stream."""
        properties = self.properties(logical)
        source_arn = as_text(properties.get("EventSourceArn")) or ""
        if source_arn.startswith("arn:"):
            service = source_arn.split(":", 3)[2]
            return service != "dynamodb" and "$" not in service
        resource = self.resources.get(source_arn.removeprefix("${").partition(".")[0].removesuffix("}"), {})
        kind = str(resource.get("Type", ""))
        other_type = bool(kind) and kind not in TABLES and not kind.startswith(("Custom::", *_NESTED))
        return other_type or (not source_arn and "SelfManagedEventSource" in properties)

    def _function(self, raw: Any) -> str | None:
        """Return the logical id of the function that a mapping invokes."""
        match raw:
            case {"Ref": str(logical)} | {"Fn::GetAtt": [str(logical), *_]}:
                return logical
            case {"Fn::GetAtt": str(reference)} | {"Fn::Sub": str(reference)}:
                return reference.strip("${}").split(".")[0]
            case str(name):
                return name.rpartition(":")[2]
            case _:
                return None

    def _function_properties(self, function: str | None) -> Mapping[str, Any] | None:
        """Return a function's properties over SAM's Globals; None if the template does not define it."""
        kind = self.resources.get(function or "", {}).get("Type")
        if kind not in _FUNCTIONS:
            return None
        function_defaults = (
            self.resolver.value(self.function_globals) if kind == "AWS::Serverless::Function" else {}
        )
        return ChainMap(cast(Any, self.properties(function or "")), function_defaults)

    def policies(self, tables: list[str]) -> Iterator[Policy]:
        for name, document, place in self._documents():
            policy = read_policy(name, document, place, tables, self.report)
            if policy is not None:
                yield policy

    def _documents(self) -> Iterator[tuple[str, Any, str]]:
        for logical, resource in self.resources.items():
            kind = resource.get("Type")
            place = f"Resources.{logical}"
            if kind in _POLICIES:
                yield logical, self.properties(logical).get("PolicyDocument"), f"{place}.PolicyDocument"
            elif kind in _HOLDERS:
                yield from self._attached_policies(logical, place)
            elif kind in TABLES:
                properties = self.properties(logical)
                stream = self.read.object(properties.get("StreamSpecification"), place)
                owners = {"resource": properties, "stream": stream}
                for position, replica in enumerate(self.read.objects(properties.get("Replicas"), place)):
                    owners[f"replica-{position + 1}"] = replica
                    owners[f"replica-{position + 1}-stream"] = self.read.object(
                        replica.get("ReplicaStreamSpecification"), place
                    )
                for what, owner in owners.items():
                    policy = owner.get("ResourcePolicy")
                    if isinstance(policy, Mapping):
                        yield f"{logical}-{what}", policy.get("PolicyDocument"), f"{place}.ResourcePolicy"

    def _attached_policies(self, logical: str, place: str) -> Iterator[tuple[str, Any, str]]:
        """Yield the inline policies of a role, user, group or function; note those defined elsewhere."""
        properties = self.properties(logical)
        arns = properties.get("ManagedPolicyArns")
        for arn in arns if isinstance(arns, list) else [arns]:
            self._note_policy_elsewhere(arn, f"{place}.ManagedPolicyArns")
        policies = properties.get("Policies")
        for position, policy in enumerate(policies if isinstance(policies, list) else [policies]):
            if not isinstance(policy, Mapping):
                self._note_policy_elsewhere(policy, f"{place}.Policies[{position}]")
                continue
            document = policy if "Statement" in policy else policy.get("PolicyDocument")
            if document is None:  # a SAM policy template, such as DynamoDBReadPolicy
                self.report.add(
                    f"{place}.Policies[{position}]",
                    f"SAM policy template {show_value(policy)} is not expanded; not imported",
                )
                continue
            yield (
                as_text(policy.get("PolicyName")) or f"{logical}-{position + 1}",
                document,
                f"{place}.Policies[{position}]",
            )

    def _note_policy_elsewhere(self, reference: Any, place: str) -> None:
        text = as_text(reference) or ""
        if (
            text
            and self.resources.get(text.removeprefix("${").removesuffix("}"), {}).get("Type") not in _POLICIES
        ):
            note_managed_policy(text, place, self.report)

    def report_unread(self) -> None:
        """Report what was not read: members of resources, and resources that may contain tables."""
        for logical, resource in self.resources.items():
            kind, place = str(resource.get("Type")), f"Resources.{logical}"
            if kind in TABLES or (kind == _MAPPING and not self._reads_elsewhere(logical)):
                report_unread(self.properties(logical), place, self.report, ignore=_NOT_DESIGN)
            elif kind in (_TARGET, _SCALING_POLICY):
                dimension = as_text(self.properties(logical).get("ScalableDimension")) or "dynamodb:"
                if dimension.startswith("dynamodb:"):
                    report_unread(self.properties(logical), place, self.report, ignore=_NOT_DESIGN)
            elif kind in _NESTED:
                self.report.add(place, "nested templates are not read; their tables are not imported")
            elif kind.startswith("AWS::DynamoDB::"):
                self.report.add(place, f"{kind} has no equivalent in a design; not imported")


def _simple(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CreateTable members of an AWS::Serverless::SimpleTable."""
    key = properties.get("PrimaryKey")
    key_properties = key if isinstance(key, Mapping) else {}
    name = as_text(key_properties.get("Name")) or "id"
    letter = {"Number": "N", "Binary": "B"}.get(as_text(key_properties.get("Type")) or "", "S")
    tags = properties.get("Tags")
    units = properties.get("ProvisionedThroughput")
    sse = properties.get("SSESpecification")
    return {
        "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": letter}],
        "BillingMode": "PROVISIONED" if units else "PAY_PER_REQUEST",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]
        if isinstance(tags, Mapping)
        else [],
        "SSESpecification": sse,
        "PointInTimeRecoverySpecification": properties.get("PointInTimeRecoverySpecification"),
    }
