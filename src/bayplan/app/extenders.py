"""From the extenders of a configuration to extenders that send requests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bayplan.client.extender import ExtenderEndpoint, ExtenderHttp
from bayplan.client.tls import ClientCertificate, Pem, TlsSettings
from bayplan.cluster.state import ClusterState
from bayplan.config.model import ExtenderConfig, ExtenderTls, SchedulerConfig
from bayplan.framework.handle import Candidate
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.extender import Extender

__all__ = ["CandidateReview", "candidate_review", "make_extenders"]


def make_extenders(config: SchedulerConfig, http: ExtenderHttp, cluster: ClusterState) -> Extenders | None:
    """None when the configuration names none."""
    if not config.extenders:
        return None
    return Extenders([_extender(extender, http) for extender in config.extenders], cluster)


def _extender(config: ExtenderConfig, http: ExtenderHttp) -> Extender:
    endpoint = ExtenderEndpoint(
        url_prefix=config.url_prefix,
        timeout_seconds=config.http_timeout.total_seconds(),
        tls=_tls(config.tls_config or ExtenderTls(), enable_https=config.enable_https),
    )
    return Extender(
        name=config.url_prefix,
        send=partial(http.post, endpoint),
        filter_verb=config.filter_verb,
        prioritize_verb=config.prioritize_verb,
        preempt_verb=config.preempt_verb,
        bind_verb=config.bind_verb,
        weight=config.weight,
        is_ignorable=config.ignorable,
        is_node_cache_capable=config.node_cache_capable,
        managed_resources=frozenset(resource.name for resource in config.managed_resources),
    )


def _tls(given: ExtenderTls, *, enable_https: bool) -> TlsSettings:
    """As kube-scheduler reads it: `enableHTTPS` without an authority to check against checks nothing."""
    authority = _pem(given.ca_file, given.ca_data)
    certificate, key = _pem(given.cert_file, given.cert_data), _pem(given.key_file, given.key_data)
    return TlsSettings(
        authority=authority,
        certificate=ClientCertificate(certificate, key) if certificate is not None and key is not None else None,
        server_name=given.server_name or None,
        insecure=given.insecure or (enable_https and authority is None),
    )


def _pem(path: str, data: str) -> Pem | None:
    if data:
        return Pem(data=_decoded(data))
    return Pem(path=Path(path)) if path else None


def _decoded(data: str) -> bytes:
    """Base64, as the configuration requires; PEM text is accepted as well."""
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return data.encode()


# Preemption


CandidateReview = Callable[[Sequence[Candidate]], Sequence[Candidate]]


def candidate_review(extenders: Extenders | None) -> CandidateReview | None:
    """Which candidates of a preemption the extenders agree with; None where none of them has a preempt verb."""
    if extenders is None or not any(extender.preempt_verb for extender in extenders.all):
        return None

    def review(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        answers = extenders.current
        return candidates if answers is None else answers.preempt(candidates)

    return review
