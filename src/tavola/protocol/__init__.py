"""Protocol: the operations of DynamoDB as data.

Each operation has a request type, checks that need no table, and the faults that AWS answers, in AWS's own words.
Nothing here reads a table, an item or an expression: the engine executes requests and the server speaks HTTP, and
both use these types. Import names from the module that owns them:

    faults             every error response of AWS, as an exception
    arns               ARNs, and the account and region (`Scope`) that a request acts in
    requests           `parse`: a JSON body becomes a checked request
    operations         the registry of operations: request type and check by name
    items, queries, batches, transactions, statements, vectors
                       requests of the data plane
    tables, table_changes, definitions, backups, transfers, streams, tags, policies, insights, kinesis, replicas
                       requests of the control plane
    policy_documents   checks of IAM and resource policy documents
    instants           points in time as people write them
    message_style      which of AWS's two validation layers words an error

`fields`, `shapes`, `coercion` and `constraints` are the machinery behind `requests`.
"""
