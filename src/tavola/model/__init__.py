"""Model: a design declared in Python types: entities, key templates, tables, indexes and access patterns.

Declarations are compiled to shapes, which the client works with, and to a design, which the linter, the cost
planner and the infrastructure writers read. Depends on keys and expressions; knows no engine and no client.

Collections, and names that only describe a design (traffic, consumers, needs), are imported on first use: most programs start
without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tavola.model.attributes import Attr, Change, Condition, Operand, Term, attr, fields_apply_to
from tavola.model.converters import EpochMilliseconds, EpochSeconds, Exact, decode_plain, with_place
from tavola.model.entity import Entity, entities_of, key_types, result_entity, shape_of, upgrade
from tavola.model.errors import ItemUnreadable, ModelError, QueryRefused, ValueNotStorable
from tavola.model.queries import PrimaryKey, Query
from tavola.model.selections import Range, Selection, SelectionRequest, request_of
from tavola.model.shapes import (
    SHARD,
    VERSION_ATTRIBUTE,
    EntityShape,
    FieldShape,
    KeyShape,
    KeySource,
    Pattern,
    Unique,
    enum_value,
    shard_of,
)
from tavola.model.sort_parts import Rest, Sort, SortOperators, Step, sort
from tavola.model.tables import (
    Gsi,
    Index,
    Lsi,
    Scaling,
    Shards,
    Table,
    TableSettings,
    declared_tables,
    require_table,
)
from tavola.model.uniques import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE, unique_of
from tavola.model.views import check_partial_view, is_projected

if TYPE_CHECKING:
    from tavola.model.access import AccessPattern, WritePattern
    from tavola.model.consumers import Consumer
    from tavola.model.needs import Given, Need, Route
    from tavola.model.relations import Collection, CollectionMember, member, members_of

_IMPORTED_ON_USE = {
    "AccessPattern": "access",
    "WritePattern": "access",
    "Consumer": "consumers",
    "Given": "needs",
    "Need": "needs",
    "Route": "needs",
    "Collection": "relations",
    "CollectionMember": "relations",
    "member": "relations",
    "members_of": "relations",
}

__all__ = [
    "OWNER_ATTRIBUTE",
    "SHARD",
    "UNIQUE",
    "UNIQUE_ATTRIBUTE",
    "VERSION_ATTRIBUTE",
    "AccessPattern",
    "Attr",
    "Change",
    "Collection",
    "CollectionMember",
    "Condition",
    "Consumer",
    "Entity",
    "EntityShape",
    "EpochMilliseconds",
    "EpochSeconds",
    "Exact",
    "FieldShape",
    "Given",
    "Gsi",
    "Index",
    "ItemUnreadable",
    "KeyShape",
    "KeySource",
    "Lsi",
    "ModelError",
    "Need",
    "Operand",
    "Pattern",
    "PrimaryKey",
    "Query",
    "QueryRefused",
    "Range",
    "Rest",
    "Route",
    "Scaling",
    "Selection",
    "SelectionRequest",
    "Shards",
    "Sort",
    "SortOperators",
    "Step",
    "Table",
    "TableSettings",
    "Term",
    "Unique",
    "ValueNotStorable",
    "WritePattern",
    "attr",
    "check_partial_view",
    "declared_tables",
    "decode_plain",
    "entities_of",
    "enum_value",
    "fields_apply_to",
    "is_projected",
    "key_types",
    "member",
    "members_of",
    "request_of",
    "require_table",
    "result_entity",
    "shape_of",
    "shard_of",
    "sort",
    "unique_of",
    "upgrade",
    "with_place",
]


def __getattr__(name: str) -> object:
    module = _IMPORTED_ON_USE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
