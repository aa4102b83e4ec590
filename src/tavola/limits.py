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
PATH_LEVELS_MAX = 32  # names and list indexes of a document path (A)
NESTING_LEVELS_MAX = 31  # containers around a scalar (C: 31 accepted, 32 refused)
ATTRIBUTE_NAME_BYTES_MAX = 65_535  # of a non-key attribute (DG; C: 64 KB itself is refused)

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
# Ours, below the limit of a body: what an operation can need of it, so that larger bodies are refused before they are read.
ITEM_REQUEST_BYTES_MAX = (
    8 * _MB
)  # of an operation with one item, or with keys; twice what an item of empty strings takes
SMALL_REQUEST_BYTES_MAX = 2 * _MB  # of every other operation that is neither a batch nor a transaction
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

# Statements (B; DG, PartiQL).
STATEMENT_CHARACTERS_MAX = 8192
STATEMENT_TOKEN_CHARACTERS_MAX = 32_768
STATEMENT_READS_MAX = 50  # key ranges that the IN and OR of one statement may come to
STATEMENT_IN_VALUES_MAX = 100
STATEMENT_READS_PAGE_MAX = 10  # items in one page of a statement that comes to several
BATCH_STATEMENTS_MAX = 25

# Scans (B).
SCAN_SEGMENTS_MAX = 1_000_000

# Tables (DG, quotas; B).
TABLES_PER_REGION_MAX = 2500
LIST_TABLES_MAX = 100  # names in one answer of ListTables
LOCAL_INDEXES_MAX = 5
GLOBAL_INDEXES_MAX = 20
VECTOR_INDEXES_MAX = 5
VECTOR_DIMENSIONS_MAX = 4096
VECTOR_HASHES_MAX = 1  # attributes that partition a vector index
VECTOR_FILTERS_MAX = 18  # attributes that a search of it may filter by
VECTOR_FILTER_BYTES_MAX = 10 * _KB  # of one such value (C)
VECTOR_REQUEST_BYTES_MIN = 1 * _KB  # that a search, or a write to a vector index, counts for (C)
SEARCH_RESULTS_MAX = 100
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
TRANSACTION_UNITS_FACTOR = 2  # on the table; its indexes pay once (C)
STORAGE_OVERHEAD_BYTES = 100  # that an item, and each index entry, is stored with beside its own (DG)
REPLICA_OVERHEAD_BYTES = 48  # the same, more, of an item in a global table (DG)
BURST_S = 300.0  # for how long unused capacity is kept
SCALING_TARGET_MIN = 20  # per cent of provisioned units that auto scaling may aim at
SCALING_TARGET_MAX = 90
INSIGHTS_LISTED_MAX = 100  # summaries in one answer of ListContributorInsights (B)

# Tags (DG).
TAGS_MAX = 50
TAG_KEY_CHARACTERS_MAX = 128
TAG_VALUE_CHARACTERS_MAX = 256
TAGS_BYTES_MAX = 10 * _KB  # keys and values of one resource

# Time to live (DG).
TTL_PAST_S_MAX = 5 * 365 * 86_400  # a time further back than this is taken for a mistake, and ignored

# Streams (DG, B).
STREAM_RETENTION_S = 86_400
STREAM_RECORDS_MAX = 1_000  # of one answer
STREAM_RESPONSE_BYTES_MAX = 1 * _MB
STREAM_SHARDS_MAX = 100  # of one description
STREAMS_LISTED_MAX = 100
STREAM_ITERATOR_LIFE_S = 900
STREAM_SHARD_LIFE_S = 4 * 3_600  # after which a shard is closed and followed by another (M)
PARTITION_READS_PER_S = 3_000
PARTITION_WRITES_PER_S = 1_000
PARTITION_BYTES_MAX = 10 * _GB

# Event source mappings (B and DG of Lambda): between a stream and its handler.
TRIGGER_BATCH_RECORDS_MAX = 10_000
TRIGGER_PAYLOAD_BYTES_MAX = 6 * _MB  # of the event of one invocation
TRIGGER_BATCHING_WINDOW_S_MAX = 300
TRIGGER_TUMBLING_WINDOW_S_MAX = 900
TRIGGER_STATE_BYTES_MAX = 1 * _MB  # carried from batch to batch of one tumbling window
TRIGGER_PARALLELIZATION_MAX = 10
TRIGGER_RETRIES_MAX = 10_000
TRIGGER_RECORD_AGE_S_MIN = 60
TRIGGER_RECORD_AGE_S_MAX = 604_800
TRIGGER_FILTERS_MAX = 5  # AWS raises it to 10 on request
TRIGGER_PATTERN_CHARACTERS_MAX = 4096
TRIGGER_TIMEOUT_S_MAX = 900  # of one invocation

# Backups (B; DG, point-in-time recovery).
RECOVERY_DAYS_MIN = 1
RECOVERY_DAYS_MAX = 35
SYSTEM_BACKUP_DAYS = 35  # retention of the backup of a deleted table
BACKUP_NAME_CHARACTERS_MIN = 3
BACKUP_NAME_CHARACTERS_MAX = 255
BACKUP_ARN_CHARACTERS_MIN = 37
BACKUP_ARN_CHARACTERS_MAX = 1024
BACKUPS_LISTED_MAX = 100
ITEM_VERSIONS_MAX = 1_000  # ours: of one response of ListItemVersions
PAST_CHANGES_MAX = 200_000  # ours: undone by a read of an index as of a time, and cached for further pages

# Exports, imports and bulk loads (DG, quotas; B).
TRANSFER_RECORD_LIFE_S = 90 * 86_400  # for which one is described and listed
TRANSFER_TOKEN_LIFE_S = 8 * 3_600
TRANSFERS_LISTED_MAX = 25
TRANSFERS_LISTED = 10  # by default (C)
TRANSFER_ARN_CHARACTERS_MIN = 37
TRANSFER_ARN_CHARACTERS_MAX = 1024
TRANSFER_TOKEN_CHARACTERS_MIN = 112  # of ListImports' NextToken, which SDKs check
BUCKET_NAME_CHARACTERS_MAX = 255
OBJECT_PREFIX_CHARACTERS_MAX = 1024
EXPORTS_RUNNING_MAX = 300
EXPORT_PERIOD_S_MIN = 15 * 60  # of an incremental export
EXPORT_PERIOD_S_MAX = 24 * 3_600
INCREMENTAL_BILLED_BYTES_MIN = 10_000_000  # billed for the smallest incremental export (C)
IMPORTS_RUNNING_MAX = 50
IMPORT_OBJECTS_MAX = 50_000
CSV_HEADERS_MAX = 255
CSV_HEADER_CHARACTERS_MAX = 65_536
BULK_WRITE_UNITS_MIN = 1_024

# Resource policies (B, and the error message).
RESOURCE_POLICY_BYTES_MAX = 20 * _KB  # spaces count
RESOURCE_ARN_CHARACTERS_MAX = 1283
POLICY_REVISION_CHARACTERS_MAX = 255

# Constraint violations that one response lists (C).
LISTED_REFUSALS_MAX = 10

assert ITEM_BYTES_MAX < PAGE_BYTES_MAX, "a page must be able to hold an item"
assert HASH_KEY_BYTES_MAX + RANGE_KEY_BYTES_MAX < ITEM_BYTES_MAX, "an item must be able to hold its key"
assert ITEM_BYTES_MAX < TRANSACTION_BYTES_MAX, "a transaction must be able to write the largest item"
assert TRANSACTION_BYTES_MAX < REQUEST_BYTES_MAX, "a transaction must fit a request"
assert BATCH_WRITE_REQUESTS_MAX * ITEM_BYTES_MAX < REQUEST_BYTES_MAX, "25 of the largest items fit a request"
assert EXPRESSION_BYTES_MAX < EXPRESSION_SUBSTITUTION_BYTES_MAX, (
    "a placeholder's value may be longer than the placeholder"
)
assert ITEM_BYTES_MAX < ADMITTED_BYTES_MAX, "the largest item must be read to its end"
assert PROJECTED_ATTRIBUTES_MAX <= PROJECTED_ATTRIBUTES_TOTAL_MAX, "one index is within the sum of all"
assert TABLE_CAPACITY_UNITS_MAX <= ACCOUNT_CAPACITY_UNITS_MAX, "a table is within its account's limit"
assert EXPORT_PERIOD_S_MIN < EXPORT_PERIOD_S_MAX, "some period is valid"
assert TRANSFERS_LISTED <= TRANSFERS_LISTED_MAX, "the default page size is valid"
assert 2 * MULTI_KEY_ATTRIBUTES_MAX > KEY_SCHEMA_ELEMENTS_MAX, "a global index may have the longer key"
