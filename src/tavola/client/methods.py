"""Methods from programs: each client operation is defined once and serves blocking and asynchronous classes.

    def put(context: Context, entity: E, *, when: Condition[E] | None = None) -> Program[E]:
        ...

    class Db:
        put = blocking_method(put)          # db.put(ticket) -> Ticket
    class AsyncDb:
        put = async_method(put)             # await db.put(ticket) -> Ticket

The class provides `context`, which the program gets as its first argument, and `run`, which runs it. Type checkers derive
parameters, overloads and results from the program; `help()` and `inspect.signature()` show the same, because each method
carries a copy of the program's signature with `self` first and the result in place of `Program[result]`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, get_overloads, overload

from tavola.client.effects import Program

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def blocking_method(
    program: Callable[Concatenate[S, P], Program[R]],
) -> Callable[Concatenate[Any, P], R]:
    """Return a method that runs a program and returns its result."""

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(program(self.context, *args, **kwargs))

    return _Method(method, program)  # type: ignore[return-value]  # it becomes `method` in its class


def async_method(
    program: Callable[Concatenate[S, P], Program[R]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a coroutine method that runs a program and returns its result."""

    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self.run(program(self.context, *args, **kwargs))

    return _Method(method, program)  # type: ignore[return-value]  # it becomes `method` in its class


def describe_method(method: Any, program: Any, result: Callable[[str], str] = str) -> Any:
    """Return a class attribute that becomes `method`, with the name, docstring and signature of a program.

    `result` rewrites the annotation of the result where the method returns something else than the program.
    """
    return _Method(method, program, result)


class _Method:
    """Replaces itself by a documented function once the class that holds it is known."""

    def __init__(self, method: Any, program: Any, result: Callable[[str], str] = str) -> None:
        self._method = method
        self._program = program
        self._result = result

    def __set_name__(self, owner: type, name: str) -> None:
        method, program = self._method, self._program
        method.__module__, method.__name__ = owner.__module__, name
        method.__qualname__ = f"{owner.__qualname__}.{name}"
        method.__doc__ = program.__doc__
        method.__wrapped__ = self._signature_of(program, method)
        for each in get_overloads(program):
            overload(self._signature_of(each, method))  # so that get_overloads(method) finds it
        setattr(owner, name, method)

    def _signature_of(self, program: Any, method: Any) -> FunctionType:
        """Return a copy of a program's function that is never called: it carries the signature of the method."""
        code = program.__code__
        first, *others = code.co_varnames
        copy = FunctionType(
            code.replace(co_varnames=("self", *others)), program.__globals__, method.__name__,
            program.__defaults__, program.__closure__,
        )  # fmt: skip
        copy.__kwdefaults__ = program.__kwdefaults__
        annotations = {key: text for key, text in program.__annotations__.items() if key != first}
        annotations["return"] = self._result(str(annotations["return"]).removeprefix("Program[")[:-1])
        copy.__annotations__ = annotations
        copy.__module__, copy.__qualname__ = method.__module__, method.__qualname__
        return copy
