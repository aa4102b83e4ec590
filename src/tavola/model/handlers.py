"""Handlers: what the source of a stream handler says about its response.

A handler either raises when a record fails, or returns `batchItemFailures`. The difference decides which setting its event
source mapping needs, and it is in the handler's source, not in the design. The source is parsed, not run, and only the module
that defines the handler is considered: one that gets its response from another module is not recognized.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tavola.model.consumers import Consumer
from tavola.model.design import Design

_REPORT = "batchItemFailures"
_SETTING = "report_batch_item_failures"
_REPORTERS = ("Projector", "Router")  # with the setting, their handlers return the records that failed
_POWERTOOLS = ("async_process_partial_response", "process_partial_response")  # of AWS Lambda Powertools


def handler_modules(consumer: Consumer) -> tuple[str, ...]:
    """Return the modules that may define a consumer's handler: for `a.b.handler`, `a.b`, and `a` if `b` is a class."""
    parts = consumer.handler.replace(":", ".").replace("/", ".").split(".")[:-1]
    return tuple(".".join(parts[:length]) for length in range(len(parts), 0, -1))


def returns_item_failures(source: str) -> bool:
    """Return whether the source of a handler's module returns `batchItemFailures`; other languages are searched as text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return _REPORT in source
    return any(_reports(node) for node in ast.walk(tree))


def with_handlers(design: Design, sources: Mapping[str, str]) -> Design:
    """Return a design whose consumers say what their handlers return; `sources` has the text of modules, by name."""
    return replace(
        design,
        tables=tuple(
            replace(table, consumers=tuple(_with_response(each, sources) for each in table.consumers))
            for table in design.tables
        ),
    )


def _with_response(consumer: Consumer, sources: Mapping[str, str]) -> Consumer:
    texts = [sources[name] for name in handler_modules(consumer) if name in sources]
    if consumer.returns_batch_item_failures or not any(map(returns_item_failures, texts[:1])):
        return consumer
    return replace(consumer, returns_batch_item_failures=True)


def _reports(node: ast.AST) -> bool:
    """Return whether a node makes a response with `batchItemFailures`, or something that does."""
    match node:
        case ast.Dict(keys=keys):
            return any(isinstance(key, ast.Constant) and key.value == _REPORT for key in keys)
        case ast.Subscript(slice=ast.Constant(value=value), ctx=ast.Store()):
            return value == _REPORT
        case ast.Call(func=function, keywords=keywords):
            return _is_reporter(function, {keyword.arg: keyword.value for keyword in keywords})
        case _:
            return False


def _is_reporter(function: ast.expr, keywords: Mapping[str | None, ast.expr]) -> bool:
    name = next(_names(function), "")
    if name == "dict":
        return _REPORT in keywords
    setting = keywords.get(_SETTING)
    is_off = setting is None or (isinstance(setting, ast.Constant) and not setting.value)
    return name in _POWERTOOLS or (name in _REPORTERS and not is_off)


def _names(function: ast.expr) -> Iterator[str]:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=value):  # Projector[Connection, Number, Mark](…)
            yield from _names(value)
        case _:
            return
