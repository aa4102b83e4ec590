"""Scrubbing: what may be told of a request to people who may not see its data.

A name of a table or an index may; a value, an attribute, an expression, a statement and a token may not. The
sentence of a refusal often quotes what was refused, so it is told up to where a quotation may begin, and of that
no word which the request itself holds. AWS's sentences say first what is wrong and then what was given, so
what is left still says what was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tavola.protocol.arns import parse_resource_arn, table_name_of
from tavola.protocol.faults import Fault

BODY_BYTES_MAX: Final = 256 * 1024  # of a larger request neither names nor sentence are told when it fails
SENTENCE_CHARACTERS_MAX: Final = 200
HIDDEN: Final = "…"

# Sentences that hold nothing of a request, or only what the scrubbed record has in another place.
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

# The table that a statement begins with. Nothing in single quotes comes before it: that would be a value.
_STATEMENT = re.compile(
    r"""\s*(?:EXISTS\s*\(\s*)?
    (?:UPDATE|INSERT\s+INTO|DELETE\s+FROM|SELECT\s(?:[^'"]|"[^"]*")*?\sFROM)
    \s+(?:"(?P<quoted>[^"]+)"|(?P<plain>[\w-]+))(?:\."(?P<index>[^"]+)")?""",
    re.IGNORECASE | re.VERBOSE,
)

_decode = msgspec.json.Decoder().decode


def decode_body(body: bytes) -> Any:
    """Return a request's JSON for a look inside; None where there is none, or too much."""
    if len(body) > BODY_BYTES_MAX:
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def scrub_message(fault: Fault, request: Any) -> str | None:
    """Return what may be told of a fault's sentence; `request` is the decoded body, None if it is unknown."""
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
    told = _QUOTES.split(text, maxsplit=1)[0][:SENTENCE_CHARACTERS_MAX]
    given = {word.lower() for text in texts_in(request) for word in _WORD.findall(text)}
    told = _WORD.sub(lambda word: HIDDEN if word[0].lower() in given else word[0], told)
    return told.strip(" ,") or None


def denying_policy(fault: Fault) -> str | None:
    """Return the kind of policy that denied, or that did not allow, by the sentence of a denial."""
    found = _DENIAL.fullmatch(fault.message or "")
    return None if found is None else found[1]


def texts_in(value: Any) -> Iterator[str]:
    """Give every text in a decoded request that its sender chose: values, and the names of their attributes.

    The members of a request and the types of values are DynamoDB's own words, so they are left out.
    """
    waiting = [(value, False)]
    while waiting:
        found, chosen = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            waiting += [(member, False) for member in found]
        elif isinstance(found, dict):
            for name, member in found.items():
                if chosen or not name.isalpha() or name[:1].islower():
                    yield name
                waiting.append((member, name in _NAMED_BY_SENDER))


_NAMED_BY_SENDER = frozenset(
    {
        *("AttributeUpdates", "ExclusiveStartKey", "Expected", "ExpressionAttributeNames"),
        *("ExpressionAttributeValues", "Item", "Key", "KeyConditions", "M", "QueryFilter", "RequestItems"),
        "ScanFilter",
    }
)


def tables_in(request: Any) -> list[tuple[str, str | None]]:
    """Return the tables, with the index if one is named, that a decoded request names."""
    found: dict[tuple[str, str | None], None] = {}
    if isinstance(request, dict):
        _note(found, request)
        for source in ("SourceTableName", "SourceTableArn", "TargetTableName", "GlobalTableName"):
            _note(found, {"TableName": request.get(source)})
        for name in request["RequestItems"] if isinstance(request.get("RequestItems"), dict) else ():
            _note(found, {"TableName": name})
        actions = request.get("TransactItems")
        for action in actions if isinstance(actions, list) else ():
            for part in action.values() if isinstance(action, dict) else ():
                _note(found, part)
        _note(found, _of_statement(request))
        for member in ("Statements", "TransactStatements"):
            statements = request.get(member)
            for each in statements if isinstance(statements, list) else ():
                _note(found, _of_statement(each))
        parameters = request.get("TableCreationParameters")
        _note(found, parameters)
    return list(found)


def _of_statement(part: Any) -> dict[str, Any]:
    text = part.get("Statement") if isinstance(part, dict) else None
    begun = _STATEMENT.match(text) if isinstance(text, str) else None
    return (
        {} if begun is None else {"TableName": begun["quoted"] or begun["plain"], "IndexName": begun["index"]}
    )


def arns_in(request: Any) -> list[str]:
    """Return the ARNs of streams, backups and the like that a decoded request names."""
    if not isinstance(request, dict):
        return []
    named = (
        request.get(member)
        for member in ("ResourceArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn", "TableArn")
    )
    return [arn for arn in named if isinstance(arn, str) and parse_resource_arn(arn) is not None]


def _note(found: dict[tuple[str, str | None], None], part: Any) -> None:
    name = part.get("TableName") if isinstance(part, dict) else None
    if isinstance(name, str) and _NAME.fullmatch(table_name_of(name)):
        index = part.get("IndexName")
        known = index if isinstance(index, str) and _NAME.fullmatch(index) else None
        found[table_name_of(name), known] = None
