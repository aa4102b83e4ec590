"""Fixes that change a policy statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tavola.design.findings import Finding
from tavola.design.lint.remedies.proposal import Fixer, Proposal, table_at
from tavola.model.document import Design, EntityDesign, KeyDesign, Policy, TableDesign

Statement = Mapping[str, Any]

_LEADING = "dynamodb:LeadingKeys"
_NOT_NULL = {"Null": {_LEADING: "false"}}
_REWRITES = frozenset({"updateitem", "deleteitem", "batchwriteitem", "partiqlupdate", "partiqldelete"})
_SCANS = frozenset({"scan", "partiqlselect"})


def _policy(design: Design, finding: Finding) -> Policy | None:
    return next((policy for policy in design.policies if policy.name == finding.place.name), None)


def _change_statements(
    design: Design, finding: Finding, change: Callable[[Statement], Statement], summary: str
) -> Iterator[Proposal]:
    """Yield the policy with `change` applied to each affected statement alone, then to all of them."""
    policy = _policy(design, finding)
    if policy is None:
        return
    raw = policy.document.get("Statement", [])
    statements = [raw] if isinstance(raw, Mapping) else list(raw)
    changed = [
        change(statement)
        if isinstance(statement, Mapping) and statement.get("Effect") == "Allow"
        else statement
        for statement in statements
    ]
    differing = [position for position, statement in enumerate(changed) if statement != statements[position]]
    ways = [{position} for position in differing]
    for way in [*ways, *([set(differing)] if len(differing) > 1 else [])]:
        new = [
            changed[position] if position in way else statement
            for position, statement in enumerate(statements)
        ]
        document = {
            **policy.document,
            "Statement": [statement for statement in new if statement.get("Action", True)],
        }
        changed_policy = replace(policy, document=document)
        yield Proposal(
            replace(
                design,
                policies=tuple(
                    changed_policy if candidate is policy else candidate for candidate in design.policies
                ),
            ),
            summary,
        )


def _actions(statement: Statement) -> list[str]:
    raw = statement.get("Action", [])
    return [raw] if isinstance(raw, str) else list(raw)


def _resources(statement: Statement) -> list[str]:
    raw = statement.get("Resource", [])
    return [raw] if isinstance(raw, str) else list(raw)


def _without_actions(statement: Statement, names: frozenset[str]) -> Statement:
    if "Action" not in statement:
        return statement  # NotAction: what to exclude needs a decision
    remaining = [action for action in _actions(statement) if action.partition(":")[2].lower() not in names]
    return {**statement, "Action": remaining}


def _remove_scans(design: Design, finding: Finding) -> Iterator[Proposal]:
    def change(statement: Statement) -> Statement:
        condition = statement.get("Condition", {})
        if not any(_LEADING in test for test in condition.values() if isinstance(test, Mapping)):
            return statement
        bound = {**condition, "Null": {**condition.get("Null", {}), **_NOT_NULL["Null"]}}
        return {**_without_actions(statement, _SCANS), "Condition": bound}

    yield from _change_statements(
        design, finding, change, "Removes Scan, and requires a partition key in every request"
    )


def _remove_changes(design: Design, finding: Finding) -> Iterator[Proposal]:
    yield from _change_statements(
        design,
        finding,
        lambda statement: _without_actions(statement, _REWRITES),
        "Allows callers to create and read items, but not to change or delete them",
    )


def _add_indexes(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = next(table_at(design, finding), None)
    if table is None:
        return
    used = {pattern.index for entity in table.entities for pattern in entity.patterns}
    used |= {collection.index for collection in table.collections}
    used |= {need.route.index for need in design.needs if need.route is not None}
    names = [index.name for index in table.indexes if index.name in used]

    def change(statement: Statement) -> Statement:
        resources = _resources(statement)
        table_resources = [resource for resource in resources if resource.endswith(f"table/{table.name}")]
        index_resources = [f"{resource}/index/{name}" for resource in table_resources for name in names]
        return {**statement, "Resource": [*resources, *index_resources]} if index_resources else statement

    yield from _change_statements(design, finding, change, f"Allows queries on {', '.join(names)} as well")


def _point_at_table(design: Design, finding: Finding) -> Iterator[Proposal]:
    policy = _policy(design, finding)
    named = () if policy is None else policy.tables
    tables = [table for table in design.tables if not named or table.name in named]
    if len(tables) != 1:
        return
    [table] = tables

    def change(statement: Statement) -> Statement:
        resources = [_rename_table(resource, table) for resource in _resources(statement)]
        return {**statement, "Resource": resources}

    yield from _change_statements(design, finding, change, f"Names {table.name}, as in the design")


def _rename_table(arn: str, table: TableDesign) -> str:
    parts = arn.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb" or not parts[5].startswith("table/"):
        return arn
    _, _, rest = parts[5].removeprefix("table/").partition("/")
    return ":".join([*parts[:5], f"table/{table.name}" + (f"/{rest}" if rest else "")])


def _add_key_prefix(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the statement with the literal prefix of an entity's key before its partition key value."""
    table = next(table_at(design, finding), None)
    if table is None:
        return
    starts = dict.fromkeys(
        start for entity in table.entities for key in entity.all_keys if (start := _literal(key))
    )
    for start in starts:

        def change(statement: Statement, start: str = start) -> Statement:
            condition = {
                operator: {
                    name: _with_prefix(value, start) if name == _LEADING and operator != "Null" else value
                    for name, value in test.items()
                }
                for operator, test in statement.get("Condition", {}).items()
            }
            return {**statement, "Condition": condition}

        yield from _change_statements(design, finding, change, f"Adds the key prefix {start} to the value")
    yield from _limit_to_tenant(design, finding)


def _with_prefix(value: Any, start: str) -> Any:
    if isinstance(value, list):
        return [_with_prefix(element, start) for element in value]
    return value if not isinstance(value, str) or value.startswith(start) else f"{start}{value}"


def _literal(key: KeyDesign) -> str:
    template = key.hash[0].template
    first = template.segments[0] if template is not None and template.segments else ""
    return first if isinstance(first, str) else ""


def _limit_to_tenant(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the statement limited to the tenant of the caller, on the table or index whose key begins with the tenant."""
    table = next(table_at(design, finding), None)
    if table is None:
        return
    for entity, key, name in _tenant_keys(table):
        value = f"{_literal(key)}${{aws:PrincipalTag/{name}}}"
        whole = key.hash[0].fields == (name,) and key.shards is None
        operator = "ForAllValues:StringEquals" if whole else "ForAllValues:StringLike"
        on = "" if key.index is None else f"/index/{key.index}"

        def change(
            statement: Statement,
            value: str = value,
            whole: bool = whole,
            operator: str = operator,
            on: str = on,
        ) -> Statement:
            resources = [
                ":".join([*resource.split(":", 5)[:5], f"table/{table.name}{on}"])
                for resource in _resources(statement)
                if resource.count(":") >= 5
            ] or [f"arn:aws:dynamodb:*:*:table/{table.name}{on}"]
            actions = (
                ["dynamodb:Query"]
                if on
                else [
                    action
                    for action in _actions(statement)
                    if action.lower() != "dynamodb:scan" and "*" not in action
                ]
                or ["dynamodb:GetItem", "dynamodb:Query"]
            )
            leading = {operator: {_LEADING: [value if whole else f"{value}*"]}}
            condition = {**statement.get("Condition", {}), **leading, **_NOT_NULL}
            return {
                **statement,
                "Action": actions,
                "Resource": list(dict.fromkeys(resources)),
                "Condition": condition,
            }

        yield from _change_statements(
            design,
            finding,
            change,
            f"Restricts callers to {entity.name} items of their own {name}, taken from the principal tag {name}",
        )


def _tenant_keys(table: TableDesign) -> Iterator[tuple[EntityDesign, KeyDesign, str]]:
    for entity in table.entities:
        for key in entity.all_keys:
            fields = key.hash[0].fields
            if fields and entity.field(fields[0]).tenant:
                yield entity, key, fields[0]


def _name_actions(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the statement with the actions that the design's patterns need, on its tables and indexes."""
    policy = _policy(design, finding)
    named = () if policy is None else policy.tables
    tables = [table for table in design.tables if not named or table.name in named]
    actions = [f"dynamodb:{word}" for word in _needed_actions(tables)]
    resources = [
        f"arn:aws:dynamodb:*:*:table/{table.name}{rest}"
        for table in tables
        for rest in ("", *(f"/index/{index.name}" for index in table.indexes))
    ]

    def change(statement: Statement) -> Statement:
        wide = any("*" in action for action in _actions(statement))
        open_ = any("*" in resource.split(":", 5)[-1] for resource in _resources(statement))
        changed = {**statement, "Action": actions} if wide else dict(statement)
        return {**changed, "Resource": resources} if open_ else changed

    yield from _change_statements(
        design,
        finding,
        change,
        "Names the actions that the access patterns need; `tavola iac policies` generates one policy per role",
    )


def _needed_actions(tables: list[TableDesign]) -> Iterator[str]:
    entities = [entity for table in tables for entity in table.entities]
    writes = {write.kind for entity in entities for write in entity.writes}
    yield "GetItem"
    if any(entity.patterns for entity in entities) or any(table.collections for table in tables):
        yield "Query"
    for kind, word in (("put", "PutItem"), ("update", "UpdateItem"), ("delete", "DeleteItem")):
        if kind in writes:
            yield word


FIXERS: dict[str, Fixer] = {
    "leading-keys-mismatch": _add_key_prefix,
    "policy-allows-immutable-updates": _remove_changes,
    "policy-omits-indexes": _add_indexes,
    "unknown-policy-resource": _point_at_table,
    "policy-without-leading-keys": _limit_to_tenant,
    "scan-bypasses-leading-keys": _remove_scans,
    "wildcard-policy": _name_actions,
}
