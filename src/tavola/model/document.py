"""Document: a whole design ⇄ JSON.

A design is written by `design_document` and read back by `read_document` to the very same `Design`. Order is that
of declaration and what is meant anyway is left out, so that two designs can be compared line by line. A reader
trusts nothing: whatever names something that is not there is refused with its JSON path.

The tools' own door to the model, entered by name: a program that only reads and writes items does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.model.access import AccessPattern, WritePattern
from tavola.model.consumers import Consumer, beyond_limits
from tavola.model.design import (
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    Ignore,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Membership,
    PatternDesign,
    Policy,
    SourceDesign,
    TableDesign,
)
from tavola.model.errors import DocumentRefused
from tavola.model.forms import (
    DELIMITER,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Anything,
    Choices,
    Entry,
    Form,
    Many,
    Maybe,
    Named,
    OneOf,
    Projected,
    Stored,
    Templated,
    shown,
)
from tavola.model.ignores import declared_in, ignores_in, with_ignores
from tavola.model.needs import OPERATORS, ROUTES, Given, Need, Route
from tavola.model.references import check_references
from tavola.model.survey import Declaration, design_of
from tavola.model.tables import Scaling, Shards, TableSettings
from tavola.model.unkeyed import needs_of
from tavola.values import TAGS

__all__ = [
    "FORMAT",
    "VERSION",
    "AccessPattern",
    "CollectionDesign",
    "Consumer",
    "Declaration",
    "Design",
    "DocumentRefused",
    "EntityDesign",
    "FieldDesign",
    "Given",
    "Ignore",
    "IndexDesign",
    "KeyDesign",
    "MemberDesign",
    "Membership",
    "Need",
    "PatternDesign",
    "Policy",
    "Route",
    "Scaling",
    "Shards",
    "SourceDesign",
    "TableDesign",
    "TableSettings",
    "WritePattern",
    "beyond_limits",
    "check_references",
    "declared_in",
    "design_document",
    "design_of",
    "document_schema",
    "ignores_in",
    "needs_of",
    "read_document",
    "with_ignores",
    "write_document",
]

FORMAT = "tavola-design"
VERSION = 1

_TEXTS = Many(TEXT)
_KEY_TAG = OneOf(("S", "N", "B"))

ACCESS = Form(
    AccessPattern,
    (
        Entry("title", TEXT),
        Entry("per_second", Maybe(NUMBER), None),
        Entry("peak_per_second", Maybe(NUMBER), None),
        Entry("items", Maybe(WHOLE), None),
        Entry("item_bytes", Maybe(WHOLE), None),
        Entry("consistent", FLAG, default=False),
        Entry("reads", _TEXTS, ()),
        Entry("filters", _TEXTS, ()),
        Entry("returned", Maybe(WHOLE), None),
        Entry("descending", FLAG, default=False),
        Entry("transactional", FLAG, default=False),
        Entry("skew", Maybe(NUMBER), None),
    ),
)
WRITE = Form(
    WritePattern,
    (
        Entry("title", TEXT),
        Entry("kind", OneOf(("put", "update", "delete"))),
        Entry("changes", _TEXTS, ()),
        Entry("per_second", Maybe(NUMBER), None),
        Entry("peak_per_second", Maybe(NUMBER), None),
        Entry("item_bytes", Maybe(WHOLE), None),
        Entry("transactional", FLAG, default=False),
        Entry("items", WHOLE, 1),
        Entry("together", TEXT, ""),
        Entry("adds", _TEXTS, ()),
        Entry("rewrites", _TEXTS, ()),
        Entry("creates", FLAG, default=False),
        Entry("skew", Maybe(NUMBER), None),
        Entry("conditional", FLAG, default=False),
    ),
)
FIELD = Form(
    FieldDesign,
    (
        Entry("name", TEXT),
        Entry("attribute", TEXT),
        Entry("type", TEXT),
        Entry("tags", Many(OneOf(TAGS))),
        Entry("required", FLAG, default=True),
        Entry("nullable", FLAG, default=False),
        Entry("key_kind", Maybe(TEXT), None),
        Entry("choices", Maybe(Many(Choices())), None),
        Entry("lock", FLAG, default=False),
        Entry("unique", FLAG, default=False),
        Entry("within", _TEXTS, ()),
        Entry("description", TEXT, ""),
        Entry("distinct", Maybe(WHOLE), None),
        Entry("typical_bytes", Maybe(WHOLE), None),
        Entry("length_max", Maybe(WHOLE), None),
        Entry("tenant", FLAG, default=False),
        Entry("numbered", Maybe(OneOf(("count", "last", "counter"))), None),
    ),
)
SHARDS = Form(
    Shards,
    (
        Entry("count", WHOLE),
        Entry("by", OneOf(("hash", "random", "time")), "hash"),
        Entry("of", _TEXTS, ()),
        Entry("reading", Maybe(WHOLE), None),
        Entry("bucket", TEXT, ""),
    ),
)
SOURCE = Form(
    SourceDesign,
    (
        Entry("attribute", TEXT),
        Entry("type", _KEY_TAG, attribute="tag"),
        Entry("field", Maybe(TEXT), None),
        Entry("template", Maybe(Templated()), None),
        Entry("guessed", FLAG, default=False),
    ),
)
MEMBERSHIP = Form(Membership, (Entry("field", TEXT), Entry("values", Many(Maybe(Stored())))))
KEY = Form(
    KeyDesign,
    (
        Entry("index", Maybe(TEXT), None),
        Entry("hash", Many(SOURCE)),
        Entry("range", Many(SOURCE), ()),
        Entry("sparse", FLAG, default=False),
        Entry("members", Many(MEMBERSHIP), ()),
        Entry("shards", Maybe(SHARDS), None),
    ),
)
PATTERN = Form(
    PatternDesign,
    (
        Entry("name", TEXT),
        Entry("index", Maybe(TEXT), None),
        Entry("partition", _TEXTS),
        Entry("sorts", _TEXTS, ()),
        Entry("result", TEXT),
        Entry("hydrate", FLAG, default=False),
        Entry("access", Maybe(ACCESS), None),
    ),
)
ENTITY = Form(
    EntityDesign,
    (
        Entry("name", TEXT),
        Entry("tag", TEXT),
        Entry("description", TEXT, ""),
        Entry("version", WHOLE, 1),
        Entry("stale", OneOf(("read", "refuse")), "read"),
        Entry("immutable", FLAG, default=False),
        Entry("items", Maybe(WHOLE), None),
        Entry("fields", Many(FIELD)),
        Entry("key", Maybe(KEY), None),
        Entry("keys", Many(KEY), ()),
        Entry("primary", Maybe(PATTERN), None),
        Entry("patterns", Many(PATTERN), ()),
        Entry("writes", Many(WRITE), ()),
    ),
)
INDEX = Form(
    IndexDesign,
    (
        Entry("name", TEXT),
        Entry("label", TEXT),
        Entry("local", FLAG, default=False),
        Entry("hash", _TEXTS),
        Entry("range", _TEXTS, ()),
        Entry("projection", Projected(), "ALL", always=True),
        Entry("native", FLAG, default=False),
    ),
)
MEMBER = Form(MemberDesign, (Entry("name", TEXT), Entry("entity", TEXT), Entry("many", FLAG)))
COLLECTION = Form(
    CollectionDesign,
    (
        Entry("name", TEXT),
        Entry("description", TEXT, ""),
        Entry("index", Maybe(TEXT), None),
        Entry("partition", Templated()),
        Entry("prefix", TEXT, ""),
        Entry("parts", _TEXTS, ()),
        Entry("members", Many(MEMBER)),
        Entry("access", Maybe(ACCESS), None),
    ),
)
SCALING = Form(
    Scaling,
    (
        Entry("read_max", WHOLE),
        Entry("write_max", WHOLE),
        Entry("read_min", WHOLE, 1),
        Entry("write_min", WHOLE, 1),
        Entry("target", WHOLE, 70),
    ),
)
SETTINGS = Form(
    TableSettings,
    (
        Entry("name", TEXT),
        Entry("hash", TEXT),
        Entry("range", Maybe(TEXT), None, always=True),
        Entry("ttl", Maybe(TEXT), None, always=True),
        Entry("tag", Maybe(TEXT), None, always=True),
        Entry("delimiter", TEXT, DELIMITER, always=True),
        Entry(
            "stream",
            Maybe(OneOf(("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"))),
            None,
            always=True,
        ),
        Entry("recovery", FLAG, default=False, always=True),
        Entry("recovery_days", WHOLE, 35, always=True),
        Entry("encryption", Maybe(TEXT), None, always=True),
        Entry("table_class", OneOf(("STANDARD", "STANDARD_INFREQUENT_ACCESS")), "STANDARD", always=True),
        Entry("deletion_protection", FLAG, default=False, always=True),
        Entry("read_units", Maybe(WHOLE), None, always=True),
        Entry("write_units", Maybe(WHOLE), None, always=True),
        Entry("tags", Named(TEXT), {}, always=True),
        Entry("replicas", _TEXTS, ()),
        Entry("scaling", Maybe(SCALING), None),
        Entry("unknown", _TEXTS, ()),
    ),
)
CONSUMER = Form(
    Consumer,
    (
        Entry("name", TEXT),
        Entry("handler", TEXT, ""),
        Entry("batch_size", WHOLE, 100),
        Entry("window_s", WHOLE, 0),
        Entry("parallelization", WHOLE, 1),
        Entry("retries", WHOLE, -1),
        Entry("max_age_s", WHOLE, -1),
        Entry("bisect", FLAG, default=False),
        Entry("report_failures", FLAG, default=False),
        Entry("filters", Many(Anything()), ()),
        Entry("failures", Maybe(TEXT), None),
        Entry("timeout_s", WHOLE, 60),
        Entry("memory_mb", WHOLE, 256),
        Entry("starting", OneOf(("TRIM_HORIZON", "LATEST")), "TRIM_HORIZON"),
        Entry("events", Many(OneOf(("INSERT", "MODIFY", "REMOVE"))), ()),
        Entry("needs_old", FLAG, default=False),
        Entry("writes", _TEXTS, ()),
        Entry("idempotent", FLAG, default=False),
        Entry("function", TEXT, ""),
    ),
)
GIVEN = Form(
    Given,
    (
        Entry("field", TEXT),
        Entry("operator", OneOf(OPERATORS), "="),
        Entry("value", Maybe(Stored()), None),
    ),
)
ROUTE = Form(
    Route,
    (
        Entry("operation", OneOf(ROUTES)),
        Entry("index", Maybe(TEXT), None),
        Entry("keys", Many(GIVEN), ()),
        Entry("filters", Many(GIVEN), ()),
        Entry("queries", WHOLE, 1),
    ),
)
NEED = Form(
    Need,
    (
        Entry("name", TEXT),
        Entry("entities", _TEXTS),
        Entry("where", Many(GIVEN), ()),
        Entry("order", _TEXTS, ()),
        Entry("access", Maybe(ACCESS), None),
        Entry("single", FLAG, default=False),
        Entry("route", Maybe(ROUTE), None),
    ),
)
POLICY = Form(Policy, (Entry("name", TEXT), Entry("document", Anything()), Entry("tables", _TEXTS, ())))
IGNORE = Form(Ignore, (Entry("rule", TEXT), Entry("place", TEXT), Entry("reason", TEXT)))
TABLE = Form(
    TableDesign,
    (
        Entry("label", TEXT),
        Entry("description", TEXT, ""),
        Entry("settings", SETTINGS),
        Entry("key_types", Named(_KEY_TAG)),
        Entry("indexes", Many(INDEX), (), always=True),
        Entry("entities", Many(ENTITY), (), always=True),
        Entry("collections", Many(COLLECTION), ()),
        Entry("consumers", Many(CONSUMER), ()),
        Entry("foreign", FLAG, default=False),
    ),
)
DESIGN = Form(
    lambda format, version, **told: Design(**told),
    (
        Entry("format", OneOf((FORMAT,))),
        Entry("version", WHOLE),
        Entry("tables", Many(TABLE)),
        Entry("views", Many(ENTITY), ()),
        Entry("needs", Many(NEED), ()),
        Entry("policies", Many(POLICY), ()),
        Entry("ignores", Many(IGNORE), ()),
    ),
)


def design_document(*declarations: Declaration) -> dict[str, Any]:
    """Return the design of tables, or of modules that declare them, as a JSON document."""
    return write_document(design_of(*declarations))


def write_document(design: Design) -> dict[str, Any]:
    """Return a design as a JSON document, made of dicts, lists, text, numbers, booleans and None alone."""
    told = {
        "format": FORMAT,
        "version": VERSION,
        "tables": design.tables,
        "views": design.views,
        "needs": design.needs,
        "policies": design.policies,
        "ignores": design.ignores,
    }
    document: dict[str, Any] = DESIGN.write(told)
    return document


def read_document(document: Mapping[str, Any]) -> Design:
    """Return the design that a JSON document describes; refuse one that is wrong, with its path."""
    if not isinstance(document, dict):
        raise DocumentRefused("$", f"{shown(document)} is no document of a design, which is an object")
    version = document.get("version")
    if document.get("format") == FORMAT and type(version) is int and version > VERSION:
        raise DocumentRefused(
            "$.version",
            f"{version} is newer than this Tavola, which reads {VERSION}; update Tavola to read it",
        )
    design: Design = DESIGN.read(document, "$")
    if version != VERSION:
        raise DocumentRefused("$.version", f"{version} is no version; the first is 1")
    check_references(design)
    return design


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document, for editors and for tools in other languages."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Tavola design",
        **DESIGN.schema(),
    }
