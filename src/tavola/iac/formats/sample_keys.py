"""Guess the template of a key from sample items.

Parts that are equal in all samples are literals, parts that equal an attribute of their item are that attribute, and the rest are fields
that only the key contains. The result is reported as a guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from tavola.iac.formats.entity_builder import escape_braces
from tavola.iac.formats.sample_items import key_text
from tavola.iac.formats.value_reader import python_label
from tavola.values import Item

DELIMITERS = "#|^~:"
DISCRIMINATORS = ("Type", "type", "entityType", "EntityType", "entity_type", "_entity")
_DISTINCT_MAX = 50
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")


def guess_delimiter(texts: Iterable[str]) -> str:
    """Return what stands between the parts of keys: the sign that most of them have."""
    several = list(texts)
    for sign in DELIMITERS:
        if several and 2 * sum(sign in text for text in several) > len(several):
            return sign
    return "#"


def find_discriminator(items: Sequence[Item], keys: Collection[str]) -> str | None:
    """Return the attribute by which items say what they are; None if there is none."""
    for name in DISCRIMINATORS:
        told = {item[name]["S"] for item in items if "S" in item.get(name, {})}
        everywhere = sum(name in item for item in items) * 2 > len(items)
        if name not in keys and everywhere and 1 <= len(told) <= _DISTINCT_MAX and "" not in told:
            return name
    return None


def guess_template(
    attribute: str,
    items: Sequence[Item],
    delimiter: str,
    candidates: Sequence[str],
    taken: Collection[str],
    *,
    constant: bool,
) -> tuple[str, tuple[str, ...]] | None:
    """Return the template that an attribute's values seem to be made by, and the fields that only it knows.

    `candidates` are the attributes that a part may be; `taken` are names that a new field may not have. A value
    without a delimiter is a literal only where it is the same in all and `constant` says that such keys are expected.
    """
    rows = [item[attribute]["S"].split(delimiter) for item in items if "S" in item.get(attribute, {})]
    having = [item for item in items if "S" in item.get(attribute, {})]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    texts = [{name: key_text(item.get(name)) for name in candidates} for item in having]
    if len(rows[0]) == 1:
        return _single([row[0] for row in rows], texts, candidates, constant=constant)
    parts: list[str] = []
    made: list[str] = []
    literals = 0
    for at in range(len(rows[0])):
        tokens = [row[at] for row in rows]
        same = len(set(tokens)) == 1
        match = _matching_attribute(tokens, texts, candidates)
        named = at > 0 and not parts[-1].startswith("{")  # the part before says what this one is
        word = _WORD.fullmatch(tokens[0]) is not None
        if tokens[0] == "" and same:
            parts.append("")
        elif match is not None and (not same or named or not word):
            parts.append(f"{{{match}}}")
        elif same and (word or (len(rows) > 1 and not named)):
            parts.append(escape_braces(tokens[0]))
            literals += 1
        else:
            before = rows[0][at - 1] if at and len({row[at - 1] for row in rows}) == 1 else ""
            name = _new_name(
                f"{python_label(before).lower()}_id" if before else f"{attribute}_{at + 1}", {*taken, *made}
            )
            made.append(name)
            parts.append(f"{{{name}}}")
    if not literals and made:
        return None  # parts that nobody can name, with nothing to know them by
    return delimiter.join(parts), tuple(made)


def _single(
    values: list[str], texts: Sequence[Mapping[str, str | None]], candidates: Sequence[str], *, constant: bool
) -> tuple[str, tuple[str, ...]] | None:
    match = _matching_attribute(values, texts, candidates) if len(set(values)) > 1 else None
    if match is not None:
        return f"{{{match}}}", ()
    if constant and len(set(values)) == 1 and _WORD.fullmatch(values[0]):
        return escape_braces(values[0]), ()
    return None


def _matching_attribute(
    tokens: Sequence[str], texts: Sequence[Mapping[str, str | None]], candidates: Sequence[str]
) -> str | None:
    """Return the attribute that has in every item what the part has."""
    for name in candidates:
        if all(text[name] == token for token, text in zip(tokens, texts, strict=True)):
            return name
    return None


def _new_name(wanted: str, taken: Collection[str]) -> str:
    name = python_label(wanted, "part")
    while name in taken:
        name += "_"
    return name
