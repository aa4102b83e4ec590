"""Two different items can get the same key, because a value may contain the delimiter.

Why: `a#b` with `c` and `a` with `b#c` both make `a#b#c`. The second write replaces the first item, or one tenant reads what another
wrote. Nothing fails.

Example: `PK = {tenant}#{user}` made by joining the texts as they are. A word between them, `TENANT#{tenant}#USER#{user}`, makes it
unlikely by chance and not impossible by design: a tenant called `x#USER#y` has the keys of another. So it is told where the first is
whose the item is.

Instead: Escape the delimiter in values or refuse it, as Tavola's templates do; or put a part that cannot hold it, such as a number or
a UUID, between or instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import time_kind
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, SourceDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the key attributes of foreign tables in which two free texts are adjacent."""
    for table, entity, key in context.all_keys():
        for source in key.sources if table.foreign else ():
            pair = _neighbours(entity, source)
            if pair is None or source.template is None:
                continue
            first, second, between = pair
            tenants = [entity.field(name).name for name in source.fields if entity.field(name).tenant]
            whose = f", and one {tenants[0]} reaches another's items" if tenants else ""
            yield Finding(
                "delimiter-collision",
                SEVERITY if tenants or key.index is None else "warning",
                context.key_place(table, entity, key),
                f"{source.template.source} joins {first} and {second} as they are: {first} a{between}b with {second} c makes the key of "
                f"{first} a with {second} b{between}c{whose}",
                f"escape or refuse {_sign(source.template.delimiter, between)!r} in {first}",
            )


def _sign(delimiter: str, between: str) -> str:
    """Return what the first text must not contain: the delimiter, or all that is between the texts."""
    return delimiter if delimiter in between or not between else between


def _neighbours(entity: EntityDesign, source: SourceDesign) -> tuple[str, str, str] | None:
    """Return the first two adjacent free texts of a template and the literal between them; None if there are none.

    A word between them is enough protection against accidents, but not for a tenant's name, which can be chosen on purpose.
    """
    before: str | None = None
    between = ""
    for segment in source.template.segments if source.template is not None else ():
        if isinstance(segment, str):
            between = segment
            continue
        free = not segment.spec and _free(entity, segment.field)
        if (
            free
            and before is not None
            and (entity.field(before).tenant or not any(sign.isalnum() for sign in between))
        ):
            return before, segment.field, between
        before, between = segment.field if free else None, ""
    return None


def _free(entity: EntityDesign, name: str) -> bool:
    """Return whether a field can be any text; dates and times cannot."""
    field = next((each for each in entity.fields if each.name == name), None)
    return (
        field is not None
        and field.key_kind == "text"
        and field.type in ("text", "str", "string")
        and field.tags == ("S",)
        and field.choices is None
        and not time_kind(field)
    )
