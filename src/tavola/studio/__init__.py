"""Studio: the web interface for people.

A JSON API and the pages that use it, with no abilities beyond the Python API and the command line. Independent of the server
and the applications; what it needs from them is passed in by the command that starts it.
"""

from tavola.studio.api import BY_NAME, ENDPOINTS
from tavola.studio.app import CONTENT_SECURITY_POLICY, TOKEN_HEADER, create
from tavola.studio.assets import Assets
from tavola.studio.endpoint import Endpoint, encode_response
from tavola.studio.monitoring import Monitor
from tavola.studio.monitoring.monitor import AccountMonitors, ObservedBackend
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.sign_in import StudioSignIn
from tavola.studio.studio import DeclaredDesign, LogQuery, LogReader, SignedInCaller, Studio, TablesLocation
from tavola.web import Problem

__all__ = [
    "BY_NAME",
    "CONTENT_SECURITY_POLICY",
    "ENDPOINTS",
    "TOKEN_HEADER",
    "AccountMonitors",
    "Assets",
    "DeclaredDesign",
    "Endpoint",
    "LogQuery",
    "LogReader",
    "Monitor",
    "ObservedBackend",
    "Problem",
    "RequestRefused",
    "SignedInCaller",
    "Studio",
    "StudioSignIn",
    "TablesLocation",
    "create",
    "encode_response",
    "problem_of",
]
