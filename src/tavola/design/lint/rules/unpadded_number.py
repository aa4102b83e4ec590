"""A sort key contains an unpadded number, which sorts as text.

Why: Strings are compared character by character: `VERSION#10` sorts before `VERSION#2`, so "latest" is wrong
from version 10 on. Among decimals `10.5` sorts before `9.5` and `0.05` before `5e-06`, `0.7` and `0.70` are
different values, and negative numbers sort in reverse.

Example: `SK = VERSION#{version}` with versions 1, 2, … written without padding.

Instead: Zero-pad integers, as `{version:06}` does in Tavola templates. For decimals and negative numbers use
a number attribute as the sort key, or write a fixed number of digits before and after the decimal point, as
Python's `f"{score:08.4f}"` does. Leading zeros alone are not enough: `000.72` would sort before `0000.7`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.lint.heat import is_moment
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names, join_titles
from tavola.model.document import EntityDesign, FieldDesign, SourceDesign, TableDesign

SEVERITY = "error"

_NUMBERS = frozenset({"int", "decimal", "float", "number"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the sort keys with unpadded numbers; advice if nothing uses their order."""
    for table, entity, key in context.all_keys():
        for source in key.range:
            fields = list(_unpadded_numbers(table, entity, source))
            if not fields:
                continue
            readers = [title for field in fields for title in _reads_in_order(context, entity, field)]
            use = f", which affects {join_titles(readers)}" if readers else ""
            shown_key = source.attribute if source.template is None else source.template.source
            yield Defect(
                context.key_place(table, entity, key),
                f"{source.attribute} contains {join_names(field.name for field in fields)} as unpadded text ({shown_key}), so {_describe_wrong_order(fields)}{use}",
                _describe_remedy(fields[0]),
                severity=None if readers else "advice",
            )


def _describe_wrong_order(fields: list[FieldDesign]) -> str:
    if any(is_fraction(field) for field in fields):
        return (
            "10.5 sorts before 9.5, 0.7 and 0.70 are different values, and negative numbers sort in reverse"
        )
    return "10 sorts before 9"


def _describe_remedy(field: FieldDesign) -> str:
    if is_fraction(field):
        return (
            f"Sort by {field.name} as a number attribute, or write a fixed number of digits before and after the decimal "
            f"point, {{{field.name}:08.4f}}"
        )
    return f"Zero-pad it, {{{field.name}:06}}, or sort by a number attribute"


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
        part = next((field for field in entity.fields if field.name == placeholder.field), None)
        if part is None or not _numeric(part) or part.choices is not None or is_moment(part.name):
            continue
        if placeholder.spec == "raw" or (table.foreign and part.key_kind == "text" and not placeholder.spec):
            yield part


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
            or any(
                condition.field == field.name and condition.operator in RANGE_OPERATORS
                for condition in need.where
            )
        )
    ]
