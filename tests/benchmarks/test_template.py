"""Templates: the same request from Lua and from Python, at a length that never changes."""

import json
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.template import SEQUENCE_BASE, Draw, Numbers, Template, render_lua
from benchmarks.workload import OPERATIONS, seed_body, seed_draw

DRAW = Draw(low=50, span=50, groups=2, group_items=50, stride=7, first_sequence=5, seed=3)


def test_marks_become_slots() -> None:
    """A mark names a kind and which of the request's items it is for; the rest is text."""
    template = Template.parse('{"a":"<item+0>","b":"<sequence+2>"}')

    assert template.texts == ('{"a":"', '","b":"', '"}')
    assert [(slot.kind, slot.offset) for slot in template.slots] == [("item", 0), ("sequence", 2)]


def test_items_of_one_request_wrap_around_within_their_part() -> None:
    """The items of a request lie a stride apart and never leave the part that the load may touch."""
    template = Template.parse("<item+0> <item+1>")

    assert template.render(DRAW, Numbers(index=47, drawn=0, sequence=5)) == "00000097 00000054"


def test_a_sequence_number_has_no_leading_zero() -> None:
    """A sequence number is sent as a number, and DynamoDB's canonical form has no leading zeros."""
    text = Template.parse("<sequence+0>").render(DRAW, Numbers(0, 0, 5))

    assert text == str(SEQUENCE_BASE + 5)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_request_is_json_of_the_promised_length(operation: object) -> None:
    """Content-Length is worked out once, so every rendering must have that length."""
    chosen = next(each for each in OPERATIONS if each is operation)
    draw = chosen.draw(10_000)

    for numbers in islice(draw.numbers(), 50):
        text = chosen.body.render(draw, numbers)
        assert len(text.encode()) == chosen.body.length
        assert isinstance(json.loads(text), dict)


def test_filling_names_every_item_once() -> None:
    """The table is filled with each item exactly once."""
    draw, body = seed_draw(2000), seed_body()

    keys = [
        put["PutRequest"]["Item"]["pk"]["S"]
        for numbers in draw.in_order(25)
        for put in json.loads(body.render(draw, numbers))["RequestItems"]["tickets"]
    ]

    assert sorted(keys) == [f"TICKET#{number:08d}" for number in range(2000)]


@pytest.mark.skipif(shutil.which("luajit") is None, reason="no Lua on this machine to run the script with")
def test_lua_sends_what_python_would(tmp_path: Path) -> None:
    """For the same draw of chance, the Lua script and Python render the same bytes."""
    template = Template.parse(
        '<item+0>,<group_a+0>,<group_b+0>,<item+3>,<group_b+3>,<drawn_a+1>,<drawn_b+1>,<sequence+0>\r\n"\\'
    )
    script = tmp_path / "load.lua"
    chance = "local n = 0; math.random = function(low, high) n = n + 1; return n == 1 and 41 or 1 end\n"
    script.write_text(chance + render_lua(template, DRAW) + "\nio.write(request())\n")

    said = subprocess.run(("luajit", str(script)), capture_output=True, check=True).stdout.decode()

    assert said == template.render(DRAW, Numbers(index=41, drawn=1, sequence=5))
