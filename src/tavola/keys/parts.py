"""Parts: each kind of field with its format specifications, and the encoding that each of them selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from tavola.keys.encodings import (
    DATE_FORMS,
    DATETIME_FORMS,
    FLOATING,
    bool_encoder,
    choice_encoder,
    date_decoder,
    date_encoder,
    datetime_decoder,
    datetime_encoder,
    fixed_decoder,
    fixed_encoder,
    floating_decoder,
    floating_encoder,
    plain_choices,
    raw_int,
    text_decoder,
    text_encoder,
    text_pattern,
    text_shape,
    uuid_decoder,
    uuid_encoder,
    whole_decoder,
    whole_encoder,
    whole_pattern,
    whole_shapes,
)
from tavola.keys.errors import TemplateRefused
from tavola.keys.part import DIGITS, Mode, Part, Shape, character_set, digit_shape, literal_shape
from tavola.limits import NUMBER_DIGITS_MAX

DELIMITER = "#"
KINDS = ("text", "int", "decimal", "datetime", "date", "bool", "enum", "uuid")

_WHOLE_DIGITS = 19  # as many as the largest 64-bit number has
_WIDTH = re.compile("[0-9]{1,3}")
_POINT = re.compile("([0-9]{1,2})(?:[.]([0-9]{1,2}))?")
_MODES: dict[str, Mode] = {"refuse": "refuse", "raw": "raw"}
_UUID_FORM = "00000000-0000-0000-0000-000000000000"


def part_for(kind: str, spec: str = "", choices: tuple[Any, ...] | None = None) -> Part:
    """Return how a field of this kind is written; raise `TemplateRefused` for a spec that the kind has not.

    A text is written as it is where others follow it; `placed` gives the one for another place.
    """
    # 1, True and 1.0 are one to a cache, and are three things here.
    return _part_for(kind, spec, choices, None if choices is None else tuple(map(type, choices)))


@lru_cache(maxsize=4096)
def part_at(part: Part, delimiter: str, final: bool) -> Part:
    """Return the part as it is written in a place: a text in the last one is not escaped."""
    if part.kind not in ("text", "enum") or not part.mode:
        return part
    encode = text_encoder(part.mode, delimiter, final)
    decode: Callable[[str], Any] = text_decoder(part.mode, delimiter, final)
    if part.kind == "text":
        return replace(
            part,
            encode=encode,
            decode=decode,
            pattern=text_pattern(part.mode, delimiter, final),
            shapes=(text_shape(part.mode, delimiter, final),),
        )
    assert part.choices is not None, "a string part that is not plain text has choices"
    return _choice_text_part(part.spec, part.choices, part.mode, encode)


@lru_cache(maxsize=4096)
def _part_for(kind: str, spec: str, choices: tuple[Any, ...] | None, types: tuple[type, ...] | None) -> Part:
    if kind not in KINDS:
        raise TemplateRefused(f"unknown kind of key part {kind!r}", f"use one of {', '.join(KINDS)}")
    words = [word.strip() for word in spec.split(",")] if spec.strip() else []
    if len(set(words)) < len(words):
        raise TemplateRefused(f"{spec!r} says the same twice", "say it once")
    descending = "desc" in words
    rest = [word for word in words if word != "desc"]
    if choices is not None and kind != "bool":
        return _choice_part(spec, rest, descending, choices)
    if kind == "enum":
        raise TemplateRefused("a part of choices needs its choices", "give them as a tuple, in their order")
    return _BUILDERS[kind](spec, rest, descending)


def _text_part(spec: str, words: list[str], descending: bool) -> Part:
    mode = _mode("text", words, descending)
    return Part(
        "text",
        spec,
        text_encoder(mode, DELIMITER, final=False),
        text_decoder(mode, DELIMITER, final=False),
        text_pattern(mode, DELIMITER, final=False),
        (text_shape(mode, DELIMITER, final=False),),
        closed=False,
        mode=mode,
    )


def _mode(kind: str, words: list[str], descending: bool) -> Mode:
    if descending:
        what = "rank it: {field:rank,desc}" if kind == "enum" else "add a number or a time that descends"
        raise TemplateRefused(
            "text cannot be encoded in descending order", f"read the query newest first instead, or {what}"
        )
    if not words:
        return "encode"
    word = _single_word(words, kind, (*_MODES, *(("rank",) if kind == "enum" else ())))
    return _MODES[word]


def _int_part(spec: str, words: list[str], descending: bool) -> Part:
    if words == ["raw"] and not descending:
        return Part(
            "int",
            spec,
            raw_int,
            int,
            "-?[0-9]+",
            (((character_set("-" + DIGITS), "any"),),),
            ordered=False,
            closed=False,
            mode="raw",
        )
    width = _WHOLE_DIGITS
    if words:
        word = _single_word(words, "int", ("a width such as 06", "desc", "raw"), _WIDTH)
        width = _width(int(word))
    return Part(
        "int",
        spec,
        whole_encoder(width, descending),
        whole_decoder(width, descending),
        whole_pattern(width, descending),
        whole_shapes("0" * width, descending),
        descending=descending,
        least="0" if descending else "-",
        most="~" if descending else "9",
    )


def _decimal_part(spec: str, words: list[str], descending: bool) -> Part:
    if not words:
        some: Shape = (*digit_shape("0000"), (character_set(DIGITS), "any"))
        return Part(
            "decimal",
            spec,
            floating_encoder(descending),
            floating_decoder(descending),
            FLOATING,
            (
                literal_shape("0"),
                literal_shape("1") + some + literal_shape("."),
                literal_shape("-") + some + literal_shape("~"),
            ),
            descending=descending,
            least="-",
            most="1",
        )
    word = _single_word(words, "decimal", ("digits such as 5.2", "desc"), _POINT)
    match = _POINT.fullmatch(word)
    assert match is not None, "the word was matched a line above"
    integer_digits, fraction = int(match[1]), int(match[2] or "0")
    _width(integer_digits + fraction)
    sign = "~" if descending else "-"
    form = "0" * integer_digits + ("." + "0" * fraction if fraction else "")
    return Part(
        "decimal",
        spec,
        fixed_encoder(integer_digits, fraction, descending),
        fixed_decoder(integer_digits, fraction, descending),
        f"{sign}?[0-9]{{{integer_digits}}}" + (f"[.][0-9]{{{fraction}}}" if fraction else ""),
        whole_shapes(form, descending),
        descending=descending,
        least="." if integer_digits == 0 and descending else "0" if descending else "-",
        most="~" if descending else "9",
    )


def _datetime_part(spec: str, words: list[str], descending: bool) -> Part:
    grain = _single_word(words, "datetime", (*DATETIME_FORMS, "desc")) if words else "us"
    form = DATETIME_FORMS[grain]
    return _date_like_part(
        "datetime",
        spec,
        form,
        list(DATETIME_FORMS).index(grain),
        descending,
        (datetime_encoder(grain, descending), datetime_decoder(grain, descending)),
    )


def _date_part(spec: str, words: list[str], descending: bool) -> Part:
    grain = _single_word(words, "date", (*DATE_FORMS, "desc")) if words else "day"
    return _date_like_part(
        "date",
        spec,
        DATE_FORMS[grain],
        list(DATE_FORMS).index(grain),
        descending,
        (date_encoder(grain, descending), date_decoder(grain, descending)),
    )


def _date_like_part(
    kind: str,
    spec: str,
    form: str,
    grain: int,
    descending: bool,
    ways: tuple[Callable[[Any], str], Callable[[str], Any]],
) -> Part:
    return Part(
        kind,
        spec,
        *ways,
        form.replace("0", "[0-9]").replace(".", "[.]"),
        (digit_shape(form),),
        descending=descending,
        fixed_width=len(form),
        grain=grain,
        least="0",
        most="9",
    )


def _bool_part(spec: str, words: list[str], descending: bool) -> Part:
    if words:
        _single_word(words, "bool", ("desc",))
    return Part(
        "bool",
        spec,
        bool_encoder(descending),
        lambda text: (text == "1") is not descending,
        "[01]",
        (((character_set("01"), "one"),),),
        descending=descending,
        fixed_width=1,
        least="0",
        most="1",
    )


def _uuid_part(spec: str, words: list[str], descending: bool) -> Part:
    if words:
        _single_word(words, "uuid", ("desc",))
    return Part(
        "uuid",
        spec,
        uuid_encoder(descending),
        uuid_decoder(descending),
        _UUID_FORM.replace("0", "[0-9a-f]"),
        (tuple((character_set("-" if sign == "-" else DIGITS + "abcdef"), "one") for sign in _UUID_FORM),),
        descending=descending,
        fixed_width=len(_UUID_FORM),
        least="0",
        most="f",
    )


def _choice_part(spec: str, words: list[str], descending: bool, choices: tuple[Any, ...]) -> Part:
    plain = plain_choices(choices)
    if len({(type(value), value) for value in plain}) < len(plain) or not plain:
        raise TemplateRefused(f"the choices {choices!r} are not distinct", "list each once")
    if "rank" in words:
        return _choice_rank_part(spec, [word for word in words if word != "rank"], descending, choices)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in plain):
        return _limit_to_choices(_int_part(spec, words, descending), choices)
    if not all(isinstance(value, str) for value in plain):
        raise TemplateRefused(
            f"the choices {choices!r} are not all strings", "sort them by rank: {field:rank}"
        )
    mode = _mode("enum", words, descending)
    return _choice_text_part(spec, choices, mode, text_encoder(mode, DELIMITER, final=False))


def _choice_text_part(
    spec: str, choices: tuple[Any, ...], mode: Mode, write: Callable[[object], str]
) -> Part:
    """Return choices written as their texts."""
    texts = [write(value) for value in plain_choices(choices)]
    return Part(
        "enum",
        spec,
        choice_encoder(choices, texts),
        dict(zip(texts, choices, strict=True)).__getitem__,
        # The longest first, for the first that fits is taken.
        "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)),
        tuple(literal_shape(text) for text in texts),
        choices=choices,
        closed=False,
        mode=mode,
    )


def _choice_rank_part(spec: str, words: list[str], descending: bool, choices: tuple[Any, ...]) -> Part:
    """Return choices written as their place in the declaration."""
    needed = len(str(len(choices) - 1))
    width = (
        _width(int(_single_word(words, "enum", ("rank", "a width such as 02", "desc"), _WIDTH)))
        if words
        else needed
    )
    if width < needed:
        raise TemplateRefused(f"{len(choices)} choices need {needed} digits, not {width}", f"say 0{needed}")
    write = whole_encoder(width, descending)
    texts = [write(rank) for rank in range(len(choices))]
    return Part(
        "enum",
        spec,
        choice_encoder(choices, texts),
        dict(zip(texts, choices, strict=True)).__getitem__,
        f"[0-9]{{{width}}}",
        tuple(literal_shape(text) for text in texts),
        choices=choices,
        descending=descending,
        fixed_width=width,
        least="0",
        most="9",
    )


def _limit_to_choices(part: Part, choices: tuple[Any, ...]) -> Part:
    """Return a part of whole numbers that takes the choices alone, and gives them back."""
    encode = choice_encoder(choices, [part.encode(value) for value in plain_choices(choices)])
    members = dict(zip(plain_choices(choices), choices, strict=True))
    decode = part.decode
    return replace(part, encode=encode, decode=lambda text: members[decode(text)], choices=choices)


def _single_word(
    words: list[str], kind: str, known: Sequence[str], shape: re.Pattern[str] | None = None
) -> str:
    """Return the one word there may be besides `desc`."""
    remedy = f"a field of kind {kind} accepts {', '.join(known)}, or no format"
    for word in words:
        if word not in known and not (shape is not None and shape.fullmatch(word)):
            if word in ("lower", "upper"):
                remedy = f"case is never changed: store the field in the case that the key needs; {remedy}"
            raise TemplateRefused(f"{word!r} is not a valid format", remedy)
    if len(words) > 1:
        raise TemplateRefused(f"{','.join(words)!r} has two formats that exclude each other", "use one")
    return words[0]


def _width(width: int) -> int:
    if not 1 <= width <= NUMBER_DIGITS_MAX:
        raise TemplateRefused(f"{width} is not a width", f"use 1 to {NUMBER_DIGITS_MAX} digits")
    return width


_BUILDERS: dict[str, Callable[[str, list[str], bool], Part]] = {
    "text": _text_part,
    "int": _int_part,
    "decimal": _decimal_part,
    "datetime": _datetime_part,
    "date": _date_part,
    "bool": _bool_part,
    "uuid": _uuid_part,
}
