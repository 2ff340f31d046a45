"""IP addresses and networks in expressions: `cidr("10.0.0.0/8").containsIP("10.1.2.3")`.

Addresses are read strictly: four decimal numbers without leading zeros, or groups of hexadecimal digits; no zones,
and no IPv4 addresses written as IPv6.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network

from bayplan.cel.declarations import Library, function, member, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.formatting import quoted
from bayplan.cel.types import BOOL, INT, STRING, opaque_type
from bayplan.cel.values import Special, Value, no_overload

__all__ = ["CIDR", "CIDRS", "IP", "IPS"]

_IP, _CIDR = opaque_type("net.IP"), opaque_type("net.CIDR")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_MAPPED = 0xFFFF

Address = IPv4Address | IPv6Address


class IP(Special):
    """An address."""

    __slots__ = ("address",)
    type = _IP
    reflected_name = "cel.IP"
    has_fixed_cost = True

    def __init__(self, address: Address) -> None:
        self.address = address

    def equals(self, other: Value) -> bool:
        if not isinstance(other, IP):
            raise no_overload()
        return self.address == other.address

    def size(self) -> int:
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


class CIDR(Special):
    """A network: an address in it and the length of its prefix."""

    __slots__ = ("address", "bits")
    type = _CIDR
    reflected_name = "cel.CIDR"
    has_fixed_cost = True

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def equals(self, other: Value) -> bool:
        if not isinstance(other, CIDR):
            raise no_overload()
        return (self.address, self.bits) == (other.address, other.bits)

    def size(self) -> int:
        return -(-self.bits // 8)

    def masked(self) -> CIDR:
        return CIDR(ip_network((self.address, self.bits), strict=False).network_address, self.bits)

    def holds(self, address: Address) -> bool:
        shift = self.address.max_prefixlen - self.bits
        return self.address.version == address.version and int(self.address) >> shift == int(address) >> shift

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


class _Unreadable(Exception):
    def __init__(self, message: str, rest: str | None = None) -> None:
        super().__init__(message if rest is None else f"{message} (at {quoted(rest)})")


def _read(text: str) -> tuple[Address, str]:
    """The address and its zone. Raises `_Unreadable` with what is wrong and where."""
    for character in text:
        if character == ".":
            return IPv4Address(_read_v4(text)), ""
        if character == ":":
            return _read_v6(text)
        if character == "%":
            raise _Unreadable("missing IPv6 address")
    raise _Unreadable("unable to parse IP")


def _read_v4(text: str) -> int:
    fields: list[str] = [""]
    for position, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if fields[-1] == "0":
                raise _Unreadable("IPv4 field has octet with leading zero")
            fields[-1] += character
            if int(fields[-1]) > 255:
                raise _Unreadable("IPv4 field has value >255")
        elif character == ".":
            if not fields[-1] or position == len(text) - 1:
                raise _Unreadable("IPv4 field must have at least one digit", text[position:])
            if len(fields) == 4:
                raise _Unreadable("IPv4 address too long")
            fields.append("")
        else:
            raise _Unreadable("unexpected character", text[position:])
    if len(fields) < 4:
        raise _Unreadable("IPv4 address too short")
    first, second, third, fourth = map(int, fields)
    return (first << 24) | (second << 16) | (third << 8) | fourth


def _read_v6(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _Unreadable("zone must be a non-empty string")
    groups: list[int] = []
    gap: int | None = None
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
    while rest and len(groups) < 8:
        digits = 0
        while digits < len(rest) and rest[digits] in _HEXADECIMAL:
            digits += 1
            if digits > 4:
                raise _Unreadable("each group must have 4 or less digits", rest)
        if digits == 0:
            raise _Unreadable("each colon-separated field must have at least one digit", rest)
        if rest[digits : digits + 1] == ".":
            groups += _embedded(rest, groups, gap)
            rest = ""
            break
        groups.append(int(rest[:digits], 16))
        rest = rest[digits:]
        if not rest:
            break
        if rest[0] != ":":
            raise _Unreadable("unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _Unreadable("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if gap is not None:
                raise _Unreadable("multiple :: in address", rest)
            gap, rest = len(groups), rest[1:]
    if rest:
        raise _Unreadable("trailing garbage after address", rest)
    return IPv6Address(_joined(groups, gap)), zone


def _embedded(rest: str, groups: list[int], gap: int | None) -> list[int]:
    if gap is None and len(groups) != 6:
        raise _Unreadable("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if len(groups) > 6:
        raise _Unreadable("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    number = _read_v4(rest)
    return [number >> 16, number & 0xFFFF]


def _joined(groups: list[int], gap: int | None) -> int:
    missing = 8 - len(groups)
    if missing and gap is None:
        raise _Unreadable("address string too short")
    if not missing and gap is not None:
        raise _Unreadable("the :: must expand to at least one field of zeros")
    filled = groups if gap is None else [*groups[:gap], *[0] * missing, *groups[gap:]]
    return int("".join(f"{group:04x}" for group in filled), 16)


def _parse(text: str) -> Address:
    try:
        address, zone = _read(text)
    except (_Unreadable, AddressValueError) as problem:
        place = f"IP Address {quoted(text)} parse error during conversion from string: ParseAddr({quoted(text)}): "
        raise EvaluationError(place + str(problem)) from None
    if zone:
        raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _is_mapped(address: Address) -> bool:
    return address.version == 6 and int(address) >> 32 == _MAPPED


def _parse_ip(text: str) -> Value:
    return IP(_parse(text))


def _parse_cidr(text: str) -> CIDR:
    problem = "network address parse error during conversion from string: "
    place = f"{problem}{problem}netip.ParsePrefix({quoted(text)}): "
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(place + "no '/'")
    try:
        address, zone = _read(before)
    except _Unreadable as unreadable:
        raise EvaluationError(f"{place}ParseAddr({quoted(before)}): {unreadable}") from None
    if zone:
        raise EvaluationError(place + "IPv6 zones cannot be present in a prefix")
    if not (bits.isascii() and bits.isdigit()) or (len(bits) > 1 and bits[0] == "0"):
        raise EvaluationError(f"{place}bad bits after slash: {quoted(bits)}")
    if len(bits) > 3 or int(bits) > address.max_prefixlen:
        raise EvaluationError(place + "prefix length out of range")
    if _is_mapped(address):
        raise EvaluationError(f"{problem}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return CIDR(address, int(bits))


def _is_ip(text: str) -> Value:
    return _succeeds(_parse_ip, text)


def _is_cidr(text: str) -> Value:
    return _succeeds(_parse_cidr, text)


def _succeeds(parse: Callable[[str], Value], text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _is_canonical(text: str) -> Value:
    return str(_parse(text)) == text


def _is_global_unicast(ip: IP) -> Value:
    address = ip.address
    if address.version == 4 and address == IPv4Address("255.255.255.255"):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _is_link_local_multicast(ip: IP) -> Value:
    if ip.address.version == 4:
        return CIDR(IPv4Address("224.0.0.0"), 24).holds(ip.address)
    return int(ip.address) >> 112 & 0xFF0F == 0xFF02


def _contains_ip(network: CIDR, ip: IP) -> Value:
    return network.holds(ip.address)


def _contains_text(network: CIDR, text: str) -> Value:
    """Raises an error that does not say what is wrong with the address."""
    if not _succeeds(_parse_ip, text):
        raise no_overload()
    return network.holds(_parse(text))


def _contains_cidr(network: CIDR, other: CIDR) -> Value:
    return network.bits <= other.bits and network.holds(other.address)


IPS = Library(
    "kubernetes.net.ip",
    (
        function("ip", overload("string_to_ip", (STRING,), _IP, _parse_ip)),
        function("family", member("ip_family", (_IP,), INT, lambda ip: ip.address.version)),
        function("ip.isCanonical", overload("ip_is_canonical", (STRING,), BOOL, _is_canonical)),
        function("isUnspecified", member("ip_is_unspecified", (_IP,), BOOL, lambda ip: ip.address.is_unspecified)),
        function("isLoopback", member("ip_is_loopback", (_IP,), BOOL, lambda ip: ip.address.is_loopback)),
        function("isLinkLocalMulticast", member("ip_is_link_local_multicast", (_IP,), BOOL, _is_link_local_multicast)),
        function(
            "isLinkLocalUnicast", member("ip_is_link_local_unicast", (_IP,), BOOL, lambda ip: ip.address.is_link_local)
        ),
        function("isGlobalUnicast", member("ip_is_global_unicast", (_IP,), BOOL, _is_global_unicast)),
        function("isIP", overload("is_ip", (STRING,), BOOL, _is_ip)),
        function("string", overload("ip_to_string", (_IP,), STRING, str)),
    ),
    types={"net.IP": _IP},
)

CIDRS = Library(
    "kubernetes.net.cidr",
    (
        function("cidr", overload("string_to_cidr", (STRING,), _CIDR, _parse_cidr)),
        function(
            "containsIP",
            member("cidr_contains_ip_string", (_CIDR, STRING), BOOL, _contains_text),
            member("cidr_contains_ip_ip", (_CIDR, _IP), BOOL, _contains_ip),
        ),
        function(
            "containsCIDR",
            member(
                "cidr_contains_cidr_string",
                (_CIDR, STRING),
                BOOL,
                lambda network, text: _contains_cidr(network, _parse_cidr(text)),
            ),
            member("cidr_contains_cidr", (_CIDR, _CIDR), BOOL, _contains_cidr),
        ),
        function("ip", member("cidr_ip", (_CIDR,), _IP, lambda network: IP(network.address))),
        function("prefixLength", member("cidr_prefix_length", (_CIDR,), INT, lambda network: network.bits)),
        function("masked", member("cidr_masked", (_CIDR,), _CIDR, CIDR.masked)),
        function("isCIDR", overload("is_cidr", (STRING,), BOOL, _is_cidr)),
        function("string", overload("cidr_to_string", (_CIDR,), STRING, str)),
    ),
    types={"net.CIDR": _CIDR},
)
