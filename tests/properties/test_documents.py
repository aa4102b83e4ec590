"""Laws of the design's document: however it is damaged, it reads as a design or is refused with its path."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tavola.model.document import (
    DocumentRefused,
    check_references,
    design_document,
    read_document,
    write_document,
)
from tests.client import desk

DOCUMENT = design_document(desk)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document: the container, and the name or number in it."""
    members: list[tuple[Any, Any]] = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [place for step, member in members for place in ((value, step), *_places(member))]


def _texts(value: Any) -> list[str]:
    return sorted({container[step] for container, step in _places(value) if isinstance(container[step], str)})


@given(st.data())
def test_a_damaged_document_is_a_design_or_is_refused_with_its_path(data: st.DataObject) -> None:
    """No damage makes a reader fail otherwise, and what it does read is whole and can be written again."""
    document = deepcopy(DOCUMENT)
    for _ in range(data.draw(st.integers(1, 3))):
        places = _places(document)
        container, step = places[data.draw(st.integers(0, len(places) - 1))]
        if data.draw(st.booleans()):
            container[step] = data.draw(JSON | st.sampled_from(_texts(DOCUMENT)))
        else:
            del container[step]

    refused: DocumentRefused | None = None
    try:
        design = read_document(document)
    except DocumentRefused as error:
        refused = error

    if refused is not None:
        assert refused.place.startswith("$")
        assert refused.problem
    else:
        check_references(design)
        assert read_document(json.loads(json.dumps(write_document(design)))) == design
