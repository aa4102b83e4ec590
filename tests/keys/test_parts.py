"""Parts: the text of each kind, what is refused, and what comes back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest

from tavola.keys import KeyPartRefused, TemplateRefused, part_for

MOMENT = datetime(2026, 11, 16, 3, 54, 10, 120_005, tzinfo=UTC)
DAY = date(2026, 11, 16)
UID = UUID("0123abcd-0000-4000-8000-00000000000f")


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Priority(StrEnum):
    URGENT = "urgent"
    CALM = "calm"


class Shape(Enum):
    ROUND = (1, 2)
    SQUARE = (3, 4)


class Named(str, Enum):  # noqa: UP042  # whose str() is its name
    A = "the#a"


PRIORITIES = tuple(Priority)
EXACT: list[tuple[str, str, Any, str]] = [
    ("text", "", "plain", "plain"),
    ("text", "", "a#b", "a$23b"),
    ("text", "", "a$ b", "a$24$20b"),
    ("text", "", "\x00é", "$00é"),
    ("text", "", "", ""),
    ("text", "raw", "a#b", "a#b"),
    ("text", "refuse", "ab", "ab"),
    ("int", "", 0, "0000000000000000000"),
    ("int", "06", 9, "000009"),
    ("int", "6", 10, "000010"),
    ("int", "06", -9, "-999990"),
    ("int", "06", -999999, "-000000"),
    ("int", "06,desc", 9, "999990"),
    ("int", "desc,06", 0, "999999"),
    ("int", "06,desc", -9, "~000009"),
    ("int", "raw", -12, "-12"),
    ("decimal", "", Decimal(0), "0"),
    ("decimal", "", Decimal("0.7"), "15007."),
    ("decimal", "", Decimal("-0.7"), "-4992~"),
    ("decimal", "", Decimal("1E-130"), "13711."),
    ("decimal", "", Decimal("-9.9E+125"), "-37300~"),
    ("decimal", "desc", Decimal("0.7"), "-4992~"),
    ("decimal", "desc", Decimal("-0.7"), "15007."),
    ("decimal", "5.2", Decimal("0.7"), "00000.70"),
    ("decimal", "5.2", Decimal("-0.7"), "-99999.29"),
    ("decimal", "5.2,desc", Decimal("12.5"), "99987.49"),
    ("decimal", "5.2,desc", Decimal("-12.5"), "~00012.50"),
    ("decimal", "3", Decimal(7), "007"),
    ("datetime", "", MOMENT, "2026-11-16T03:54:10.120005Z"),
    ("datetime", "us", MOMENT, "2026-11-16T03:54:10.120005Z"),
    ("datetime", "desc", MOMENT, "7973-88-83T96:45:89.879994Z"),
    ("date", "", DAY, "2026-11-16"),
    ("date", "desc", DAY, "7973-88-83"),
    ("bool", "", True, "1"),
    ("bool", "", False, "0"),
    ("bool", "desc", True, "0"),
    ("uuid", "", UID, "0123abcd-0000-4000-8000-00000000000f"),
    ("uuid", "desc", UID, "fedc5432-ffff-bfff-7fff-fffffffffff0"),
]
CUT = [
    ("ms", "2026-11-16T03:54:10.120Z", MOMENT.replace(microsecond=120_000)),
    ("s", "2026-11-16T03:54:10Z", MOMENT.replace(microsecond=0)),
    ("minute", "2026-11-16T03:54", MOMENT.replace(second=0, microsecond=0)),
    ("hour", "2026-11-16T03", datetime(2026, 11, 16, 3, tzinfo=UTC)),
    ("day", "2026-11-16", datetime(2026, 11, 16, tzinfo=UTC)),
    ("month", "2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
    ("year", "2026", datetime(2026, 1, 1, tzinfo=UTC)),
    ("hour,desc", "7973-88-83T96", datetime(2026, 11, 16, 3, tzinfo=UTC)),
]
REFUSED: list[tuple[str, str, Any, str]] = [
    ("text", "", 7, "7 is not a string; use a str"),
    ("text", "", b"x", "b'x' is not a string; use a str"),
    ("text", "", "a\U0010ffff", r"cannot contain U\+10FFFF"),
    ("text", "", "\ud800", "surrogate"),
    (
        "text",
        "refuse",
        "a#b",
        r"'a#b' holds '#', and characters up to '\$' have no place before the delimiter",
    ),
    ("text", "refuse", "a b", "holds ' '"),
    ("int", "", True, "True is not an integer; use an int"),
    ("int", "", 1.0, "not an integer"),
    ("int", "", "1", "not an integer"),
    ("int", "02", 100, "100 needs more than the 2 digits of its place; use a smaller number, or declare"),
    ("int", "02", -100, "-100 needs more than the 2 digits"),
    ("int", "02,desc", 100, "more than the 2 digits"),
    ("int", "raw", True, "not an integer"),
    ("decimal", "", 0.7, r"0\.7 is a float, which is not exact; use a Decimal"),
    ("decimal", "", True, "not a decimal number"),
    ("decimal", "", "0.7", "not a decimal number"),
    (
        "decimal",
        "",
        Decimal("NaN"),
        r"Decimal\('NaN'\) is not a DynamoDB number: The parameter cannot be converted to a",
    ),
    (
        "decimal",
        "",
        Decimal(10) ** 126,
        r"Decimal\('1\.000000000000000000000000000E\+126'\) is not a DynamoDB number: Number",
    ),
    (
        "decimal",
        "",
        10**38 + 1,
        "100000000000000000000000000000000000001 is not a DynamoDB number: Attempting to",
    ),
    ("decimal", "5.2", Decimal("0.705"), "does not fit 5 digits before the point and 2 after.*round it"),
    ("decimal", "5.2", Decimal(100_000), "does not fit"),
    (
        "datetime",
        "",
        datetime(2026, 11, 16),  # noqa: DTZ001  # that is the case
        r"datetime\.datetime\(2026, 11, 16, 0, 0\) has no time zone; use one, as in",
    ),
    ("datetime", "", DAY, r"datetime\.date\(2026, 11, 16\) is not a datetime; use one with a time zone"),
    ("datetime", "", datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "the years 1 to 9999"),
    (
        "date",
        "",
        MOMENT,
        r"datetime\.datetime\(2026, 11, 16, 3, 54, 10, 120005, tzinfo=d… is not a date; use",
    ),
    ("date", "", "2026-11-16", "'2026-11-16' is not a date; use a date without a time"),
    ("bool", "", 1, "1 is not a bool; use True or False"),
    ("uuid", "", str(UID), r"'0123abcd-0000-4000-8000-00000000000f' is not a UUID; use a uuid\.UUID"),
]
UNDECLARED = [
    ("text", "lower", "'lower' is not a valid format; case is never changed"),
    ("text", "upper", "case is never changed"),
    ("text", "desc", "text cannot be encoded in descending order; read the query newest first"),
    ("text", "06", "'06' is not a valid format.*refuse, raw"),
    ("text", "raw,refuse", "exclude each other"),
    ("text", "rank", "'rank' is not"),
    ("int", "0", "0 is not a width; use 1 to 38 digits"),
    ("int", "39", "39 is not a width; use 1 to 38 digits"),
    ("int", "5.2", "'5.2' is not a valid format.*a width such as 06"),
    ("int", "desc,desc", "says the same twice"),
    ("int", "6,7", "exclude each other"),
    ("decimal", "30.9", "39 is not a width; use 1 to 38 digits"),
    ("decimal", "x", "digits such as 5.2"),
    ("datetime", "week", "'week' is not.*us, ms, s, minute, hour, day, month, year"),
    ("datetime", "day,month", "exclude each other"),
    ("date", "hour", "'hour' is not.*day, month, year"),
    ("bool", "x", "'x' is not"),
    ("uuid", "x", "'x' is not"),
    ("enum", "", "needs its choices"),
    ("time", "", "unknown kind of key part 'time'; use one of text, int, decimal, datetime, date,"),
]


@pytest.mark.parametrize(("kind", "spec", "value", "text"), EXACT)
def test_a_value_has_one_text_and_comes_back(kind: str, spec: str, value: Any, text: str) -> None:
    """Each kind is written as documented, and read as what it was."""
    part = part_for(kind, spec)

    assert part.encode(value) == text
    assert part.decode(text) == value
    assert type(part.decode(text)) is type(value)
    assert not part.is_lossy


@pytest.mark.parametrize(("spec", "text", "first"), CUT)
def test_a_cut_moment_is_read_as_the_first_it_could_be(spec: str, text: str, first: datetime) -> None:
    """A grain above microseconds drops digits, says so, and reads as the start of its time."""
    part = part_for("datetime", spec)

    assert part.encode(MOMENT) == text
    assert part.decode(text) == first
    assert part.is_lossy
    assert part.fixed_width == len(text)


@pytest.mark.parametrize(
    ("spec", "text"), [("month", "2026-11"), ("year", "2026"), ("month,desc", "7973-88")]
)
def test_a_date_can_be_cut_too(spec: str, text: str) -> None:
    """A date has the grains of a month and a year."""
    part = part_for("date", spec)

    assert part.encode(DAY) == text
    assert part.decode(text) == date(2026, 11 if len(text) > 4 else 1, 1)


@pytest.mark.parametrize(("kind", "spec", "value", "sentence"), REFUSED)
def test_a_value_that_cannot_be_written_is_refused(kind: str, spec: str, value: Any, sentence: str) -> None:
    """The refusal names the value and suggests a replacement; the value is on the error."""
    with pytest.raises(KeyPartRefused, match=sentence) as caught:
        part_for(kind, spec).encode(value)

    assert caught.value.value is value


@pytest.mark.parametrize(("kind", "spec", "sentence"), UNDECLARED)
def test_a_spec_that_a_kind_has_not_is_refused(kind: str, spec: str, sentence: str) -> None:
    """An unknown word is refused with those that the kind takes."""
    with pytest.raises(TemplateRefused, match=sentence):
        part_for(kind, spec)


@pytest.mark.parametrize("kind", ["int", "decimal"])
def test_a_number_too_long_to_spell_is_refused_too(kind: str) -> None:
    """Python does not print an int of thousands of digits; the refusal does without."""
    with pytest.raises(KeyPartRefused, match="a number with very many digits"):
        part_for(kind).encode(10**5000)


def test_a_moment_is_written_in_utc() -> None:
    """A time has one encoding, whatever its time zone."""
    east = timezone(timedelta(hours=5, minutes=45))
    part = part_for("datetime")

    assert part.encode(MOMENT.astimezone(east)) == part.encode(MOMENT)
    assert part.encode(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


def test_a_decimal_is_written_exactly_whatever_the_context() -> None:
    """Equal numbers have one text, and the precision of the context rounds none of it."""
    long = Decimal("12345678901234567890123456789012345.67")
    with localcontext() as context:
        context.prec = 3
        floating, fixed = part_for("decimal"), part_for("decimal", "36.2")

        assert floating.encode(Decimal("0.70")) == floating.encode(Decimal("0.7"))
        assert floating.encode(7) == floating.encode(Decimal("7.00"))
        assert floating.encode(Decimal("-0.0")) == "0"
        assert floating.decode(floating.encode(long)) == long
        assert fixed.decode(fixed.encode(long)) == long


def test_choices_are_written_as_their_text() -> None:
    """A choice is its value's text, by the member or by the value, and comes back as it was declared."""
    part = part_for("enum", "", PRIORITIES)

    assert part.encode(Priority.CALM) == part.encode("calm") == "calm"
    assert part.decode("calm") is Priority.CALM
    assert part_for("enum", "", ("open", "a#b")).encode("a#b") == "a$23b"
    assert part_for("text").encode(Named.A) == "the$23a"
    assert part_for("enum", "raw", tuple(Named)).encode(Named.A) == "the#a"


def test_choices_sort_by_rank_where_that_is_said() -> None:
    """A rank is the position in the declaration, as wide as their number needs, or wider if declared."""
    twelve = tuple(f"s{12 - place}" for place in range(12))

    assert part_for("enum", "rank", PRIORITIES).encode("urgent") == "0"
    assert part_for("enum", "rank,desc", PRIORITIES).encode("urgent") == "9"
    assert part_for("enum", "rank", twelve).encode("s2") == "10"
    assert part_for("enum", "rank,04", twelve).encode("s2") == "0010"
    assert part_for("enum", "rank", PRIORITIES).decode("1") is Priority.CALM
    assert part_for("enum", "rank", tuple(Shape)).encode(Shape.SQUARE) == "1"
    with pytest.raises(TemplateRefused, match="12 choices need 2 digits"):
        part_for("enum", "rank,1", twelve)


def test_whole_choices_are_whole_numbers() -> None:
    """An IntEnum, or a Literal of ints, is padded as an int and comes back as the member."""
    part = part_for("enum", "03", tuple(Level))

    assert part.kind == "int"
    assert part.encode(10) == part.encode(Level.HIGH) == "010"
    assert part.decode("010") is Level.HIGH
    assert part_for("int", "03,desc", (1, 2)).encode(2) == "997"


@pytest.mark.parametrize(
    ("kind", "choices", "value"),
    [
        ("enum", ("open", "closed"), "opne"),
        ("enum", ("open", "closed"), ["open"]),
        ("int", (1, 2), 3),
        ("int", (1, 2), True),
        ("enum", tuple(Level), 2),
    ],
)
def test_a_value_outside_the_choices_is_refused(kind: str, choices: tuple[Any, ...], value: Any) -> None:
    """The refusal names the choices there are."""
    with pytest.raises(KeyPartRefused, match="is not one of its choices; use one of .*" + str(choices[0])):
        part_for(kind, "", choices).encode(value)


@pytest.mark.parametrize(
    ("spec", "choices", "sentence"),
    [
        ("desc", ("a", "b"), r"rank it: \{field:rank,desc\}"),
        ("", ("a", 1), "not all strings; sort them by rank"),
        ("", tuple(Shape), "not all strings; sort them by rank"),
        ("", ("a", "a"), "list each once"),
        ("", (), "list each once"),
        ("lower", ("a", "b"), "case is never changed"),
    ],
)
def test_choices_that_cannot_be_ordered_are_refused(
    spec: str, choices: tuple[Any, ...], sentence: str
) -> None:
    """Texts do not descend, mixed values have no order but their rank, and each choice is there once."""
    with pytest.raises(TemplateRefused, match=sentence):
        part_for("enum", spec, choices)


def test_a_part_is_made_once() -> None:
    """The same kind, spec and choices return the same part; 1 and True are not the same choice."""
    assert part_for("int", "06") is part_for("int", "06")
    assert part_for("enum", "rank", (0, 1)) is not part_for("enum", "rank", (False, True))
