"""Templates: parse, bind, render, read back, bound, and whether two could make one key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola.keys import (
    BoundTemplate,
    KeyPartMissing,
    KeyPartRefused,
    KeySpan,
    Placeholder,
    Template,
    TemplateRefused,
    part_for,
)

MOMENT = datetime(2026, 11, 16, 3, 54, 10, tzinfo=UTC)
PARTS = {
    "id": part_for("text"),
    "name": part_for("text"),
    "status": part_for("enum", choices=("open", "closed")),
    "at": part_for("datetime"),
    "n": part_for("int"),
    "score": part_for("decimal"),
    "flag": part_for("bool"),
    "uid": part_for("uuid"),
}
LAST = "\U0010ffff"


def bound(text: str, delimiter: str = "#") -> BoundTemplate:
    return Template.parse(text, delimiter).bind(PARTS)


def test_a_template_is_literals_and_fields() -> None:
    """Braces hold a field and its spec; doubled they are braces; a field counts once."""
    template = Template.parse("A{{#{id}#{n:06,desc}{{}}{id}")

    assert template.segments == (
        "A{#",
        Placeholder("id", "", 4),
        "#",
        Placeholder("n", "06,desc", 9),
        "{}",
        Placeholder("id", "", 24),
    )
    assert template.fields == ("id", "n")
    assert Template.parse("A{{#{id}#{n:06,desc}{{}}{id}") is template


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        (
            "TICKET#{id",
            7,
            r"key template 'TICKET#\{id', character 8: unmatched \{; close it with \}, or write",
        ),
        ("TICKET#{id{n}", 7, r"unmatched \{"),
        ("TICKET#id}", 9, r"key template 'TICKET#id\}', character 10: unmatched \}; write \}\} for a brace"),
        ("{}", 0, "a field has no name"),
        ("{:06}", 0, "a field has no name"),
        ("{a b}", 0, r"key template '\{a b\}', character 1: 'a b' is not a field name; write \{field\} or"),
        ("{a.b}", 0, r"key template '\{a\.b\}', character 1: 'a\.b' is not a field name; write \{field\} or"),
        ("", None, "a key template cannot be empty; add a literal or a field"),
        ("a\U0010ffff", None, r"cannot contain U\+10FFFF"),
        ("a\ud800", None, "surrogate"),
    ],
)
def test_a_text_that_is_no_template_is_refused(text: str, place: int | None, sentence: str) -> None:
    """The refusal names the template and the place, and says what to write."""
    with pytest.raises(TemplateRefused, match=sentence) as caught:
        Template.parse(text)

    assert caught.value.place == place
    assert caught.value.template == text


@pytest.mark.parametrize("delimiter", ["", "##", "a", " ", "{", "}", "é", "0"])
def test_a_delimiter_is_one_punctuation_sign(delimiter: str) -> None:
    """Letters, spaces, braces and more than one character are no delimiter."""
    with pytest.raises(TemplateRefused, match="is not a delimiter"):
        Template.parse("{id}", delimiter)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("X#{other}", r"key template 'X#\{other\}', character 3: unknown field 'other'; name one of id,"),
        ("X#{n:week}", "character 3: 'week' is not a valid format"),
        ("{id}{name}", r"key template '\{id\}\{name\}', character 5: \{id\} has variable width and \{name\}"),
        ("{id}{n}", "follows it directly"),
        ("{status}{n}", "follows it directly"),
        ("{id:raw}{n}", "follows it directly"),
        ("{n:raw}{at}", "follows it directly"),
        (
            "{id}-{name}",
            r"key template '\{id\}-\{name\}', character 1: \{id\} is of any width and '-' follows",
        ),
        ("{id}x#", "follows it"),
        ("{id:refuse}-{name}", "follows it"),
        ("{at:desc,lower}", "case is never changed"),
        ("{id:desc}", r"key template '\{id:desc\}', character 1: text cannot be encoded in descending"),
    ],
)
def test_a_template_that_could_not_be_read_is_refused(text: str, sentence: str) -> None:
    """What cannot be distinguished, or is said wrongly, is refused when fields get their kinds."""
    with pytest.raises(TemplateRefused, match=sentence):
        bound(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("TICKET#{status}#{at}#{id}", "TICKET#open#2026-11-16T03:54:10.000000Z#a#b"),
        ("TICKET#{status}#{at:desc}", "TICKET#open#7973-88-83T96:45:89.999999Z"),
        ("{id}#{name}", "a$23b#c"),
        ("{id:raw}-{name:raw}", "a#b-c"),
        ("{n:04}{at:s}{id}", "00072026-11-16T03:54:10Za#b"),
        ("{n:raw}#{id}", "7#a#b"),
        ("{{{n:02}}}", "{07}"),
        ("100%#{n:02}%s", "100%#07%s"),
        ("{at:day}#{id}#{at}", "2026-11-16#a$23b#2026-11-16T03:54:10.000000Z"),
        ("METADATA", "METADATA"),
    ],
)
def test_a_key_is_made_and_read(text: str, key: str) -> None:
    """Values render to the key that the template shows, and the key parses to the values."""
    values: dict[str, Any] = {"id": "a#b", "name": "c", "status": "open", "at": MOMENT, "n": 7}
    template = bound(text)

    assert template.render(values) == key
    assert template.read(key) == {name: values[name] for name in template.fields}


def test_parts_with_the_delimiter_never_merge() -> None:
    """Pitfall 19: `a#b` with `c` and `a` with `b#c` are two keys, and each is read as what it was."""
    template = bound("{id}#{name}")
    one, other = {"id": "a#b", "name": "c"}, {"id": "a", "name": "b#c"}

    assert template.render(one) != template.render(other)
    assert template.read(template.render(one)) == one
    assert template.read(template.render(other)) == other
    with pytest.raises(KeyPartRefused, match=r"id in the key '\{id:refuse\}#\{name\}': 'a#b' holds '#'"):
        bound("{id:refuse}#{name}").render(one)


def test_version_10_comes_after_version_9() -> None:
    """Pitfall 20: numbers sort as numbers, and so do scores."""
    versions = [bound("VERSION#{n}").render({"n": n}) for n in (1, 2, 9, 10, 15, 100)]
    scores = [
        bound("S#{score}").render({"score": part_for("decimal", "2.1").decode(t)})
        for t in ("00.7", "00.9", "01.0", "11.0")
    ]

    assert versions == sorted(versions)
    assert scores == sorted(scores)


@pytest.mark.parametrize(
    ("delimiter", "key"),
    [("#", "a$23b#x"), ("|", "}61}7C}62|x"), ("/", "a023b/x"), ("!", "a#b!x"), ("~", "\x7f61\x7f23\x7f62~x")],
)
def test_another_delimiter_escapes_what_sorts_up_to_it(delimiter: str, key: str) -> None:
    """All up to the character after the delimiter is escaped, so that the order of tuples holds."""
    template = bound(f"{{id}}{delimiter}{{name}}", delimiter)
    value = "a|b" if delimiter == "|" else "a#b"

    assert template.render({"id": value, "name": "x"}) == key
    assert template.read(key) == {"id": value, "name": "x"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("V#{n:06}", "V#-999999"),  # minus zero
        ("V#{n:06}", "V#9"),
        ("V#{n:06}", "V#٠٠٠٠٠٩"),
        ("V#{n:06}", "V#000009\n"),
        ("V#{n:raw}", "V#09"),
        ("V#{n:raw}", "V#-0"),
        ("V#{score}", "V#150070."),
        ("V#{score}", "V#19997."),
        ("V#{score:2.2}", "V#-99.99"),
        ("V#{at}", "V#2026-13-16T03:54:10.000000Z"),
        ("V#{at:desc}", "V#2026-11-16T03:54:10.000000Z"),
        ("V#{at:day}#{at}", "V#2026-11-17#2026-11-16T03:54:10.000000Z"),
        ("V#{id}#{id}", "V#a#b"),
        ("{id}#", "a b#"),
        ("{id}#", "a$41#"),
        ("{id}#", "a$2#"),
        ("{id}#", "a$2e#"),
        ("{id:refuse}#", "a$23#"),
        ("{status}", "opened"),
        ("{status}", "OPEN"),
        ("{flag}", "2"),
        ("{uid}", "0123ABCD-0000-4000-8000-00000000000F"),
        ("METADATA", "METADATA#"),
    ],
)
def test_a_string_that_no_values_render_to_is_not_parsed(text: str, key: str) -> None:
    """A string that the template would render differently, or never, is not one of its keys."""
    assert bound(text).read(key) is None


def test_of_a_cut_field_the_finest_is_read() -> None:
    """A field that occurs twice is read where it is whole, otherwise where it is truncated least."""
    template = bound("{at:month}#{at:hour}")

    assert template.read(template.render({"at": MOMENT})) == {"at": MOMENT.replace(minute=0, second=0)}
    assert template.lossy_fields == {"at"}
    assert bound("{at:month}#{at}").lossy_fields == frozenset()


@pytest.mark.parametrize("values", [{"id": "x"}, {"id": "x", "n": None}])
def test_a_field_without_value_is_missing(values: dict[str, Any]) -> None:
    """Absent and None are both missing, and the error has the field."""
    with pytest.raises(KeyPartMissing, match="needs n, which is absent or None; give n a value") as caught:
        bound("A#{id}#{n}").render(values)

    assert caught.value.field == "n"
    assert caught.value.template == "A#{id}#{n}"


def test_a_refused_value_is_reported_with_its_field() -> None:
    """The error names field and template, and has both and the value."""
    with pytest.raises(KeyPartRefused, match=r"n in the key 'A#\{n:02\}': 100 needs more") as caught:
        bound("A#{n:02}").render({"n": 100})

    assert (caught.value.field, caught.value.template, caught.value.value) == ("n", "A#{n:02}", 100)


def test_a_key_is_never_empty() -> None:
    """An empty text has a place beside others, and is refused where it would be the whole key."""
    assert bound("A#{id}").render({"id": ""}) == "A#"
    assert bound("{id}#{name}").render({"id": "", "name": ""}) == "#"
    with pytest.raises(KeyPartRefused, match="a key cannot be empty"):
        bound("{id}").render({"id": ""})


def test_a_prefix_ends_where_the_next_field_begins() -> None:
    """Literals around the first fields are in the prefix, so that no longer value has it too."""
    template = bound("T#{status}#AT#{at}#{id}")
    values = {"status": "open", "at": MOMENT, "id": "x"}

    assert template.literal_prefix == "T#"
    assert template.prefix({}, 0) == "T#"
    assert template.prefix(values, 1) == "T#open#AT#"
    assert template.prefix(values, 2) == "T#open#AT#2026-11-16T03:54:10.000000Z#"
    assert template.prefix(values, 3) == template.render(values)
    assert bound("METADATA").prefix({}, 0) == bound("METADATA").constant == "METADATA"
    with pytest.raises(KeyPartMissing, match="needs status"):
        template.prefix({}, 1)


@pytest.mark.parametrize(
    ("text", "fixed", "op", "operands", "condition"),
    [
        ("V#{n:03}", {}, None, (), ("begins_with", ("V#",))),
        ("{n:03}", {}, None, (), None),
        ("METADATA", {}, None, (), ("=", ("METADATA",))),
        ("V#{n:03}", {"n": 9}, None, (), ("=", ("V#009",))),
        ("V#{n:03}", {}, "eq", (9,), ("=", ("V#009",))),
        ("V#{n:03}#{id}", {}, "eq", (9,), ("begins_with", ("V#009#",))),
        ("V#{n:03}", {}, "gte", (9,), ("BETWEEN", ("V#009", f"V#9{LAST}"))),
        ("V#{n:03}", {}, "gt", (9,), ("BETWEEN", ("V#009\x00", f"V#9{LAST}"))),
        ("V#{n:03}", {}, "lte", (9,), ("BETWEEN", ("V#-", "V#009"))),
        ("V#{n:03}", {}, "lt", (9,), ("BETWEEN", ("V#-", f"V#008{LAST}"))),
        ("V#{n:03}#{id}", {}, "lte", (9,), ("BETWEEN", ("V#-", f"V#009#{LAST}"))),
        ("V#{n:03}#{id}", {}, "gt", (9,), ("BETWEEN", (f"V#009#{LAST}", f"V#9{LAST}"))),
        ("V#{n:03}#{id}", {}, "between", (8, 9), ("BETWEEN", ("V#008#", f"V#009#{LAST}"))),
        ("V#{n:03,desc}", {}, "gte", (9,), ("BETWEEN", ("V#0", "V#990"))),
        ("V#{n:03,desc}", {}, "between", (8, 9), ("BETWEEN", ("V#990", "V#991"))),
        ("{id}", {}, "lt", ("b",), ("<", ("b",))),
        ("{id}", {}, "lte", ("b",), ("<=", ("b",))),
        ("{id}", {}, "gte", ("b",), (">=", ("b",))),
        ("{id}", {}, "gt", ("b",), (">=", ("b\x00",))),
        ("{id}", {}, "begins_with", ("b",), ("begins_with", ("b",))),
        ("{id}", {}, "begins_with", ("",), None),
        ("A#{id}", {}, "gt", ("b",), ("BETWEEN", ("A#b\x00", f"A#{LAST}"))),
        ("A#{id}", {}, "lt", ("b\x00",), ("BETWEEN", ("A#", "A#b"))),
        ("A#{id}#{name}", {}, "begins_with", ("#",), ("begins_with", ("A#$23",))),
        ("A#{id}#{name}", {"id": "#"}, "begins_with", ("#",), ("begins_with", ("A#$23##",))),
        (
            "{at:day}#{at}",
            {},
            "gte",
            (MOMENT,),
            ("BETWEEN", ("2026-11-16#2026-11-16T03:54:10.000000Z", f"9{LAST}")),
        ),
    ],
)
def test_a_comparison_is_one_condition(
    text: str, fixed: dict[str, Any], op: str | None, operands: tuple[Any, ...], condition: Any
) -> None:
    """Each operator, on a last field and on one that others follow, is one condition within its prefix."""
    span = bound(text).bounds(fixed, op, *operands)

    assert span.condition() == condition
    assert span.exact
    assert not span.empty


@pytest.mark.parametrize(
    ("text", "op", "operands"),
    [
        ("V#{n:03}", "between", (9, 8)),
        ("V#{n:03,desc}", "between", (9, 8)),
        ("A#{id}", "lt", ("",)),
        ("{id}", "lt", ("",)),
        ("{id}", "lte", ("",)),
    ],
)
def test_a_comparison_that_nothing_satisfies_is_empty(text: str, op: str, operands: tuple[Any, ...]) -> None:
    """A comparison that DynamoDB would refuse, or that no key satisfies, is reported and matches nothing."""
    span = bound(text).bounds({}, op, *operands)

    assert span.empty
    assert not span.holds("A#")


@pytest.mark.parametrize(
    ("op", "operand", "exact"),
    [
        ("gte", MOMENT, False),
        ("gte", MOMENT.replace(hour=0, minute=0, second=0), True),
        ("lt", MOMENT.replace(hour=0, minute=0, second=0), True),
        ("lt", MOMENT, False),
        ("gt", MOMENT.replace(hour=0, minute=0, second=0), False),
        ("lte", MOMENT, False),
        ("eq", MOMENT, False),
    ],
)
def test_bounds_on_a_cut_field_say_whether_they_are_exact(op: str, operand: datetime, exact: bool) -> None:
    """A day contains times before and after the requested one:

    they are included, and the bounds are not exact.
    """
    span = bound("D#{at:day}#{id}").bounds({}, op, operand)

    assert span.exact is exact
    if not exact:
        assert span.holds("D#2026-11-16#x")
    assert span.holds("D#2026-11-17#x") is op.startswith("gt")


def test_bounds_behind_a_cut_field_are_not_exact() -> None:
    """A field fixed to a truncated value leaves the rest inexact too, unless it also occurs whole."""
    later = MOMENT + timedelta(hours=1)

    assert not bound("{at:day}#{n:02}").bounds({"at": later}, "gte", 1).exact
    assert bound("{at:day}#{at}#{n:02}").bounds({"at": later}, "gte", 1).exact


@pytest.mark.parametrize(
    ("fixed", "op", "operands", "error", "sentence"),
    [
        ({"id": "x"}, "gte", (1,), KeyPartMissing, "needs status"),
        (
            {},
            "gte",
            ("x",),
            KeyPartRefused,
            r"status in the key 'T#\{status\}#\{n:raw\}#\{id\}': 'x' is not one of its choices; use",
        ),
        ({}, "gte", (None,), KeyPartMissing, "needs status"),
        (
            {},
            "begins_with",
            ("o",),
            KeyPartRefused,
            r"status in the key 'T#\{status\}#\{n:raw\}#\{id\}': a part of kind enum does not",
        ),
        (
            {"status": "open"},
            "begins_with",
            (1,),
            KeyPartRefused,
            r"n in the key 'T#\{status\}#\{n:raw\}#\{id\}': a part of kind int does not support",
        ),
        (
            {"status": "open"},
            "lt",
            (1,),
            KeyPartRefused,
            r"n in the key 'T#\{status\}#\{n:raw\}#\{id\}': its text does not sort like its value;",
        ),
        (
            {"status": "open", "n": 1, "id": "x"},
            "lt",
            (1,),
            TemplateRefused,
            r"key template 'T#\{status\}#\{n:raw\}#\{id\}': there is no field left to compare; fix",
        ),
        (
            {"other": "open"},
            None,
            (),
            TemplateRefused,
            r"key template 'T#\{status\}#\{n:raw\}#\{id\}': the template has no field 'other'; name",
        ),
        (
            {},
            "between",
            ("open",),
            TemplateRefused,
            r"key template 'T#\{status\}#\{n:raw\}#\{id\}': 'between' with 1 operands is not a",
        ),
        ({}, "near", ("open",), TemplateRefused, "use one of eq, lt"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(
    fixed: dict[str, Any], op: str | None, operands: tuple[Any, ...], error: type[Exception], sentence: str
) -> None:
    """Fields are fixed from the left, operands fit the field, and what does not sort is not compared."""
    with pytest.raises(error, match=sentence):
        bound("T#{status}#{n:raw}#{id}").bounds(fixed, op, *operands)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("TICKET#{id}", "TICKET#{name}", True),
        ("TICKET#{id}", "EVENT#{id}", False),
        ("TICKET#{id}", "TICKET#{id}#EVENT#{n}", True),  # the last text may hold the delimiter
        ("{id}#A", "{name}#B", False),
        ("{id}#{n:03}", "{id}#METADATA", False),
        ("{id}#{n:03}", "{id}#{n:04}", False),
        ("{id}#{n:03}", "{id}#{n:04,desc}", False),
        ("V#{n:03}", "V#{score:3}", True),
        ("V#{n:04}", "V#{at:year}", True),
        ("V#{status}", "V#open", True),
        ("V#{status}", "V#opened", False),
        ("V#{id}", "V#", True),
        ("V#{id}#", "V#a b#", False),
        ("V#{id:raw}#", "V#a b#", True),
        ("METADATA", "METADATA", True),
        ("METADATA", "META", False),
        ("{uid}", "{at}", False),
        ("V#{score}", "V#0", True),
        ("V#{score}", "V#LATEST", False),
    ],
)
def test_templates_that_could_make_one_key_may_meet(one: str, other: str, meet: bool) -> None:
    """Literals, widths and characters distinguish templates where possible, symmetrically."""
    assert bound(one).may_meet(bound(other)) is meet
    assert bound(other).may_meet(bound(one)) is meet


def test_a_span_without_ends_holds_everything() -> None:
    """No condition is no bound, and ends that are not included are not held."""
    assert KeySpan().holds("x")
    assert KeySpan().condition() is None
    assert not KeySpan(lower="a", lower_inclusive=False).holds("a")
    assert KeySpan(lower="a", lower_inclusive=False).condition() == (">", ("a",))
    assert not KeySpan(upper="a", upper_inclusive=False).holds("a")
