"""Parameters: a command is a typed function, and its signature declares its options and arguments.

    def read(
        table: Annotated[str, Argument(help="Table to read.")],
        limit: Annotated[int | None, Option("--limit", help="Maximum number of items.", min=1)] = None,
        at: TargetOptions = BUNDLE,
    ) -> None: ...

`command(read)` returns the `click.Command`. The annotation gives the type that click converts to, the default gives the
default, so mypy checks in the body what the user may pass on the command line. A parameter whose annotation is a dataclass
is a *bundle*: its fields are options too, and the function receives one object. That is how commands share options.

Typer does the first half of this. It also brings rich, pygments and shellingham, takes twice as long to import as click, and
has no bundles; docs/decisions/0004-dependencies.md has the numbers.
"""

from __future__ import annotations

import inspect
import math
import os
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from tavola.cli.terminal import is_color_off, style

_F = TypeVar("_F", bound=Callable[..., None])

BUNDLE: Final[Any] = object()
"""The default of a bundle parameter: each of its fields has a default of its own."""

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class _HelpFormatter(click.HelpFormatter):
    """Help with bold headings."""

    def write_heading(self, heading: str) -> None:
        super().write_heading(style(heading, "heading"))


class _Context(click.Context):
    """A context that turns colour off where the environment asks for it."""

    formatter_class = _HelpFormatter

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if is_color_off(os.environ):
            self.color = False


class Command(click.Command):
    """A command of the program; every command accepts `--no-color`."""

    context_class = _Context


class _HelpfulOption(click.Option):
    """An option whose help omits empty defaults, and ranges, which an error message names when they matter."""

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        default = extra.pop("default", '""').strip("()")  # click puts a default given as text in parentheses
        if default != '""':
            extra["default"] = default
        return extra


def _turn_color_off(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.color = False


def no_color_option(*, hidden: bool) -> click.Option:
    """Return the `--no-color` option; only the help of `tavola` itself shows it."""
    return click.Option(
        ["--no-color"], is_flag=True, is_eager=True, expose_value=False, hidden=hidden,
        help="Print without colours, as with NO_COLOR=1.", callback=_turn_color_off,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """An option; without a flag it is named after its parameter. `aliases` are accepted too."""

    flag: str | None = None
    help: str | None = None
    aliases: tuple[str, ...] = ()
    metavar: str | None = None
    envvar: str | list[str] | None = None
    show_envvar: bool = True
    show_default: bool | str = True  # a text is shown as the default
    hidden: bool = False
    min: int | float | None = None
    max: int | float | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument."""

    help: str | None = None
    metavar: str | None = None


AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print the result as JSON.")]


def command(function: Callable[..., None], name: str | None = None) -> click.Command:
    """Return a typed function as a command; its docstring is the help."""
    parameters: list[click.Parameter] = []
    bundles: dict[str, tuple[type, tuple[str, ...]]] = {}
    wants_context: str | None = None
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if hint is click.Context:
            wants_context = parameter.name
        elif is_dataclass(hint) and isinstance(hint, type):
            members = _bundle_parameters(hint)
            parameters += members
            bundles[parameter.name] = hint, tuple(member.name or "" for member in members)
        else:
            default = MISSING if parameter.default is parameter.empty else parameter.default
            parameters.append(_parameter(parameter.name, hint, default))

    def call(**values: Any) -> None:
        for bundle, (kind, names) in bundles.items():
            values[bundle] = kind(**{name: values.pop(name) for name in names})
        if wants_context is not None:
            values[wants_context] = click.get_current_context()
        function(**values)

    return Command(
        name or function.__name__.strip("_").replace("_", "-"),
        callback=call,
        params=[*parameters, no_color_option(hidden=True)],
        help=inspect.getdoc(function),
        context_settings=HELP_NAMES,
    )


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is invoked or listed.

    `sections` maps a heading of the help to the commands below it: a command's name and its `module:attribute`. The
    attribute is a function for `command`, or a `click.Command`.
    """

    context_class = _Context

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **options: Any) -> None:
        super().__init__(*args, context_settings=HELP_NAMES, **options)
        self._sections = sections
        self._locations = {name: path for commands in sections.values() for name, path in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were declared."""
        return list(dict.fromkeys((*self._locations, *self.commands)))  # a command that was used is in both

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, importing it first if it was not used before."""
        if cmd_name not in self.commands and cmd_name in self._locations:
            module, _, attribute = self._locations[cmd_name].partition(":")
            loaded = getattr(import_module(module), attribute)
            self.commands[cmd_name] = (
                loaded if isinstance(loaded, click.Command) else command(loaded, cmd_name)
            )
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; suggest similar names if it does not exist."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(name, possibilities=self.list_commands(ctx), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below the headings of their sections, aligned across sections."""
        if not self._sections:
            super().format_commands(ctx, formatter)
            return
        width = max(map(len, self._locations))
        for heading, names in self._sections.items():
            rows = []
            for name in names:
                subcommand = self.get_command(ctx, name)
                assert subcommand is not None
                rows.append((name.ljust(width), subcommand.get_short_help_str(formatter.width - width - 4)))
            with formatter.section(heading):
                formatter.write_dl(rows)


class CommandGroup(LazyGroup):
    """A group to which typed functions are added with a decorator: `@group.add`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, sections={}, **options)

    def add(self, function: _F) -> _F:
        """Add a typed function as a command under its own name; use it as a decorator."""
        self.add_command(command(function))
        return function

    def add_as(self, name: str) -> Callable[[_F], _F]:
        """Return a decorator that adds a typed function as a command under another name."""

        def add(function: _F) -> _F:
            self.add_command(command(function, name))
            return function

        return add

    @classmethod
    def of(cls, function: Callable[..., None], name: str) -> CommandGroup:
        """Return a group that calls a typed function when it is invoked without a command."""
        own = command(function, name)
        return cls(name, callback=own.callback, params=own.params, help=own.help, invoke_without_command=True)


def _bundle_parameters(kind: type) -> list[click.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    by_name = {field.name: field for field in fields(kind)}
    # The options of the class itself come first, then those that it inherits.
    names = [name for base in kind.__mro__ for name in inspect.get_annotations(base) if name in by_name]
    return [_parameter(name, hints[name], by_name[name].default) for name in dict.fromkeys(names)]


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    """Return one annotated parameter as click's option or argument."""
    assert get_origin(hint) is Annotated, f"{name} is annotated with neither Option nor Argument"
    bare, spec = get_args(hint)[:2]
    required = default is MISSING
    default_option = {} if required else {"default": default}  # a default of None would satisfy `required`
    is_list, kind, optional = _value_type(bare, spec)
    if isinstance(spec, Argument):
        return click.Argument(
            [name],
            type=kind,
            required=required,
            **default_option,
            nargs=-1 if is_list else 1,
            metavar=spec.metavar,
            help=spec.help,
            callback=_as_list if is_list else None,
        )
    assert isinstance(spec, Option)
    return _HelpfulOption(
        [spec.flag or f"--{name.replace('_', '-')}", *spec.aliases, name],
        type=kind,
        required=required,
        **default_option,
        is_flag=bare is bool or None,
        multiple=is_list,
        metavar=spec.metavar or ("N" if isinstance(kind, click.IntRange | click.FloatRange) else None),
        help=spec.help,
        envvar=spec.envvar,
        show_envvar=spec.show_envvar and spec.envvar is not None,
        show_default=_shown_default(spec, default, hidden=optional or bare is bool),
        hidden=spec.hidden,
        callback=_as_list if is_list else None,
    )


def _shown_default(spec: Option, default: Any, *, hidden: bool) -> bool | str:
    if isinstance(spec.show_default, str):
        return spec.show_default
    if spec.show_default and not hidden and isinstance(default, float):
        return f"{default:g}"  # 60, not 60.0
    return spec.show_default and not hidden


def _value_type(bare: Any, spec: Option | Argument) -> tuple[bool, click.ParamType[Any], bool]:
    """Return whether a parameter takes several values, the type of each, and whether it may be None."""
    optional = get_origin(bare) in {Union, types.UnionType} and type(None) in get_args(bare)
    if optional:
        (bare,) = (member_type for member_type in get_args(bare) if member_type is not type(None))
    is_list = get_origin(bare) is list
    if is_list:
        (bare,) = get_args(bare)
    return is_list, _click_type(bare, spec), optional


def _click_type(bare: Any, spec: Option | Argument) -> click.ParamType[Any]:
    least, most = (spec.min, spec.max) if isinstance(spec, Option) else (None, None)
    if bare is bool:
        return click.BOOL
    if bare is int:
        return _IntegerRange(_whole(least), _whole(most))
    if bare is float:
        return _DecimalRange(least, most)
    if bare is Path:
        return click.Path(path_type=Path)
    if get_origin(bare) is Literal:
        return click.Choice(get_args(bare))
    if isinstance(bare, type) and issubclass(bare, Enum):
        return _EnumValue(bare)
    assert bare is str, f"no command-line type for {bare!r}"
    return click.STRING


class _IntegerRange(click.IntRange):
    """A whole number; errors name the accepted values in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            _refuse_number(param, ctx, value, "a whole number", self.min, self.max)


class _DecimalRange(click.FloatRange):
    """A number; errors name the accepted values in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if not math.isfinite(number):
            _refuse_number(param, ctx, value, "a number", self.min, self.max)
        return number


def _refuse_number(
    param: click.Parameter | None,
    ctx: click.Context | None,
    value: Any,
    noun: str,
    least: float | None,
    most: float | None,
) -> NoReturn:
    """Refuse a value: "--limit must be a whole number, 1 or more, not 'many'."."""
    name = "The value" if param is None else param.opts[0]
    if param is not None and param.envvar:
        name += f" (or {param.envvar})"
    if least is not None and most is not None:
        noun += f" from {least:g} to {most:g}"
    elif least is not None:
        noun += f", {least:g} or more"
    elif most is not None:
        noun += f", {most:g} or less"
    raise click.UsageError(f"{name} must be {noun}, not {value!r}.", ctx)


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


class _EnumValue(click.Choice[Any]):
    """An enum chosen by its members' values."""

    def __init__(self, kind: type[Enum]) -> None:
        super().__init__([member.value for member in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, self._kind) else self._kind(super().convert(value, param, ctx))


def _as_list(context: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> list[Any] | None:
    """Give repeated values as a list; None where the option was not used."""
    return list(values) or None
