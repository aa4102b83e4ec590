"""Designs: load the design that a command line names: a module, a Python file or a file of another tool."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, TypeAlias

from tavola.cli.errors import CommandError
from tavola.cli.output import remark
from tavola.cli.parameters import Argument, Option
from tavola.cli.targets import Target
from tavola.errors import ErrorKind, TavolaError

if TYPE_CHECKING:
    from types import ModuleType

    from tavola.client.connection import Connection
    from tavola.design.lint import FileFormat, SourceFile
    from tavola.model import Table
    from tavola.model.document import Design

DesignArgument: TypeAlias = Annotated[
    str,
    Argument(
        metavar="DESIGN",
        help="A Python module or file with an optional table (shop.model, shop/model.py:Shop), or a file of another tool: "
        "a design document, CloudFormation, Terraform, NoSQL Workbench, describe-table output, OneTable or schema.json.",
    ),
]
ModuleArgument: TypeAlias = Annotated[
    str,
    Argument(
        metavar="DESIGN",
        help="A Python module or file, with an optional table: shop.model, shop/model.py:Shop.",
    ),
]
TableNameOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--table-name", metavar="NAME", help="Name of the deployed table, if it differs from the design's."
    ),
]

_FILES = (".json", ".yaml", ".yml", ".template", ".tf", ".hcl")


class DesignLoadError(TavolaError):
    """A name that is not a design, or a module that cannot be imported."""

    code = "design-refused"
    kind = ErrorKind.USAGE

    def __init__(
        self,
        text: str,
        reason: str,
        remedy: str = "Name a module, or a module and a table such as shop.model:Shop.",
        kind: ErrorKind = ErrorKind.USAGE,
    ) -> None:
        self.kind = kind
        self.text = text
        self.remedy = remedy
        super().__init__(f"{reason}.")


def load_tables(text: str) -> tuple[type[Table], ...]:
    """Return the table that `module:Table` names, or all tables that a module declares or imports."""
    from tavola.model import Table

    if is_file(text):
        raise DesignLoadError(
            text,
            f"{text} is a file or folder without Python classes, which this command needs"
            if Path(text).exists()
            else f"{text} does not exist",
            "Name a Python module or file, with an optional table: shop.model, shop/model.py:Shop.",
            ErrorKind.USAGE if Path(text).exists() else ErrorKind.NOT_FOUND,
        )
    module_name, name = split_design_name(text)
    module = _import_module(text, module_name)
    declared = _tables(module)
    names = ", ".join(table.__name__ for table in declared)
    if name:
        named: object = module
        for part in name.split("."):
            named = getattr(named, part, None)
        if not (isinstance(named, type) and issubclass(named, Table)):
            known = f"its tables are {names}" if names else "it declares no table"
            raise DesignLoadError(text, f"{module_name} has no table {name}; {known}")
        return (named,)
    if not declared:
        raise DesignLoadError(
            text, f"{module_name} declares no table with entities", "Name a module that declares a table."
        )
    return declared


def split_design_name(text: str) -> tuple[str, str]:
    """Return the module and the table, if any, that a text names; for a Python file, the module that it holds.

    For a file, the folder above its packages is put first on `sys.path`.
    """
    module, _, name = text.partition(":")
    path = _python(text)
    if path is None:
        return module, name
    if not path.is_file():
        raise DesignLoadError(
            text, f"{module} does not exist", "Check the path, or name a module.", ErrorKind.NOT_FOUND
        )
    path = path.resolve()
    parts = [] if path.stem == "__init__" else [path.stem]
    root = path.parent
    while (root / "__init__.py").is_file() and root != root.parent:
        parts.insert(0, root.name)
        root = root.parent
    dotted = ".".join(parts)
    if not all(part.isidentifier() for part in parts):
        raise DesignLoadError(
            text, f"{dotted} is not a module name", "Rename the file to a Python identifier."
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


def load_design(text: str, *, allow_unkeyed: bool = False) -> Design:
    """Return the design in a module, in a design document, or in a file of another tool.

    Remarks of the importer (what the file does not say, or Tavola does not import) are printed as notes. With
    `allow_unkeyed`, a module that declares only entities is accepted too.
    """
    from tavola.model.document import design_of

    if is_file(text):
        from tavola.iac.formats import read_design

        imported = read_design(Path(text))
        for each in imported.report:
            remark(str(each))
        return imported.design
    module_name, name = split_design_name(text)
    module = _import_module(text, module_name)
    if name:
        return design_of(*load_tables(text))
    if not _tables(module):
        design = design_of(module)
        if design.needs or (allow_unkeyed and design.views):
            return design
    load_tables(text)  # raises if there are none
    return design_of(module)


def load_deployable_design(text: str) -> Design:
    """Return a design that has at least one table."""
    design = load_design(text)
    if not design.tables:
        raise DesignLoadError(
            text, f"{text} has no table", "Declare a table, or name another module or file."
        )
    return design


def load_table(text: str) -> type[Table]:
    """Return the one table that a text names."""
    tables = load_tables(text)
    if len(tables) > 1:
        names = ", ".join(table.__name__ for table in tables)
        raise DesignLoadError(
            text,
            f"{text} has {len(tables)} tables: {names}",
            f"Name one of them: {text}:{tables[0].__name__}",
        )
    return tables[0]


def load_annotated_design(text: str) -> tuple[Design, tuple[SourceFile, ...]]:
    """Return a design with what its source files add, and these files: ignore comments, and what stream handlers return."""
    from tavola.model.document import with_handlers, with_ignores

    sources = read_source_files(text)
    comments = [(source.file, source.text) for source in sources if source.file.endswith(".py")]
    design = with_ignores(load_design(text, allow_unkeyed=True), comments)
    return with_handlers(design, _read_handlers(design, text)), sources


def _read_handlers(design: Design, text: str) -> dict[str, str]:
    """Return the sources of the modules of stream handlers that can be found, by name; none is imported.

    The handlers of a template are looked for beside it, those of a Python design on the Python path.
    """
    from tavola.model.document import handler_modules

    path = Path(text)
    folders = [str(path if path.is_dir() else path.parent)] if is_file(text) else sys.path
    consumers = [consumer for table in design.tables for consumer in table.consumers]
    sources = {}
    for name in dict.fromkeys(name for consumer in consumers for name in handler_modules(consumer)):
        file = _find_module(name, folders)
        if file is not None:
            with suppress(OSError, ValueError):
                sources[name] = file.read_text(encoding="utf-8")
    return sources


def _find_module(name: str, folders: Sequence[str]) -> Path | None:
    """Return the file of a module below some folders, without importing its packages."""
    found: ModuleSpec | None = None
    inside: Sequence[str] | None = folders
    for part in name.split("."):
        found = None if inside is None else PathFinder.find_spec(part, inside)
        if found is None:
            return None
        inside = found.submodule_search_locations
    origin = None if found is None else found.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def find_file_format(text: str) -> FileFormat | None:
    """Return whether a text names Terraform or CloudFormation, whose users expect their own names for settings."""
    if not is_file(text):
        return None
    from tavola.iac.formats import read_design

    name = read_design(Path(text)).format.partition("-")[0]  # terraform-json is Terraform too
    return "terraform" if name == "terraform" else "cloudformation" if name == "cloudformation" else None


def read_source_files(text: str) -> tuple[SourceFile, ...]:
    """Return the source files of a design: the document itself, or the modules that declare it.

    A module without a file, and a file that is not text, are left out: findings in them have no line number.
    """
    from tavola.design.lint import SourceFile

    files = []
    for path in _source_paths(text):
        try:
            files.append(SourceFile(shorten_path(path), path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return tuple(files)


def _source_paths(text: str) -> list[Path]:
    if is_file(text):
        path = Path(text)
        return [path] if path.is_file() else sorted(path.glob("*.tf"))
    from tavola.model import entities_of

    names = [split_design_name(text)[0]]
    try:
        tables = load_tables(text)
    except DesignLoadError:
        tables = ()  # loading the design reports what is wrong
    names += [cls.__module__ for table in tables for cls in (table, *entities_of(table))]
    files = [getattr(sys.modules.get(name), "__file__", None) for name in dict.fromkeys(names)]
    return [Path(file) for file in files if file]


def connect_to_tables(
    target: Target, tables: Sequence[type[Table]], name: str | None, region: str | None = None
) -> Connection:
    """Return a connection on which the design's one table is called `name`."""
    from tavola.client.connection import Connection
    from tavola.client.context import Context

    if name is not None and len(tables) > 1:
        raise CommandError("--table-name needs a design with one table.", "Name the table: MODULE:TABLE.")
    names = {} if name is None else {tables[0].settings.name: name}
    return Connection(
        target.connection.backend, target.connection.target, Context(names=names, region=region)
    )


def shorten_path(path: Path) -> str:
    """Return a path relative to the current folder, if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


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


def _import_module(text: str, name: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise DesignLoadError(text, f"{name!r} is neither a module name nor an existing file")
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the current folder can be named
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise DesignLoadError(
                text,
                f"There is no module named {name!r} here",
                "Run the command in the module's folder, or install its package.",
            ) from error
        raise _import_error(
            text, name, error, str(error), "Install the missing module, or fix the import."
        ) from error
    except Exception as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _import_error(
            text, name, error, f"{type(error).__name__}: {message}", "Fix the module at that line."
        ) from error
    path, file = _python(text), getattr(module, "__file__", None)
    if path is not None and (file is None or Path(file).resolve() != path.resolve()):
        other = "built into Python" if file is None else shorten_path(Path(file))
        raise DesignLoadError(text, f"Another module is named {name} too ({other})", "Rename the file.")
    return module


def _import_error(text: str, name: str, error: Exception, why: str, remedy: str) -> DesignLoadError:
    """Return the error for a module that fails while it is imported, with the last line that ran."""
    at = ""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        at = f"{shorten_path(Path(error.filename))}, line {error.lineno}: "
    else:
        package_root = str(Path(__file__).parents[1]) + os.sep
        frames = [
            frame
            for frame in extract_tb(error.__traceback__)
            if not frame.filename.startswith((package_root, "<"))
            and f"{os.sep}importlib{os.sep}" not in frame.filename
        ]
        spec = importlib.util.find_spec(name) if frames else None
        design_frames = [frame for frame in frames if spec is not None and frame.filename == spec.origin]
        if frames:
            last = (design_frames or frames)[-1]
            at = f"{shorten_path(Path(last.filename))}, line {last.lineno}: "
    return DesignLoadError(text, f"{name} cannot be imported: {at}{why}", remedy)


def _tables(module: ModuleType) -> tuple[type[Table], ...]:
    from tavola.model import Table

    tables = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Table) and value is not Table and value.entities
    ]  # fmt: skip
    return tuple(dict.fromkeys(tables))
