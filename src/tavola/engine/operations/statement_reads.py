"""SELECT: pages of results, and the NextToken that continues them.

A WHERE clause may select several partitions, or several key ranges of one; they are read one after another. A token
holds the current range and the last key read in it. It is valid only for the same statement and parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tavola.engine.capacity import CapacityUsage, capacity_mode
from tavola.engine.catalog import Index
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.queries import (
    fetches_from_table,
    make_filter,
    make_projector,
    page_units,
    record_page_access,
)
from tavola.engine.operations.responses import render_list
from tavola.engine.operations.statement_plans import PlannedRead, PlannedStatement, plan_read
from tavola.engine.reads import Page, Span, last_key, read_page, select
from tavola.expressions.partiql import Range
from tavola.keys import Bounds, partition_bounds
from tavola.limits import PAGE_BYTES_MAX, STATEMENT_READS_PAGE_MAX
from tavola.protocol.faults import ValidationFault
from tavola.protocol.statements import ExecuteStatementRequest
from tavola.values import Item, Value, decode_item

_PURPOSE = "statement"
_EVERYTHING = Bounds(b"", None)


class _PageStart(NamedTuple):
    """Where a page begins: the position of a span, and the key to start after."""

    span: int
    key: Item | None


def select_items(
    call: OperationCall,
    request: ExecuteStatementRequest,
    planned: PlannedStatement,
    index: Index | None,
    parameters: Sequence[Value],
) -> bytes:
    """Return a page of a SELECT."""
    if index is not None and index.is_global and request.consistent_read:
        raise ValidationFault("Strongly consistent read is not supported on Global Secondary Indexes")
    read = plan_read(planned, index)
    start = _PageStart(0, None)
    if request.next_token is not None:
        start = _parse_token(call, request.next_token, _statement_digest(planned, parameters))
    return _SelectPage(call, request, read, parameters).render(start)


def check_no_token(request: ExecuteStatementRequest) -> None:
    """Refuse a NextToken with a statement that returns no pages."""
    if request.next_token is not None:
        raise ValidationFault("NextToken does not match request")


def _statement_digest(planned: PlannedStatement, parameters: Sequence[Value]) -> str:
    """Return the digest of statement, parameters and table that a token is bound to."""
    return digest_payload((planned.table.definition.number, planned.statement.text, parameters))


def _parse_token(call: OperationCall, token: str, digest: str) -> _PageStart:
    payload = call.services.token_signer.open(_PURPOSE, call.scope, token)
    if payload is None:
        raise ValidationFault("Invalid NextToken")
    if payload["of"] != digest:
        raise ValidationFault("NextToken does not match request")
    return _PageStart(payload["span"], payload["key"])


class _SelectPage:
    """One page of a SELECT while it is read."""

    def __init__(
        self,
        call: OperationCall,
        request: ExecuteStatementRequest,
        read: PlannedRead,
        parameters: Sequence[Value],
    ) -> None:
        self.call = call
        self.parameters = parameters
        self.request = request
        self.read = read
        self.plan = read.planned.plan
        self.spans = self._spans()
        self.fetches = fetches_from_table(read.index, None, self.plan.projection)
        self.usage = CapacityUsage(read.planned.table, read.planned.statement.table)

    def render(self, start: _PageStart) -> bytes:
        """Read from `start` until the page is full; return the response body."""
        exact = self.read.ranges is not None and self.read.ranges.exact
        keep = make_filter(
            None if exact else self.plan.where, self.plan.bindings, self.read.index, self.fetches
        )
        shape = make_projector(self.read.index, self.plan.projection, self.fetches)
        most = self.request.limit
        if len(self.spans) > 1:
            most = min(most or STATEMENT_READS_PAGE_MAX, STATEMENT_READS_PAGE_MAX)
        chosen: list[bytes] = []
        seen = 0
        size = 0
        at, key = start
        last: Item | None = None
        following: _PageStart | None = None
        while at < len(self.spans):
            span = self._continue_after(self.spans[at], key)
            page = read_page(span, None if most is None else most - seen)
            self._charge(span, page)
            chosen += select(page.lines, keep, shape)
            seen += len(page.lines)
            size += page.bytes
            if page.lines:
                last = last_key(span, decode_item(page.lines[-1][0]))
            full = seen == most or size >= PAGE_BYTES_MAX
            if full and page.more and not span.at_most_one:
                following = _PageStart(at, last)
                break
            at, key = at + 1, None
            if full and at < len(self.spans):
                following = _PageStart(at, None)
                break
        return render_list("Items", chosen, self._response_members(last, following))

    def _response_members(self, last: Item | None, following: _PageStart | None) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if following is not None:
            digest = _statement_digest(self.read.planned, self.parameters)
            payload = {"of": digest, "span": following.span, "key": following.key}
            members["NextToken"] = self.call.services.token_signer.sign(_PURPOSE, self.call.scope, payload)
            members["LastEvaluatedKey"] = last
        mode = capacity_mode(self.request.return_consumed_capacity)
        if mode is not None:
            members["ConsumedCapacity"] = self.usage.render(mode)
        return members

    def _spans(self) -> list[Span]:
        table, index = self.read.planned.table, self.read.index
        emulation = self.call.services.emulation
        if emulation is not None:
            table = emulation.table_view(table, index, self.request.consistent_read)
        ranges = self.read.ranges
        if ranges is None:
            return [Span(table, index, _EVERYTHING)]
        schema = table.schema if index is None else index.schema

        def span(each: Range) -> Span:
            return Span(
                table,
                index,
                each.bounds,
                reverse=self.read.reverse,
                at_most_one=index is None and each.at_most_one,
                partition=partition_bounds(schema, (each.partition,)).lower
                if self.call.records_accesses
                else None,
            )

        return [
            span(each)
            for each in ranges.ordered(descending=self.read.partitions_reversed, reverse=self.read.reverse)
        ]

    def _continue_after(self, span: Span, key: Item | None) -> Span:
        if key is None:
            return span
        entry = b"" if span.index is None else span.index.schema.key_of(key)
        return replace(span, after=(entry, span.table.schema.key_of(key)))

    def _charge(self, span: Span, page: Page) -> None:
        consistent = self.request.consistent_read
        consumed = page_units(span, page, self.fetches, self.usage.table_name, consistent)
        if self.call.services.emulation is not None:
            self.call.services.emulation.charge_page(
                span, consumed.reads + sum(consumed.index_reads.values())
            )
        if self.call.visit is not None and self.call.visit.touches is not None:
            record_page_access(self.call, span, consumed)
        self.usage.reads += consumed.reads
        for name, units in consumed.index_reads.items():
            self.usage.index_reads[name] = self.usage.index_reads.get(name, 0.0) + units
