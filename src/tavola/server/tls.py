"""TLS: the server's certificate and key, as what a listening socket needs."""

from __future__ import annotations

import ssl
from pathlib import Path

from tavola.server.errors import CertificateUnusable

_REASONS = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "CA_MD_TOO_WEAK": "the certificate is signed in a way that is no longer safe",
    "EE_KEY_TOO_SMALL": "the certificate's key is too short to be safe",
}


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the context of a server that shows this certificate; TLS 1.2 is the least it speaks.

    `certificate` holds the server's own and then those that lead to its root, all as PEM.
    """
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror})"
            raise CertificateUnusable(certificate, key, reason) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password given, OpenSSL would stop and ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        told = _REASONS.get(error.reason or "")
        raise CertificateUnusable(certificate, key, told or _reason_by_look(certificate, key)) from error
    except (OSError, ValueError) as error:
        raise CertificateUnusable(certificate, key, str(error)) from error
    return context


def _reason_by_look(certificate: Path, key: Path) -> str:
    """Return what is wrong with the two files, where OpenSSL does not say which it is."""
    if b"ENCRYPTED" in key.read_bytes():
        return "the key is locked with a passphrase; give one without"
    which = "key" if b"-----BEGIN CERTIFICATE-----" in certificate.read_bytes() else "certificate"
    return f"the {which} is no {which} in PEM"
