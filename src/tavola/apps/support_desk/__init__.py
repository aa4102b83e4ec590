"""The support desk: an application for the tickets of a technical support team.

Customers open tickets; operators work on them, escalate them to engineers, resolve them, attach files and give feedback on
answers. Every change of a ticket writes an event in the same transaction. The desk lists tickets by customer, status, date and
engineer, finds similar tickets with a vector index, and shows a dashboard whose numbers are maintained from the table's stream.

    domain, errors            rules and errors, independent of tables
    model                     the two tables, their items and access patterns
    store, service            the patterns on a connection, and the use cases
    changes, attachments      changes of a ticket with their events, files and long texts
    metrics                   the dashboard's numbers
    similar                   embeddings and the vector index
    blob_sweeper              deletes unreferenced blobs in the background
    web, rest, schemas        the application and its REST interface
    pages, forms              the pages
    policies                  IAM policies
    seed, month, phrases      demo data
"""
