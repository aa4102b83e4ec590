"""Raw items: an entity as the item that DynamoDB holds, and back, without asking anybody.

For what is done beside the client: fixtures, exports, streams that others read, boto3 code that stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from tavola.client.arguments import shape_of_entity
from tavola.client.context import Context
from tavola.client.marshalling import entity_of, is_kind, item_of
from tavola.client.stream_changes import as_json
from tavola.model import Entity, ItemUnreadable, ModelError, shape_of
from tavola.values import Item

E = TypeVar("E", bound=Entity)


@lru_cache(maxsize=1)
def _anywhere() -> Context:
    """Return the context of nobody's client: items do not tell where they are stored."""
    return Context()


def to_item(entity: Entity) -> Item:
    """Return the item that `put` would store: fields, keys, index keys and tag, as DynamoDB JSON (a B is base64 text).

    A lock is as the entity has it, and a shard drawn at random may be another than the stored one's.
    """
    shape = shape_of_entity(entity, "to_item")
    _ = shape.home  # an error for a view, of which there are no items
    return item_of(shape, entity, _anywhere())


def from_item(entity: type[E], item: Mapping[str, Any]) -> E:
    """Return the entity in an item of DynamoDB JSON; bytes in it stand for a B, as botocore has them.

    An item of an older schema is upgraded, one that has expired is given all the same. One of another kind, or that does
    not fit, is an `ItemUnreadable`.
    """
    told: Any = entity
    if not (isinstance(told, type) and issubclass(told, Entity)):
        raise ModelError(
            "from_item", "it takes an entity's class and an item, such as from_item(Ticket, item)"
        )
    shape = shape_of(entity)
    stored = as_json(item)
    if shape.table is not None and not is_kind(shape, shape.table, stored):
        raise ItemUnreadable(entity.__name__, "the item is of another kind, by its tag or its key")
    return entity_of(entity, stored)
