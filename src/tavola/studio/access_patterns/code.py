"""Render a pattern and its values as code: Tavola's client, boto3 and the AWS CLI."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.model import declared_tables, entities_of
from tavola.model.document import EntityDesign
from tavola.studio.access_patterns.catalogue import PatternEntry
from tavola.studio.access_patterns.input_values import parse_value
from tavola.studio.access_patterns.requests import (
    WORDS,
    EnteredValue,
    OutgoingRequest,
    RequestPlan,
    RunOptions,
)
from tavola.studio.queries.client_code import PythonWriter, client_program
from tavola.studio.queries.code import aws_cli_command, boto3_client_line, python_literal, snake_case
from tavola.studio.studio import TablesLocation


@dataclass(frozen=True, slots=True)
class PatternCode:
    """One run in several languages; `tavola` is None if no Python class declares the pattern."""

    tavola: str | None
    boto3: str
    cli: str


def render_pattern_code(
    entry: PatternEntry,
    planned: RequestPlan,
    values: Sequence[EnteredValue],
    options: RunOptions,
    where: TablesLocation,
) -> PatternCode:
    """Return a planned run as code."""
    endpoint = where.text if where.kind == "http" else None
    commands = [
        aws_cli_command(
            planned.operation, _command_request(planned, request), region=where.region, endpoint=endpoint
        )
        for request in planned.requests
    ]
    return PatternCode(
        _client_program(entry, values, options, where),
        _boto3_program(entry, planned, where.region, endpoint),
        "\n".join(commands),
    )


def _command_request(planned: RequestPlan, request: OutgoingRequest) -> dict[str, Any]:
    """Return a request for the AWS CLI; with a filter the CLI applies the limit, as `Limit` counts items read."""
    if planned.limit is None:
        return dict(request.body)
    return dict(request.body) | {"MaxItems" if request.filter else "Limit": planned.limit}


def _boto3_program(entry: PatternEntry, planned: RequestPlan, region: str, endpoint: str | None) -> str:
    """Return a program with the same result as the run."""
    head = f"import boto3\n\n{boto3_client_line(region, endpoint)}"
    call = f"client.{snake_case(planned.operation)}"
    bodies = [dict(request.body) for request in planned.requests]
    if planned.operation == "GetItem":
        return f'{head}request = {python_literal(bodies[0])}\nitem = {call}(**request).get("Item")\nprint(item)\n'
    if planned.operation == "TransactGetItems":
        return (
            f"{head}request = {python_literal(bodies[0])}\n"
            f'items = [each["Item"] for each in {call}(**request)["Responses"] if "Item" in each]\nprint(items)\n'
        )
    requests = f"requests = {python_literal(bodies)}\nitems = []\n"
    if planned.operation == "BatchGetItem":
        assert entry.table is not None
        return f"{head}{requests}{_BATCHES.format(table=entry.table.name)}print(items)\n"
    limit = planned.limit
    is_filtered = planned.accepts is not None or any(request.filter for request in planned.requests)
    if limit is not None and not is_filtered:
        requests = f"requests = {python_literal([{**body, 'Limit': limit} for body in bodies])}\nitems = []\n"
    loop = _PAGES.format(call=call, until="True" if limit is None else f"len(found) < {limit}")
    order, imports = _sort_lines(entry, planned)
    cut = "" if limit is None else f"items = items[:{limit}]\n"
    fetch = _fetch_lines(entry) if planned.fetches_items else ""
    note = _INEXACT if planned.accepts is not None else ""
    return f"{imports}{head}{requests}{loop}{order}{cut}{fetch}{note}print(items)\n"


_PAGES = """\
for request in requests:
    found = []
    while {until}:
        page = {call}(**request)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    items += found
"""
_BATCHES = """\
for request in requests:
    pending = request["RequestItems"]
    while pending:
        page = client.batch_get_item(RequestItems=pending)
        items += page["Responses"][{table!r}]
        pending = page["UnprocessedKeys"]
"""
_FETCH = """\
fetched = {{}}
for at in range(0, len(items), {many}):
    keys = [{{name: item[name] for name in {names}}} for item in items[at : at + {many}]]
    pending = {{{table!r}: {{"Keys": keys}}}}
    while pending:
        page = client.batch_get_item(RequestItems=pending)
        for item in page["Responses"][{table!r}]:
            fetched[str([item[name] for name in {names}])] = item
        pending = page["UnprocessedKeys"]
keys = [str([item[name] for name in {names}]) for item in items]
items = [fetched[key] for key in keys if key in fetched]
"""
_INEXACT = "# The key condition also matches other items: filter the results.\n"


def _sort_lines(entry: PatternEntry, planned: RequestPlan) -> tuple[str, str]:
    """Return the lines that merge the results of several requests, and their imports."""
    if planned.order != "merged" or len(planned.requests) < 2 or entry.table is None:
        return "", ""
    tags = {name: entry.table.key_types.get(name, "S") for name in planned.sort_attributes}
    key_expressions = [
        f'Decimal(item[{name!r}]["N"])' if tag == "N" else f'item[{name!r}]["{tag}"]'
        for name, tag in tags.items()
    ]
    reverse = ", reverse=True" if planned.newest_first else ""
    line = f"items.sort(key=lambda item: ({', '.join(key_expressions)}){reverse})\n"
    return line, "from decimal import Decimal\n\n" if "N" in tags.values() else ""


def _fetch_lines(entry: PatternEntry) -> str:
    assert entry.table is not None
    names = list(entry.table.settings.key_names)
    return _FETCH.format(many=BATCH_GET_KEYS_MAX, names=names, table=entry.table.name)


def _client_program(
    entry: PatternEntry, values: Sequence[EnteredValue], options: RunOptions, where: TablesLocation
) -> str | None:
    """Return a program that uses the design's classes; None for a design document and for a need."""
    if entry.table is None or entry.entity is None or entry.need is not None:
        return None
    entity = next(
        (
            entity
            for table in declared_tables()
            if table.settings.name == entry.table.name
            for entity in entities_of(table)
            if entity.__name__ == entry.entity.name
        ),
        None,
    )
    if entity is None:
        return None
    by_name = {value.name: value for value in values if value.value != ""}
    writer = PythonWriter()
    if entry.collection is not None:
        name = entry.collection.name
        if not hasattr(sys.modules.get(entity.__module__), name):
            return None
        arguments = _arguments(entry.entity, entry.collection.parts, by_name, writer)
        line = f"print(db.collect({name}({arguments}){_option_arguments(options)}))"
        return client_program(entity, writer, where, line, name)
    assert entry.pattern is not None, "writes are not run"
    pattern = entry.pattern
    named = [*pattern.partition, *(pattern.sorts if pattern is entry.entity.primary else ())]
    pattern_call = f"{entity.__qualname__}.{pattern.name}({_arguments(entry.entity, named, by_name, writer)})"
    for name in () if pattern is entry.entity.primary else pattern.sorts:
        if name not in by_name:
            break
        entered = by_name[name]
        texts = [entered.value, *([entered.until] if entered.operator == "between" else [])]
        operands = ", ".join(writer.value(parse_value(entry.entity.field(name), text)) for text in texts)
        pattern_call += f".{name}.{WORDS.get(entered.operator, 'eq')}({operands})"
    if pattern is entry.entity.primary:
        call = f"print(db.get({pattern_call}{_option_arguments(options)}))"
    else:
        call = f"for entity in db.query({pattern_call}{_option_arguments(options)}):\n        print(entity)"
    return client_program(entity, writer, where, call)


def _arguments(
    entity: EntityDesign, names: Sequence[str], entered: Mapping[str, EnteredValue], writer: PythonWriter
) -> str:
    return writer.arguments(
        {name: parse_value(entity.field(name), entered[name].value) for name in names if name in entered}
    )


def _option_arguments(options: RunOptions) -> str:
    arguments = ", newest_first=True" if options.newest_first else ""
    arguments += "" if options.limit is None else f", limit={options.limit}"
    return arguments + (", consistent=True" if options.consistent else "")
