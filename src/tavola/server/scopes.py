"""Scopes: whose tables a request means, read from the credential that it was signed with.

A credential is `key/date/region/service/aws4_request`. Its region is taken as it comes, and its key stands
for an account: twelve digits are the account itself, a key in AWS's form carries one, any other key means
the default account. Nothing is verified here; this tells tenants apart, it does not keep them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from tavola.protocol.accounts import DEFAULT_SCOPE, account_of_key
from tavola.protocol.arns import Scope

_CREDENTIAL = re.compile(rb"Credential=([^,\s&]+)")
_REGION = re.compile(r"[a-z0-9-]{1,63}")

_PREFIX_BYTES_MAX = 256
_KNOWN_MAX = 1024

_known: dict[bytes, Scope] = {}


def scope_of_request(fields: Mapping[bytes, bytes], url: bytes) -> Scope:
    """Return the scope of a request from its Authorization header or its query; without both, the default.

    The part before the first comma names the credential in what every SDK sends and is the same for a
    day, so it is parsed once. Header names in `fields` are lower-case.
    """
    authorization = fields.get(b"authorization")
    if authorization is None:
        return DEFAULT_SCOPE if len(url) < 2 else _scope_of_query(url)
    prefix = authorization.partition(b",")[0]
    found = _known.get(prefix)
    if found is not None:
        return found
    credential = _CREDENTIAL.search(prefix)
    if credential is None:  # another order of the parts: read it all, and remember nothing
        credential = _CREDENTIAL.search(authorization)
        return DEFAULT_SCOPE if credential is None else parse_credential(credential[1])
    scope = parse_credential(credential[1])
    if len(prefix) <= _PREFIX_BYTES_MAX:
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[prefix] = scope
    return scope


def parse_credential(credential: bytes) -> Scope:
    """Return the scope that a credential names; what is missing or malformed is the default."""
    parts = credential.decode("latin-1").split("/")
    region = parts[2] if len(parts) > 2 and _REGION.fullmatch(parts[2]) else DEFAULT_SCOPE.region
    return Scope(account_of_key(parts[0]) or DEFAULT_SCOPE.account, region)


def _scope_of_query(url: bytes) -> Scope:
    found = _CREDENTIAL.search(url.partition(b"?")[2])
    return DEFAULT_SCOPE if found is None else parse_credential(unquote_to_bytes(found[1]))
