"""`tools.strings` finds the text that users read, and leaves out code."""

from __future__ import annotations

import pytest

from tools.strings import KINDS, python_strings, script_strings, template_strings


def test_a_message_is_found_and_a_docstring_is_not() -> None:
    """Sentences and f-strings of Python code are listed; docstrings, keys and SQL are not."""
    code = '''
def close(name):
    """Close the store that has this name."""
    raise ValueError(f"The table {name} is still in use.")
    key = "table-name"
    run("SELECT name FROM tables")
'''
    assert [str(string) for string in python_strings("a.py", code)] == [
        "a.py:4: The table {…} is still in use."
    ]


def test_the_text_and_the_tooltips_of_a_template_are_found() -> None:
    """Text nodes and readable attributes are listed; Jinja statements are not."""
    template = (
        '{% if ready %}\n<a class="plain link" title="Show the item">Open it</a>{{ item.name }}\n{% endif %}'
    )

    assert [str(string) for string in template_strings("a.html", template)] == [
        "a.html:2: title: Show the item",
        "a.html:2: Open it",
    ]


def test_the_labels_of_a_page_are_found() -> None:
    """Text between tags and quoted phrases are listed; comments, imports and class names are not."""
    code = """
import { x } from "./parts";
// This comment is not shown.
const empty = "No items yet";
const page = <p class="small muted">Delete this table</p>;
"""
    assert sorted(string.text for string in script_strings("a.tsx", code)) == [
        "Delete this table",
        "No items yet",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_strings(kind: str) -> None:
    """The tool reads the tree as it is."""
    assert len(list(KINDS[kind]())) > 100
