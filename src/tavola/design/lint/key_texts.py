"""The texts that a key attribute can have, in designs whose keys other code writes.

The model's bound templates escape, pad and check values. Other code does none of that, so here a template matches its
literals with any text between them.
"""

from __future__ import annotations

import re

from tavola.keys import Placeholder, TemplateRefused
from tavola.model.document import EntityDesign, SourceDesign
from tavola.values import Value


def can_render(entity: EntityDesign, source: SourceDesign, value: Value) -> bool:
    """Return whether a template could have rendered a key value. A field with choices has one of them."""
    text = value.get("S")
    if source.template is None or not isinstance(text, str):
        return True
    pattern = ""
    for segment in source.template.segments:
        pattern += re.escape(segment) if isinstance(segment, str) else _placeholder_pattern(entity, segment)
    # A constant may be declared up to its first field only: `RUN#` of `RUN#{run_id}`.
    return bool(re.fullmatch(pattern, text, re.DOTALL)) or literal_prefix(source) == text != ""


def literal_prefix(source: SourceDesign) -> str:
    """Return the literal that every value of a key attribute begins with."""
    if source.template is None:
        return ""
    first = source.template.segments[0]
    return first if isinstance(first, str) else ""


def may_collide(entity: EntityDesign, mine: SourceDesign, other: EntityDesign, its: SourceDesign) -> bool:
    """Return whether two templates can render the same text although no value contains the delimiter.

    False is certain, True is not. Fields that are key attributes themselves are taken to differ.
    """
    try:
        left, right = entity.bind_template(mine), other.bind_template(its)
    except TemplateRefused:
        return False
    return left is not None and right is not None and left.may_meet(right)


def _placeholder_pattern(entity: EntityDesign, placeholder: Placeholder) -> str:
    known = {field.name: field for field in entity.fields}
    field = known.get(placeholder.field)
    if field is None or not field.choices:
        return ".*"
    return f"(?:{'|'.join(re.escape(str(choice)) for choice in field.choices)})"
