"""Large texts are decoded in segments with the result of decoding them whole."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from tavola.values import (
    ATTRIBUTES,
    Item,
    Steps,
    ValueMalformed,
    ValueRefused,
    admit_container,
    admit_item,
    decode_item,
    decode_item_in_steps,
    encode_item,
    find_large_containers,
    release_in_steps,
    segments,
)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 100)
    monkeypatch.setattr(segments, "LARGE_ITEM_BYTES", 100)


def _run(steps: Steps[Any]) -> tuple[Any, int]:
    """Return the result of steps and the number of pauses."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value, pauses
        pauses += 1


def _admit(text: bytes) -> Any:
    (root,), _ = _run(find_large_containers(text, ATTRIBUTES))
    assert root.path == ()
    return _run(admit_container(text, root))[0]


def _value(random_: random.Random, levels: int) -> Any:
    kind = random_.random()
    if levels == 0 or kind < 0.3:
        scalars: list[Any] = [
            {"S": random_.choice(["", "x", 'é"\\,]}[{', "y" * random_.randint(0, 300)])},
            {"N": random_.choice(["1.50", "-7", "1e3"])},
            {"BOOL": True},
            {"NULL": True},
            {"B": "YQ=="},
            {"SS": [f"{number}" for number in range(random_.randint(1, 60))]},
            {"NS": ["1", "2.0"]},
        ]
        return random_.choice(scalars)
    if kind < 0.65:
        return {"L": [_value(random_, levels - 1) for _ in range(random_.randint(0, 12))]}
    return {"M": {f'k{number}"é': _value(random_, levels - 1) for number in range(random_.randint(0, 12))}}


def _texts(count: int) -> Iterator[bytes]:
    random_ = random.Random(16)
    for _ in range(count):
        item = {f"a{number}": _value(random_, 3) for number in range(random_.randint(1, 5))}
        separators = random_.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")])
        text = json.dumps(item, ensure_ascii=random_.random() < 0.5, separators=separators).encode()
        if 400 < len(text) < 20_000:
            yield text


def test_segments_are_admitted_as_the_whole() -> None:
    """Content, size and text are those of the ordinary way, for nested values, strings with brackets, and any spacing."""
    count = 0
    for text in _texts(60):
        whole = decode_item(text)
        size = admit_item(whole)

        admitted = _admit(text)

        assert admitted == whole
        assert admit_item(admitted) == size
        assert admitted.data == encode_item(whole)
        count += 1
    assert count > 20


def test_a_stored_item_is_decoded_in_steps() -> None:
    """The item is that of the ordinary decoder, and there are pauses."""
    for text in _texts(20):
        stored = encode_item(decode_item(text))

        item, pauses = _run(decode_item_in_steps(stored))

        assert item == decode_item(stored)
        assert pauses


def test_what_does_not_decode_is_refused_in_segments_too() -> None:
    """A text with one byte changed, dropped or doubled is refused, or read as the ordinary decoder reads it."""
    random_ = random.Random(7)
    refused = 0
    for text in _texts(20):
        for _ in range(15):
            at = random_.randrange(1, len(text))
            new = random_.choice([b"", b",", b'"', b"}", b"]", b"{", b"[", b"\\", text[at : at + 1] * 2])
            changed = text[:at] + new + text[at + 1 :]
            refused += _is_refused(changed)
    assert refused > 100


def _is_refused(text: bytes) -> bool:
    try:
        whole = decode_item(text)
        admit_item(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueMalformed, ValueRefused):
        with pytest.raises((ValueMalformed, ValueRefused)):
            _admit(text)
        return True
    # Segments are stricter with the same name twice, and with an unknown tag beside another.
    with suppress(ValueMalformed, ValueRefused):
        assert _admit(text) == whole
    return False


def test_a_wrong_cut_never_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan that takes commas in strings for separators, a planted fault, leads to a refusal and not to another item."""
    blind = re.compile(rb'(?P<run>(?!))|"[^",]*+(?P<end>[",])|[{}\[\],]').search
    monkeypatch.setattr(segments, "_find_run_or_token", blind)
    monkeypatch.setattr(segments, "_find_token", blind)
    items: list[Item] = [{"l": {"L": [{"S": text}] * 50}} for text in ("a,b", "}],[{", ",,")]

    for item in items:
        with pytest.raises((ValueMalformed, ValueRefused)):
            _admit(encode_item(item))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":{"L":[' + b'{"S":"x"},' * 50 + b"]}}",
        b'{"a":{"L":[' + b'{"S":"x"},' * 50 + b',{"S":"x"}]}}',
        b'{"a":{"L":[' + b'{"S":"x"},' * 50 + b'{"S":"x"}}]}',
        b'{"a":{"L":[' + b'{"S":"x"},' * 50,
        b'{"a":{"S":"' + b'\\"' * 200,
        b"{" * 400,
        b'{"a":{"L":[' + b'{"S":"x"},' * 50 + b'{"S":"x"}]}} x',
    ],
)
def test_malformed_texts_are_refused(text: bytes) -> None:
    """A missing member, bracket or quote is found in the scan or when a part is decoded."""
    with pytest.raises((ValueMalformed, ValueRefused)):
        _admit(text)


def test_a_name_twice_is_refused() -> None:
    """Where an ordinary text counts the last one, a large one is refused: its parts are admitted one by one."""
    members = b",".join(b'"%d":{"S":"x"}' % number for number in range(50))

    with pytest.raises(ValueMalformed, match="twice"):
        _admit(b"{%b,%b}" % (members, members))


def test_the_limits_of_values_hold_in_segments() -> None:
    """Nesting beyond the limit, duplicates in a set and empty names are refused, wherever the text was cut."""
    deep: Any = {"S": "x" * 120}
    for _ in range(32):
        deep = {"L": [deep, {"S": "y" * 120}]}
    for item in ({"a": deep}, {"a": {"SS": ["x" * 50] * 9}}, {"a": {"S": "x" * 300}, "": {"S": ""}}):
        with pytest.raises(ValueRefused):
            _admit(encode_item(item))


def test_releasing_empties_large_containers_in_steps() -> None:
    """A list of 20,000 is emptied with pauses, in a map as well."""
    content: dict[str, Any] = {"a": {"L": [{"S": "x"}] * 20_000}, "b": {"S": "x"}}
    elements = content["a"]["L"]

    _, pauses = _run(release_in_steps(content))

    assert not content
    assert not elements
    assert pauses >= 10
