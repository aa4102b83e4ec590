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
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, Protocol, TypeVar, overload

from msgspec import Struct
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    InList,
    Literal,
    Not,
    Or,
    Path,
    Remove,
)
from tavola.expressions.nodes import Operand as Node
from tavola.expressions.nodes import Set as SetAction
from tavola.limits import EXPRESSION_IN_OPERANDS_MAX
from tavola.model.converters import Converter, encode_plain, with_place
from tavola.model.converters.plain import ANY
from tavola.model.errors import ModelError, QueryRefused, ValueNotStorable
from tavola.model.shapes import EntityBase, FieldShape
from tavola.values import Value

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

Number = int | Decimal

_COUNTED = frozenset({"int", "decimal", "float"})  # kinds whose amounts are values of their own type


class Condition(Struct, Generic[E_contra], frozen=True, eq=False):
    """A condition on an item of an entity; conditions combine with & | ~."""

    node: ConditionNode
    entity: type[Any] | None = None  # whose fields it names; None: those of whom it is asked of

    def __and__(self: Condition[E], other: Condition[E]) -> Condition[E]:
        entity = _one_entity(self, other, "&")
        return Condition(And((*_row(self.node, And), *_row(other.node, And))), entity)

    def __or__(self: Condition[E], other: Condition[E]) -> Condition[E]:
        entity = _one_entity(self, other, "|")
        return Condition(Or((*_row(self.node, Or), *_row(other.node, Or))), entity)

    if TYPE_CHECKING:  # so that a base's condition comes first as well as second

        def __rand__(self: Condition[E], other: Condition[E]) -> Condition[E]: ...
        def __ror__(self: Condition[E], other: Condition[E]) -> Condition[E]: ...

    def __invert__(self: Condition[E]) -> Condition[E]:
        return Condition(Not(self.node), self.entity)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition has no truth value; combine conditions with & | ~ instead of and/or/not")


def _one_entity(one: Condition[Any], other: Any, sign: str) -> type[Any] | None:
    """Return the entity that both conditions apply to; refuse conditions on different entities, and other objects."""
    place = "a condition" if one.entity is None else one.entity.__name__
    if not isinstance(other, Condition):
        raise QueryRefused(
            place,
            f"{sign} combines conditions, but {other!r} is not one; use a field of the class, not of an instance",
        )
    if one.entity is None or other.entity is None or fields_apply_to(other.entity, one.entity):
        return other.entity or one.entity
    if fields_apply_to(one.entity, other.entity):
        return one.entity
    raise QueryRefused(
        place, f"{sign} joins it with a condition on {other.entity.__name__}; ask each of its own items"
    )


def fields_apply_to(entity: type[Any], named: type[Any]) -> bool:
    """Return whether a condition on one entity's fields applies to another: the same entity, or one with all of those fields.

    A class that is declared again, as in a notebook, counts as the same entity.
    """
    return issubclass(entity, named) or any(
        (base.__module__, base.__qualname__) == (named.__module__, named.__qualname__)
        for base in entity.__mro__
    )


def _row(node: ConditionNode, kind: type[And] | type[Or]) -> tuple[ConditionNode, ...]:
    return node.parts if isinstance(node, kind) else (node,)


class Change(Struct, Generic[E_contra], frozen=True):
    """One action of an update, on one field."""

    action: Action
    field: str
    whole: bool  # on the field itself, and not on a part of the document in it
    entity: type[Any] | None = None  # whose field it is


class MayBeAbsent(Protocol[E_contra]):
    """An operand that accepts None, so that its field can be removed."""

    def set(self, value: None, /) -> Change[E_contra]: ...


class Term(Generic[E_contra, T_co]):
    """An operand of SET other than a value: another field, or a field plus or minus an amount."""

    __slots__ = ("_node",)

    def __init__(self, node: Node | Arithmetic) -> None:
        self._node: Any = node


class Operand(Term[E_contra, T_co]):
    """A field of an entity, or a part of one, in a condition or an update."""

    __slots__ = ("_part", "_shape")
    __hash__ = None  # type: ignore[assignment]  # == makes a condition, so there is no set of these

    def __init__(self, node: Node, shape: FieldShape, part: Converter | None = None) -> None:
        super().__init__(node)
        self._shape = shape
        self._part = part  # how a part of the field is written; None: it is the field itself

    @property
    def field(self) -> str:
        """The name of its field."""
        return self._shape.name

    # Conditions.

    def eq(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this equals a value; None means absent."""
        if value is None or self._is_absence(value):
            return self.not_exists()
        return self._condition(Comparison("=", self._node, self._operand(value)))

    def ne(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this differs from a value; None means present."""
        if value is None or self._is_absence(value):
            return self.exists()
        return self._condition(Comparison("<>", self._node, self._operand(value)))

    def lt(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is less than a value."""
        return self._condition(Comparison("<", self._node, self._operand(value)))

    def lte(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is less than or equal to a value."""
        return self._condition(Comparison("<=", self._node, self._operand(value)))

    def gt(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is greater than a value."""
        return self._condition(Comparison(">", self._node, self._operand(value)))

    def gte(self, value: T_co | Operand[E_contra, T_co]) -> Condition[E_contra]:
        """Return the condition that this is greater than or equal to a value."""
        return self._condition(Comparison(">=", self._node, self._operand(value)))

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
        return self._condition(Between(self._node, self._operand(lower), self._operand(upper)))

    def is_in(self, *choices: T_co) -> Condition[E_contra]:  # type: ignore[misc]  # it is only read
        """Return the condition that this equals one of the choices, 1 to 100."""
        if not 1 <= len(choices) <= EXPRESSION_IN_OPERANDS_MAX:
            raise QueryRefused(
                self.field,
                f"is_in() has {len(choices)} values; use 1 to {EXPRESSION_IN_OPERANDS_MAX}",
            )
        return self._condition(InList(self._node, tuple(map(self._operand, choices))))

    def exists(self) -> Condition[E_contra]:
        """Return the condition that an item has this attribute."""
        return self._condition(FunctionCall("attribute_exists", (self._path,)))

    def not_exists(self) -> Condition[E_contra]:
        """Return the condition that an item does not have this attribute."""
        return self._condition(FunctionCall("attribute_not_exists", (self._path,)))

    def begins_with(self: Operand[E, str | bytes | None], prefix: str | bytes) -> Condition[E]:
        """Return the condition that this text or binary begins with a prefix."""
        return self._condition(
            FunctionCall("begins_with", (self._node, Literal(self._encode_with(encode_plain, prefix))))
        )

    @overload
    def contains(self: Operand[E, str | None], part: str) -> Condition[E]: ...
    @overload
    def contains(
        self: Operand[E, list[V] | MutableSet[V] | frozenset[V] | None], part: V
    ) -> Condition[E]: ...
    def contains(self, part: Any) -> Condition[Any]:
        """Return the condition that this text contains a substring, or this set or list a member."""
        inside = self._converter.inside
        member = None if inside is None else inside(None)
        encode = encode_plain if member is None else member.encode_inside
        return self._condition(
            FunctionCall("contains", (self._node, Literal(self._encode_with(encode, part))))
        )

    def size(self: Operand[E, Sized | BaseModel | None]) -> Operand[E, int]:
        """Return the size of this: characters, bytes or members."""
        return Operand(FunctionCall("size", (self._path,)), self._shape, ANY)

    # Changes.

    def set(self, value: T_co | Term[E_contra, T_co], /) -> Change[E_contra]:
        """Return the change that sets the field to a value; None removes it.

        A value passes the field's own validation, and is refused here if it does not. What another field, or a sum,
        will come to is not known before it is written.
        """
        if isinstance(value, Term):
            return self._change(SetAction(self._path, value._node))
        encoded = None if value is None else self._encode_as_held(value)
        if not encoded:  # an empty set is absent, as None is
            return self._removal()
        return self._change(SetAction(self._path, Literal(encoded)))

    def set_if_absent(self, value: T_co) -> Change[E_contra]:  # type: ignore[misc]  # it is only read
        """Return the change that sets the field unless it has a value."""
        if value is None:
            raise ModelError(
                self._place, "None is stored as a missing attribute and cannot be set; use a value"
            )
        node = value._node if isinstance(value, Operand) else self._full(self._encode_as_held(value))
        return self._change(SetAction(self._path, FunctionCall("if_not_exists", (self._path, node))))

    def remove(self: MayBeAbsent[E]) -> Change[E]:
        """Return the change that removes the field; for fields that may be None."""
        assert isinstance(self, Operand)
        return self._removal()

    @overload
    def add(self: Operand[E, Number | None], amount: Number, /) -> Change[E]: ...
    @overload
    def add(self: Operand[E, MutableSet[V] | None], amount: Set[V], /) -> Change[E]: ...
    @overload
    def add(self: Operand[E, frozenset[V] | None], amount: Set[V], /) -> Change[E]: ...
    def add(self, amount: Any, /) -> Change[Any]:
        """Return the change that adds to this number (absent is 0), or members to this set.

        What it comes to is not known before it is written, so no constraint of the field is checked; a condition can:
        `when=Account.balance >= 10`.
        """
        if isinstance(amount, Set):
            return self._change(Add(self._path, self._full(self._encode(amount))))
        return self._change(Add(self._path, self._amount(amount)))

    @overload
    def discard(self: Operand[E, MutableSet[V] | None], members: Set[V]) -> Change[E]: ...
    @overload
    def discard(self: Operand[E, frozenset[V] | None], members: Set[V]) -> Change[E]: ...
    def discard(self, members: Any) -> Change[Any]:
        """Return the change that removes members from this set."""
        return self._change(DeleteElements(self._path, self._full(self._encode(members))))

    def append(self: Operand[E, list[V] | None], *members: V) -> Change[E]:
        """Return the change that appends members to this list, which may be absent."""
        appended = Literal(self._encode(list(members)))
        present = FunctionCall("if_not_exists", (self._path, Literal({"L": []})))
        return self._change(SetAction(self._path, FunctionCall("list_append", (present, appended))))

    @overload
    def __add__(self: Operand[E, int | None], amount: int) -> Term[E, int]: ...  # type: ignore[overload-overlap]  # on None alone
    @overload
    def __add__(self: Operand[E, Decimal | None], amount: Number) -> Term[E, Decimal]: ...
    def __add__(self, amount: Any) -> Term[Any, Any]:
        return Term(Arithmetic("+", self._node, self._amount(amount)))

    @overload
    def __sub__(self: Operand[E, int | None], amount: int) -> Term[E, int]: ...  # type: ignore[overload-overlap]  # on None alone
    @overload
    def __sub__(self: Operand[E, Decimal | None], amount: Number) -> Term[E, Decimal]: ...
    def __sub__(self, amount: Any) -> Term[Any, Any]:
        return Term(Arithmetic("-", self._node, self._amount(amount)))

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
        inside = self._converter.inside
        inner = None if inside is None else inside(step)
        return Operand(Path((*self._path.steps, step)), self._shape, inner or ANY)

    @property
    def _path(self) -> Path:
        if not isinstance(self._node, Path):
            raise TypeError("size() can only be compared; it cannot be set or indexed")
        return self._node

    def _condition(self, node: ConditionNode) -> Condition[Any]:
        return Condition(node, self._shape.entity)

    def _change(self, action: Action) -> Change[Any]:
        return Change(action, self.field, len(self._path.steps) == 1, self._shape.entity)

    def _operand(self, value: Any) -> Node:
        """Return the right-hand operand: a field, or a value as the field would hold it."""
        if value is None:
            raise QueryRefused(
                self.field,
                "None is stored as a missing attribute and has no order; use exists() or not_exists()",
            )
        if isinstance(value, Operand):
            return value._node  # type: ignore[no-any-return]  # a Node, as every operand's
        encoded = self._encode(value)
        if (
            self._part is None
            and (alike := self._shape.coerce_operand(value)) is not value
            and alike is not None
        ):
            encoded = self._encode(alike)
        return self._full(encoded)

    def _encode_as_held(self, value: Any) -> Value:
        """Return a value as the field would hold it, and its stored form, which is empty if the attribute would be absent."""
        encoded = self._encode(value)
        if self._part is None and (held := self._shape.validate(value)) is not value:
            return {} if held is None else self._encode(held)
        return encoded

    def _encode(self, value: Any) -> Value:
        return self._encode_with(
            self._shape.encode if self._part is None else self._part.encode_inside, value
        )

    def _amount(self, amount: Any) -> Literal:
        counted = self._converter.kind in _COUNTED
        return Literal(self._encode_with(self._converter.encode if counted else encode_plain, amount))

    def _encode_with(self, encode: Callable[[Any], Value], value: Any) -> Value:
        try:
            return encode(value)
        except ValueNotStorable as error:
            raise with_place(error, self._place) from None

    def _full(self, encoded: Value) -> Literal:
        if not encoded:
            raise ModelError(self._place, "an empty set is stored as a missing attribute; add a member")
        return Literal(encoded)

    def _removal(self) -> Change[Any]:
        if self._part is None and self._shape.is_required:
            raise ModelError(
                self._place,
                "the field is required, and the item would be unreadable without it; set a value instead",
            )
        return self._change(Remove(self._path))

    def _is_absence(self, value: Any) -> bool:
        return isinstance(value, Set) and not value and self._part is None and self._shape.absent is not None

    @property
    def _converter(self) -> Converter:
        return self._part or self._shape.converter

    @property
    def _place(self) -> str:
        steps = self._node.steps[1:] if isinstance(self._node, Path) else ()
        return self._shape.place + "".join(f"[{step!r}]" for step in steps)

    def __repr__(self) -> str:
        return f"<Operand {self.field}>"


class AttrOptions(Struct, frozen=True):
    """The options of `attr` other than the default."""

    name: str | None = None
    lock: bool = False
    unique: bool = False
    within: tuple[str, ...] = ()
    distinct: int | None = None
    typical_bytes: int | None = None
    tenant: bool = False


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
        *,
        name: str | None = ...,
        unique: bool = ...,
        within: tuple[str, ...] = ...,
        distinct: int | None = ...,
        typical_bytes: int | None = ...,
        tenant: bool = ...,
        description: str = ...,
        repr: bool = ...,
    ) -> Any: ...
    @overload
    def attr(
        *,
        default: T,
        name: str | None = ...,
        lock: bool = ...,
        unique: bool = ...,
        within: tuple[str, ...] = ...,
        distinct: int | None = ...,
        typical_bytes: int | None = ...,
        tenant: bool = ...,
        description: str = ...,
        repr: bool = ...,
    ) -> Attr[T]: ...
    @overload
    def attr(
        *,
        default_factory: Callable[[], T],
        name: str | None = ...,
        unique: bool = ...,
        within: tuple[str, ...] = ...,
        distinct: int | None = ...,
        typical_bytes: int | None = ...,
        tenant: bool = ...,
        description: str = ...,
        repr: bool = ...,
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
        distinct: int | None = None,
        typical_bytes: int | None = None,
        tenant: bool = False,
        **field: Any,
    ) -> FieldInfo:
        """Return what a field has besides its type: a default, another name in the table, a role.

        `name` is the attribute in DynamoDB. `lock` makes an int the revision that writes check and raise.
        `unique` lets no two items have one value, `within` only among those alike in other fields. `repr=False` keeps
        its values out of reprs and of what errors say. For the tools that judge a design: `distinct` is how many
        values there are, `typical_bytes` how large one is, and `tenant` marks the field that says whose an item is.
        """
        for option in field:
            if option not in ("default", "default_factory", "description", "repr"):
                raise ModelError(
                    "attr()",
                    f"attr() has no argument {option}=; name= sets the attribute name in DynamoDB, and pydantic "
                    "constraints go into the type: Attr[Annotated[str, Field(…)]]",
                )
        if "default" in field and "default_factory" in field:
            raise ModelError("attr()", "default= and default_factory= are mutually exclusive; remove one")
        if name is not None and not name:
            raise ModelError(
                "attr()", "name='' is not an attribute name; remove it, or give the name used in DynamoDB"
            )
        for word, many in (("distinct", distinct), ("typical_bytes", typical_bytes)):
            if many is not None and many < 1:
                raise ModelError("attr()", f"{word}={many} is too low; use 1 or more, or remove it")
        info = Field(**field)
        info.metadata.append(AttrOptions(name, lock, unique, within, distinct, typical_bytes, tenant))
        return info
