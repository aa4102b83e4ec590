"""The routes under load: what wrk sends for each, on tickets and customers that are there."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CONNECTIONS: Final = 16
PAUSE_MS: Final = 8  # between an answer and the next request of a connection, in a paced run
SAMPLED: Final = 20_000  # tickets and customers that are asked for, at random


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the desk."""

    name: str
    title: str
    request: str  # Lua: the request, of `ticket`, `customer` and `number`
    writes: bool = False


ROUTES: Final = (
    Route("ticket", "ticket by id", 'wrk.format("GET", "/tickets/" .. ticket)'),
    Route("customer", "tickets of a customer, 20", 'wrk.format("GET", "/tickets?customer=" .. customer)'),
    Route("dashboard", "dashboard", 'wrk.format("GET", "/dashboard")'),
    Route(
        "create",
        "create a ticket",
        'wrk.format("POST", "/tickets", {["Content-Type"] = "application/json", '
        '["Idempotency-Key"] = mark .. "-" .. number}, '
        '"{\\"customer_id\\":\\"" .. customer .. "\\",\\"subject\\":\\"Printer " .. number .. " is offline\\",'
        '\\"symptom_text\\":\\"The printer on floor " .. number .. " shows E-42 and prints nothing at all.\\"}")',
        writes=True,
    ),
)

_SCRIPT: Final = """\
local tickets = {tickets}
local customers = {customers}
local mark = "{mark}"
local count = 0
function init(args) math.randomseed({seed}) end
{delay}
function request()
  count = count + 1
  local number = tostring(count)
  local ticket = tickets[math.random(#tickets)]
  local customer = customers[math.random(#customers)]
  return {request}
end
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('@@{{"requests":%d,"duration_us":%d,"status":%d,"socket":%d,"timeout":%d,"p50_us":%d,"p99_us":%d}}\\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write, errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


def script(
    route: Route, tickets: Sequence[str], customers: Sequence[str], mark: str, seed: int, *, paced: bool
) -> str:
    """Return wrk's script for a route; `mark` keeps the keys of a run's creates apart from all others."""
    delay = f"function delay() return math.random({PAUSE_MS - 2}, {PAUSE_MS + 2}) end" if paced else ""
    return _SCRIPT.format(
        tickets=_lua(tickets),
        customers=_lua(customers),
        mark=mark,
        seed=seed,
        delay=delay,
        request=route.request,
    )


def _lua(texts: Sequence[str]) -> str:
    return "{" + ",".join(json.dumps(text) for text in texts) + "}"
