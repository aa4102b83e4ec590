"""Checks of expression parameters and the legacy parameters they replaced.

The two kinds exclude each other, and placeholders require an expression. Both rules are the same for every operation.
"""

from __future__ import annotations

from collections.abc import Iterable

from tavola.protocol.message_style import ValidationLayer

NamedParameters = Iterable[tuple[str, object]]  # AWS's parameter name and the value sent


def mixed_parameters_error(legacy: NamedParameters, expressions: NamedParameters) -> str | None:
    """Return AWS's message if both kinds of parameter are used."""
    old = [name for name, given in legacy if given is not None]
    new = [name for name, given in expressions if given is not None]
    if not old or not new:
        return None
    return (
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{', '.join(old)}}} Expression parameters: {{{', '.join(new)}}}"
    )


def names_without_expression() -> str:
    """Return AWS's message for names without an expression."""
    return "ExpressionAttributeNames can only be specified when using expressions"


def values_without_expression(style: ValidationLayer, *expressions: str) -> str:
    """Return AWS's message for values without an expression; the classic layer lists the missing ones."""
    text = "ExpressionAttributeValues can only be specified when using expressions"
    if style == "modern":
        return text
    return f"{text}: {' and '.join(expressions)} {'are' if len(expressions) > 1 else 'is'} null"
