"""Extract some attributes of stored items without decoding the items.

The requested attributes are copied as the bytes they are stored in, and the rest is skipped. That takes a fifth of the time of
decoding an item, dropping attributes and encoding it again. Used for indexes that do not project all attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

import msgspec

from tavola.values.value import decode_item, encode_item

_MADE_MAX = 512

_making = Lock()
_made: dict[frozenset[str], AttributeFilter] = {}
_encode = msgspec.json.Encoder().encode


class AttributeFilter:
    """Gives of items the attributes of some names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        fields = [
            (f"f{number}", msgspec.Raw | msgspec.UnsetType, msgspec.field(name=name, default=msgspec.UNSET))
            for number, name in enumerate(sorted(self._names))
        ]
        self._decoder: msgspec.json.Decoder[list[msgspec.Struct]] | None = None
        try:
            kind = msgspec.defstruct("Narrowed", fields)
        except ValueError:
            return  # a name with a quote or a control sign in it, which is none for a struct: the long way
        self._decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # made here, and known here alone

    def __call__(self, items: Sequence[bytes]) -> list[bytes]:
        """Return items as bytes, each with no other attributes."""
        if self._decoder is None:
            return [
                encode_item({name: value for name, value in decode_item(item).items() if name in self._names})
                for item in items
            ]
        return [_encode(found) for found in self._decoder.decode(b"[" + b",".join(items) + b"]")]


def attribute_filter(names: frozenset[str]) -> AttributeFilter:
    """Return what narrows items to these names; made once, by one thread at a time."""
    found = _made.get(names)
    if found is None:
        with _making:
            if len(_made) >= _MADE_MAX:
                _made.clear()
            found = _made.setdefault(names, AttributeFilter(names))
    return found
