"""Designs: the tables that a command line names by the module that declares them."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any, TypeAlias

import typer

from tavola.cli.targets import Target
from tavola.errors import TavolaError

Design: TypeAlias = Annotated[
    str,
    typer.Option(
        "--design",
        metavar="MODULE[:TABLE]",
        help="The module that declares the design, looked for here too; and a table of it, or all of them.",
    ),
]
TableName: TypeAlias = Annotated[
    str | None,
    typer.Option("--table-name", help="What the table is called there, if not as the design calls it."),
]


class DesignRefused(TavolaError):
    """A text that names no design, or a module that cannot be imported."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        super().__init__(f"{text} is no design: {reason}")


def load_tables(text: str) -> tuple[Any, ...]:
    """Return the tables that a text names, as `module:Table`; of a module alone all that it declares or imports."""
    from tavola.model import Table

    module_name, _, name = text.partition(":")
    module = _module(text, module_name)
    if name:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if not (isinstance(found, type) and issubclass(found, Table)):
            raise DesignRefused(text, f"{module_name} has no Table {name}; it has {_told(module)}")
        return (found,)
    tables = _tables(module)
    if not tables:
        raise DesignRefused(text, f"{module_name} declares no Table; give module:Table")
    return tables


def load_table(text: str) -> Any:
    """Return the one table that a text names."""
    tables = load_tables(text)
    if len(tables) > 1:
        names = ", ".join(table.__name__ for table in tables)
        raise DesignRefused(
            text, f"there are {len(tables)} tables in it: {names}; name one, as {text}:{tables[0].__name__}"
        )
    return tables[0]


def modelled(target: Target, tables: tuple[Any, ...], name: str | None, region: str | None = None) -> Any:
    """Return a connection to a target that knows what a table is called there."""
    from tavola.client import Context
    from tavola.connections import Connection

    if name is not None and len(tables) > 1:
        raise DesignRefused(name, "a name is given for several tables; name one of them with --design")
    names = {} if name is None else {tables[0].settings.name: name}
    return Connection(
        target.connection.backend, target.connection.target, Context(names=names, region=region)
    )


def _module(text: str, name: str) -> Any:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise DesignRefused(text, "give the name of a module, such as shop or shop.model, and not a file's")
    if "" not in sys.path:
        sys.path.insert(0, "")  # designs are looked for where the command is run
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise DesignRefused(
                text, f"there is no module {name}; run the command in its folder, or install it"
            ) from error
        raise DesignRefused(text, f"{name} cannot be imported: {error}") from error
    except Exception as error:
        raise DesignRefused(text, f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _tables(module: Any) -> tuple[Any, ...]:
    from tavola.model import Table

    found = [
        each for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Table) and each is not Table and each.entities
    ]  # fmt: skip
    return tuple(dict.fromkeys(found))


def _told(module: Any) -> str:
    return ", ".join(table.__name__ for table in _tables(module)) or "none"
