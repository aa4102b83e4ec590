"""Certificates for tests: an authority and a server's, made here so that no tool and no package is needed.

Elliptic-curve keys on P-256, and as much of X.509 as a client looks at. Not for anything but tests: the
arithmetic takes no care to hide the key.
"""

from __future__ import annotations

import hashlib
from base64 import encodebytes
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from random import Random

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_A = _P - 3
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None

_SEQUENCE, _SET, _INTEGER, _BITS, _OCTETS, _OID, _UTF8, _TIME, _TRUE = (
    *(0x30, 0x31, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x17),
    b"\x01\x01\xff",
)


@dataclass(frozen=True, slots=True)
class Files:
    """The files for a server and its client."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _Pair:
    secret: int
    public: bytes


def make_certificates(folder: Path, *names: str, seed: int = 1) -> Files:
    """Write an authority's certificate, and one for these names and addresses that it signed, with its key."""
    chance = Random(seed)
    authority, server = _pair(chance), _pair(chance)
    rooted = _certificate("Tavola test authority", authority, "Tavola test authority", authority, (), chance)
    shown = _certificate("Tavola test", server, "Tavola test authority", authority, names, chance)
    files = Files(folder / "authority.pem", folder / "server.pem", folder / "server.key")
    files.authority.write_text(_pem("CERTIFICATE", rooted))
    files.certificate.write_text(_pem("CERTIFICATE", shown))
    files.key.write_text(_pem("EC PRIVATE KEY", _key(server)))
    return files


def _certificate(
    name: str, pair: _Pair, issuer: str, signer: _Pair, names: tuple[str, ...], chance: Random
) -> bytes:
    now = datetime.now(UTC)
    days = (now - timedelta(days=1), now + timedelta(days=30))
    algorithm = _der(_SEQUENCE, _oid("1.2.840.10045.4.3.2"))
    body = _der(
        _SEQUENCE,
        _der(0xA0, _integer(2)),
        _integer(chance.getrandbits(100) | 1),
        algorithm,
        _named(issuer),
        _der(_SEQUENCE, *(_der(_TIME, f"{day:%y%m%d%H%M%SZ}".encode()) for day in days)),
        _named(name),
        _public(pair),
        _der(0xA3, _der(_SEQUENCE, *_extensions(pair, signer, names))),
    )
    return _der(_SEQUENCE, body, algorithm, _der(_BITS, b"\0" + _sign(signer, body, chance)))


def _extensions(pair: _Pair, signer: _Pair, names: tuple[str, ...]) -> list[bytes]:
    is_authority = not names
    basic = _der(_SEQUENCE, _TRUE) if is_authority else _der(_SEQUENCE)
    usage = b"\x01\x06" if is_authority else b"\x07\x80"  # to sign certificates; to sign
    found = [
        _extension("2.5.29.19", basic, critical=True),
        _extension("2.5.29.15", _der(_BITS, usage), critical=True),
        _extension("2.5.29.14", _der(_OCTETS, _fingerprint(pair))),
        _extension("2.5.29.35", _der(_SEQUENCE, _der(0x80, _fingerprint(signer)))),
    ]
    if names:
        found.append(_extension("2.5.29.17", _der(_SEQUENCE, *map(_alternative, names))))
    return found


def _alternative(name: str) -> bytes:
    try:
        return _der(0x87, ip_address(name).packed)
    except ValueError:
        return _der(0x82, name.encode())


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    return _der(_SEQUENCE, _oid(oid), _TRUE if critical else b"", _der(_OCTETS, value))


def _named(name: str) -> bytes:
    return _der(_SEQUENCE, _der(_SET, _der(_SEQUENCE, _oid("2.5.4.3"), _der(_UTF8, name.encode()))))


def _public(pair: _Pair) -> bytes:
    kind = _der(_SEQUENCE, _oid("1.2.840.10045.2.1"), _oid("1.2.840.10045.3.1.7"))
    return _der(_SEQUENCE, kind, _der(_BITS, b"\0" + pair.public))


def _key(pair: _Pair) -> bytes:
    return _der(
        _SEQUENCE,
        _integer(1),
        _der(_OCTETS, pair.secret.to_bytes(32, "big")),
        _der(0xA0, _oid("1.2.840.10045.3.1.7")),
        _der(0xA1, _der(_BITS, b"\0" + pair.public)),
    )


def _fingerprint(pair: _Pair) -> bytes:
    return hashlib.sha1(pair.public).digest()


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n"


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _integer(value: int) -> bytes:
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    out = bytearray([40 * first + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | number & 0x7F)
        out += bytes(reversed(digits))
    return _der(_OID, bytes(out))


def _pair(chance: Random) -> _Pair:
    secret = chance.randrange(1, _N)
    point = _times(secret, _G)
    assert point is not None
    return _Pair(secret, b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big"))


def _sign(pair: _Pair, message: bytes, chance: Random) -> bytes:
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    once = chance.randrange(1, _N)
    point = _times(once, _G)
    assert point is not None
    r = point[0] % _N
    s = pow(once, -1, _N) * (digest + r * pair.secret) % _N
    return _der(_SEQUENCE, _integer(r), _integer(s))


def _times(factor: int, point: _Point) -> _Point:
    total: _Point = None
    while factor:
        if factor & 1:
            total = _plus(total, point)
        point = _plus(point, point)
        factor >>= 1
    return total


def _plus(one: _Point, other: _Point) -> _Point:
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % _P == 0:
            return None
        slope = (3 * one[0] ** 2 + _A) * pow(2 * one[1], -1, _P) % _P
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, _P) % _P
    x = (slope**2 - one[0] - other[0]) % _P
    return x, (slope * (one[0] - x) - one[1]) % _P
