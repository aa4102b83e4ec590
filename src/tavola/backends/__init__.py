"""Backends: the other ends of the client's port.

Holds the engine in this process, AWS or any endpoint over HTTP, and a recorder for either, each with a twin for event
loops. What needs botocore is entered by name and never by this door, because botocore is an extra and takes a fifth of
a second to import; so is what needs sockets, which an engine in this process does not.
"""

from tavola.backends.credentials import Credentials
from tavola.backends.embedded import AsyncEmbeddedBackend, EmbeddedBackend
from tavola.backends.errors import (
    AnswerDamaged,
    AnswerUnreadable,
    BackendError,
    CredentialsMissing,
    EndpointUnreachable,
    EndpointUntrusted,
    ExtraMissing,
    MockRefused,
    PastUnavailable,
    RegionMissing,
)
from tavola.backends.recording import AsyncRecordingBackend, RecordedCall, RecordingBackend

__all__ = [
    "AnswerDamaged",
    "AnswerUnreadable",
    "AsyncEmbeddedBackend",
    "AsyncRecordingBackend",
    "BackendError",
    "Credentials",
    "CredentialsMissing",
    "EmbeddedBackend",
    "EndpointUnreachable",
    "EndpointUntrusted",
    "ExtraMissing",
    "MockRefused",
    "PastUnavailable",
    "RecordedCall",
    "RecordingBackend",
    "RegionMissing",
]
