"""Read what surrounds tables in infrastructure: stream consumers, auto scaling, policies.

Everything is given in the API's names, as in `table_definitions`; the readers of CloudFormation and Terraform translate to these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.source_values import ValueReader, as_plain_data, as_text, parse_switch, show_value
from tavola.model import ModelError, Scaling
from tavola.model.document import (
    REPORT_BATCH_ITEM_FAILURES,
    Consumer,
    Policy,
    TableDesign,
    returns_item_failures,
)

REGION = "${AWS::Region}"
ACCOUNT = "${AWS::AccountId}"
_TABLE_IN_ARN = re.compile(r":table/([^/]+)")
_PIECE = r"(?:[^/$]|\$\{[^}]*\})*"
_UNNAMED_ARN = re.compile(
    rf"arn:aws:dynamodb:{re.escape(REGION)}:{re.escape(ACCOUNT)}:table/{_PIECE}\$\{{[^}}]*\}}{_PIECE}"
)
_REFERENCE = re.compile(r"(?<=.)\$\{([^}:]*)\}", re.DOTALL)
_AWS_POLICY = "arn:aws:iam::aws:policy/"
_WIDE = re.compile(r"DynamoDB|Administrator|PowerUser|ReadOnlyAccess|DatabaseAdmin|ViewOnly", re.IGNORECASE)
_DIMENSION = re.compile(r"dynamodb:(table|index):(Read|Write)CapacityUnits")


def table_arn(name: str) -> str:
    """Return the ARN of a table in an unknown region and account."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def stream_arn(name: str) -> str:
    """Return the ARN of a table's stream with an unknown label."""
    return f"{table_arn(name)}/stream/${{label}}"


def table_in_arn(arn: str) -> str | None:
    """Return the table that an ARN of a table, index or stream names."""
    match = _TABLE_IN_ARN.search(arn)
    return None if match is None else match[1]


def read_consumer(
    name: str,
    raw: Mapping[str, Any],
    function: Mapping[str, Any] | None,
    place: str,
    report: ImportReport,
    *,
    existing_function: str = "",
) -> Consumer | None:
    """Return the consumer that an event source mapping describes; None if the mapping is disabled.

    `function` is None if the file does not define it; then `existing_function` is its name or ARN.
    """
    read = ValueReader(report)
    if parse_switch(raw.get("Enabled", True)) is False:
        report.add(place, "the event source mapping is disabled; not imported")
        return None
    if function is None:
        report.add(
            place,
            f"function {existing_function or '(unnamed)'} is not defined in the file; using Lambda's defaults of 3 s and 128 MB",
        )

    def whole(member: str, default: int, least: int = 0, of: Mapping[str, Any] | None = raw) -> int:
        of = of or {}
        number = read.integer(of.get(member), f"{place}.{member}", least)
        return default if number is None else number

    filters: list[Mapping[str, Any]] = []
    criteria = read.object(raw.get("FilterCriteria"), f"{place}.FilterCriteria")
    for entry in read.objects(criteria.get("Filters"), f"{place}.FilterCriteria.Filters"):
        pattern = _parse_pattern(entry.get("Pattern"))
        if pattern is None:
            report.add(
                f"{place}.FilterCriteria",
                f"ignored {show_value(entry.get('Pattern'))}: not a filter pattern in JSON",
            )
        else:
            filters.append(pattern)
    destination = read.object(
        read.object(raw.get("DestinationConfig"), f"{place}.DestinationConfig").get("OnFailure"),
        f"{place}.DestinationConfig.OnFailure",
    )
    starting = as_text(raw.get("StartingPosition"))
    if starting not in ("TRIM_HORIZON", "LATEST"):
        if starting is not None:
            report.add(
                f"{place}.StartingPosition",
                f"{show_value(starting)} is not TRIM_HORIZON or LATEST; using LATEST",
            )
        starting = "LATEST"
    return Consumer(
        name,
        handler=read.text((function or {}).get("Handler"), f"{place}.Handler") or "",
        batch_size=whole("BatchSize", 100, 1),
        window_s=whole("MaximumBatchingWindowInSeconds", 0),
        parallelization=whole("ParallelizationFactor", 1, 1),
        retries=whole("MaximumRetryAttempts", -1, -1),
        max_age_s=whole("MaximumRecordAgeInSeconds", -1, -1),
        bisect=read.flag(raw.get("BisectBatchOnFunctionError"), f"{place}.BisectBatchOnFunctionError"),
        report_batch_item_failures=REPORT_BATCH_ITEM_FAILURES
        in read.texts(raw.get("FunctionResponseTypes"), f"{place}.FunctionResponseTypes"),
        filters=tuple(filters),
        failures=read.text(destination.get("Destination"), f"{place}.DestinationConfig"),
        timeout_s=whole("Timeout", 3, 1, function),  # Lambda's default
        memory_mb=whole("MemorySize", 128, 1, function),
        starting=cast(Any, starting),
        function="" if function is not None else existing_function or f"${{{name}}}",
        returns_batch_item_failures=returns_item_failures(_inline_code(function or {})),
    )


def _inline_code(function: Mapping[str, Any]) -> str:
    """Return the code of a function that is written in the template itself, in CloudFormation's or SAM's way."""
    code = function.get("Code")
    zip_file = code.get("ZipFile") if isinstance(code, Mapping) else None
    return as_text(zip_file) or as_text(function.get("InlineCode")) or ""


def _parse_pattern(raw: Any) -> Mapping[str, Any] | None:
    text = as_text(raw)
    if text is not None:
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            return None
    pattern = as_plain_data(raw)
    return pattern if isinstance(pattern, Mapping) else None


def add_consumers(
    tables: Iterable[TableDesign], consumers: Iterable[tuple[str, str, Consumer]], report: ImportReport
) -> list[TableDesign]:
    """Return the tables with their consumers, each given with its place and the ARN of its stream."""
    tables_by_name = {table.name: table for table in tables}
    for place, arn, consumer in consumers:
        table = tables_by_name.get(table_in_arn(arn) or "")
        if table is None:
            source = show_value(arn) if arn else "an unknown stream"
            report.add(place, f"reads {source}, not the stream of a table in this file; not imported")
        elif any(consumer.name == other.name for other in table.consumers):
            report.add(place, f"{table.name} already has a consumer named {consumer.name!r}; not imported")
        else:
            tables_by_name[table.name] = replace(table, consumers=(*table.consumers, consumer))
    return list(tables_by_name.values())


@dataclass(frozen=True, slots=True)
class ScalingTarget:
    """One auto scaling target: the resource, its bounds and its target utilization."""

    place: str
    resource: str  # table/NAME or table/NAME/index/INDEX
    dimension: str
    least: int | None
    most: int | None
    target: int | None = None


def add_scaling(
    tables: Iterable[TableDesign],
    targets: Iterable[ScalingTarget],
    report: ImportReport,
    *,
    require_indexes: bool = True,
) -> list[TableDesign]:
    """Return the tables with their auto scaling where it covers reads, writes and every global index, as a design requires.

    Partial auto scaling is recorded as unknown: it is neither completed nor switched off.
    """
    tables_by_name = {table.name: table for table in tables}
    per_table: dict[str, dict[str, ScalingTarget]] = {}
    indexes: set[tuple[str, str]] = set()
    for target in targets:
        kind = _DIMENSION.fullmatch(target.dimension)
        if kind is None:
            continue
        name = target.resource.removeprefix("table/").split("/")[0]
        if name not in tables_by_name:
            report.add(
                target.place,
                f"scales {show_value(target.resource)}, which is not a table in this file; not imported",
            )
        elif kind[1] == "index":
            indexes.add((name, target.resource.rpartition("/")[2]))
            report.add(
                target.place, "an index scales with its table in a design; its own limits are not imported"
            )
        else:
            per_table.setdefault(name, {})[kind[2]] = target
    for name, ends in per_table.items():
        table = tables_by_name[name]
        if table.settings.read_units is not None:
            lacking = [word for word in ("Read", "Write") if word not in ends]
            lacking += [
                f"the index {index.name}"
                for index in table.indexes
                if require_indexes and not index.local and (name, index.name) not in indexes
            ]
            lacking += [f"{end.dimension} (no policy)" for end in ends.values() if end.target is None]
            if lacking:
                place = next(iter(ends.values())).place
                report.add(
                    place,
                    f"auto scaling of {name} does not cover {', '.join(lacking)}; a design scales all or nothing, so it is recorded as unknown",
                )
                unknown = (*table.settings.unknown, "scaling")
                tables_by_name[name] = replace(table, settings=replace(table.settings, unknown=unknown))
                continue
        scaling = _read_scaling(table, ends, report)
        if scaling is not None:
            tables_by_name[name] = replace(table, settings=replace(table.settings, scaling=scaling))
    return list(tables_by_name.values())


def _read_scaling(
    table: TableDesign, ends: Mapping[str, ScalingTarget], report: ImportReport
) -> Scaling | None:
    units = {"Read": table.settings.read_units, "Write": table.settings.write_units}
    place = next(iter(ends.values())).place
    if units["Read"] is None or units["Write"] is None:
        report.add(place, f"{table.name} is on demand; its auto scaling is not imported")
        return None
    bounds: dict[str, tuple[int, int]] = {}
    for word, fixed in units.items():
        assert fixed is not None, "checked above"
        end = ends.get(word)
        least = fixed if end is None or end.least is None else end.least
        most = max(fixed, least) if end is None or end.most is None else end.most
        bounds[word] = (least, most)
    targets = {end.target for end in ends.values() if end.target is not None}
    if len(targets) > 1:
        report.add(
            place, f"reads and writes of {table.name} have different target utilizations; using the lower"
        )
    try:
        return Scaling(
            bounds["Read"][1],
            bounds["Write"][1],
            bounds["Read"][0],
            bounds["Write"][0],
            min(targets, default=70),
        )
    except ModelError as error:
        report.add(place, f"auto scaling not imported: {error.problem}")
        return None


def read_policy(
    name: str, document: Any, place: str, tables: Iterable[str], report: ImportReport
) -> Policy | None:
    """Return a policy that concerns DynamoDB; None for any other, or for one that cannot be read, which is noted."""
    text = as_text(document)
    if text is not None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
    document = as_plain_data(document)
    statements = document.get("Statement") if isinstance(document, Mapping) else None
    if not isinstance(statements, list | Mapping):
        report.add(place, "the policy document cannot be resolved from the file; not imported")
        return None
    statement_list = statements if isinstance(statements, list) else [statements]
    if not any(
        isinstance(statement, Mapping) and _mentions_dynamodb(statement) for statement in statement_list
    ):
        return None
    known = set(tables)
    named = {table_name for table_name in map(table_in_arn, _texts(document)) if table_name in known}
    return Policy(name, _spell_references(document), tuple(sorted(named)))


def _mentions_dynamodb(statement: Mapping[str, Any]) -> bool:
    """Return whether a statement may concern DynamoDB: by an action of it, by a wildcard, or by an unresolved action."""
    if "NotAction" in statement:
        return True
    return any(
        action == "*" or action.startswith("$") or action.casefold().startswith("dynamodb:")
        for action in _texts(statement.get("Action"))
    )


def note_managed_policy(arn: str, place: str, report: ImportReport) -> None:
    """Note a policy that is defined elsewhere, unless it is an AWS policy for another service."""
    name = arn.rpartition("/")[2]
    is_aws_policy = arn.startswith(_AWS_POLICY) or "/" not in arn.replace("${", "")
    if is_aws_policy and "$" not in arn and not _WIDE.search(name):
        return
    report.add(place, f"policy {show_value(arn)} is not defined in the file; not imported")


def _spell_references(value: Any) -> Any:
    """Return a document whose references cannot be mistaken for IAM variables.

    The ARN of a table with an unresolved name becomes `${Table.Arn}`; any other reference becomes its bare name.
    """
    match value:
        case str():
            return _REFERENCE.sub(r"\1", _UNNAMED_ARN.sub("${Table.Arn}", value))
        case dict():
            return {name: _spell_references(member) for name, member in value.items()}
        case list():
            return [_spell_references(element) for element in value]
        case _:
            return value


def _texts(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for element in value.values():
                yield from _texts(element)
        case list():
            for element in value:
                yield from _texts(element)
        case _:
            pass
