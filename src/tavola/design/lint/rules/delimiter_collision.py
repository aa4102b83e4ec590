"""Two different items can get the same key, because a value may contain the delimiter.

Why: `a#b` followed by `c`, and `a` followed by `b#c`, both produce `a#b#c`. The second write replaces the
first item, or one tenant reads another tenant's data. No request fails.

Example: `PK = {tenant}#{user}`, built by joining strings without escaping. A literal between them, as in
`TENANT#{tenant}#USER#{user}`, prevents accidents but not attacks: a tenant named `x#USER#y` gets another
tenant's keys. The rule therefore reports it if the first field is the tenant.

Instead: Escape or reject the delimiter in values, as Tavola's templates do, or use fields that cannot contain
it, such as numbers or UUIDs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.heat import time_kind
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import EntityDesign, SourceDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the key attributes of foreign tables in which two free-text fields are adjacent."""
    for table, entity, key in context.all_keys():
        for source in key.sources if table.foreign else ():
            pair = _neighbours(entity, source)
            if pair is None or source.template is None:
                continue
            first, second, between = pair
            tenants = [entity.field(name).name for name in source.fields if entity.field(name).tenant]
            access = f", so one {tenants[0]} can reach another's items" if tenants else ""
            yield Defect(
                context.key_place(table, entity, key),
                f"{source.template.source} joins {first} and {second} without escaping: {first} a{between}b with {second} c has the same key as "
                f"{first} a with {second} b{between}c{access}",
                f"Escape or reject {_forbidden_text(source.template.delimiter, between)!r} in {first}",
                severity=None if tenants or key.index is None else "warning",
            )


def _forbidden_text(delimiter: str, between: str) -> str:
    """Return what the first field must not contain: the delimiter, or the whole literal between the fields."""
    return delimiter if delimiter in between or not between else between


def _neighbours(entity: EntityDesign, source: SourceDesign) -> tuple[str, str, str] | None:
    """Return the first two adjacent free-text fields of a template and the literal between them, or None.

    A word between them prevents accidents, so it is only reported after a tenant's name, which can be chosen on purpose.
    """
    before: str | None = None
    between = ""
    for segment in source.template.segments if source.template is not None else ():
        if isinstance(segment, str):
            between = segment
            continue
        free = not segment.spec and _is_free_text(entity, segment.field)
        if (
            free
            and before is not None
            and (entity.field(before).tenant or not any(character.isalnum() for character in between))
        ):
            return before, segment.field, between
        before, between = segment.field if free else None, ""
    return None


def _is_free_text(entity: EntityDesign, name: str) -> bool:
    """Return whether a field can hold any text; dates and times cannot."""
    field = next((field for field in entity.fields if field.name == name), None)
    return (
        field is not None
        and field.key_kind == "text"
        and field.type in ("text", "str", "string")
        and field.tags == ("S",)
        and field.choices is None
        and not time_kind(field)
    )
