"""Extenders of a configuration, as the scheduler will ask them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from bayplan.app.extenders import candidate_review, make_extenders
from bayplan.app.frameworks import queue_policy
from bayplan.client.extender import ExtenderHttp
from bayplan.cluster.state import ClusterState
from bayplan.config.loading import load_config
from bayplan.config.model import SchedulerConfig
from bayplan.framework.events import WILDCARD
from bayplan.testing.harness import Harness


def config(*extenders: dict[str, Any]) -> SchedulerConfig:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    return load_config(json.dumps(document))


def made(*extenders: dict[str, Any]) -> Any:
    found = make_extenders(config(*extenders), ExtenderHttp(), ClusterState())
    assert found is not None
    return found.all


def endpoint(**fields: Any) -> Any:
    return made({"urlPrefix": "https://extender.test", **fields})[0].send.args[0]


def test_without_extenders_there_is_nothing_to_ask() -> None:
    assert make_extenders(config(), ExtenderHttp(), ClusterState()) is None


def test_those_that_must_answer_come_first() -> None:
    names = ("a", "b", "c")
    extenders = made(*({"urlPrefix": f"http://{n}.test", "ignorable": n == "a"} for n in names))

    assert [e.name for e in extenders] == ["http://b.test", "http://c.test", "http://a.test"]


def test_five_seconds_are_the_time_to_answer_unless_another_is_given() -> None:
    assert endpoint().timeout_seconds == 5
    assert endpoint(httpTimeout="0s").timeout_seconds == 5
    assert endpoint(httpTimeout="250ms").timeout_seconds == 0.25


def test_https_without_an_authority_checks_nothing_only_where_the_configuration_says_so() -> None:
    assert not endpoint().tls.insecure
    assert endpoint(enableHTTPS=True).tls.insecure
    assert not endpoint(enableHTTPS=True, tlsConfig={"caFile": "/ca.pem"}).tls.insecure
    assert endpoint(tlsConfig={"insecure": True}).tls.insecure


def test_certificates_come_from_files_or_from_base64() -> None:
    data = {"certData": _encoded("cert"), "keyData": _encoded("key"), "caData": _encoded("ca"), "serverName": "x.test"}
    tls = endpoint(tlsConfig=data).tls
    assert (tls.authority.data, tls.certificate.certificate.data, tls.certificate.key.data) == (b"ca", b"cert", b"key")
    assert tls.server_name == "x.test"

    tls = endpoint(tlsConfig={"certFile": "/c", "keyFile": "/k", "caFile": "/a"}).tls
    assert (tls.authority.path, tls.certificate.key.path) == (Path("/a"), Path("/k"))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_only_an_extender_with_a_preempt_verb_reviews_candidates() -> None:
    http, cluster = ExtenderHttp(), ClusterState()
    filtering = make_extenders(config({"urlPrefix": "http://a.test", "filterVerb": "filter"}), http, cluster)
    preempting = make_extenders(config({"urlPrefix": "http://a.test", "preemptVerb": "preempt"}), http, cluster)

    assert candidate_review(None) is None
    assert candidate_review(filtering) is None
    review = candidate_review(preempting)
    assert review is not None
    assert review([]) == []


def test_pods_that_an_extender_rejected_hear_of_every_event() -> None:
    harness = Harness()
    frameworks = {"default-scheduler": harness.framework()}
    policy = queue_policy(frameworks, has_extenders=True)
    names = {name: hint.event for name, hint in policy.registrations["default-scheduler"]}

    assert names["Extender"] is WILDCARD
    assert "Extender" not in {name for name, _ in queue_policy(frameworks).registrations["default-scheduler"]}
