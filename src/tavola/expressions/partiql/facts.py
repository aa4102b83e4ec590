"""What a statement is about, without a table: for whoever decides about it before it is run.

A text that parses may still be refused here, with the `StatementError` that running it would meet as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from tavola.expressions.bindings import Substitution
from tavola.expressions.partiql.nodes import Statement
from tavola.expressions.partiql.reads import pinned_values
from tavola.expressions.partiql.translation import parameter_ref, translate
from tavola.expressions.paths import steps_of
from tavola.expressions.walks import paths_of
from tavola.values import Value, ValueMalformed, ValueRefused, admit_value


def equalities(statement: Statement, parameters: Sequence[Value] = ()) -> dict[str, tuple[Value, ...]]:
    """Return the values that top-level attributes are given by `=`, IN and OR, or by INSERT.

    An attribute is here only if every item that the statement can touch has one of the values. Parameters
    may be as they came; of too few, those that are missing are passed over with what they stand in.
    """
    translation = translate(statement)
    values = dict(translation.literals)
    for position in range(statement.parameters):
        given = deepcopy(parameters[position]) if position < len(parameters) else {}
        values[parameter_ref(position)] = _admitted(given)
    found: dict[str, list[Value]] = {name: [values[ref.name]] for name, ref in translation.item}
    where = translation.where
    if where is not None:
        found |= pinned_values(Substitution(translation.names).tree(where), values)
    return {name: tuple(given) for name, given in found.items() if all(given)}


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
    """Tell whether a SELECT goes over a whole table or index, whose partition key this is."""
    return statement.kind == "select" and hash_name not in equalities(
        statement, [{"NULL": True}] * statement.parameters
    )


def _admitted(value: Value) -> Value:
    """Return a value in its canonical form; one that will be refused, as it came."""
    try:
        admit_value(value)
    except (ValueRefused, ValueMalformed):
        pass
    return value
