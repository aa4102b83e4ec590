"""Studio: the web interface for people.

A JSON API and the pages that use it, with no abilities beyond the Python API and the command line. Independent of the server
and the applications; what it needs from them is passed in by the command that starts it.
"""

from tavola.studio.api import BY_NAME, ENDPOINTS
from tavola.studio.app import CONTENT_SECURITY_POLICY, TOKEN_HEADER, create
from tavola.studio.assets import Assets
from tavola.studio.endpoint import Endpoint, encode_answer
from tavola.studio.monitoring import Watch
from tavola.studio.monitoring.observed_backend import TellingBackend
from tavola.studio.problems import Refused, problem_of
from tavola.studio.studio import Declared, LogPort, LogQuestion, Studio, Where
from tavola.web import Problem

__all__ = [
    "BY_NAME",
    "CONTENT_SECURITY_POLICY",
    "ENDPOINTS",
    "TOKEN_HEADER",
    "Assets",
    "Declared",
    "Endpoint",
    "LogPort",
    "LogQuestion",
    "Problem",
    "Refused",
    "Studio",
    "TellingBackend",
    "Watch",
    "Where",
    "create",
    "encode_answer",
    "problem_of",
]
