"""Unions: converters of values that may be of several types.

A value is stored by the converter of its class. The stored value must identify that class: by its DynamoDB type, by being
one of a few choices, or by a field that distinguishes records. A union that cannot be read back is refused when it is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

from tavola.model.converters.containers import word_inside
from tavola.model.converters.converter import Converter, Decode, Encode, show_value, wrong_type_error
from tavola.model.converters.plain import decode_exact, decode_plain, encode_plain
from tavola.model.converters.records import Record, instance_decoder
from tavola.model.converters.scalars import choice_decoder
from tavola.model.errors import ValueNotStorable
from tavola.values import Value

_NUMBERS = {frozenset({"int", "decimal"}): decode_plain, frozenset({"int", "float"}): decode_exact}


def of_union(members: tuple[Converter, ...]) -> Converter:
    """Return the converter of several types, none of them None."""
    word = " | ".join(member.word for member in members)
    if any(member.kind in ("any", "union", "other") for member in members):
        raise ValueNotStorable(
            word, "the members of a union must be distinguishable; remove the member that accepts anything"
        )
    tags = sorted({tag for member in members for tag in member.tags})
    decoders = {tag: _decoder([member for member in members if tag in member.tags]) for tag in tags}
    choices = None
    key_kind = None
    if all(member.choices is not None for member in members):
        choices = tuple(choice for member in members for choice in member.choices or ())
        key_kinds = {member.key_kind for member in members}
        key_kind = key_kinds.pop() if len(key_kinds) == 1 else None
    return Converter(
        _encoder(members),
        _by_tag(decoders),
        frozenset(tags),
        tuple(dict.fromkeys(cls for member in members for cls in member.types)),
        key_kind,
        choices,
        any(member.nullable for member in members),
        kind="union",
        word=word,
    )


def _encoder(members: tuple[Converter, ...]) -> Encode:
    """Return an encoder that chooses by a value's class, and tries the members in order if the class does not decide."""
    by_class: dict[type, list[Encode]] = {}
    for member in members:
        for cls in member.types:
            by_class.setdefault(cls, []).append(member.encode_inside)
    single = {cls: encoders[0] for cls, encoders in by_class.items() if len(encoders) == 1}
    everyone = [member.encode_inside for member in members]
    expected = " or ".join(member.word for member in members)

    def encode_union(value: Any) -> Value:
        encode = single.get(type(value))
        if encode is not None:
            return encode(value)
        for attempt in by_class.get(type(value), everyone):
            try:
                return attempt(value)
            except ValueNotStorable:
                continue
        raise wrong_type_error(value, expected)

    return encode_union


def _by_tag(decoders: dict[str, Decode]) -> Decode:
    def decode_union(value: Value) -> Any:
        for tag in value:
            return decoders.get(tag, decode_plain)(value)
        raise AssertionError("a stored value has exactly one tag")

    return decode_union


def _decoder(members: list[Converter]) -> Decode:
    """Return the decoder of one DynamoDB type, which several members may write."""
    if len(members) == 1:
        return instance_decoder(members[0]) if members[0].kind == "record" else members[0].decode
    if all(member.kind == "record" for member in members):
        return _record_decoder(members)
    numbers = _NUMBERS.get(frozenset(member.kind for member in members))
    if numbers is not None:
        return numbers
    return _choice_decoder(members)


def _choice_decoder(members: list[Converter]) -> Decode:
    """Return the decoder of choices, and at most one open type of the same text or number beside them."""
    choices = [member for member in members if member.kind == "choice"]
    others = [member for member in members if member.kind != "choice"]
    stored: dict[tuple[str, Any], Any] = {}
    for choice in choices:
        twice = stored.keys() & choice.detail.keys()
        if twice:
            _refuse(members, f"both have {show_value(sorted(twice)[0][1])}")
        stored |= choice.detail
    if len(others) > 1 or not choices:
        _refuse(members, "they are stored the same way")
    for other in others:
        # An open type beside choices: these must equal what they are stored as, or text would turn into members.
        if other.kind not in ("text", "int") or not all(
            isinstance(member, other.types) for choice in choices for member in choice.detail.values()
        ):
            _refuse(members, "they are stored the same way")
    return choice_decoder(stored, others[0].decode if others else decode_plain)


def _record_decoder(members: list[Converter]) -> Decode:
    """Return the decoder of records, which a field of literals or the field names distinguish."""
    records: list[Record] = [member.detail for member in members]
    decoders = [instance_decoder(member) for member in members]
    telling = _discriminator(records)
    pick: Callable[[dict[str, Value]], Any]
    if telling is not None:
        chosen = {
            _content(encode_plain(literal)): decoder
            for record, decoder in zip(records, decoders, strict=True)
            for literal in map(_plain, record.literals()[telling])
        }

        def pick(content: dict[str, Value]) -> Any:
            return chosen.get(_content(content.get(telling, {})))

    else:
        by_names = {record.names: decoder for record, decoder in zip(records, decoders, strict=True)}
        if len(by_names) != len(records) or not all(record.has_fixed_names for record in records):
            _refuse(members, 'they have the same fields; add a field such as kind: Literal["a"] to each')

        def pick(content: dict[str, Value]) -> Any:
            return by_names.get(frozenset(content))

    def decode_records(value: Value) -> Any:
        decode = pick(value["M"])
        return decode_plain(value) if decode is None else decode(value)

    return decode_records


def _discriminator(records: list[Record]) -> str | None:
    """Return the field whose literals differ from record to record, None if there is none."""
    literals = [record.literals() for record in records]
    for name in literals[0]:
        if all(name in values for values in literals) and _disjoint(values[name] for values in literals):
            return name
    return None


def _disjoint(groups: Iterable[tuple[Any, ...]]) -> bool:
    sets = [{_plain(value) for value in group} for group in groups]
    return all(left.isdisjoint(right) for left, right in combinations(sets, 2))


def _plain(literal: Any) -> Any:
    return getattr(literal, "value", literal)


def _content(value: Value) -> tuple[str, Any] | None:
    for tag, content in value.items():
        return (tag, content) if isinstance(content, str | bool) else None
    return None


def _refuse(members: list[Converter], why: str) -> None:
    words = " and ".join(word_inside(member) for member in members)
    raise ValueNotStorable(
        " | ".join(word_inside(member) for member in members),
        f"{words} cannot be distinguished when they are read back: {why}",
    )
