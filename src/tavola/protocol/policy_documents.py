"""Policy documents: parsing and checking, with the location of errors.

Only the grammar; `tavola.iam` evaluates policies. It is here because the engine, which stores policies on tables, and
iam both need it and do not know each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, TypeAlias

from msgspec import Struct

from tavola.errors import TavolaError
from tavola.protocol.policy_values import (
    parse_bytes,
    parse_flag,
    parse_moment,
    parse_network,
    parse_number,
    parse_pieces,
)

PolicyKind: TypeAlias = Literal["identity", "resource", "trust"]
Quantifier: TypeAlias = Literal["", "ForAllValues", "ForAnyValue"]

VERSIONS = ("2012-10-17", "2008-10-17")
CONDITION_KEYS = (
    "dynamodb:Attributes",
    "dynamodb:EnclosingOperation",
    "dynamodb:FirstPartitionKeyValues",
    "dynamodb:FourthPartitionKeyValues",
    "dynamodb:FullTableScan",
    "dynamodb:LeadingKeys",
    "dynamodb:ReturnConsumedCapacity",
    "dynamodb:ReturnValues",
    "dynamodb:SecondPartitionKeyValues",
    "dynamodb:Select",
    "dynamodb:ThirdPartitionKeyValues",
)
"""DynamoDB's condition keys.

Unknown ones are refused: they would be absent from every request, and `ForAllValues` is true for absent keys.
"""

_DOCUMENT = ("Version", "Id", "Statement")
_STATEMENT = (
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource"),
    "Condition",
)
_PRINCIPALS = ("AWS", "Service", "Federated", "CanonicalUser")
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_ACCOUNT = re.compile(r"[0-9]{12}")
_PRINCIPAL_ARN = re.compile(
    r"arn:aws[a-z-]*:(iam::[0-9]{12}:(root|(user|role)/[^*?\s]+)"
    r"|sts::[0-9]{12}:(assumed-role/[^*?/\s]+/[^*?/\s]+|federated-user/[^*?\s]+))"
)
_KEY = re.compile(r"[A-Za-z0-9._~/-]+:[^\s]+")  # an identity provider's key begins with its host and path


def _arn(text: str) -> str | None:
    return text if text == "*" or text.count(":") >= 5 else None


_COMPARISONS = ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
# The format of each operator's values; None: any text.
_FORMS: dict[str, tuple[str, Callable[[str], object]] | None] = {
    **dict.fromkeys(
        (f"String{name}" for name in ("Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase")), None
    ),
    **dict.fromkeys(("StringLike", "StringNotLike"), None),
    **dict.fromkeys((f"Numeric{name}" for name in _COMPARISONS), ("a number", parse_number)),
    **dict.fromkeys(
        (f"Date{name}" for name in _COMPARISONS), ("an ISO 8601 time or epoch seconds", parse_moment)
    ),
    "Bool": ("true or false", parse_flag),
    "Null": ("true or false", parse_flag),
    "BinaryEquals": ("base64", parse_bytes),
    **dict.fromkeys(("IpAddress", "NotIpAddress"), ("an IP address or CIDR block", parse_network)),
    **dict.fromkeys(("ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike"), ("an ARN", _arn)),
}
OPERATORS = tuple(_FORMS)


class PolicyRefused(TavolaError):
    """A policy is invalid; carries the reason and its location."""

    remedy = "Fix the policy at the location above; nothing was changed."

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{reason} ({place})" if place else reason)


class Principals(Struct, frozen=True):
    """The principals of a statement; an account is represented by the ARN of its root."""

    anyone: bool
    arns: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()  # services and federated identities: kind and name


class ConditionTest(Struct, frozen=True):
    """One line of a Condition: an operator on a key, with alternative values."""

    place: str
    operator: str
    quantifier: Quantifier
    if_exists: bool
    key: str  # as written; keys are compared without case
    values: tuple[str, ...]


class PolicyStatement(Struct, frozen=True):
    """One statement; of each pair of members with and without Not, one is None."""

    place: str
    sid: str | None
    allows: bool
    actions: tuple[str, ...] | None
    not_actions: tuple[str, ...] | None
    resources: tuple[str, ...] | None
    not_resources: tuple[str, ...] | None
    principals: Principals | None
    not_principals: Principals | None
    conditions: tuple[ConditionTest, ...]


class PolicyDocument(Struct, frozen=True):
    """A policy: its version (None if absent) and statements."""

    version: str | None
    id: str | None
    statements: tuple[PolicyStatement, ...]

    @property
    def has_variables(self) -> bool:
        """Return whether `${…}` is a variable, which it is not in the older version."""
        return self.version == "2012-10-17"


class _Members(dict[str, Any]):
    """A JSON object that remembers duplicate members."""

    repeated: str | None = None


def load_document(text: str) -> Any:
    """Return decoded JSON whose objects remember duplicate members."""

    def members(pairs: list[tuple[str, Any]]) -> _Members:
        unique = _Members(pairs)
        if len(unique) < len(pairs):
            names = [name for name, _ in pairs]
            unique.repeated = next(name for position, name in enumerate(names) if name in names[:position])
        return unique

    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        return json.loads(text, object_pairs_hook=members, parse_float=Decimal, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise PolicyRefused(
            "This policy contains invalid Json", f"line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise PolicyRefused("This policy contains invalid Json", str(error)) from error


def parse_policy(text: str, kind: PolicyKind) -> PolicyDocument:
    """Return a policy from its JSON text."""
    return read_policy(load_document(text), kind)


def read_policy(data: Any, kind: PolicyKind, place: str = "") -> PolicyDocument:
    """Return a policy from decoded JSON; `place` is its location in a larger document."""
    inside = f"{place}." if place else ""
    members = read_members(data, place or "the policy", _DOCUMENT)
    version = members.get("Version")
    if version is not None and version not in VERSIONS:
        _refuse(f"Version must be {' or '.join(VERSIONS)}, not {version!r}", f"{inside}Version")
    identity = members.get("Id")
    if identity is not None and not isinstance(identity, str):
        _refuse("Id must be a string", f"{inside}Id")
    listed = members.get("Statement")
    if isinstance(listed, dict):
        listed = [listed]
    if listed is None:
        _refuse("Missing required field Statement", place or "the policy")
    if not isinstance(listed, list):
        _refuse("Statement must be an object or a list of them", f"{inside}Statement")
    if not listed:
        _refuse("Could not parse the policy: Statement is empty!", f"{inside}Statement")
    variables = version == "2012-10-17"
    statements = tuple(
        _statement(raw_statement, kind, f"{inside}Statement[{position}]", variables)
        for position, raw_statement in enumerate(listed)
    )
    seen: set[str] = set()
    for statement in statements:
        if statement.sid and statement.sid in seen:
            _refuse("The Statement Ids in the policy are not unique", f"{statement.place}.Sid")
        seen.add(statement.sid or "")
    return PolicyDocument(version, identity, statements)


def render_policy(document: PolicyDocument) -> str:
    """Return a policy as AWS returns it: fixed member order, no spaces, single-element lists unwrapped."""

    def few(values: tuple[str, ...]) -> Any:
        unique = list(dict.fromkeys(values))
        return unique[0] if len(unique) == 1 else unique

    statements = []
    for statement in document.statements:
        rendered: dict[str, Any] = {} if statement.sid is None else {"Sid": statement.sid}
        rendered["Effect"] = "Allow" if statement.allows else "Deny"
        for name, principals in (
            ("Principal", statement.principals),
            ("NotPrincipal", statement.not_principals),
        ):
            if principals is not None:
                rendered[name] = _render_principals(principals, few)
        for name, texts in (
            ("Action", statement.actions),
            ("NotAction", statement.not_actions),
            ("Resource", statement.resources),
            ("NotResource", statement.not_resources),
        ):
            if texts is not None:
                rendered[name] = few(texts)
        if statement.conditions:
            condition: dict[str, dict[str, Any]] = {}
            for test in statement.conditions:
                quantified = f"{test.quantifier}:" if test.quantifier else ""
                operator = f"{quantified}{test.operator}{'IfExists' if test.if_exists else ''}"
                condition.setdefault(operator, {})[test.key] = few(test.values)
            rendered["Condition"] = condition
        statements.append(rendered)
    policy: dict[str, Any] = {"Version": document.version or "2008-10-17"}
    if document.id is not None:
        policy["Id"] = document.id
    return json.dumps({**policy, "Statement": statements}, separators=(",", ":"), ensure_ascii=False)


def read_members(data: Any, place: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return an object whose members are all known and unique; refuse anything else."""
    if not isinstance(data, dict):
        _refuse(f"expected an object, not {_kind_of(data)}", place)
    repeated = getattr(data, "repeated", None)
    if repeated is not None:
        _refuse(f"{repeated!r} occurs twice; only one would count", place)
    for name in data:
        if name not in known:
            _refuse(f"unknown member {name!r}{_suggest(name, known)}", place)
    return data


def _suggest(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _statement(data: Any, kind: PolicyKind, place: str, variables: bool) -> PolicyStatement:
    members = read_members(data, place, _STATEMENT)
    sid = members.get("Sid")
    if sid is not None and not isinstance(sid, str):
        _refuse("Sid must be a string", f"{place}.Sid")
    effect = members.get("Effect")
    if effect is None:
        _refuse("Missing required field Effect", place)
    if not isinstance(effect, str) or effect.lower() not in ("allow", "deny"):
        _refuse(f"Effect must be Allow or Deny, not {effect!r}", f"{place}.Effect")
    allows = effect.lower() == "allow"
    actions, not_actions = _pair(members, "Action", place)
    for name, texts in (("Action", actions), ("NotAction", not_actions)):
        for text in texts or ():
            if _ACTION.fullmatch(text) is None:
                _refuse(
                    f"{text!r} is not an action; write it with its service, such as dynamodb:GetItem",
                    f"{place}.{name}",
                )
    resources: tuple[str, ...] | None = None
    not_resources: tuple[str, ...] | None = None
    if kind == "trust":
        if "Resource" in members or "NotResource" in members:
            _refuse("a trust policy must not have a Resource", place)
    else:
        resources, not_resources = _pair(members, "Resource", place)
        for name, texts in (("Resource", resources), ("NotResource", not_resources)):
            for text in texts or ():
                _check_resource(text, f"{place}.{name}", variables)
    principals, not_principals = _principal_pair(members, kind, allows, place)
    conditions = (
        _conditions(members["Condition"], f"{place}.Condition", variables) if "Condition" in members else ()
    )
    return PolicyStatement(
        place,
        sid,
        allows,
        actions,
        not_actions,
        resources,
        not_resources,
        principals,
        not_principals,
        conditions,
    )


def _pair(
    members: dict[str, Any], name: str, place: str
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the values of a member and of its Not form; exactly one must be present."""
    member, opposite = members.get(name), members.get(f"Not{name}")
    if member is None and opposite is None:
        _refuse(f"Missing required field {name}", place)
    if member is not None and opposite is not None:
        _refuse(f"{name} and Not{name} exclude each other", place)
    if member is not None:
        return _texts(member, f"{place}.{name}"), None
    return None, _texts(opposite, f"{place}.Not{name}")


def _texts(value: Any, place: str) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        _refuse("at least one value is required", place)
    for position, text in enumerate(values):
        if not isinstance(text, str) or not text:
            _refuse(
                f"expected a string, not {_kind_of(text)}",
                f"{place}[{position}]" if text is not value else place,
            )
    return tuple(values)


def _check_resource(text: str, place: str, variables: bool) -> None:
    if text != "*" and not text.startswith(("arn:", "${")):
        _refuse(f'{text!r} is not an ARN or "*"', place)
    _check_variables(text, place, variables)


def _check_variables(text: str, place: str, variables: bool) -> None:
    try:
        parse_pieces(text, wildcards=False, variables=variables)
    except ValueError as error:
        _refuse(str(error), place)


def _principal_pair(
    members: dict[str, Any], kind: PolicyKind, allows: bool, place: str
) -> tuple[Principals | None, Principals | None]:
    member, opposite = members.get("Principal"), members.get("NotPrincipal")
    if kind == "identity":
        if member is not None or opposite is not None:
            _refuse(
                "a policy of a user, group or role must not have a Principal: it applies to the one it is attached to",
                place,
            )
        return None, None
    if member is None and opposite is None:
        _refuse("Missing required field Principal", place)
    if member is not None and opposite is not None:
        _refuse("Principal and NotPrincipal exclude each other", place)
    if member is not None:
        return _principals(member, f"{place}.Principal"), None
    if allows:
        _refuse("NotPrincipal requires Deny: with Allow it would admit nearly every caller", place)
    return None, _principals(opposite, f"{place}.NotPrincipal")


def _principals(value: Any, place: str) -> Principals:
    if value == "*":
        return Principals(anyone=True)
    members = read_members(value, place, _PRINCIPALS)
    if not members:
        _refuse("at least one principal is required", place)
    anyone = False
    arns: list[str] = []
    others: list[tuple[str, str]] = []
    for kind, named in members.items():
        for text in _texts(named, f"{place}.{kind}"):
            if kind != "AWS":
                others.append((kind, text))
            elif text == "*":
                anyone = True
            elif _ACCOUNT.fullmatch(text):
                arns.append(f"arn:aws:iam::{text}:root")
            elif _PRINCIPAL_ARN.fullmatch(text):
                arns.append(text)
            else:
                _refuse(
                    f'{text!r} is not a principal; write "*", an account number, or the ARN of a user, role '
                    "or session without wildcards",
                    f"{place}.{kind}",
                )
    return Principals(anyone, tuple(dict.fromkeys(arns)), tuple(dict.fromkeys(others)))


def _render_principals(principals: Principals, few: Callable[[tuple[str, ...]], Any]) -> Any:
    arns = (*(("*",) if principals.anyone else ()), *principals.arns)
    if arns == ("*",) and not principals.others:
        return "*"
    rendered: dict[str, Any] = {"AWS": few(arns)} if arns else {}
    for kind in dict.fromkeys(kind for kind, _ in principals.others):
        rendered[kind] = few(
            tuple(name for principal_kind, name in principals.others if principal_kind == kind)
        )
    return rendered


def _conditions(value: Any, place: str, variables: bool) -> tuple[ConditionTest, ...]:
    tests = []
    if not isinstance(value, dict):
        _refuse(f"expected an object of operators, not {_kind_of(value)}", place)
    for written, keys in read_members(value, place, tuple(value)).items():
        at = f"{place}.{written}"
        operator, quantifier, if_exists = _operator(written, at)
        if not isinstance(keys, dict):
            _refuse(f"expected an object of condition keys, not {_kind_of(keys)}", at)
        for key, raw_values in read_members(keys, at, tuple(keys)).items():
            _check_key(key, at)
            values = _values(raw_values, f"{at}.{key}")
            form = _FORMS[operator]
            for text in values:
                _check_variables(text, f"{at}.{key}", variables)
                if form is not None and not ("${" in text and variables) and form[1](text) is None:
                    _refuse(f"{text!r} is not {form[0]}", f"{at}.{key}")
            tests.append(ConditionTest(f"{at}.{key}", operator, quantifier, if_exists, key, values))
    return tuple(tests)


def _operator(written: str, place: str) -> tuple[str, Quantifier, bool]:
    head, colon, rest = written.partition(":")
    quantifier: Quantifier = ""
    name = written
    if colon:
        if head == "ForAllValues":
            quantifier = "ForAllValues"
        elif head == "ForAnyValue":
            quantifier = "ForAnyValue"
        else:
            _refuse(f"{head!r} is neither ForAllValues nor ForAnyValue", place)
        name = rest
    if_exists = name.endswith("IfExists")
    operator = name.removesuffix("IfExists")
    if operator not in _FORMS:
        _refuse(f"unknown condition operator {operator!r}{_suggest(operator, OPERATORS)}", place)
    if operator == "Null" and (if_exists or quantifier):
        _refuse("Null tests whether the key exists: it takes neither IfExists nor a quantifier", place)
    return operator, quantifier, if_exists


def _check_key(key: str, place: str) -> None:
    if _KEY.fullmatch(key) is None:
        _refuse(f"{key!r} is not a condition key; write one such as dynamodb:LeadingKeys", place)
    if key.lower().startswith("dynamodb:") and key.lower() not in _KNOWN_KEYS:
        _refuse(f"DynamoDB has no condition key {key!r}{_suggest(key, CONDITION_KEYS)}", place)


def _values(raw_values: Any, place: str) -> tuple[str, ...]:
    values = raw_values if isinstance(raw_values, list) else [raw_values]
    if not values:
        _refuse("at least one value is required", place)
    texts = []
    for value in values:
        if isinstance(value, bool):
            texts.append("true" if value else "false")
        elif isinstance(value, str | int | Decimal):
            texts.append(str(value))
        else:
            _refuse(f"expected a string, number or boolean, not {_kind_of(value)}", place)
    return tuple(texts)


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "an empty string" if not value else "a string"
        case _:
            return "a number"


def _refuse(reason: str, place: str) -> NoReturn:
    raise PolicyRefused(reason, place)


_KNOWN_KEYS = frozenset(key.lower() for key in CONDITION_KEYS)
