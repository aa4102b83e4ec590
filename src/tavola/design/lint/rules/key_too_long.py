"""A key can exceed DynamoDB's size limit.

Why: A partition key may have up to 2,048 bytes and a sort key up to 1,024, over all attributes of a
multi-attribute key. DynamoDB rejects the whole item, even if only an index key is too long.

Example: `sk="FILE#{path}"` with `path: Annotated[str, Field(max_length=4_000)]`.

Instead: Put an id or a hash into the key and the long value into another attribute, or limit the field's
length.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX
from tavola.model.document import EntityDesign, SourceDesign
from tavola.values import text_size

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the keys that exceed the limit when their fields have their maximum length, at one byte per character."""
    for table, entity, key in context.all_keys():
        for sources, most, word in (
            (key.hash, HASH_KEY_BYTES_MAX, "partition"), (key.range, RANGE_KEY_BYTES_MAX, "sort")
        ):  # fmt: skip
            size = sum(_longest(entity, source) for source in sources)
            if size > most:
                made = join_names(source.attribute for source in sources)
                fields = dict.fromkeys(name for source in sources for name in source.fields)
                yield Defect(
                    context.key_place(table, entity, key),
                    f"The {word} key {made} can reach {size:,} bytes (more with non-ASCII text); DynamoDB rejects "
                    f"keys above {most:,}",
                    f"Limit the length of {join_names(fields)}, or use an id or a hash in the key",
                )


def _longest(entity: EntityDesign, source: SourceDesign) -> int:
    """Return the bytes of a key with its fields at their declared maximum; fields without one count as empty."""
    fixed = 0
    if source.template is not None:
        fixed = sum(text_size(segment) for segment in source.template.segments if isinstance(segment, str))
    lengths = [
        field.length_max
        for name in source.fields
        if "S" in (field := entity.field(name)).tags or "B" in field.tags
        if field.length_max is not None and field.choices is None
    ]
    return fixed + sum(lengths)
