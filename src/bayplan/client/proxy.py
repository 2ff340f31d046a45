"""Selects the proxy for an API server: that of the kubeconfig, else of the environment.

The rules for the environment are those of Go programs, so that a scheduler started in the same shell as kubectl uses
the same proxy: HTTPS_PROXY or HTTP_PROXY by the scheme of the URL, upper case first, NO_PROXY for exceptions, and never
one for this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from bayplan.client.errors import KubeconfigError

SUPPORTED_SCHEMES = ("http", "https")


def proxy_for(server: str, configured: str | None, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy to use for `server`, or None for a direct connection."""
    if configured:
        return checked_proxy(configured, source="`proxy-url` of the kubeconfig")
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    found = environment.get(name.upper()) or environment.get(name)
    if not found or _is_exempt(parts.hostname or "", parts.port, environment):
        return None
    if "://" not in found:
        found = f"http://{found}"
    return checked_proxy(found, source=f"the environment variable {name.upper()}")


def checked_proxy(url: str, *, source: str) -> str:
    """`url`, if it is supported. Error messages leave the URL out: it may hold a password."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in SUPPORTED_SCHEMES and bool(parts.hostname) and parts.port is not False
    except ValueError:
        is_usable = False
    if not is_usable:
        raise KubeconfigError(
            f"the proxy in {source} is not one we can use",
            hint="give an `http://host:port` or `https://host:port` proxy; SOCKS is not supported",
        )
    return url


def _is_exempt(host: str, port: int | None, environment: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return any(_matches(rule.strip().lower(), host.lower(), port, address) for rule in rules.split(",") if rule.strip())


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _matches(rule: str, host: str, port: int | None, address: _Address | None) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _is_in_network(address, rule)
    rule_host, rule_port = _split_port(rule)
    if rule_port is not None and rule_port != port:
        return False
    if address is not None:
        return _address(rule_host) == address
    domain = rule_host.removeprefix("*").removeprefix(".")
    is_subdomain = host.endswith(f".{domain}")
    return is_subdomain if rule_host.startswith((".", "*")) else (host == domain or is_subdomain)


def _split_port(rule: str) -> tuple[str, int | None]:
    host, separator, port = rule.rpartition(":")
    if separator and port.isdigit() and (":" not in host or host.startswith("[")):
        return host.strip("[]"), int(port)
    return rule.strip("[]"), None


def _is_in_network(address: _Address, rule: str) -> bool:
    try:
        return address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
