"""Render a design as the Python module that declares it.

Keys, indexes and patterns are complete. Some things cannot be restored: a default is written only where a single value is possible,
a nested record becomes a dict, and an enum a Literal of its values. Names that are invalid in Python are changed. A comment at the
top of the module lists what was lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.solver.names import find_free_name
from tavola.design.solver.python_names import make_python_names
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    PatternDesign,
    TableDesign,
    WritePattern,
)
from tavola.values import Value

_NAMES = (
    "AccessPattern", "Attr", "Collection", "Consumer", "Entity", "EpochMilliseconds", "EpochSeconds", "Exact", "Gsi",
    "Lsi", "PrimaryKey", "Query", "Scaling", "Shards", "Sort", "Table", "WritePattern", "attr", "member", "sort",
)  # fmt: skip
_BUILTINS = ("bool", "bytes", "dict", "float", "int", "list", "set", "str")
_MODULES = {
    "Annotated": "typing", "Any": "typing", "Literal": "typing", "Decimal": "decimal", "UUID": "uuid", "Field": "pydantic",
}  # fmt: skip
_TYPES = {
    "text": "{str}", "int": "{int}", "decimal": "{Decimal}", "bool": "{bool}", "datetime": "{dt}.datetime",
    "date": "{dt}.date", "time": "{dt}.time", "duration": "{dt}.timedelta", "uuid": "{UUID}", "bytes": "{bytes}",
    "any": "{Any}", "epoch-seconds": "{Annotated}[{dt}.datetime, {EpochSeconds}]",
    "float": "{Annotated}[{float}, {Exact}]",
    "epoch-milliseconds": "{Annotated}[{dt}.datetime, {EpochMilliseconds}]",
}  # fmt: skip
_BY_TAG = {
    "S": "{str}", "N": "{Decimal}", "B": "{bytes}", "BOOL": "{bool}", "L": "{list}[{Any}]", "M": "{dict}[{str}, {Any}]",
    "SS": "{set}[{str}]", "NS": "{set}[{Decimal}]", "BS": "{set}[{bytes}]",
}  # fmt: skip
_CONTAINERS = {"list": "{list}[…]", "set": "{set}[…]", "map": "{dict}[{str}, …]"}
_EMPTY = {"L": "list", "M": "dict", "SS": "set", "NS": "set", "BS": "set"}
_WIDTH = 88  # longer lines are broken; indentation is not counted
_PLACES_MAX = 12  # named in one comment
_PART = re.compile(r"\{(\w+)\}")
_HEAD = "{doc}\n\nfrom __future__ import annotations\n\n"


def render_declarations(design: Design, doc: str = "The solved design.") -> str:
    """Return the source of a module that declares a design; a comment at its top lists what was lost."""
    valid_design, renamed = make_python_names(design)
    return _PythonModule(valid_design, renamed).text(doc)


class _PythonModule:
    def __init__(self, design: Design, renamed: tuple[str, ...]) -> None:
        self.design = design
        view_names = {view.name for view in design.views}
        for table in design.tables:
            view_names |= {table.label, *(index.label for index in table.indexes)}
            for collection in table.collections:
                view_names |= {
                    collection.name,
                    *collection.parts,
                    *(member.name for member in collection.members),
                }
        for entity in (*design.views, *(e for table in design.tables for e in table.entities)):
            view_names |= {entity.name, *(f.name for f in entity.fields), *(p.name for p in entity.patterns)}
        self.names: dict[str, str] = {}
        for name in (*_NAMES, *_MODULES, "dt"):
            other = f"tavola_{name}" if name.islower() else f"Tavola{name}"
            self.names[name] = find_free_name(name, view_names, other)
        for name in _BUILTINS:
            self.names[name] = f"builtins.{name}" if name in view_names else name
        self.used: set[str] = set()
        self.lost: dict[str, list[str]] = {"renamed, since the name is not valid in Python": list(renamed)}
        if design.ignores:
            places = [f"{ignore.rule} at {ignore.place}" for ignore in design.ignores]
            self.lost["suppressed lint findings"] = places

    def text(self, doc: str) -> str:
        body = "\n\n\n".join(self._blocks())
        imports = []
        if any(self.names[name] != name for name in self.used & set(_BUILTINS)):
            imports.append("import builtins\n")
        if "dt" in self.used:
            imports.append(f"import datetime as {self.names['dt']}\n")
        for module in ("decimal", "typing", "uuid"):
            imports += self._import(module)
        third_party = self._import("pydantic")
        imported = [self._import_clause(name) for name in _NAMES if name in self.used]
        lines = "".join(f"    {name},\n" for name in imported)
        third_party.append(f"from tavola import (\n{lines})\n")
        head = _HEAD.format(doc=_docstring(doc)) + self._losses()
        return (
            head + "".join(imports) + ("\n" if imports else "") + "".join(third_party) + "\n\n" + body + "\n"
        )

    def _import(self, module: str) -> list[str]:
        names = [
            self._import_clause(name)
            for name, source in _MODULES.items()
            if source == module and name in self.used
        ]
        return [f"from {module} import {', '.join(names)}\n"] if names else []

    def _import_clause(self, name: str) -> str:
        return name if self.names[name] == name else f"{name} as {self.names[name]}"

    def _losses(self) -> str:
        """Return the comment that lists what the module could not express."""
        wrapped = []
        for loss, places in self.lost.items():
            if places:
                few = places[:_PLACES_MAX] + (
                    [f"and {len(places) - _PLACES_MAX} more"] if len(places) > _PLACES_MAX else []
                )
                wrapped += wrap(f"- {loss}: {', '.join(few)}", _WIDTH, subsequent_indent="  ")
        if not wrapped:
            return ""
        lines = ["Not expressed in this module:", *wrapped]
        return "".join(f"# {line}\n" for line in lines) + "\n"

    def use(self, name: str) -> str:
        """Return the name of a library object in this module, and import it."""
        self.used.add(name)
        return self.names[name]

    def _resolve_type(self, text: str) -> str:
        """Return a type with the names that this module uses for its parts."""
        return _PART.sub(lambda match: self.use(match.group(1)), text)

    def _lose(self, loss: str, place: str) -> None:
        places = self.lost.setdefault(loss, [])
        if place not in places:
            places.append(place)

    def _blocks(self) -> Iterator[str]:
        for table in self.design.tables:
            yield self._table(table)
        for view in self.design.views:
            yield self._view(view)
        for table in self.design.tables:
            for entity in table.entities:
                yield self._entity(table, entity)
            for collection in table.collections:
                yield self._collection(table, collection)

    def _table(self, table: TableDesign) -> str:
        settings = table.settings
        options = [
            f"name={render_value(settings.name)}",
            f"pk={render_value(settings.hash)}",
            f"sk={render_value(settings.range)}",
        ]
        for option, default in (("ttl", None), ("tag", "_entity"), ("delimiter", "#"), ("stream", None), ("recovery", False),
                            ("recovery_days", 35), ("encryption", None), ("table_class", "STANDARD"),
                            ("deletion_protection", False), ("read_units", None), ("write_units", None)):  # fmt: skip
            if getattr(settings, option) != default:
                options.append(f"{option}={render_value(getattr(settings, option))}")
        if settings.tags:
            options.append(f"tags={render_value(dict(settings.tags))}")
        if settings.replicas:
            options.append(f"replicas={render_value(settings.replicas)}")
        if settings.scaling is not None:
            options.append(f"scaling={self._render_call(settings.scaling, 'Scaling')}")
        if table.consumers:
            inner = "".join(
                f"\n    {_indent(self._render_call(consumer, 'Consumer'))}," for consumer in table.consumers
            )
            options.append(f"consumers=({inner}\n)")
        lines = [f"    {self._index(index)}" for index in table.indexes]
        return self._class(table.label, [self.use("Table"), *options], table.description, lines)

    def _index(self, index: IndexDesign) -> str:
        arguments = []
        if not index.local:
            arguments.append(f"pk={render_value(index.hash if index.native else index.hash[0])}")
        if index.range:
            arguments.append(f"sk={render_value(index.range if index.native else index.range[0])}")
        if index.projection != "ALL":
            arguments.append(f"projection={render_value(index.projection)}")
        if index.name != index.label:
            arguments.append(f"name={render_value(index.name)}")
        return _indent(f"{index.label} = {_call(self.use('Lsi' if index.local else 'Gsi'), arguments)}")

    def _view(self, view: EntityDesign) -> str:
        lines = [self._field(view, field, None) for field in view.fields]
        return self._class(view.name, [self.use("Entity")], view.description, lines)

    def _entity(self, table: TableDesign, entity: EntityDesign) -> str:
        options = [self.use("Entity"), f"table={table.label}"]
        if entity.tag != entity.name:
            options.append(f"tag={render_value(entity.tag)}")
        if entity.stale != "read":
            options.append(f"stale={render_value(entity.stale)}")
        if entity.immutable:
            options.append("immutable=True")
        if entity.items is not None:
            options.append(f"items={entity.items}")
        if entity.writes:
            inner = "".join(f"\n    {_indent(self._access(write))}," for write in entity.writes)
            options.append(f"writes=({inner}\n)")
        lines = [self._field(entity, field, table) for field in entity.fields]
        for pattern in entity.all_patterns:
            lines += ["", self._pattern(table, entity, pattern)]
        return self._class(entity.name, options, entity.description, lines)

    def _field(self, entity: EntityDesign, field: FieldDesign, table: TableDesign | None) -> str:
        kind, place = self._type(field), f"{entity.name}.{field.name}"
        options = []
        optional = field.nullable and kind != self.names["Any"]
        if field.nullable and not field.required:
            options.append("default=None")
        elif not field.required and field.lock:
            options.append("default=0")
        elif not field.required and field.tags and field.tags[0] in _EMPTY and not field.choices:
            options.append(f"default_factory={self.use(_EMPTY[field.tags[0]])}")
        elif not field.required:
            self._lose("fields with a default, which are required now", place)
        if field.numbered is not None:
            self._lose("how the number of a new item is assigned", place)
        if not field.choices and self._is_record(field.type):
            self._lose("nested record classes, which are dicts now", f"{place} ({field.type})")
        if field.attribute != field.name:
            options.append(f"name={render_value(field.attribute)}")
        words = ("lock", "unique", "tenant") if table is not None else ("tenant",)
        options += [f"{word}=True" for word in words if getattr(field, word)]
        if field.within and table is not None:
            options.append(f"within={render_value(field.within)}")
        sizes = ((word, getattr(field, word)) for word in ("distinct", "typical_bytes"))
        options += [f"{word}={size}" for word, size in sizes if size is not None]
        if field.description:
            options.append(f"description={render_value(field.description)}")
        if field.length_max is not None:
            if kind == self.names["str"] or (field.tags and field.tags[0] in _EMPTY):
                kind = f"{self.use('Annotated')}[{kind}, {self.use('Field')}(max_length={field.length_max})]"
            else:
                self._lose("maximum lengths", place)
        declaration = f"    {field.name}: {self.use('Attr')}[{kind}{' | None' if optional else ''}]"
        if not options:
            return declaration
        line = f"{declaration} = {self.use('attr')}({', '.join(options)})"
        return (
            line
            if len(line) <= _WIDTH + 20
            else f"{declaration} = {_indent(_call(self.use('attr'), options))}"
        )

    def _type(self, field: FieldDesign) -> str:
        if field.choices:
            return f"{self.use('Literal')}[{', '.join(map(render_value, field.choices))}]"
        python_type = self._python_type(field.type)
        if python_type is None:
            python_type = self._resolve_type(
                _BY_TAG.get(field.tags[0], "{Any}") if len(field.tags) == 1 else "{Any}"
            )
        return python_type

    def _python_type(self, name: str) -> str | None:
        """Return the Python type for a type of the design; None for a record, of which only the name is known."""
        if name in _TYPES:
            return self._resolve_type(_TYPES[name])
        for outer, container in _CONTAINERS.items():
            if name.startswith(f"{outer}[") and name.endswith("]"):
                inner = self._python_type(name[len(outer) + 1 : -1])
                if inner is None and outer == "set":
                    return None
                return self._resolve_type(container).replace("…", inner or self.use("Any"))
        return None

    def _is_record(self, type_name: str) -> bool:
        """Return whether a type is, or contains, a class of the application."""
        for outer in _CONTAINERS:
            if type_name.startswith(f"{outer}[") and type_name.endswith("]"):
                return self._is_record(type_name[len(outer) + 1 : -1])
        return type_name not in _TYPES and type_name.isidentifier() and type_name[:1].isupper()

    def _pattern(self, table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> str:
        key = entity.key_on(pattern.index)
        assert key is not None
        primary = pattern is entity.primary
        options = [f'{self.use("PrimaryKey" if primary else "Query")}["{pattern.result}"]']
        if pattern.index is None and not primary:
            options.append("on=Key")
        elif pattern.index is not None:
            options.append(f"on={table.label}.{table.index(pattern.index).label}")
        if pattern.index is not None or primary:
            options += self._templates(entity, key, pattern.index, table)
        if pattern.index is not None:
            if key.sparse:
                options.append("sparse=True")
            if key.members:
                values = {member.field: _python_members(member.values) for member in key.members}
                options.append(f"members={self._render_value(values)}")
        if key.shards is not None and (pattern.index is not None or primary):
            options.append(f"shards={key.shards.count}")
        if pattern.hydrate:
            options.append("hydrate=True")
        if pattern.access is not None:
            options.append(f"access={self._access(pattern.access)}")
        lines = [f"    {name}: {self._part(entity, name)}" for name in pattern.partition]
        lines += [
            f"    {name}: {self.use('Sort')}[{self._part(entity, name)}] = {self.use('sort')}()"
            for name in pattern.sorts
        ]
        text = self._class(pattern.name, options, "", lines)
        return "\n".join(f"    {line}" if line else "" for line in text.split("\n"))

    def _templates(
        self, entity: EntityDesign, key: KeyDesign, index: str | None, table: TableDesign
    ) -> Iterator[str]:
        for word, sources in (("pk", key.hash), ("sk", key.range)):
            if len(sources) == 1 and (template := sources[0].template) is not None:
                if index is not None and sources[0].attribute in table.settings.key_names:
                    continue
                text = template.source.removesuffix(f"{template.delimiter}{{{SHARD}:04}}")
                yield f"{word}={render_value(text)}"

    def _part(self, entity: EntityDesign, name: str) -> str:
        return self._type(entity.field(name))

    def _collection(self, table: TableDesign, collection: CollectionDesign) -> str:
        options = [self.use("Collection"), f"pk={render_value(collection.partition.source)}"]
        if collection.prefix:
            options.append(f"sk={render_value(collection.prefix)}")
        if collection.index is not None:
            options.append(f"on={table.label}.{table.index(collection.index).label}")
        if collection.access is not None:
            options.append(f"access={self._access(collection.access)}")
        first = table.entity(collection.members[0].entity)
        lines = [f"    {name}: {self._part(first, name)}" for name in collection.parts]
        for member in collection.members:
            kind = f"{self.use('list')}[{member.entity}]" if member.many else f"{member.entity} | None"
            lines.append(f"    {member.name}: {kind} = {self.use('member')}()")
        return self._class(collection.name, options, collection.description, lines)

    def _render_value(self, value: Any) -> str:
        """Return a value as source, with this module's name for Decimal."""
        return re.sub(r"\bDecimal\(", lambda _: f"{self.use('Decimal')}(", render_value(value))

    def _access(self, pattern: AccessPattern | WritePattern) -> str:
        return self._render_call(pattern, type(pattern).__name__)

    def _render_call(self, value_object: Any, name: str) -> str:
        """Return the call that constructs a dataclass, without arguments that equal their default."""
        arguments = []
        for parameter in fields(value_object):
            value = getattr(value_object, parameter.name)
            default = (
                parameter.default_factory() if parameter.default_factory is not MISSING else parameter.default
            )
            if default is MISSING:
                arguments.append(render_value(value))
            elif value != default:
                arguments.append(f"{parameter.name}={render_value(value)}")
        return _call(self.use(name), arguments)

    def _class(self, name: str, options: list[str], doc: str, lines: list[str]) -> str:
        head = f"class {name}({', '.join(options)}):"
        if len(head) > _WIDTH or "\n" in head:
            head = f"class {name}(\n" + "".join(f"    {_indent(option)},\n" for option in options) + "):"
        body = [f"    {_docstring(doc)}", ""] if doc else []
        body = body[: 1 if not lines else 2]
        members = [*body, *lines] or ["    pass"]
        return "\n".join((head, *members))


def _call(name: str, arguments: list[str]) -> str:
    """Return a call on one line, or with one line per argument if it is too long."""
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{name}(\n" + "".join(f"    {_indent(argument)},\n" for argument in arguments) + ")"


def _indent(text: str) -> str:
    """Return a text with every line but the first indented by four columns."""
    return text.replace("\n", "\n    ")


def render_value(value: Any) -> str:
    """Return a plain value as Python source; strings have double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        elements = [render_value(element) for element in value]
        line = f"({elements[0]},)" if len(elements) == 1 else f"({', '.join(elements)})"
        if len(line) <= _WIDTH - 20:
            return line
        return "(\n" + "".join(f"    {_indent(element)},\n" for element in elements) + ")"
    if isinstance(value, list):
        return f"[{', '.join(map(render_value, value))}]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{render_value(key)}: {render_value(member)}" for key, member in value.items())
            + "}"
        )
    return repr(value)


def _docstring(doc: str) -> str:
    text = " ".join(doc.split()).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""' if not text.endswith('"') else f'"""{text} """'


def _python_members(values: tuple[Value | None, ...]) -> Any:
    members = tuple(_python_value(value) for value in values)
    return members[0] if len(members) == 1 else members


def _python_value(value: Value | None) -> Any:
    """Return a stored value as a Python value; only types that index members can have."""
    if value is None:
        return None
    tag, content = next(iter(value.items()))
    if tag == "N":
        number = Decimal(content)
        return int(number) if number == number.to_integral_value() else number
    return content
