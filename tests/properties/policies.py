"""A second evaluator of policies, slow and straightforward, and a generator of cases for both.

It works on the JSON of policies with plain loops and shares no line with `tavola.iam`. A fault can be planted in
it: the comparison must then find a difference, or it proves nothing. `python -m tests.properties.policies --cases
200000 --seed 7` runs as long as one likes.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import ipaddress
import json
import random
import sys
from dataclasses import dataclass, field
from typing import Any

from tavola.clock import ManualClock
from tavola.iam import (
    Account,
    CompiledPolicies,
    ConnectionProperties,
    Directory,
    Guard,
    Role,
    RoleSession,
    StatedAccessCheck,
    User,
)
from tavola.protocol.arns import Scope
from tavola.protocol.resources import TableFacts

HOME, AWAY = "111122223333", "444455556666"
NOW_S = 1_700_000_000.0
FAULTS = (
    "a deny is ignored",
    "ForAllValues fails without values",
    "ForAnyValue holds without values",
    "strings are folded",
    "resources are folded",
    "actions are not folded",
    "IfExists is ignored",
    "an absent key fails a negation",
    "variables are text",
    "wildcards are text",
    "NotResource is Resource",
    "NotAction is Action",
    "Null is turned round",
    "the boundary is ignored",
    "the session policy is ignored",
    "another account's table needs no resource policy",
    "another account's table needs no identity policy",
    "naming the account is naming its users",
    "a grant by name is bounded",
    "NotPrincipal spares a user without its account",
    "one condition is enough",
    "less is at most",
)


@dataclass
class Case:
    """A question: who, what, on what, with which policies and which circumstances."""

    kind: str  # user or session
    action: str
    resource: str
    context: dict[str, list[str]]
    identity: list[dict[str, Any]]
    boundary: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    resource_policy: dict[str, Any] | None = None
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The principal's own names, the most exact first, and its account last."""
        root = f"arn:aws:iam::{HOME}:root"
        if self.kind == "user":
            return [f"arn:aws:iam::{HOME}:user/alice", root]
        return [f"arn:aws:sts::{HOME}:assumed-role/Agent/s1", f"arn:aws:iam::{HOME}:role/Agent", root]


# The reference ------------------------------------------------------------------------------------------------


def judge(case: Case, fault: str = "") -> str:
    """Return "allow", "deny by <kind>" or "no <kind>", worked out the long way."""
    everything = dict(case.context)
    everything["aws:principalaccount"] = [HOME]
    everything["aws:principalarn"] = [case.names[0] if case.kind == "user" else case.names[1]]
    if case.kind == "user":
        everything["aws:username"] = ["alice"]
    for name, value in case.tags.items():
        everything[f"aws:principaltag/{name.lower()}"] = [value]
    if "aws:currenttime" not in everything:
        everything["aws:currenttime"] = [str(int(NOW_S))]
    if "aws:securetransport" not in everything:
        everything["aws:securetransport"] = ["false"]

    documents = [("identity", document) for document in case.identity]
    if case.boundary is not None and fault != "the boundary is ignored":
        documents.append(("boundary", case.boundary))
    if case.session is not None and fault != "the session policy is ignored":
        documents.append(("session", case.session))
    if case.resource_policy is not None:
        documents.append(("resource", case.resource_policy))

    allowing: list[tuple[str, str]] = []
    for kind, document in documents:
        for statement in document["Statement"]:
            how = "direct"
            if kind == "resource":
                how = _how_named(statement, case, fault)
            if how == "":
                continue
            if _statement_applies(document, statement, case, everything, fault):
                if statement["Effect"] == "Deny":
                    if fault != "a deny is ignored":
                        return f"deny by {kind}"
                else:
                    allowing.append((kind, how))

    foreign = f":{AWAY}:" in case.resource
    has_identity = any(kind == "identity" for kind, _ in allowing)
    hows = [how for kind, how in allowing if kind == "resource"]
    if foreign:
        if not has_identity and fault != "another account's table needs no identity policy":
            return "no identity"
        if not hows and fault != "another account's table needs no resource policy":
            return "no resource"
    else:
        if "direct" in hows and fault != "a grant by name is bounded":
            return "allow"
        if fault == "naming the account is naming its users" and "account" in hows:
            return "allow"
        if not has_identity and not [how for how in hows if how != "account"]:
            return "no identity"
    for kind in ("boundary", "session"):
        given = case.boundary if kind == "boundary" else case.session
        ignored = fault in ("the boundary is ignored", "the session policy is ignored")
        if given is not None and not ignored and not any(each == kind for each, _ in allowing):
            return f"no {kind}"
    return "allow"


def _how_named(statement: dict[str, Any], case: Case, fault: str) -> str:
    if "NotPrincipal" in statement:
        listed = _listed(statement["NotPrincipal"])
        needed = case.names
        if fault == "NotPrincipal spares a user without its account":
            needed = case.names[:1]
        return "" if "*" in listed or all(name in listed for name in needed) else "everybody"
    listed = _listed(statement["Principal"])
    if case.names[0] in listed:
        return "direct"
    if case.kind == "session" and case.names[1] in listed:
        return "role"
    if "*" in listed:
        return "everybody"
    return "account" if case.names[-1] in listed else ""


def _listed(principal: Any) -> list[str]:
    if principal == "*":
        return ["*"]
    listed = principal["AWS"]
    if isinstance(listed, str):
        listed = [listed]
    return [f"arn:aws:iam::{one}:root" if one.isdigit() else one for one in listed]


def _statement_applies(
    document: dict[str, Any], statement: dict[str, Any], case: Case, context: dict[str, list[str]], fault: str
) -> bool:
    variables = document.get("Version") == "2012-10-17" and fault != "variables are text"

    def one_matches(patterns: Any, text: str, fold: bool) -> bool:
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            tokens = _tokens(pattern, context, variables, wild=fault != "wildcards are text")
            if tokens is not None and _like(tokens, text, fold):
                return True
        return False

    fold_actions = fault != "actions are not folded"
    if "Action" in statement:
        if not one_matches(statement["Action"], case.action, fold_actions):
            return False
    elif one_matches(statement["NotAction"], case.action, fold_actions) is (fault != "NotAction is Action"):
        return False
    fold_resources = fault == "resources are folded"
    if "Resource" in statement:
        if not one_matches(statement["Resource"], case.resource, fold_resources):
            return False
    elif one_matches(statement["NotResource"], case.resource, fold_resources) is (
        fault != "NotResource is Resource"
    ):
        return False
    outcomes = []
    for operator, keys in statement.get("Condition", {}).items():
        for key, values in keys.items():
            values = [values] if not isinstance(values, list) else values
            texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
            given = context.get(key.lower(), [])
            outcomes.append(
                _condition(operator, given, texts, context, variables, statement["Effect"], fault)
            )
    if fault == "one condition is enough" and outcomes:
        return any(outcomes)
    return all(outcomes)


def _condition(
    operator: str,
    given: list[str],
    texts: list[str],
    context: dict[str, list[str]],
    variables: bool,
    effect: str,
    fault: str,
) -> bool:
    quantifier = ""
    if ":" in operator:
        quantifier, operator = operator.split(":")
    if_exists = operator.endswith("IfExists") and fault != "IfExists is ignored"
    if operator.endswith("IfExists"):
        operator = operator[: -len("IfExists")]
    if operator == "Null":
        absent = len(given) == 0
        wanted = [text.lower() == "true" for text in texts]
        return (absent in wanted) is (fault != "Null is turned round")
    negated = "Not" in operator

    def holds(value: str) -> bool:
        some = any(_compare(operator, value, text, context, variables, fault) for text in texts)
        return some is not negated

    if quantifier == "ForAllValues":
        if not given and fault == "ForAllValues fails without values":
            return False
        return all(holds(value) for value in given)
    if quantifier == "ForAnyValue":
        if not given and fault == "ForAnyValue holds without values":
            return True
        return any(holds(value) for value in given) or (not given and if_exists)
    if not given:
        if negated and fault == "an absent key fails a negation":
            return if_exists
        return negated or if_exists
    return any(map(holds, given)) if effect == "Deny" else all(map(holds, given))


def _compare(
    operator: str, value: str, text: str, context: dict[str, list[str]], variables: bool, fault: str
) -> bool:
    operator = operator.replace("Not", "", 1)
    wild = operator in ("StringLike", "ArnLike", "ArnEquals") and fault != "wildcards are text"
    tokens = _tokens(text, context, variables, wild=wild)
    if tokens is None:
        return False
    if operator in ("StringEquals", "StringLike"):
        return _like(tokens, value, fold=fault == "strings are folded")
    if operator == "StringEqualsIgnoreCase":
        return _like(tokens, value, fold=True)
    if operator in ("ArnEquals", "ArnLike"):
        pattern = _split_arn(tokens)
        parts = value.split(":", 5)
        if len(pattern) != 6:
            return text == "*"
        return len(parts) == 6 and all(
            _like(p, part, fold=False) for p, part in zip(pattern, parts, strict=True)
        )
    text = "".join(str(token) for token in tokens)
    if operator == "Bool":
        return value.lower() in ("true", "false") and value.lower() == text.lower()
    if operator == "BinaryEquals":
        try:
            return base64.b64decode(value, validate=True) == base64.b64decode(text, validate=True)
        except ValueError:
            return False
    if operator == "IpAddress":
        try:
            return ipaddress.ip_address(value) in ipaddress.ip_network(text, strict=False)
        except (ValueError, TypeError):
            return False
    number = _moment if operator.startswith("Date") else _number
    left, right = number(value), number(text)
    if left is None or right is None:
        return False
    order = operator.removeprefix("Date").removeprefix("Numeric")
    if order == "LessThan" and fault == "less is at most":
        order = "LessThanEquals"
    return {
        "Equals": left == right,
        "LessThan": left < right,
        "LessThanEquals": left <= right,
        "GreaterThan": left > right,
        "GreaterThanEquals": left >= right,
    }[order]


class _Star:
    def __str__(self) -> str:
        return "*"


class _Any:
    def __str__(self) -> str:
        return "?"


Token = str | _Star | _Any


def _tokens(text: str, context: dict[str, list[str]], variables: bool, *, wild: bool) -> list[Token] | None:
    """Return a pattern sign by sign; None where a variable has no value."""
    tokens: list[Token] = []
    while text:
        if variables and text.startswith("${"):
            inside, _, text = text[2:].partition("}")
            if inside in ("*", "?", "$"):
                tokens.append(inside)
                continue
            name, comma, default = inside.partition(",")
            found = context.get(name.strip().lower(), [])
            if len(found) == 1:
                tokens += list(found[0])
            elif comma:
                tokens += list(default.strip()[1:-1])
            else:
                return None
            continue
        sign, text = text[0], text[1:]
        tokens.append(_Star() if wild and sign == "*" else _Any() if wild and sign == "?" else sign)
    return tokens


def _like(tokens: list[Token], text: str, fold: bool) -> bool:
    """Tell whether a text matches, by the table of which beginnings match which beginnings."""
    if fold:
        text = text.casefold()
        tokens = [token.casefold() if isinstance(token, str) else token for token in tokens]
    row = [True] + [False] * len(text)
    for token in tokens:
        below = [row[0] and isinstance(token, _Star)]
        for at, sign in enumerate(text, 1):
            if isinstance(token, _Star):
                below.append(row[at] or below[at - 1])
            else:
                below.append(row[at - 1] and (isinstance(token, _Any) or token == sign))
        row = below
    return row[len(text)]


def _split_arn(tokens: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token == ":" and len(parts) < 6:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _moment(text: str) -> float | None:
    if text.replace(".", "", 1).isdigit() and len(text) > 4:
        return float(text)
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


# The cases ------------------------------------------------------------------------------------------------------

_ACTIONS = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:BatchGetItem"]
_ACTION_PATTERNS = [
    *_ACTIONS,
    *(
        "*",
        "dynamodb:*",
        "dynamodb:*",
        "dynamodb:*",
        "dynamodb:*",
        "dynamodb:Get*",
        "dynamodb:*Item",
        "dynamodb:?etItem",
        "DYNAMODB:getitem",
        "s3:*",
    ),
]
_RESOURCES = [
    f"arn:aws:dynamodb:us-east-1:{HOME}:table/Orders",
    f"arn:aws:dynamodb:us-east-1:{HOME}:table/Orders/index/ByDay",
    f"arn:aws:dynamodb:us-east-1:{HOME}:table/alice",
    f"arn:aws:dynamodb:us-east-1:{AWAY}:table/Orders",
]
_RESOURCE_PATTERNS = [
    *_RESOURCES,
    *("*", "*", "*", "*"),
    "arn:aws:dynamodb:*:*:table/Orders",
    "arn:aws:dynamodb:*:*:table/orders",
    "arn:aws:dynamodb:us-east-1:*:table/O*",
    "arn:aws:dynamodb:*:*:table/*/index/*",
    "arn:aws:dynamodb:*:*:table/Order?",
    "arn:aws:dynamodb:*:*:table/${aws:username}",
    "arn:aws:dynamodb:*:*:table/${dynamodb:Select}",
    "arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/team, 'Orders'}",
]
_WORDS = [
    "alice",
    "Alice",
    "bob",
    "red",
    "a*",
    "a?ice",
    "",
    "${aws:username}",
    "${aws:PrincipalTag/team}",
    "*",
]
_TEXT_KEYS = {
    "dynamodb:LeadingKeys": ["alice", "bob", "Alice", "red"],
    "dynamodb:Attributes": ["alice", "red", "blue"],
    "dynamodb:Select": ["COUNT", "Orders", "red"],
    "aws:username": [],
    "aws:PrincipalTag/team": [],
    "aws:ResourceTag/env": ["red", "blue"],
}
_NUMBER_KEYS = {"aws:RequestTag/size": ["1700000000", "5", "x"], "aws:RequestTag/age": ["5", "7", "7.0"]}
_ARNS = [
    f"arn:aws:iam::{HOME}:user/alice",
    f"arn:aws:iam::{HOME}:role/Agent",
    "arn:aws:iam::*:*",
    "*",
    "arn:*",
]
_TIMES = ["2023-11-14T22:13:20Z", "2024-01-01T00:00:00Z", "1700000000", "1600000000", "2000-01-01"]


def make_case(chance: random.Random) -> Case:
    """Return a case; its words are few, so that policies and requests often meet."""
    context: dict[str, list[str]] = {}
    for key, values in {**_TEXT_KEYS, **_NUMBER_KEYS}.items():
        if values and chance.random() < 0.6:
            count = chance.choice((1, 1, 1, 2))
            context[key.lower()] = chance.sample(values, count)
    if chance.random() < 0.5:
        context["aws:sourceip"] = [chance.choice(("10.0.0.7", "192.168.1.9", "2001:db8::1"))]
    if chance.random() < 0.5:
        context["aws:securetransport"] = [chance.choice(("true", "false"))]
    kind = chance.choice(("user", "session"))
    case = Case(
        kind=kind,
        action=chance.choice(_ACTIONS),
        resource=chance.choice(_RESOURCES),
        context=context,
        identity=[_document(chance, resource=False) for _ in range(chance.choice((0, 1, 1, 2)))],
        tags={"team": "red"} if chance.random() < 0.5 else {},
    )
    if chance.random() < 0.3:
        case.boundary = _document(chance, resource=False)
    if kind == "session" and chance.random() < 0.3:
        case.session = _document(chance, resource=False)
    if chance.random() < 0.5:
        case.resource_policy = _document(chance, resource=True)
    return case


def _document(chance: random.Random, *, resource: bool) -> dict[str, Any]:
    statements = [_statement(chance, resource=resource) for _ in range(chance.choice((1, 1, 2)))]
    document: dict[str, Any] = {"Statement": statements}
    version = chance.choice(("2012-10-17", "2012-10-17", "2012-10-17", "2008-10-17", None))
    return document if version is None else {"Version": version, **document}


def _statement(chance: random.Random, *, resource: bool) -> dict[str, Any]:
    effect = chance.choice(("Allow", "Allow", "Allow", "Deny"))
    statement: dict[str, Any] = {"Effect": effect}
    name = "NotAction" if chance.random() < 0.1 else "Action"
    statement[name] = _some(chance, _ACTION_PATTERNS)
    name = "NotResource" if chance.random() < 0.15 else "Resource"
    statement[name] = _some(chance, _RESOURCE_PATTERNS)
    if resource:
        names = [
            f"arn:aws:iam::{HOME}:user/alice",
            f"arn:aws:sts::{HOME}:assumed-role/Agent/s1",
            f"arn:aws:iam::{HOME}:role/Agent",
            HOME,
            f"arn:aws:iam::{HOME}:root",
            f"arn:aws:iam::{AWAY}:root",
        ]
        if effect == "Deny" and chance.random() < 0.4:
            statement["NotPrincipal"] = {"AWS": chance.sample(names, chance.choice((1, 2, 3)))}
        else:
            statement["Principal"] = "*" if chance.random() < 0.2 else {"AWS": _some(chance, names)}
    if chance.random() < 0.6:
        statement["Condition"] = _conditions(chance)
    return statement


def _conditions(chance: random.Random) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for _ in range(chance.choice((1, 1, 2))):
        family = chance.choice(
            ("String", "String", "String", "Numeric", "Date", "Bool", "Ip", "Arn", "Null", "Binary")
        )
        match family:
            case "String":
                operator = chance.choice(
                    ("Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike")
                )
                key, values = f"String{operator}", _some(chance, _WORDS)
                of = chance.choice(list(_TEXT_KEYS))
            case "Numeric" | "Date":
                operator = chance.choice(
                    ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
                )
                key = f"{family}{operator}"
                values = _some(chance, ["5", "7.00", "6"] if family == "Numeric" else _TIMES)
                of = chance.choice(list(_NUMBER_KEYS)) if family == "Numeric" else "aws:CurrentTime"
            case "Bool":
                key, values, of = "Bool", chance.choice(("true", "false", True)), "aws:SecureTransport"
            case "Ip":
                key = chance.choice(("IpAddress", "NotIpAddress"))
                values, of = _some(chance, ["10.0.0.0/8", "192.168.1.9", "2001:db8::/32"]), "aws:SourceIp"
            case "Arn":
                key = f"Arn{chance.choice(('Equals', 'Like', 'NotEquals', 'NotLike'))}"
                values, of = _some(chance, [arn for arn in _ARNS if arn != "arn:*"]), "aws:PrincipalArn"
            case "Null":
                key, values, of = "Null", chance.choice(("true", "false")), chance.choice(list(_TEXT_KEYS))
            case _:
                key, values, of = "BinaryEquals", _some(chance, ["YWJj", "cmVk"]), "aws:ResourceTag/blob"
        if key != "Null":
            key = chance.choice(("", "", "ForAllValues:", "ForAnyValue:")) + key
            key += chance.choice(("", "", "IfExists"))
        found.setdefault(key, {})[of if chance.random() < 0.8 else of.upper()] = values
    return found


def _some(chance: random.Random, choices: list[str]) -> Any:
    values = chance.sample(choices, chance.choice((1, 1, 2)))
    return values[0] if len(values) == 1 and chance.random() < 0.5 else values


# The comparison ---------------------------------------------------------------------------------------------------


def decided(case: Case) -> str:
    """Return what `tavola.iam` decides, in the reference's words."""
    inline = {f"p{at}": document for at, document in enumerate(case.identity)}
    policies = {} if case.boundary is None else {"bound": case.boundary}
    bound = None if case.boundary is None else "bound"
    trust = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]}
    if case.kind == "user":
        users = {"alice": User(inline=inline, boundary=bound, tags=case.tags)}
        directory = Directory({HOME: Account(policies=policies, users=users)})
        principal = directory.user(HOME, "alice")
    else:
        roles = {"Agent": Role(trust, inline=inline, boundary=bound, tags=case.tags)}
        directory = Directory({HOME: Account(policies=policies, roles=roles)}, "5e" * 32)
        narrowed = None if case.session is None else json.dumps(case.session)
        session = RoleSession(HOME, "Agent", "", "s1", "ASIAKEY", 0, 2**40, policy=narrowed)
        credential = directory.credential("ASIAKEY", directory.signer.issue(session).token.encode())
        assert credential is not None
        principal = credential.principal
    guard = Guard(
        CompiledPolicies(directory, principal),
        Scope(HOME, "us-east-1"),
        ConnectionProperties(),
        ManualClock(NOW_S),
    )
    policy = None if case.resource_policy is None else json.dumps(case.resource_policy)
    facts = TableFacts(arn=case.resource, hash="", range=None, types={}, indexes={}, policy=policy)
    stated = {key: tuple(values) for key, values in case.context.items()}
    decision = guard.decide(StatedAccessCheck(case.action, case.resource, facts, stated))
    if decision.allowed:
        return "allow"
    return f"no {decision.missing_allow}" if decision.rule is None else f"deny by {decision.rule.source}"


def differences(cases: int, seed: int, fault: str = "", stop: int = 1) -> list[tuple[Case, str, str]]:
    """Return cases in which the two do not agree on whether, and why; `stop` of them are enough."""
    chance = random.Random(seed)
    found: list[tuple[Case, str, str]] = []
    for _ in range(cases):
        case = make_case(chance)
        ours, theirs = decided(case), judge(case, fault)
        if ours.startswith("deny") and theirs.startswith("deny"):
            theirs = ours  # several may deny; which of them is named is ours to choose
        if ours != theirs:
            found.append((case, ours, theirs))
            if len(found) >= stop:
                break
    return found


def main() -> int:
    """Compare as often as asked, and show what differs."""
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=200_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    found = differences(chosen.cases, chosen.seed)
    for case, ours, theirs in found:
        sys.stdout.write(f"{case}\n  tavola: {ours}\n  reference: {theirs}\n")
    sys.stdout.write(f"{chosen.cases} cases, {len(found)} differences\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
