"""Key templates such as `TICKET#{status}#{created_at:desc}`: parse, render, read back, and turn comparisons into key ranges.

The problem: a single table keeps many kinds of items under text keys, and a query may state only one condition on the sort key.
So the text must sort exactly as the tuple of its values, must be readable without ambiguity, and a comparison of one field must
become one range of texts.

The idea: each field is encoded so that texts compare as values do (`encodings`), and a text followed by another
field is escaped so that it never contains the delimiter. Template.parse splits a template into literals and fields;
`bind` gives each field its encoding (`Part`). A template that could not be read back, or would sort differently from its values,
is rejected at that point, not when a key is made.

    TICKET#   {status}   #   {created_at:desc}      created_at >= v with status = open:
    literal    Part   literal      Part             P = "TICKET#open#"
                                                    from P to P + encode(v) + LAST   (descending: the ends swap)

Ranges: all keys that agree on the first fields begin with the same text P. Keys with value v in the next field begin with
P + encode(v) + L, where L is the literal after it. No text in a key contains LAST (U+10FFFF), so the keys of v are exactly
those from P + encode(v) + L to P + encode(v) + L + LAST, and keys of other values lie entirely before or after. Every comparison
therefore has two inclusive ends, as BETWEEN needs; an exclusive end uses `predecessor`, the greatest text below another.

Cost: rendering is one join per key. Given up: text fields cannot sort in descending order, and a timestamp truncated above
microseconds cannot be read back exactly (the part is lossy, and ranges over it may hold more than was asked for).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tavola.keys.bounds import KeySpan
from tavola.keys.encodings import predecessor
from tavola.keys.errors import KeyPartMissing, KeyPartRefused, TemplateRefused
from tavola.keys.part import LAST, Part, Shape, Signs, literal_shape
from tavola.keys.parts import DELIMITER, part_at, part_for

_BRACE = re.compile(r"\{\{|\}\}|\{|\}")
_REVERSED = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte", "between": "between"}
_OPERANDS = {"eq": 1, "lt": 1, "lte": 1, "gt": 1, "gte": 1, "between": 2, "begins_with": 1}


class Placeholder(Struct, frozen=True):
    """A field in a template, what is said of it after the colon, and where it stands."""

    field: str
    spec: str
    place: int


class Template(Struct, frozen=True):
    """The structure of a template: literals and fields, which know no types yet."""

    source: str
    delimiter: str
    segments: tuple[str | Placeholder, ...]

    @classmethod
    def parse(cls, text: str, delimiter: str = DELIMITER) -> Template:
        """Return the template that a text spells; raise `TemplateRefused` if it is none."""
        return _parse(text, delimiter)

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """Return the places of fields, in order; a field may have several."""
        return tuple(segment for segment in self.segments if isinstance(segment, Placeholder))

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields, each once, in the order of their first place."""
        return tuple(dict.fromkeys(placeholder.field for placeholder in self.placeholders))

    def bind(self, parts: Mapping[str, Part]) -> BoundTemplate:
        """Return the template with its fields' encodings.

        Of a part given, kind and choices count; what the template says of a place is said there. Raise
        `TemplateRefused` where it cannot be read back or would not sort.
        """
        steps: list[TemplateStep] = []
        literal = ""
        for position, segment in enumerate(self.segments):
            if isinstance(segment, str):
                literal = segment
                continue
            following = self.segments[position + 1] if position + 1 < len(self.segments) else None
            steps.append(TemplateStep(literal, segment.field, self._part(segment, following, parts)))
            literal = ""
        return BoundTemplate(self.source, self.delimiter, self.fields, tuple(steps), literal)

    def _part(
        self, segment: Placeholder, following: str | Placeholder | None, parts: Mapping[str, Part]
    ) -> Part:
        given_part = parts.get(segment.field)
        if given_part is None:
            known = ", ".join(parts) or "none"
            raise TemplateRefused(
                f"unknown field {segment.field!r}", f"name one of {known}", self.source, segment.place
            )
        try:
            part = part_for(given_part.kind, segment.spec, given_part.choices)
        except TemplateRefused as refused:
            raise refused.within(self.source, segment.place) from None
        part = part_at(part, self.delimiter, following is None)
        if following is None or part.closed:
            return part
        if isinstance(following, Placeholder):
            raise TemplateRefused(
                f"{{{segment.field}}} has variable width and {{{following.field}}} follows it directly, so they cannot be separated",
                f"put the delimiter {self.delimiter!r} between them",
                self.source,
                following.place,
            )
        if part.mode != "raw" and not following.startswith(self.delimiter):
            raise TemplateRefused(
                f"{{{segment.field}}} is of any width and {following!r} follows it, which its values may hold",
                f"put the delimiter {self.delimiter!r} after it, use another delimiter, "
                f"or declare with {{{segment.field}:raw}} that no value holds it",
                self.source,
                segment.place,
            )
        return part


class TemplateStep(Struct, frozen=True):
    """A field of a bound template: the literal before it, its name, and how it is written there."""

    literal: str
    field: str
    part: Part


class BoundTemplate(Struct, frozen=True, eq=False):
    """A template that makes keys."""

    source: str
    delimiter: str
    fields: tuple[str, ...]
    steps: tuple[TemplateStep, ...]
    tail: str  # the literal after the last field
    constant: str | None = None  # the key itself if there is no field; this and the following are derived
    lossy_fields: frozenset[str] = frozenset()  # the fields that cannot be read back exactly
    _format: str = ""
    _encoders: tuple[Any, ...] = ()
    _pattern: str = ""

    def __post_init__(self) -> None:
        lossless_fields = {step.field for step in self.steps if not step.part.is_lossy}
        values: dict[str, Any] = {
            "constant": None if self.steps else self.tail,
            "lossy_fields": frozenset(self.fields) - lossless_fields,
            "_format": "%s".join(
                [step.literal.replace("%", "%%") for step in self.steps] + [self.tail.replace("%", "%%")]
            ),
            "_pattern": "".join(f"{re.escape(step.literal)}({step.part.pattern})" for step in self.steps)
            + re.escape(self.tail),
            "_encoders": tuple((step.field, step.part.encode) for step in self.steps),
        }
        for name, value in values.items():
            force_setattr(self, name, value)

    @property
    def literal_prefix(self) -> str:
        """Return what every key begins with."""
        return self.steps[0].literal if self.steps else self.tail

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the key of these values; raise `KeyPartMissing` or `KeyPartRefused` if they make none."""
        try:
            text = self._format % tuple([encode(values[name]) for name, encode in self._encoders])
        except (KeyError, KeyPartRefused) as error:
            raise self._find_bad_field(values) or error from None
        if not text:
            raise KeyPartRefused(
                "a key cannot be empty; use a non-empty string", text, self.fields[-1], self.source
            )
        return text

    def read(self, text: str) -> dict[str, Any] | None:
        """Return the values that a key was made of; None if this template cannot have made it.

        A field that is written without its last digits comes back without them.
        """
        if not self.steps:
            return {} if text == self.tail else None
        match = _compile_pattern(self._pattern).fullmatch(text)
        if match is None:
            return None
        values: dict[str, Any] = {}
        grains: dict[str, int] = {}
        try:
            for position, step in enumerate(self.steps, 1):
                # Of several places the finest is read; the others are held against it below.
                if step.field not in values or step.part.grain < grains[step.field]:
                    values[step.field] = step.part.decode(match[position])
                    grains[step.field] = step.part.grain
            return values if self.render(values) == text else None
        except (ValueError, KeyError, KeyPartRefused):
            return None

    def prefix(self, values: Mapping[str, Any], upto: int) -> str:
        """Return the start of all keys whose first `upto` fields have these values, up to the next field."""
        return self._start(values, self.fields[:upto])[0]

    def bounds(self, fixed: Mapping[str, Any], op: str | None = None, *operands: Any) -> KeySpan:
        """Return the keys whose first fields equal `fixed` and whose next one compares so with the operands.

        The caller speaks of values: where a field is written in descending order the ends are turned round.
        """
        known = self.fields[: len(fixed)]
        for name in fixed:
            if name not in self.fields:
                raise TemplateRefused(
                    f"the template has no field {name!r}", f"name one of {self.fields}", self.source
                )
        start, at, exact = self._start(fixed, known)
        if op is None:
            if at == len(self.steps):
                return KeySpan(equal=start, exact=exact)
            return KeySpan(prefix=start or None, exact=exact)
        if len(operands) != _OPERANDS.get(op):
            remedy = f"use one of {', '.join(_OPERANDS)}" if op not in _OPERANDS else f"give {_OPERANDS[op]}"
            raise TemplateRefused(
                f"{op!r} with {len(operands)} operands is not a comparison", remedy, self.source
            )
        if at == len(self.steps):
            raise TemplateRefused("there is no field left to compare", "fix fewer fields", self.source)
        name = self.fields[len(fixed)]
        if any(operand is None for operand in operands):
            raise KeyPartMissing(name, self.source)
        if op == "eq":
            return self.bounds({**fixed, name: operands[0]})
        try:
            span = self._range(start, at, op, operands)
        except KeyPartRefused as refused:
            raise refused.within(name, self.source) from None
        return span if exact else replace(span, exact=False)

    def may_meet(self, other: BoundTemplate) -> bool:
        """Tell whether some values of both could make the same key; a no is certain, a yes is not."""
        if self.constant is not None and other.constant is not None:
            return self.constant == other.constant
        return shapes_intersect(self._run(), other._run())

    def _start(self, values: Mapping[str, Any], known: tuple[str, ...]) -> tuple[str, int, bool]:
        """Return the text up to the first field that is not known, its step, and whether none was cut."""
        text = ""
        bound_fields: set[str] = set()
        for position, step in enumerate(self.steps):
            text += step.literal
            if step.field not in known:
                return text, position, bound_fields.issuperset(known)
            try:
                text += step.part.encode(values[step.field])
            except (KeyError, KeyPartRefused) as error:
                raise self._find_bad_field(values) or error from None
            if not step.part.is_lossy:
                bound_fields.add(step.field)
        text += self.tail
        if not text:
            raise KeyPartRefused(
                "a key cannot be empty; use a non-empty string", text, self.fields[-1], self.source
            )
        return text, len(self.steps), bound_fields.issuperset(known)

    def _range(self, start: str, at: int, op: str, operands: tuple[Any, ...]) -> KeySpan:
        part = self.steps[at].part
        if op == "begins_with":
            if part.kind != "text":
                raise KeyPartRefused(
                    f"a part of kind {part.kind} does not support begins_with; compare the whole value",
                    operands[0],
                )
            return KeySpan(prefix=start + part.encode(operands[0]) or None)
        if not part.ordered:
            raise KeyPartRefused("its text does not sort like its value; only eq is supported", operands[0])
        end = at + 1
        # Consecutive parts of the same field (`{at:day}#{at}`) are compared as one.
        while (
            end < len(self.steps)
            and self.steps[end].field == self.steps[at].field
            and self.steps[end].part.descending == part.descending
        ):
            end += 1
        unit = self.steps[at:end]
        single = end == len(self.steps)
        closing = self.tail if single else self.steps[end].literal

        def low(value: Any) -> str:
            head = start + part.encode(value)
            return head + "".join(step.literal + step.part.encode(value) for step in unit[1:]) + closing

        finest = min((step.part for step in unit), key=lambda part: part.grain)
        op, exact = _widen_comparison(op, operands, finest) if finest.is_lossy else (op, True)
        if part.descending:
            op, operands = _REVERSED[op], operands[::-1]
        first, last = low(operands[0]), low(operands[-1])
        lower: str | None = start + part.least
        upper: str | None = start + part.most + LAST if start + part.most else None
        upper_inclusive = True
        if op in ("gte", "between"):
            lower = first
        elif op == "gt":
            lower = first + ("\x00" if single else LAST)
        if op in ("lte", "between"):
            upper = last if single else last + LAST
        elif op == "lt" and lower:
            upper = predecessor(last)
        elif op == "lt":
            upper, upper_inclusive = last, False
        empty = upper is not None and ((lower or "") > upper or not upper)
        return KeySpan(
            lower=lower or None, upper=upper, upper_inclusive=upper_inclusive, empty=empty, exact=exact
        )

    def _run(self) -> list[Choices]:
        run: list[Choices] = []
        for step in self.steps:
            run += [(literal_shape(step.literal),), step.part.shapes]
        return [*run, (literal_shape(self.tail),)]

    def _find_bad_field(self, values: Mapping[str, Any]) -> KeyPartMissing | KeyPartRefused | None:
        for step in self.steps:
            value = values.get(step.field)
            if value is None:
                return KeyPartMissing(step.field, self.source)
            try:
                step.part.encode(value)
            except KeyPartRefused as refused:
                return refused.within(step.field, self.source)
        return None


def _widen_comparison(op: str, operands: tuple[Any, ...], part: Part) -> tuple[str, bool]:
    """Return the comparison that misses nothing where a part drops digits, and whether it adds nothing."""
    on_grain = part.decode(part.encode(operands[0])) == operands[0]
    if op in ("gte", "lt") and on_grain:
        return op, True
    return {"gt": "gte", "lt": "lte"}.get(op, op), False


@lru_cache(maxsize=4096)
def _parse(text: str, delimiter: str) -> Template:
    is_punctuation = len(delimiter) == 1 and "!" <= delimiter <= "~" and not delimiter.isalnum()
    if not is_punctuation or delimiter in "{}":
        raise TemplateRefused(
            f"{delimiter!r} is not a delimiter",
            "use one ASCII punctuation character other than a brace",
            text,
        )
    if LAST in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TemplateRefused("a key cannot contain U+10FFFF or a lone surrogate", "remove it", text)
    if not text:
        raise TemplateRefused("a key template cannot be empty", "add a literal or a field", text)
    segments: list[str | Placeholder] = []
    literal = ""
    at = 0
    while match := _BRACE.search(text, at):
        literal += text[at : match.start()]
        at = match.end()
        if match[0] in ("{{", "}}"):
            literal += match[0][0]
            continue
        if match[0] == "}":
            raise TemplateRefused("unmatched }", "write }} for a brace", text, match.start())
        end = text.find("}", at)
        if end < 0 or "{" in text[at:end]:
            raise TemplateRefused(
                "unmatched {", "close it with }, or write {{ for a brace", text, match.start()
            )
        name, _, spec = text[at:end].partition(":")
        if not name.isidentifier():
            raise TemplateRefused(
                f"{name!r} is not a field name" if name else "a field has no name",
                "write {field} or {field:spec}",
                text,
                match.start(),
            )
        if literal:
            segments.append(literal)
            literal = ""
        segments.append(Placeholder(name, spec, match.start()))
        at = end + 1
    literal += text[at:]
    if literal:
        segments.append(literal)
    return Template(text, delimiter, tuple(segments))


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


Choices = tuple[Shape, ...]


# Whether two templates can produce the same text: each is a sequence of shapes (literals and sets of possible characters), which is
# a small finite automaton. Both automata are walked side by side; if both can end at once, a common text exists. The answer "no" is
# certain. "Yes" may be wrong, for example if a field occurs twice in a template: both occurrences are treated as independent.
class _Automaton:
    """Places, where each may lead on a sign, and where without one; the last place is the end."""

    def __init__(self, run: Sequence[Choices]) -> None:
        self.steps: list[list[tuple[Signs, int]]] = [[]]
        self.free: list[list[int]] = [[]]
        at = 0
        for choices in run:
            ends = [self._walk(at, shape) for shape in choices]
            at = self._place()
            for end in ends:
                self.free[end].append(at)
        self.end = at

    def _place(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _walk(self, start: int, shape: Shape) -> int:
        # From a place of its own: a loop must not be open to the other choices.
        at = self._place()
        self.free[start].append(at)
        for held, count in shape:
            following = self._place()
            if count == "one":
                self.steps[at].append((held, following))
            else:
                self.free[at].append(following)
                self.steps[following].append((held, following))
            at = following
        return at


def shapes_intersect(one: Sequence[Choices], other: Sequence[Choices]) -> bool:
    """Tell whether some text fits both runs."""
    left, right = _Automaton(one), _Automaton(other)
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        a, b = todo.pop()
        if (a, b) == (left.end, right.end):
            return True
        reached = [(following, b) for following in left.free[a]]
        reached += [(a, following) for following in right.free[b]]
        reached += [
            (to_a, to_b) for held, to_a in left.steps[a] for also, to_b in right.steps[b] if held & also
        ]
        for pair in reached:
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return False
