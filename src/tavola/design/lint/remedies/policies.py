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
    return next((each for each in design.policies if each.name == finding.place.name), None)


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
        change(each) if isinstance(each, Mapping) and each.get("Effect") == "Allow" else each
        for each in statements
    ]
    differing = [at for at, each in enumerate(changed) if each != statements[at]]
    ways = [{at} for at in differing]
    for way in [*ways, *([set(differing)] if len(differing) > 1 else [])]:
        new = [changed[at] if at in way else each for at, each in enumerate(statements)]
        document = {**policy.document, "Statement": [each for each in new if each.get("Action", True)]}
        mended = replace(policy, document=document)
        yield Proposal(
            replace(design, policies=tuple(mended if each is policy else each for each in design.policies)),
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
        return statement  # what it grants is all but what it names; to leave more out takes a person
    kept = [action for action in _actions(statement) if action.partition(":")[2].lower() not in names]
    return {**statement, "Action": kept}


def _remove_scans(design: Design, finding: Finding) -> Iterator[Proposal]:
    def change(statement: Statement) -> Statement:
        condition = statement.get("Condition", {})
        if not any(_LEADING in test for test in condition.values() if isinstance(test, Mapping)):
            return statement
        bound = {**condition, "Null": {**condition.get("Null", {}), **_NOT_NULL["Null"]}}
        return {**_without_actions(statement, _SCANS), "Condition": bound}

    yield from _change_statements(
        design, finding, change, "Scan is left out, and a request that names no partition key is refused"
    )


def _remove_changes(design: Design, finding: Finding) -> Iterator[Proposal]:
    yield from _change_statements(
        design,
        finding,
        lambda statement: _without_actions(statement, _REWRITES),
        "its holder may create and read, and neither change nor delete",
    )


def _add_indexes(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is None:
        return
    asked = {pattern.index for entity in table.entities for pattern in entity.patterns}
    asked |= {collection.index for collection in table.collections}
    asked |= {need.route.index for need in design.needs if need.route is not None}
    names = [index.name for index in table.indexes if index.name in asked]

    def change(statement: Statement) -> Statement:
        resources = _resources(statement)
        own = [each for each in resources if each.endswith(f"table/{table.name}")]
        more = [f"{each}/index/{name}" for each in own for name in names]
        return {**statement, "Resource": [*resources, *more]} if more else statement

    yield from _change_statements(
        design, finding, change, f"queries of {', '.join(names)} are allowed as well"
    )


def _point_at_table(design: Design, finding: Finding) -> Iterator[Proposal]:
    policy = _policy(design, finding)
    named = () if policy is None else policy.tables
    tables = [table for table in design.tables if not named or table.name in named]
    if len(tables) != 1:
        return
    [table] = tables

    def change(statement: Statement) -> Statement:
        resources = [_rename_table(each, table) for each in _resources(statement)]
        return {**statement, "Resource": resources}

    yield from _change_statements(design, finding, change, f"it names {table.name}, as the design does")


def _rename_table(arn: str, table: TableDesign) -> str:
    parts = arn.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb" or not parts[5].startswith("table/"):
        return arn
    _, _, rest = parts[5].removeprefix("table/").partition("/")
    return ":".join([*parts[:5], f"table/{table.name}" + (f"/{rest}" if rest else "")])


def _add_key_prefix(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the statement with the literal prefix of an entity's key before its partition key value."""
    table = table_at(design, finding)
    if table is None:
        return
    starts = dict.fromkeys(
        start
        for entity in table.entities
        for key in (entity.key, *entity.keys)
        if key is not None and (start := _literal(key))
    )
    for start in starts:

        def change(statement: Statement, start: str = start) -> Statement:
            condition = {
                operator: {
                    name: _prefixed(value, start) if name == _LEADING and operator != "Null" else value
                    for name, value in test.items()
                }
                for operator, test in statement.get("Condition", {}).items()
            }
            return {**statement, "Condition": condition}

        yield from _change_statements(
            design, finding, change, f"the value begins with {start}, as the key does"
        )
    yield from _limit_to_tenant(design, finding)


def _prefixed(value: Any, start: str) -> Any:
    if isinstance(value, list):
        return [_prefixed(each, start) for each in value]
    return value if not isinstance(value, str) or value.startswith(start) else f"{start}{value}"


def _literal(key: KeyDesign) -> str:
    template = key.hash[0].template
    first = template.segments[0] if template is not None and template.segments else ""
    return first if isinstance(first, str) else ""


def _limit_to_tenant(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the statement limited to the tenant of the caller, on the table or index whose key begins with the tenant."""
    table = table_at(design, finding)
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
                ":".join([*each.split(":", 5)[:5], f"table/{table.name}{on}"])
                for each in _resources(statement)
                if each.count(":") >= 5
            ] or [f"arn:aws:dynamodb:*:*:table/{table.name}{on}"]
            actions = (
                ["dynamodb:Query"]
                if on
                else [
                    each
                    for each in _actions(statement)
                    if each.lower() != "dynamodb:scan" and "*" not in each
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
            f"its holder reaches {entity.name} of its own {name} alone, by the tag {name} that the principal carries",
        )


def _tenant_keys(table: TableDesign) -> Iterator[tuple[EntityDesign, KeyDesign, str]]:
    for entity in table.entities:
        for key in (entity.key, *entity.keys):
            fields = () if key is None else key.hash[0].fields
            if key is not None and fields and entity.field(fields[0]).tenant:
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
        asked = _actions(statement)
        wide = any("*" in action for action in asked)
        open_ = any("*" in each.split(":", 5)[-1] for each in _resources(statement))
        changed = {**statement, "Action": actions} if wide else dict(statement)
        return {**changed, "Resource": resources} if open_ else changed

    yield from _change_statements(
        design,
        finding,
        change,
        "it names the actions that the design's patterns take; `tavola iac policies` writes one for each role",
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
    "leading-keys-match-nothing": _add_key_prefix,
    "policy-changes-immutable": _remove_changes,
    "policy-misses-index": _add_indexes,
    "policy-of-no-table": _point_at_table,
    "policy-without-leading-keys": _limit_to_tenant,
    "scan-past-leading-keys": _remove_scans,
    "wildcard-policy": _name_actions,
}
