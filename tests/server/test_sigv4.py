"""Signatures: AWS's refusals in AWS's words and order, and no change that passes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from tavola.clock import ManualClock
from tavola.protocol.faults import Fault
from tavola.server import sigv4
from tavola.server.sigv4 import Verifier, render_date
from tests.planted import plant
from tests.server.signing import SignedRequest, Signer

NOW_S = 1_370_771_415.0  # 2013-06-09T09:50:15Z
DATE = "20130609T095015Z"


@dataclass(frozen=True, slots=True)
class Credential:
    secret: str
    token: str | None = None
    expires_at_s: float | None = None
    active: bool = True


KEYS = {
    "AKIDLASTING": Credential("lasting/secret+1"),
    "AKIDOTHER": Credential("other/secret"),
    "AKIDASLEEP": Credential("asleep/secret", active=False),
    "ASIASESSION": Credential("session/secret", "token+of/session==", NOW_S + 3600),
    "ASIAENDED": Credential("ended/secret", "ended", NOW_S - 1),
}
ME = Signer("AKIDLASTING", "lasting/secret+1", NOW_S)


class Keys:
    def credential(self, key_id: str, token: bytes | None) -> Credential | None:
        return KEYS.get(key_id)


def _verifier(module: ModuleType = sigv4) -> Any:
    return module.Verifier(Keys(), ManualClock(NOW_S))


def _verify(sent: SignedRequest, verifier: Any = None) -> Any:
    return (verifier or _verifier()).verify(sent.url, sent.fields, sent.body)


def _refused(sent: SignedRequest) -> tuple[str, str | None]:
    with pytest.raises(Fault) as refused:
        _verify(sent)
    return refused.value.code, refused.value.message


def test_a_signature_of_botocore_is_accepted() -> None:
    """In a header or a query, with a long-term key or a session, for any region and body."""
    session = Signer("ASIASESSION", "session/secret", NOW_S, token="token+of/session==")
    for signer in (ME, session):
        for in_query in (False, True):
            for region in ("us-east-1", "eu-central-2", "local"):
                for body in (b"{}", b'{"a":"\xc3\xa4"}' * 400):
                    sent = replace(signer, region=region, in_query=in_query).sign(body)
                    claim = _verify(sent)

                    assert (claim.key_id, claim.region) == (signer.key_id, region)
                    assert claim.credential is KEYS[signer.key_id]


def test_a_claim_is_met_again() -> None:
    """The second request of a key on a day is known by its header: the claim is the same."""
    verifier = _verifier()
    first = _verify(ME.sign(b'{"a":1}'), verifier)
    second = _verify(replace(ME, at_s=NOW_S + 1).sign(b'{"a":2}'), verifier)
    third = _verify(replace(ME, at_s=NOW_S + 1).sign(b'{"a":3}'), verifier)

    assert first is second is third


def test_unsigned_parts_may_change() -> None:
    """Headers outside the signature and the order of a query may change."""
    sent = ME.sign()
    assert _verify(sent.with_field(b"user-agent", b"another"))

    in_query = replace(ME, in_query=True).sign()
    path, _, query = in_query.url.partition(b"?")
    turned = b"&".join(reversed(query.split(b"&")))
    assert _verify(replace(in_query, url=path + b"?" + turned))


def test_spaces_in_a_header_are_tidied() -> None:
    """A client that signs what AWS would tidy, and one that signs what it sends, are both understood."""
    sent = replace(ME, headers={"X-Amz-Meta": "a  b   c"}).sign()

    assert _verify(sent)
    assert _verify(sent.with_field(b"x-amz-meta", b"a b c"))


AUTHORIZATION = (
    b"AWS4-HMAC-SHA256 Credential=AKIDLASTING/20130609/us-east-1/dynamodb/aws4_request, "
    b"SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + b"0" * 64
)


def _header(
    authorization: bytes | None, date: bytes | None = DATE.encode(), url: bytes = b"/"
) -> SignedRequest:
    fields = {
        b"host": b"localhost",
        b"x-amz-target": b"t",
        b"authorization": authorization,
        b"x-amz-date": date,
    }
    return SignedRequest(url, {name: value for name, value in fields.items() if value is not None}, b"{}")


def _with(old: bytes, new: bytes) -> SignedRequest:
    assert old in AUTHORIZATION
    return _header(AUTHORIZATION.replace(old, new))


QUERY_MUST = "AWS query-string parameters must include '{}'. "
HEADER_MUST = "Authorization header requires '{}' parameter. "
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access "
    "Key and signing method. Consult the service documentation for details."
)

SENTENCES: list[tuple[str, SignedRequest, str, str]] = [
    (
        "both",
        _header(AUTHORIZATION, url=b"/?X-Amz-Algorithm=x"),
        "InvalidSignatureException",
        "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
    ),
    ("none", _header(None), "MissingAuthenticationTokenException", "Request is missing Authentication Token"),
    (
        "basic",
        _header(b"Basic abc"),
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    ),
    (
        "no parts",
        _header(b"AWS4-", date=None),
        "IncompleteSignatureException",
        "".join(HEADER_MUST.format(part) for part in ("Credential", "Signature", "SignedHeaders"))
        + "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-",
    ),
    (
        "one part missing",
        _header(b"AWS4-HMAC-SHA256 Credential=a, Signature=b"),
        "IncompleteSignatureException",
        HEADER_MUST.format("SignedHeaders") + "Authorization=AWS4-HMAC-SHA256 Credential=a, Signature=b",
    ),
    (
        "query parts missing",
        _header(None, url=b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256"),
        "IncompleteSignatureException",
        "".join(
            QUERY_MUST.format(f"X-Amz-{part}")
            for part in ("Credential", "Signature", "SignedHeaders", "Date")
        )
        + "Re-examine the query-string parameters.",
    ),
    (
        "credential shape",
        _with(b"AKIDLASTING/20130609/us-east-1/dynamodb/aws4_request", b"a/b/c/d"),
        "IncompleteSignatureException",
        (
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            "got 'a/b/c/d'"
        ),
    ),
    (
        "credential scope",
        _with(b"AKIDLASTING/20130609/us-east-1/dynamodb/aws4_request", b"a/b/c/d/e"),
        "InvalidSignatureException",
        (
            "Credential should be scoped to a valid region, not 'c'. "
            "Credential should be scoped to correct service: 'dynamodb'. "
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. "
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'b' != '20130609', from '{DATE}'."
        ),
    ),
    (
        "date's form",
        _header(AUTHORIZATION, b"201"),
        "IncompleteSignatureException",
        "Date must be in ISO-8601 'basic format'. Got '201'. See http://en.wikipedia.org/wiki/ISO_8601",
    ),
    (
        "no such date",
        _header(AUTHORIZATION.replace(b"20130609", b"20131309"), b"20131309T000000Z"),
        "IncompleteSignatureException",
        "Date must be in ISO-8601 'basic format'. Got '20131309T000000Z'. See http://en.wikipedia.org/wiki/ISO_8601",
    ),
    (
        "expired",
        _header(AUTHORIZATION, b"20130609T093514Z"),
        "InvalidSignatureException",
        "Signature expired: 20130609T093514Z is now earlier than 20130609T093515Z (20130609T095015Z - 15 min.)",
    ),
    (
        "of the future",
        _header(AUTHORIZATION, b"20130609T100516Z"),
        "InvalidSignatureException",
        (
            "Signature not yet current: 20130609T100516Z is still later than 20130609T100515Z "
            "(20130609T095015Z + 15 min.)"
        ),
    ),
    (
        "host unsigned",
        _with(b"host;x-amz-date", b"x-amz-date"),
        "InvalidSignatureException",
        "'Host' must be a 'SignedHeader' in the AWS Authorization.",
    ),
    (
        "target unsigned",
        _with(b";x-amz-target", b""),
        "InvalidSignatureException",
        "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.",
    ),
    (
        "algorithm",
        _with(b"AWS4-HMAC-SHA256", b"AWS4-HMAC-SHA25"),
        "IncompleteSignatureException",
        "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA25' (only AWS4-HMAC-SHA256 for now). ",
    ),
    (
        "unknown key",
        _with(b"AKIDLASTING", b"AKIDNOBODY"),
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    ),
    (
        "key that is asleep",
        _with(b"AKIDLASTING", b"AKIDASLEEP"),
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    ),
    (
        "session without its token",
        _with(b"AKIDLASTING", b"ASIASESSION"),
        "UnrecognizedClientException",
        "The security token included in the request is invalid",
    ),
    (
        "token of another session",
        _with(b"AKIDLASTING", b"ASIASESSION").with_field(b"x-amz-security-token", b"ended"),
        "UnrecognizedClientException",
        "The security token included in the request is invalid",
    ),
    (
        "token with a lasting key",
        _header(AUTHORIZATION).with_field(b"x-amz-security-token", b"x"),
        "UnrecognizedClientException",
        "The security token included in the request is invalid",
    ),
    (
        "session that has ended",
        _with(b"AKIDLASTING", b"ASIAENDED").with_field(b"x-amz-security-token", b"ended"),
        "ExpiredTokenException",
        "The security token included in the request is expired",
    ),
    ("signature", _header(AUTHORIZATION), "InvalidSignatureException", MISMATCH),
]


@pytest.mark.parametrize(
    ("sent", "code", "sentence"), [row[1:] for row in SENTENCES], ids=[r[0] for r in SENTENCES]
)
def test_refusals_have_the_words_of_aws(sent: SignedRequest, code: str, sentence: str) -> None:
    """Each refusal has AWS's code and its whole sentence."""
    assert _refused(sent) == (code, sentence)


def test_refusals_come_in_the_order_of_aws() -> None:
    """A request with every error is refused for the errors in AWS's order, as they are corrected."""
    wrong = AUTHORIZATION.replace(b"host;", b"").replace(b"SHA256", b"SHA1").replace(b"dynamodb", b"s3")
    steps = [
        _header(wrong.replace(b"Signature=", b"Sign="), b"2013", b"/?X-Amz-Algorithm=x"),
        _header(wrong.replace(b"Signature=", b"Sign="), b"2013"),
        _header(wrong.replace(b"us-east-1/", b""), b"2013"),
        _header(wrong, b"2013"),
        _header(wrong.replace(b"/s3/", b"/dynamodb/"), b"2013"),
        _header(wrong.replace(b"/s3/", b"/dynamodb/"), b"20130609T000000Z"),
        _header(wrong.replace(b"/s3/", b"/dynamodb/")),
        _header(AUTHORIZATION.replace(b"SHA256", b"SHA1").replace(b"AKIDLASTING", b"AKIDNOBODY")),
        _header(AUTHORIZATION.replace(b"AKIDLASTING", b"AKIDNOBODY")),
        _header(AUTHORIZATION.replace(b"AKIDLASTING", b"ASIASESSION")),
        _header(AUTHORIZATION),
    ]
    result = [(_refused(step)[1] or "")[:22] for step in steps]

    assert result == [
        "Found both 'X-Amz-Algo",
        "Authorization header r",
        "Credential must have e",
        "Credential should be s",
        "Date must be in ISO-86",
        "Signature expired: 201",
        "'Host' must be a 'Sign",
        "Unsupported AWS 'algor",
        "The security token inc",
        "The security token inc",
        "The request signature ",
    ]


def test_a_query_lasts_as_long_as_it_says() -> None:
    """A signature in the query may last shorter than a quarter of an hour, never longer."""
    short = replace(ME, in_query=True, expires=60)
    assert _verify(replace(short, at_s=NOW_S - 59).sign())
    assert "- 60 sec.)" in (_refused(replace(short, at_s=NOW_S - 61).sign())[1] or "")
    long = replace(ME, in_query=True, expires=604_800)
    assert _verify(replace(long, at_s=NOW_S - 900).sign())
    assert "- 15 min.)" in (_refused(replace(long, at_s=NOW_S - 901).sign())[1] or "")


@pytest.mark.parametrize("result", ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"])
def test_a_body_is_always_signed(result: str) -> None:
    """A signature that leaves the body out, or covers it in chunks, is no signature of a request here."""
    signed = _signed_by_hand({"x-amz-content-sha256": result.encode()}, payload=result)

    assert _refused(signed) == ("InvalidSignatureException", MISMATCH)
    assert _verify(_signed_by_hand({"x-amz-content-sha256": hashlib.sha256(b"{}").hexdigest().encode()}))


def _signed_by_hand(
    headers: dict[str, bytes] | None = None,
    *,
    payload: str | None = None,
    key_id: str = "AKIDLASTING",
    date: str = DATE,
    day: str = "20130609",
    service: str = "dynamodb",
    unsigned: tuple[str, ...] = (),
    algorithm: str = "AWS4-HMAC-SHA256",
    terminator: str = "aws4_request",
    body: bytes = b"{}",
) -> SignedRequest:
    """Return a request that its sender signed well, though not as it should be."""
    found = {
        "host": b"localhost",
        "x-amz-date": date.encode(),
        "x-amz-target": b"DynamoDB_20120810.ListTables",
        **(headers or {}),
    }
    fields = {name.encode(): value for name, value in found.items()}
    names = sorted(name for name in found if name not in unsigned)
    shown = "".join(f"{name}:{found[name].decode()}\n" for name in names)
    payload = payload or hashlib.sha256(body).hexdigest()
    canonical = f"POST\n/\n\n{shown}\n{';'.join(names)}\n{payload}"
    scope = f"{day}/us-east-1/{service}/{terminator}"
    text = f"{algorithm}\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{KEYS[key_id].secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    fields[b"authorization"] = (
        f"{algorithm} Credential={key_id}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}".encode()
    )
    return SignedRequest(b"/", fields, body)


# Mutations: changes by an intermediary, or by the owner of another key.

Mutation = Callable[[SignedRequest, Random], SignedRequest | None]  # None: it does not apply


def _flip(text: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(text))
    other = chance.choice([byte for byte in b"abcdef0123456789XYZ-" if byte != text[place]])
    return text[:place] + bytes((other,)) + text[place + 1 :]


def _body_changed(sent: SignedRequest, chance: Random) -> SignedRequest:
    return replace(sent, body=_flip(sent.body, chance))


def _body_longer(sent: SignedRequest, chance: Random) -> SignedRequest:
    return replace(sent, body=sent.body + b" ")


def _body_gone(sent: SignedRequest, chance: Random) -> SignedRequest:
    return replace(sent, body=b"")


def _field_changed(name: bytes) -> Mutation:
    def change(sent: SignedRequest, chance: Random) -> SignedRequest | None:
        value = sent.fields.get(name)
        return sent.with_field(name, _flip(value, chance)) if value else None

    return change


def _field_gone(name: bytes) -> Mutation:
    return lambda sent, chance: sent.with_field(name, None) if name in sent.fields else None


def _credential_part(place: int, others: tuple[bytes, ...]) -> Mutation:
    def change(sent: SignedRequest, chance: Random) -> SignedRequest | None:
        text = sent.fields.get(b"authorization") or sent.url
        mark = b"Credential="
        start = text.index(mark) + len(mark)
        sign = b"/" if b"authorization" in sent.fields else b"%2F"
        end = min(end for end in (text.find(b",", start), text.find(b"&", start), len(text)) if end > 0)
        parts = text[start:end].split(sign)
        parts[place] = chance.choice([other for other in others if other != parts[place]])
        changed = text[:start] + sign.join(parts) + text[end:]
        if b"authorization" in sent.fields:
            return sent.with_field(b"authorization", changed)
        return replace(sent, url=changed)

    return change


def _signature_changed(sent: SignedRequest, chance: Random) -> SignedRequest:
    if b"authorization" not in sent.fields:
        return replace(sent, url=sent.url[:-64] + _flip(sent.url[-64:], chance))
    text = sent.fields[b"authorization"]
    return sent.with_field(b"authorization", text[:-64] + _flip(text[-64:], chance))


def _signature_cut(sent: SignedRequest, chance: Random) -> SignedRequest:
    count = chance.randrange(1, 64)
    if b"authorization" not in sent.fields:
        return replace(sent, url=sent.url[:-count])
    return sent.with_field(b"authorization", sent.fields[b"authorization"][:-count])


def _query_changed(sent: SignedRequest, chance: Random) -> SignedRequest | None:
    path, sign, query = sent.url.partition(b"?")
    if not sign:
        return None
    pairs = [pair.partition(b"=") for pair in query.split(b"&")]
    place = chance.randrange(len(pairs))
    name, _, value = pairs[place]
    changed = _flip(value, chance)
    if unquote_to_bytes(changed) == unquote_to_bytes(value):
        return None  # %3d is %3D
    pairs[place] = (name, b"=", changed)
    return replace(sent, url=path + b"?" + b"&".join(b"".join(pair) for pair in pairs))


def _query_longer(sent: SignedRequest, chance: Random) -> SignedRequest:
    return replace(sent, url=sent.url + (b"&" if b"?" in sent.url else b"?") + b"added=1")


def _signed_less(sent: SignedRequest, chance: Random) -> SignedRequest | None:
    text = sent.fields.get(b"authorization", b"")
    for name in (b"x-amz-date;", b"content-type;", b"host;"):
        if name in text:
            return sent.with_field(b"authorization", text.replace(name, b"", 1))
    return None


def _algorithm_changed(sent: SignedRequest, chance: Random) -> SignedRequest:
    if b"authorization" not in sent.fields:
        return replace(sent, url=sent.url.replace(b"HMAC-SHA256", b"HMAC-SHA1"))
    text = sent.fields[b"authorization"].replace(b"HMAC-SHA256", b"HMAC-SHA1")
    return sent.with_field(b"authorization", text)


def _token_swapped(sent: SignedRequest, chance: Random) -> SignedRequest:
    return sent.with_field(b"x-amz-security-token", b"token+of/session")


def _moment_added(sent: SignedRequest, chance: Random) -> SignedRequest:
    return sent.with_field(b"x-tavola-as-of", b"2013-06-01T00:00:00Z")


MUTATIONS: dict[str, Mutation] = {
    "moment added": _moment_added,
    "body changed": _body_changed,
    "body longer": _body_longer,
    "body gone": _body_gone,
    "target changed": _field_changed(b"x-amz-target"),
    "host changed": _field_changed(b"host"),
    "content type changed": _field_changed(b"content-type"),
    "date changed": _field_changed(b"x-amz-date"),
    "token changed": _field_changed(b"x-amz-security-token"),
    "token swapped": _token_swapped,
    "token gone": _field_gone(b"x-amz-security-token"),
    "target gone": _field_gone(b"x-amz-target"),
    "date gone": _field_gone(b"x-amz-date"),
    "authorization gone": _field_gone(b"authorization"),
    "another key": _credential_part(0, (b"AKIDOTHER", b"AKIDNOBODY", b"ASIASESSION", b"AKIDASLEEP", b"")),
    "another day": _credential_part(1, (b"20130608", b"20130610", b"")),
    "another region": _credential_part(2, (b"eu-west-1", b"us-east-2", b"x", b"")),
    "another service": _credential_part(3, (b"s3", b"dynamodbstreams", b"DynamoDB", b"")),
    "another terminator": _credential_part(4, (b"aws3_request", b"")),
    "signature changed": _signature_changed,
    "signature cut": _signature_cut,
    "query changed": _query_changed,
    "query longer": _query_longer,
    "fewer headers signed": _signed_less,
    "algorithm changed": _algorithm_changed,
}


def _forged() -> Iterator[tuple[str, SignedRequest]]:
    """Yield requests with a valid signature that must be refused nevertheless."""
    yield "too old", replace(ME, at_s=NOW_S - 901).sign()
    yield "of the future", replace(ME, at_s=NOW_S + 901).sign()
    yield "another service", replace(ME, service="sts").sign()
    yield "scope's day", _signed_by_hand(day="20130608")
    yield "terminator", _signed_by_hand(terminator="aws5_request")
    yield "key asleep", replace(ME, key_id="AKIDASLEEP", secret="asleep/secret").sign()
    yield "session ended", replace(ME, key_id="ASIAENDED", secret="ended/secret", token="ended").sign()
    yield "no token", replace(ME, key_id="ASIASESSION", secret="session/secret").sign()
    yield "wrong token", replace(ME, key_id="ASIASESSION", secret="session/secret", token="ended").sign()
    yield "token too many", replace(ME, token="token+of/session==").sign()
    yield "host unsigned", _signed_by_hand(unsigned=("host",))
    yield "target unsigned", _signed_by_hand(unsigned=("x-amz-target",))
    yield "algorithm", _signed_by_hand(algorithm="AWS4-HMAC-SHA512")
    yield "wrong secret", replace(ME, secret="lasting/secret+2").sign()
    yield "body unsigned", _signed_by_hand({}, payload="UNSIGNED-PAYLOAD")


def _let_through(module: ModuleType, *, rounds: int, seed: int) -> tuple[list[str], int]:
    """Return the accepted mutations, and the number tried; unmutated requests must pass."""
    chance = Random(seed)
    passed: list[str] = []
    shown = 0
    session = Signer("ASIASESSION", "session/secret", NOW_S, token="token+of/session==")
    warm = _verifier(module)
    for _ in range(rounds):
        signer = replace(
            chance.choice((ME, session)),
            at_s=NOW_S + chance.randrange(-800, 800),
            region=chance.choice(("us-east-1", "ap-south-1")),
            in_query=chance.random() < 0.3,
        )
        sent = signer.sign(b'{"TableName":"t%d"}' % chance.randrange(10**6))
        for name, mutate in MUTATIONS.items():
            mutated = mutate(sent, chance)
            if mutated is None or mutated == sent:
                continue
            for verifier in (_verifier(module), warm):
                shown += 1
                _verify(sent, warm)
                if _accepts(verifier, mutated):
                    passed.append(f"{name}: {mutated}")
    for name, sent in _forged():
        for verifier in (_verifier(module), warm):
            shown += 1
            if _accepts(verifier, sent):
                passed.append(name)
    passed += [f"later: {name}" for name in _let_through_later(module)]
    return passed, shown


def _let_through_later(module: ModuleType) -> Iterator[str]:
    """Yield requests accepted because they passed before: a cached claim must not outlive its time."""
    clock = ManualClock(NOW_S)
    verifier = module.Verifier(Keys(), clock)
    sent = ME.sign()
    session = Signer("ASIASESSION", "session/secret", NOW_S, token="token+of/session==")
    _verify(sent, verifier)
    clock.advance(901)
    if _accepts(verifier, sent):
        yield "a request that is repeated too late"
    clock.advance(-1802)
    if _accepts(verifier, sent):
        yield "a request before its time"
    clock.set(NOW_S + 3599)
    late = replace(session, at_s=NOW_S + 3599)
    _verify(late.sign(), verifier)
    clock.advance(1)
    if _accepts(verifier, late.sign(b'{"a":1}')):
        yield "a session that has ended meanwhile"
    clock.set(NOW_S)
    _verify(session.sign(), verifier)
    stolen = session.sign(b'{"b":1}')
    if _accepts(verifier, stolen.with_field(b"x-amz-security-token", b"another")):
        yield "a session with another's token"
    midnight_s = NOW_S - NOW_S % 86400 + 86400
    clock.set(midnight_s - 1)
    yesterday = render_date(midnight_s - 1)
    _verify(_signed_by_hand(date=yesterday, day=yesterday[:8]), verifier)
    clock.advance(2)
    _verify(replace(ME, at_s=midnight_s).sign(), verifier)  # so that the date is known
    if _accepts(verifier, _signed_by_hand(date=render_date(midnight_s), day=yesterday[:8])):
        yield "yesterday's key"


def _accepts(verifier: Any, sent: SignedRequest) -> bool:
    try:
        _verify(sent, verifier)
    except Fault:
        return False
    return True


FORM = b"Action=AssumeRole&Version=2011-06-15&RoleArn=arn:aws:iam::111122223333:role/Desk&RoleSessionName=s1"


def _let_through_sts(module: ModuleType, *, rounds: int, seed: int) -> tuple[list[str], int]:
    """Return the accepted mutations of requests to STS, as forms and as presigned URLs, and the number tried."""
    chance = Random(seed)
    passed: list[str] = []
    shown = 0
    session = Signer("ASIASESSION", "session/secret", NOW_S, token="token+of/session==", service="sts")
    lasting = replace(ME, service="sts")

    def accepts(method: bytes, sent: SignedRequest) -> bool:
        nonlocal shown
        shown += 1
        verifier = module.Verifier(Keys(), ManualClock(NOW_S), "sts")
        try:
            verifier.verify_in_full(method, sent.url, sent.fields, sent.body)
        except Fault:
            return False
        return True

    for _ in range(rounds):
        method = chance.choice(("POST", "GET"))
        signer = replace(
            chance.choice((lasting, session)),
            at_s=NOW_S + chance.randrange(-800, 800),
            in_query=method == "GET" or chance.random() < 0.3,
        )
        sent = signer.sign_form(FORM if method == "POST" else b"", method)
        if not accepts(method.encode(), sent):
            passed.append("refuses what is signed")
        if accepts(b"GET" if method == "POST" else b"POST", sent):
            passed.append("another method")
        for name, mutate in MUTATIONS.items():
            if method == "GET" and name in ("body changed", "body gone"):
                continue
            mutated = mutate(sent, chance)
            if mutated is not None and mutated != sent and accepts(method.encode(), mutated):
                passed.append(f"{name}: {mutated}")
    for name, forged in (
        ("of DynamoDB", ME.sign()),
        ("of DynamoDB, as a form", ME.sign_form(FORM)),
        ("host unsigned", _signed_by_hand(service="sts", unsigned=("host",))),
        (
            "session ended",
            replace(session, key_id="ASIAENDED", secret="ended/secret", token="ended").sign_form(FORM),
        ),
        ("wrong secret", replace(lasting, secret="lasting/secret+2").sign_form(FORM)),
    ):
        if accepts(b"POST", forged):
            passed.append(name)
    return passed, shown


def test_no_mutation_of_a_request_to_sts_is_accepted() -> None:
    """I22: the same for STS: forms and presigned URLs, other methods, and signatures for DynamoDB."""
    passed, shown = _let_through_sts(sigv4, rounds=80, seed=3)

    assert not passed
    assert shown > 1000


PLANTED_STS = {
    "method": ("canonical_form(query, names, method)", "canonical_form(query, names)"),
    "headers": ('STS: ("Host",)}', "STS: ()}"),
    "body": ("payload = hexlify(_sha256(body).digest())", 'payload = hexlify(_sha256(b"").digest())'),
}


@pytest.mark.parametrize("name", PLANTED_STS)
def test_a_verifier_of_sts_without_one_check_is_caught(name: str) -> None:
    """The mutations detect each missing check of STS, too."""
    assert _let_through_sts(plant(sigv4, *PLANTED_STS[name]), rounds=6, seed=5)[0]


def test_no_mutation_is_accepted() -> None:
    """I22: whatever is changed in a signed request, and whatever is signed that may not be, is refused."""
    passed, shown = _let_through(sigv4, rounds=80, seed=3)

    assert not passed
    assert shown > 2000


# A check of the verifier, and what the verifier is without it.
PLANTED = {
    "skew, quick": ("abs(now_s - self._dates.get(date, 0.0)) > SKEW_S", "self._dates.get(date) is None"),
    "day, quick": ("or not date.startswith(claim.day)", ""),
    "token, quick": (
        'or (token is not claim.token and not compare_digest(token or b"", claim.token or b""))',
        "",
    ),
    "end, quick": ("or (claim.expires_at_s is not None and claim.expires_at_s <= now_s)", ""),
    "url, quick": ('or url != b"/"', ""),
    "body, quick": (
        "canonical = claim.form % (*claim.pick(fields), hexlify(_sha256(body).digest()))",
        "return claim",
    ),
    "compare, quick": (
        "if compare_digest(hexlify(outer.digest()), authorization[-_SIGNATURE_CHARACTERS:]):",
        "if True:",
    ),
    "scope": (
        "_check_scope(day, region, service, terminator, stated.date, self._service)\n        at_s",
        "at_s",
    ),
    "skew": ("_check_skew(stated, at_s, now_s)\n        names", "names"),
    "signed headers": ("for needed in (*_SIGNED_HEADERS[self._service], *moment):", "for needed in moment:"),
    "moment": ("moment = (AS_OF_HEADER,) if _MOMENT in fields else ()", "moment = ()"),
    "moment, quick": ("or (_MOMENT in fields and not claim.signs_moment)", ""),
    "algorithm": ("if stated.algorithm != ALGORITHM.encode():", "if False:"),
    "asleep": ("or not credential.active", ""),
    "token": ("_check_token(credential, stated.token, now_s)\n        key", "key"),
    "session's end": ("credential.expires_at_s <= now_s:\n        raise", "False:\n        raise"),
    "signature": ("if not _matches(", "if False and not _matches("),
    "body": ("payload = hexlify(_sha256(body).digest())", 'payload = hexlify(_sha256(b"{}").digest())'),
    "query": ("canonical_form(query, names, method)", 'canonical_form(b"", names, method)'),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_verifier_without_one_check_is_caught(name: str) -> None:
    """The mutations detect each missing check, so a clean run is meaningful."""
    module = plant(sigv4, *PLANTED[name])
    try:
        passed, _ = _let_through(module, rounds=6, seed=5)
    except Fault as fault:  # it refuses unmutated requests
        passed = [str(fault)]

    assert passed


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys, days and dates take bounded memory, and an evicted key is verified again."""
    monkeypatch.setattr(sigv4, "_KNOWN_MAX", 3)
    monkeypatch.setattr(sigv4, "_DATES_MAX", 3)
    verifier: Verifier[Credential] = _verifier()
    for number in range(20):
        _verify(replace(ME, region=f"us-east-{number}", at_s=NOW_S + number).sign(), verifier)

    assert max(len(verifier._claims), len(verifier._keys), len(verifier._dates)) <= 3
