"""Any body becomes a request or a fault, and nothing else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.protocol.faults import Fault, SerializationFault, UnknownOperationFault, ValidationFault
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.operations import OPERATIONS
from tavola.protocol.requests import check_serialization, parse, parse_coerced
from tavola.protocol.shapes import (
    BooleanNode,
    BytesNode,
    IntegerNode,
    ListNode,
    MapNode,
    Node,
    StructureNode,
    TextNode,
    TimeNode,
    describe_shape,
)
from tests.protocol.parsing import fault, parse_request

_SERVED = sorted(OPERATIONS)
_DEEP = 100_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"TableName":',
        b"not json",
        b"{}x",
        b"null",
        b"[]",
        b'"text"',
        b"5",
        b'{"TableName":NaN,"Key":{}}',
        b'{"TableName":Infinity,"Key":{}}',
        b'{"TableName":"\xff","Key":{}}',
        b'{"TableName":"abc","Key":{"a":{"S":"\xff"}}}',
        b'{"TableName":"abc","Key":{},"Unknown":"\xff"}',
        b'{"TableName":"abc","Key":{"a":{"S":"\\ud800"}}}',
        b'{"TableName":"abc","Key":{"a":{"S":"\\ud800x"}}}',
        b'{"TableName":"abc","Key":{"a":{"S":"\xed\xa0\x80"}}}',
        b'{"TableName":"abc","Key":{},}',
        b"\xef\xbb\xbf{}",
        b"[" * _DEEP,
        b'{"a":' * _DEEP + b"1" + b"}" * _DEEP,
        b'{"TableName":"abc","Key":{"a":' + b'{"L":[' * _DEEP + b"]}" * _DEEP + b"}}",
        b'{"TableName":"abc","Key":{"a":' + b'{"M":{"a":' * _DEEP + b"{}" + b"}}" * _DEEP + b"}}",
        b'{"TableName":"abc","Key":{},"Unknown":' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    ],
    ids=range(24),
)
@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "BatchWriteItem"])
def test_what_is_no_json_is_reported_without_a_word(operation: str, body: bytes) -> None:
    """Broken JSON, bad bytes and bottomless nesting are one fault, and never a crash."""
    raised = fault(operation, body)

    assert isinstance(raised, SerializationFault)
    assert raised.message is None


@pytest.mark.parametrize("depth", [40, 200, 450])
def test_a_value_too_deep_for_an_item_is_no_matter_of_types(depth: int) -> None:
    """The decoder takes more levels than an item may have; the values room says so, not the walk."""
    value = b'{"L":[' * depth + b"]}" * depth
    sound = b'{"TableName":"abc","Key":{"a":' + value + b"}}"
    nameless = b'{"TableName":"","Key":{"a":' + value + b"}}"
    crowded = b'{"TransactItems":[' + b",".join([b'{"Get":%s}' % sound] * 101) + b"]}"

    check_serialization("GetItem", sound)

    assert parse("GetItem", sound).table_name == "abc"
    assert parse_coerced("GetItem", sound).table_name == "abc"
    assert isinstance(fault("GetItem", nameless), ValidationFault)
    assert isinstance(fault("TransactGetItems", crowded), ValidationFault)


def test_an_unknown_operation_is_refused_with_a_suggestion() -> None:
    """The message names the operation, and suggests one with a similar name."""
    assert fault("Nonsense", b"{}").message == "DynamoDB has no operation Nonsense"
    assert fault("PutItm", b"{}").message == "DynamoDB has no operation PutItm; did you mean PutItem?"
    with pytest.raises(UnknownOperationFault):
        check_serialization("Nonsense", b"{}")
    with pytest.raises(UnknownOperationFault):
        parse_coerced("Nonsense", b"{}")


def test_unknown_members_are_skipped() -> None:
    """A newer SDK may say more than is understood."""
    request = parse_request("GetItem", {"TableName": "abc", "Key": {"a": {"S": "é"}}, "Newer": {"deep": [1]}})

    assert request.key == {"a": {"S": "é"}}


def test_correcting_a_sound_body_gives_the_parsed_request() -> None:
    """The slow way and the fast way are one way."""
    body = json.dumps(
        {"TableName": "abc", "Item": {"a": {"S": "a"}, "b": {"L": [{"N": "1"}]}}, "ReturnValues": "ALL_OLD"}
    ).encode()

    assert parse_coerced("PutItem", body) == parse("PutItem", body)


_FRAGMENTS = (
    *("abc", "ab", "a;", "", "NONE", "HASH", "RANGE", "S", "ALL", "PROVISIONED", "PAY_PER_REQUEST"),
    *("true", "AA==", "AAA", "é", "arn:aws:dynamodb:eu-west-2:123456789012:table/Orders"),
)
_SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, -1, 2**40, 1.5, *_FRAGMENTS)
_JSON = st.recursive(
    st.sampled_from(_SCALARS) | st.text(max_size=4) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def _near(node: Node, chance: random.Random, depth: int = 0) -> Any:
    """Return what a node wants, mostly, so that every later check is reached too."""
    if depth and chance.random() < 0.08:
        return chance.choice([*_SCALARS, [], {}, [{}], {"a": {}}])
    match node:
        case TextNode():
            return chance.choice(node.words or _FRAGMENTS)
        case IntegerNode():
            return chance.randint(-1, 120)
        case TimeNode():
            return chance.choice([0, 1.5, 1_800_000_000])
        case BooleanNode():
            return chance.random() < 0.5
        case BytesNode():
            return chance.choice(["", "AA==", "/w==", "AAA"])
        case ListNode():
            return [_near(node.element, chance, depth + 1) for _ in range(chance.randint(0, 3))]
        case MapNode():
            keys = chance.sample(_FRAGMENTS, chance.randint(0, 2))
            return {key: _near(node.value, chance, depth + 1) for key in keys}
        case StructureNode():
            wanted = 0.9 if depth < 4 else 0.2
            return {
                member.name: _near(member.node, chance, depth + 1)
                for member in node.members.values()
                if chance.random() < (wanted if member.required else 0.3)
            }


def _outcome(operation: str, body: bytes, wording: MessageStyle = "current") -> Fault | None:
    try:
        parse(operation, body, wording)
    except Fault as raised:
        return raised
    return None


@settings(max_examples=300, deadline=None)
@given(
    operation=st.sampled_from(_SERVED), body=_JSON, wording=st.sampled_from(["current", "classic", "modern"])
)
def test_any_json_is_a_request_or_a_fault(operation: str, body: Any, wording: MessageStyle) -> None:
    """Whatever is asked, only a Fault comes out."""
    _outcome(operation, json.dumps(body).encode(), wording)


@settings(max_examples=100, deadline=None)
@given(operation=st.sampled_from(_SERVED), body=st.binary(max_size=60))
def test_any_bytes_are_a_request_or_a_fault(operation: str, body: bytes) -> None:
    """Noise is no crash."""
    _outcome(operation, body)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_body_near_its_shape_is_a_request_or_a_fault_with_a_text(seed: int) -> None:
    """A fault without a text would mean that the decoder refused what no constraint refuses."""
    chance = random.Random(seed)
    for operation in _SERVED:
        request = OPERATIONS[operation].request
        assert request is not None
        body = json.dumps(_near(describe_shape(request), chance)).encode()

        raised = _outcome(operation, body, chance.choice(["current", "classic", "modern"]))

        if raised is None:
            try:
                assert isinstance(parse_coerced(operation, body), request)
            except SerializationFault as inside:  # an attribute value, which parse leaves as it is
                raised = inside
        if raised is not None:
            assert raised.message is not None, body
            assert json.loads(raised.body())["__type"].endswith(raised.code)
