"""Parameters: a command is a typed function, and its signature declares its options and arguments.

    def read(
        table: Annotated[str, Argument(help="The table.")],
        limit: Annotated[int | None, Option("--limit", help="The most items to show.", min=1)] = None,
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
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

_F = TypeVar("_F", bound=Callable[..., None])

BUNDLE: Final[Any] = object()
"""The default of a bundle parameter: each of its fields has a default of its own."""

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Option:
    """An option; without a flag it is called like its parameter."""

    flag: str | None = None
    help: str | None = None
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
            values[bundle] = kind(**{each: values.pop(each) for each in names})
        if wants_context is not None:
            values[wants_context] = click.get_current_context()
        function(**values)

    return click.Command(
        name or function.__name__.strip("_").replace("_", "-"),
        callback=call,
        params=parameters,
        help=inspect.getdoc(function),
        context_settings=HELP_NAMES,
    )


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is invoked or listed.

    `homes` maps a command's name to `module:attribute`; the attribute is a function for `command`, or a `click.Command`.
    """

    def __init__(self, *args: Any, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, context_settings=HELP_NAMES, **options)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were declared."""
        return list(dict.fromkeys((*self._homes, *self.commands)))  # a command that was used is in both

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, importing it first if it was not used before."""
        if cmd_name not in self.commands and cmd_name in self._homes:
            module, _, attribute = self._homes[cmd_name].partition(":")
            found = getattr(import_module(module), attribute)
            self.commands[cmd_name] = found if isinstance(found, click.Command) else command(found, cmd_name)
        return self.commands.get(cmd_name)


class Group(LazyGroup):
    """A group whose functions are added with a decorator: `@group.add`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, homes={}, **options)

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
    def of(cls, function: Callable[..., None], name: str) -> Group:
        """Return a group that calls a typed function when it is invoked without a command."""
        own = command(function, name)
        return cls(name, callback=own.callback, params=own.params, help=own.help, invoke_without_command=True)


def _bundle_parameters(kind: type) -> list[click.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [_parameter(each.name, hints[each.name], each.default) for each in fields(kind)]


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    """Return one annotated parameter as click's option or argument."""
    assert get_origin(hint) is Annotated, f"{name} is annotated with neither Option nor Argument"
    bare, spec = get_args(hint)[:2]
    required = default is MISSING
    given: dict[str, Any] = (
        {} if required else {"default": default}
    )  # a default of None would satisfy `required`
    several, kind, optional = _converted(bare, spec)
    if isinstance(spec, Argument):
        return click.Argument(
            [name],
            type=kind,
            required=required,
            **given,
            nargs=-1 if several else 1,
            metavar=spec.metavar,
            help=spec.help,
            callback=_as_list if several else None,
        )
    assert isinstance(spec, Option)
    return click.Option(
        [spec.flag or f"--{name.replace('_', '-')}", name],
        type=kind,
        required=required,
        **given,
        is_flag=bare is bool or None,
        multiple=several,
        metavar=spec.metavar,
        help=spec.help,
        envvar=spec.envvar,
        show_envvar=spec.show_envvar and spec.envvar is not None,
        show_default=_shown_default(spec, hidden=optional or bare is bool),
        hidden=spec.hidden,
        callback=_as_list if several else None,
    )


def _shown_default(spec: Option, *, hidden: bool) -> bool | str:
    return spec.show_default if isinstance(spec.show_default, str) else spec.show_default and not hidden


def _converted(bare: Any, spec: Option | Argument) -> tuple[bool, click.ParamType[Any], bool]:
    """Return whether a parameter takes several values, the type of each, and whether it may be None."""
    optional = get_origin(bare) in {Union, types.UnionType} and type(None) in get_args(bare)
    if optional:
        (bare,) = (each for each in get_args(bare) if each is not type(None))
    several = get_origin(bare) is list
    if several:
        (bare,) = get_args(bare)
    return several, _click_type(bare, spec), optional


def _click_type(bare: Any, spec: Option | Argument) -> click.ParamType[Any]:
    least, most = (spec.min, spec.max) if isinstance(spec, Option) else (None, None)
    if bare is bool:
        return click.BOOL
    if bare is int:
        return click.INT if least is None and most is None else click.IntRange(_whole(least), _whole(most))
    if bare is float:
        return click.FLOAT if least is None and most is None else click.FloatRange(least, most)
    if bare is Path:
        return click.Path(path_type=Path)
    if get_origin(bare) is Literal:
        return click.Choice(get_args(bare))
    if isinstance(bare, type) and issubclass(bare, Enum):
        return _EnumValue(bare)
    assert bare is str, f"no command-line type for {bare!r}"
    return click.STRING


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
