"""An OpenAPI document as the API page shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.apps.shell.openapi import example, group_operations

DOCUMENT: dict[str, Any] = {
    "tags": [{"name": "tickets", "description": "What customers ask."}],
    "paths": {
        "/healthz": {"get": {"tags": ["service"], "responses": {}}},
        "/tickets": {
            "get": {
                "tags": ["tickets"],
                "summary": "A customer's tickets",
                "parameters": [
                    {"name": "caller", "in": "query", "required": True, "schema": {"type": "string"}},
                    {
                        "name": "limit",
                        "in": "query",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 9},
                    },
                    {
                        "name": "state",
                        "in": "query",
                        "schema": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
                    },
                ],
                "responses": {"200": {"description": "A page"}},
            },
            "post": {
                "tags": ["tickets"],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ticket"}}}
                },
                "responses": {},
            },
        },
    },
    "components": {
        "schemas": {
            "Ticket": {
                "type": "object",
                "required": ["subject", "parts"],
                "properties": {
                    "subject": {"type": "string", "examples": ["It's broken"]},
                    "note": {"type": "string"},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Ticket"}},
                },
            }
        }
    },
}


def test_operations_are_grouped_by_tag() -> None:
    """Tags keep their order, and the service's own operations come last."""
    groups = group_operations(DOCUMENT, "http://h")

    assert [(group.name, len(group.operations)) for group in groups] == [("tickets", 2), ("service", 1)]
    assert groups[0].description == "What customers ask."


def test_a_command_can_be_run() -> None:
    """The command has everything that is required, quoted for the shell."""
    listed, posted = group_operations(DOCUMENT, "http://h")[0].operations

    assert listed.command == "curl 'http://h/tickets?caller=…'"
    assert [each.kind for each in listed.parameters] == ["string", "integer 1–9", "a | b"]
    assert posted.command.startswith(
        "curl -X POST 'http://h/tickets' -H 'Content-Type: application/json' -d '{\"subject\": \"It'\\''s broken\""
    )


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "boolean"}, True),
        ({"type": "string", "format": "date"}, "2026-11-03"),
        ({"enum": ["open", "closed"]}, "open"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "…"),
        ({"default": 20, "type": "integer"}, 20),
        ({}, None),
    ],
)
def test_an_example_is_the_simplest_value(schema: dict[str, Any], value: Any) -> None:
    """An example is the schema's own, or the simplest value that it allows."""
    assert example(DOCUMENT, schema) == value


def test_a_recursive_schema_has_a_finite_example() -> None:
    """A schema that contains itself gives a finite example."""
    assert "parts" in example(DOCUMENT, {"$ref": "#/components/schemas/Ticket"})


PATCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["open", "closed"]},
        "note": {
            "anyOf": [{"type": "string", "maxLength": 4_000}, {"type": "null"}],
            "description": "Why.",
        },
        "text": {"type": "string"},
        "vector": {"type": "array", "items": {"type": "number", "minimum": -3e38}, "maxItems": 64},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Ticket"}},
    },
    "anyOf": [{"required": ["status"]}, {"required": ["note"]}],
    "oneOf": [{"required": ["text"]}, {"required": ["vector"]}],
}


def changing(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the document with one operation that changes something."""
    content = {"application/json": {"schema": schema}}
    header = {"name": "If-Match", "in": "header", "required": False, "schema": {"type": "string"}}
    operation = {"parameters": [header], "requestBody": {"content": content}, "responses": more}
    return {**DOCUMENT, "paths": {"/tickets/1": {"patch": operation}}}


def test_a_body_lists_every_member() -> None:
    """Optional members are listed too, with their type; of two that exclude each other, an example has one."""
    (operation,) = group_operations(changing(PATCH), "http://h")[0].operations

    members = {each.path: (each.kind, each.required, each.description) for each in operation.members}
    assert members["status"] == ("open | closed", False, "")
    assert members["note"] == ("string, up to 4,000 characters", False, "Why.")
    assert members["vector"] == ("list of number; up to 64 entries", False, "")
    assert members["parts[].subject"] == ("string", True, "")
    assert operation.body is not None
    assert list(json.loads(operation.body)) == ["status", "note", "text", "parts"]


def test_a_command_has_what_is_needed_and_no_more() -> None:
    """A change of an existing record needs If-Match, one that may create does not; a body of any type is sent as bytes."""
    (change,) = group_operations(changing(PATCH, **{"200": {}, "428": {}}), "http://h")[0].operations
    assert change.command == (
        "curl -X PATCH 'http://h/tickets/1' -H 'If-Match: *' -H 'Content-Type: application/json' "
        '-d \'{"status": "open", "text": "…"}\''
    )

    document = changing({}, **{"201": {}, "428": {}})
    document["paths"]["/tickets/1"]["patch"]["requestBody"] = {"content": {"*/*": {}}}
    (kept,) = group_operations(document, "http://h")[0].operations
    assert kept.command == (
        "curl -X PATCH 'http://h/tickets/1' -H 'Content-Type: application/octet-stream' --data-binary @file"
    )
