"""Expression trees to the text, names and values of a request.

A name is written out if DynamoDB allows it and becomes a placeholder otherwise: reserved words (the developer guide lists 573; case
does not matter), keywords, and names with other characters. A literal always becomes a placeholder. One renderer serves all
expressions of a request, so equal names and values share their placeholders.
"""

from __future__ import annotations

import re

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
    NameRef,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Step,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.values import Value

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SECTIONS = {Set: "SET", Remove: "REMOVE", Add: "ADD", DeleteElements: "DELETE"}
_ORDER: dict[type, int] = {kind: position for position, kind in enumerate(_SECTIONS)}


class Renderer:
    """Renders the expressions of one request; `names` and `values` collect their placeholders."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        self._placeholders: dict[str, str] = {}

    def condition(self, tree: ConditionNode) -> str:
        """Return a condition, filter or key condition as text."""
        match tree:
            case And(parts):
                return " AND ".join(self._part(part, (And, Or)) for part in parts)
            case Or(parts):
                return " OR ".join(self._part(part, (Or,)) for part in parts)
            case Not(part):
                return f"NOT {self._part(part, (And, Or))}"
            case Comparison(operator, left, right):
                return f"{self._operand(left)} {operator} {self._operand(right)}"
            case Between(operand, lower, upper):
                bounds = f"{self._operand(lower)} AND {self._operand(upper)}"
                return f"{self._operand(operand)} BETWEEN {bounds}"
            case InList(operand, choices):
                return f"{self._operand(operand)} IN ({', '.join(map(self._operand, choices))})"
            case FunctionCall():
                return self._operand(tree)

    def update(self, tree: UpdateNode) -> str:
        """Return an update as text, with one section for each kind of action."""
        sections: dict[str, list[str]] = {section: [] for section in _SECTIONS.values()}
        for action in sorted(tree.actions, key=lambda action: _ORDER[type(action)]):
            sections[_SECTIONS[type(action)]].append(self._action(action))
        return " ".join(f"{section} {', '.join(actions)}" for section, actions in sections.items() if actions)

    def projection(self, tree: ProjectionNode) -> str:
        """Return a projection as text."""
        return ", ".join(map(self._path, tree.paths))

    def _part(self, part: ConditionNode, enclosed: tuple[type, ...]) -> str:
        text = self.condition(part)
        return f"({text})" if isinstance(part, enclosed) else text

    def _action(self, action: Action) -> str:
        path = self._path(action.path)
        match action:
            case Set(_, Arithmetic(operator, left, right)):
                return f"{path} = {self._operand(left)} {operator} {self._operand(right)}"
            case Set(_, value):
                assert not isinstance(value, Arithmetic)
                return f"{path} = {self._operand(value)}"
            case Remove():
                return path
            case Add(_, amount) | DeleteElements(_, amount):
                return f"{path} {self._operand(amount)}"

    def _operand(self, operand: Operand) -> str:
        match operand:
            case Path():
                return self._path(operand)
            case ValueRef(name):
                return name
            case Literal(value):
                return self._value(value)
            case FunctionCall(function, operands):
                return f"{function}({', '.join(map(self._operand, operands))})"
            case Truth():
                raise AssertionError("only PartiQL has conditions as operands")

    def _path(self, path: Path) -> str:
        first, *rest = path.steps
        return self._step(first) + "".join(
            f"[{step}]" if isinstance(step, int) else f".{self._step(step)}" for step in rest
        )

    def _step(self, step: Step) -> str:
        if isinstance(step, NameRef):
            return step.name
        name = str(step)
        # REMOVE is a keyword but not a reserved word.
        if _BARE.fullmatch(name) and not is_reserved(name) and name.upper() != "REMOVE":
            return name
        if name not in self._placeholders:
            placeholder = f"#n{len(self.names)}"
            self._placeholders[name] = placeholder
            self.names[placeholder] = name
        return self._placeholders[name]

    def _value(self, value: Value) -> str:
        for placeholder, known in self.values.items():
            if known == value:
                return placeholder
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder


RESERVED_WORDS = frozenset(
    """
    ABORT ABSOLUTE ACTION ADD AFTER AGENT AGGREGATE ALL ALLOCATE ALTER ANALYZE AND ANY ARCHIVE ARE
    ARRAY AS ASC ASCII ASENSITIVE ASSERTION ASYMMETRIC AT ATOMIC ATTACH ATTRIBUTE AUTH AUTHORIZATION
    AUTHORIZE AUTO AVG BACK BACKUP BASE BATCH BEFORE BEGIN BETWEEN BIGINT BINARY BIT BLOB BLOCK
    BOOLEAN BOTH BREADTH BUCKET BULK BY BYTE CALL CALLED CALLING CAPACITY CASCADE CASCADED CASE CAST
    CATALOG CHAR CHARACTER CHECK CLASS CLOB CLOSE CLUSTER CLUSTERED CLUSTERING CLUSTERS COALESCE
    COLLATE COLLATION COLLECTION COLUMN COLUMNS COMBINE COMMENT COMMIT COMPACT COMPILE COMPRESS
    CONDITION CONFLICT CONNECT CONNECTION CONSISTENCY CONSISTENT CONSTRAINT CONSTRAINTS CONSTRUCTOR
    CONSUMED CONTINUE CONVERT COPY CORRESPONDING COUNT COUNTER CREATE CROSS CUBE CURRENT CURSOR
    CYCLE DATA DATABASE DATE DATETIME DAY DEALLOCATE DEC DECIMAL DECLARE DEFAULT DEFERRABLE DEFERRED
    DEFINE DEFINED DEFINITION DELETE DELIMITED DEPTH DEREF DESC DESCRIBE DESCRIPTOR DETACH
    DETERMINISTIC DIAGNOSTICS DIRECTORIES DISABLE DISCONNECT DISTINCT DISTRIBUTE DO DOMAIN DOUBLE
    DROP DUMP DURATION DYNAMIC EACH ELEMENT ELSE ELSEIF EMPTY ENABLE END EQUAL EQUALS ERROR ESCAPE
    ESCAPED EVAL EVALUATE EXCEEDED EXCEPT EXCEPTION EXCEPTIONS EXCLUSIVE EXEC EXECUTE EXISTS EXIT
    EXPLAIN EXPLODE EXPORT EXPRESSION EXTENDED EXTERNAL EXTRACT FAIL FALSE FAMILY FETCH FIELDS FILE
    FILTER FILTERING FINAL FINISH FIRST FIXED FLATTERN FLOAT FOR FORCE FOREIGN FORMAT FORWARD FOUND
    FREE FROM FULL FUNCTION FUNCTIONS GENERAL GENERATE GET GLOB GLOBAL GO GOTO GRANT GREATER GROUP
    GROUPING HANDLER HASH HAVE HAVING HEAP HIDDEN HOLD HOUR IDENTIFIED IDENTITY IF IGNORE IMMEDIATE
    IMPORT IN INCLUDING INCLUSIVE INCREMENT INCREMENTAL INDEX INDEXED INDEXES INDICATOR INFINITE
    INITIALLY INLINE INNER INNTER INOUT INPUT INSENSITIVE INSERT INSTEAD INT INTEGER INTERSECT
    INTERVAL INTO INVALIDATE IS ISOLATION ITEM ITEMS ITERATE JOIN KEY KEYS LAG LANGUAGE LARGE LAST
    LATERAL LEAD LEADING LEAVE LEFT LENGTH LESS LEVEL LIKE LIMIT LIMITED LINES LIST LOAD LOCAL
    LOCALTIME LOCALTIMESTAMP LOCATION LOCATOR LOCK LOCKS LOG LOGED LONG LOOP LOWER MAP MATCH
    MATERIALIZED MAX MAXLEN MEMBER MERGE METHOD METRICS MIN MINUS MINUTE MISSING MOD MODE MODIFIES
    MODIFY MODULE MONTH MULTI MULTISET NAME NAMES NATIONAL NATURAL NCHAR NCLOB NEW NEXT NO NONE NOT
    NULL NULLIF NUMBER NUMERIC OBJECT OF OFFLINE OFFSET OLD ON ONLINE ONLY OPAQUE OPEN OPERATOR
    OPTION OR ORDER ORDINALITY OTHER OTHERS OUT OUTER OUTPUT OVER OVERLAPS OVERRIDE OWNER PAD
    PARALLEL PARAMETER PARAMETERS PARTIAL PARTITION PARTITIONED PARTITIONS PATH PERCENT PERCENTILE
    PERMISSION PERMISSIONS PIPE PIPELINED PLAN POOL POSITION PRECISION PREPARE PRESERVE PRIMARY
    PRIOR PRIVATE PRIVILEGES PROCEDURE PROCESSED PROJECT PROJECTION PROPERTY PROVISIONING PUBLIC PUT
    QUERY QUIT QUORUM RAISE RANDOM RANGE RANK RAW READ READS REAL REBUILD RECORD RECURSIVE REDUCE
    REF REFERENCE REFERENCES REFERENCING REGEXP REGION REINDEX RELATIVE RELEASE REMAINDER RENAME
    REPEAT REPLACE REQUEST RESET RESIGNAL RESOURCE RESPONSE RESTORE RESTRICT RESULT RETURN RETURNING
    RETURNS REVERSE REVOKE RIGHT ROLE ROLES ROLLBACK ROLLUP ROUTINE ROW ROWS RULE RULES SAMPLE
    SATISFIES SAVE SAVEPOINT SCAN SCHEMA SCOPE SCROLL SEARCH SECOND SECTION SEGMENT SEGMENTS SELECT
    SELF SEMI SENSITIVE SEPARATE SEQUENCE SERIALIZABLE SESSION SET SETS SHARD SHARE SHARED SHORT
    SHOW SIGNAL SIMILAR SIZE SKEWED SMALLINT SNAPSHOT SOME SOURCE SPACE SPACES SPARSE SPECIFIC
    SPECIFICTYPE SPLIT SQL SQLCODE SQLERROR SQLEXCEPTION SQLSTATE SQLWARNING START STATE STATIC
    STATUS STORAGE STORE STORED STREAM STRING STRUCT STYLE SUB SUBMULTISET SUBPARTITION SUBSTRING
    SUBTYPE SUM SUPER SYMMETRIC SYNONYM SYSTEM TABLE TABLESAMPLE TEMP TEMPORARY TERMINATED TEXT THAN
    THEN THROUGHPUT TIME TIMESTAMP TIMEZONE TINYINT TO TOKEN TOTAL TOUCH TRAILING TRANSACTION
    TRANSFORM TRANSLATE TRANSLATION TREAT TRIGGER TRIM TRUE TRUNCATE TTL TUPLE TYPE UNDER UNDO UNION
    UNIQUE UNIT UNKNOWN UNLOGGED UNNEST UNPROCESSED UNSIGNED UNTIL UPDATE UPPER URL USAGE USE USER
    USERS USING UUID VACUUM VALUE VALUED VALUES VARCHAR VARIABLE VARIANCE VARINT VARYING VIEW VIEWS
    VIRTUAL VOID WAIT WHEN WHENEVER WHERE WHILE WINDOW WITH WITHIN WITHOUT WORK WRAPPED WRITE YEAR
    ZONE
    """.split()
)


def is_reserved(name: str) -> bool:
    """Return whether an attribute name is refused if written out in an expression."""
    return name.upper() in RESERVED_WORDS
