"""Call: one request on its way through the engine, and what the engine offers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.clock import Clock
from tavola.engine.catalog import Catalog, Table
from tavola.engine.isolation import Tokens
from tavola.entropy import Entropy
from tavola.expressions import ExpressionError
from tavola.limits import EXPRESSION_SUBSTITUTION_BYTES_MAX
from tavola.protocol import (
    AccessDeniedFault,
    ResourceNotFoundFault,
    Scope,
    ValidationFault,
    Wording,
    enveloped,
    layer,
    scope_of,
    table_arn,
    table_name_of,
)
from tavola.values import ValueRefused, admit_item


@dataclass(frozen=True, slots=True)
class Services:
    """What every operation may use."""

    catalog: Catalog
    tokens: Tokens
    clock: Clock
    entropy: Entropy
    wording: Wording
    table_delay_s: float
    begin: Callable[[], None]  # open a transaction unless one is open


@dataclass(slots=True)
class Call:
    """One request: the operation, its body, and whose tables it means."""

    operation: str
    body: bytes
    scope: Scope
    services: Services

    def table(self, name_or_arn: str) -> Table:
        """Return the table that a request of the data plane names, by name or ARN."""
        catalog = self.services.catalog
        table = catalog.find(self.scope, name_or_arn)
        if table is None and name_or_arn.startswith("arn:"):
            table = catalog.find(self.own(name_or_arn), table_name_of(name_or_arn))
        if table is None or not catalog.is_active(table):
            raise ResourceNotFoundFault()
        return table

    def own(self, name_or_arn: str) -> Scope:
        """Return the caller's scope; refuse an ARN of another account, or one of another region."""
        named = scope_of(name_or_arn)
        if named is None or named == self.scope:
            return self.scope
        if named.account != self.scope.account:
            caller = f"arn:aws:iam::{self.scope.account}:root"
            raise AccessDeniedFault(
                f"User: {caller} is not authorized to perform: dynamodb:{self.operation} "
                f"on resource: {table_arn(named, table_name_of(name_or_arn))}"
            )
        raise ResourceNotFoundFault()

    def refuse(self, text: str) -> ValidationFault:
        """Return the fault of a request that is wrong whatever the table holds."""
        return ValidationFault(enveloped(self.operation, self.services.wording, text))

    def admit(self, attributes: dict[str, Any], told: Callable[[ValueRefused], str] | None = None) -> int:
        """Admit attributes from outside and return their size; refuse in the operation's words."""
        try:
            return admit_item(attributes)
        except ValueRefused as refused:
            if refused.bare and told is None:
                raise ValidationFault(refused.classic) from refused
            modern = layer(self.operation, self.services.wording) == "modern"
            if modern or told is None:
                raise self.refuse(refused.modern if modern else refused.classic) from refused
            raise self.refuse(told(refused)) from refused

    def admit_values(self, values: Mapping[str, dict[str, Any]]) -> None:
        """Admit the values of expression placeholders, up to the bytes they may have together."""
        total = 0
        for name, value in values.items():
            total += self.admit(
                {name: value},
                lambda refused, name=name: (  # type: ignore[misc]  # bound now
                    f"ExpressionAttributeValues contains invalid value: {refused.classic} for key {name}"
                ),
            )
        if total > EXPRESSION_SUBSTITUTION_BYTES_MAX:
            raise self.refuse(
                "ExpressionAttributeValues have exceeded the maximum allowed size of "
                f"{EXPRESSION_SUBSTITUTION_BYTES_MAX} bytes"
            )

    def worded(self, error: ExpressionError) -> ValidationFault:
        """Return an expression's refusal as the operation tells it."""
        return self.refuse(str(error))
