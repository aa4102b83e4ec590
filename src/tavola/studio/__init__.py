"""Studio: the web face for people.

Holds a JSON API and the pages that use it; can do nothing that the API and the command line cannot. Knows
neither the server nor the applications: what lies in their hands is handed in by whoever starts it.
"""

from tavola.studio.api import BY_NAME, ENDPOINTS
from tavola.studio.app import CONTENT_SECURITY_POLICY, TOKEN_HEADER, create
from tavola.studio.assets import Assets
from tavola.studio.endpoint import Endpoint, encode_answer
from tavola.studio.problems import Refused, problem_of
from tavola.studio.studio import Declared, LogPort, LogQuestion, Studio, Where
from tavola.studio.watching import Watch
from tavola.studio.watching.telling import TellingBackend
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
