"""Generator: a seed becomes tables and a sequence of requests about them, mostly sensible, some not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.differential.grammar import KINDS, Grammar, Placeholders, Value
from tests.differential.scripts import Step, step

Request = dict[str, Any]
_RETURNS = ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
_SELECTS = ("COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_KEY_VALUES: Final = {
    "S": ({"S": "a"}, {"S": "b"}, {"S": "é"}, {"S": "ab"}),
    "N": ({"N": "1"}, {"N": "2"}, {"N": "-3.5"}, {"N": "10"}, {"N": "1e2"}),
    "B": ({"B": "AA=="}, {"B": "AQI="}, {"B": "/w=="}),
}


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index of a table drawn at random."""

    name: str
    keys: tuple[str, ...]
    local: bool
    projection: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table drawn at random: key attributes and their types, and its indexes."""

    name: str
    keys: tuple[str, ...]
    types: dict[str, str]
    indexes: tuple[Index, ...]

    def creation(self) -> Request:
        """The request that makes it."""
        request: Request = {
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in self.types.items()],
            "KeySchema": _schema(self.keys),
        }
        for index in self.indexes:
            member = "LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"
            projection: Request = {"ProjectionType": index.projection}
            if index.projection == "INCLUDE":
                projection["NonKeyAttributes"] = ["a", "d"]
            made = {"IndexName": index.name, "KeySchema": _schema(index.keys), "Projection": projection}
            request.setdefault(member, []).append(made)
        return request


def _schema(keys: tuple[str, ...]) -> list[Request]:
    return [{"AttributeName": n, "KeyType": t} for n, t in zip(keys, ("HASH", "RANGE"), strict=False)]


class World:
    """The tables of one seed and the requests about them."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._grammar = Grammar(self._chance)
        self.tables = tuple(self._table(f"t{seed}-{number}") for number in range(3))
        self._makers: tuple[tuple[int, Callable[[], Step]], ...] = (
            (14, self._put),
            (14, self._update),
            (5, self._delete),
            (6, self._get),
            (18, self._query),
            (12, self._scan),
            (4, self._batch_write),
            (3, self._batch_get),
            (5, self._transact_write),
            (2, self._transact_get),
            (4, self._legacy_put),
            (4, self._legacy_update),
            (4, self._legacy_query),
            (4, self._legacy_scan),
        )

    def steps(self, count: int) -> Iterator[Step]:
        """Give the tables' making, that many requests, and the tables' end."""
        for table in self.tables:
            yield step("CreateTable", table.creation())
        weights, makers = zip(*self._makers, strict=True)
        for _ in range(count):
            made: Step = self._chance.choices(makers, weights)[0]()
            yield self._spoilt(made) if self._grammar.often(0.06) else made
        for table in self.tables:
            yield step("Scan", {"TableName": table.name, "ConsistentRead": True}, follow=True)
            yield step("DeleteTable", {"TableName": table.name})

    def _table(self, name: str) -> Table:
        types = {"pk": self._chance.choice("SSNB")}
        keys: tuple[str, ...] = ("pk",)
        if self._grammar.often(0.7):
            types["sk"] = self._chance.choice("SNB")
            keys = ("pk", "sk")
        indexes: list[Index] = []
        if len(keys) == 2 and self._grammar.often(0.6):
            types["l"] = self._chance.choice("SNB")
            indexes.append(Index("lsi", ("pk", "l"), True, self._chance.choice(("ALL", "KEYS_ONLY"))))
        if self._grammar.often(0.8):
            types["g"] = self._chance.choice("SNB")
            range_key: tuple[str, ...] = ()
            if self._grammar.often(0.6):
                types["h"] = self._chance.choice("SNB")
                range_key = ("h",)
            projection = self._chance.choice(("ALL", "KEYS_ONLY", "INCLUDE"))
            indexes.append(Index("gsi", ("g", *range_key), False, projection))
        return Table(name, keys, types, tuple(indexes))

    def _any(self) -> Table:
        return self._chance.choice(self.tables)

    def _key_value(self, table: Table, name: str) -> Value:
        return dict(self._chance.choice(_KEY_VALUES[table.types[name]]))

    def _key(self, table: Table) -> Request:
        return {name: self._key_value(table, name) for name in table.keys}

    def _item(self, table: Table) -> Request:
        item = {**self._key(table), **self._grammar.attributes()}
        for name in table.types:
            if name not in table.keys and self._grammar.often(0.7):
                item[name] = self._key_value(table, name)
        if self._grammar.often(0.03):
            item[self._chance.choice(tuple(table.types))] = self._grammar.value()
        return item

    def _common(self, request: Request, use: Placeholders | None = None, *, writes: bool = False) -> Request:
        request.update(use.members() if use else {})
        if not writes and self._grammar.often(0.25):
            request["ReturnConsumedCapacity"] = self._chance.choice(("TOTAL", "INDEXES", "NONE"))
        if writes and self._grammar.often(0.4):
            request["ReturnValues"] = self._chance.choice(_RETURNS)
        elif not writes and "IndexName" not in request and self._grammar.often(0.3):
            request["ConsistentRead"] = True
        return request

    def _conditioned(self, request: Request, use: Placeholders, share: float) -> None:
        if self._grammar.often(share):
            request["ConditionExpression"] = self._grammar.condition(use)

    def _put(self) -> Step:
        table, use = self._any(), Placeholders()
        request: Request = {"TableName": table.name, "Item": self._item(table)}
        self._conditioned(request, use, 0.35)
        self._common(request, use, writes=True)
        if request.get("ReturnValues") not in {None, "NONE", "ALL_OLD"} and self._grammar.often(0.8):
            request["ReturnValues"] = "ALL_OLD"
        return step("PutItem", request)

    def _update(self) -> Step:
        table, use = self._any(), Placeholders()
        request: Request = {"TableName": table.name, "Key": self._key(table)}
        if self._grammar.often(0.95):
            request["UpdateExpression"] = self._grammar.update(use)
        self._conditioned(request, use, 0.25)
        self._common(request, use, writes=True)
        nested = any(mark in request.get("UpdateExpression", ".") for mark in ".[")
        if nested and "ReturnValues" in request:
            request["ReturnValues"] = "ALL_NEW"  # of a nested path Local tells UPDATED_… with all around it
        return step("UpdateItem", request)

    def _delete(self) -> Step:
        table, use = self._any(), Placeholders()
        request: Request = {"TableName": table.name, "Key": self._key(table)}
        self._conditioned(request, use, 0.4)
        self._common(request, use, writes=True)
        if "ReturnValues" in request and self._grammar.often(0.8):
            request["ReturnValues"] = "ALL_OLD"
        return step("DeleteItem", request)

    def _get(self) -> Step:
        table, use = self._any(), Placeholders()
        request: Request = {"TableName": table.name, "Key": self._key(table)}
        if self._grammar.often(0.5):
            request["ProjectionExpression"] = self._grammar.projection(use)
        return step("GetItem", self._common(request, use))

    def _place(self) -> tuple[Table, Index | None]:
        table = self._any()
        index = self._chance.choice((None, *table.indexes))
        return table, index

    def _query(self) -> Step:
        (table, index), use = self._place(), Placeholders()
        keys = index.keys if index else table.keys
        clauses = [f"{keys[0]} = {self._grammar.bind(use, self._key_value(table, keys[0]))}"]
        if len(keys) == 2 and self._grammar.often(0.6):
            clauses.append(self._sort_clause(table, keys[1], use))
        if self._grammar.often(0.2):
            clauses.reverse()
        request: Request = {"TableName": table.name, "KeyConditionExpression": " AND ".join(clauses)}
        if self._grammar.often(0.4):
            request["ScanIndexForward"] = self._grammar.often(0.2)
        return self._read("Query", request, index, use)

    def _sort_clause(self, table: Table, name: str, use: Placeholders) -> str:
        operators = ["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]
        operator = self._chance.choice(operators)
        value = self._key_value(table, name)
        if operator == "begins_with":
            return f"begins_with({name}, {self._grammar.bind(use, value)})"
        if operator == "BETWEEN":
            high = self._key_value(table, name)
            return f"{name} BETWEEN {self._grammar.bind(use, value)} AND {self._grammar.bind(use, high)}"
        return f"{name} {operator} {self._grammar.bind(use, value)}"

    def _read(self, operation: str, request: Request, index: Index | None, use: Placeholders) -> Step:
        """Finish a query or a scan. An index is filtered only by what it holds: the corpus asks for the rest."""
        if index:
            request["IndexName"] = index.name
        whole = index is None or index.projection == "ALL"
        if whole and self._grammar.often(0.4):
            request["FilterExpression"] = self._grammar.condition(use)
        if (whole or (index and index.local)) and self._grammar.often(0.25):
            request["ProjectionExpression"] = self._grammar.projection(use)
        elif self._grammar.often(0.2):
            request["Select"] = self._chance.choice(
                ("COUNT", "ALL_ATTRIBUTES") if index is None else _SELECTS
            )
        follow = self._grammar.often(0.4)
        if follow:
            request["Limit"] = self._chance.randint(1, 4)
        return step(operation, self._common(request, use), follow=follow)

    def _scan(self) -> Step:
        table, index = self._place()
        request: Request = {"TableName": table.name}
        if self._grammar.often(0.2):
            request |= {"Segment": 0, "TotalSegments": self._chance.randint(1, 4)}
        made = self._read("Scan", request, index, Placeholders())
        if "Segment" in request and not made.follow:
            return step("Scan", request, follow=True)
        return made

    def _batch_write(self) -> Step:
        items: dict[str, list[Request]] = {}
        for _ in range(self._chance.randint(1, 5)):
            table = self._any()
            made: Request = {"DeleteRequest": {"Key": self._key(table)}}
            if self._grammar.often(0.7):
                made = {"PutRequest": {"Item": self._item(table)}}
            items.setdefault(table.name, []).append(made)
        return step("BatchWriteItem", {"RequestItems": items})

    def _batch_get(self) -> Step:
        items: dict[str, Request] = {}
        for table in self._chance.sample(self.tables, self._chance.randint(1, 3)):
            keys = {str(key): key for key in (self._key(table) for _ in range(3))}
            asked: Request = {"Keys": list(keys.values())}
            if self._grammar.often(0.4):
                use = Placeholders()
                asked["ProjectionExpression"] = self._grammar.projection(use)
                asked.update(use.members())
            items[table.name] = asked
        return step("BatchGetItem", {"RequestItems": items})

    def _transact_write(self) -> Step:
        actions: list[Request] = []
        for _ in range(self._chance.randint(1, 4)):
            table, use = self._any(), Placeholders()
            kind = self._chance.choice(("Put", "Put", "Update", "Delete", "ConditionCheck"))
            action: Request = {"TableName": table.name}
            if kind == "Put":
                action["Item"] = self._item(table)
            else:
                action["Key"] = self._key(table)
            if kind == "Update":
                action["UpdateExpression"] = self._grammar.update(use)
            self._conditioned(action, use, 1.0 if kind == "ConditionCheck" else 0.2)
            if self._grammar.often(0.3):
                action["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            actions.append({kind: action | use.members()})
        return step("TransactWriteItems", {"TransactItems": actions})

    def _transact_get(self) -> Step:
        gets: list[Request] = []
        for _ in range(self._chance.randint(1, 4)):
            table, use = self._any(), Placeholders()
            get: Request = {"TableName": table.name, "Key": self._key(table)}
            if self._grammar.often(0.4):
                get["ProjectionExpression"] = self._grammar.projection(use)
            gets.append({"Get": get | use.members()})
        return step("TransactGetItems", {"TransactItems": gets})

    def _comparison(self, name: str) -> Request:
        operator = self._chance.choice(
            "EQ NE LE LT GE GT NOT_NULL NULL CONTAINS NOT_CONTAINS BEGINS_WITH IN BETWEEN".split()
        )
        count = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2, "IN": self._chance.randint(1, 3)}.get(operator, 1)
        tag = KINDS[name] if self._grammar.often(0.9) else None
        values = [self._grammar.value(tag) for _ in range(count)]
        return {"ComparisonOperator": operator} | ({"AttributeValueList": values} if values else {})

    def _filters(self, request: Request, member: str) -> None:
        names = self._chance.sample(tuple(KINDS), self._chance.randint(1, 2))
        request[member] = {name: self._comparison(name) for name in names}
        if len(names) == 2 and self._grammar.often(0.4):
            request["ConditionalOperator"] = self._chance.choice(("AND", "OR"))

    def _legacy_put(self) -> Step:
        table = self._any()
        request: Request = {"TableName": table.name, "Item": self._item(table)}
        if self._grammar.often(0.5):
            self._filters(request, "Expected")
        else:
            name = self._chance.choice(tuple(KINDS))
            value = self._grammar.value(KINDS[name])
            request["Expected"] = {name: {"Exists": False} if self._grammar.often(0.5) else {"Value": value}}
        return step("PutItem", request)

    def _legacy_update(self) -> Step:
        table = self._any()
        updates: Request = {"q": {"Value": self._grammar.scalar("N")}}
        for name in self._chance.sample(tuple(KINDS), self._chance.randint(1, 3)):
            action = self._chance.choice(("PUT", "ADD", "DELETE"))
            updates[name] = {"Action": action}
            if action != "DELETE" or self._grammar.often(0.4):
                updates[name]["Value"] = self._grammar.value(KINDS[name])
        request = {"TableName": table.name, "Key": self._key(table), "AttributeUpdates": updates}
        return step("UpdateItem", self._common(request, writes=True))

    def _legacy_query(self) -> Step:
        table = self._any()
        equal = {"ComparisonOperator": "EQ", "AttributeValueList": [self._key_value(table, "pk")]}
        request: Request = {"TableName": table.name, "KeyConditions": {"pk": equal}}
        if "sk" in table.types and self._grammar.often(0.5):
            operator = self._chance.choice(("EQ", "LT", "LE", "GT", "GE", "BETWEEN", "BEGINS_WITH"))
            values = [self._key_value(table, "sk") for _ in range(2 if operator == "BETWEEN" else 1)]
            condition = {"ComparisonOperator": operator, "AttributeValueList": values}
            request["KeyConditions"]["sk"] = condition
        if self._grammar.often(0.4):
            self._filters(request, "QueryFilter")
        return step("Query", request)

    def _legacy_scan(self) -> Step:
        request: Request = {"TableName": self._any().name}
        self._filters(request, "ScanFilter")
        if self._grammar.often(0.3):
            request["AttributesToGet"] = self._chance.sample(tuple(KINDS), 2)
        return step("Scan", request)

    def _spoilt(self, made: Step) -> Step:
        """Return a request with something wrong in it."""
        request = dict(made.request or {})
        expressions = [member for member in request if member.endswith("Expression")]
        if expressions and self._grammar.often(0.7):
            member = self._chance.choice(expressions)
            request[member] = self._grammar.broken(request[member])
        else:
            names = {"TableName", "IndexName"}  # a second fault, and whose turn it is nobody has told us
            member = self._chance.choice(sorted(set(request) - names) or tuple(request))
            if self._grammar.often(0.5):
                del request[member]
            else:
                request[member] = self._chance.choice(("text", 7, True, [], {}, [{}], {"x": {}}))
        return step(made.operation, request, follow=made.follow)
