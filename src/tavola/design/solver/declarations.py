"""Render a design as the Python module that declares it.

Some things cannot be restored: a default is written only where a single value is possible, a nested record becomes a dict, and an enum a
Literal of its values. Keys, indexes and patterns are complete. Names that Python does not allow are changed. A comment at the top of
the module lists what could not be kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.solver.pythonic import make_python_names
from tavola.design.solver.wording import find_free_name
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
    "Lsi", "PrimaryKey", "Query", "Scaling", "Shards", "Sort", "Table", "WritePattern", "attr", "found", "sort",
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
_WIDTH = 88  # of a line before it is broken, its indent not counted
_TOLD = 12  # places that a comment names
_PART = re.compile(r"\{(\w+)\}")
_HEAD = "{doc}\n\nfrom __future__ import annotations\n\n"


def render_declarations(design: Design, doc: str = "The design, as it was solved.") -> str:
    """Return the module that declares a design; a comment at its top lists what it could not keep."""
    named, renamed = make_python_names(design)
    return _Module(named, renamed).text(doc)


class _Module:
    def __init__(self, design: Design, renamed: tuple[str, ...]) -> None:
        self.design = design
        own = {view.name for view in design.views}
        for table in design.tables:
            own |= {table.label, *(index.label for index in table.indexes)}
            for each in table.collections:
                own |= {each.name, *each.parts, *(member.name for member in each.members)}
        for entity in (*design.views, *(e for table in design.tables for e in table.entities)):
            own |= {entity.name, *(f.name for f in entity.fields), *(p.name for p in entity.patterns)}
        self.names: dict[str, str] = {}
        for name in (*_NAMES, *_MODULES, "dt"):
            other = f"tavola_{name}" if name.islower() else f"Tavola{name}"
            self.names[name] = find_free_name(name, own, other)
        for name in _BUILTINS:
            self.names[name] = f"builtins.{name}" if name in own else name
        self.used: set[str] = set()
        self.lost: dict[str, list[str]] = {"written otherwise, since Python has no such name": list(renamed)}
        if design.ignores:
            places = [f"{each.rule} at {each.place}" for each in design.ignores]
            self.lost["findings of the linter that somebody lets stand"] = places

    def text(self, doc: str) -> str:
        body = "\n\n\n".join(self._blocks())
        imports = []
        if any(self.names[name] != name for name in self.used & set(_BUILTINS)):
            imports.append("import builtins\n")
        if "dt" in self.used:
            imports.append(f"import datetime as {self.names['dt']}\n")
        for module in ("decimal", "typing", "uuid"):
            imports += self._import(module)
        third = self._import("pydantic")
        told = [self._imported(name) for name in _NAMES if name in self.used]
        lines = "".join(f"    {name},\n" for name in told)
        third.append(f"from tavola import (\n{lines})\n")
        head = _HEAD.format(doc=_documented(doc)) + self._losses()
        return head + "".join(imports) + ("\n" if imports else "") + "".join(third) + "\n\n" + body + "\n"

    def _import(self, module: str) -> list[str]:
        names = [self._imported(name) for name, of in _MODULES.items() if of == module and name in self.used]
        return [f"from {module} import {', '.join(names)}\n"] if names else []

    def _imported(self, name: str) -> str:
        return name if self.names[name] == name else f"{name} as {self.names[name]}"

    def _losses(self) -> str:
        """Return the comment that says what the module could not keep."""
        told = []
        for what, places in self.lost.items():
            if places:
                few = places[:_TOLD] + ([f"and {len(places) - _TOLD} more"] if len(places) > _TOLD else [])
                told += wrap(f"- {what}: {', '.join(few)}", _WIDTH, subsequent_indent="  ")
        if not told:
            return ""
        lines = ["What the design says and this module does not:", *told]
        return "".join(f"# {line}\n" for line in lines) + "\n"

    def n(self, name: str) -> str:
        self.used.add(name)
        return self.names[name]

    def _typed(self, text: str) -> str:
        """Return a type with the names that this module has for its parts."""
        return _PART.sub(lambda found: self.n(found.group(1)), text)

    def _lose(self, what: str, place: str) -> None:
        places = self.lost.setdefault(what, [])
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
        told = table.settings
        options = [
            f"name={render_value(told.name)}",
            f"pk={render_value(told.hash)}",
            f"sk={render_value(told.range)}",
        ]
        for word, usual in (("ttl", None), ("tag", "_entity"), ("delimiter", "#"), ("stream", None), ("recovery", False),
                            ("recovery_days", 35), ("encryption", None), ("table_class", "STANDARD"),
                            ("deletion_protection", False), ("read_units", None), ("write_units", None)):  # fmt: skip
            if getattr(told, word) != usual:
                options.append(f"{word}={render_value(getattr(told, word))}")
        if told.tags:
            options.append(f"tags={render_value(dict(told.tags))}")
        if told.replicas:
            options.append(f"replicas={render_value(told.replicas)}")
        if told.scaling is not None:
            options.append(f"scaling={self._made(told.scaling, 'Scaling')}")
        if table.consumers:
            inner = "".join(f"\n    {_deeper(self._made(each, 'Consumer'))}," for each in table.consumers)
            options.append(f"consumers=({inner}\n)")
        lines = [f"    {self._index(index)}" for index in table.indexes]
        return self._class(table.label, [self.n("Table"), *options], table.description, lines)

    def _index(self, index: IndexDesign) -> str:
        given = []
        if not index.local:
            given.append(f"pk={render_value(index.hash if index.native else index.hash[0])}")
        if index.range:
            given.append(f"sk={render_value(index.range if index.native else index.range[0])}")
        if index.projection != "ALL":
            given.append(f"projection={render_value(index.projection)}")
        if index.name != index.label:
            given.append(f"name={render_value(index.name)}")
        return _deeper(f"{index.label} = {_call(self.n('Lsi' if index.local else 'Gsi'), given)}")

    def _view(self, view: EntityDesign) -> str:
        lines = [self._field(view, found, None) for found in view.fields]
        return self._class(view.name, [self.n("Entity")], view.description, lines)

    def _entity(self, table: TableDesign, entity: EntityDesign) -> str:
        options = [self.n("Entity"), f"table={table.label}"]
        if entity.tag != entity.name:
            options.append(f"tag={render_value(entity.tag)}")
        if entity.stale != "read":
            options.append(f"stale={render_value(entity.stale)}")
        if entity.immutable:
            options.append("immutable=True")
        if entity.items is not None:
            options.append(f"items={entity.items}")
        if entity.writes:
            inner = "".join(f"\n    {_deeper(self._access(write))}," for write in entity.writes)
            options.append(f"writes=({inner}\n)")
        lines = [self._field(entity, found, table) for found in entity.fields]
        for pattern in (entity.primary, *entity.patterns):
            if pattern is not None:
                lines += ["", self._pattern(table, entity, pattern)]
        return self._class(entity.name, options, entity.description, lines)

    def _field(self, entity: EntityDesign, found: FieldDesign, table: TableDesign | None) -> str:
        kind, place = self._type(found), f"{entity.name}.{found.name}"
        options = []
        optional = found.nullable and kind != self.names["Any"]
        if found.nullable and not found.required:
            options.append("default=None")
        elif not found.required and found.lock:
            options.append("default=0")
        elif not found.required and found.tags and found.tags[0] in _EMPTY and not found.choices:
            options.append(f"default_factory={self.n(_EMPTY[found.tags[0]])}")
        elif not found.required:
            self._lose("fields that had a default, and must be given now", place)
        if found.numbered is not None:
            self._lose("how the number of a new item is found", place)
        if not found.choices and self._record(found.type):
            self._lose("classes of nested records, which are dicts now", f"{place} ({found.type})")
        if found.attribute != found.name:
            options.append(f"name={render_value(found.attribute)}")
        words = ("lock", "unique", "tenant") if table is not None else ("tenant",)
        options += [f"{word}=True" for word in words if getattr(found, word)]
        if found.within and table is not None:
            options.append(f"within={render_value(found.within)}")
        told_sizes = ((word, getattr(found, word)) for word in ("distinct", "typical_bytes"))
        options += [f"{word}={many}" for word, many in told_sizes if many is not None]
        if found.description:
            options.append(f"description={render_value(found.description)}")
        if found.length_max is not None:
            if kind == self.names["str"] or (found.tags and found.tags[0] in _EMPTY):
                kind = f"{self.n('Annotated')}[{kind}, {self.n('Field')}(max_length={found.length_max})]"
            else:
                self._lose("how long values may be", place)
        told = f"    {found.name}: {self.n('Attr')}[{kind}{' | None' if optional else ''}]"
        if not options:
            return told
        line = f"{told} = {self.n('attr')}({', '.join(options)})"
        return line if len(line) <= _WIDTH + 20 else f"{told} = {_deeper(_call(self.n('attr'), options))}"

    def _type(self, found: FieldDesign) -> str:
        if found.choices:
            return f"{self.n('Literal')}[{', '.join(map(render_value, found.choices))}]"
        told = self._word(found.type)
        if told is None:
            told = self._typed(_BY_TAG.get(found.tags[0], "{Any}") if len(found.tags) == 1 else "{Any}")
        return told

    def _word(self, word: str) -> str | None:
        """Return the type that a design's word stands for; None for a record, which it tells by name alone."""
        if word in _TYPES:
            return self._typed(_TYPES[word])
        for outer, made in _CONTAINERS.items():
            if word.startswith(f"{outer}[") and word.endswith("]"):
                inner = self._word(word[len(outer) + 1 : -1])
                if inner is None and outer == "set":
                    return None
                return self._typed(made).replace("…", inner or self.n("Any"))
        return None

    def _record(self, word: str) -> bool:
        """Tell whether a type is, or holds, a class of the application's own: no word of a design, no choices."""
        for outer in _CONTAINERS:
            if word.startswith(f"{outer}[") and word.endswith("]"):
                return self._record(word[len(outer) + 1 : -1])
        return word not in _TYPES and word.isidentifier() and word[:1].isupper()

    def _pattern(self, table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> str:
        key = entity.key_on(pattern.index)
        assert key is not None
        primary = pattern is entity.primary
        options = [f'{self.n("PrimaryKey" if primary else "Query")}["{pattern.result}"]']
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
                values = {each.field: _plain_members(each.values) for each in key.members}
                options.append(f"members={self._spelled(values)}")
        if key.shards is not None and (pattern.index is not None or primary):
            options.append(f"shards={key.shards.count}")
        if pattern.hydrate:
            options.append("hydrate=True")
        if pattern.access is not None:
            options.append(f"access={self._access(pattern.access)}")
        lines = [f"    {name}: {self._part(entity, name)}" for name in pattern.partition]
        lines += [
            f"    {name}: {self.n('Sort')}[{self._part(entity, name)}] = {self.n('sort')}()"
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
        options = [self.n("Collection"), f"pk={render_value(collection.partition.source)}"]
        if collection.prefix:
            options.append(f"sk={render_value(collection.prefix)}")
        if collection.index is not None:
            options.append(f"on={table.label}.{table.index(collection.index).label}")
        if collection.access is not None:
            options.append(f"access={self._access(collection.access)}")
        first = table.entity(collection.members[0].entity)
        lines = [f"    {name}: {self._part(first, name)}" for name in collection.parts]
        for member in collection.members:
            kind = f"{self.n('list')}[{member.entity}]" if member.many else f"{member.entity} | None"
            lines.append(f"    {member.name}: {kind} = {self.n('found')}()")
        return self._class(collection.name, options, collection.description, lines)

    def _spelled(self, value: Any) -> str:
        """Return a plain value as source, numbers with a fraction as this module calls them."""
        return re.sub(r"\bDecimal\(", lambda _: f"{self.n('Decimal')}(", render_value(value))

    def _access(self, told: AccessPattern | WritePattern) -> str:
        return self._made(told, type(told).__name__)

    def _made(self, told: Any, name: str) -> str:
        """Return the call that makes a plain dataclass, with what is usual left out."""
        given = []
        for found in fields(told):
            value = getattr(told, found.name)
            usual = found.default_factory() if found.default_factory is not MISSING else found.default
            if usual is MISSING:
                given.append(render_value(value))
            elif value != usual:
                given.append(f"{found.name}={render_value(value)}")
        return _call(self.n(name), given)

    def _class(self, name: str, options: list[str], doc: str, lines: list[str]) -> str:
        head = f"class {name}({', '.join(options)}):"
        if len(head) > _WIDTH or "\n" in head:
            head = f"class {name}(\n" + "".join(f"    {_deeper(option)},\n" for option in options) + "):"
        body = [f"    {_documented(doc)}", ""] if doc else []
        body = body[: 1 if not lines else 2]
        told = [*body, *lines] or ["    pass"]
        return "\n".join((head, *told))


def _call(name: str, given: list[str]) -> str:
    """Return a call on a line, or with a line for each argument where it would be too long."""
    line = f"{name}({', '.join(given)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{name}(\n" + "".join(f"    {_deeper(each)},\n" for each in given) + ")"


def _deeper(text: str) -> str:
    """Return a text whose lines after the first stand four columns deeper."""
    return text.replace("\n", "\n    ")


def render_value(value: Any) -> str:
    """Return a plain value as Python source, its texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        told = [render_value(each) for each in value]
        line = f"({told[0]},)" if len(told) == 1 else f"({', '.join(told)})"
        if len(line) <= _WIDTH - 20:
            return line
        return "(\n" + "".join(f"    {_deeper(each)},\n" for each in told) + ")"
    if isinstance(value, list):
        return f"[{', '.join(map(render_value, value))}]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{render_value(key)}: {render_value(each)}" for key, each in value.items()) + "}"
        )
    return repr(value)


def _documented(doc: str) -> str:
    text = " ".join(doc.split()).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""' if not text.endswith('"') else f'"""{text} """'


def _plain_members(values: tuple[Value | None, ...]) -> Any:
    told = tuple(_plain(value) for value in values)
    return told[0] if len(told) == 1 else told


def _plain(value: Value | None) -> Any:
    """Return a stored value as Python has it: of what can decide about an index's members."""
    if value is None:
        return None
    tag, held = next(iter(value.items()))
    if tag == "N":
        number = Decimal(held)
        return int(number) if number == number.to_integral_value() else number
    return held
