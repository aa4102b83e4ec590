"""Laws of key templates: texts sort as values, are read back whole, never merge, and bounds hold what a filter keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tavola.keys import (
    BoundTemplate,
    KeyAttribute,
    KeySchema,
    KeySpan,
    Part,
    SortCondition,
    Template,
    part_for,
    partition_bounds,
)
from tavola.keys.encodings import predecessor
from tests.properties.strategies import NUMBERS

OPERATORS = ("eq", "lt", "lte", "gt", "gte", "between", "begins_with")
FEWER = settings(max_examples=settings().max_examples // 3)  # of each of many sorts
DELIMITERS = "#|/-:_~!.@,"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Colour(Enum):
    RED = "red#1"
    GREEN = "red"
    BLUE = "a"


STATUSES = ("open", "open#", "closed", "open2")
RANKS = tuple(f"step{11 - place}" for place in range(12))

# Few letters, so that values meet: delimiters and their neighbours, the ends of each length of UTF-8. And the
# escapes of delimiters, which must not be taken for what they stand for.
LETTERS = '\x00\x01!"#$%-./0:;A_`a|}~\x7f\x80\u07ff\ud7ff\ue000\uffff\U0010fffe'
TEXTS = st.one_of(
    st.text(st.sampled_from(LETTERS), max_size=4),
    st.sampled_from(
        ["#", "$", "$23", "$24", "a#b", "a$23b", "a", "ab", "a!", "|", "}7C", "}7D", "}", "/", "02F", "0"]
    ),
)
MOMENTS = st.one_of(
    st.datetimes(
        timezones=st.sampled_from(
            [UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))]
        )
    ),
    st.integers(-3, 3).map(
        lambda us: datetime(2026, 11, 16, 3, 54, 10, tzinfo=UTC) + timedelta(microseconds=us)
    ),
).filter(lambda moment: 1 < moment.year < 9999)
DAYS = st.one_of(st.dates(), st.integers(-2, 2).map(lambda days: date(2026, 3, 1) + timedelta(days=days)))


@dataclass(frozen=True)
class Sort:
    """A kind and spec of part, values of it, and what Python sorts these values by."""

    kind: str
    spec: str
    values: st.SearchStrategy[Any]
    choices: tuple[Any, ...] | None = None
    order: Callable[[Any], Any] | None = None

    def rank(self, value: Any) -> Any:
        return value if self.order is None else self.order(value)

    @property
    def part(self) -> Part:
        return part_for(self.kind, self.spec, self.choices)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _whole(width: int) -> st.SearchStrategy[int]:
    top = 10**width - 1
    return st.one_of(st.integers(-12, 12), st.integers(-top, top), st.sampled_from([top, -top]))


ASCENDING = (
    Sort("text", "", TEXTS),
    Sort("int", "", _whole(19)),
    Sort("int", "6", _whole(6)),
    Sort("int", "02", _whole(2)),
    Sort("int", "", st.sampled_from(Level), tuple(Level)),
    Sort("decimal", "", NUMBERS.map(Decimal)),
    Sort("decimal", "", st.integers(-200, 200).map(lambda n: Decimal(n) / 100)),
    Sort("decimal", "5.2", st.integers(-9999999, 9999999).map(lambda n: Decimal(n) / 100)),
    Sort("decimal", "3.1", st.integers(-120, 120).map(lambda n: Decimal(n) / 10)),
    Sort("decimal", "3", st.integers(-999, 999).map(Decimal)),
    Sort("decimal", "0.2", st.integers(-99, 99).map(lambda n: Decimal(n) / 100)),
    Sort("datetime", "", MOMENTS),
    Sort("datetime", "us", MOMENTS),
    Sort("date", "", DAYS),
    Sort("bool", "", st.booleans()),
    Sort("uuid", "", st.one_of(st.uuids(), st.integers(0, 3).map(lambda n: UUID(int=n)))),
    Sort("enum", "", st.sampled_from(STATUSES), STATUSES),
    Sort("enum", "", st.sampled_from(Colour), tuple(Colour), _plain),
    Sort("enum", "rank", st.sampled_from(RANKS), RANKS, RANKS.index),
    Sort("enum", "rank", st.sampled_from(Colour), tuple(Colour), list(Colour).index),
    Sort("enum", "rank,04", st.sampled_from(RANKS), RANKS, RANKS.index),
)
DESCENDING = tuple(
    dataclasses.replace(sort, spec=f"{sort.spec},desc".lstrip(","))
    for sort in ASCENDING
    if not sort.part.mode
)
LOSSLESS = (*ASCENDING, *DESCENDING)
LOSSY = (
    *(
        Sort("datetime", spec, MOMENTS)
        for spec in ("ms", "s", "minute", "hour", "day", "month", "year", "hour,desc")
    ),
    *(Sort("date", spec, DAYS) for spec in ("month", "year", "desc,month")),
)


def _names(sort: Sort) -> str:
    return f"{sort.kind}:{sort.spec}{'' if sort.choices is None else '/' + str(len(sort.choices))}"


def _misplaced(part: Part, sort: Sort, values: list[Any]) -> list[tuple[Any, Any]]:
    """Return neighbours, as their texts sort, that as values sort otherwise; equal values have one text."""
    ordered = sorted(values, key=lambda value: part.encode(value).encode())
    wrong = []
    for one, other in pairwise(ordered):
        first, second = (other, one) if part.descending else (one, other)
        same = part.encode(one) == part.encode(other)
        rises = sort.rank(first) < sort.rank(second)
        if not (rises if not same else sort.rank(first) == sort.rank(second)):
            wrong.append((one, other))
    return wrong


@pytest.mark.parametrize("sort", LOSSLESS, ids=_names)
@FEWER
@given(data=st.data())
def test_texts_of_a_kind_sort_as_its_values(sort: Sort, data: st.DataObject) -> None:
    """The order of UTF-8 is the order of values, turned round where the part descends; equal values are one text."""
    values = data.draw(st.lists(sort.values, min_size=2, max_size=8))

    assert not _misplaced(sort.part, sort, values)


@pytest.mark.parametrize("sort", LOSSY, ids=_names)
@FEWER
@given(data=st.data())
def test_a_cut_moment_never_sorts_before_an_earlier_one(sort: Sort, data: st.DataObject) -> None:
    """Where digits are dropped, later values may share a text and never come before."""
    values = sorted(data.draw(st.lists(sort.values, min_size=2, max_size=8)), reverse=sort.part.descending)
    texts = [sort.part.encode(value) for value in values]

    assert texts == sorted(texts)


def test_the_law_of_order_can_be_broken() -> None:
    """Numbers without padding, and plain negatives, are found out of order: the law above can fail."""
    sort = Sort("int", "", st.integers())
    unpadded = replace(part_for("int"), encode=str)
    plain_minus = replace(part_for("int"), encode=lambda value: f"{value:06d}")
    upright = replace(part_for("int", "desc"), encode=part_for("int").encode)

    assert not _misplaced(part_for("int"), sort, [-2, -1, 9, 10])
    assert _misplaced(unpadded, sort, [9, 10]) == [(10, 9)]
    assert _misplaced(plain_minus, sort, [-2, -1]) == [(-1, -2)]
    assert _misplaced(upright, sort, [1, 2])


# The values of the first fields, an operator on the next, and its operands.
Comparison = tuple[dict[str, Any], str | None, list[Any]]


@dataclass(frozen=True)
class Drawn:
    """A template, the sorts of its fields, and items."""

    bound: BoundTemplate
    sorts: tuple[Sort, ...]
    items: list[dict[str, Any]]

    def key(self, item: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(sort.rank(item[name]) for name, sort in zip(self.bound.fields, self.sorts, strict=True))


@st.composite
def templates(draw: st.DrawFn, known: tuple[Sort, ...] = LOSSLESS) -> Drawn:
    """Draw a template of one to four fields, with any delimiter, and items that share values."""
    delimiter = draw(st.one_of(st.just("#"), st.sampled_from(DELIMITERS)))
    sorts = tuple(draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)))
    source = draw(st.sampled_from(["", "T", f"T{delimiter}", "{{x}}%s", f"é{delimiter}"]))
    apart = [delimiter, delimiter, f"{delimiter}L{delimiter}", f"{delimiter}\x00"]
    for place, sort in enumerate(sorts):
        spec = f":{sort.spec}" if sort.spec else ""
        source += f"{{f{place}{spec}}}"
        if place < len(sorts) - 1:
            source += draw(st.sampled_from([*apart, "", "x"] if sort.part.closed else apart))
        else:
            source += draw(st.sampled_from(["", "", "", f"{delimiter}END"]))
    bound = Template.parse(source, delimiter).bind(
        {f"f{place}": sort.part for place, sort in enumerate(sorts)}
    )
    pools = [draw(st.lists(sort.values, min_size=1, max_size=4)) for sort in sorts]
    picks = st.fixed_dictionaries({f"f{place}": st.sampled_from(pool) for place, pool in enumerate(pools)})
    items = [item for item in draw(st.lists(picks, min_size=2, max_size=8)) if _not_empty(bound, item)]
    return Drawn(bound, sorts, items)


def _not_empty(bound: BoundTemplate, item: dict[str, Any]) -> bool:
    return bound.source != "{f0}" or item["f0"] != ""


@given(templates())
def test_keys_sort_as_tuples_of_values(drawn: Drawn) -> None:
    """Keys of a template sort as the tuples of their values do, each field in its own direction."""

    def wants(item: dict[str, Any]) -> list[Any]:
        return [
            _turned(rank, sort.part.descending)
            for rank, sort in zip(drawn.key(item), drawn.sorts, strict=True)
        ]

    ordered = sorted(drawn.items, key=lambda item: drawn.bound.render(item).encode())

    assert [wants(item) for item in ordered] == sorted(wants(item) for item in drawn.items)


class _Reverse:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reverse) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reverse) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _turned(rank: Any, descending: bool) -> Any:
    return _Reverse(rank) if descending else rank


@given(templates())
def test_a_key_is_read_back_as_it_was_made(drawn: Drawn) -> None:
    """What a template made it reads, to the same values."""
    for item in drawn.items:
        assert drawn.bound.read(drawn.bound.render(item)) == item


@given(templates(), st.data())
def test_what_a_template_reads_it_would_have_made(drawn: Drawn, data: st.DataObject) -> None:
    """A text that is read is one that the values read make; any other is none of the template's."""
    bits = st.one_of(st.text(st.sampled_from("0123456789-~.$#TZ"), min_size=1, max_size=2), TEXTS)
    for text in [drawn.bound.render(item) for item in drawn.items]:
        at = data.draw(st.integers(0, len(text)))
        spoilt = text[:at] + data.draw(bits) + text[at + data.draw(st.integers(0, 2)) :]
        values = drawn.bound.read(spoilt)

        assert values is None or drawn.bound.render(values) == spoilt


@given(templates())
def test_two_keys_are_one_only_if_their_values_are(drawn: Drawn) -> None:
    """No two different tuples of values make one key, whatever delimiters the values hold."""
    keys = {drawn.bound.render(item) for item in drawn.items}

    assert len(keys) == len({drawn.key(item) for item in drawn.items})


@given(templates())
def test_a_prefix_holds_the_keys_that_share_its_values(drawn: Drawn) -> None:
    """A key begins with the prefix of the first values of another exactly when it has these values."""
    for one in drawn.items:
        for upto in range(len(drawn.bound.fields)):
            prefix = drawn.bound.prefix(one, upto)
            for other in drawn.items:
                shares = drawn.key(one)[:upto] == drawn.key(other)[:upto]
                assert drawn.bound.render(other).startswith(prefix) is shares


def _satisfies(rank: Any, op: str, operands: list[Any]) -> bool:
    first = operands[0]
    match op:
        case "eq":
            return bool(rank == first)
        case "lt":
            return bool(rank < first)
        case "lte":
            return bool(rank <= first)
        case "gt":
            return bool(rank > first)
        case "gte":
            return bool(rank >= first)
        case "between":
            return bool(first <= rank <= operands[1])
        case _:
            return bool(rank.startswith(first))


def _wanted(drawn: Drawn, fixed: dict[str, Any], op: str | None, operands: list[Any]) -> list[bool]:
    """Return of each item whether its values satisfy a comparison."""
    ranks = [
        drawn.sorts[place].rank(fixed[name]) for place, name in enumerate(drawn.bound.fields[: len(fixed)])
    ]
    keys = [drawn.key(item) for item in drawn.items]
    if op is None:
        return [list(key[: len(fixed)]) == ranks for key in keys]
    against = [
        operand if op == "begins_with" else drawn.sorts[len(fixed)].rank(operand) for operand in operands
    ]
    return [list(key[: len(fixed)]) == ranks and _satisfies(key[len(fixed)], op, against) for key in keys]


def _astray(
    drawn: Drawn, comparisons: Iterator[Comparison]
) -> Iterator[tuple[str, Comparison, dict[str, Any]]]:
    """Give each item that bounds miss, or hold without need though they call themselves exact."""
    texts = [drawn.bound.render(item) for item in drawn.items]
    for comparison in comparisons:
        span = drawn.bound.bounds(comparison[0], comparison[1], *comparison[2])
        for item, text, wanted in zip(drawn.items, texts, _wanted(drawn, *comparison), strict=True):
            held = span.holds(text)
            if wanted and not held:
                yield "missed", comparison, item
            if held and not wanted and span.exact:
                yield "added", comparison, item


def _comparisons(drawn: Drawn) -> Iterator[Comparison]:
    """Give every comparison on every field with the values that the items have."""
    for count, name in enumerate(drawn.bound.fields):
        kind = drawn.sorts[count].kind
        operands = list({drawn.bound.prefix(item, count + 1): item[name] for item in drawn.items}.values())
        for chosen in drawn.items[:2]:
            fixed = {fixed: chosen[fixed] for fixed in drawn.bound.fields[:count]}
            yield fixed, None, []
            for op in OPERATORS if kind == "text" else OPERATORS[:-1]:
                for place, operand in enumerate(operands):
                    yield fixed, op, [operand, operands[place - 1]] if op == "between" else [operand]
    for chosen in drawn.items:
        yield chosen, None, []


def _answers(span: KeySpan, text: str) -> bool:
    """Tell whether a query with the condition would answer with a sort key, by the order of keys in the store."""
    if span.empty:
        return False
    schema = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
    condition = span.condition()
    if condition is None:
        bounds = partition_bounds(schema, [{"S": "p"}])
    elif condition[0] == "=":
        bounds = partition_bounds(schema, [{"S": "p"}], [{"S": condition[1][0]}])
    else:
        last = SortCondition(condition[0], tuple({"S": text} for text in condition[1]))
        bounds = partition_bounds(schema, [{"S": "p"}], (), last)
    return bounds.holds(schema.key_of({"pk": {"S": "p"}, "sk": {"S": text}}))


@given(templates())
def test_bounds_hold_what_a_filter_keeps(drawn: Drawn) -> None:
    """A key lies in the bounds of a comparison exactly when its values satisfy it."""
    assert not list(_astray(drawn, _comparisons(drawn)))
    assert all(drawn.bound.bounds(fixed, op, *operands).exact for fixed, op, operands in _comparisons(drawn))


@given(templates(), st.data())
def test_bounds_hold_for_operands_that_no_item_has(drawn: Drawn, data: st.DataObject) -> None:
    """The same with operands between, below and above the values of the items."""
    fresh = [
        dict(zip(drawn.bound.fields, [data.draw(each.values) for each in drawn.sorts], strict=True))
        for _ in range(2)
    ]
    asked = Drawn(drawn.bound, drawn.sorts, [item for item in fresh if _not_empty(drawn.bound, item)])

    assert not list(_astray(drawn, _comparisons(asked)))


@given(templates((*LOSSLESS[::4], *LOSSY)))
def test_bounds_of_cut_moments_miss_nothing_and_say_so(drawn: Drawn) -> None:
    """Where digits are dropped, bounds hold all that satisfies, and say whether they hold more."""
    assert not list(_astray(drawn, _comparisons(drawn)))


@given(templates(), st.data())
def test_bounds_are_one_condition_of_dynamodb(drawn: Drawn, data: st.DataObject) -> None:
    """The one condition on a sort key that bounds become answers with the keys that the bounds hold."""
    asked = list(_comparisons(drawn))
    for fixed, op, operands in data.draw(st.lists(st.sampled_from(asked), max_size=8)) if asked else []:
        span = drawn.bound.bounds(fixed, op, *operands)
        for item in drawn.items:
            text = drawn.bound.render(item)
            assert span.holds(text) is _answers(span, text)
        if span.lower is not None and span.upper is not None:
            assert span.lower_inclusive
            assert span.upper_inclusive


def test_the_law_of_bounds_can_be_broken() -> None:
    """Numbers without padding, and a direction that is not the texts', are found out: the laws above can fail."""
    sorts = (Sort("int", "03", _whole(3)), Sort("text", "", TEXTS))
    items = [{"f0": number, "f1": text} for number in (8, 9, 10, 11) for text in ("", "x")]
    bound = Template.parse("V#{f0:03}#{f1}").bind({"f0": part_for("int"), "f1": part_for("text")})
    first, *rest = bound.steps

    def found(**change: Any) -> bool:
        broken = replace(bound, steps=(replace(first, part=replace(first.part, **change)), *rest))
        drawn = Drawn(broken, sorts, items)
        return any(_astray(drawn, _comparisons(drawn)))

    assert not found()
    assert found(encode=str)
    assert found(descending=True)
    assert found(encode=part_for("int", "03,desc").encode)
    assert found(least="01")


@given(TEXTS.filter(bool), TEXTS)
def test_no_text_lies_just_below_another(text: str, other: str) -> None:
    """The text before another is below it, and every other text is below the one or not below the other."""
    below = predecessor(text)

    assert below < text
    assert other <= below or other >= text
    assert below.encode() < text.encode()


@given(templates(), templates())
def test_templates_that_made_one_key_may_meet(one: Drawn, other: Drawn) -> None:
    """A no is certain: where two templates made the same key they may meet, and one may always meet itself."""
    assert one.bound.may_meet(one.bound)
    for drawn, against in ((one, other), (other, one)):
        for item in drawn.items:
            if against.bound.read(drawn.bound.render(item)) is not None:
                assert drawn.bound.may_meet(against.bound)
