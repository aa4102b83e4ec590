"""Converters: how each Python type is stored, what reads back, and what is refused with which words."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from enum import Enum, IntEnum, IntFlag, StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    Json,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    StrictInt,
    TypeAdapter,
)
from typing_extensions import TypeAliasType, TypedDict

from tavola.model.converters import (
    EpochMilliseconds,
    EpochSeconds,
    Exact,
    converter_for,
    field_converter,
    with_place,
)
from tavola.model.errors import ModelError, ValueNotStorable
from tavola.values import Value

T = TypeVar("T")
NOON = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
ID = UUID("6b1f8f3e-2f0b-4f39-9d3c-0b5f4b0a7a11")
CustomerId = NewType("CustomerId", str)
Tags = TypeAliasType("Tags", set[str])
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))


class Status(Enum):
    OPEN = "open"
    CLOSED = "closed"


class Mood(StrEnum):
    GLAD = "glad"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Mode(IntFlag):
    READ = 1
    WRITE = 2


class Address(BaseModel):
    city: str
    lines: list[str] = []
    moved: datetime | None = None
    tags: set[str] = set()


class Folder(BaseModel):
    name: str
    inside: list[Folder] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    born: date


class Circle(BaseModel):
    radius: Decimal


class Ring(BaseModel):
    radius: Decimal
    hole: Decimal = Decimal(1)


class Aliased(BaseModel):
    city: str = Field(alias="cityName")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str


class Numbers(RootModel[list[int]]):
    pass


class Place(NamedTuple):
    x: int
    at: datetime


class Hours(TypedDict, total=False):
    opens: time


@dataclasses.dataclass(slots=True)
class Money:
    amount: Decimal
    currency: Literal["EUR", "USD"] = "EUR"
    shown: str = dataclasses.field(init=False, default="")


class Unknown:
    """What neither pydantic nor Tavola can store."""


class Box(BaseModel, Generic[T]):
    content: T


STORED: list[tuple[Any, Any, Value]] = [
    (str, "é", {"S": "é"}),
    (int, -5, {"N": "-5"}),
    (int, 10**37, {"N": "1" + "0" * 37}),
    (Decimal, Decimal("1.10"), {"N": "1.1"}),
    (Annotated[float, Exact], 0.1, {"N": "0.1"}),
    (Annotated[float, Exact], 1e22, {"N": "1" + "0" * 22}),
    (bool, False, {"BOOL": False}),
    (bytes, b"\x00\xff", {"B": "AP8="}),
    (datetime, NOON, {"S": "2026-03-01T12:00:00.000250Z"}),
    (datetime, NOON.replace(microsecond=0), {"S": "2026-03-01T12:00:00.000000Z"}),
    (AwareDatetime, NOON, {"S": "2026-03-01T12:00:00.000250Z"}),
    (Annotated[datetime, EpochSeconds], datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), {"N": "-1"}),
    (Annotated[datetime, EpochSeconds()], datetime(2026, 3, 1, tzinfo=UTC), {"N": "1772323200"}),
    (Annotated[datetime, EpochMilliseconds], datetime(1970, 1, 1, 0, 0, 1, 5000, UTC), {"N": "1005"}),
    (date, date(2026, 3, 1), {"S": "2026-03-01"}),
    (time, time(9, 30), {"S": "09:30:00.000000"}),
    (timedelta, timedelta(days=-1, microseconds=1), {"N": "-86399.999999"}),
    (timedelta, timedelta(hours=1), {"N": "3600"}),
    (UUID, ID, {"S": str(ID)}),
    (Status, Status.OPEN, {"S": "open"}),
    (Mood, Mood.GLAD, {"S": "glad"}),
    (Level, Level.HIGH, {"N": "10"}),
    (Mode, Mode.READ | Mode.WRITE, {"N": "3"}),
    (Literal["a", "b"], "b", {"S": "b"}),
    (Literal[1, "b"], 1, {"N": "1"}),
    (Literal[Status.OPEN, "else"], Status.OPEN, {"S": "open"}),
    (list[str], ["a", ""], {"L": [{"S": "a"}, {"S": ""}]}),
    (list[int | None], [1, None], {"L": [{"N": "1"}, {"NULL": True}]}),
    (Sequence[int], [1], {"L": [{"N": "1"}]}),
    (deque[int], deque([1]), {"L": [{"N": "1"}]}),
    (tuple[int, ...], (1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
    (tuple[int, str], (1, "b"), {"L": [{"N": "1"}, {"S": "b"}]}),
    (tuple[()], (), {"L": []}),
    (set[str], {"b", "a"}, {"SS": ["a", "b"]}),
    (frozenset[int], frozenset({2, 1}), {"NS": ["1", "2"]}),
    (set[bytes], {b"a"}, {"BS": ["YQ=="]}),
    (set[Status], {Status.OPEN}, {"SS": ["open"]}),
    (list[set[str]], [set()], {"L": [{"L": []}]}),
    (dict[str, int], {"a": 1}, {"M": {"a": {"N": "1"}}}),
    (Mapping[UUID, bool], {ID: True}, {"M": {str(ID): {"BOOL": True}}}),
    (dict[Level, str], {Level.LOW: "x"}, {"M": {"1": {"S": "x"}}}),
    (Counter[str], Counter("aa"), {"M": {"a": {"N": "2"}}}),
    (defaultdict[str, int], defaultdict(int, a=1), {"M": {"a": {"N": "1"}}}),
    (OrderedDict[str, int], OrderedDict(a=1), {"M": {"a": {"N": "1"}}}),
    (Cat, Cat(), {"M": {"kind": {"S": "cat"}, "lives": {"N": "9"}}}),
    (Aliased, Aliased(cityName="Rome"), {"M": {"city": {"S": "Rome"}}}),
    (Open, Open(name="a", n=1), {"M": {"name": {"S": "a"}, "n": {"N": "1"}}}),  # type: ignore[call-arg]
    (Numbers, Numbers([1]), {"L": [{"N": "1"}]}),
    (Box[int], Box[int](content=1), {"M": {"content": {"N": "1"}}}),
    (Place, Place(1, NOON), {"M": {"x": {"N": "1"}, "at": {"S": "2026-03-01T12:00:00.000250Z"}}}),
    (Hours, {}, {"M": {}}),
    (Hours, {"opens": time(9)}, {"M": {"opens": {"S": "09:00:00.000000"}}}),
    (Money, Money(Decimal(5)), {"M": {"amount": {"N": "5"}, "currency": {"S": "EUR"}}}),
    (Cat | Dog, Dog(born=date(2020, 1, 1)), {"M": {"kind": {"S": "dog"}, "born": {"S": "2020-01-01"}}}),
    (Ring | Circle, Circle(radius=Decimal(2)), {"M": {"radius": {"N": "2"}}}),
    (str | int, "5", {"S": "5"}),
    (str | int, 5, {"N": "5"}),
    (int | Decimal, Decimal("0.5"), {"N": "0.5"}),
    (Annotated[int | float, Exact], 0.5, {"N": "0.5"}),
    (Literal["all"] | int, "all", {"S": "all"}),
    (Mood | str, "other", {"S": "other"}),
    (Status | Literal["gone"], Status.CLOSED, {"S": "closed"}),
    (Any, {"a": [1, Decimal("0.5"), None]}, {"M": {"a": {"L": [{"N": "1"}, {"N": "0.5"}, {"NULL": True}]}}}),
    (JsonValue, {"a": [0.5, None]}, {"M": {"a": {"L": [{"N": "0.5"}, {"NULL": True}]}}}),
    (Annotated[Any, Exact], [0.5], {"L": [{"N": "0.5"}]}),
    (CustomerId, CustomerId("c"), {"S": "c"}),
    (Tags, {"a"}, {"SS": ["a"]}),
    (Pair[int], (1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
    (PositiveInt, 3, {"N": "3"}),
    (StrictInt, 3, {"N": "3"}),
    (ByteSize, ByteSize(1024), {"N": "1024"}),
    (SecretStr, SecretStr("s"), {"S": "s"}),
    (SecretBytes, SecretBytes(b"s"), {"B": "cw=="}),
    (Secret[int], Secret[int](5), {"N": "5"}),
    (AnyUrl, AnyUrl("https://example.org/"), {"S": "https://example.org/"}),
    (ipaddress.IPv4Address, ipaddress.IPv4Address("10.0.0.1"), {"S": "10.0.0.1"}),
    (PurePosixPath, PurePosixPath("/a"), {"S": "/a"}),
    (Json[list[int]], [1], {"S": "[1]"}),
    (Base64Bytes, b"a", {"B": "WVE9PQ=="}),
]


@pytest.mark.parametrize(("annotation", "value", "stored"), STORED)
def test_each_type_has_one_stored_form_that_reads_back(annotation: Any, value: Any, stored: Value) -> None:
    """A type is written in one stated way, and pydantic makes the same value, of the same class, of it."""
    converter = converter_for(annotation)

    assert converter.encode(value) == stored
    read = TypeAdapter(annotation).validate_python(converter.decode(stored), strict=False)
    assert read == value
    assert type(read) is type(value)


REFUSED_TYPES: list[tuple[Any, str]] = [
    (float, "use Decimal, or Annotated[float, Exact]"),
    (list[float], "use Decimal"),
    (T, "type variable"),
    (Box, "in Box.content, ~T is a type variable"),
    (Unknown, "neither Tavola nor pydantic can store Unknown; use a pydantic model, a"),
    (Callable[[int], int], "does not define how it is stored"),
    (Iterable[int], "does not define how it is stored"),
    (set, "a set needs a member type: set[str], set[int] or set[bytes]"),
    (set[bool], "use list"),
    (set[str | int], "use list"),
    (set[int | None], "no None"),
    (dict[bool, int], "map keys are strings"),
    (dict[str | None, int], "map keys are strings"),
    (str | datetime, "text | datetime: text and datetime cannot be distinguished when they are read"),
    (Status | str, "cannot be distinguished"),
    (Status | Literal["open"], "both have 'open'"),
    (list[int] | list[str], "cannot be distinguished"),
    (Cat | dict[str, int], "cannot be distinguished"),
    (Circle | Open, "Circle | Open: Circle and Open cannot be distinguished when they are read back:"),
    (Any | int, "any | int: the members of a union must be distinguishable; remove the member"),
    (Annotated[int, Exact], "Annotated[int, <class 'tavola.model.converters.converter.Exact'>]: Exact"),
    (
        Annotated[str, EpochSeconds],
        "Annotated[str, <class 'tavola.model.converters.converter.EpochSeconds'>]:",
    ),
    (
        Enum("Weights", {"LIGHT": 0.5}),
        "members of Weights are stored by value; give each a string or an integer",
    ),
    ("Nowhere", "Nowhere is not defined yet"),
]


@pytest.mark.parametrize(("annotation", "told"), REFUSED_TYPES)
def test_a_type_that_cannot_be_stored_is_refused_where_it_is_declared(annotation: Any, told: str) -> None:
    """The refusal is a ModelError that names the type and what to do."""
    with pytest.raises(ModelError) as refused:
        converter_for(annotation)

    assert told in str(refused.value)


def test_a_float_deep_inside_is_told_with_its_path() -> None:
    """A declaration's error leads through the records to the field."""

    class Spot(BaseModel):
        lat: float

    class Route(BaseModel):
        spots: list[Spot]

    with pytest.raises(
        ValueNotStorable,
        match=r"in Route\.spots, in Spot\.lat, floats are binary, DynamoDB numbers are decimal:",
    ):
        converter_for(Route)


REFUSED_VALUES: list[Any] = [
    (str, 5, "value", "5 is of type int; give text"),
    (int, 10**38 + 1, "value", "up to 38 digits"),
    (int, 1.0, "value", "give an int"),
    (Decimal, Decimal("NaN"), "value", "cannot be stored exactly"),
    (Decimal, Decimal("1E-131"), "value", "1E-130"),
    (Decimal, 0.5, "value", "give a Decimal"),
    (bool, 1, "value", "True or False"),
    (bytes, "x", "value", "give bytes"),
    (UUID, str(ID), "value", "give a UUID"),
    (date, NOON, "value", "value.date()"),
    (
        datetime,
        date(2026, 3, 1),
        "value",
        "datetime.date(2026, 3, 1) is of type date; give a datetime with a time zone",
    ),
    (datetime, datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "value", "the years 1 to 9999"),
    (time, time(9, tzinfo=ZoneInfo("Europe/Rome")), "value", "a fixed offset"),
    (timedelta, 5, "value", "a timedelta"),
    (Annotated[datetime, EpochSeconds], NOON, "value", "value.replace(microsecond=0)"),
    (Annotated[datetime, EpochMilliseconds], NOON, "value", "a fraction of a millisecond"),
    (Status, "gone", "value", "'gone' is not a member of Status"),
    (Literal["a", "b"], "c", "value", "'c' is not one of 'a' | 'b'"),
    (
        list[str],
        "abc",
        "value",
        "give a list",
    ),
    (list[str], ["a", 5], "value[1]", "give text"),
    (dict[str, list[int]], {"a": [1, "b"]}, "value['a'][1]", "give an int"),
    (
        dict[str, int],
        {"": 1},
        "value['']",
        "the key is an empty string, which DynamoDB rejects; use a non-empty key",
    ),
    (tuple[int, str], (1,), "value", "has 1 members; give 2"),
    (tuple[int, str], (1, 2), "value[1]", "give text"),
    (set[str], ["a"], "value", "give a set"),
    (
        set[str] | None,
        set(),
        "value",
        "an empty set is stored as a missing attribute, which this field reads as None;",
    ),
    (Any, {"a": [1, 0.5]}, "value.a[1]", "use Decimal"),
    (Any, NOON, "value", "declare the type instead of Any"),
    (Any, {1: 2}, "value", "text that is not empty"),
    (Any, {1, "a"}, "value", "is not a DynamoDB set, which contains only strings, only numbers or"),
    pytest.param(Any, "\ud800", "value", "a lone surrogate", id="surrogate"),
    (
        Folder,
        Folder(name="a", inside=[Folder.model_construct(name=5, inside=[])]),
        "value.inside[0].name",
        "text",
    ),
    (Folder, Folder.model_construct(inside=[]), "value", "without its field name"),
    (Place, Place("x", NOON), "value.x", "give an int"),  # type: ignore[arg-type]
    (
        Hours,
        {"closes": time(9)},
        "value",
        "datetime.time(9, 0)} has 'closes', which Hours does not declare; use the keys",
    ),
    (Hours, {"opens": 5}, "value.opens", "a time of day"),
    (Cat, Circle(radius=Decimal(1)), "value", "give a Cat"),
    (str | int, b"x", "value", "give text or int"),
    (AnyUrl, 5, "value", "cannot be written as AnyUrl"),
]


@pytest.mark.parametrize(("annotation", "value", "place", "told"), REFUSED_VALUES)
def test_a_value_that_cannot_be_stored_is_refused_with_its_place(
    annotation: Any, value: Any, place: str, told: str
) -> None:
    """Nothing is written that would read back as something else; the error says where and what to do."""
    with pytest.raises(ValueNotStorable) as refused:
        converter_for(annotation).encode(value)

    assert refused.value.place == place
    assert told in refused.value.problem


def test_an_integer_too_long_to_be_told_is_refused_all_the_same() -> None:
    """Python prints no integer of thousands of digits; the refusal does not need it printed."""
    with pytest.raises(
        ValueNotStorable, match="an integer with thousands of digits cannot be stored exactly: DynamoDB's"
    ):
        converter_for(int).encode(10**5000)


def test_a_refusal_can_be_given_the_field_in_front() -> None:
    """Whoever knows the field puts it before the place inside the value."""
    with pytest.raises(ValueNotStorable) as refused:
        converter_for(list[str]).encode(["a", 5])

    assert str(with_place(refused.value, "Ticket.lines")).startswith("Ticket.lines[1]: 5 is of type int")


def test_pitfall_10_a_time_without_a_zone_is_refused() -> None:
    """Pitfall 10: a naive datetime is no moment: it is refused with "give a zone", and never taken for local time."""
    for annotation in (datetime, Annotated[datetime, EpochSeconds]):
        with pytest.raises(
            ValueNotStorable,
            match=r"datetime\.datetime\(2026, 3, 1, 0, 0\) has no time zone; use datetime\.now\(UTC\), or",
        ):
            converter_for(annotation).encode(datetime(2026, 3, 1))  # noqa: DTZ001 - what is refused


def test_pitfall_10_every_zone_is_stored_as_the_same_moment() -> None:
    """Pitfall 10: the stored text and the epoch do not depend on the zone in which the moment was given."""
    rome = NOON.replace(microsecond=0).astimezone(ZoneInfo("Europe/Rome"))

    assert converter_for(datetime).encode(rome) == {"S": "2026-03-01T12:00:00.000000Z"}
    assert converter_for(Annotated[datetime, EpochSeconds]).encode(rome) == {"N": "1772366400"}


@pytest.mark.parametrize("value", [0.1, 1 / 3, 2.0**-30, 1e-7, 123456789.123456789, 5e22])
def test_pitfall_13_a_float_never_loses_a_digit_silently(value: float) -> None:
    """Pitfall 13: a plain float is refused where it is declared; an exact one reads back as the very same float."""
    with pytest.raises(ValueNotStorable, match="Decimal"):
        converter_for(float)
    converter = converter_for(Annotated[float, Exact])

    assert converter.decode(converter.encode(value)).hex() == value.hex()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 5e-324])
def test_pitfall_13_a_float_that_no_number_holds_is_refused(value: float) -> None:
    """Pitfall 13: what DynamoDB's numbers cannot hold is refused even where floats are exact."""
    with pytest.raises(ValueNotStorable, match="cannot be stored exactly"):
        converter_for(Annotated[float, Exact]).encode(value)


def test_a_float_in_an_untyped_field_is_refused() -> None:
    """`Any` takes no float: it would come back as a Decimal that it does not equal."""
    with pytest.raises(
        ValueNotStorable,
        match=r"0\.1 is a float: floats are binary, DynamoDB numbers are decimal: use Decimal,",
    ):
        converter_for(dict[str, Any]).encode({"a": 0.1})


def test_numbers_do_not_depend_on_the_precision_of_the_thread() -> None:
    """A caller's decimal context rounds nothing that is stored or read."""
    span = timedelta(days=999_999, microseconds=1)
    converter = converter_for(timedelta)

    with localcontext() as context:
        context.prec = 5
        assert converter.decode(converter.encode(span)) == span
        stored = converter_for(Decimal).encode(Decimal("1.23456789"))

    assert stored == {"N": "1.23456789"}


def test_what_another_wrote_is_handed_to_pydantic_as_plain_python() -> None:
    """A value of another type than the field's is not refused by the converter; pydantic decides."""
    assert converter_for(int).decode({"S": "7"}) == "7"
    assert converter_for(int).decode({"N": "1.5"}) == Decimal("1.5")
    assert converter_for(str).decode({"NULL": True}) is None
    assert converter_for(datetime).decode({"S": "yesterday"}) == "yesterday"
    assert converter_for(Annotated[datetime, EpochSeconds]).decode({"N": "0.5"}) == datetime(
        1970, 1, 1, 0, 0, 0, 500_000, UTC
    )
    assert converter_for(Annotated[datetime, EpochSeconds]).decode({"N": "9" * 30}) == int("9" * 30)
    assert converter_for(Status).decode({"S": "gone"}) == "gone"
    assert converter_for(list[str]).decode({"SS": ["a"]}) == {"a"}
    assert converter_for(list[str]).decode({"L": [{"N": "1"}]}) == [1]
    assert converter_for(set[str]).decode({"L": []}) == []
    assert converter_for(tuple[int, int]).decode({"L": [{"N": "1"}]}) == [1]
    assert converter_for(Cat | Dog).decode({"M": {"kind": {"S": "cow"}}}) == {"kind": "cow"}
    assert converter_for(Cat | Dog).decode({"M": {"kind": {"S": "dog"}}}) == {"kind": "dog"}
    assert converter_for(str | int).decode({"BOOL": True}) is True


def test_an_empty_set_is_no_value_and_reads_back_from_absence() -> None:
    """DynamoDB has no empty set: encode gives no value, and absence reads as an empty set of the same class."""
    converter = converter_for(frozenset[str])

    assert converter.encode(frozenset()) == {}
    assert converter.absent is not None
    assert converter.absent() == frozenset()
    assert converter_for(set[str] | None).absent is None


def test_a_record_keeps_none_apart_from_its_default() -> None:
    """A field of a record that is None is NULL, so it does not come back as its default."""
    converter = converter_for(Address)

    stored = converter.encode(Address(city="Rome"))

    assert stored["M"]["moved"] == {"NULL": True}
    assert Address.model_validate(converter.decode(stored)) == Address(city="Rome")


def test_a_record_fills_what_only_absence_can_say() -> None:
    """A set that is absent reads as empty, and a required field that may be None as None."""

    class Note(BaseModel):
        text: str | None
        seen: set[str] = {"nobody"}

    assert converter_for(Note).decode({"M": {}}) == {"text": None, "seen": set()}


def test_attributes_that_a_record_does_not_know_go_by_its_configuration() -> None:
    """Extra names are kept where the model allows them, handed on where it forbids them, else left out."""

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

        name: str

    stored: Value = {"M": {"name": {"S": "a"}, "old": {"N": "1"}}}

    assert converter_for(Open).decode(stored) == {"name": "a", "old": 1}
    assert converter_for(Strict).decode(stored) == {"name": "a", "old": 1}
    assert converter_for(Folder).decode(stored) == {"name": "a"}


def test_a_subclass_is_refused_where_its_fields_would_be_lost() -> None:
    """A value is written by its declared class; one with more fields must be declared in a union."""

    class Kitten(Cat):
        weeks: int = 3

    class Tom(Cat):
        pass

    with pytest.raises(ValueNotStorable, match="weeks would be lost"):
        converter_for(Cat).encode(Kitten())
    assert converter_for(Cat).encode(Tom()) == converter_for(Cat).encode(Cat())


def test_a_union_gives_the_record_itself() -> None:
    """Defaults never make one record of a union look like another: pydantic is handed an instance."""
    converter = converter_for(Ring | Circle)

    assert converter.decode({"M": {"radius": {"N": "2"}}}) == Circle(radius=Decimal(2))
    assert converter.decode({"M": {"radius": {"N": "2"}, "hole": {"N": "1"}}}) == Ring(radius=Decimal(2))


def test_a_record_may_contain_itself() -> None:
    """Recursive models are stored to any depth."""
    tree = Folder(name="a", inside=[Folder(name="b", inside=[Folder(name="c")])])
    converter = converter_for(Folder)

    assert Folder.model_validate(converter.decode(converter.encode(tree))) == tree


def test_a_declaration_that_failed_leaves_nothing_half_made() -> None:
    """What was begun under a refused declaration is made anew for the next one."""

    class Loop(BaseModel):
        again: list[Loop] = []
        weight: float = 0

    Loop.model_rebuild()
    for _ in range(2):
        with pytest.raises(ValueNotStorable, match=r"Loop.weight"):
            converter_for(Loop)
    with pytest.raises(ValueNotStorable, match=r"Loop.weight"):
        converter_for(list[Loop])


def test_a_custom_type_is_stored_as_it_says() -> None:
    """A class that pydantic is told how to dump and validate is stored by that."""
    custom = Annotated[
        Unknown,
        PlainValidator(lambda value: value if isinstance(value, Unknown) else Unknown()),
        PlainSerializer(lambda value: "it"),
    ]
    converter = converter_for(custom)

    assert converter.encode(Unknown()) == {"S": "it"}
    assert converter.decode({"S": "it"}) == "it"


def test_a_custom_type_that_says_nothing_is_refused_when_it_is_written() -> None:
    """What pydantic can only validate is a refusal like any other, and no error of pydantic's."""
    custom = Annotated[Unknown, PlainValidator(lambda value: value)]

    with pytest.raises(ValueNotStorable, match="Unknown"):
        converter_for(custom).encode(Unknown())


def test_a_secret_stays_hidden_in_a_refusal() -> None:
    """An error about a secret does not tell it."""
    with pytest.raises(ValueNotStorable) as refused:
        converter_for(Secret[int]).encode(Secret[Any]("hunter2"))

    assert "hunter2" not in str(refused.value)


KEYS: list[tuple[Any, str | None, tuple[Any, ...] | None, set[str]]] = [
    (str, "text", None, {"S"}),
    (CustomerId, "text", None, {"S"}),
    (int | None, "int", None, {"N"}),
    (Decimal, "decimal", None, {"N"}),
    (datetime, "datetime", None, {"S"}),
    (Annotated[datetime, EpochSeconds], "datetime", None, {"N"}),
    (date, "date", None, {"S"}),
    (bool, "bool", None, {"BOOL"}),
    (UUID, "uuid", None, {"S"}),
    (Status, "enum", ("open", "closed"), {"S"}),
    (Literal["a", "b"], "enum", ("a", "b"), {"S"}),
    (Literal["a"] | Literal["b"], "enum", ("a", "b"), {"S"}),
    (Level, "int", (1, 10), {"N"}),
    (Literal[1, "b"], None, (1, "b"), {"N", "S"}),
    (bytes, None, None, {"B"}),
    (Annotated[float, Exact], None, None, {"N"}),
    (list[str], None, None, {"L"}),
    (set[int], None, None, {"NS"}),
    (str | int, None, None, {"S", "N"}),
    (SecretStr, None, None, {"S"}),
]


@pytest.mark.parametrize(("annotation", "kind", "choices", "tags"), KEYS)
def test_a_converter_says_what_it_is_in_a_key(
    annotation: Any, kind: str | None, choices: tuple[Any, ...] | None, tags: set[str]
) -> None:
    """Templates learn the kind and the choices, native keys the DynamoDB type."""
    converter = converter_for(annotation)

    assert (converter.key_kind, converter.choices, set(converter.tags)) == (kind, choices, tags)


@pytest.mark.parametrize(
    ("annotation", "nullable"),
    [
        (str, False),
        (str | None, True),
        (Literal["a", None], True),
        (Any, True),
        (None, True),
        (list[None], False),
    ],
)
def test_nullable_is_what_the_annotation_allows(annotation: Any, nullable: bool) -> None:
    """None is allowed exactly where the annotation says so."""
    assert converter_for(annotation).nullable is nullable


def test_a_converter_is_made_once_for_an_annotation() -> None:
    """Two fields of one type share their converter; what does not hash is made each time and works."""
    assert converter_for(dict[str, Address]) is converter_for(dict[str, Address])
    assert converter_for(Annotated[str, ["unhashable"]]).encode("a") == {"S": "a"}


def test_a_pydantic_field_brings_its_markers() -> None:
    """What stands beside the type in a field chooses how it is stored."""

    class Session(BaseModel):
        expires: Annotated[datetime, EpochSeconds] | None = None
        score: Annotated[float, Field(ge=0), Exact] = 0

    fields = Session.model_fields

    assert field_converter(fields["expires"]).word == "epoch-seconds"
    assert field_converter(fields["expires"]).nullable
    assert field_converter(fields["score"]).word == "float"


WORDS = [
    (dict[str, list[int | None]], "map[list[int | null]]"),
    (tuple[str, Status], "tuple[text, Status]"),
    (frozenset[date], "set[date]"),
    (Cat | Dog, "Cat | Dog"),
    (Annotated[datetime, EpochMilliseconds], "epoch-milliseconds"),
]


@pytest.mark.parametrize(("annotation", "word"), WORDS)
def test_a_type_is_told_in_words(annotation: Any, word: str) -> None:
    """The design document and the tools name a type by its parts."""
    assert converter_for(annotation).word == word
