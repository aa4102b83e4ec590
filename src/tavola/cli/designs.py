"""Designs: load the design that a command line names by a module, a Python file or a file of another tool."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any, TypeAlias

from tavola.cli.output import note
from tavola.cli.parameters import Argument, Option
from tavola.cli.targets import Target
from tavola.errors import ErrorKind, TavolaError

DesignOption: TypeAlias = Annotated[
    str,
    Option(
        "--design",
        metavar="MODULE[:TABLE]",
        help="The module that declares the design, looked for here too; and a table of it, or all of them.",
    ),
]
TableName: TypeAlias = Annotated[
    str | None,
    Option("--table-name", help="What the table is called there, if not as the design calls it."),
]


DesignArgument: TypeAlias = Annotated[
    str,
    Argument(
        metavar="MODULE[:TABLE]|FILE",
        help="The module that declares the design, by its name or its file, and a table of it; or a file: our design "
        "document, CloudFormation, Terraform, NoSQL Workbench, describe-table, OneTable, schema.json.",
    ),
]

_FILES = (".json", ".yaml", ".yml", ".template", ".tf", ".hcl")


class DesignRefused(TavolaError):
    """A name that is not a design, or a module that cannot be imported."""

    kind = ErrorKind.USAGE

    def __init__(
        self, text: str, reason: str, remedy: str = "Name a module and a table of it, as shop.model:Shop."
    ) -> None:
        self.text = text
        self.remedy = remedy
        super().__init__(f"{text} is no design: {reason}")


def load_tables(text: str) -> tuple[Any, ...]:
    """Return the table that `module:Table` names, or all tables that a module declares or imports."""
    from tavola.model import Table

    module_name, name = split_design_name(text)
    module = _module(text, module_name)
    if name:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if not (isinstance(found, type) and issubclass(found, Table)):
            raise DesignRefused(text, f"{module_name} has no Table {name}; it has {_table_names(module)}")
        return (found,)
    tables = _tables(module)
    if not tables:
        raise DesignRefused(text, f"{module_name} declares no Table; give module:Table")
    return tables


def split_design_name(text: str) -> tuple[str, str]:
    """Return the module and the table, if any, that a text names; a Python file counts as its module.

    For a file, the folder above its packages is put first on `sys.path`.
    """
    module, _, name = text.partition(":")
    path = _python(text)
    if path is None:
        return module, name
    if not path.is_file():
        raise DesignRefused(
            text, f"{module} is not there", "Name a file that is, or the module that it holds."
        )
    path = path.resolve()
    parts = [] if path.stem == "__init__" else [path.stem]
    root = path.parent
    while (root / "__init__.py").is_file() and root != root.parent:
        parts.insert(0, root.name)
        root = root.parent
    dotted = ".".join(parts)
    if not all(part.isidentifier() for part in parts):
        raise DesignRefused(
            text, f"{dotted} can be no module's name", "Call the file by a name that Python can import."
        )
    if sys.path[:1] != [str(root)]:
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()
    return dotted, name


def is_file(text: str) -> bool:
    """Return whether a text names a file or folder of another tool, and not a Python module."""
    if _python(text) is not None:
        return False
    path = Path(text)
    if path.is_dir():  # one with Python in it may be a package's
        return any(path.glob("*.tf")) or os.sep in text or not any(path.glob("*.py"))
    return path.is_file() or os.sep in text or path.suffix.lower() in _FILES


def load_design(text: str, *, unkeyed: bool = False) -> Any:
    """Return the design in a module, in a design document, or in a file of another tool.

    What the file does not say, or Tavola cannot import, is printed as a note. With `unkeyed`, a module that declares only
    entities is accepted too.
    """
    from tavola.model.document import design_of

    if is_file(text):
        from tavola.iac.formats import read_design

        imported = read_design(Path(text))
        for remark in imported.report:
            note(str(remark))
        return imported.design
    module, name = split_design_name(text)
    if not name and _declares_only_needs(_module(text, module), unkeyed):
        return design_of(sys.modules[module])
    tables = load_tables(text)
    return design_of(*tables) if name else design_of(sys.modules[module])


def load_table(text: str) -> Any:
    """Return the one table that a text names."""
    tables = load_tables(text)
    if len(tables) > 1:
        names = ", ".join(table.__name__ for table in tables)
        raise DesignRefused(
            text, f"there are {len(tables)} tables in it: {names}; name one, as {text}:{tables[0].__name__}"
        )
    return tables[0]


def connect_to_tables(
    target: Target, tables: tuple[Any, ...], name: str | None, region: str | None = None
) -> Any:
    """Return a connection to a target on which the design's table may have another name."""
    from tavola.client.context import Context
    from tavola.handles import Connection

    if name is not None and len(tables) > 1:
        raise DesignRefused(name, "a name is given for several tables; name one of them with --design")
    names = {} if name is None else {tables[0].settings.name: name}
    return Connection(
        target.connection.backend, target.connection.target, Context(names=names, region=region)
    )


def shorten_path(path: Path) -> str:
    """Return a path relative to the current folder, if it is below it."""
    here = os.path.relpath(path)
    return str(path) if here.startswith("..") else here


def _python(text: str) -> Path | None:
    """Return the Python file that a text names, existing or not (`shop.py`, `./shop`, a package's folder); None otherwise."""
    path = Path(text.partition(":")[0])
    if path.suffix == ".py":
        return path
    if os.sep not in text or path.is_file():
        return None
    beside = path.with_name(f"{path.name}.py") if path.name else path
    if not path.is_dir():
        return beside if beside.is_file() else None
    package = path / "__init__.py"
    return package if package.is_file() and not any(path.glob("*.tf")) else None


def _module(text: str, name: str) -> Any:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise DesignRefused(
            text, "give the name of a module, such as shop or shop.model, or its file, shop/model.py"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")  # designs are looked for where the command is run
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise DesignRefused(
                text, f"there is no module {name}; run the command in its folder, or install it"
            ) from error
        raise _import_error(
            text, name, error, str(error), "Install what it imports, or mend the line."
        ) from error
    except Exception as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        why = f"{type(error).__name__}: {message}"
        raise _import_error(text, name, error, why, "Mend the module at that line.") from error
    path, file = _python(text), getattr(module, "__file__", None)
    if path is not None and (file is None or Path(file).resolve() != path.resolve()):
        raise DesignRefused(
            text,
            f"another module is called {name} too, {'built into Python' if file is None else shorten_path(Path(file))}",
            "Call the file by another name.",
        )
    return module


def _import_error(text: str, name: str, error: Exception, why: str, remedy: str) -> DesignRefused:
    """Return the error for a module that fails while it is imported, with the last line that ran."""
    at = ""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        at = f"{shorten_path(Path(error.filename))}, line {error.lineno}: "
    else:
        ours = str(Path(__file__).parents[1]) + os.sep
        frames = [
            frame
            for frame in extract_tb(error.__traceback__)
            if not frame.filename.startswith((ours, "<"))
            and f"{os.sep}importlib{os.sep}" not in frame.filename
        ]
        spec = importlib.util.find_spec(name) if frames else None
        own = [frame for frame in frames if spec is not None and frame.filename == spec.origin]
        if frames:
            last = (own or frames)[-1]
            at = f"{shorten_path(Path(last.filename))}, line {last.lineno}: "
    return DesignRefused(text, f"{name} cannot be imported: {at}{why}", remedy)


def _tables(module: Any) -> tuple[Any, ...]:
    from tavola.model import Table

    found = [
        each for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Table) and each is not Table and each.entities
    ]  # fmt: skip
    return tuple(dict.fromkeys(found))


def _declares_only_needs(module: Any, unkeyed: bool) -> bool:
    """Return whether a module declares needs but no table; with `unkeyed`, or only entities."""
    from tavola.model.document import design_of

    if _tables(module):
        return False
    design = design_of(module)
    return bool(design.needs or (unkeyed and design.views))


def _table_names(module: Any) -> str:
    return ", ".join(table.__name__ for table in _tables(module)) or "none"
