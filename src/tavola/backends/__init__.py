"""Backends: the other ends of the client's port.

Holds the engine in this process, AWS or any endpoint by botocore, and a recorder for either. Modules that
need botocore are entered by name and never by this door, because botocore is an extra and takes a fifth of
a second to import.
"""

from tavola.backends.embedded import EmbeddedBackend
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
from tavola.backends.recording import RecordedCall, RecordingBackend

__all__ = [
    "AnswerDamaged",
    "AnswerUnreadable",
    "BackendError",
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
