"""The tables of a template: keys, indexes, settings, encryption key and auto scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tavola.iac.cloudformation.scope import (
    RETAIN,
    Node,
    TemplateNames,
    attribute,
    literal_text,
    prefix_name,
    ref,
    resource,
    substitute,
    tags_property,
)
from tavola.iac.plan import (
    AWS_KEY,
    KEY_ACTIONS,
    OWN_KEY,
    CapacityKind,
    IndexPlan,
    InfrastructurePlan,
    TablePlan,
)

_SCALED: tuple[tuple[str, CapacityKind], ...] = (("Read", "read"), ("Write", "write"))


def table_resources(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    """Yield the encryption key, then each table with its scaling."""
    if plan.makes_key:
        yield scope.key, _key(plan)
        alias = {"AliasName": substitute("alias/${AWS::StackName}-tables"), "TargetKeyId": ref(scope.key)}
        yield scope.id("table", "key", "alias"), resource("AWS::KMS::Alias", alias)
    for table in plan.tables:
        if table.replicas:
            yield scope.table(table.name), _global_table(table, scope)
            continue
        yield scope.table(table.name), _table(table, scope)
        if table.scaling is not None:
            yield from _scaling(table, None, scope)
            for index in table.global_indexes:
                yield from _scaling(table, index, scope)


def schema_of(table: TablePlan, index: IndexPlan | None = None) -> list[Node]:
    """Return a key schema, with one entry per key attribute."""
    return [{"AttributeName": name, "KeyType": kind} for name, kind in table.schema(index)]


def _table(table: TablePlan, scope: TemplateNames) -> Node:
    properties = _key_properties(table)
    throughput = _throughput(table)
    if throughput is not None:
        properties["ProvisionedThroughput"] = throughput
    if table.global_indexes:
        properties["GlobalSecondaryIndexes"] = [_index(table, index) for index in table.global_indexes]
    if table.local_indexes:
        properties["LocalSecondaryIndexes"] = [_index(table, index) for index in table.local_indexes]
    properties |= _expiry(table)
    if table.stream is not None:
        properties["StreamSpecification"] = {"StreamViewType": table.stream}
    if table.recovery_days is not None:
        properties["PointInTimeRecoverySpecification"] = _recovery(table.recovery_days)
    if table.key is not None:
        properties["SSESpecification"] = {"SSEEnabled": True, "SSEType": "KMS"}
        if table.key != AWS_KEY:
            is_own_key = table.key == OWN_KEY
            properties["SSESpecification"]["KMSMasterKeyId"] = (
                attribute(scope.key, "Arn") if is_own_key else literal_text(table.key)
            )
    properties |= {"TableClass": table.table_class, **_protection(table), **tags_property(table.tags)}
    return resource("AWS::DynamoDB::Table", properties, **RETAIN)


def _key_properties(table: TablePlan) -> Node:
    return {
        "TableName": prefix_name(table.name),
        "BillingMode": "PAY_PER_REQUEST" if table.on_demand else "PROVISIONED",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": tag} for name, tag in table.attributes.items()
        ],
        "KeySchema": schema_of(table),
    }


def _index(table: TablePlan, index: IndexPlan, *, throughput: bool = True) -> Node:
    projection: Node = {"ProjectionType": index.projection}
    if index.projection == "INCLUDE":
        projection["NonKeyAttributes"] = list(index.included)
    properties: Node = {
        "IndexName": index.name, "KeySchema": schema_of(table, index), "Projection": projection
    }  # fmt: skip
    units = _throughput(table)
    if throughput and units is not None and not index.local:
        properties["ProvisionedThroughput"] = units
    return properties


def _throughput(table: TablePlan) -> Node | None:
    if table.on_demand:
        return None
    return {"ReadCapacityUnits": table.read_units, "WriteCapacityUnits": table.write_units}


def _expiry(table: TablePlan) -> Node:
    if table.ttl is None:
        return {}
    return {"TimeToLiveSpecification": {"AttributeName": table.ttl, "Enabled": True}}


def _recovery(days: int) -> Node:
    return {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": days}


def _protection(table: TablePlan) -> Node:
    if "deletion_protection" in table.unknown:
        return {}
    return {"DeletionProtectionEnabled": table.deletion_protection}


def _global_table(table: TablePlan, scope: TemplateNames) -> Node:
    """Return a table with replicas; their settings are listed per region, this one first."""
    properties = _key_properties(table)
    if not table.on_demand:
        properties["WriteProvisionedThroughputSettings"] = _capacity(table, "Write")
    if table.global_indexes:
        properties["GlobalSecondaryIndexes"] = [
            _index(table, index, throughput=False)
            | ({} if table.on_demand else {"WriteProvisionedThroughputSettings": _capacity(table, "Write")})
            for index in table.global_indexes
        ]
    if table.local_indexes:
        properties["LocalSecondaryIndexes"] = [_index(table, index) for index in table.local_indexes]
    properties |= _expiry(table)
    properties["StreamSpecification"] = {"StreamViewType": table.stream}
    if table.key is not None:
        properties["SSESpecification"] = {"SSEEnabled": True, "SSEType": "KMS"}
    regions: list[str | Node] = [ref("AWS::Region"), *table.replicas]
    properties["Replicas"] = [_replica(table, region, scope) for region in regions]
    return resource("AWS::DynamoDB::GlobalTable", properties, **RETAIN)


def _replica(table: TablePlan, region: str | Node, scope: TemplateNames) -> Node:
    properties: Node = {"Region": region}
    if not table.on_demand:
        properties["ReadProvisionedThroughputSettings"] = _capacity(table, "Read")
        if table.global_indexes:
            properties["GlobalSecondaryIndexes"] = [
                {"IndexName": index.name, "ReadProvisionedThroughputSettings": _capacity(table, "Read")}
                for index in table.global_indexes
            ]
    if table.recovery_days is not None:
        properties["PointInTimeRecoverySpecification"] = _recovery(table.recovery_days)
    if table.key is not None and table.key != AWS_KEY:
        properties["SSESpecification"] = {"KMSMasterKeyId": _replica_key(table, region, scope)}
    return properties | {"TableClass": table.table_class, **_protection(table), **tags_property(table.tags)}


def _replica_key(table: TablePlan, region: str | Node, scope: TemplateNames) -> str | Node:
    """Return a replica's key: keys are regional, so another region's key is a parameter."""
    if isinstance(region, str):
        return ref(replica_key_parameter(region, scope))
    return attribute(scope.key, "Arn") if table.key == OWN_KEY else literal_text(str(table.key))


def replica_key_parameter(region: str, scope: TemplateNames) -> str:
    """Return the parameter for the key of another region."""
    return scope.id("key", "arn", region)


def _capacity(table: TablePlan, kind: str) -> Node:
    """Return the capacity of a global table, which CloudFormation scales itself; writes are always scaled."""
    units = table.read_units if kind == "Read" else table.write_units
    if table.scaling is None and kind == "Read":
        return {"ReadCapacityUnits": units}
    least, most, target = table.capacity_range("read" if kind == "Read" else "write")
    return {
        f"{kind}CapacityAutoScalingSettings": {
            "MinCapacity": least,
            "MaxCapacity": most,
            "SeedCapacity": units,
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": target},
        }
    }


def _scaling(table: TablePlan, index: IndexPlan | None, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    """Yield the scaling of a table or index: a target and a policy for reads, and for writes."""
    assert table.scaling is not None, "only a scaled table has targets"
    resource_id = f"table/${{{scope.table(table.name)}}}" + ("" if index is None else f"/index/{index.name}")
    kind = "table" if index is None else "index"
    words = (table.name,) if index is None else (table.name, index.name)
    for title, word in _SCALED:
        target = scope.id(*words, word, "target")
        least, most, _ = table.capacity_range(word)
        dimension = f"dynamodb:{kind}:{title}CapacityUnits"
        bounds = {
            "ServiceNamespace": "dynamodb",
            "ResourceId": substitute(resource_id),
            "ScalableDimension": dimension,
            "MinCapacity": least,
            "MaxCapacity": most,
        }
        yield target, resource("AWS::ApplicationAutoScaling::ScalableTarget", bounds)
        metric = {"PredefinedMetricType": f"DynamoDB{title}CapacityUtilization"}
        tracking = {"TargetValue": table.scaling.target, "PredefinedMetricSpecification": metric}
        policy = {
            "PolicyName": f"{word}-utilization",
            "PolicyType": "TargetTrackingScaling",
            "ScalingTargetId": ref(target),
            "TargetTrackingScalingPolicyConfiguration": tracking,
        }
        yield (
            scope.id(*words, word, "scaling"),
            resource("AWS::ApplicationAutoScaling::ScalingPolicy", policy),
        )


def _key(plan: InfrastructurePlan) -> Node:
    """Return a key with yearly rotation, usable only through DynamoDB by principals that may use the tables."""
    through: dict[str, Any] = {
        "Sid": "ThroughDynamoDB",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": list(KEY_ACTIONS),
        "Resource": "*",
        "Condition": {
            "StringEquals": {
                "kms:CallerAccount": ref("AWS::AccountId"),
                "kms:ViaService": substitute("dynamodb.${AWS::Region}.${AWS::URLSuffix}"),
            }
        },
    }
    administration = {
        "Sid": "KeyAdministration",
        "Effect": "Allow",
        "Principal": {"AWS": substitute("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")},
        "Action": "kms:*",
        "Resource": "*",
    }
    properties = {
        "Description": "Encrypts the tables of this stack.",
        "EnableKeyRotation": True,
        "KeyPolicy": {"Version": "2012-10-17", "Statement": [administration, through]},
        **tags_property(plan.tags),
    }
    return resource("AWS::KMS::Key", properties, **RETAIN)
