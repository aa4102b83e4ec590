"""Web identity tokens: what an issuer's key signed for us is accepted, and nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from tavola.iam import (
    Directory,
    InvalidDirectory,
    JoserfcMissing,
    OidcProvider,
    ProviderRefused,
    SessionRefused,
    parse_directory,
    render_directory,
    web_identity,
)
from tavola.iam.web_identity import import_provider, verify_web_identity
from tests.iam.tables import ACCOUNT, NOW_S
from tests.planted import plant

ISSUER, OTHER_ISSUER = "https://login.example.com/realms/shop", "http://localhost:9000"


@cache
def rsa_key(number: int = 0) -> RSAKey:
    """Return an RSA key that all tests share; making one takes a while."""
    return RSAKey.generate_key(2048)


@cache
def ec_key(number: int = 0) -> ECKey:
    """Return a P-256 key that all tests share."""
    return ECKey.generate_key("P-256")


def public_jwk(key: RSAKey | ECKey, **members: Any) -> dict[str, Any]:
    """Return a public key as a JWK."""
    return {**key.as_dict(private=False), **members}


def public_pem(key: RSAKey | ECKey) -> str:
    """Return a public key as PEM."""
    return key.as_pem(private=False).decode()


def make_token(key: Any = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
    """Return a token of ISSUER for alice, for ten minutes, with other claims; None leaves one out."""
    stated = {
        "iss": ISSUER, "sub": "alice", "aud": "shop", "iat": NOW_S, "exp": NOW_S + 600, **claims,
    }  # fmt: skip
    members = {name: value for name, value in stated.items() if value is not None}
    alg = (header or {}).get("alg", "RS256")
    return jwt.encode({"alg": "RS256", **(header or {})}, members, key or rsa_key(), [alg])


def _issuers(module: Any = web_identity) -> dict[str, Any]:
    keys = (public_jwk(rsa_key(), kid="rsa"), public_jwk(ec_key(), kid="ec"))
    return {
        ISSUER: module.import_provider(ISSUER, OidcProvider(audiences=("shop", "desk"), keys=keys)),
        OTHER_ISSUER: module.import_provider(
            OTHER_ISSUER, OidcProvider(audiences=("shop",), keys=(public_pem(rsa_key(1)),))
        ),
    }


def _verify(token: str, module: Any = web_identity) -> Any:
    return module.verify_web_identity(_issuers(module), token, NOW_S)


@pytest.mark.parametrize(
    "token",
    [
        make_token,
        lambda: make_token(header={"kid": "rsa"}),
        lambda: make_token(ec_key(), {"alg": "ES256", "kid": "ec"}),
        lambda: make_token(ec_key(), {"alg": "ES256"}),
        lambda: make_token(rsa_key(1), {"kid": "any"}, iss=OTHER_ISSUER),  # a PEM has no key id
        lambda: _by_hand({"alg": "RS256", "private": "unknown parameters are allowed"}, _rs256),
        lambda: make_token(aud=["else", "desk"]),
        lambda: make_token(nbf=NOW_S + 59),
        lambda: make_token(exp=NOW_S + 0.5),
    ],
)
def test_a_valid_token_is_accepted(token: Callable[[], str]) -> None:
    """RS256 and ES256, chosen by key id or by trying, with an audience among several, for as long as it lasts."""
    assert _verify(token()).subject == "alice"


def test_claims_become_condition_keys() -> None:
    """`issuer:sub`, `issuer:aud` and `issuer:amr`, with the issuer's URL in lower case and without its scheme."""
    identity = _verify(make_token(aud=["else", "desk"], amr=["otp", "pwd"], email="a@example.com"))

    assert dict(identity.condition_keys) == {
        "login.example.com/realms/shop:sub": ("alice",),
        "login.example.com/realms/shop:aud": ("desk",),
        "login.example.com/realms/shop:amr": ("otp", "pwd"),
    }
    assert (identity.issuer, identity.subject, identity.audience) == (ISSUER, "alice", "desk")


def _b64(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _by_hand(header: dict[str, Any], sign: Callable[[bytes], bytes], **claims: Any) -> str:
    body = {"iss": ISSUER, "sub": "alice", "aud": "shop", "exp": NOW_S + 600, **claims}
    text = f"{_b64(header)}.{_b64(body)}"
    return f"{text}.{_b64(sign(text.encode()))}"


def _hs256(secret: bytes) -> Callable[[bytes], bytes]:
    return lambda text: hmac.digest(secret, text, hashlib.sha256)


def _rs256(text: bytes) -> bytes:
    from joserfc.jws import JWSRegistry

    return JWSRegistry.algorithms["RS256"].sign(text, rsa_key())


def _attacks() -> Iterator[tuple[str, str]]:
    """Yield tokens that must be refused."""
    token = make_token()
    header, body, signature = token.split(".")
    yield "no algorithm", _by_hand({"alg": "none"}, lambda text: b"")
    yield "no signature", f"{header}.{body}."
    yield (
        "HS256 with the public key as PEM",
        _by_hand({"alg": "HS256"}, _hs256(public_pem(rsa_key()).encode())),
    )
    modulus = json.dumps(public_jwk(rsa_key())).encode()
    yield "HS256 with the public key as JWK", _by_hand({"alg": "HS256", "kid": "rsa"}, _hs256(modulus))
    for alg in ("RS384", "RS512", "PS256"):
        yield alg, make_token(header={"alg": alg})
    yield "another key", make_token(rsa_key(2))
    yield "its own key in the header", make_token(rsa_key(2), {"jwk": public_jwk(rsa_key(2))})
    yield "the key of another issuer", make_token(rsa_key(1))
    yield "another issuer", make_token(iss=OTHER_ISSUER)
    yield "an unknown issuer", make_token(iss="https://evil.example")
    yield "no issuer", make_token(iss=None)
    yield "issuers in a list", make_token(iss=[ISSUER])
    yield "an unknown key id", make_token(header={"kid": "else"})
    yield "the id of another key", make_token(header={"kid": "ec"})
    yield "expired", make_token(exp=NOW_S)
    yield "no end", make_token(exp=None)
    yield "end as text", make_token(exp="9999999999")
    yield "end as true", make_token(exp=True)
    yield "end is not a number", _by_hand({"alg": "RS256"}, _rs256, exp=float("nan"))
    yield "end is infinite", _by_hand({"alg": "RS256"}, _rs256, exp=float("inf"))
    yield "not yet", make_token(nbf=NOW_S + 61)
    yield "not before text", make_token(nbf="0")
    yield "not before true", make_token(nbf=True)
    yield "another audience", make_token(aud="else")
    yield "other audiences", make_token(aud=["else", 7])
    yield "no audience", make_token(aud=None)
    yield "no subject", make_token(sub=None)
    yield "an empty subject", make_token(sub="")
    yield "subject is no text", make_token(sub=7)
    yield (
        "claims changed",
        f"{header}.{_b64({'iss': ISSUER, 'sub': 'root', 'aud': 'shop', 'exp': NOW_S + 600})}.{signature}",
    )
    yield "header changed", f"{_b64({'alg': 'RS256', 'kid': 'rsa'})}.{body}.{signature}"
    yield "signature cut", token[:-4]
    yield "signature changed", token[:-10] + ("A" if token[-10] != "A" else "B") + token[-9:]
    yield "an unknown critical header", _by_hand({"alg": "RS256", "crit": ["x"], "x": 1}, _rs256)
    yield "an unencoded payload", _by_hand({"alg": "RS256", "crit": ["b64"], "b64": False}, _rs256)
    yield "two parts", f"{header}.{body}"
    yield "five parts", f"{token}.x.y"
    yield "not base64", f"{header}.{body}!.{signature}"
    yield "not JSON", f"{_b64(b'x')}.{_b64(b'y')}.{signature}"
    yield "nested deeply", f"{header}.{_b64(b'[' * 14_000)}.{signature}"
    yield "lists", f"{_b64([])}.{_b64([])}.{signature}"
    yield "too long", make_token(note="x" * 20_000)
    yield "empty", ""
    yield "not ASCII", "ä.ä.ä"


ATTACKS = dict(_attacks())


@pytest.mark.parametrize("name", ATTACKS)
def test_any_other_token_is_refused(name: str) -> None:
    """Refused with AWS's code, and never with an exception of a library."""
    with pytest.raises(SessionRefused) as refused:
        _verify(ATTACKS[name])

    assert refused.value.aws_code == (
        "ExpiredTokenException" if name == "expired" else "InvalidIdentityToken"
    )


def _accepted(module: Any) -> list[str]:
    found = []
    for name, token in ATTACKS.items():
        try:
            _verify(token, module)
        except SessionRefused:
            continue
        except Exception as error:  # noqa: BLE001 - a refusal that is no refusal
            found.append(f"{name}: {error!r}")
        else:
            found.append(name)
    return found


PLANTED = {
    "signature": ("jwt.decode(token, key.key, [key.algorithm], registry).claims", 'dict(_joserfc("util").json_b64decode(token.split(".")[1].encode()))'),
    "algorithm": ("jws.JWSRegistry(algorithms=[key.algorithm], strict_check_header=False)", 'jws.JWSRegistry(algorithms=["RS256", "RS384", "ES256"], strict_check_header=False)'),
    "key id": ("if key_id is None or key.id in (None, key_id)", "if True"),
    "end": ("if expires_s <= now_s:", "if False:"),
    "beginning": ("if not_before_s > now_s + NOT_BEFORE_LEEWAY_S:", "if False:"),
    "numbers": (" and not isinstance(value, bool)", ""),
    "finite": ("is_number and isfinite(value)", "is_number"),
    "audience": (" if audience in issuer.audiences]", "]"),
    "no audience": ("if not audiences:", "if False:"),
    "subject": ("if not isinstance(subject, str) or not subject:", "if False:"),
    "issuer's type": ("if not isinstance(issuer, str):", "if False:"),
}  # fmt: skip


def test_a_list_of_attacks_is_refused() -> None:
    """The attacks as one list: none is accepted."""
    assert _accepted(web_identity) == []


@pytest.mark.parametrize("name", PLANTED)
def test_a_missing_check_is_found(name: str) -> None:
    """Without one of the checks, some attack is accepted."""
    assert _accepted(plant(web_identity, *PLANTED[name]))


def _refusal(provider: dict[str, Any], issuer: str = ISSUER) -> str:
    account = {"oidc_providers": {issuer: provider}}
    with pytest.raises(InvalidDirectory) as refused:
        parse_directory(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: account}}))
    assert refused.value.place.startswith(f"accounts.{ACCOUNT}.oidc_providers.{issuer}")
    return refused.value.reason


def test_invalid_providers_are_refused_with_their_place() -> None:
    """Private and symmetric keys, other curves, short keys, other algorithms, and URLs that no claim has."""
    good: dict[str, Any] = {"audiences": ["shop"], "keys": [public_pem(rsa_key())]}

    def with_key(key: Any) -> dict[str, Any]:
        return {**good, "keys": [key]}

    private = rsa_key().as_pem(private=True).decode()
    assert "is not one" in _refusal(with_key(private))
    assert "must not be in this file" in _refusal(with_key(rsa_key().as_dict(private=True)))
    assert "must not be in this file" in _refusal(with_key(OctKey.generate_key(256).as_dict(private=True)))
    assert "P-256" in _refusal(with_key(ECKey.generate_key("P-384").as_dict(private=False)))
    assert "a key for RS512" in _refusal(with_key(public_jwk(rsa_key(), alg="RS512")))
    assert "cannot be read" in _refusal(
        with_key("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    )
    assert "cannot be read" in _refusal(with_key({"kty": "RSA"}))
    assert "cannot be read" in _refusal(with_key({}))
    assert "at least one public key" in _refusal({**good, "keys": []})
    assert "audience" in _refusal({**good, "audiences": []})
    assert "unknown member" in _refusal({**good, "jwks_uri": "x"})
    for url in (
        "login.example.com",
        "https://login.example.com/?x",
        "ftp://login.example.com",
        ISSUER + "#x",
    ):
        assert "an issuer is a URL" in _refusal(good, url)


def test_a_short_key_is_refused() -> None:
    """RSA needs 2,048 bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = RSAKey.generate_key(1024)
        with pytest.raises(ProviderRefused, match="at least 2048 bits, not 1024"):
            import_provider(ISSUER, OidcProvider(audiences=("shop",), keys=(public_pem(short),)))


def test_a_provider_survives_its_document() -> None:
    """What is written is read back as it was, with PEM and JWK keys."""
    keys = [public_pem(rsa_key()), public_jwk(ec_key(), kid="ec")]
    account = {"oidc_providers": {ISSUER: {"audiences": ["shop"], "keys": keys}}}
    directory = parse_directory(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: account}}))

    assert parse_directory(render_directory(directory)).accounts == directory.accounts
    assert list(directory.issuers(ACCOUNT)) == [ISSUER]
    assert Directory({}).issuers(ACCOUNT) == {}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without joserfc, a file with providers is refused with the extra to install."""

    def missing(name: str) -> Any:
        if name.startswith("joserfc"):
            raise ModuleNotFoundError(name)
        return import_module(name)

    monkeypatch.setattr(web_identity, "import_module", missing)
    with pytest.raises(JoserfcMissing) as refused:
        import_provider(ISSUER, OidcProvider(audiences=("shop",), keys=(public_pem(rsa_key()),)))

    assert refused.value.remedy == "Run: pip install 'tavola[auth]'"
    with pytest.raises(SessionRefused):
        verify_web_identity({}, "x" * 20_001, NOW_S)
