"""Access checks: one action on one resource, with the values that policy conditions may test.

Each item of a batch or transaction is a check of its own, so that an item is protected in the same way on every path
to it. Condition values are computed only when a policy tests them.

A PartiQL statement is one check per partition that it names. A request that cannot be parsed has no condition values here; the operation itself refuses it with AWS's message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import key_bounds
from tavola.expressions.legacy import legacy_key_conditions
from tavola.expressions.partiql import (
    Statement,
    StatementError,
    equalities,
    mentioned_attributes,
    parse_statement,
)
from tavola.expressions.plans import (
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)
from tavola.expressions.search_conditions import search_clauses
from tavola.iam.patterns import Values
from tavola.keys import KeyAttribute, KeySchema
from tavola.protocol.arns import Scope, parse_resource_arn, table_arn
from tavola.protocol.resources import GuardResources, TableFacts
from tavola.values import ValueMalformed, ValueRefused, admit_item, admit_value


def table_of(name_or_arn: str, resources: GuardResources, scope: Scope) -> tuple[str, TableFacts | None]:
    """Return the ARN of a table, and its facts if it exists."""
    facts = resources.facts(name_or_arn)
    if facts is not None:
        return facts.arn, facts
    return (
        canonical_arn(name_or_arn) if name_or_arn.startswith("arn:") else table_arn(scope, name_or_arn)
    ), None


def canonical_arn(arn: str) -> str:
    """Return an ARN with the partition `aws`, so that other spellings cannot bypass a policy."""
    parts = parse_resource_arn(arn)
    return arn if parts is None else replace(parts, partition="aws").text


def owner_of(resource: str) -> str | None:
    """Return the account in an ARN; None for `*`, which means the caller's own."""
    parts = resource.split(":", 5)
    return parts[4] if len(parts) == 6 and parts[4] else None


_EXPRESSIONS: dict[str, Callable[[str, Bindings], Any]] = {
    "condition_expression": compile_condition,
    "filter_expression": lambda text, bindings: compile_condition(text, bindings, field="FilterExpression"),
    "key_condition_expression": compile_key_condition,
    "projection_expression": compile_projection,
    "search_condition_expression": lambda text, bindings: compile_condition(
        text, bindings, field="SearchConditionExpression"
    ),
    "update_expression": compile_update,
}
# Legacy parameters whose member names, or whose elements, are attribute names.
_LEGACY = (
    "attribute_updates",
    "attributes_to_get",
    "expected",
    "key_conditions",
    "query_filter",
    "scan_filter",
)
_READS = frozenset(f"dynamodb:{name}" for name in ("GetItem", "BatchGetItem", "ListItemVersions"))


class AccessCheck:
    """An action on a resource, without any DynamoDB condition keys of its own."""

    __slots__ = ("action", "enclosing", "facts", "request", "resource")
    is_of_items = False

    def __init__(
        self,
        action: str,
        resource: str,
        request: Any = None,
        facts: TableFacts | None = None,
        enclosing: str = "",
    ) -> None:
        self.action = action
        self.resource = resource
        self.request = request  # the part of the request that causes this check
        self.facts = facts
        self.enclosing = enclosing

    def values(self, key: str) -> Values:
        """Return the values of a condition key that the request or the resource provides."""
        ask = _KEYS.get(key)
        if ask is not None:
            return ask(self)
        if key.startswith("aws:resourcetag/"):
            return (
                ()
                if self.facts is None
                else _tag_values(self.facts.tags, key.removeprefix("aws:resourcetag/"))
            )
        if key.startswith("aws:requesttag/"):
            return _tag_values(self.tags(), key.removeprefix("aws:requesttag/"))
        return ()

    def leading_keys(self, place: int) -> Values:
        """Return the values of the n-th partition key attribute (dynamodb:LeadingKeys)."""
        return ()

    def attributes(self) -> Values:
        """Return the top-level attributes that the request names (dynamodb:Attributes)."""
        return ()

    def select(self) -> Values:
        """Return the Select value of a read (dynamodb:Select)."""
        return ()

    def return_values(self) -> Values:
        """Return the ReturnValues of a write, including those returned when its condition fails."""
        return ()

    def return_consumed_capacity(self) -> Values:
        """Return the ReturnConsumedCapacity value."""
        return ()

    def full_scan(self) -> Values:
        """Return whether a PartiQL statement scans a whole table (dynamodb:FullTableScan)."""
        return ()

    def tags(self) -> Mapping[str, str]:
        """Return the tags that the request adds to the resource."""
        return {tag.key: tag.value for tag in getattr(self.request, "tags", None) or ()}

    def tag_keys(self) -> Values:
        """Return the keys of the tags that the request adds or removes."""
        return tuple(self.tags()) or tuple(getattr(self.request, "tag_keys", None) or ())


class StatedAccessCheck(AccessCheck):
    """A check described by a user (for `explain`) instead of made by a request."""

    __slots__ = ("stated",)

    def __init__(
        self, action: str, resource: str, facts: TableFacts | None, stated: Mapping[str, Values]
    ) -> None:
        super().__init__(action, resource, None, facts)
        self.stated = stated

    def values(self, key: str) -> Values:
        """Return the stated values of a condition key."""
        return self.stated.get(key, ())


class ItemAccessCheck(AccessCheck):
    """A check on one item, identified by its key or the whole item.

    `shared` holds the settings of its batch.
    """

    __slots__ = ("key", "shared")
    is_of_items = True

    def __init__(
        self,
        action: str,
        resource: str,
        request: Any,
        facts: TableFacts | None,
        key: Mapping[str, Any],
        enclosing: str = "",
        shared: Any = None,
    ) -> None:
        self.action = action
        self.resource = resource
        self.request = request
        self.facts = facts
        self.enclosing = enclosing
        self.key = key
        self.shared = request if shared is None else shared

    def leading_keys(self, place: int) -> Values:
        """Return the partition key value."""
        if place or self.facts is None:
            return ()
        return text_of(self.key.get(self.facts.hash))

    def attributes(self) -> Values:
        """Return the attributes of the key or item, and those that expressions name."""
        return tuple(dict.fromkeys((*self.key, *named_attributes(self.request))))

    def select(self) -> Values:
        """Return the Select value: all attributes, or those of a projection."""
        if self.action not in _READS:
            return ()
        return ("SPECIFIC_ATTRIBUTES",) if _projects(self.request) else ("ALL_ATTRIBUTES",)

    def return_values(self) -> Values:
        """Return the ReturnValues of success and, where requested, of a failed condition."""
        if self.action in _READS:
            return ()
        returned = getattr(self.request, "return_values", None)
        failing = getattr(self.request, "return_values_on_condition_check_failure", None)
        if returned is None and failing is not None:
            return (failing,)
        return (returned or "NONE", *((failing,) if failing not in (None, "NONE", returned) else ()))

    def return_consumed_capacity(self) -> Values:
        """Return the request's value, or the default."""
        return (getattr(self.shared, "return_consumed_capacity", None) or "NONE",)


class RangeAccessCheck(AccessCheck):
    """A check on many items of a table or index: a query, scan or search."""

    __slots__ = ("index",)
    is_of_items = True

    def __init__(
        self, action: str, resource: str, request: Any, facts: TableFacts | None, index: str | None
    ) -> None:
        super().__init__(action, resource, request, facts)
        self.index = index

    def leading_keys(self, place: int) -> Values:
        """Return the partition key values of the key condition; a scan has none."""
        schema = _schema(self.facts, self.index)
        if schema is None or place >= len(schema.hash):
            return ()
        return text_of(dict(enumerate(self._hash_values(schema))).get(place))

    def _hash_values(self, schema: KeySchema) -> tuple[Any, ...]:
        request = self.request
        legacy = getattr(request, "key_conditions", None)
        text = getattr(request, "key_condition_expression", None)
        search = getattr(request, "search_condition_expression", None)
        try:
            if search is not None:
                bindings = _bindings(request)
                clauses = search_clauses(
                    compile_condition(search, bindings, field="SearchConditionExpression")
                )
                bound_values = {clause.name: bindings.values[clause.value] for clause in clauses}
                return tuple(bound_values.get(attribute.name) for attribute in schema.hash)
            if text is not None:
                bindings = _bindings(request)
                return key_bounds(compile_key_condition(text, bindings), schema, bindings.values).hash_values
            if legacy is not None:
                conditions = {name: msgspec.to_builtins(entry) for name, entry in legacy.items()}
                for condition in conditions.values():
                    for value in condition.get("AttributeValueList") or ():
                        admit_value(value)
                return key_bounds(legacy_key_conditions(conditions), schema, {}).hash_values
        except (ExpressionError, ValueRefused, ValueMalformed):
            pass
        return ()

    def attributes(self) -> Values:
        """Return the attributes that the expressions name."""
        return named_attributes(self.request)

    def select(self) -> Values:
        """Return the request's Select, or its default."""
        select = getattr(self.request, "select", None)
        if select is not None:
            return (select,)
        if _projects(self.request):
            return ("SPECIFIC_ATTRIBUTES",)
        return ("ALL_ATTRIBUTES",) if self.index is None else ("ALL_PROJECTED_ATTRIBUTES",)

    def return_consumed_capacity(self) -> Values:
        """Return the request's value, or the default."""
        return (getattr(self.request, "return_consumed_capacity", None) or "NONE",)


def text_of(value: Any) -> Values:
    """Return a key value as policies compare it: text unchanged, numbers canonical, bytes in base64."""
    if type(value) is dict and len(value) == 1:
        text = value.get("S")
        if type(text) is str:
            return (text,)
    try:
        admit_value(value)
    except (ValueRefused, ValueMalformed):
        return ()
    ((tag, content),) = value.items()
    return (content,) if tag in ("S", "N", "B") else ()


def named_attributes(part: Any) -> Values:
    """Return the top-level attributes that a request's expressions and legacy parameters name."""
    names: dict[str, None] = {}
    bindings: Bindings | None = None
    for field, compiled in _EXPRESSIONS.items():
        text = getattr(part, field, None)
        if text is not None:
            try:
                bindings = bindings or _bindings(part)
                names |= dict.fromkeys(sorted(compiled(text, bindings).attributes))
            except (ExpressionError, ValueRefused, ValueMalformed):
                continue
    for field in _LEGACY:
        names |= dict.fromkeys(getattr(part, field, None) or ())
    return tuple(names)


def _bindings(part: Any) -> Bindings:
    values = getattr(part, "expression_attribute_values", None) or {}
    admit_item(values)
    return Bindings(part.expression_attribute_names or {}, values)


def _projects(part: Any) -> bool:
    return (
        getattr(part, "projection_expression", None) is not None
        or getattr(part, "attributes_to_get", None) is not None
    )


def _schema(facts: TableFacts | None, index: str | None) -> KeySchema | None:
    """Return the key schema of a table or index, None if it does not exist."""
    if facts is None:
        return None
    names = (
        ((facts.hash,), (facts.range,) if facts.range else ()) if index is None else facts.indexes.get(index)
    )
    if names is None:
        return None
    hash_, range_ = (
        tuple(KeyAttribute(name, facts.types[name]) for name in some if name in facts.types) for some in names
    )
    return KeySchema(hash_, range_)


def _tag_values(tags: Mapping[str, str], key: str) -> Values:
    """Return the values of tags with a key; condition keys ignore case, so two tags may match."""
    return tuple(value for name, value in tags.items() if name.lower() == key)


_KEYS: dict[str, Callable[[AccessCheck], Values]] = {
    "aws:tagkeys": lambda access: access.tag_keys(),
    "dynamodb:attributes": lambda access: access.attributes(),
    "dynamodb:enclosingoperation": lambda access: (access.enclosing,) if access.enclosing else (),
    "dynamodb:firstpartitionkeyvalues": lambda access: access.leading_keys(0),
    "dynamodb:fourthpartitionkeyvalues": lambda access: access.leading_keys(3),
    "dynamodb:fulltablescan": lambda access: access.full_scan(),
    "dynamodb:leadingkeys": lambda access: access.leading_keys(0),
    "dynamodb:returnconsumedcapacity": lambda access: access.return_consumed_capacity(),
    "dynamodb:returnvalues": lambda access: access.return_values(),
    "dynamodb:secondpartitionkeyvalues": lambda access: access.leading_keys(1),
    "dynamodb:select": lambda access: access.select(),
    "dynamodb:thirdpartitionkeyvalues": lambda access: access.leading_keys(2),
}


_STATEMENT_ACTIONS = {
    "select": "dynamodb:PartiQLSelect",
    "exists": "dynamodb:PartiQLSelect",
    "insert": "dynamodb:PartiQLInsert",
    "update": "dynamodb:PartiQLUpdate",
    "delete": "dynamodb:PartiQLDelete",
}


class StatementAccessCheck(AccessCheck):
    """A statement's check on the items of one partition, or on an unknown set of items."""

    __slots__ = ("hashes", "pinned", "shared", "statement")
    is_of_items = True

    def __init__(
        self,
        resource: str,
        request: Any,
        facts: TableFacts | None,
        statement: Statement,
        hashes: tuple[str, ...],
        pinned: Mapping[str, Values],
        enclosing: str,
        shared: Any,
    ) -> None:
        super().__init__(_STATEMENT_ACTIONS[statement.kind], resource, request, facts, enclosing)
        self.statement = statement
        self.hashes = hashes
        self.pinned = pinned
        self.shared = shared

    def leading_keys(self, place: int) -> Values:
        """Return the values that the statement fixes for the n-th partition key attribute."""
        return self.pinned.get(self.hashes[place], ()) if place < len(self.hashes) else ()

    def attributes(self) -> Values:
        """Return the attributes that the statement names."""
        return tuple(sorted(mentioned_attributes(self.statement)))

    def select(self) -> Values:
        """Return the Select value of a SELECT."""
        if self.statement.kind != "select":
            return ()
        if self.statement.columns is not None:
            return ("SPECIFIC_ATTRIBUTES",)
        return ("ALL_ATTRIBUTES",) if self.statement.index is None else ("ALL_PROJECTED_ATTRIBUTES",)

    def return_values(self) -> Values:
        """Return the image that RETURNING selects, and that of a failed condition."""
        if self.statement.kind in ("select", "exists"):
            return ()
        returning = self.statement.returning
        returned = "NONE"
        if returning is not None:
            returned = f"{'ALL' if returning.part == 'ALL' else 'UPDATED'}_{returning.image}"
        failing = getattr(self.request, "return_values_on_condition_check_failure", None)
        return (returned, *((failing,) if failing not in (None, "NONE", returned) else ()))

    def return_consumed_capacity(self) -> Values:
        """Return the request's value, or the default."""
        return (getattr(self.shared, "return_consumed_capacity", None) or "NONE",)

    def full_scan(self) -> Values:
        """Return whether a SELECT fixes no partition key."""
        if self.statement.kind != "select":
            return ()
        return ("false",) if self.hashes and self.hashes[0] in self.pinned else ("true",)


def statement_access_checks(
    request: Any, resources: GuardResources, scope: Scope, *, enclosing: str = "", shared: Any = None
) -> Iterator[AccessCheck]:
    """Yield the access checks of one statement, one per partition it names; none if it cannot be parsed."""
    try:
        statement = parse_statement(request.statement)
        equal_values = equalities(statement, request.parameters or ())
    except StatementError:
        return
    resource, facts = table_of(statement.table, resources, scope)
    hashes: tuple[str, ...] = ()
    if facts is not None:
        hashes = (facts.hash,)
        if statement.index is not None:
            hashes = facts.indexes.get(statement.index, ((), ()))[0]
    if statement.index is not None:
        resource = f"{resource}/index/{statement.index}"
    pinned = {name: _texts(equal_values[name]) for name in hashes if name in equal_values}
    first = pinned.get(hashes[0], ()) if hashes else ()
    for partition in [{hashes[0]: (value,)} for value in first] or [{}]:
        yield StatementAccessCheck(
            resource, request, facts, statement, hashes, {**pinned, **partition}, enclosing, shared or request
        )


def _texts(values: Sequence[Any]) -> Values:
    return tuple(dict.fromkeys(text for value in values for text in text_of(value)))
