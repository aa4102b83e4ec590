"""The operators of a policy's Condition, compiled to functions of a request.

A condition that depends on the principal only is evaluated when the policy is compiled. AWS does not define what
happens when a key has several values and the operator no quantifier; here an Allow requires all values to match and a
Deny any of them, so that ambiguity never grants access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from ipaddress import ip_address
from operator import eq, ge, gt, le, lt
from typing import Any, TypeAlias

from tavola.iam.patterns import (
    ConditionContext,
    Match,
    Solid,
    Values,
    compile_arn_pattern,
    compile_pattern,
    expand,
    fill,
    without_variables,
)
from tavola.protocol.policy_documents import ConditionTest
from tavola.protocol.policy_values import (
    Piece,
    parse_bytes,
    parse_flag,
    parse_moment,
    parse_network,
    parse_number,
    parse_pieces,
)

Test: TypeAlias = Callable[[ConditionContext], bool]

# A negated operator is the positive one, inverted.
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
    "ArnNotEquals": "ArnLike",
    "ArnNotLike": "ArnLike",
}
_SAME = {"ArnEquals": "ArnLike"}
_WILD = frozenset({"StringLike", "ArnLike"})
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": eq,
    "LessThan": lt,
    "LessThanEquals": le,
    "GreaterThan": gt,
    "GreaterThanEquals": ge,
}


def compile_test(
    test: ConditionTest, known: Mapping[str, Values], *, variables: bool, denies: bool
) -> Test | bool:
    """Return a condition as a function, or as its result if the principal alone determines it.

    `known` holds the condition keys that are the same for all requests of the principal.
    """
    key = test.key.lower()
    if test.operator == "Null":
        absent = frozenset(parse_flag(value) for value in test.values)
        if key in known:
            return (not known[key]) in absent
        return lambda context: (not context.values(key)) in absent
    operator = _NEGATED.get(test.operator, _SAME.get(test.operator, test.operator))
    holds = _apply_quantifier(test, negated=test.operator in _NEGATED, denies=denies)
    closed, open_ = _split(operator, test.values, known, variables=variables)
    if open_:

        def fill_and_match(context: ConditionContext) -> Match:
            solids = [solid for solid in (fill(pieces, context) for pieces in open_) if solid is not None]
            return _match_any(operator, [*closed, *solids])

        return lambda context: holds(context.values(key), fill_and_match(context))
    hit = _match_any(operator, closed)
    if key in known:
        return holds(known[key], hit)
    return lambda context: holds(context.values(key), hit)


def _apply_quantifier(test: ConditionTest, *, negated: bool, denies: bool) -> Callable[[Values, Match], bool]:
    """Return how a test of one value is applied to all values of a request."""
    if_exists = test.if_exists

    def every(values: Values, hit: Match) -> bool:
        for value in values:  # noqa: SIM110 - a generator costs more than the test
            if hit(value) is negated:
                return False
        return True

    def some(values: Values, hit: Match) -> bool:
        for value in values:
            if hit(value) is not negated:
                return True
        return not values and if_exists

    def plain(values: Values, hit: Match) -> bool:
        if not values:
            return if_exists or negated
        return some(values, hit) if denies else every(values, hit)

    return {"ForAllValues": every, "ForAnyValue": some}.get(test.quantifier, plain)


def _split(
    operator: str, texts: Values, known: Mapping[str, Values], *, variables: bool
) -> tuple[list[Solid], list[tuple[Piece, ...]]]:
    """Return the test values that are complete, and those with variables that a request must fill."""
    closed: list[Solid] = []
    open_: list[tuple[Piece, ...]] = []
    for text in texts:
        pieces = expand(parse_pieces(text, wildcards=operator in _WILD, variables=variables), known)
        solid = without_variables(pieces)
        if solid is None:
            open_.append(pieces)
        else:
            closed.append(solid)
    return closed, open_


def _match_any(operator: str, solids: list[Solid]) -> Match:
    """Return a predicate: does a request value match any of these?"""
    match operator:
        case "StringEquals":
            return frozenset(map(_text, solids)).__contains__
        case "StringEqualsIgnoreCase":
            folded = frozenset(_text(solid).casefold() for solid in solids)
            return lambda value: value.casefold() in folded
        case "StringLike":
            return _any([compile_pattern(solid) for solid in solids])
        case "ArnLike":
            return _any([compile_arn_pattern(solid) for solid in solids])
        case "Bool":
            flags = frozenset(parse_flag(_text(solid)) for solid in solids) - {None}
            return lambda value: parse_flag(value) in flags
        case "BinaryEquals":
            known = frozenset(parse_bytes(_text(solid)) for solid in solids) - {None}
            return lambda value: parse_bytes(value) in known
        case "IpAddress":
            return _address(solids)
        case _:
            numeric = operator.startswith("Numeric")
            order = _ORDERS[operator.removeprefix("Numeric" if numeric else "Date")]
            return _compare(parse_number if numeric else parse_moment, order, solids)


def _any(matches: list[Match]) -> Match:
    if len(matches) == 1:
        return matches[0]

    def match(value: str) -> bool:
        for fits in matches:  # noqa: SIM110 - a generator costs more than the test
            if fits(value):
                return True
        return False

    return match


def _address(solids: list[Solid]) -> Match:
    networks = [
        network for network in (parse_network(_text(solid)) for solid in solids) if network is not None
    ]

    def match(value: str) -> bool:
        try:
            address = ip_address(value)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        if mapped is not None:
            address = mapped
        return any(address.version == network.version and address in network for network in networks)

    return match


def _compare(
    parse: Callable[[str], Decimal | float | None], order: Callable[[Any, Any], bool], solids: list[Solid]
) -> Match:
    bounds = [bound for bound in (parse(_text(solid)) for solid in solids) if bound is not None]

    def match(value: str) -> bool:
        parsed = parse(value)
        return parsed is not None and any(order(parsed, bound) for bound in bounds)

    return match


def _text(solid: Solid) -> str:
    return "".join(piece for piece in solid if isinstance(piece, str))
