"""Render a template as YAML, with CloudFormation's functions in their short form (`!Ref`, `!GetAtt`, `!Sub`, `!If`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_SHORT_TAGS = {
    "Ref": "!Ref",
    "Fn::GetAtt": "!GetAtt",
    "Fn::Sub": "!Sub",
    "Fn::If": "!If",
    "Fn::Join": "!Join",
    "Fn::Not": "!Not",
    "Fn::Equals": "!Equals",
}
_WIDTH = 1_000_000  # do not fold lines


def render_yaml(data: Mapping[str, Any]) -> str:
    """Render a mapping as a YAML document, in the order of its members."""
    return yaml.dump(
        data,
        Dumper=_TemplateDumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
    )


class _TemplateDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # indent lists below their key

    def choose_scalar_style(self) -> str:
        """Leave a tagged scalar unquoted where YAML allows it: `!Ref Topic`, which PyYAML would quote."""
        event: Any = self.event
        implicit = event.implicit
        if event.tag is not None and event.tag in _SHORT_TAGS.values():
            event.implicit = (True, True)
        style: str = super().choose_scalar_style()
        event.implicit = implicit
        return style


def _represent_mapping(dumper: _TemplateDumper, data: dict[str, Any]) -> yaml.Node:
    if len(data) == 1:
        ((name, argument),) = data.items()
        tag = _SHORT_TAGS.get(name)
        if tag is not None:
            if name == "Fn::GetAtt":
                argument = ".".join(argument)
            if isinstance(argument, list):
                return dumper.represent_sequence(tag, argument)
            return dumper.represent_scalar(tag, argument)
    return dumper.represent_dict(data)


def _represent_text(dumper: _TemplateDumper, text: str) -> yaml.Node:
    # Line breaks such as U+0085 survive only in double quotes. Of the others, YAML 1.1 and 1.2 disagree on which are
    # numbers and booleans.
    quoted = not text.isprintable() or text[:1] in tuple("0123456789+-.") or text.lower() in ("y", "n")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_TemplateDumper.add_representer(dict, _represent_mapping)
_TemplateDumper.add_representer(str, _represent_text)
