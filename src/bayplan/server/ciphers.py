"""Maps the cipher suite names of `--tls-cipher-suites` to those of OpenSSL.

Only suites of TLS 1.2 can be chosen. Those of TLS 1.3 are all sound and always on, in Go as in OpenSSL; their names are
accepted and change nothing. Suites without forward secrecy, and broken ones, are refused.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from bayplan.server.options import ServingError

__all__ = ["choose_ciphers"]

_TLS12 = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
_TLS13 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))


def choose_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow these suites and no others in TLS 1.2."""
    unknown = [name for name in names if name not in _TLS12 and name not in _TLS13]
    if unknown:
        raise ServingError(
            f"--tls-cipher-suites: {', '.join(f'`{name}`' for name in unknown)} cannot be served\n"
            f"hint: choose from {', '.join(_TLS12)}"
        )
    chosen = [_TLS12[name] for name in names if name in _TLS12]
    if not chosen:
        # No suite of TLS 1.2 is allowed, and OpenSSL refuses an empty list.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(chosen))
    except ssl.SSLError as error:
        raise ServingError(f"--tls-cipher-suites: OpenSSL here has none of {', '.join(names)}") from error
