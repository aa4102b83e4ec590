"""The Terraform review history: an application that stores every review of Terraform runs.

A reviewer (a person, an AI service or an analyser such as checkov) submits the result of a Spacelift run: its code, findings, risk and cost. The
application stores it as version 1 of a review, and every later change (a new assessment, fixes, another status) as a further
immutable version with an audit entry. From the table's stream it maintains statistics: risk by day and stack, and how
often an issue repeats.

    domain, errors                 rules and errors, independent of tables
    model, review_fields           the table, its items and access patterns
    results                        the JSON that reviewers submit
    drafts                         builds the next version of a review
    store, service, verification   the patterns on a connection, the use cases, the check for tampering
    statistics, projector          the arithmetic of statistics, and their maintenance from the stream
    intake, analysers, checkov, checkov_report   results from files and from analysers
    web, requests, review_routes, report_routes, schemas   the REST interface
    pages, forms, risk_trend, code_diff   the pages
    policies                       IAM policies
    seed, seed_issues              demo data
"""
