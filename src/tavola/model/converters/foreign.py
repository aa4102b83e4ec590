"""Foreign: converters of what pydantic knows and Tavola does not: URLs, addresses, paths, custom types, secrets."""

from __future__ import annotations

import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from tavola.model.converters.converter import Converter, show_value, storage_error
from tavola.model.converters.plain import decode_plain, encode_plain
from tavola.model.errors import ValueNotStorable
from tavola.values import TAGS, Value

_PLAIN = frozenset(TAGS) - {"NULL"}


def of_foreign(adapter: TypeAdapter[Any], word: str, annotation: Any) -> Converter:
    """Return the converter of a type that pydantic dumps to plain values, or else to JSON."""
    dump = adapter.dump_python

    def encode_foreign(value: Any) -> Value:
        try:
            try:
                return encode_plain(dump(value, round_trip=True, warnings="error"))
            except ValueNotStorable:
                return encode_plain(dump(value, mode="json", round_trip=True))
        except PydanticSerializationError as error:
            raise storage_error(
                f"{show_value(value)} cannot be written as {word}: pydantic does not know how"
            ) from error

    networks = sys.modules.get("pydantic.networks")  # not imported here: it loads importlib.metadata
    if networks is not None and annotation is networks.EmailStr:
        return Converter(
            encode_foreign, decode_plain, frozenset({"S"}), (str,), "text", kind="text", word="text"
        )
    types = (annotation,) if isinstance(annotation, type) else ()
    return Converter(encode_foreign, decode_plain, _PLAIN, types, kind="other", word=word)


def of_secret(inner: Converter, cls: type) -> Converter:
    """Return the converter of a secret: it is stored as what it hides."""
    encode = inner.encode_inside

    def encode_secret(value: Any) -> Value:
        hidden = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        try:
            return encode(hidden)
        except ValueNotStorable:
            raise storage_error(f"the secret is no {inner.word}") from None  # what was hidden stays so

    return Converter(
        encode_secret, inner.decode_inside, inner.tags, (cls,), kind="secret", word=f"secret {inner.word}"
    )
