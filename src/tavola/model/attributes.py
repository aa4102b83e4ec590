"""Attr: a field of an entity, which is a value on an instance and an operand on the class.

    ticket.status                   "open"
    Ticket.status == "open"         a condition on tickets
    Ticket.status.set("closed")     a change of a ticket

Type checkers see a descriptor; at run time `Attr[T]` is `Annotated[T, Attr]`, so pydantic sees the bare type,
and the entity's metaclass makes the operand. Conditions and changes know their entity, so that those of
another one are refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSet, Set, Sized
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, Protocol, TypeVar, overload

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from tavola.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    ConditionNode,
    Delete,
    Literal,
    Member,
    Not,
    Or,
    Path,
    Remove,
    literal,
)  # fmt: skip
from tavola.expressions import Operand as Node
from tavola.expressions import (
    Set as SetAction,
)
from tavola.limits import EXPRESSION_IN_OPERANDS_MAX
from tavola.model.base import EntityBase
from tavola.model.errors import ModelError, QueryRefused
from tavola.values import Value

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

Number = int | Decimal


@dataclass(frozen=True, slots=True, eq=False)
class Condition(Generic[E_contra]):
    """What must hold of an item of an entity; combines with & | ~."""

    node: ConditionNode

    def __and__(self: Condition[E], other: Condition[E]) -> Condition[E]:
        return Condition(And((*_row(self.node, And), *_row(other.node, And))))

    def __or__(self: Condition[E], other: Condition[E]) -> Condition[E]:
        return Condition(Or((*_row(self.node, Or), *_row(other.node, Or))))

    if TYPE_CHECKING:  # so that a base's condition comes first as well as second

        def __rand__(self: Condition[E], other: Condition[E]) -> Condition[E]: ...
        def __ror__(self: Condition[E], other: Condition[E]) -> Condition[E]: ...

    def __invert__(self: Condition[E]) -> Condition[E]:
        return Condition(Not(self.node))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition is decided against an item; combine conditions with & | ~, not and/or/not"
        )


def _row(node: ConditionNode, kind: type[And] | type[Or]) -> tuple[ConditionNode, ...]:
    return node.parts if isinstance(node, kind) else (node,)


@dataclass(frozen=True, slots=True)
class Change(Generic[E_contra]):
    """One action of an update, on one field."""

    action: Action
    field: str
    whole: bool  # on the field itself, and not on a part of the document in it


class MayBeAbsent(Protocol[E_contra]):
    """An operand that takes None: what may be removed."""

    def set(self, value: None, /) -> Change[E_contra]: ...


class Term(Generic[E_contra, T_co]):
    """What SET can be given besides a value: another field, or a field plus or minus an amount."""

    __slots__ = ("_node",)

    def __init__(self, node: Node | Arithmetic) -> None:
        self._node: Any = node


class Operand(Term[E_contra, T_co]):
    """A field of an entity, or a part of one, in a condition or an update."""

    __slots__ = ("_encode", "field")
    __hash__ = None  # type: ignore[assignment]  # == makes a condition, so there is no set of these

    def __init__(self, node: Node, field: str, encode: Callable[[Any], Value]) -> None:
        super().__init__(node)
        self.field = field
        self._encode = encode

    # Conditions.

    def eq(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this equals a value; None asks that it is absent."""
        if value is None:
            return self.not_exists()
        return Condition(Comparison("=", self._node, self._operand(value)))

    def ne(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is another value; None asks that it is there."""
        if value is None:
            return self.exists()
        return Condition(Comparison("<>", self._node, self._operand(value)))

    def lt(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is less."""
        return Condition(Comparison("<", self._node, self._operand(value)))

    def lte(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is not more."""
        return Condition(Comparison("<=", self._node, self._operand(value)))

    def gt(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is more."""
        return Condition(Comparison(">", self._node, self._operand(value)))

    def gte(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is not less."""
        return Condition(Comparison(">=", self._node, self._operand(value)))

    def __eq__(self, value: T_co | Operand[E_contra, T_co] | None) -> Condition[E_contra]:  # type: ignore[override]  # a condition
        return self.eq(value)  # type: ignore[arg-type]  # None asks for absence

    def __ne__(self, value: T_co | Operand[E_contra, T_co] | None) -> Condition[E_contra]:  # type: ignore[override]  # a condition
        return self.ne(value)  # type: ignore[arg-type]  # None asks for presence

    def __lt__(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        return self.lt(value)

    def __le__(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        return self.lte(value)

    def __gt__(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        return self.gt(value)

    def __ge__(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        return self.gte(value)

    def between(
        self,
        lower: T_co | Operand[E_contra, T_co],
        upper: T_co | Operand[E_contra, T_co],
    ) -> Condition[E_contra]:
        """Return the condition that this lies between two bounds, both included."""
        return Condition(Between(self._node, self._operand(lower), self._operand(upper)))

    def is_in(self, *choices: T_co) -> Condition[E_contra]:  # type: ignore[misc]  # it is only read
        """Return the condition that this equals one of the choices, 1 to 100."""
        if not 1 <= len(choices) <= EXPRESSION_IN_OPERANDS_MAX:
            raise QueryRefused(
                self.field,
                f"it is asked for one of {len(choices)} choices; give 1 to {EXPRESSION_IN_OPERANDS_MAX}",
            )
        return Condition(Member(self._node, tuple(map(self._operand, choices))))

    def exists(self) -> Condition[E_contra]:
        """Return the condition that an item has this."""
        return Condition(Call("attribute_exists", (self._path,)))

    def not_exists(self) -> Condition[E_contra]:
        """Return the condition that an item does not have this."""
        return Condition(Call("attribute_not_exists", (self._path,)))

    def begins_with(self: Operand[E, str | bytes | None], prefix: str | bytes) -> Condition[E]:
        """Return the condition that this text or binary begins with a prefix."""
        return Condition(Call("begins_with", (self._node, literal(prefix))))

    @overload
    def contains(self: Operand[E, str | None], part: str) -> Condition[E]: ...
    @overload
    def contains(
        self: Operand[E, list[V] | MutableSet[V] | frozenset[V] | None], part: V
    ) -> Condition[E]: ...
    def contains(self, part: Any) -> Condition[Any]:
        """Return the condition that this text has a part, or this set or list a member."""
        return Condition(Call("contains", (self._node, literal(part))))

    def size(self: Operand[E, Sized | BaseModel | None]) -> Operand[E, int]:
        """Return the size of this: characters, bytes or members."""
        return Operand(Call("size", (self._path,)), self.field, _encode_plain)

    # Changes.

    def set(self, value: T_co | Term[E_contra, T_co], /) -> Change[E_contra]:
        """Return the change that puts a value here; None takes the field away."""
        if isinstance(value, Term):
            return self._change(SetAction(self._path, value._node))
        encoded = None if value is None else self._encode(value)
        if not encoded:  # an empty set is absent, as None is
            return self._change(Remove(self._path))
        return self._change(SetAction(self._path, Literal(encoded)))

    def set_if_absent(self, value: T_co) -> Change[E_contra]:  # type: ignore[misc]  # it is only read
        """Return the change that puts a value here unless there is one."""
        once = Call("if_not_exists", (self._path, self._operand(value)))
        return self._change(SetAction(self._path, once))

    def remove(self: MayBeAbsent[E]) -> Change[E]:
        """Return the change that takes this away; for fields that may be None."""
        assert isinstance(self, Operand)
        return self._change(Remove(self._path))

    @overload
    def add(self: Operand[E, Number | None], amount: Number, /) -> Change[E]: ...
    @overload
    def add(self: Operand[E, MutableSet[V] | None], amount: Set[V], /) -> Change[E]: ...
    @overload
    def add(self: Operand[E, frozenset[V] | None], amount: Set[V], /) -> Change[E]: ...
    def add(self, amount: Any, /) -> Change[Any]:
        """Return the change that adds to this number (absent is 0), or members to this set."""
        encoded = self._encode(amount) if isinstance(amount, Set) else _encode_plain(amount)
        return self._change(Add(self._path, Literal(encoded)))

    @overload
    def discard(self: Operand[E, MutableSet[V] | None], members: Set[V]) -> Change[E]: ...
    @overload
    def discard(self: Operand[E, frozenset[V] | None], members: Set[V]) -> Change[E]: ...
    def discard(self, members: Any) -> Change[Any]:
        """Return the change that takes members out of this set."""
        return self._change(Delete(self._path, Literal(self._encode(members))))

    def append(self: Operand[E, list[V] | None], *members: V) -> Change[E]:
        """Return the change that puts members at the end of this list, which may be absent."""
        more = Literal(self._encode(list(members)))
        present = Call("if_not_exists", (self._path, Literal({"L": []})))
        return self._change(SetAction(self._path, Call("list_append", (present, more))))

    @overload
    def __add__(self: Operand[E, int | None], amount: int) -> Term[E, int]: ...  # type: ignore[overload-overlap]  # on None alone
    @overload
    def __add__(self: Operand[E, Decimal | None], amount: Number) -> Term[E, Decimal]: ...
    def __add__(self, amount: Any) -> Term[Any, Any]:
        return Term(Arithmetic("+", self._node, Literal(_encode_plain(amount))))

    @overload
    def __sub__(self: Operand[E, int | None], amount: int) -> Term[E, int]: ...  # type: ignore[overload-overlap]  # on None alone
    @overload
    def __sub__(self: Operand[E, Decimal | None], amount: Number) -> Term[E, Decimal]: ...
    def __sub__(self, amount: Any) -> Term[Any, Any]:
        return Term(Arithmetic("-", self._node, Literal(_encode_plain(amount))))

    @overload
    def __getitem__(self: Operand[E, list[V] | tuple[V, ...] | None], step: int) -> Operand[E, V]: ...
    @overload
    def __getitem__(self: Operand[E, dict[str, V] | None], step: str) -> Operand[E, V]: ...
    @overload
    def __getitem__(
        self: Operand[E, Mapping[str, object] | BaseModel | None], step: str
    ) -> Operand[E, Any]: ...
    def __getitem__(self, step: str | int) -> Operand[Any, Any]:
        """Return a part of the document in this field: `Ticket.address["city"]`, `Ticket.lines[0]`."""
        return Operand(Path((*self._path.steps, step)), self.field, _encode_plain)

    @property
    def _path(self) -> Path:
        if not isinstance(self._node, Path):
            raise TypeError("the size of a field can be compared, and neither set nor looked into")
        return self._node

    def _change(self, action: Action) -> Change[Any]:
        return Change(action, self.field, len(self._path.steps) == 1)

    def _operand(self, value: Any) -> Node:
        if value is None:
            raise QueryRefused(
                self.field, "None is stored as absence, which has no order; ask with exists() or not_exists()"
            )
        return value._node if isinstance(value, Operand) else Literal(self._encode(value))

    def __repr__(self) -> str:
        return f"<Operand {self.field}>"


def _encode_plain(value: Any) -> Value:
    return literal(value).value


@dataclass(frozen=True, slots=True)
class AttrOptions:
    """What `attr` says besides the default."""

    name: str | None = None
    lock: bool = False
    unique: bool = False
    within: tuple[str, ...] = ()


if TYPE_CHECKING:

    class Attr(Generic[T]):
        """A field of an entity: `T` on an instance, `Operand` on the class."""

        @overload
        def __get__(self, obj: None, owner: type[E], /) -> Operand[E, T]: ...
        @overload
        def __get__(self, obj: EntityBase, owner: Any, /) -> T: ...
        def __get__(self, obj: Any, owner: Any, /) -> Any: ...
        def __set__(self, obj: Any, value: T, /) -> None: ...

    @overload
    def attr(
        *, name: str | None = ..., unique: bool = ..., within: tuple[str, ...] = ..., description: str = ...
    ) -> Any: ...
    @overload
    def attr(
        *,
        default: T,
        name: str | None = ...,
        lock: bool = ...,
        unique: bool = ...,
        within: tuple[str, ...] = ...,
        description: str = ...,
    ) -> Attr[T]: ...
    @overload
    def attr(
        *,
        default_factory: Callable[[], T],
        name: str | None = ...,
        unique: bool = ...,
        within: tuple[str, ...] = ...,
        description: str = ...,
    ) -> Attr[T]: ...
    def attr(**options: Any) -> Any:
        """Return what a field has besides its type."""
else:

    class Attr:
        """A field of an entity: a value on an instance, an operand on the class."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item, cls]

    def attr(
        *,
        name: str | None = None,
        lock: bool = False,
        unique: bool = False,
        within: tuple[str, ...] = (),
        **field: Any,
    ) -> FieldInfo:
        """Return what a field has besides its type: a default, another name in the table, a role.

        `name` is the attribute in DynamoDB. `lock` makes an int the revision that writes check and raise.
        `unique` lets no two items have one value, `within` only among those alike in other fields.
        """
        for told in field:
            if told not in ("default", "default_factory", "description"):
                raise ModelError(
                    "attr()",
                    f"it takes no {told}=; name= is the attribute in DynamoDB, and what pydantic shall check stands "
                    "in the type: Attr[Annotated[str, Field(…)]]",
                )
        if "default" in field and "default_factory" in field:
            raise ModelError("attr()", "default= and default_factory= are both given; leave one out")
        if name is not None and not name:
            raise ModelError("attr()", "name='' is no attribute; leave it out, or give the name in DynamoDB")
        info = Field(**field)
        info.metadata.append(AttrOptions(name, lock, unique, within))
        return info
