"""Client: entities in, entities out, through one port.

The client turns operations on entities into DynamoDB requests and sends them through `Backend`, which has one method: an
operation's name and a request go out, a response comes back. It imports neither the engine nor botocore, so anything that
implements the port can be used, recorded or replaced. Import names from the module that owns them:

    db                  `Db` and `AsyncDb`, their pages and transactions
    effects             programs, the effects they yield, and the drivers that perform them
    methods             methods of `Db` and `AsyncDb` from one program
    backend             the ports: `Backend`, `AsyncBackend` and their optional abilities
    context, retries    what all operations of one client share
    items, reading, batches, transactions, maintenance
                        the programs behind the methods
    explain             `db.explain`
    errors, cancellations
                        what can go wrong, with the data a handler needs
    streams, subscriptions, stream_changes, checkpoints, routers
                        changes from a table's stream

The most used names are also exported by `tavola` itself.
"""
