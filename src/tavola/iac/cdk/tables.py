"""The tables of a stack, and their encryption key."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cdk.python_text import (
    PythonCall,
    PythonCode,
    Value,
    format_string,
    render_assignment,
    render_text,
)
from tavola.iac.cdk.scope import SELF, StackNames, prefix_name
from tavola.iac.plan import (
    AWS_KEY,
    KEY_ACTIONS,
    OWN_KEY,
    CapacityKind,
    IndexPlan,
    InfrastructurePlan,
    TablePlan,
)

_TYPES = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
_REGION, _ACCOUNT, _PARTITION = (
    PythonCode("self.region"),
    PythonCode("self.account"),
    PythonCode("self.partition"),
)


def table_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create the encryption key and the tables."""
    if plan.makes_key:
        yield render_assignment("self.table_key", _key(), 2)
    for table in plan.tables:
        yield render_assignment(scope.table(table.name), _table(table, scope), 2)


def _table(table: TablePlan, scope: StackNames) -> PythonCall:
    arguments: dict[str, Value] = {
        "table_name": prefix_name(table.name),
        "partition_key": _attribute(table, table.hash),
    }
    if table.range is not None:
        arguments["sort_key"] = _attribute(table, table.range)
    arguments["billing"] = _billing(table)
    if table.global_indexes:
        arguments["global_secondary_indexes"] = [
            _global_index(table, index) for index in table.global_indexes
        ]
    if table.local_indexes:
        arguments["local_secondary_indexes"] = [_local_index(table, index) for index in table.local_indexes]
    if table.ttl is not None:
        arguments["time_to_live_attribute"] = table.ttl
    if table.stream is not None:
        views = {"NEW_IMAGE": "NEW_IMAGE", "OLD_IMAGE": "OLD_IMAGE", "KEYS_ONLY": "KEYS_ONLY"}
        arguments["dynamo_stream"] = PythonCode(
            f"dynamodb.StreamViewType.{views.get(table.stream, 'NEW_AND_OLD_IMAGES')}"
        )
    if table.recovery_days is not None:
        arguments["point_in_time_recovery_specification"] = PythonCall(
            "dynamodb.PointInTimeRecoverySpecification",
            named={"point_in_time_recovery_enabled": True, "recovery_period_in_days": table.recovery_days},
        )
    if table.key is not None:
        arguments["encryption"] = _encryption(table, scope)
    word = "STANDARD_INFREQUENT_ACCESS" if table.table_class != "STANDARD" else "STANDARD"
    arguments["table_class"] = PythonCode(f"dynamodb.TableClass.{word}")
    if "deletion_protection" not in table.unknown:
        arguments["deletion_protection"] = table.deletion_protection
    arguments["removal_policy"] = PythonCode("cdk.RemovalPolicy.RETAIN")
    if table.replicas:
        arguments["replicas"] = [
            PythonCall("dynamodb.ReplicaTableProps", named={"region": region}) for region in table.replicas
        ]
    if table.tags:
        arguments["tags"] = [
            PythonCall("cdk.CfnTag", named={"key": key, "value": value}) for key, value in table.tags.items()
        ]
    return PythonCall("dynamodb.TableV2", (SELF, scope.id(table.name, "table")), arguments)


def _attribute(table: TablePlan, name: str) -> PythonCall:
    kind = PythonCode(f"dynamodb.AttributeType.{_TYPES[table.attributes[name]]}")
    return PythonCall("dynamodb.Attribute", named={"name": name, "type": kind})


def _billing(table: TablePlan) -> PythonCall:
    if table.on_demand:
        return PythonCall("dynamodb.Billing.on_demand")
    return PythonCall(
        "dynamodb.Billing.provisioned",
        named={"read_capacity": _capacity(table, "read"), "write_capacity": _capacity(table, "write")},
    )


def _capacity(table: TablePlan, word: CapacityKind) -> PythonCall:
    """Return the capacity for reads or writes; a `TableV2` always scales writes, without declared scaling between equal bounds."""
    units = table.read_units if word == "read" else table.write_units
    if table.scaling is None and word == "read":
        return PythonCall("dynamodb.Capacity.fixed", (units,))
    least, most, target = table.capacity_range(word)
    return PythonCall(
        "dynamodb.Capacity.autoscaled",
        named={
            "min_capacity": least,
            "max_capacity": most,
            "seed_capacity": units,
            "target_utilization_percent": target,
        },
    )


def _global_index(table: TablePlan, index: IndexPlan) -> PythonCall:
    arguments: dict[str, Value] = {"index_name": index.name}
    for word, names in (("partition_key", index.hash), ("sort_key", index.range)):
        if len(names) == 1:
            arguments[word] = _attribute(table, names[0])
        elif names:
            arguments[f"{word}s"] = [_attribute(table, name) for name in names]
    return PythonCall("dynamodb.GlobalSecondaryIndexPropsV2", named=arguments | _projection(index))


def _local_index(table: TablePlan, index: IndexPlan) -> PythonCall:
    arguments: dict[str, Value] = {"index_name": index.name, "sort_key": _attribute(table, index.range[0])}
    return PythonCall("dynamodb.LocalSecondaryIndexProps", named=arguments | _projection(index))


def _projection(index: IndexPlan) -> dict[str, Value]:
    arguments: dict[str, Value] = {
        "projection_type": PythonCode(f"dynamodb.ProjectionType.{index.projection}")
    }
    if index.projection == "INCLUDE":
        arguments["non_key_attributes"] = list(index.included)
    return arguments


def _encryption(table: TablePlan, scope: StackNames) -> PythonCall:
    key = table.key
    if key == AWS_KEY or key is None:
        return PythonCall("dynamodb.TableEncryptionV2.aws_managed_key")
    encryption_key: Value = PythonCode("self.table_key")
    if key != OWN_KEY:
        encryption_key = _existing_key(key, scope.id(table.name, "key"))
    keys: dict[PythonCode, Value] = {}
    if table.replicas:
        keys = {
            PythonCode(render_text(region)): PythonCode(f"{scope.replica_key(region)}.value_as_string")
            for region in table.replicas
        }
    return PythonCall(
        "dynamodb.TableEncryptionV2.customer_managed_key", (encryption_key, *((keys,) if keys else ()))
    )


def _existing_key(key: str, id_: str) -> PythonCall:
    if key.startswith("alias/"):
        return PythonCall("kms.Alias.from_alias_name", (SELF, id_, key))
    if key.startswith("arn:"):
        return PythonCall("kms.Key.from_key_arn", (SELF, id_, key))
    arn = format_string("arn:", _PARTITION, ":kms:", _REGION, ":", _ACCOUNT, f":key/{key}")
    return PythonCall("kms.Key.from_key_arn", (SELF, id_, arn))


def _key() -> PythonCall:
    """Return a key with yearly rotation, usable only through DynamoDB by principals that may use the tables."""
    root = PythonCall(
        "iam.PolicyStatement",
        named={
            "sid": "KeyAdministration",
            "principals": [PythonCall("iam.AccountRootPrincipal")],
            "actions": ["kms:*"],
            "resources": ["*"],
        },
    )
    through = PythonCall(
        "iam.PolicyStatement",
        named={
            "sid": "ThroughDynamoDB",
            "principals": [PythonCall("iam.AnyPrincipal")],
            "actions": list(KEY_ACTIONS),
            "resources": ["*"],
            "conditions": {
                "StringEquals": {
                    "kms:CallerAccount": _ACCOUNT,
                    "kms:ViaService": format_string("dynamodb.", _REGION, ".", PythonCode("self.url_suffix")),
                }
            },
        },
    )
    return PythonCall(
        "kms.Key",
        (SELF, "TableKey"),
        {
            "description": "Encrypts the tables.",
            "enable_key_rotation": True,
            "removal_policy": PythonCode("cdk.RemovalPolicy.RETAIN"),
            "policy": PythonCall("iam.PolicyDocument", named={"statements": [root, through]}),
        },
    )
