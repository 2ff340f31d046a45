"""Addresses and networks."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('::1'))", True),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
            True,
        ),
        ("string(cidr('10.1.2.3/8').masked()) + ' ' + string(cidr('10.1.2.3/8').ip())", "10.0.0.0/8 10.1.2.3"),
        ("cidr('::/64').prefixLength() + ip('::1').family()", 70),
        ("isIP('1.2.3.4') && !isIP('01.2.3.4') && isCIDR('::/0') && !isCIDR('::/129')", True),
        ("ip('127.0.0.1').isLoopback() && ip('::').isUnspecified() && ip('fe80::1').isLinkLocalUnicast()", True),
        ("ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()", True),
        ("ip('8.8.8.8').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", True),
        ("ip.isCanonical('::1') && !ip.isCanonical('0::1')", True),
        ("ip('1:2:3:4:5:6:7::') == ip('1:2:3:4:5:6:7:0') && string(ip('::1.2.3.4')) == '::102:304'", True),
        ("type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2.3", "IPv4 address too short"),
        ("01.2.3.4", "IPv4 field has octet with leading zero"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("a.b.c.d", 'unexpected character (at "a.b.c.d")'),
        ("", "unable to parse IP"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2", "address string too short"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("::g", 'each colon-separated field must have at least one digit (at "g")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:", 'colon must be followed by more characters (at ":")'),
        ("1%2", "missing IPv6 address"),
    ],
)
def test_what_is_no_address_is_refused(text: str, expected: str) -> None:
    assert error("ip(a)", a=text) == (
        f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): {expected}'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("dyn(ip('::1')) == dyn(1)", "no such overload"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert error(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", "no '/'"),
        ("10.0.0.0/33", "prefix length out of range"),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("fe80::%a/10", "IPv6 zones cannot be present in a prefix"),
        ("10.0.0/8", 'ParseAddr("10.0.0"): IPv4 address too short'),
    ],
)
def test_what_is_no_network_is_refused(text: str, expected: str) -> None:
    assert error("cidr(a)", a=text).endswith(f'netip.ParsePrefix("{text}"): {expected}')
