"""Limits: every DynamoDB limit, with its unit, its source and its relations.

Sources: DG is the AWS developer guide, B the service model of botocore, C behaviour captured on AWS.
Bytes and their multiples are binary, as the guide counts them.
"""

from __future__ import annotations

_KB = 1024
_MB = 1024 * _KB
_GB = 1024 * _MB

# Numbers (DG, data types).
NUMBER_DIGITS_MAX = 38
NUMBER_EXPONENT_MAX = 125  # 9.99…E+125 is the largest magnitude
NUMBER_EXPONENT_MIN = -130  # 1E-130 is the smallest

# Sizes of values (C, item sizes).
CONTAINER_OVERHEAD_BYTES = 3  # of a list or map
ELEMENT_OVERHEAD_BYTES = 1  # of each member in it
NESTING_LEVELS_MAX = 31  # containers around a scalar (C: 31 accepted, 32 refused)
ATTRIBUTE_NAME_BYTES_MAX = 65_535  # of an attribute that is no key (DG; C: 64 KB itself is refused)

# Keys (DG, quotas).
HASH_KEY_BYTES_MAX = 2048
RANGE_KEY_BYTES_MAX = 1024
KEY_ATTRIBUTE_NAME_BYTES_MAX = 255  # also of an attribute that an index projects by name
KEY_SCHEMA_ELEMENTS_MAX = 2  # of a table or a local index (B)
MULTI_KEY_ATTRIBUTES_MAX = 4  # hash or range attributes of one global index

# Names (B).
TABLE_NAME_CHARACTERS_MIN = 3
TABLE_NAME_CHARACTERS_MAX = 255
INDEX_NAME_CHARACTERS_MIN = 3
INDEX_NAME_CHARACTERS_MAX = 255
TABLE_ARN_CHARACTERS_MAX = 1024
RESOURCE_ARN_CHARACTERS_MAX = 1283

# Items and pages (DG, quotas).
ITEM_BYTES_MAX = 400 * _KB  # inclusive
PAGE_BYTES_MAX = 1 * _MB  # of a Query or Scan, counted before the filter
REQUEST_BYTES_MAX = 16 * _MB  # of an HTTP body (C: 413 above it)
ITEM_COLLECTION_BYTES_MAX = 10 * _GB  # items of one partition key, in a table with a local index

# Expressions (DG, quotas).
EXPRESSION_BYTES_MAX = 4 * _KB  # before substitution
EXPRESSION_OPERATORS_MAX = 300
EXPRESSION_IN_OPERANDS_MAX = 100
EXPRESSION_PLACEHOLDER_BYTES_MAX = 255
EXPRESSION_SUBSTITUTION_BYTES_MAX = 2 * _MB
ADMITTED_BYTES_MAX = (
    EXPRESSION_SUBSTITUTION_BYTES_MAX  # ours: where reading a value that is refused anyway stops
)

# Batches and transactions (B; DG, quotas).
BATCH_GET_KEYS_MAX = 100
BATCH_GET_RESPONSE_BYTES_MAX = 16 * _MB
BATCH_WRITE_REQUESTS_MAX = 25
TRANSACTION_ACTIONS_MAX = 100
TRANSACTION_BYTES_MAX = 4 * _MB  # of the request, not of what is stored (C)
TRANSACTION_TOKEN_CHARACTERS_MAX = 36
TRANSACTION_TOKEN_LIFE_S = 10 * 60  # from the first completion

# Scans (B).
SCAN_SEGMENTS_MAX = 1_000_000

# Tables (DG, quotas; B).
TABLES_PER_REGION_MAX = 2500
LIST_TABLES_MAX = 100  # names in one answer of ListTables
LOCAL_INDEXES_MAX = 5
GLOBAL_INDEXES_MAX = 20
VECTOR_INDEXES_MAX = 5
PROJECTED_ATTRIBUTES_MAX = 20  # named in one index (B)
PROJECTED_ATTRIBUTES_TOTAL_MAX = 100  # named in all indexes of one table (DG)
CAPACITY_UNITS_MAX = 1_000_000_000_000  # that a request may name (C)
TABLE_CAPACITY_UNITS_MAX = 40_000  # that a table may have, reads and writes each
ACCOUNT_CAPACITY_UNITS_MAX = 80_000
ON_DEMAND_WARM_READS_PER_S = 12_000  # what a new on-demand table can do at once
ON_DEMAND_WARM_WRITES_PER_S = 4_000

# Capacity (DG): what one unit pays for.
READ_UNIT_BYTES = 4 * _KB
WRITE_UNIT_BYTES = 1 * _KB

# Tags (DG).
TAGS_MAX = 50
TAG_KEY_CHARACTERS_MAX = 128
TAG_VALUE_CHARACTERS_MAX = 256

# Time to live (DG).
TTL_AGE_YEARS_MAX = 5  # a time further back than this is taken for a mistake, and ignored

# Refusals of members that one answer lists (C).
LISTED_REFUSALS_MAX = 10

assert ITEM_BYTES_MAX < PAGE_BYTES_MAX, "a page must be able to hold an item"
assert HASH_KEY_BYTES_MAX + RANGE_KEY_BYTES_MAX < ITEM_BYTES_MAX, "an item must be able to hold its key"
assert ITEM_BYTES_MAX < TRANSACTION_BYTES_MAX, "a transaction must be able to write the largest item"
assert TRANSACTION_BYTES_MAX < REQUEST_BYTES_MAX, "a transaction must fit a request"
assert BATCH_WRITE_REQUESTS_MAX * ITEM_BYTES_MAX < REQUEST_BYTES_MAX, "25 of the largest items fit a request"
assert EXPRESSION_BYTES_MAX < EXPRESSION_SUBSTITUTION_BYTES_MAX, "a placeholder may stand for more than it is"
assert ITEM_BYTES_MAX < ADMITTED_BYTES_MAX, "the largest item must be read to its end"
assert PROJECTED_ATTRIBUTES_MAX <= PROJECTED_ATTRIBUTES_TOTAL_MAX, "one index may not pass the sum of all"
assert TABLE_CAPACITY_UNITS_MAX <= ACCOUNT_CAPACITY_UNITS_MAX, "a table lives within its account"
assert 2 * MULTI_KEY_ATTRIBUTES_MAX > KEY_SCHEMA_ELEMENTS_MAX, "a global index may have the longer key"
