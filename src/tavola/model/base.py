"""EntityBase: what the room's lower modules know of an entity: a pydantic model with a shape."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel


class EntityBase(BaseModel):
    """A model whose instances are items of a table; people subclass `Entity`, which makes it whole."""

    __shape__: ClassVar[Any]  # a Shape, which knows this class in turn
    __options__: ClassVar[dict[str, Any]] = {}
