"""PartiQL: every refusal with AWS's message, with the position if AWS reports one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import OOM, get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
ErrorOf = Callable[..., str]

BAD = "Statement wasn't well formed, can't be processed: "
LEFTOVER = f"{BAD}Unexpected token after expression"
TERM = f"{BAD}Unexpected term"
ALIAS = "Aliasing is not supported"
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
DIGITS = "Attempting to store more than 38 significant digits in a Number"
UNCONVERTIBLE = "The parameter cannot be converted to a numeric value"
DEEP = "Nesting Levels have exceeded supported limits"
OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
TOO_MANY_READS = "Too many decomposed read operations for a given query."
OPERAND = "Incorrect operand type for operator or function; operator or function: "
COUNTED = "Incorrect number of operands for operator or function; operator or function: "
NEEDS_PATH = "Operator or function requires a document path; operator or function: "
KEY_TYPE = "Key attribute's data type should match its data type in table's schema: Key "
MISMATCH = "The provided key element does not match the schema"
FAILED = "Validation failed in TransactStatements[0]: "

GRAMMAR = [
    ("SELECT * FROM $ WHERE pk = 'a' foo", LEFTOVER),
    ("SELECT * FROM $ WHERE pk = 1 e5", LEFTOVER),
    ("INSERT INTO $ VALUE {'pk': 'a'} foo", LEFTOVER),
    ("UPDATE $ SET a = 9 WHERE pk = 'a' foo", LEFTOVER),
    ("DELETE FROM $ WHERE pk = 'a' foo", LEFTOVER),
    ("SELECT * FROM $ WHERE pk = 'a')", LEFTOVER),
    ("DELETE FROM $ WHERE pk = 'a' ORDER BY pk", LEFTOVER),
    ("SELECT * FROM $ ORDER BY pk WHERE pk = 'a'", LEFTOVER),
    ("SELECT * FROM $; SELECT * FROM $", LEFTOVER),
    ("INSERT INTO $ t VALUE {'pk': 'x'}", LEFTOVER),
    ("FROM $ SET c = 1 WHERE pk = 'a'", LEFTOVER),
    ("FROM $ SET c = 1 WHERE pk = 'a' SET d = 2", LEFTOVER),
    ("UPDATE $ REMOVE a, b WHERE pk = 'a'", LEFTOVER),
    ("SELECT * FROM $ WHERE pk = 1e2147483648", BAD),
    ("SELECT * FROM $ WHERE pk = 1e99999999999", BAD),
    ("SELECT * FROM $ WHERE pk = 1.5e-2147483647", BAD),
    ("SELECT * FROM $ WHERE pk = 'a' # note", BAD),
    ("SELECT * FROM $ WHERE pk = 'a' /* note", BAD),
    ("SELECT * FROM $ WHERE pk = 'a", BAD),
    ('SELECT * FROM "open', BAD),
    ("SELECT * FROM $ WHERE pk = `a`", BAD),
    ("SELECT * FROM $ WHERE", TERM),
    ("SELECT * FROM $ WHERE;", TERM),
    ("SELECT * FROM $ WHERE   ", TERM),
    ("UPDATE $ SET a = 1 WHERE", TERM),
    ("DELETE FROM $ WHERE", TERM),
    ("SELECT * FROM $ WHERE NOT", TERM),
    ("SELECT * FROM $ WHERE (", TERM),
    ("SELECT * FROM", TERM),
    ('SELECT * FROM "none-such" WHERE', TERM),
    ("SELECT * FROM $ WHERE pk = 'a' AND", f"{BAD}Missing right-hand side expression of infix operator"),
    ("SELECT * FROM $ WHERE pk = 'a' OR", f"{BAD}Missing right-hand side expression of infix operator"),
    ("SELECT * FROM $ WHERE ORDER BY pk", f"{BAD}Unexpected keyword"),
    ("SELECT * FROM $ WHERE pk = 'a' AND x IS FOO", f"{BAD}Expected type name"),
    ("SELECT * FROM $ WHERE IS NULL", f"{BAD}Unexpected operator"),
    ("SELECT * FROM $ WHERE pk = LIKE", f"{BAD}Unexpected operator"),
    ("DELETE FROM", f"{BAD}Expected identifier for simple path"),
    ("DELETE FROM;", f"{BAD}Expected identifier for simple path"),
    ("DELETE FROM WHERE pk = 'a'", f"{BAD}Expected identifier for simple path"),
    ("SLECT * FROM $ WHERE pk = 'a'", f"{BAD}Expected data manipulation"),
    ("UPDATE $ WHERE pk = 'a'", f"{BAD}Expected data manipulation"),
    ("SELECT * FROM $ WHERE attribute_exists(m.inner)", f"{BAD}Invalid path dot component"),
    ("UPDATE $ SET m.inner = 1 WHERE pk = 'a'", f"{BAD}Invalid path dot component"),
    ("SELECT * FROM (SELECT * FROM $", f"{BAD}Expected RIGHT_PAREN"),
    ("x IS INT4", "Unsupported operation: IsType"),
    ("x IS DOUBLE PRECISION", "Unsupported operation: IsType"),
    ("SELECT * FROM $ t WHERE pk = 'x'", ALIAS),
    ("SELECT * FROM $ AS t WHERE pk = 'x'", ALIAS),
    ("SELECT s AS x FROM $ WHERE pk = 'x'", ALIAS),
    ("UPDATE $ t SET a = 3 WHERE pk = 'x'", ALIAS),
    ("DELETE FROM $ t WHERE pk = 'x'", ALIAS),
    ('SELECT * FROM $."i"."j"', "A path may contain at most 2 components in the FROM clause"),
    ('SELECT * FROM ""', "Path component cannot be an empty string"),
    ('SELECT * FROM $.""', "Path component cannot be an empty string"),
    ("INSERT INTO $.\"i\" VALUE {'pk': 'a'}", "FROM clause may only contain a single table name"),
    ("UPDATE $.\"i\" SET a = 1 WHERE pk = 'a'", "This operation is not supported on an index"),
    ("DELETE FROM $.\"i\" WHERE pk = 'a'", "This operation is not supported on an index"),
]
VALUES = [
    ("SELECT * FROM $ WHERE n = 1e126", f"{OVERFLOW} under root"),
    ("SELECT * FROM $ WHERE n = 1e-131", f"{UNDERFLOW} under root"),
    (f"SELECT * FROM $ WHERE n = {'123456789' * 4}123", f"{DIGITS} under root"),
    ("UPDATE $ SET a = 1e-131 WHERE pk = 'a'", f"{UNDERFLOW} under root"),
    ("INSERT INTO $ VALUE {'pk': 'a', 'm': {'x': 1e126}}", f"{OVERFLOW} under root.x"),
    ("INSERT INTO $ VALUE {'pk': 'a', 'l': [1, 1e126]}", f"{OVERFLOW} under root[1]"),
    ("INSERT INTO $ VALUE {'pk': 'a', 's': <<>>}", "Empty bags are not supported"),
    (
        "INSERT INTO $ VALUE {'pk': 'a', 's': <<1, 'a'>>}",
        "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags",
    ),
    ("SELECT * FROM $ WHERE s = <<'a','a'>>", f"{OOM}Input collection [a, a] contains duplicates."),
    (
        "UPDATE $ SET x = set_add(x, <<2, 2.0>>) WHERE pk = 'a'",
        f"{OOM}Input collection [2, 2.0] contains duplicates! under root",
    ),
    (
        "UPDATE $ SET d = " + "{'a':" * 32 + "1" + "}" * 32 + " WHERE pk = 'a'",
        f"{DEEP} under root" + ".a" * 32,
    ),
    (
        "UPDATE $ SET d = {'a':" + "[" * 31 + "1" + "]" * 31 + "} WHERE pk = 'a'",
        f"{DEEP} under root.a" + "[0]" * 31,
    ),
    (
        "INSERT INTO $ VALUE {'pk': 'a', 'm': set_add(1)}",
        "Unsupported data type: set_add under key root at 1:%:7",
    ),
    ("SELECT s, s FROM $", "Duplicate identifiers in select clause: s"),
    ("SELECT attribute_exists(s) FROM $", "Unexpected path component at 1:8:16"),
    ("SELECT COUNT(*) FROM $", "Unexpected path component at 1:8:5"),
    ("SELECT l[-1] FROM $", "List index is not within the allowable range; index: [-1] at 1:11:1"),
    ("SELECT * FROM $ LIMIT 5", "Unsupported clause: LIMIT at 1:%:1"),
    ("SELECT * FROM $ WHERE EXISTS(ss)", "Unrecognized function: exists at 1:%:6"),
    ("SELECT * FROM $ WHERE set_add(ss, <<'x'>>) = ss", "Unrecognized function: set_add at 1:%:7"),
    ("SELECT * FROM $ WHERE attribute_exists('ss')", f"{NEEDS_PATH}attribute_exists"),
    ("SELECT * FROM $ WHERE attribute_exists()", f"{COUNTED}attribute_exists, number of operands: 0"),
    ("SELECT * FROM $ WHERE attribute_exists(a, b)", f"{COUNTED}attribute_exists, number of operands: 2"),
    ("SELECT * FROM $ WHERE attribute_type(l, 1)", f"{OPERAND}attribute_type, operand type: N"),
    (
        "SELECT * FROM $ WHERE attribute_type(l, 'X')",
        "Invalid attribute type name found; type: X, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}",
    ),
    ("SELECT * FROM $ WHERE attribute_exists(n) > false", f"{OPERAND}>, operand type: BOOL"),
    ("SELECT * FROM $ WHERE a <= [1]", f"{OPERAND}<=, operand type: L"),
    ("SELECT * FROM $ WHERE a BETWEEN true AND false", f"{OPERAND}BETWEEN, operand type: BOOL"),
    ("SELECT * FROM $ WHERE pk = ?", "Number of parameters in request and statement don't match."),
]
UPDATES = [
    (
        "UPDATE $ SET t = set_add(ss, <<'x'>>) WHERE pk = 'a'",
        "The first argument to SET_ADD must equal the assignment value at 1:%:7",
    ),
    (
        "UPDATE $ SET ss = set_delete(<<'a'>>, <<'b'>>) WHERE pk = 'a'",
        "The first argument to SET_DELETE must equal the assignment value at 1:%:10",
    ),
    ("UPDATE $ SET ss = set_add(ss) WHERE pk = 'a'", "SET_ADD must have exactly two arguments at 1:%:7"),
    ("UPDATE $ SET n = 'a' + 1 WHERE pk = 'a' AND nope = 1", f"{OPERAND}+, operand type: S"),
    ("UPDATE $ SET n = n - null WHERE pk = 'a' AND nope = 1", f"{OPERAND}-, operand type: NULL"),
    (
        "UPDATE $ SET ss = set_add(ss, <<1>>) WHERE pk = 'a'",
        "An operand in the update expression has an incorrect data type",
    ),
    (
        "UPDATE $ SET s = set_add(s, <<'1'>>) WHERE pk = 'a'",
        "An operand in the update expression has an incorrect data type",
    ),
    (
        "UPDATE $ SET nope = list_append(nope, [1]) WHERE pk = 'a'",
        "The provided expression refers to an attribute that does not exist in the item",
    ),
    (
        "UPDATE $ SET nope[0] = 1 WHERE pk = 'a'",
        "The document path provided in the update expression is invalid for update",
    ),
    (
        "UPDATE $ SET pk = 'b' WHERE pk = 'a'",
        f"{OOM}Cannot update attribute pk. This attribute is part of the key",
    ),
    (
        "UPDATE $ SET m = 1, m.a = 2 WHERE pk = 'a'",
        (
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [m], path two: [m, a]"
        ),
    ),
    ("UPDATE $ SET a = 1", NO_KEY),
    ("UPDATE $ SET a = 1 WHERE s = 'x'", NO_KEY),
    ("UPDATE $ SET a = 1 WHERE pk IN ['a']", NO_KEY),
    ("UPDATE $ SET a = 1 WHERE pk = 'a' OR pk = 'a'", NO_KEY),
    ("FROM $ SET c = 1", NO_KEY),
    ("FROM $ WHERE a = 1 REMOVE c", NO_KEY),
    ("DELETE FROM $ WHERE s = 'x'", NO_KEY),
    (
        "UPDATE $ SET a = 1 WHERE pk = 'a' AND pk = 'b'",
        "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported",
    ),
    ("UPDATE $ SET a = 1 WHERE pk = 1", MISMATCH),
    (
        "DELETE FROM $ WHERE pk = 'a' RETURNING MODIFIED OLD *",
        (
            "Invalid returning clause: RETURNING MODIFIED OLD *. "
            "Only RETURNING ALL OLD * is allowed in DELETE statements."
        ),
    ),
    (
        "DELETE FROM $ WHERE pk = 'a' RETURNING ALL NEW *",
        "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
    ),
    ("INSERT INTO $ VALUE {'a': 1}", f"{OOM}Missing the key pk in the item"),
    ("INSERT INTO $ VALUE {'pk': 1}", f"{OOM}Type mismatch for key pk expected: S actual: N"),
    (
        "SELECT pk.a FROM $",
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk",
    ),
    (
        "EXISTS(SELECT * FROM $ WHERE pk = 'a' AND s = 'x')",
        "EXISTS can only be used in ExecuteTransaction write requests.",
    ),
]


@pytest.fixture
def error_of(client: DynamoDBClient) -> ErrorOf:
    """Return a function that returns the message with which a statement is refused."""

    def message(statement: str, *parameters: Any, **more: Any) -> str:
        arguments: Any = {"Parameters": list(parameters)} if parameters else {}
        found = refused(client.execute_statement, Statement=statement, **arguments, **more)
        assert found.code == "ValidationException", statement
        return found.message

    return message


def _transacted(client: DynamoDBClient, *statements: str) -> Any:
    return refused(
        client.execute_transaction, TransactStatements=[{"Statement": each} for each in statements]
    )


@pytest.mark.parametrize("rows", [GRAMMAR, VALUES, UPDATES], ids=["grammar", "values", "updates"])
def test_invalid_statements_are_refused(
    client: DynamoDBClient, tables: Tables, error_of: ErrorOf, rows: list[tuple[str, str]]
) -> None:
    """An invalid statement is refused with AWS's message and changes nothing.

    `$` is replaced by the table, `%` by the column of the last function or number in the statement.
    """
    table = tables()
    stored = item(pk="a", s="str", ss={"SS": ["a", "b"]}, n=1, m={"M": {}}, l={"L": [n(1)]})
    put(client, table, stored)

    def column_of(statement: str, sentence: str) -> str:
        for word in ("set_add(", "set_delete(", "EXISTS(", "5"):
            if "%" in sentence and word in statement:
                return sentence.replace("%", str(statement.rindex(word) + 1))
        return sentence

    statements = [(text.replace("$", f'"{table}"'), sentence) for text, sentence in rows]
    expected = {text: column_of(text, sentence) for text, sentence in statements}

    assert {text: error_of(text) for text in expected} == expected
    assert get(client, table, pk="a") == stored


def test_places_are_reported_by_line(client: DynamoDBClient, tables: Tables, error_of: ErrorOf) -> None:
    """A place is line, column and length, and that of a wrong second argument is the first one's."""
    table = tables()
    put(client, table, item(pk="a", Members={"SS": ["x"]}))
    head = f'UPDATE "{table}"\nSET Members = set_add('

    assert error_of(f"{head}Members, 'x')\nWHERE pk = 'a'") == (
        "The second argument to SET_ADD must be a value with type SET at 2:23:7"
    )
    assert error_of(f"{head}Members, ?)\nWHERE pk = 'a'", s("x")) == (
        "The second argument to SET_ADD must be a value with type SET at 2:23:7"
    )
    assert error_of(f"UPDATE \"{table}\" SET x =\n  [?] WHERE pk = 'a'", s("x")) == (
        "Unsupported data type: Parameter under key root[0] at 2:4:1"
    )
    assert error_of(f"INSERT INTO \"{table}\"\n\nVALUE {{'pk':'b','m':{{'k':?}}}}", s("x")) == (
        "Unsupported data type: Parameter under key root.k at 3:26:1"
    )


def test_parameters_come_first(client: DynamoDBClient, tables: Tables, error_of: ErrorOf) -> None:
    """A bad parameter is reported before the statement is read, in order, wherever it would go."""
    table = tables()
    where = f"SELECT * FROM \"{table}\" WHERE pk = 'a' AND "
    deep: Any = s("leaf")
    for _ in range(40):
        deep = {"M": {"n": deep}}
    nest = f"{DEEP}: Attributes in the item have nested levels beyond supported limit"

    assert (
        error_of("SELECT WHERE", {"SS": ["a", "a"]}) == f"{OOM}Input collection [a, a] contains duplicates."
    )
    assert error_of(where + "n = ?", {"NULL": False}) == (
        f"{OOM}Null attribute value types must have the value of true"
    )
    for number in ("1e99999999999", "-1e99999999999", "1e-99999999999", "1e2147483648", "abc"):
        assert error_of(where + "n = ?", n(number)) == f"{UNCONVERTIBLE}: {number}"
        assert error_of(where + "n = ?", {"L": [n(1), n(number)]}) == f"{UNCONVERTIBLE}: {number}"
    assert error_of(where + "n = ?", n("1e2147483647")) == UNDERFLOW
    assert error_of(where + "n = ?", n("1e126")) == OVERFLOW
    assert error_of(where + "n = ?", n("")) == UNCONVERTIBLE
    assert error_of(where + "x = ? AND y = ?", deep, n("abc")) == nest
    assert error_of(where + "x = ? AND y = ?", n("abc"), deep) == f"{UNCONVERTIBLE}: abc"
    assert error_of(where + "x = ?", s("a"), s("b")) == (
        "Number of parameters in request and statement don't match."
    )
    assert error_of(where + "x < ?", {"SS": ["a"]}) == f"{OPERAND}<, operand type: SS"
    assert error_of(where + "attribute_exists(?)", s("x")) == f"{NEEDS_PATH}attribute_exists"


def test_reads_that_cannot_be(client: DynamoDBClient, tables: Tables, error_of: ErrorOf) -> None:
    """Ranges may not overlap, are at most fifty, and have the key's types; an order goes by the key."""
    table = tables("pk sk")
    select = f'SELECT sk FROM "{table}" '

    def values(count: int) -> str:
        return ", ".join(f"'v{at}'" for at in range(count))

    for where in (
        "pk IN ['r', 'r']",
        "pk = 'r' OR pk = 'r'",
        "pk = 'r' AND (sk > '0' OR sk < '5')",
        "pk = 'r' AND (sk = '1' OR flag = 'two')",
        "(pk = 'r' AND flag = 'one') OR (pk = 'r' AND flag = 'two')",
        "pk = 'a' AND x <> '1' OR pk = 'a' AND sk = '2'",
    ):
        assert error_of(f"{select}WHERE {where}") == OVERLAPPING, where
    for where in (
        f"pk IN [{values(51)}]",
        f"pk = 'r' AND sk IN [{values(51)}]",
        f"pk IN [{values(26)}] AND sk IN ['1', '2']",
    ):
        assert error_of(f"{select}WHERE {where}") == TOO_MANY_READS, where
    assert error_of(f"{select}WHERE pk = 'r' AND flag IN [{values(101)}]") == (
        "The IN operator is provided with too many operands; number of operands: 101"
    )
    assert error_of(f"{select}WHERE pk = 1 OR pk = 'r'") == f"{KEY_TYPE}pk"
    assert error_of(f"{select}WHERE pk = 'r' AND sk IN ['1', 2]") == f"{KEY_TYPE}sk"
    assert error_of(f"{select}WHERE pk = ''") == (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk"
    )
    assert error_of(f"{select}ORDER BY sk") == (
        "Must have WHERE clause in the statement when using ORDER BY clause."
    )
    assert error_of(f"{select}WHERE pk = 'o' ORDER BY Total DESC") == (
        "Attribute Total in ORDER BY clause must be part of the primary key"
    )
    assert error_of(f"{select}WHERE pk > 'a' ORDER BY sk") == (
        "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
    )
    assert error_of(f"{select}WHERE pk IN ['o', 'p'] ORDER BY sk DESC") == (
        "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
    )
    for where in (
        f"pk IN [{values(50)}] AND flag IN [{values(100)}]",
        f"pk IN [{values(51)}] OR flag = 'one'",
        "pk > 1",
        "pk = 'r' OR sk = '1'",
    ):
        client.execute_statement(Statement=f"{select}WHERE {where}")


def test_indexes_that_cannot_be_read(client: DynamoDBClient, tables: Tables, error_of: ErrorOf) -> None:
    """An index must exist, project what is named, and have a key of one attribute each."""
    table = tables(
        "pk sk",
        gsi={"gsi-inc": "g | proj", "multi": "h1 h2 / r1"},
        lsi={"lsi-keys": "pk l | KEYS_ONLY"},
    )
    gsi = f'FROM "{table}"."gsi-inc" WHERE '
    unheld = f"{OOM}Secondary index gsi-inc does not project one or more filter attributes: "
    multi = (
        "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute "
        "RANGE keys."
    )

    assert error_of(f'SELECT * FROM "{table}"."none"') == "The table does not have the specified index"
    assert error_of(f"SELECT * {gsi} g = 'x'", ConsistentRead=True) == (
        "Strongly consistent read is not supported on Global Secondary Indexes"
    )
    assert error_of(f"SELECT zz, proj, aa {gsi} g = 'x'") == (
        f"{OOM}Global secondary index gsi-inc does not project [zz, aa]"
    )
    assert error_of(f'SELECT zz FROM "{table}"."gsi-inc"') == (
        f"{OOM}Global secondary index gsi-inc does not project [zz]"
    )
    assert error_of(f"SELECT pk {gsi} g = 'y' AND NOT (non = 'x' OR proj = 'x')") == f"{unheld}[non]"
    assert error_of(f"SELECT pk {gsi} g = 'y' AND b = '1' AND (a = '2' OR proj = '3')") == f"{unheld}[a, b]"
    assert error_of(f"SELECT pk {gsi} g = 'y' AND (zz = '1' OR aa = '2' OR mm = '3')") == (
        f"{unheld}[zz, aa, mm]"
    )
    assert error_of(f"SELECT pk {gsi} g IN ['y', 'z'] AND zz = '1'") == f"{unheld}[zz]"
    assert error_of(f"SELECT pk {gsi} (g = 'b' AND u1 = '1') OR (g = 'q' AND u2 = '1')") == f"{unheld}[u2]"
    assert error_of(f"SELECT pk {gsi} (g = 'q' AND u1 = '1') OR (g = 'b' AND u2 = '1')") == f"{unheld}[u1]"
    assert error_of(f'SELECT pk FROM "{table}"."lsi-keys" WHERE pk = \'p\' AND non IS MISSING') == (
        f"{OOM}Secondary index lsi-keys does not project one or more filter attributes: [non]"
    )
    for rest in ("*", "COUNT(*)"):
        assert error_of(f'SELECT {rest} FROM "{table}"."multi"') == multi
    assert error_of(f'SELECT * FROM "{table}"."multi" WHERE h1 = 5') == multi
    for where in (
        "(g = 'y' AND proj = '1') OR (g = 'z' AND aa = '1')",
        "g > 'a' AND zz = '1'",
        "g = 'y' AND (g = 'z' OR zz = '1')",
        "(g = 'y' AND zz = '1') OR aa = '1'",
    ):
        client.execute_statement(Statement=f"SELECT pk {gsi} {where}")


def test_a_nested_value_may_not_become_too_deep(
    client: DynamoDBClient, tables: Tables, error_of: ErrorOf
) -> None:
    """A value that is valid by itself may be too deep at its path."""
    table = tables()
    put(client, table, item(pk="a", m={"M": {}}))
    deep: Any = s("x")
    for _ in range(31):
        deep = {"M": {"a": deep}}
    update = f"UPDATE \"{table}\" SET m.deep = ? WHERE pk = 'a'"

    alone = error_of(update, deep)
    batched: Any = client.batch_execute_statement(Statements=[{"Statement": update, "Parameters": [deep]}])
    together = refused(
        client.execute_transaction, TransactStatements=[{"Statement": update, "Parameters": [deep]}]
    )

    assert alone == DEEP
    assert batched["Responses"] == [
        {"TableName": table, "Error": {"Code": "ValidationError", "Message": DEEP}}
    ]
    assert together.reasons == [{"Code": "ValidationError", "Message": DEEP}]


def test_missing_tables(client: DynamoDBClient, tables: Tables) -> None:
    """A missing table is reported as such; in a transaction as a reason, after all validation errors."""
    table = tables("pk sk")
    missing = f"UPDATE \"{table}-none\" SET a = 1 WHERE pk = 'x' AND sk = '1'"
    read = f"SELECT * FROM \"{table}\" WHERE pk = 'a' AND sk = '1'"
    none = f"SELECT * FROM \"{table}-none\".\"idx\" WHERE pk = 'x' AND sk = '1'"

    alone = refused(client.execute_statement, Statement=f'SELECT * FROM "{table}-none"')
    writes = _transacted(client, missing + " RETURNING ALL NEW *", missing.replace("UPDATE", "UPDATE "))
    reads = _transacted(client, read, none)
    invalid = _transacted(
        client, missing, f"UPDATE \"{table}\" SET a = 1 WHERE pk = 'x' AND sk = '1' RETURNING ALL NEW *"
    )
    index = _transacted(client, none, f"SELECT * FROM \"{table}\".\"idx\" WHERE pk = 'x' AND sk = '1'")

    assert (alone.code, alone.message) == ("ResourceNotFoundException", "Requested resource not found")
    assert writes.reasons == [{"Code": "ResourceNotFound", "Message": "Requested resource not found"}] * 2
    assert reads.reason_codes == ["None", "ResourceNotFound"]
    assert invalid.message == (
        "Validation failed in TransactStatements[1]: RETURNING clause is not supported in ExecuteTransaction."
    )
    assert index.message == (
        "Validation failed in TransactStatements[1]: Reads on indices are not supported within transactions."
    )


def test_transactions_that_cannot_be(client: DynamoDBClient, tables: Tables) -> None:
    """A statement of a transaction that is invalid is named; a key that is wrong is a reason."""
    table = tables("pk sk")
    put(client, table, item(pk="a", sk="1", flag="x"))
    select = f'SELECT * FROM "{table}" WHERE '
    update = f'UPDATE "{table}" SET a = 1 WHERE '
    by_key = f"{FAILED}Select statements within ExecuteTransaction must specify the primary key in the where clause."
    exists = f"{FAILED}EXISTS() must contain a single item read with additional condition"
    once = "Transaction request cannot include multiple operations on one item"
    values = ", ".join(f"'v{at}'" for at in range(101))

    def message(*statements: str) -> str:
        found = _transacted(client, *statements)
        assert found.code == "ValidationException", statements
        return str(found.message)

    for where in (
        "pk = 'a' AND sk = '1' AND flag = 'x'",
        "pk = 'a' AND sk = '1' AND pk = 'b'",
        "pk = 'a'",
        "pk IN ['b'] AND pk = 'a' AND sk = '1'",
        "pk = 'a' AND sk = '1' AND attribute_exists(flag)",
    ):
        assert message(select + where) == by_key, where
    for where in ("pk = 'a' AND sk = '1'", "pk IN ['a'] AND sk = '1' AND flag = 'x'", "flag = 'x'"):
        assert message(f"EXISTS({select}{where})", update + "pk = 'b' AND sk = '1'") == exists, where
    assert message(select + "pk IN ['a', 'a'] AND sk = '1'") == FAILED + OVERLAPPING
    assert message(f"{select}pk IN [{values}] AND sk = '1'") == (
        f"{FAILED}The IN operator is provided with too many operands; number of operands: 101"
    )
    assert message(select + "pk = 'a' AND") == (
        f"{FAILED}{BAD}Missing right-hand side expression of infix operator"
    )
    assert message(f'UPDATE "{table}"."i" SET a = 1 WHERE pk = \'a\'') == (
        f"{FAILED}This operation is not supported on an index"
    )
    assert message(select + "pk = 'a' AND sk = '1'", update + "pk = 'b' AND sk = '1'") == (
        "ExecuteTransaction API does not support both read and write operations in the same request."
    )
    assert message(*[select + "pk = 'a' AND sk = '1'"] * 2) == once
    assert message(*[update + "pk = 'a' AND sk = '1'"] * 2) == once

    writes = _transacted(
        client,
        update + "pk = 'a'",
        update + "pk IN ['a'] AND sk = '1'",
        update + "pk = 'a' AND sk = '1' AND pk = 'b'",
        update + "pk = 'a' AND sk = 1",
        update + "pk = 'a' AND sk = '1'",
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'b'}}",
    )
    reads = _transacted(client, *[select + "pk = 'a' AND sk = '1'"] * 2, select + "pk = 1 AND sk = '1'")

    assert writes.reason_codes == [*["ValidationError"] * 4, "None", "ValidationError"]
    assert {writes.reasons[at]["Message"] for at in range(4)} == {MISMATCH}
    assert writes.reasons[5]["Message"] == f"{OOM}Missing the key sk in the item"
    assert reads.reason_codes == ["None", "None", "ValidationError"]
    assert reads.reasons[2]["Message"] == MISMATCH
    assert get(client, table, pk="a", sk="1") == item(pk="a", sk="1", flag="x")


def test_counts_and_lengths(send_raw: Callable[..., Any], tables: Tables) -> None:
    """A request has statements, but not too many, and a statement has text, but not too much."""
    table = tables()
    one = {"Statement": f'SELECT * FROM "{table}"'}
    detected = "1 validation error detected: "
    short = "failed to satisfy constraint: Member must have length greater than or equal to 1"

    def error_of(operation: str, **request: Any) -> str:
        answer = send_raw(operation, request)
        assert answer.status == 400
        return str(answer.body["message"])

    assert error_of("ExecuteTransaction", TransactStatements=[]) == (
        f"{detected}Value at 'transactStatements' {short}"
    )
    assert error_of("ExecuteTransaction", TransactStatements=[one] * 101) == (
        f"{detected}Value at 'transactStatements' failed to satisfy constraint: "
        "Member must have length less than or equal to 100"
    )
    assert error_of("BatchExecuteStatement", Statements=[]) == f"{detected}Value '[]' at 'statements' {short}"
    assert error_of("BatchExecuteStatement", Statements=[one] * 26).endswith(
        "at 'statements' failed to satisfy constraint: Member must have length less than or equal to 25"
    )
    assert error_of("ExecuteStatement", Statement="") == f"{detected}Value '' at 'statement' {short}"
    assert error_of("ExecuteStatement", Statement="x" * 8193).endswith(
        "at 'statement' failed to satisfy constraint: Member must have length less than or equal to 8192"
    )
    assert (
        error_of("ExecuteStatement", **one, Parameters=[]) == f"{detected}Value '[]' at 'parameters' {short}"
    )
    assert error_of("ExecuteStatement") == (
        f"{detected}Value null at 'statement' failed to satisfy constraint: Member must not be null"
    )


def test_depth_and_length_are_refused(client: DynamoDBClient, error_of: ErrorOf) -> None:
    """No statement that fits a request breaks anything, however deep it is or long."""
    for text in (
        "(" * 1000,
        "SELECT * FROM t WHERE " + "(" * 1000 + "a = 1" + ")" * 1000,
        "SELECT * FROM t WHERE " + "NOT " * 2000 + "a",
        "SELECT * FROM t WHERE a = " + "[" * 4000,
        "SELECT * FROM t WHERE a = " + "{'a':" * 1500,
        "SELECT * FROM t WHERE a = " + "- " * 4000,
        "SELECT * FROM t WHERE " + "size(" * 1600,
        "SELECT * FROM t WHERE a" + "[0" * 4000,
    ):
        assert error_of(text[:8192]).startswith(BAD), text[:60]
    long = refused(client.execute_statement, Statement="SELECT * FROM t WHERE a = 1" + " AND a = 1" * 816)
    assert long.code == "ResourceNotFoundException"
