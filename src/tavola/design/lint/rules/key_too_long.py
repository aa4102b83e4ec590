"""A key can become longer than DynamoDB allows.

Why: A partition key has 2,048 bytes at most and a sort key 1,024, all its attributes together where it has several. A write with a longer one is refused, also
where it is the key of an index alone, and then the whole item is not written.

Example: `sk="FILE#{path}"` with `path: Annotated[str, Field(max_length=4_000)]`.

Instead: Put a digest or an id into the key and the long text into an attribute beside it; or bound the field to what fits.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX
from tavola.model.document import EntityDesign, SourceDesign
from tavola.values import text_size

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the keys that exceed the limit when their fields have their maximum length, at one byte per character."""
    for table, entity, key in context.all_keys():
        for sources, most, word in (
            (key.hash, HASH_KEY_BYTES_MAX, "partition"), (key.range, RANGE_KEY_BYTES_MAX, "sort")
        ):  # fmt: skip
            size = sum(_longest(entity, source) for source in sources)
            if size > most:
                made = " and ".join(source.attribute for source in sources)
                fields = dict.fromkeys(name for source in sources for name in source.fields)
                yield Finding(
                    "key-too-long",
                    SEVERITY,
                    context.key_place(table, entity, key),
                    f"its {word} key {made} can be {size:,} bytes long, more of other letters than English, and may be "
                    f"{most:,}: such an item is refused",
                    f"bound {' and '.join(fields)}, or put an id or a digest of it into the key",
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
