"""Facts about a statement that need no table, for access decisions before it runs.

A statement that parses may still raise the `StatementError` here that running it would raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from tavola.expressions.bindings import Substitution
from tavola.expressions.partiql.nodes import Statement
from tavola.expressions.partiql.reads import pinned_values
from tavola.expressions.partiql.translation import parameter_ref, translate
from tavola.expressions.paths import paths_of, steps_of
from tavola.values import Value, ValueMalformed, ValueRefused, admit_value


def equalities(statement: Statement, parameters: Sequence[Value] = ()) -> dict[str, tuple[Value, ...]]:
    """Return the values that top-level attributes must have, from `=`, IN and OR, or from INSERT.

    An attribute is included only if every item that the statement can touch has one of its values. Parameters need
    not be checked yet; missing ones are skipped together with their comparison.
    """
    translation = translate(statement)
    values = dict(translation.literals)
    for position in range(statement.parameters):
        parameter = deepcopy(parameters[position]) if position < len(parameters) else {}
        values[parameter_ref(position)] = _canonical(parameter)
    values_by_name: dict[str, list[Value]] = {name: [values[ref.name]] for name, ref in translation.item}
    where = translation.where
    if where is not None:
        values_by_name |= pinned_values(Substitution(translation.names).tree(where), values)
    return {name: tuple(parameter) for name, parameter in values_by_name.items() if all(parameter)}


def mentioned_attributes(statement: Statement) -> frozenset[str]:
    """Return the top-level attributes that a statement names anywhere; `*` names none."""
    translation = translate(statement)
    names = {name for name, _ in translation.item} | {name for name, _ in translation.orderings}
    names |= {str(column.steps[0]) for column in translation.columns or ()}
    resolve = Substitution(translation.names)
    for tree in (translation.where, translation.update):
        if tree is not None:
            names |= {str(steps_of(resolve.path(path))[0]) for path in paths_of(tree)}
    return frozenset(names)


def is_full_scan(statement: Statement, hash_name: str) -> bool:
    """Return whether a SELECT scans a whole table or index with this partition key."""
    return statement.kind == "select" and hash_name not in equalities(
        statement, [{"NULL": True}] * statement.parameters
    )


def _canonical(value: Value) -> Value:
    """Return a value in canonical form; an invalid one unchanged."""
    try:
        admit_value(value)
    except (ValueRefused, ValueMalformed):
        pass
    return value
