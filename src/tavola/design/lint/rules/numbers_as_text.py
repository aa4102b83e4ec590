"""A number is part of a sort key as text, and sorts as text.

Why: Text is compared sign by sign: `VERSION#10` comes before `VERSION#2`, and "latest" is wrong from the tenth on. Of fractions `10.5`
comes before `9.5` and `0.05` before `5e-06`, `0.7` and `0.70` are two values, and negative numbers stand in reverse.

Example: `SK = VERSION#{version}` with versions 1, 2, … written as they stand.

Instead: Write whole numbers with leading zeros, as `{version:06}` does in a design of Tavola. For fractions and what may be negative let
a number attribute be the sort key; or write a fixed number of digits before and behind the point, as Python's `f"{score:08.4f}"` does:
zeros in front alone would put `000.72` before `0000.7`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import is_moment
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names, join_titles
from tavola.model.document import EntityDesign, FieldDesign, SourceDesign, TableDesign

SEVERITY: Severity = "error"

_NUMBERS = frozenset({"int", "decimal", "float", "number"})


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the sort keys with unpadded numbers; advice if nothing uses their order."""
    for table, entity, key in context.all_keys():
        for source in key.range:
            fields = list(_unpadded_numbers(table, entity, source))
            if not fields:
                continue
            asked = [title for field in fields for title in _reads_in_order(context, entity, field)]
            use = f", which matters to {join_titles(asked)}" if asked else ""
            made = source.attribute if source.template is None else source.template.source
            yield Finding(
                "numbers-as-text",
                SEVERITY if asked else "advice",
                context.key_place(table, entity, key),
                f"{source.attribute} has {join_names(field.name for field in fields)} as text in {made}, so that {_describe_wrong_order(fields)}{use}",
                _remedy(fields[0]),
            )


def _describe_wrong_order(fields: list[FieldDesign]) -> str:
    if any(is_fraction(field) for field in fields):
        return "10.5 sorts before 9.5, 0.7 and 0.70 are two values, and negative ones are in reverse"
    return "10 sorts before 9"


def _remedy(field: FieldDesign) -> str:
    if is_fraction(field):
        return (
            f"let {field.name} be a number attribute that an index is sorted by, or write as many digits before and behind the point of "
            f"each, {{{field.name}:08.4f}}"
        )
    return f"write it with leading zeros, {{{field.name}:06}}, or as a number attribute of its own"


def is_fraction(field: FieldDesign) -> bool:
    """Return whether a field can have decimals, which zero-padding does not sort."""
    return field.type in ("decimal", "float", "double")


def _unpadded_numbers(
    table: TableDesign, entity: EntityDesign, source: SourceDesign
) -> Iterator[FieldDesign]:
    """Yield the fields of a key attribute that are unpadded numbers. Epoch times keep their length for centuries."""
    if source.template is None:
        if source.field is not None and source.tag == "S":
            field = entity.field(source.field)
            if _numeric(field):
                yield field
        return
    for placeholder in source.template.placeholders:
        part = _known(entity, placeholder.field)
        if part is None or not _numeric(part) or part.choices is not None or is_moment(part.name):
            continue
        if placeholder.spec == "raw" or (table.foreign and part.key_kind == "text" and not placeholder.spec):
            yield part


def _known(entity: EntityDesign, name: str) -> FieldDesign | None:
    return next((field for field in entity.fields if field.name == name), None)


def _numeric(field: FieldDesign) -> bool:
    return field.tags == ("N",) or (field.type in _NUMBERS and "S" in field.tags)


def _reads_in_order(context: LintContext, entity: EntityDesign, field: FieldDesign) -> list[str]:
    """Return the reads that use a range or the order of a field."""
    return [
        need.title
        for need in context.needs
        if entity.name in need.entities
        and (
            field.name in need.order
            or any(each.field == field.name and each.operator in RANGE_OPERATORS for each in need.where)
        )
    ]
