"""Free loopback ports that stay ours while a server restarts.

Ports are drawn from below the range that the kernel gives to outgoing connections. A port inside that range can be
taken while its server is down, even by a client that retries and ends up connected to itself; the server could then not
come back on the address its clients know. Nothing is reserved: between the draw and the server's own bind another
program may still be first, and that start fails with a clear log line.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LOWEST = 12_000
_EPHEMERAL_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_EPHEMERAL_START = 32_768
_DRAWS = 200


def free_loopback_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on, outside the range of outgoing connections."""
    highest = max(_ephemeral_start() - 1, _LOWEST + 1_000)
    draw = random.SystemRandom()
    for _ in range(_DRAWS):
        port = draw.randint(_LOWEST, highest)
        if _can_bind(port):
            return port
    raise OSError(f"no free port on {LOOPBACK} between {_LOWEST} and {highest} after {_DRAWS} draws")


def _ephemeral_start() -> int:
    try:
        return int(_EPHEMERAL_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_EPHEMERAL_START


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
