"""Grants: the policies of a design, and what they allow on its tables.

Regions and accounts are ignored, since a design does not know them. A reference in place of a table's ARN (`${Tickets.Arn}`) is
taken as the table that the policy is about.

Decisions come from `tavola.iam`, including Deny, for hypothetical requests: the caller's value of every policy variable is
`me`, and the requested partition keys belong to `another` tenant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from tavola.design.findings import DesignPath
from tavola.design.lint.rule import LintContext
from tavola.iam import PolicyRule, Principal, PrincipalPolicies, compile_policy, decide, select_rules
from tavola.model.document import EntityDesign, KeyDesign, Policy, TableDesign
from tavola.protocol.policy_documents import (
    ConditionTest,
    PolicyDocument,
    PolicyRefused,
    PolicyStatement,
    read_policy,
)
from tavola.protocol.policy_values import Variable, parse_pieces

POLICY_RULES = frozenset(
    """
    leading-keys-mismatch policy-allows-immutable-updates policy-omits-indexes unknown-policy-resource policy-without-leading-keys
    scan-bypasses-leading-keys invalid-policy wildcard-policy
    """.split()
)
LEADING = ("dynamodb:leadingkeys", "dynamodb:firstpartitionkeyvalues")
_PARTITIONS = (
    *LEADING[1:],
    "dynamodb:secondpartitionkeyvalues",
    "dynamodb:thirdpartitionkeyvalues",
    "dynamodb:fourthpartitionkeyvalues",
)
READS = ("dynamodb:getitem", "dynamodb:batchgetitem", "dynamodb:query", "dynamodb:partiqlselect")
SCANS = ("dynamodb:scan", "dynamodb:partiqlselect")
WRITES = ("dynamodb:putitem", "dynamodb:updateitem", "dynamodb:deleteitem", "dynamodb:batchwriteitem")
REWRITES = (
    "dynamodb:updateitem",
    "dynamodb:deleteitem",
    "dynamodb:batchwriteitem",
    "dynamodb:partiqlupdate",
    "dynamodb:partiqldelete",
)
_ACCOUNT = "123456789012"
_ARN = f"arn:aws:dynamodb:us-east-1:{_ACCOUNT}:"
_CALLER = Principal(_ACCOUNT, "user", "caller", f"arn:aws:iam::{_ACCOUNT}:user/caller", "AIDACALLER")
# The caller's value of every policy variable, and the tenant of the requested items
_ME, _ANOTHER = "me", "another"
_REFERENCE = re.compile(r"\$\{[^}]*\}(?P<rest>.*)", re.DOTALL)
_PARAMETER = re.compile(r"\$\{(AWS::[^}]*|[^:}]*)\}")  # of a template; a variable of IAM has one colon
_NAMED = re.compile(rf"table/{_PARAMETER.pattern}")
_TABLE = re.compile(r"table/(?P<name>[^/*?$]+)(?P<rest>/.*)?", re.DOTALL)


@dataclass(frozen=True)
class PolicyGrants:
    """A valid policy, and the tables of the design that it is about."""

    policy: Policy
    document: PolicyDocument
    tables: tuple[TableDesign, ...]

    @property
    def place(self) -> DesignPath:
        """The place of the policy."""
        table = self.tables[0].name if len(self.tables) == 1 else ""
        return DesignPath(kind="policy", table=table, name=self.policy.name)

    @cached_property
    def rules(self) -> tuple[tuple[PolicyStatement, PolicyRule], ...]:
        """The statements, each with its compiled rule."""
        compiled = compile_policy(self.document, "identity", self.policy.name, _CALLER, self._caller_values)
        return tuple(zip(self.document.statements, compiled, strict=True))

    @cached_property
    def _caller_values(self) -> dict[str, tuple[str, ...]]:
        """The condition values of the caller: every variable in the policy is `me`."""
        values = dict(_CALLER.condition_keys())
        for statement in self.document.statements if self.document.has_variables else ():
            texts = (*(statement.resources or ()), *(v for test in statement.conditions for v in test.values))
            for text in texts:
                for piece in parse_pieces(text, wildcards=False, variables=True):
                    if isinstance(piece, Variable):
                        values[piece.key.lower()] = (_ME,)
        return values

    @cached_property
    def _all_rules(self) -> PrincipalPolicies:
        """The rules with all conditions."""
        return PrincipalPolicies(_CALLER, tuple(rule for _, rule in self.rules))

    @cached_property
    def _key_rules(self) -> PrincipalPolicies:
        """The rules with conditions on partition keys only: others are taken as met for Allow and not met for Deny."""
        statements = []
        for statement in self.document.statements:
            by_key = tuple(test for test in statement.conditions if test.key.lower() in _KEYED)
            if statement.allows or len(by_key) == len(statement.conditions):
                statements.append(replace(statement, conditions=by_key))
        document = replace(self.document, statements=tuple(statements))
        return PrincipalPolicies(
            _CALLER, compile_policy(document, "identity", self.policy.name, _CALLER, self._caller_values)
        )

    def covers_tables(self, statement: PolicyStatement) -> bool:
        """Return whether a statement applies to a table of the design, or to an index of one."""
        rule = next(rule for each, rule in self.rules if each is statement)
        return any(
            rule.matches_resource(resource_arn(table, index), None)
            for table in self.tables
            for index in (None, *(index.name for index in table.indexes))
        )

    def statements_allowing(
        self, action: str, table: TableDesign, index: str | None = None
    ) -> tuple[PolicyStatement, ...]:
        """Return the statements that allow an action on a table or index, under any conditions.

        Empty if a statement without conditions denies it.
        """
        arn = resource_arn(table, index)
        matching = [
            (statement, rule)
            for statement, rule in self.rules
            if rule.matches_action(action) and rule.matches_resource(arn, None)
        ]
        if any(rule.denies and not statement.conditions for statement, rule in matching):
            return ()
        return tuple(statement for statement, rule in matching if not rule.denies)

    def find_allow(self, action: str, table: TableDesign, leading: str) -> PolicyStatement | None:
        """Return the statement that allows an action on items of a partition key; None if it is not allowed."""
        return self._decide(self._all_rules, action, resource_arn(table), (leading,))

    def find_allow_by_keys(
        self, action: str, table: TableDesign, index: str | None, leading: tuple[str, ...]
    ) -> PolicyStatement | None:
        """Return the statement that allows an action for a partition key, or without one, by conditions on keys only."""
        return self._decide(self._key_rules, action, resource_arn(table, index), leading)

    def _decide(
        self, policies: PrincipalPolicies, action: str, arn: str, leading: tuple[str, ...]
    ) -> PolicyStatement | None:
        decision = decide(
            select_rules(policies, (), action, arn, cross_account=False), _PolicyRequest(leading), arn
        )
        if not decision.allowed or decision.rule is None:
            return None
        place = decision.rule.place
        return next(statement for statement in self.document.statements if statement.place == place)


_KEYED = frozenset((*LEADING, *_PARTITIONS))


@dataclass(frozen=True, slots=True)
class _PolicyRequest:
    """A request as conditions see it: only its partition key, by attribute."""

    leading: tuple[str, ...]

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of a condition key."""
        at = 0 if key in LEADING else _PARTITIONS.index(key) if key in _PARTITIONS else len(self.leading)
        return self.leading[at : at + 1]


def readable_policies(context: LintContext) -> Iterator[PolicyGrants]:
    """Yield the valid policies of a design."""
    for policy in context.design.policies:
        try:
            document = read_grants(policy, context.design.tables)
        except PolicyRefused:
            continue  # reported by invalid-policy
        yield PolicyGrants(policy, document, tables_of_policy(policy, context.design.tables))


def tables_of_policy(policy: Policy, tables: tuple[TableDesign, ...]) -> tuple[TableDesign, ...]:
    """Return the tables that a policy is about: those it names, else all."""
    named = tuple(table for table in tables if {table.name, table.label} & set(policy.tables))
    return named or tables


def read_grants(policy: Policy, tables: tuple[TableDesign, ...]) -> PolicyDocument:
    """Return a policy's document with all resources in one region and account. Raises PolicyRefused."""
    data: Mapping[str, Any] = policy.document
    if "Statement" not in data and "Effect" in data:
        data = {"Version": "2012-10-17", "Statement": [dict(data)]}
    policy_tables = tables_of_policy(policy, tables)
    listed = data.get("Statement")
    statements = listed if isinstance(listed, list) else [listed]
    kind = (
        "resource"
        if any(isinstance(statement, dict) and "Principal" in statement for statement in statements)
        else "identity"
    )
    resolved = [
        _resolve_references(statement, policy_tables) if isinstance(statement, dict) else statement
        for statement in statements
    ]
    document = read_policy({**data, "Statement": resolved}, "resource" if kind == "resource" else "identity")
    aliased = _alias_tables(document, policy_tables, tables) if policy.tables else {}
    return replace(
        document,
        statements=tuple(_relocate_statement(statement, aliased) for statement in document.statements),
    )


def arn_name(table: TableDesign) -> str:
    """Return a table's name as in an ARN, with template parameters filled in."""
    return _PARAMETER.sub("x", table.name)


def resource_arn(table: TableDesign, index: str | None = None) -> str:
    """Return the ARN of a table or index."""
    return f"{_ARN}table/{arn_name(table)}" + ("" if index is None else f"/index/{index}")


def leading_key_conditions(statement: PolicyStatement) -> tuple[ConditionTest, ...]:
    """Return a statement's conditions on the partition key, except `Null`."""
    return tuple(
        test for test in statement.conditions if test.key.lower() in LEADING and test.operator != "Null"
    )


def describe_statement(statement: PolicyStatement) -> str:
    """Return the name of a statement for messages."""
    return f"statement {statement.sid}" if statement.sid else statement.place


def partition_of_another(entity: EntityDesign, key: KeyDesign) -> tuple[str, ...]:
    """Return a partition key of another tenant's item, by attribute."""

    def value(name: str) -> str:
        return _ANOTHER if any(field.name == name and field.tenant for field in entity.fields) else "x"

    texts = []
    for source in key.hash:
        if source.template is None:
            texts.append(value(source.field or ""))
        else:
            parts = source.template.segments
            texts.append("".join(part if isinstance(part, str) else value(part.field) for part in parts))
    return tuple(texts)


def partition_text(entity: EntityDesign, key: KeyDesign) -> str | None:
    """Return an example of a partition key, with `x` for each field; None if it has several attributes."""
    if len(key.hash) != 1:
        return None
    template = key.hash[0].template
    if template is None:
        return "x"
    return "".join(segment if isinstance(segment, str) else "x" for segment in template.segments)


def _resolve_references(statement: Mapping[str, Any], tables: tuple[TableDesign, ...]) -> dict[str, Any]:
    """Return a statement with template references in its resources resolved."""
    resolved = dict(statement)
    for member in ("Resource", "NotResource"):
        if member in resolved:
            listed = resolved[member] if isinstance(resolved[member], list) else [resolved[member]]
            texts = [text for resource in listed for text in _resource_texts(resource, tables)]
            resolved[member] = texts or resolved[member]
    return resolved


def _resource_texts(value: Any, tables: tuple[TableDesign, ...]) -> list[Any]:
    text = _flatten_resource(value)
    if text is None:
        return [value]
    match = _REFERENCE.fullmatch(text)
    if match is not None and not text.startswith("${aws:"):
        return [f"arn:aws:dynamodb:*:*:table/{arn_name(table)}{match['rest']}" for table in tables]
    if _NAMED.search(text):
        return [_PARAMETER.sub("*", _NAMED.sub(f"table/{arn_name(table)}", text)) for table in tables]
    return [_PARAMETER.sub("*", resource) for resource in _expand_parameters(text, tables)]


def _expand_parameters(text: str, tables: tuple[TableDesign, ...]) -> list[str]:
    """Return a resource once for each table that its parameterised name can match; else unchanged."""
    head, slash, rest = text.partition(":table/")
    name, separator, index_part = rest.partition("/")
    if not slash or not _PARAMETER.search(name):
        return [text]
    pattern = _PARAMETER.sub("*", name)
    matching = [table for table in tables if table.name == name or fnmatchcase(arn_name(table), pattern)]
    return [f"{head}{slash}{arn_name(table)}{separator}{index_part}" for table in matching] or [text]


def _flatten_resource(value: Any) -> str | None:
    """Return the text of a resource, with `${…}` for references; None if it is not a resource."""
    match value:
        case str():
            return value
        case {"Fn::Sub": [str(text), *_]} | {"Fn::Sub": str(text)}:
            return text
        case {"Fn::Join": [str(between), [*parts]]}:
            texts = [_flatten_resource(part) for part in parts]
            return None if None in texts else between.join(text for text in texts if text is not None)
        case {"Fn::GetAtt": _} | {"Ref": _} | {"Fn::ImportValue": _}:
            return "${reference}"
        case _:
            return None


def _alias_tables(
    document: PolicyDocument, policy_tables: tuple[TableDesign, ...], tables: tuple[TableDesign, ...]
) -> Mapping[str, str]:
    """Return the unknown table names in a policy, mapped to the only table that it is about."""
    if len(policy_tables) != 1:
        return {}
    known = {arn_name(table) for table in tables}
    names = {
        match["name"]
        for statement in document.statements
        for text in (*(statement.resources or ()), *(statement.not_resources or ()))
        if (match := _TABLE.fullmatch(text.split(":", 5)[-1])) is not None
    }
    return {} if names & known else dict.fromkeys(names, arn_name(policy_tables[0]))


def _relocate_statement(statement: PolicyStatement, aliases: Mapping[str, str]) -> PolicyStatement:
    def relocate(texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if texts is None else tuple(_relocate_arn(text, aliases) for text in texts)

    return replace(
        statement, resources=relocate(statement.resources), not_resources=relocate(statement.not_resources)
    )


def _relocate_arn(text: str, aliases: Mapping[str, str]) -> str:
    parts = text.split(":", 5)
    if len(parts) < 6 or parts[2] not in ("dynamodb", "*"):
        return text
    match = _TABLE.fullmatch(parts[5])
    if match is not None and match["name"] in aliases:
        return f"{_ARN}table/{aliases[match['name']]}{match['rest'] or ''}"
    return f"{_ARN}{parts[5]}"
