"""Containers: converters of lists, tuples, sets and dicts, from those of their members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tavola.model.converters.converter import (
    VALUE,
    Converter,
    Decode,
    Encode,
    find_unencodable,
    show_value,
    storage_error,
    with_place,
    wrong_type_error,
)
from tavola.model.converters.plain import SET_ORDER, decode_plain
from tavola.model.errors import ValueNotStorable
from tavola.values import Value

_L = frozenset({"L"})
_M = frozenset({"M"})
_TEXTS = (str, bytes, bytearray)


def of_list(member: Converter, kind: type = list) -> Converter:
    """Return the converter of a list, tuple or other sequence with members of one type."""
    encode_member = member.encode_inside
    as_text = member.kind == "text" and not member.nullable

    def encode_list(value: Any) -> Value:
        if type(value) is not kind and not _is_sequence(value):
            raise wrong_type_error(value, f"a {kind.__name__}")
        try:
            if as_text:  # most lists are of text, and a call for each costs more than the rest
                return {"L": [{"S": text} if type(text) is str else encode_member(text) for text in value]}
            return {"L": [encode_member(element) for element in value]}
        except ValueNotStorable as error:
            raise find_unencodable(encode_member, _with_places(value)) from error

    word = f"list[{word_inside(member)}]"
    decode_list = _list_decoder(member.decode_inside, as_text)
    return Converter(
        encode_list, decode_list, _L, (kind,), kind="list", word=word, inside=lambda step: member
    )


def _list_decoder(decode_member: Decode, as_text: bool) -> Decode:
    def decode_list(value: Value) -> Any:
        try:
            content = value["L"]
        except KeyError:
            return decode_plain(value)
        if as_text:
            try:
                return [element["S"] for element in content]
            except KeyError:
                pass
        return [decode_member(element) for element in content]

    return decode_list


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, _TEXTS)


def _with_places(value: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"[{place}]", element) for place, element in enumerate(value)]


def of_tuple(members: tuple[Converter, ...]) -> Converter:
    """Return the converter of a tuple with a type for each position."""
    encoders = tuple(member.encode_inside for member in members)
    decoders = tuple(member.decode_inside for member in members)
    count = len(members)

    def encode_tuple(value: Any) -> Value:
        if not isinstance(value, tuple | list):
            raise wrong_type_error(value, f"a tuple of {count}")
        if len(value) != count:
            raise storage_error(f"{show_value(value)} has {len(value)} members; give {count}")
        written = []
        for place, (encode, element) in enumerate(zip(encoders, value, strict=True)):
            try:
                written.append(encode(element))
            except ValueNotStorable as error:
                raise with_place(error, f"{VALUE}[{place}]") from error
        return {"L": written}

    def decode_tuple(value: Value) -> Any:
        content = value.get("L")
        if content is None or len(content) != count:
            return decode_plain(value)
        return [decode(element) for decode, element in zip(decoders, content, strict=True)]

    def inside(step: str | int | None) -> Converter | None:
        return members[step] if isinstance(step, int) and step < count else None

    word = f"tuple[{', '.join(map(word_inside, members))}]"
    return Converter(encode_tuple, decode_tuple, _L, (tuple,), kind="list", word=word, inside=inside)


def of_set(member: Converter, kind: type[set[Any]] | type[frozenset[Any]]) -> Converter:
    """Return the converter of a set; DynamoDB has sets of text, numbers and bytes."""
    if member.nullable or len(member.tags) != 1 or not member.tags <= {"S", "N", "B"}:
        raise ValueNotStorable(
            f"{kind.__name__}[{word_inside(member)}]",
            "DynamoDB sets contain only strings, only numbers or only binary values, and no None; "
            "use list[…]",
        )
    (scalar,) = member.tags
    tag = f"{scalar}S"
    encode_member, decode_member = member.encode, member.decode
    bare = member.kind == "text"

    def encode_set(value: Any) -> Value:
        if type(value) is not kind and not isinstance(value, AbstractSet):
            raise wrong_type_error(value, f"a {kind.__name__}")
        if not value:
            return {}
        return {tag: sorted({encode_member(element)[scalar] for element in value}, key=SET_ORDER.get(scalar))}

    def decode_set(value: Value) -> Any:
        try:
            content = value[tag]
        except KeyError:
            return decode_plain(value)
        return kind(content) if bare else kind(decode_member({scalar: element}) for element in content)

    return Converter(
        encode_set,
        decode_set,
        frozenset({tag}),
        (kind,),
        absent=kind,
        kind="set",
        word=f"set[{word_inside(member)}]",
        inside=lambda step: member,
    )


def of_map(key: Converter, member: Converter, kind: type = dict) -> Converter:
    """Return the converter of a dict; keys that are not text are stored as text."""
    if key.nullable or len(key.tags) != 1 or not key.tags <= {"S", "N"}:
        raise ValueNotStorable(
            f"dict[{word_inside(key)}, {word_inside(member)}]",
            "DynamoDB map keys are strings; use keys that are strings, numbers, dates, UUIDs or enums",
        )
    (scalar,) = key.tags
    encode_member, decode_member = member.encode_inside, member.decode_inside
    encode_name = _name_encoder(key, scalar)
    decode_name = None if key.kind == "text" else _name_decoder(key.decode, scalar)
    plain_names = key.kind == "text"

    def encode_map(value: Any) -> Value:
        if type(value) is not kind and not _is_mapping(value):
            raise wrong_type_error(value, f"a {kind.__name__}")
        written = {}
        for name, element in value.items():
            try:
                attribute = name if plain_names and type(name) is str and name else encode_name(name)
                written[attribute] = encode_member(element)
            except ValueNotStorable as error:
                raise with_place(error, f"{VALUE}[{name!r}]") from error
        if len(written) != len(value):
            raise storage_error(f"{show_value(value)} has two keys that are stored as one text")
        return {"M": written}

    def decode_map(value: Value) -> Any:
        try:
            content = value["M"]
        except KeyError:
            return decode_plain(value)
        if decode_name is None:
            return {name: decode_member(element) for name, element in content.items()}
        return {decode_name(name): decode_member(element) for name, element in content.items()}

    word = f"map[{word_inside(member)}]" if key.kind == "text" else f"map[{key.word}, {word_inside(member)}]"
    return Converter(encode_map, decode_map, _M, (kind,), kind="map", word=word, inside=lambda step: member)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _name_encoder(key: Converter, scalar: str) -> Encode:
    def encode_name(name: Any) -> Any:
        text = key.encode(name)[scalar]
        if not text:
            raise storage_error("the key is an empty string, which DynamoDB rejects; use a non-empty key")
        return text

    return encode_name


def _name_decoder(decode: Decode, scalar: str) -> Callable[[str], Any]:
    return lambda name: decode({scalar: name})


def word_inside(member: Converter) -> str:
    """Return a member's type in words, with `null` if it may be None."""
    return f"{member.word} | null" if member.nullable and member.kind not in ("any", "null") else member.word
