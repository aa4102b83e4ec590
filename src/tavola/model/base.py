"""EntityBase: what the room's lower modules know of an entity: a pydantic model with a shape."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class EntityBase(BaseModel):
    """A model whose instances are items of a table; people subclass `Entity`, which makes it whole."""

    # Base classes have no fields to validate; building their validators would load pydantic's plugins at import.
    model_config = ConfigDict(defer_build=True)

    __shape__: ClassVar[Any]  # a Shape, which knows this class in turn
    __options__: ClassVar[dict[str, Any]] = {}
