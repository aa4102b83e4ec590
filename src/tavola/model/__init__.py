"""Model: a design declared in Python types.

Holds entities, their key templates, tables, indexes and access patterns, as a person declares them, and the
shapes that they are compiled to. Knows keys and expressions, and neither an engine nor a client: a model is
data, and the same one is linted, priced, provisioned and served.
"""

from tavola.model.access import AccessPattern, WritePattern
from tavola.model.attributes import Attr, Change, Condition, Operand, Term, attr, of_entity
from tavola.model.consumers import Consumer
from tavola.model.converters import EpochMilliseconds, EpochSeconds, Exact, decode_plain, placed
from tavola.model.entity import Entity, entities_of, entity_given, shape_of, upgrade
from tavola.model.errors import ItemUnreadable, ModelError, QueryRefused, ValueNotStorable
from tavola.model.key_types import key_types
from tavola.model.needs import Given, Need, Route
from tavola.model.queries import PrimaryKey, Query
from tavola.model.relations import Collection, Member, found, members_of
from tavola.model.selections import Question, Range, Selection, question_of
from tavola.model.shapes import (
    SHARD,
    VERSION_ATTRIBUTE,
    FieldShape,
    KeyShape,
    Pattern,
    Shape,
    Source,
    Unique,
    plain,
    shard_of,
)
from tavola.model.sort_parts import Ask, Rest, Sort, Step, sort
from tavola.model.tables import (
    Gsi,
    Index,
    Lsi,
    Scaling,
    Shards,
    Table,
    TableSettings,
    declared_tables,
    table_given,
)
from tavola.model.uniques import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE, unique_of
from tavola.model.views import check_part, projected

__all__ = [
    "OWNER_ATTRIBUTE",
    "SHARD",
    "UNIQUE",
    "UNIQUE_ATTRIBUTE",
    "VERSION_ATTRIBUTE",
    "AccessPattern",
    "Ask",
    "Attr",
    "Change",
    "Collection",
    "Condition",
    "Consumer",
    "Entity",
    "EpochMilliseconds",
    "EpochSeconds",
    "Exact",
    "FieldShape",
    "Given",
    "Gsi",
    "Index",
    "ItemUnreadable",
    "KeyShape",
    "Lsi",
    "Member",
    "ModelError",
    "Need",
    "Operand",
    "Pattern",
    "PrimaryKey",
    "Query",
    "QueryRefused",
    "Question",
    "Range",
    "Rest",
    "Route",
    "Scaling",
    "Selection",
    "Shape",
    "Shards",
    "Sort",
    "Source",
    "Step",
    "Table",
    "TableSettings",
    "Term",
    "Unique",
    "ValueNotStorable",
    "WritePattern",
    "attr",
    "check_part",
    "declared_tables",
    "decode_plain",
    "entities_of",
    "entity_given",
    "found",
    "key_types",
    "members_of",
    "of_entity",
    "placed",
    "plain",
    "projected",
    "question_of",
    "shape_of",
    "shard_of",
    "sort",
    "table_given",
    "unique_of",
    "upgrade",
]
