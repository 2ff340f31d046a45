"""Built-in kinds, continued: networks. They are stored and shown; simulated nodes have no network that obeys them."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds.columns import AGE, NAME, NONE, Column, at, get, selector_text
from bayplan.apiserver.kinds.kind import CONTROLLED_METADATA, ServedKind
from bayplan.apiserver.kinds.rows import builtin_kind, selectable
from bayplan.apiserver.protocol.encoding import Json


def networking_kinds() -> list[ServedKind]:
    group: dict[str, Any] = {"group": "networking.k8s.io"}
    return [
        builtin_kind(
            "networking.v1.Ingress",
            "ingresses",
            short_names=("ing",),
            status=True,
            generation=True,
            columns=_INGRESS,
            **group,
        ),
        builtin_kind(
            "networking.v1.IngressClass",
            "ingressclasses",
            namespaced=False,
            generation=True,
            columns=_INGRESS_CLASS,
            default=_default_ingress_class,
            **group,
        ),
        builtin_kind(
            "networking.v1.NetworkPolicy",
            "networkpolicies",
            short_names=("netpol",),
            generation=True,
            columns=_NETWORK_POLICY,
            default=_default_network_policy,
            **group,
        ),
        builtin_kind(
            "networking.v1.ServiceCIDR",
            "servicecidrs",
            namespaced=False,
            status=True,
            kept_by_status=CONTROLLED_METADATA,
            columns=_SERVICE_CIDR,
            **group,
        ),
        builtin_kind(
            "networking.v1.IPAddress",
            "ipaddresses",
            namespaced=False,
            short_names=("ip",),
            name_rule="path",
            columns=_IP_ADDRESS,
            selectable=selectable("spec.parentRef.group", "spec.parentRef.resource"),
            **group,
        ),
    ]


def _default_ingress_class(document: Json) -> None:
    parameters = get(document, "spec", "parameters")
    if parameters:
        parameters.setdefault("scope", "Cluster")


def _default_network_policy(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _hosts(document: Json, _: float) -> str:
    hosts = [rule["host"] for rule in get(document, "spec", "rules") or () if rule.get("host")]
    return f"{','.join(hosts[:3])} + {len(hosts) - 3} more..." if len(hosts) > 3 else ",".join(hosts) or "*"


def _addresses(document: Json, _: float) -> str:
    found = get(document, "status", "loadBalancer", "ingress") or ()
    return ",".join(one.get("ip") or one.get("hostname", "") for one in found)


def _parameters(document: Json, _: float) -> str:
    found = get(document, "spec", "parameters")
    if not found:
        return NONE
    kind = f"{found['kind']}.{found['apiGroup']}" if found.get("apiGroup") else found["kind"]
    return f"{kind}/{found['name']}"


def _parent(document: Json, _: float) -> str:
    found = get(document, "spec", "parentRef") or {}
    resource = f"{found.get('group')}/{found.get('resource')}" if found.get("group") else found.get("resource", "")
    return "/".join(part for part in (resource, found.get("namespace"), found.get("name")) if part)


_INGRESS = (
    NAME,
    Column("Class", lambda doc, _: get(doc, "spec", "ingressClassName") or NONE),
    Column("Hosts", _hosts),
    Column("Address", _addresses),
    Column("Ports", lambda doc, _: "80, 443" if get(doc, "spec", "tls") else "80"),
    AGE,
)
_INGRESS_CLASS = (NAME, Column("Controller", at("spec", "controller")), Column("Parameters", _parameters), AGE)
_NETWORK_POLICY = (
    NAME,
    Column("Pod-Selector", lambda doc, _: selector_text(get(doc, "spec", "podSelector", "matchLabels"))),
    AGE,
)
_SERVICE_CIDR = (NAME, Column("CIDRs", lambda doc, _: ",".join(get(doc, "spec", "cidrs") or ())), AGE)
_IP_ADDRESS = (NAME, Column("ParentRef", _parent), AGE)
