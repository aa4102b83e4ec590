"""A certificate and its key, or why they cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tavola.server.errors import CertificateUnusable
from tavola.server.safeguards import tls_context
from tests.server.certificates import make_certificates

LOCKED = """\
-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,3C1F2A6C8B0D4E5F3C1F2A6C8B0D4E5F

AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
-----END EC PRIVATE KEY-----
"""


def test_a_pair_makes_a_context(tmp_path: Path) -> None:
    """A certificate and its key are accepted; TLS 1.2 is the minimum."""
    files = make_certificates(tmp_path, "localhost")
    context = tls_context(files.certificate, files.key)

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_wrong_pair_is_reported(tmp_path: Path) -> None:
    """Each way to be wrong has its reason, in a sentence with both files."""
    (tmp_path / "other").mkdir()
    files = make_certificates(tmp_path, "localhost")
    other = make_certificates(tmp_path / "other", "localhost", seed=2)
    locked = tmp_path / "locked.key"
    locked.write_text(LOCKED)
    text = tmp_path / "text"
    text.write_text("no PEM at all")
    wrong = [
        (files.certificate, other.key, "the key does not belong to the certificate"),
        (files.certificate, locked, "the key is protected with a passphrase"),
        (files.certificate, text, "the key file is not a key in PEM format"),
        (text, files.key, "the certificate file is not a certificate in PEM format"),
        (files.key, files.certificate, "the certificate file is not a certificate in PEM format"),
        (files.certificate, tmp_path / "missing", "cannot be read (No such file or directory)"),
        (tmp_path / "missing", files.key, "cannot be read (No such file or directory)"),
        (tmp_path, files.key, "cannot be read (Is a directory)"),
    ]
    for certificate, key, reason in wrong:
        with pytest.raises(CertificateUnusable) as raised:
            tls_context(certificate, key)
        assert reason in str(raised.value)
        assert str(certificate) in str(raised.value)
        assert str(key) in str(raised.value)
