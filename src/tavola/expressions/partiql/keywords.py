"""PartiQL's reserved words: not usable as names unless in double quotes.

They are the reserved words of SQL-92 and PartiQL's own, and differ from those of expressions.
"""

from __future__ import annotations

KEYWORDS = frozenset(
    """
    absolute action add all allocate alter and any are as asc assertion at authorization avg begin between
    bit bit_length by cascade cascaded case cast catalog char char_length character character_length check
    close coalesce collate collation column commit connect connection constraint constraints continue convert
    corresponding count create cross current current_date current_time current_timestamp current_user cursor
    date date_add date_diff day deallocate dec decimal declare default deferrable deferred delete desc describe
    descriptor diagnostics disconnect distinct domain double drop else end escape except exception
    exec execute exists external extract false fetch first float for foreign found from full get global go
    goto grant group having hour identity immediate in index indicator initially inner input insensitive insert
    int int4 int8 integer intersect interval into is isolation join key language last leading left level like limit
    local lower match max min minute missing module month names national natural nchar next no not null
    nullif numeric octet_length of on only open option or order outer output overlaps pad partial pivot
    position precision prepare preserve primary prior privileges procedure public read real references
    relative remove restrict returning revoke right rollback rows schema scroll second section select session
    session_user set size smallint some space sql sqlcode sqlerror sqlstate substring sum system_user table
    temporary then time timestamp timezone_hour timezone_minute to trailing transaction translate translation
    trim true undrop union unique unknown unpivot update upper usage user using value values varchar varying
    view when whenever where with work write year zone bool boolean string symbol clob blob struct tuple list
    sexp bag
    """.split()
) - {"size"}  # a function here
FUNCTIONS = frozenset(
    """
    exists avg bit_length cast char_length character_length coalesce convert count date_add date_diff extract
    lower max min nullif octet_length position substring sum translate trim upper
    """.split()
)
# Type names that may follow IS, with the attribute types they match; empty if DynamoDB has none.
TYPES: dict[str, tuple[str, ...]] = {
    "missing": (),
    "null": ("NULL",),
    "bool": ("BOOL",),
    "boolean": ("BOOL",),
    "string": ("S",),
    "char": ("S",),
    "character": ("S",),
    "varchar": ("S",),
    "character varying": ("S",),
    "numeric": ("N",),
    "decimal": ("N",),
    "int": ("N",),
    "int4": ("N",),
    "int8": ("N",),
    "integer": ("N",),
    "smallint": ("N",),
    "float": ("N",),
    "real": ("N",),
    "double precision": ("N",),
    "blob": ("B",),
    "struct": ("M",),
    "tuple": ("M",),
    "list": ("L",),
    "bag": ("SS", "NS", "BS"),
    "clob": (),
    "sexp": (),
    "symbol": (),
    "timestamp": (),
}
