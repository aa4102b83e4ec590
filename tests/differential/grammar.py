"""Grammar: values and expressions drawn at random, near enough to sense to reach past the first check."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from typing import Any

Value = dict[str, Any]

# What an attribute mostly holds; one time in six it holds something else.
KINDS = {
    "a": "N",
    "b": "S",
    "c": "L",
    "d": "M",
    "e": "SS",
    "f": "NS",
    "i": "BS",
    "j": "BOOL",
    "k": "NULL",
    "o": "B",
}
_ORDERED = ("S", "N", "B")
_WORDS = ("x", "y", "xy", "xyz", "zeta", "é", "Z", "0")
# Canonical, since Local keeps a number inside a list or an update as it is written.
_NUMBERS = ("0", "1", "2", "-1", "1.5", "10", "-0.25", "1000", "7", "3.1", "99999999999999999999")
_BYTES = tuple(base64.b64encode(each).decode() for each in (b"\0", b"\1", b"\1\2", b"\xff", b"xyz"))
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(slots=True)
class Placeholders:
    """The names and values that an expression refers to."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def members(self) -> dict[str, Any]:
        """The two members of a request; one without entries is left out."""
        found = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {member: entries for member, entries in found.items() if entries}


class Grammar:
    """Draws values and expressions."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def often(self, share: float) -> bool:
        """Tell true for a share of the calls."""
        return self._chance.random() < share

    def scalar(self, tag: str) -> Value:
        """Return a value of a type that has an order."""
        pool = {"S": _WORDS, "N": _NUMBERS, "B": _BYTES}[tag]
        return {tag: self._chance.choice(pool)}

    def value(self, tag: str | None = None, depth: int = 0) -> Value:
        """Return a value of a type, or of any."""
        tag = tag or self._chance.choice(tuple(KINDS.values()))
        if tag in _ORDERED:
            return self.scalar(tag)
        if tag in {"SS", "NS", "BS"}:
            pool = {"SS": _WORDS, "NS": ("1", "2", "3", "-4.5"), "BS": _BYTES}[tag]
            return {tag: self._chance.sample(pool, self._chance.randint(1, 3))}
        if tag == "BOOL":
            return {tag: self.often(0.5)}
        if tag == "NULL":
            return {tag: True}
        inner = "SNB" if depth > 1 else ("S", "N", "B", "SS", "L", "M", "BOOL")
        made = [self.value(self._chance.choice(inner), depth + 1) for _ in range(self._chance.randint(0, 3))]
        return {"L": made} if tag == "L" else {"M": dict(zip("xyz", made, strict=False))}

    def attributes(self) -> dict[str, Value]:
        """Return some attributes that are no keys."""
        names = self._chance.sample(tuple(KINDS), self._chance.randint(0, 5))
        return {name: self.value(None if self.often(1 / 6) else KINDS[name]) for name in names}

    def path(self, use: Placeholders, *, top: bool = False) -> str:
        """Return a document path; its first name is sometimes a placeholder."""
        name = self._chance.choice((*KINDS, "nope"))
        written = name
        if self.often(0.2):
            written = f"#{name}"
            use.names[written] = name
        if top or self.often(0.5):
            return written
        tails = {"c": ("[0]", "[1]", "[9]", "[0].x"), "d": (".x", ".y", ".z", ".x[0]", ".x.y")}
        return written + self._chance.choice(tails.get(name, ("", "", ".x", "[0]")))

    def bind(self, use: Placeholders, value: Value) -> str:
        """Return the placeholder of a value."""
        name = f":v{len(use.values)}"
        use.values[name] = value
        return name

    def condition(self, use: Placeholders, depth: int = 0) -> str:
        """Return a condition."""
        shape = self._chance.random()
        if depth < 3 and shape < 0.3:
            word = self._chance.choice(("AND", "OR", "and"))
            sides = [self.condition(use, depth + 1) for _ in range(2)]
            return f" {word} ".join(f"({side})" if self.often(0.3) else side for side in sides)
        if depth < 3 and shape < 0.38:
            return f"NOT {self.condition(use, depth + 1)}"
        if shape < 0.55:
            return self._function(use)
        path = self.path(use)
        tag = KINDS.get(path[:1].lstrip("#"), "N")
        if shape < 0.65:
            bounds = [self.scalar(tag if tag in _ORDERED else "N") for _ in range(2)]
            low, high = bounds if self.often(0.2) else sorted(bounds, key=_rank)
            return f"{path} BETWEEN {self.bind(use, low)} AND {self.bind(use, high)}"
        if shape < 0.72:
            members = ", ".join(self.bind(use, self.value(tag)) for _ in range(self._chance.randint(1, 3)))
            return f"{path} IN ({members})"
        operator = self._chance.choice(_COMPARATORS)
        if self.often(0.15):
            return f"size({path}) {operator} {self.bind(use, self.scalar('N'))}"
        other = self.path(use) if self.often(0.15) else self.bind(use, self.value(tag))
        return f"{other} {operator} {path}" if self.often(0.1) else f"{path} {operator} {other}"

    def _function(self, use: Placeholders) -> str:
        path = self.path(use)
        name = self._chance.choice(
            ("attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains")
        )
        if name == "attribute_type":
            return f"{name}({path}, {self.bind(use, {'S': self._chance.choice((*KINDS.values(), 'S'))})})"
        if name in {"begins_with", "contains"}:
            tag = self._chance.choice(("S", "S", "B") if name == "begins_with" else ("S", "N", "B", "BOOL"))
            return f"{name}({path}, {self.bind(use, self.value(tag))})"
        return f"{name}({path})"

    def update(self, use: Placeholders) -> str:
        """Return an update that sets or adds something: one that only takes away makes no item on AWS."""
        names = self._chance.sample((*KINDS, "nope"), self._chance.randint(1, 4))
        sections = {"SET": [f"q = {self.bind(use, self.scalar('N'))}"]}
        for name in names:
            section = self._chance.choice(("SET", "SET", "SET", "REMOVE", "ADD", "DELETE"))
            sections.setdefault(section, []).append(self._clause(section, name, use))
        return " ".join(f"{section} {', '.join(clauses)}" for section, clauses in sections.items())

    def _clause(self, section: str, name: str, use: Placeholders) -> str:
        tag = KINDS.get(name, "N")
        path = name
        if section in {"SET", "REMOVE"} and self.often(0.35):
            path = self._chance.choice(
                (f"{name}.x", f"{name}.z", f"{name}[0]", f"{name}[7]")
                if tag not in {"L", "M"}
                else (
                    (f"{name}[0]", f"{name}[1]", f"{name}[9]") if tag == "L" else (f"{name}.x", f"{name}.n")
                )
            )
        if section == "REMOVE":
            return path
        if section == "ADD":
            return f"{path} {self.bind(use, self.value(tag if self.often(0.8) else None))}"
        if section == "DELETE":
            set_tag = tag if tag in {"SS", "NS", "BS"} else self._chance.choice(("SS", "NS"))
            return f"{path} {self.bind(use, self.value(set_tag))}"
        return f"{path} = {self._assigned(tag, use)}"

    def _assigned(self, tag: str, use: Placeholders) -> str:
        shape = self._chance.random()
        if shape < 0.2:
            return self.path(use)
        if shape < 0.3:
            return f"if_not_exists({self.path(use)}, {self.bind(use, self.value(tag))})"
        if tag == "N" and shape < 0.6:
            sign = self._chance.choice("+-")
            return f"{self.path(use, top=True)} {sign} {self.bind(use, self.scalar('N'))}"
        if tag == "L" and shape < 0.6:
            sides = [self.path(use, top=True), self.bind(use, self.value("L"))]
            self._chance.shuffle(sides)
            return f"list_append({sides[0]}, {sides[1]})"
        return self.bind(use, self.value(tag if self.often(0.85) else None))

    def projection(self, use: Placeholders) -> str:
        """Return a projection."""
        return ", ".join(self.path(use) for _ in range(self._chance.randint(1, 3)))

    def broken(self, text: str) -> str:
        """Return an expression with a token lost, doubled, moved or strange."""
        tokens = text.split(" ")
        place = self._chance.randrange(len(tokens))
        match self._chance.randrange(4):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                tokens.insert(
                    place,
                    self._chance.choice(("(", ")", ",", "AND", "=", "5", "!", "year", "#u", ":u", "SET")),
                )
            case _:
                other = self._chance.randrange(len(tokens))
                tokens[place], tokens[other] = tokens[other], tokens[place]
        return " ".join(tokens)


def _rank(value: Value) -> tuple[Any, ...]:
    ((tag, content),) = value.items()
    return (
        (float(content),) if tag == "N" else (base64.b64decode(content) if tag == "B" else content.encode(),)
    )
