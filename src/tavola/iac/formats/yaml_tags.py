"""Load CloudFormation's YAML: short tags such as `!Ref` become their long form, and dates stay text.

Only plain data is constructed, whatever a tag says.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import yaml

_BARE = ("Ref", "Condition")  # written without `Fn::`
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"
_NO_JSON = ("binary", "timestamp", "set", "omap", "pairs")


class TemplateLoader(yaml.SafeLoader):
    """A safe loader that reads tags as intrinsic functions."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the loader declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping with text keys, as in JSON; refuse a repeated key."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} occurs twice", key.start_mark
                    )
                seen.add(key.value)
        self.flatten_mapping(node)
        members: dict[Hashable, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be text, not a list or a mapping", key.start_mark
                )
            members[key.value] = self.construct_object(value, deep=True)
        return members


def _function(loader: TemplateLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode), "YAML has three kinds of nodes"
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in _BARE else f"Fn::{suffix}": value}


def _mapping(loader: TemplateLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    return loader.construct_mapping(node, deep=True)


def _sequence(loader: TemplateLoader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node, deep=True)


def _refuse(loader: TemplateLoader, node: yaml.Node) -> Any:
    raise yaml.constructor.ConstructorError(
        None, None, f"the tag !!{node.tag.rpartition(':')[2]} is not supported", node.start_mark
    )


def _float(loader: TemplateLoader, node: yaml.ScalarNode) -> float:
    number = loader.construct_yaml_float(node)
    if not math.isfinite(number):
        raise yaml.constructor.ConstructorError(
            None, None, f"{node.value} is not a finite number", node.start_mark
        )
    return number


for _word in _NO_JSON:
    TemplateLoader.add_constructor(f"tag:yaml.org,2002:{_word}", _refuse)
TemplateLoader.add_constructor("tag:yaml.org,2002:float", _float)
TemplateLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
TemplateLoader.add_constructor("tag:yaml.org,2002:seq", _sequence)
TemplateLoader.add_multi_constructor("!", _function)
