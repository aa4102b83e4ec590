"""PartiQL: the effects of statements, alone, in batches and in transactions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(client: DynamoDBClient) -> Run:
    """Return a function that executes a statement and returns its items."""

    def execute(statement: str, *parameters: Any, **more: Any) -> list[dict[str, Any]]:
        arguments: Any = {"Parameters": list(parameters)} if parameters else {}
        return list(client.execute_statement(Statement=statement, **arguments, **more)["Items"])

    return execute


def _pages(client: DynamoDBClient, statement: str, **more: Any) -> list[dict[str, Any]]:
    found: list[Any] = [client.execute_statement(Statement=statement, **more)]
    while "NextToken" in found[-1]:
        token = found[-1]["NextToken"]
        found.append(client.execute_statement(Statement=statement, NextToken=token, **more))
        assert len(found) < 1000, "pages that do not end"
    return found


def _transact(client: DynamoDBClient, *statements: str, **more: Any) -> Any:
    return client.execute_transaction(TransactStatements=[{"Statement": each} for each in statements], **more)


def _batch(client: DynamoDBClient, *statements: str, **more: Any) -> list[Any]:
    answer = client.batch_execute_statement(Statements=[{"Statement": each} for each in statements], **more)
    return list(answer["Responses"])


def test_inserted_values_of_each_kind(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """A literal makes the value that it writes; binary and empty sets cannot be written."""
    table = tables()

    answer = run(
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'n': -1.50e1, 'z': -0, 'q': 'it''s', 'b': TRUE, 'u': Null, "
        "'l': [1, 'x', [.5]], 'm': {'in ner': {}}, 'ss': <<'x', 'y'>>, 'ns': <<1, 34.0, 4.5>>, 'p': ?, 'e': ''}",
        {"B": b"\x01"},
    )
    found = get(client, table, pk="a")

    assert answer == []
    assert found is not None
    assert set(found.pop("ss")["SS"]) == {"x", "y"}
    assert set(found.pop("ns")["NS"]) == {"1", "34", "4.5"}
    assert found == item(
        pk="a",
        n=-15,
        z=0,
        q="it's",
        b={"BOOL": True},
        u={"NULL": True},
        l={"L": [n(1), s("x"), {"L": [n("0.5")]}]},
        m={"M": {"in ner": {"M": {}}}},
        p={"B": b"\x01"},
        e="",
    )


def test_insert_is_no_put(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """INSERT refuses a key that is taken, leaves the current state, and works again after a DELETE."""
    table = tables()
    run(f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'v': 1}}")

    again = refused(
        client.execute_statement,
        Statement=f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'v': 2}}",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    stored = get(client, table, pk="a")
    run(f"DELETE FROM \"{table}\" WHERE pk = 'a'")
    run(f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'v': 3}}")

    assert (again.code, again.message) == (
        "DuplicateItemException",
        "Duplicate primary key exists in table",
    )
    assert stored == item(pk="a", v=1)
    assert get(client, table, pk="a") == item(pk="a", v=3)


def test_update_of_lists_sets_and_numbers(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """SET takes paths, sums, list_append, set_add and set_delete, in several clauses and in any case."""
    table = tables()
    put(
        client,
        table,
        item(
            pk="a",
            n=1,
            old="x",
            l={"L": [n(1), n(2), n(3)]},
            m={"M": {"k": n(1), "gone": n(2)}},
            s={"SS": ["a", "b"]},
            one={"NS": ["1"]},
        ),
    )

    run(
        f'UPDATE "{table}" SET n=n-1, m.k = m.k + 41 '
        "SET m.\"new\" = [4, <<'p'>>] SET l = LIST_APPEND([0], l) "
        "SET s = set_add(s, <<'c', 'a'>>) SET one = SET_DELETE(one, <<1, 2>>) "
        "SET fresh = set_add(fresh, ?) SET miss = set_delete(miss, <<1>>) "
        "SET made = if_not_exists(made, 'me') "
        "REMOVE m.gone REMOVE old WHERE pk = 'a'",
        {"BS": [b"\x01"]},
    )
    found = get(client, table, pk="a")

    assert found is not None
    assert set(found.pop("s")["SS"]) == {"a", "b", "c"}
    assert found == item(
        pk="a",
        n=0,
        l={"L": [n(0), n(1), n(2), n(3)]},
        m={"M": {"k": n(42), "new": {"L": [n(4), {"SS": ["p"]}]}}},
        fresh={"BS": [b"\x01"]},
        made="me",
    )


def test_update_and_delete_are_conditional(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """UPDATE needs its item;

    WHERE clauses besides the key are a condition; DELETE of a missing item succeeds.
    """
    table = tables("pk sk:N")
    put(client, table, item(pk="a", sk=1, v="x"))
    where = "WHERE (sk = 1 AND pk = 'a') AND v = "

    fresh = refused(
        client.execute_statement, Statement=f"UPDATE \"{table}\" SET v = 'y' WHERE pk = 'no' AND sk = 1"
    )
    wrong = refused(
        client.execute_statement,
        Statement=f"UPDATE \"{table}\" SET v = 'y' {where} 'z'",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    refusal = refused(client.execute_statement, Statement=f"DELETE FROM \"{table}\" {where} 'z'")
    nothing = run(f"DELETE FROM \"{table}\" WHERE pk = 'no' AND sk = 1 AND v = 'x' RETURNING ALL OLD *")
    run(f"FROM \"{table}\" {where} 'x' SET v = 'y'")
    changed = get(client, table, pk="a", sk=1)
    gone = run(f"DELETE FROM \"{table}\" {where} 'y' RETURNING ALL OLD *")

    failed = ("ConditionalCheckFailedException", "The conditional request failed")
    assert (
        (fresh.code, fresh.message)
        == (wrong.code, wrong.message)
        == (refusal.code, refusal.message)
        == failed
    )
    assert "Item" not in fresh.response
    assert wrong.response["Item"] == item(pk="a", sk=1, v="x")
    assert nothing == []
    assert changed == item(pk="a", sk=1, v="y")
    assert gone == [changed]
    assert get(client, table, pk="a", sk=1) is None


def test_returning(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """RETURNING returns the whole image or the updated part; an empty part is no item at all."""
    table = tables()
    update = f"UPDATE \"{table}\" SET v = v + 1 REMOVE l[1] WHERE pk = 'a' RETURNING "
    rows = []

    for clause in ("ALL OLD *", "ALL NEW *", "MODIFIED OLD *", "MODIFIED NEW *"):
        put(client, table, item(pk="a", v=1, k="k", l={"L": [s("a"), s("b"), s("c")]}))
        rows.append(run(update + clause))
    emptied = run(f"UPDATE \"{table}\" REMOVE k WHERE pk = 'a' RETURNING MODIFIED NEW *")
    unknown = run(f"UPDATE \"{table}\" SET w = 1 WHERE pk = 'a' RETURNING MODIFIED OLD *")

    assert rows == [
        [item(pk="a", v=1, k="k", l={"L": [s("a"), s("b"), s("c")]})],
        [item(pk="a", v=2, k="k", l={"L": [s("a"), s("c")]})],
        [item(v=1, l={"L": [s("b")]})],
        [item(v=2, l={"L": [s("c")]})],
    ]
    assert emptied == unknown == []


def test_columns_are_called_by_their_last_name(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """A column is named by the last name of its path and the indexes after it; absent ones are left out."""
    table = tables()
    put(client, table, item(pk="a", m={"M": {"k": {"L": [s("c")]}, "z": n(1)}}, l={"L": [s("x")]}))

    rows = run(f'SELECT m.k[0], l[-0], m.z, "none", m."nor this" FROM "{table}" WHERE pk = \'a\'')

    assert rows == [{"k[0]": s("c"), "l[0]": s("x"), "z": n(1)}]


def test_conditions_in_where(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """WHERE has comparisons, functions in any case, IS, and truth values that are compared."""
    table = tables()
    stored = item(
        pk="a",
        n=1,
        s="str",
        flag={"BOOL": True},
        nul={"NULL": True},
        ss={"SS": ["a", "b"]},
        m={"M": {"x": s("y")}},
        l={"L": [s("a")]},
        b={"B": b"1234"},
    )
    put(client, table, stored)
    true = """
        n = 1 | n <> 2 | n != 2 | 1 = n | n > -5 | n = - - 1 | n BETWEEN - 2 AND +5 | n IN [- 1, 1] | n IN (1, 2)
        n NOT IN [2] | n NOT BETWEEN 5 AND 6 | NOT n = 2 | s = 'str' AND n = 1 | s = 'no' OR n = 1
        begins_with(s, 'st') | BEGINS_WITH("s", 's') | contains(ss, 'a') | contains(s, 'tr') | size(s) = 3
        size(b) > 3 | attribute_type(ss, 'SS') | attribute_exists(m.x) | attribute_exists(l[0])
        ATTRIBUTE_NOT_EXISTS (nope) | nul IS NULL | s IS NOT NULL | absent IS MISSING | s IS NOT MISSING
        flag IS BOOL | s IS STRING | n IS NUMERIC | m IS STRUCT | l IS LIST | ss IS BAG | b IS BLOB
        attribute_exists(nope) = false | true = attribute_exists(n) | attribute_exists(n) <> 1
        contains(nope, 'z') = false | (n BETWEEN 0 AND 5) = true | (n = 5 OR s = 'x') = false
        attribute_exists(nope) IN [true, false] | attribute_exists(n) = attribute_exists(s)
        attribute_exists(n) = flag | m = {'x': 'y'} | ss = <<'b', 'a'>> | l = ['a'] | nul = null | flag = TRUE
        n = .1e1 | (attribute_exists(nope) OR (attribute_exists(ss)))
    """
    false = """
        n = 2 | n < 1 | s IS NULL | absent IS NULL | absent IS NOT MISSING | s IS BOOL | attribute_exists(n) = 1
        NOT attribute_exists(n) = true | (attribute_exists(n) = true) = false | attribute_exists(n) = s
        l = ['b'] | s < 5 | n IN ['1'] | begins_with(s, 'x') | nope <> 1 AND nope = 1
    """

    def held(conditions: str) -> list[str]:
        texts = [text.strip() for row in conditions.splitlines() for text in row.split(" | ") if text.strip()]
        return [text for text in texts if run(f"SELECT pk FROM \"{table}\" WHERE pk = 'a' AND {text}")]

    assert held(true) == [
        text.strip() for row in true.splitlines() for text in row.split(" | ") if text.strip()
    ]
    assert held(false) == []


def test_comments_case_and_semicolon(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """Comments are space, keywords have no case, and one semicolon may end a statement."""
    table = tables()
    put(client, table, item(pk="a", note="a--b /*c*/"))

    found = run(
        f"-- a note\nselect/**/* From \"{table}\" -- the table\nWHERE pk/* key */='a' "
        "and note = 'a--b /*c*/'; -- done"
    )

    assert len(found) == 1


def test_a_query_reads_less_than_a_scan(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """A SELECT is a query if every way to satisfy it determines the partition key, otherwise a scan."""
    table = tables("pk sk")
    big = "x" * 4000
    put(client, table, *(item(pk=f"p{at % 4}", sk=f"s{at}", big=big) for at in range(16)))

    def units(where: str, **more: Any) -> float:
        answer = client.execute_statement(
            Statement=f'SELECT sk FROM "{table}" {where}', ReturnConsumedCapacity="TOTAL", **more
        )
        return answer["ConsumedCapacity"]["CapacityUnits"]

    assert units("") == units("WHERE sk = 's1'") == units("WHERE pk = 'p1' OR sk = 's1'") == 8.0
    assert units("WHERE pk > 'a'") == units("WHERE NOT pk = 'p1'") == 8.0
    assert units("WHERE pk = 'p1'") == 2.0
    assert units("WHERE pk = 'p1' AND sk = 's1'") == 0.5
    assert units("WHERE (pk = 'p1' AND sk > 's5') AND sk < 's9'") == 0.5
    assert units("WHERE pk = 'p1' AND sk = 's1'", ConsistentRead=True) == 1.0
    assert units("WHERE pk IN ['p1', 'p2']") == units("WHERE pk = 'p1' OR 'p2' = pk") == 4.0
    assert units("WHERE pk = 'p1' AND sk IN ['s1', 's5']") == 1.0
    assert units("WHERE pk = 'none'") == 0.5


def test_a_where_may_read_several_ranges(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """Each way to satisfy a WHERE is read, nothing twice, and nothing outside it."""
    table = tables("pk sk")
    put(client, table, *(item(pk=p, sk=k, flag=f"{p}{k}") for p in "ab" for k in "123"))

    def found(where: str) -> list[str]:
        rows = run(f'SELECT * FROM "{table}" WHERE {where}')
        assert len(rows) == len({(row["pk"]["S"], row["sk"]["S"]) for row in rows})
        return sorted(column(rows, "flag"))

    assert found("pk = 'a' AND (sk = '1' OR sk = '3')") == ["a1", "a3"]
    assert found("pk = 'a' AND (sk < '2' OR sk > '2' OR sk = '2')") == ["a1", "a2", "a3"]
    assert found("pk = 'a' AND NOT sk = '1'") == found("pk = 'a' AND sk > '0' AND sk <> '1'") == ["a2", "a3"]
    assert found("pk = 'a' AND sk = '1' AND sk > '0'") == ["a1"]
    assert found("pk = 'a' AND sk = '1' AND sk > '1'") == []
    assert found("pk = 'a' AND pk = 'b'") == []
    assert found("pk = 'a' AND sk <> '1' OR pk = 'a' AND sk = '2'") == ["a2", "a3"]
    assert found("pk = 'a' AND NOT sk IN ['1', '3'] OR pk = 'a' AND sk = '2'") == ["a2"]
    assert found("pk = 'a' OR pk = 'a' AND NOT sk = '1'") == ["a1", "a2", "a3"]
    assert found("(pk = 'a' AND sk = '1') OR (pk = 'b' AND flag = 'b2')") == ["a1", "b2"]
    assert found("pk IN ['a', 'b'] AND sk BETWEEN '2' AND '3' AND flag > 'a2'") == ["a3", "b2", "b3"]
    assert found("pk = 'a' OR sk = '1'") == ["a1", "a2", "a3", "b1"]


def test_order_by(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """ORDER BY uses the key; by the partition key alone, the items of a partition are descending."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk=p, sk=k) for p in "op" for k in (1, 2, 10)))

    def order(clause: str) -> list[str]:
        rows = run(f'SELECT pk, sk FROM "{table}" WHERE {clause}')
        return [row["pk"]["S"] + row["sk"]["N"] for row in rows]

    assert order("pk = 'o' ORDER BY sk") == order("pk = 'o' ORDER BY sk ASC") == ["o1", "o2", "o10"]
    assert order("pk = 'o' ORDER BY sk DESC") == order("pk = 'o' ORDER BY pk ASC") == ["o10", "o2", "o1"]
    assert order("pk IN ['o', 'p'] ORDER BY pk DESC, sk ASC") == ["p1", "p2", "p10", "o1", "o2", "o10"]
    assert order("pk IN ['p', 'o'] ORDER BY pk") == ["o10", "o2", "o1", "p10", "p2", "p1"]
    assert order("pk = 'o' AND sk IN [10, 1] ORDER BY sk DESC") == ["o10", "o1"]


@pytest.mark.parametrize(
    ("where", "limit", "sizes"),
    [
        ("", 4, [4, 4, 4, 0]),
        ("WHERE pk = 'a'", 4, [4, 2]),
        ("WHERE pk = 'a' ORDER BY sk DESC", 4, [4, 2]),
        ("WHERE pk IN ['a', 'b']", 4, [4, 4, 4, 0]),
        ("WHERE pk IN ['a', 'b'] ORDER BY pk DESC", 5, [5, 5, 2]),
        ("WHERE pk IN ['a', 'b']", None, [10, 2]),
        ("WHERE pk = 'a' AND sk IN [1, 2]", 1, [1, 1]),
        ("WHERE pk = 'a' AND sk = 1", 1, [1]),
    ],
)
def test_pages(
    client: DynamoDBClient, tables: Tables, where: str, limit: int | None, sizes: list[int]
) -> None:
    """Limit counts evaluated items; tokens visit every item once, also after several partitions."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk=p, sk=k, v="x") for p in "ab" for k in range(6)))
    more: Any = {} if limit is None else {"Limit": limit}

    found = _pages(client, f'SELECT * FROM "{table}" {where}', **more)
    rows = [row for page in found for row in page["Items"]]

    assert [len(page["Items"]) for page in found] == sizes
    assert len({(row["pk"]["S"], row["sk"]["N"]) for row in rows}) == len(rows)
    for page in found[:-1]:
        last = page["Items"][-1]
        assert page["LastEvaluatedKey"] == {"pk": last["pk"], "sk": last["sk"]}
    assert "LastEvaluatedKey" not in found[-1]


def test_a_limit_counts_before_the_filter(client: DynamoDBClient, tables: Tables) -> None:
    """A page may be empty and still lead on."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="a", sk=k, v=k) for k in range(4)))

    found = _pages(client, f"SELECT sk FROM \"{table}\" WHERE pk = 'a' AND v = 3", Limit=2)

    assert [len(page["Items"]) for page in found] == [0, 1, 0]


def test_a_token_is_for_its_own_statement(client: DynamoDBClient, tables: Tables) -> None:
    """A token is valid for its statement and parameters; limit and consistency may change."""
    table, other = tables("pk sk:N"), tables("pk sk:N")
    for name in (table, other):
        put(client, name, *(item(pk="a", sk=k) for k in range(4)))
    statement = f'SELECT * FROM "{table}" WHERE pk = ?'
    first = client.execute_statement(Statement=statement, Parameters=[s("a")], Limit=1)
    token = first["NextToken"]

    def answer(text: str, parameter: Any, token: str) -> str:
        return refused(
            client.execute_statement, Statement=text, Parameters=[parameter], NextToken=token
        ).message

    result = [
        answer(statement, s("b"), token),
        answer(statement + " ", s("a"), token),
        answer(f'SELECT * FROM "{other}" WHERE pk = ?', s("a"), token),
    ]
    forged = [answer(statement, s("a"), token[:-4] + "AAAA"), answer(statement, s("a"), "garbage")]
    again = client.execute_statement(
        Statement=statement, Parameters=[s("a")], Limit=2, ConsistentRead=True, NextToken=token
    )

    assert result == ["NextToken does not match request"] * 3
    assert forged == ["Invalid NextToken"] * 2
    assert column(again["Items"], "sk") == ["1", "2"]


def test_reads_of_indexes(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """An index returns projected attributes;

    a local one fetches others by name; a scan filters projected attributes.
    """
    table = tables(
        "pk sk",
        gsi={"gsi-inc": "g | proj", "gsi-all": "g"},
        lsi={"lsi-keys": "pk l | KEYS_ONLY"},
    )
    put(
        client,
        table,
        item(pk="p", sk="s1", g="y", l="l1", proj="p1", non="n1"),
        item(pk="p", sk="s2", g="z", l="l2", proj="p2", non="n2"),
        item(pk="p", sk="s3", non="n3"),
    )

    def answer(statement: str, **more: Any) -> tuple[list[str], dict[str, Any]]:
        result = client.execute_statement(Statement=statement, ReturnConsumedCapacity="INDEXES", **more)
        return sorted(column(result["Items"], "sk")), dict(result["ConsumedCapacity"])

    star = run(f'SELECT * FROM "{table}"."gsi-inc" WHERE g = \'y\'')
    local = run(f'SELECT non FROM "{table}"."lsi-keys" WHERE pk = \'p\'')
    _, fetched = answer(f'SELECT sk, non FROM "{table}"."lsi-keys" WHERE pk = \'p\'', ConsistentRead=True)
    keyed, units = answer(f'SELECT sk FROM "{table}"."gsi-all" WHERE g = \'y\'')

    assert star == [item(pk="p", sk="s1", g="y", proj="p1")]
    assert local == [item(non="n1"), item(non="n2")]
    assert fetched["Table"]["CapacityUnits"] == 2.0
    assert fetched["LocalSecondaryIndexes"]["lsi-keys"]["CapacityUnits"] == 1.0
    assert keyed == ["s1"]
    assert units["Table"]["CapacityUnits"] == 0.0
    assert units["GlobalSecondaryIndexes"]["gsi-all"]["CapacityUnits"] == 0.5
    assert answer(f'SELECT sk FROM "{table}"."gsi-inc" WHERE non = \'n1\'')[0] == []
    assert answer(f'SELECT sk FROM "{table}"."gsi-inc" WHERE NOT non = \'n1\'')[0] == ["s1", "s2"]
    assert answer(f'SELECT sk FROM "{table}"."gsi-all" WHERE non = \'n1\'')[0] == ["s1"]
    assert answer(f'SELECT sk FROM "{table}"."lsi-keys" WHERE non = \'n1\'')[0] == []
    assert answer(f"SELECT sk FROM \"{table}\".\"gsi-inc\" WHERE (g = 'y' AND non = 'n1') OR (g = 'z')")[
        0
    ] == ["s2"]
    paged = _pages(client, f'SELECT sk FROM "{table}"."gsi-all"', Limit=1)
    assert sorted(column([row for page in paged for row in page["Items"]], "sk")) == ["s1", "s2"]


def test_capacity_of_writes(client: DynamoDBClient, tables: Tables) -> None:
    """A statement that writes consumes what the native write does."""
    table = tables(gsi={"idx": "g"})
    insert = f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'g': 'x', 'big': '{'x' * 3000}'}}"

    result = client.execute_statement(Statement=insert, ReturnConsumedCapacity="INDEXES")["ConsumedCapacity"]

    assert result == {
        "TableName": table,
        "CapacityUnits": 6.0,
        "Table": {"CapacityUnits": 3.0},
        "GlobalSecondaryIndexes": {"idx": {"CapacityUnits": 3.0}},
    }


def test_a_batch_of_reads(client: DynamoDBClient, tables: Tables) -> None:
    """Each read of a batch names one item by its key and is reported by itself, in order."""
    table = tables("pk sk")
    put(client, table, item(pk="a", sk="1", v="x"), item(pk="b", sk="1"))
    select = f'SELECT v FROM "{table}" WHERE '
    by_key = (
        "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
    )

    answer = client.batch_execute_statement(
        Statements=[
            {"Statement": select + "pk = 'a' AND sk = '1'", "ConsistentRead": True},
            {"Statement": select + "pk IN ['b'] AND (sk = '1')"},
            {"Statement": select + "pk = 'c' AND sk = ?", "Parameters": [s("1")]},
            {"Statement": select + "pk = 'a'"},
            {"Statement": select + "pk = 'a' AND sk = '2' AND v = 'x'"},
            {"Statement": select + "pk = 'a' AND sk = '2' AND pk = 'b'"},
            {"Statement": f"SELECT * FROM \"{table}-none\" WHERE pk = 'a'"},
            {"Statement": f'SLECT * FROM "{table}"'},
            {"Statement": select + "pk = 'a' AND sk = ?", "Parameters": [{"SS": []}]},
        ],
        ReturnConsumedCapacity="TOTAL",
    )
    responses: list[Any] = answer["Responses"]

    assert responses[:3] == [
        {"TableName": table, "Item": item(v="x")},
        {"TableName": table, "Item": {}},
        {"TableName": table},
    ]
    assert [response["Error"] for response in responses[3:]] == [
        *[{"Code": "ValidationError", "Message": by_key}] * 3,
        {"Code": "ResourceNotFound", "Message": "Requested resource not found"},
        {
            "Code": "ValidationError",
            "Message": "Statement wasn't well formed, can't be processed: Expected data manipulation",
        },
        {
            "Code": "ValidationError",
            "Message": "One or more parameter values were invalid: An string set  may not be empty",
        },
    ]
    assert not any("TableName" in response for response in responses[3:])
    assert answer["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 2.0}]


def test_a_batch_of_writes(client: DynamoDBClient, tables: Tables) -> None:
    """A failed write of a batch does not affect the others; RETURNING returns its item."""
    table = tables()
    put(client, table, item(pk="a", v="x"), item(pk="b", v="x"), item(pk="c", v="x"))

    answer = client.batch_execute_statement(
        Statements=[
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': 'new'}}"},
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': 'a'}}"},
            {
                "Statement": f"UPDATE \"{table}\" SET v = 'y' WHERE pk = 'b' AND v = 'z'",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
            {"Statement": f"DELETE FROM \"{table}\" WHERE pk = 'c' RETURNING ALL OLD *"},
            {"Statement": f"UPDATE \"{table}\" SET v.x = 1 WHERE pk = 'b2'"},
            {"Statement": f"EXISTS(SELECT * FROM \"{table}\" WHERE pk = 'a' AND v = 'x')"},
        ]
    )
    responses: list[Any] = answer["Responses"]

    assert responses == [
        {"TableName": table},
        {
            "TableName": table,
            "Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"},
        },
        {
            "TableName": table,
            "Error": {
                "Code": "ConditionalCheckFailed",
                "Message": "The conditional request failed",
                "Item": item(pk="b", v="x"),
            },
        },
        {"TableName": table, "Item": item(pk="c", v="x")},
        {
            "TableName": table,
            "Error": {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"},
        },
        {
            "Error": {
                "Code": "ValidationError",
                "Message": "EXISTS can only be used in ExecuteTransaction write requests.",
            }
        },
    ]
    assert get(client, table, pk="new") == item(pk="new")
    assert get(client, table, pk="c") is None


def test_a_batch_is_of_one_kind_and_of_distinct_items(client: DynamoDBClient, tables: Tables) -> None:
    """Reads and writes cannot be mixed, nor two statements on one item; nothing is done then."""
    table = tables()
    insert = f"INSERT INTO \"{table}\" VALUE {{'pk': 'a'}}"
    select = f"SELECT * FROM \"{table}\" WHERE pk = 'a'"

    def result(*statements: str) -> str:
        return refused(
            client.batch_execute_statement, Statements=[{"Statement": each} for each in statements]
        ).message

    assert result(insert, select) == "Read and write requests together in the same batch is not supported."
    assert (
        result(select, select) == result(insert, insert) == "Provided list of item keys contains duplicates"
    )
    assert get(client, table, pk="a") is None


def test_a_transaction_of_writes(client: DynamoDBClient, tables: Tables) -> None:
    """All four kinds of statement happen together and answer with no responses; EXISTS only checks."""
    table = tables()
    put(client, table, item(pk="u", v=1), item(pk="d"), item(pk="e", ok="yes"))

    answer = _transact(
        client,
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'i'}}",
        f"UPDATE \"{table}\" SET v = v + 1 WHERE pk = 'u' AND v = 1",
        f"DELETE FROM \"{table}\" WHERE pk = 'd'",
        f"EXISTS(SELECT * FROM \"{table}\" WHERE (pk = 'e') AND ok = 'yes')",
        ReturnConsumedCapacity="TOTAL",
    )

    assert answer["Responses"] == []
    assert answer["ConsumedCapacity"] == [
        {"TableName": table, "CapacityUnits": 8.0, "WriteCapacityUnits": 8.0}
    ]
    assert get(client, table, pk="i") == item(pk="i")
    assert get(client, table, pk="u") == item(pk="u", v=2)
    assert get(client, table, pk="d") is None


def test_a_transaction_that_is_cancelled(client: DynamoDBClient, tables: Tables) -> None:
    """Nothing is done where one statement fails, and each is reported its reason."""
    table = tables()
    put(client, table, item(pk="a", v=1), item(pk="b", v=1))

    result = refused(
        client.execute_transaction,
        TransactStatements=[
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': 'a'}}"},
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': 'new'}}"},
            {
                "Statement": f"UPDATE \"{table}\" SET v = 2 WHERE pk = 'b' AND v = 5",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
            {"Statement": f"UPDATE \"{table}\" SET v = 2 WHERE pk = 'none'"},
            {"Statement": f"EXISTS(SELECT * FROM \"{table}\" WHERE pk = 'gone' AND v IS MISSING)"},
        ],
    )

    assert result.code == "TransactionCanceledException"
    assert result.message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[DuplicateItem, None, ConditionalCheckFailed, ConditionalCheckFailed, ConditionalCheckFailed]"
    )
    assert result.reasons[0] == {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}
    assert result.reasons[1] == {"Code": "None"}
    assert result.reasons[2]["Item"] == item(pk="b", v=1)
    assert get(client, table, pk="new") is None


def test_a_transaction_of_reads(client: DynamoDBClient, tables: Tables) -> None:
    """A transaction of reads responds in order, with an empty entry for a missing item."""
    table = tables("pk sk")
    put(client, table, item(pk="a", sk="1", v="x"))

    answer = _transact(
        client,
        f"SELECT * FROM \"{table}\" WHERE (sk = '1') AND pk = 'a' AND pk = 'a'",
        f"SELECT v FROM \"{table}\" WHERE pk IN ['none'] AND sk IN ['1']",
        ReturnConsumedCapacity="TOTAL",
    )

    assert answer["Responses"] == [{"Item": item(pk="a", sk="1", v="x")}, {}]
    assert answer["ConsumedCapacity"] == [
        {"TableName": table, "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}
    ]


def test_a_token_makes_a_transaction_happen_once(client: DynamoDBClient, tables: Tables) -> None:
    """The same token and statements are answered again without being done; other statements are refused."""
    table = tables()
    put(client, table, item(pk="a", v=0))
    token = uuid.uuid4().hex
    add = f"UPDATE \"{table}\" SET v = v + 1 WHERE pk = 'a'"

    first = _transact(client, add, ClientRequestToken=token, ReturnConsumedCapacity="TOTAL")
    again = _transact(client, add, ClientRequestToken=token, ReturnConsumedCapacity="TOTAL")
    other = refused(
        client.execute_transaction,
        TransactStatements=[{"Statement": add + " AND v = 1"}],
        ClientRequestToken=token,
    )

    assert first["ConsumedCapacity"][0]["WriteCapacityUnits"] == 2.0
    assert again["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]
    assert other.code == "IdempotentParameterMismatchException"
    assert get(client, table, pk="a") == item(pk="a", v=1)


def test_tables_by_arn(client: DynamoDBClient, tables: Tables, run: Run) -> None:
    """A statement may name a table by its ARN, in double quotes."""
    table = tables()
    put(client, table, item(pk="a"))
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]

    assert run(f"SELECT * FROM \"{arn}\" WHERE pk = 'a'") == [item(pk="a")]
    assert _batch(client, f"SELECT * FROM \"{arn}\" WHERE pk = 'a'") == [
        {"TableName": table, "Item": item(pk="a")}
    ]
