"""Web identities: JSON Web Tokens, with which another identity system vouches for its users.

An account names the issuers that it trusts, with their public keys, so nothing is fetched from the network. A token is
accepted if one of the issuer's keys signed it, it is valid now, and it was made for one of the provider's audiences. The
algorithm follows from the key, never from the token: RS256 for RSA and ES256 for P-256. A token that says otherwise
(`none`, or HS256 with the public key as its secret) is refused. So are private and symmetric keys in the directory.

Signatures are verified by joserfc, which is imported with the first provider: it is the extra `auth`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from types import ModuleType
from typing import Any

from msgspec import Struct

from tavola.errors import ErrorKind
from tavola.iam.errors import IamError, SessionRefused
from tavola.iam.patterns import Values
from tavola.iam.principals import issuer_name

TOKEN_CHARACTERS_MAX = 20_000
NOT_BEFORE_LEEWAY_S = 60  # the issuer's clock may be ahead of ours

_ISSUER = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?")
_ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}
_CLAIMS = ("aud", "sub", "amr")  # those that AWS offers as condition keys


class OidcProvider(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An issuer of tokens that an account trusts: who they must be for, and its public keys as PEM or JWK."""

    audiences: tuple[str, ...]
    keys: tuple[str | dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key of an issuer, and the only algorithm that it verifies."""

    id: str | None
    algorithm: str
    key: Any


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """A provider with its keys imported."""

    issuer: str
    audiences: frozenset[str]
    keys: tuple[PublicKey, ...]


@dataclass(frozen=True, slots=True)
class WebIdentity:
    """What a verified token says of its holder."""

    issuer: str
    subject: str
    audience: str
    condition_keys: tuple[tuple[str, Values], ...]  # such as `login.example.com:sub`


class ProviderRefused(IamError):
    """A provider of web identities is invalid; carries the reason."""


class JoserfcMissing(IamError):
    """The package that verifies tokens is not installed."""

    code = "package-missing"
    kind = ErrorKind.NOT_INSTALLED
    remedy = "Run: pip install 'tavola[auth]'"

    def __init__(self) -> None:
        super().__init__("web identity providers need joserfc, which is not installed")


def import_provider(issuer: str, provider: OidcProvider) -> TrustedIssuer:
    """Return a provider with its keys imported, or refuse it."""
    if _ISSUER.fullmatch(issuer) is None:
        raise ProviderRefused(
            "an issuer is a URL without query, exactly as in the claim iss, such as https://login.example.com"
        )
    if not provider.audiences or not all(provider.audiences):
        raise ProviderRefused("at least one audience is required, and none may be empty")
    if not provider.keys:
        raise ProviderRefused("at least one public key is required")
    return TrustedIssuer(
        issuer, frozenset(provider.audiences), tuple(_import_key(key) for key in provider.keys)
    )


def verify_web_identity(issuers: Mapping[str, TrustedIssuer], token: str, now_s: float) -> WebIdentity:
    """Return the identity that a token proves, or refuse it as AWS does."""
    key_id, stated_issuer = _read_unverified(token)
    issuer = issuers.get(stated_issuer)
    if issuer is None:
        raise _invalid_token(f"No OpenIDConnect provider found in your account for {stated_issuer}")
    claims = _verify_signature(
        token, [key for key in issuer.keys if key_id is None or key.id in (None, key_id)]
    )
    if claims.get("iss") != issuer.issuer:
        raise _invalid_token("The issuer of the token is another one")
    expires_s, not_before_s = _seconds(claims.get("exp")), _seconds(claims.get("nbf", 0))
    if expires_s is None or not_before_s is None:
        raise _invalid_token(
            "Missing or invalid claim: exp and nbf are numbers of seconds, and exp is required"
        )
    if expires_s <= now_s:
        raise SessionRefused(
            "ExpiredTokenException",
            f"Token expired: current time {now_s:.0f} must be before the expiration time {expires_s:.0f}",
        )
    if not_before_s > now_s + NOT_BEFORE_LEEWAY_S:
        raise _invalid_token("Token is not yet valid")
    audiences = [audience for audience in _texts(claims.get("aud")) if audience in issuer.audiences]
    if not audiences:
        raise _invalid_token("Incorrect token audience")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise _invalid_token("Missing a required claim: sub")
    prefix = issuer_name(issuer.issuer).lower()
    values = {**claims, "aud": audiences}
    keys = tuple((f"{prefix}:{name}", _texts(values.get(name))) for name in _CLAIMS)
    return WebIdentity(issuer.issuer, subject, audiences[0], tuple(pair for pair in keys if pair[1]))


def _import_key(key: str | dict[str, Any]) -> PublicKey:
    if isinstance(key, str) and "PUBLIC KEY" not in key:
        raise ProviderRefused(
            "expected a public key in PEM format; a private key or a certificate is not one"
        )
    if isinstance(key, dict) and ("d" in key or key.get("kty") == "oct"):
        raise ProviderRefused("expected a public key; a private or symmetric key must not be in this file")
    imported = _import_with_joserfc(key)
    algorithm = _ALGORITHMS.get(imported.key_type)
    if algorithm is None or (algorithm == "ES256" and imported.curve_name != "P-256"):
        raise ProviderRefused("only RSA keys (RS256) and P-256 keys (ES256) verify tokens")
    size = imported.raw_value.key_size
    if algorithm == "RS256" and size < 2048:
        raise ProviderRefused(f"an RSA key has at least 2048 bits, not {size}")
    stated = key.get("alg") if isinstance(key, dict) else None
    if stated not in (None, algorithm):
        raise ProviderRefused(f"a key for {stated} is not supported; use RS256 or ES256")
    key_id = key.get("kid") if isinstance(key, dict) else None
    return PublicKey(key_id if isinstance(key_id, str) else None, algorithm, imported)


def _import_with_joserfc(key: str | dict[str, Any]) -> Any:
    jwk = _joserfc("jwk")
    problems: list[str] = []
    for kind in _ALGORITHMS if isinstance(key, str) else (str(key.get("kty")),):
        try:
            return jwk.import_key(key, kind)
        except Exception as error:  # noqa: BLE001 - joserfc passes on whatever its parsers raise
            problems.append(str(error))
    raise ProviderRefused(f"a key cannot be read ({'; '.join(problems)})")


def _read_unverified(token: str) -> tuple[str | None, str]:
    """Return the key id and the issuer that a token states, which say what to verify it with."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise _invalid_token("The token is too long")
    decode = _joserfc("util").json_b64decode
    try:
        header, claims, _ = token.encode("ascii").split(b".")
        key_id, issuer = decode(header).get("kid"), decode(claims).get("iss")
    except Exception as error:  # invalid in any of many ways
        raise _invalid_token("The ID Token provided is not a valid JWT") from error
    if not isinstance(issuer, str):
        raise _invalid_token("Missing a required claim: iss")
    return key_id if isinstance(key_id, str) else None, issuer


def _verify_signature(token: str, keys: list[PublicKey]) -> dict[str, Any]:
    """Return the claims of a token that one of these keys signed."""
    jwt, jws = _joserfc("jwt"), _joserfc("jws")
    for key in keys:
        # Unknown header parameters are allowed, as RFC 7515 says; those that `crit` names are not.
        registry = jws.JWSRegistry(algorithms=[key.algorithm], strict_check_header=False)
        try:
            claims: dict[str, Any] = jwt.decode(token, key.key, [key.algorithm], registry).claims
        except Exception:  # noqa: BLE001 - signed by another key, in another way, or not at all
            continue
        return claims
    raise _invalid_token("Couldn't verify the token with a public key of the OpenIDConnect provider")


def _texts(value: Any) -> Values:
    values = value if isinstance(value, list) else [value]
    return tuple(text for text in values if isinstance(text, str))


def _seconds(value: Any) -> float | None:
    """Return a time in a claim; None if it is not a finite number. NaN would be neither before nor after any time."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None


def _invalid_token(reason: str) -> SessionRefused:
    return SessionRefused("InvalidIdentityToken", reason)


def _joserfc(module: str) -> ModuleType:
    try:
        return import_module(f"joserfc.{module}")
    except ImportError:
        raise JoserfcMissing from None
