"""Texts: what texts a key attribute can have, in designs whose keys other code writes.

Bound templates of the model escape, pad and refuse; other code does none of it. So a template here is what it
looks like: its literals, and any text between them.
"""

from __future__ import annotations

import re

from tavola.keys import Placeholder, TemplateRefused
from tavola.model.document import EntityDesign, SourceDesign
from tavola.values import Value


def can_render(entity: EntityDesign, source: SourceDesign, value: Value) -> bool:
    """Tell whether a template could have made a key; a field with choices is one of these."""
    text = value.get("S")
    if source.template is None or not isinstance(text, str):
        return True
    pattern = ""
    for segment in source.template.segments:
        pattern += re.escape(segment) if isinstance(segment, str) else _placeholder_pattern(entity, segment)
    # A constant may be told up to its first field alone: `RUN#` of `RUN#{run_id}`.
    return bool(re.fullmatch(pattern, text, re.DOTALL)) or literal_prefix(source) == text != ""


def literal_prefix(source: SourceDesign) -> str:
    """Return what every text of a key attribute begins with."""
    if source.template is None:
        return ""
    first = source.template.segments[0]
    return first if isinstance(first, str) else ""


def may_collide(entity: EntityDesign, mine: SourceDesign, other: EntityDesign, its: SourceDesign) -> bool:
    """Tell whether two templates can make one text though no value holds the delimiter; a no is certain.

    Of fields that are keys themselves nobody knows, so they are taken to differ.
    """
    try:
        left, right = entity.bound(mine), other.bound(its)
    except TemplateRefused:
        return False
    return left is not None and right is not None and left.may_meet(right)


def _placeholder_pattern(entity: EntityDesign, placeholder: Placeholder) -> str:
    known = {field.name: field for field in entity.fields}
    field = known.get(placeholder.field)
    if field is None or not field.choices:
        return ".*"
    return f"(?:{'|'.join(re.escape(str(choice)) for choice in field.choices)})"
