"""Client: entities in, entities out, through one port.

The client turns operations on entities into DynamoDB requests and sends them through `Backend`, which has one method: an
operation's name and a request go out, a response comes back. It imports neither the engine nor botocore, so anything that
implements the port can be used, recorded or replaced. Import names from the module that owns them:

    connection          `Connection` and `AsyncConnection`, their pages and transactions
    effects             programs, the effects they yield, the drivers that perform them, and methods made from programs
    backend             the ports: `Backend`, `AsyncBackend` and their optional abilities
    context, retries    what all operations of one client share
    items, reading, batches, transactions, maintenance
                        the programs behind the methods
    writes, updates, unique_guards
                        one write as it was asked for and as it is sent, with the index keys and guards that go with it
    explain             `db.explain`
    errors              what can go wrong, with the data a handler needs
    streams, subscriptions, stream_changes, checkpoints, routers
                        changes from a table's stream

The most used names are also exported by `tavola` itself.
"""
