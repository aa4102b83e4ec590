"""The page of the Python API: every public name by topic, with signature and docstring."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from textwrap import dedent
from typing import Any, get_overloads

import msgspec

import tavola
from tavola.client.transactions import Intents
from tavola.errors import TavolaError
from tavola.model import SortOperators

THEMES: dict[str, str] = {
    "Connections": "connect connect_async mock Connection AsyncConnection Credentials RetryPolicy NO_RETRIES Clock ManualClock Entropy SeededEntropy Engine Scope",
    "Design declarations": "Table Gsi Lsi Index Shards Entity Attr attr PrimaryKey Query Sort Step Rest sort Collection member upgrade AccessPattern WritePattern Need Given Route Consumer Scaling",
    "Field types": "EpochSeconds EpochMilliseconds Exact",
    "Conditions, changes and queries": "Condition Change Operand Term Selection",
    "Results": "Page AsyncPage ConsumedCapacity TableUnits Explanation Progress ItemVersion",
    "Transactions": "Transaction AsyncTransaction Intent WriteFailure WriteFailures",
    "Entities and raw items": "to_item from_item",
    "Streams": "changes_of EntityChange RawChange AnyChange ChangeBatch Subscription AsyncSubscription Router CheckpointStore CheckpointFile",
    "Designs as data, and maintenance": "design_of design_document read_document Design overview key_uses KeyUse TableChanges KeyReport KeyProblem GuardProblem MigrationPlan BackfillReport",
}
CALLED = (
    "Gsi",
    "Lsi",
    "Shards",
    "Credentials",
    "RetryPolicy",
    "ManualClock",
    "SeededEntropy",
    "AccessPattern",
    "WritePattern",
    "Need",
    "Given",
    "Route",
    "Consumer",
    "Scaling",
    "Router",
)
SUBCLASSED = ("Table", "Entity", "PrimaryKey", "Query", "Collection")
OPERATORS = {
    "__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__add__": "+",
    "__sub__": "-", "__getitem__": "[…]", "__and__": "&", "__or__": "|", "__invert__": "~",
}  # fmt: skip


def sections() -> Iterator[str]:
    """Yield the sections of the page."""
    yield (
        "Everything here is imported from `tavola`; the [patterns](../how-to/patterns/index.md) are in `tavola.patterns`. "
        "Names that are not listed here are not public."
    )
    for theme, names in THEMES.items():
        yield f"## {theme}"
        for name in names.split():
            yield _entry(name, getattr(tavola, name))
    yield "## Methods of a connection"
    yield "An `AsyncConnection` has the same methods to await; iterate `history` with `async for` and enter `transaction` with `async with`."
    yield from _methods(tavola.Connection)
    yield "## Methods of a transaction"
    yield from _methods(Intents)
    yield "## Operators of a field"
    yield f"On the class, `Ticket.status`. {_signs(tavola.Operand)}"
    yield from _methods(tavola.Operand)
    yield f"Operators of conditions. {_signs(tavola.Condition)}"
    yield "## Operators of a sort part"
    yield 'On a query, `Ticket.ByCustomer(customer_id="c1").status`.'
    yield from _methods(SortOperators)
    yield "Every query also has:"
    yield from _methods(tavola.Selection)
    yield "## Exceptions"
    yield "All are subclasses of `TavolaError`. A `Fault` is an error response of DynamoDB, with its `code`; see [all faults](faults.md)."
    yield "\n".join(_exceptions())


def documented_names() -> set[str]:
    """Return the names that the page documents."""
    return (
        {name for names in THEMES.values() for name in names.split()}
        | {n for n, _ in _raised()}
        | {"__version__"}
    )


def _entry(name: str, found: Any) -> str:
    head, doc = "", _doc(found)
    if name in SUBCLASSED:
        head = f"class …({name}, {_arguments(found.__init_subclass__)})"
        doc = f"{doc} {_doc(found.__init_subclass__)}"
    elif name in CALLED or inspect.isfunction(found):
        head = f"{name}{_signature(found)}"
    elif not isinstance(found, type):
        doc = f"A `{type(found).__name__}` by this name." if name.isupper() else "A union of types."
    shown = f"```\n{head}\n```\n\n" if head else ""
    return f"### {name}\n\n{shown}{doc}{_data(found)}"


def _data(found: Any) -> str:
    """Return the field names of a dataclass or Struct."""
    if not isinstance(found, type) or found.__name__ in CALLED:
        return ""
    if issubclass(found, msgspec.Struct):
        fields = list(found.__struct_fields__)
    elif dataclasses.is_dataclass(found):
        fields = [each.name for each in dataclasses.fields(found)]
    else:
        return ""
    return f" Fields: {', '.join(f'`{name}`' for name in fields if not name.startswith('_'))}."


def _methods(owner: Any) -> Iterator[str]:
    rows = []
    for name, found in sorted(inspect.getmembers_static(owner)):
        if name.startswith("_") or not (inspect.isfunction(found) or isinstance(found, property)):
            continue
        if isinstance(found, property):
            rows.append(f"- `{name}`: {_doc(found)}")
            continue
        forms = list(dict.fromkeys(map(_signature, get_overloads(found) or [found])))
        shown = f"`{name}{forms[0]}`" if len(forms[0]) < 400 else f"`{name}(…)`"
        more = (
            f", and {len(forms) - 1} more forms"
            if len(forms) > 2
            else f", or `{name}{forms[1]}`"
            if forms[1:]
            else ""
        )
        rows.append(f"- {shown}{more}: {_doc(found)}")
    yield "\n".join(rows)


def _signs(owner: Any) -> str:
    found = [f"`{sign}`" for name, sign in OPERATORS.items() if vars(owner).get(name)]
    return f"Symbols: {', '.join(found)}."


def _signature(found: Any) -> str:
    returned = "" if isinstance(found, type) else _annotation(inspect.signature(found).return_annotation)
    return f"({_arguments(found)})" + (f" -> {returned}" if returned and not returned.startswith("_") else "")


def _arguments(found: Any) -> str:
    kinds = inspect.Parameter
    shown: list[str] = []
    starred = False
    for each in inspect.signature(found).parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is kinds.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or each.kind in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL)
        sign = "*" if each.kind is kinds.VAR_POSITIONAL else "**" if each.kind is kinds.VAR_KEYWORD else ""
        annotation = _annotation(each.annotation)
        default = "" if each.default is kinds.empty else f" = {_default(each.default)}"
        shown.append(f"{sign}{each.name}{f': {annotation}' if annotation else ''}{default}")
    return ", ".join(shown)


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.replace("E_contra", "E").replace("T_co", "T").replace("Q_co", "Q")


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, str | int | float | tuple | bytes)
    return repr(value) if plain else "…"


def _doc(found: Any) -> str:
    """Return the prose of a docstring, without examples."""
    if not isinstance(found, type) and not callable(found) and not isinstance(found, property):
        return ""
    paragraphs = inspect.cleandoc(found.__doc__ or "").split("\n\n")
    prose = [" ".join(each.split()) for each in paragraphs if not each.startswith("    ")]
    return " ".join(prose)


def _raised() -> list[tuple[str, Any]]:
    found = ((name, getattr(tavola, name)) for name in tavola.__all__)
    return [
        (name, each) for name, each in found if isinstance(each, type) and issubclass(each, BaseException)
    ]


def _exceptions() -> Iterator[str]:
    yield "| exception | base class | raised when | attributes |\n|---|---|---|---|"
    for name, found in _raised():
        bases = (each if not each.__name__.startswith("_") else each.__base__ for each in found.__bases__)
        base = ", ".join(f"`{each.__name__}`" for each in bases)
        holds = ", ".join(f"`{each}`" for each in dict.fromkeys(_attributes(found)))
        yield f"| `{name}` | {base} | {_doc(found).replace('|', chr(92) + '|')} | {holds} |"


def _attributes(kind: Any) -> Iterator[str]:
    """Yield the public attributes that an exception's constructors set."""
    for each in kind.__mro__:
        if each is TavolaError:
            return
        made = vars(each).get("__init__")
        if not inspect.isfunction(made):
            continue
        for node in ast.walk(ast.parse(dedent(inspect.getsource(made)))):
            target = node.target if isinstance(node, ast.AnnAssign) else None
            targets = node.targets if isinstance(node, ast.Assign) else [target]
            for found in targets:
                if isinstance(found, ast.Attribute) and not found.attr.startswith("_"):
                    yield found.attr
