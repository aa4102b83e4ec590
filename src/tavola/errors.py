"""TavolaError: what every error of Tavola is.

The families, each in the room that raises it:

    TavolaError
    ├── Fault                 protocol: an answer that DynamoDB defines (the same on every backend)
    ├── ValueRefused          values: an attribute value that DynamoDB does not accept
    ├── ValueMalformed        values: JSON that is no attribute value at all
    ├── PriceError            prices: a region, date or price that no price book has
    ├── KeyRefused            keys: an item or key that does not fit a key schema
    ├── TemplateRefused       keys: a key template that cannot be declared so, with the place
    ├── KeyPartMissing        keys: a key whose template has a field without a value
    ├── KeyPartRefused        keys: a value that a key template cannot hold
    ├── ExpressionError       expressions: a text that does not parse, check or apply
    ├── PolicyRefused         protocol: a policy document that cannot be read, with the place
    ├── IamError              iam: a directory that cannot be read, a name that is not in it
    ├── StoreError            engine: the file cannot be opened, read or written
    ├── CopyIncomplete        engine: a backup or restore that lacks items of its source
    ├── EmulationRefused      engine: a hardship that cannot be emulated, or not so
    ├── ConnectionRefused     connections: a target that cannot be connected to
    ├── ModelError            model: a declaration, question, value or document that cannot be honoured
    ├── FormatRefused         iac: a foreign file that no design can be read from, with the place
    ├── ReaderMissing         iac: a format whose reader needs a library that is not installed
    ├── ConditionFailed       client: a write whose condition, lock or unique value did not hold
    ├── TransactionCancelled  client: a transaction of which nothing was done, with a reason for each intent
    ├── TransactionRefused    client: a transaction that DynamoDB would not take, told before it is asked
    ├── BatchUnfinished       client: a batch of which DynamoDB left a part undone, with what is left
    ├── TableMismatch         client: a table that is not its model's, and cannot be made so in place
    ├── TableUnusable         client: a table in a state that waiting does not end
    ├── KeyNotMade            client: a table that is to have a key which nobody has made
    ├── CheckpointRefused     client: a checkpoint of other work or of another design
    ├── PatternError          patterns: an entity, path, blob, walk or request that a pattern cannot work with
    ├── RequestMalformed      client: a request that cannot be written as JSON
    ├── StreamError           client: a stream, record or change that cannot be read or dealt with
    ├── BackendError          backends: an endpoint that does not answer, or not as DynamoDB does
    ├── ConnectionClosed      connections: a handle that was closed
    ├── TransferError         engine: a file, row or bucket that cannot be moved in or out
    ├── CertificateUnusable   server: a certificate or key for TLS that cannot be used
    ├── AccessLogUnusable     server: an access log that cannot be written
    ├── LogKeyMalformed       server: what is to be looked for in a log, and is no key
    ├── LogSecretUnreadable   server: the secret of a log's hashes, which cannot be read
    ├── CostRefused           design: a design or a number that no month can be computed of
    ├── SolveRefused          design: entities or needs that no keys can be found for
    ├── Problem               web: an answer that is no success, as whoever sent the request is told it
    ├── SettingsRefused       apps: a setting that an application cannot be started with
    ├── AnalyserError         apps: an analysis of Terraform code that could not begin
    ├── IntakeRefused         apps: a file that holds no review result
    ├── AddressTaken          web: an address that cannot be listened on
    ├── Refused               studio: a question that the studio does not answer
    ├── StudioMissing         cli: the web stack of the studio, which is not installed
    ├── LintError             design: a rule that the linter does not know
    ├── IacError              iac: a design without infrastructure, a change that is not made, a file that is not Tavola's
    ├── CopyGivenUp           cli: a backup or restore that was waited for, and taken back
    ├── SimulationRefused     design: a workload or scenario that nothing can be simulated of
    ├── DesignRefused         cli: a text that names no design, or one that cannot be imported
    ├── PolicyUnreadable      cli: a file that is to hold a policy and does not
    ├── TargetRefused         cli: a command line that names nothing that can be asked
    └── TriggerError          triggers: a mapping, filter, stream or file that a trigger cannot work with
"""

from __future__ import annotations


class TavolaError(Exception):
    """A sentence that a person can act on; the data behind it is on the error as attributes."""
