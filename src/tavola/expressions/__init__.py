"""Expressions: DynamoDB's expression language and PartiQL, without any table.

Conditions, key conditions, updates and projections are parsed, checked in DynamoDB's order and words, and compiled to
functions that evaluate or change an item. Legacy parameters and PartiQL statements become the same trees. The package
knows values and keys; it never sees a request, a table, or any item but the one it is given. Import names from the
module that owns them:

    plans              text to a compiled condition, update, projection or key condition; cached, since programs
                       repeat their expressions
    conditions, updates, projections, key_conditions, search_conditions
                       the compiled forms, and how they are evaluated or applied
    bindings           the values and names behind placeholders
    legacy             Expected, AttributeUpdates and other older parameters
    partiql            statements and what they read
    nodes, walks       the syntax tree
    parser, lexer, checker, reserved
                       text to tree
    renderer           trees back to text and placeholders
    errors             `ExpressionError`, `UpdateRefused`
"""
