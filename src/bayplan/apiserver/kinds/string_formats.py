"""`format` of strings in schemas: whether a text has one, by the rules of kube-apiserver (go-openapi's strfmt).

Formats that are unknown accept every text, as there.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from bayplan.apiserver.protocol.encoding import parse_timestamp
from bayplan.cel.times import parse_duration

__all__ = ["has_format"]

_LABEL = r"[a-zA-Z0-9\u00a0-\uffff]([a-zA-Z0-9\u00a0-\uffff-]{0,61}[a-zA-Z0-9\u00a0-\uffff])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_ADDRESS = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
_NAMED_ADDRESS = re.compile(r"[^<>]*<([^<>]*)>")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_AMOUNT = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_WORDS = frozenset(
    f"{unit}{ending}"
    for unit in ("nano", "micro", "milli", "sec", "second", "min", "minute", "hr", "hour", "day", "wk", "week")
    for ending in ("", "s")
) | {"ns", "us", "µs", "ms", "s", "m", "h", "d", "w"}
_PATTERNS = {
    "uuid": re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE),
    "byte": re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "hexcolor": re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "mac": re.compile(
        r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}((\1[0-9a-f]{2}){2}|(\1[0-9a-f]{2}){14})?"
        r"|[0-9a-f]{4}(\.[0-9a-f]{4}){2}(\.[0-9a-f]{4}|(\.[0-9a-f]{4}){7})?",
        re.IGNORECASE,
    ),
}


def has_format(text: str, form: str) -> bool:
    pattern = _PATTERNS.get(form)
    if pattern is not None:
        return pattern.fullmatch(text) is not None
    check = _CHECKS.get(form)
    try:
        return check is None or check(text)
    except ValueError:
        return False


def _is_address(text: str, version: int) -> bool:
    return ipaddress.ip_address(text).version == version


def _is_network(text: str) -> bool:
    _, slash, bits = text.partition("/")
    return bool(slash) and bits.isdigit() and bool(ipaddress.ip_network(text, strict=False))


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and bool(datetime.date.fromisoformat(text))


def _is_time(text: str) -> bool:
    date, t, _ = text.upper().partition("T")
    return bool(t) and _is_date(date) and parse_timestamp(text) != 0.0


def _is_duration(text: str) -> bool:
    """Go's form, or an amount and a unit in words: `3 days`."""
    if parse_duration(text) is not None:
        return True
    found = _AMOUNT.fullmatch(text)
    return found is not None and found[2].lower() in _WORDS


def _is_email(text: str) -> bool:
    named = _NAMED_ADDRESS.fullmatch(text)
    return _ADDRESS.fullmatch(named[1] if named else text) is not None


def _is_host(text: str) -> bool:
    return 0 < len(text) <= 255 and _HOST.fullmatch(text) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_time,
    "duration": _is_duration,
    "email": _is_email,
    "hostname": _is_host,
    "ipv4": lambda text: _is_address(text, 4),
    "ipv6": lambda text: _is_address(text, 6),
    "cidr": _is_network,
    "uri": lambda text: bool(urlsplit(text).scheme),
}
