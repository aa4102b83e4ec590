"""Key templates such as `TICKET#{status}#{created_at:desc}`: parse, render, read back, and turn comparisons into key ranges.

The problem: a single table keeps many kinds of items under text keys, and a query may state only one condition on the sort key.
So the text must sort exactly as the tuple of its values, must be readable without ambiguity, and a comparison of one field must
become one range of texts.

The idea: each field is encoded so that texts compare as values do (`numerals`, `decimals`, `moments`), and a text followed by another
field is escaped so that it never contains the delimiter (`texts`). Template.parse splits a template into literals and fields;
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
from collections.abc import Mapping
from functools import lru_cache
from string import punctuation
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tavola.keys.errors import KeyPartMissing, KeyPartRefused, TemplateRefused
from tavola.keys.meeting import Choices, shapes_intersect
from tavola.keys.part import LAST, Part, literal_shape
from tavola.keys.parts import DELIMITER, part_at, part_for
from tavola.keys.spans import KeySpan
from tavola.keys.texts import predecessor

_BRACE = re.compile(r"\{\{|\}\}|\{|\}")
_TURNED = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte", "between": "between"}
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
        return tuple(each for each in self.segments if isinstance(each, Placeholder))

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields, each once, in the order of their first place."""
        return tuple(dict.fromkeys(each.field for each in self.placeholders))

    def bind(self, parts: Mapping[str, Part]) -> BoundTemplate:
        """Return the template with its fields' encodings.

        Of a part given, kind and choices count; what the template says of a place is said there. Raise
        `TemplateRefused` where it cannot be read back or would not sort.
        """
        steps: list[TemplateStep] = []
        literal = ""
        for at, segment in enumerate(self.segments):
            if isinstance(segment, str):
                literal = segment
                continue
            following = self.segments[at + 1] if at + 1 < len(self.segments) else None
            steps.append(TemplateStep(literal, segment.field, self._part(segment, following, parts)))
            literal = ""
        return BoundTemplate(self.source, self.delimiter, self.fields, tuple(steps), literal)

    def _part(
        self, segment: Placeholder, following: str | Placeholder | None, parts: Mapping[str, Part]
    ) -> Part:
        given = parts.get(segment.field)
        if given is None:
            known = ", ".join(parts) or "none"
            raise TemplateRefused(
                f"there is no field {segment.field!r}", f"name one of {known}", self.source, segment.place
            )
        try:
            part = part_for(given.kind, segment.spec, given.choices)
        except TemplateRefused as refused:
            raise refused.within(self.source, segment.place) from None
        part = part_at(part, self.delimiter, following is None)
        if following is None or part.closed:
            return part
        if isinstance(following, Placeholder):
            raise TemplateRefused(
                f"{{{segment.field}}} is of any width and {{{following.field}}} touches it, so they cannot be told apart",
                f"put the delimiter {self.delimiter!r} between them",
                self.source,
                following.place,
            )
        if part.mode != "raw" and not following.startswith(self.delimiter):
            raise TemplateRefused(
                f"{{{segment.field}}} is of any width and {following!r} follows it, which its values may hold",
                f"let the delimiter {self.delimiter!r} follow it, give the template another delimiter, "
                f"or promise with {{{segment.field}:raw}} that no value holds it",
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
        whole = {step.field for step in self.steps if not step.part.is_lossy}
        values: dict[str, Any] = {
            "constant": None if self.steps else self.tail,
            "lossy_fields": frozenset(self.fields) - whole,
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
            raise KeyPartRefused("a key cannot be empty; give a text", text, self.fields[-1], self.source)
        return text

    def read(self, text: str) -> dict[str, Any] | None:
        """Return the values that a key was made of; None if this template cannot have made it.

        A field that is written without its last digits comes back without them.
        """
        if not self.steps:
            return {} if text == self.tail else None
        found = _compile_pattern(self._pattern).fullmatch(text)
        if found is None:
            return None
        values: dict[str, Any] = {}
        grains: dict[str, int] = {}
        try:
            for at, step in enumerate(self.steps, 1):
                # Of several places the finest is read; the others are held against it below.
                if step.field not in values or step.part.grain < grains[step.field]:
                    values[step.field] = step.part.decode(found[at])
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
                    f"there is no field {name!r} in it", f"name one of {self.fields}", self.source
                )
        start, at, exact = self._start(fixed, known)
        if op is None:
            if at == len(self.steps):
                return KeySpan(equal=start, exact=exact)
            return KeySpan(prefix=start or None, exact=exact)
        if len(operands) != _OPERANDS.get(op):
            remedy = f"use one of {', '.join(_OPERANDS)}" if op not in _OPERANDS else f"give {_OPERANDS[op]}"
            raise TemplateRefused(
                f"{op!r} with {len(operands)} operands is no comparison", remedy, self.source
            )
        if at == len(self.steps):
            raise TemplateRefused("no field is left to compare", "fix fewer fields", self.source)
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
        whole: set[str] = set()
        for at, step in enumerate(self.steps):
            text += step.literal
            if step.field not in known:
                return text, at, whole.issuperset(known)
            try:
                text += step.part.encode(values[step.field])
            except (KeyError, KeyPartRefused) as error:
                raise self._find_bad_field(values) or error from None
            if not step.part.is_lossy:
                whole.add(step.field)
        text += self.tail
        if not text:
            raise KeyPartRefused("a key cannot be empty; give a text", text, self.fields[-1], self.source)
        return text, len(self.steps), whole.issuperset(known)

    def _range(self, start: str, at: int, op: str, operands: tuple[Any, ...]) -> KeySpan:
        part = self.steps[at].part
        if op == "begins_with":
            if part.kind != "text":
                raise KeyPartRefused(
                    f"a part of kind {part.kind} begins with nothing; compare it whole", operands[0]
                )
            return KeySpan(prefix=start + part.encode(operands[0]) or None)
        if not part.ordered:
            raise KeyPartRefused(
                "its texts do not sort as its values do; compare it with eq alone", operands[0]
            )
        end = at + 1
        # A field told in several places one after the other (`{at:day}#{at}`) is compared as one.
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
            op, operands = _TURNED[op], operands[::-1]
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
    if len(delimiter) != 1 or delimiter not in punctuation or delimiter in "{}":
        raise TemplateRefused(
            f"{delimiter!r} is no delimiter", "give one ASCII punctuation character that is no brace", text
        )
    if LAST in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TemplateRefused("a key cannot hold U+10FFFF nor half a surrogate pair", "leave it out", text)
    if not text:
        raise TemplateRefused("it is empty, and a key cannot be", "give it a literal or a field", text)
    segments: list[str | Placeholder] = []
    literal = ""
    at = 0
    while found := _BRACE.search(text, at):
        literal += text[at : found.start()]
        at = found.end()
        if found[0] in ("{{", "}}"):
            literal += found[0][0]
            continue
        if found[0] == "}":
            raise TemplateRefused("a } closes nothing", "write }} for a brace", text, found.start())
        end = text.find("}", at)
        if end < 0 or "{" in text[at:end]:
            raise TemplateRefused(
                "a { is not closed", "close it with }, or write {{ for a brace", text, found.start()
            )
        name, _, spec = text[at:end].partition(":")
        if not name.isidentifier():
            raise TemplateRefused(
                f"{name!r} is no name of a field" if name else "a field has no name",
                "write {field} or {field:spec}",
                text,
                found.start(),
            )
        if literal:
            segments.append(literal)
            literal = ""
        segments.append(Placeholder(name, spec, found.start()))
        at = end + 1
    literal += text[at:]
    if literal:
        segments.append(literal)
    return Template(text, delimiter, tuple(segments))


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)
