"""Rest: the support desk as JSON over HTTP.

One module for each noun, each with a router; `web` puts them together. What is asked most (a ticket, a customer's list, the numbers)
goes the shortest way: a `Direct` route, one read, bytes.
"""

from tavola.apps.support_desk.rest.boards import DAYS, DAYS_MAX, Board, Shown
from tavola.apps.support_desk.rest.callers import Callers
from tavola.apps.support_desk.rest.desk import Desk, desk_of, moment_of, problem_of_desk
from tavola.apps.support_desk.rest.files import FILE_BYTES_MAX, kind_of
from tavola.apps.support_desk.rest.routers import ROUTERS, TAGS

__all__ = [
    "DAYS",
    "DAYS_MAX",
    "FILE_BYTES_MAX",
    "ROUTERS",
    "TAGS",
    "Board",
    "Callers",
    "Desk",
    "Shown",
    "desk_of",
    "kind_of",
    "moment_of",
    "problem_of_desk",
]
