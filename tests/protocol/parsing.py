"""Helpers of these tests: parse a request, or return the fault that refuses it."""

from __future__ import annotations

import json
from typing import Any

from tavola.protocol.faults import Fault, ValidationFault
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.requests import parse

INVALID = "One or more parameter values were invalid: "


def parse_request(operation: str, request: dict[str, Any], wording: MessageStyle = "current") -> Any:
    """Return the parsed request."""
    return parse(operation, json.dumps(request).encode(), wording)


def fault(operation: str, request: Any, wording: MessageStyle = "current") -> Fault:
    """Return the fault that a request gets."""
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    try:
        parsed = parse(operation, body, wording)
    except Fault as raised:
        return raised
    raise AssertionError(f"{operation} took {parsed}")


def refusal(operation: str, request: dict[str, Any], wording: MessageStyle = "current") -> str:
    """Return the text of the ValidationException that a request gets."""
    raised = fault(operation, request, wording)
    assert isinstance(raised, ValidationFault), raised.body()
    assert raised.message is not None
    return raised.message
