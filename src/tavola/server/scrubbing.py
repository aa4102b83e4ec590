"""Scrubbing: removes data from what the access log says about a request.

Names of tables and indexes may be logged; values, attributes, expressions, statements and tokens may not. Error messages
often quote the request, so a message is cut where a quotation may begin, and each remaining word that also occurs in the
request is hidden. AWS's messages say first what is wrong and then quote, so the rest still says what was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tavola.protocol.arns import parse_resource_arn, table_name_of
from tavola.protocol.faults import Fault

BODY_BYTES_MAX: Final = 256 * 1024  # a larger request is logged without names and error message
MESSAGE_CHARACTERS_MAX: Final = 200
HIDDEN: Final = "…"

# Faults whose messages contain nothing of a request, or only what the record shows elsewhere.
_WHOLE = frozenset(
    {
        *("ConditionalCheckFailedException", "ExpiredTokenException", "IdempotentParameterMismatchException"),
        *("MissingAuthenticationTokenException", "TransactionCanceledException"),
        *("TransactionConflictException", "TransactionInProgressException", "UnrecognizedClientException"),
    }
)
_SIGNATURES = frozenset({"IncompleteSignatureException", "InvalidSignatureException"})
_SIGNATURE_QUOTES = re.compile(r"Authorization=|,? [Gg]ot '|,? not '|HTTP: '|'algorithm': '")
_DENIAL = re.compile(
    r"User: [\w:/+=,.@*-]+ is not authorized to perform: [\w:]+ on resource: [\w:/.*-]+"
    r"(?: (?:because|with) ([\w ,-]*?)(?: allows the [\w:]+ action)?)?"
)
_ENVELOPE = re.compile(r"\A\d+ validation errors? detected: ")
_CONSTRAINT = re.compile(r"failed to satisfy constraint: (Member must [a-z ]+)")
_QUOTES = re.compile(r"[:;='\"`“‘<>\[\](){}\\/|#$@%^*~\d]")
_WORD = re.compile(r"[\w-]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")

# The table at the start of a statement. Nothing in single quotes may precede it: that would be a value.
_STATEMENT = re.compile(
    r"""\s*(?:EXISTS\s*\(\s*)?
    (?:UPDATE|INSERT\s+INTO|DELETE\s+FROM|SELECT\s(?:[^'"]|"[^"]*")*?\sFROM)
    \s+(?:"(?P<quoted>[^"]+)"|(?P<plain>[\w-]+))(?:\."(?P<index>[^"]+)")?""",
    re.IGNORECASE | re.VERBOSE,
)

_decode = msgspec.json.Decoder().decode


def decode_body(body: bytes) -> Any:
    """Return a request's JSON, decoded; None if it is malformed or too large."""
    if len(body) > BODY_BYTES_MAX:
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def scrub_message(fault: Fault, request: Any) -> str | None:
    """Return the loggable part of a fault's message; `request` is the decoded body, None if it is unknown."""
    text = fault.message
    if text is None or fault.code in _WHOLE:
        return text
    if fault.code in _SIGNATURES:
        return _SIGNATURE_QUOTES.split(text, maxsplit=1)[0].strip() or None
    if _DENIAL.fullmatch(text):
        return text
    if request is None:
        return None
    constraint = _CONSTRAINT.search(text)
    text = _ENVELOPE.sub("", text) if constraint is None else constraint[1]
    message = _QUOTES.split(text, maxsplit=1)[0][:MESSAGE_CHARACTERS_MAX]
    words = {word.lower() for text in texts_in(request) for word in _WORD.findall(text)}
    message = _WORD.sub(lambda word: HIDDEN if word[0].lower() in words else word[0], message)
    return message.strip(" ,") or None


def denying_policy(fault: Fault) -> str | None:
    """Return the kind of policy that denied access, or did not allow it, from the message of a denial."""
    denial = _DENIAL.fullmatch(fault.message or "")
    return None if denial is None else denial[1]


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a decoded request that its sender chose: values and attribute names.

    The names of request members and value types are DynamoDB's own, so they are left out.
    """
    pending = [(value, False)]
    while pending:
        part, names_are_senders = pending.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            pending += [(member, False) for member in part]
        elif isinstance(part, dict):
            for name, member in part.items():
                if names_are_senders or not name.isalpha() or name[:1].islower():
                    yield name
                pending.append((member, name in _NAMED_BY_SENDER))


_NAMED_BY_SENDER = frozenset(
    {
        *("AttributeUpdates", "ExclusiveStartKey", "Expected", "ExpressionAttributeNames"),
        *("ExpressionAttributeValues", "Item", "Key", "KeyConditions", "M", "QueryFilter", "RequestItems"),
        "ScanFilter",
    }
)


def tables_in(request: Any) -> list[tuple[str, str | None]]:
    """Return the tables that a decoded request names, each with its index if it names one."""
    tables: dict[tuple[str, str | None], None] = {}
    if isinstance(request, dict):
        _add_table(tables, request)
        for source in ("SourceTableName", "SourceTableArn", "TargetTableName", "GlobalTableName"):
            _add_table(tables, {"TableName": request.get(source)})
        for name in request["RequestItems"] if isinstance(request.get("RequestItems"), dict) else ():
            _add_table(tables, {"TableName": name})
        actions = request.get("TransactItems")
        for action in actions if isinstance(actions, list) else ():
            for part in action.values() if isinstance(action, dict) else ():
                _add_table(tables, part)
        _add_table(tables, _table_of_statement(request))
        for member in ("Statements", "TransactStatements"):
            statements = request.get(member)
            for statement in statements if isinstance(statements, list) else ():
                _add_table(tables, _table_of_statement(statement))
        _add_table(tables, request.get("TableCreationParameters"))
    return list(tables)


def _table_of_statement(part: Any) -> dict[str, Any]:
    text = part.get("Statement") if isinstance(part, dict) else None
    match = _STATEMENT.match(text) if isinstance(text, str) else None
    if match is None:
        return {}
    return {"TableName": match["quoted"] or match["plain"], "IndexName": match["index"]}


def arns_in(request: Any) -> list[str]:
    """Return the resource ARNs that a decoded request names."""
    if not isinstance(request, dict):
        return []
    named = (
        request.get(member)
        for member in ("ResourceArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn", "TableArn")
    )
    return [arn for arn in named if isinstance(arn, str) and parse_resource_arn(arn) is not None]


def _add_table(tables: dict[tuple[str, str | None], None], part: Any) -> None:
    name = part.get("TableName") if isinstance(part, dict) else None
    if isinstance(name, str) and _NAME.fullmatch(table_name_of(name)):
        index = part.get("IndexName")
        known = index if isinstance(index, str) and _NAME.fullmatch(index) else None
        tables[table_name_of(name), known] = None
