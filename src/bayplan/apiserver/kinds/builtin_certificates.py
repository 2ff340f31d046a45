"""Built-in kinds, continued: requests for certificates. They are checked, stored and approved; no controller signs
them."""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from bayplan.apiserver.kinds.columns import AGE, NAME, NONE, Cell, Column, at, get, human_duration
from bayplan.apiserver.kinds.kind import Admission, ServedKind
from bayplan.apiserver.kinds.rows import builtin_kind, selectable
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause

_SHORTEST_SECONDS = 600
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


def certificate_kinds() -> list[ServedKind]:
    return [
        builtin_kind(
            "certificates.v1.CertificateSigningRequest",
            "certificatesigningrequests",
            group="certificates.k8s.io",
            namespaced=False,
            short_names=("csr",),
            status=True,
            columns=_REQUEST,
            selectable=selectable("spec.signerName"),
            admit=_admit_request,
            validate=_validate_request,
        )
    ]


def _admit_request(document: Json, old: Json | None, admission: Admission) -> None:
    """The server sets who requests it, and a request does not change afterwards."""
    if old is not None:
        document["spec"] = old["spec"]
        return
    spec = {name: value for name, value in (document.get("spec") or {}).items() if name not in _ASKER}
    user = admission.user
    asker: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
    document["spec"] = spec | {name: value for name, value in asker.items() if value}


_ASKER = ("username", "uid", "groups", "extra")


def _validate_request(document: Json, old: Json | None) -> list[Cause]:
    spec, causes = document.get("spec") or {}, list[Cause]()
    problem = _wrong_with_content(spec.get("request") or "")
    if problem:
        causes.append(errors.invalid_value("spec.request", spec.get("request", ""), problem))
    usages = spec.get("usages") or []
    if not usages:
        causes.append(errors.required("spec.usages"))
    for index, usage in enumerate(usages):
        path = f"spec.usages[{index}]"
        if usage not in _USAGES:
            causes.append(errors.not_supported(path, usage, _USAGES))
        elif usage in usages[:index]:
            causes.append(errors.duplicate_value(path, usage))
    if not spec.get("signerName"):
        causes.append(errors.required("spec.signerName"))
    elif "/" not in spec["signerName"]:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        causes.append(errors.invalid_value("spec.signerName", spec["signerName"], detail))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_SECONDS:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        causes.append(errors.invalid_value("spec.expirationSeconds", seconds, detail))
    return causes


def _wrong_with_content(request: str) -> str:
    try:
        content = base64.b64decode(request, validate=True)
        if not x509.load_pem_x509_csr(content).is_signature_valid:
            return "the signature of the certificate request is wrong"
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
        return "PEM block type must be CERTIFICATE REQUEST"
    return ""


def _condition(document: Json, _: float) -> Cell:
    found = {one.get("type") for one in get(document, "status", "conditions") or ()}
    decided = [name for name in ("Denied", "Approved") if name in found]
    said = decided[:1] + (["Failed"] if "Failed" in found else [])
    said += ["Issued"] if get(document, "status", "certificate") else []
    return ",".join(said) or "Pending"


def _duration(document: Json, _: float) -> Cell:
    seconds = get(document, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


_REQUEST = (
    NAME,
    AGE,
    Column("SignerName", at("spec", "signerName", default=NONE)),
    Column("Requestor", at("spec", "username")),
    Column("RequestedDuration", _duration),
    Column("Condition", _condition),
)
