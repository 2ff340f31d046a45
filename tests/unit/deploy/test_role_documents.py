"""Roles that nobody has until somebody gives them: to look, and to write summaries."""

from __future__ import annotations

from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.manifests import ManifestOptions, manifests
from bayplan.deploy.role_documents import viewer_rules


def test_roles_come_without_bindings() -> None:
    documents = manifests(load_bundle(None, (), name="mine"), ManifestOptions(namespace="here"))
    roles = {d["metadata"]["name"]: d["rules"] for d in documents if d["kind"] == "ClusterRole"}
    bound = {d["roleRef"]["name"] for d in documents if d["kind"] == "ClusterRoleBinding"}

    assert roles["bayplan:here:mine:viewer"] == viewer_rules()
    assert roles["bayplan:here:mine:summaries"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]
    assert bound == {"bayplan:here:mine"}


def test_a_viewer_reads_and_plays() -> None:
    verbs = {url: rule["verbs"] for rule in viewer_rules() for url in rule["nonResourceURLs"]}

    assert verbs == {
        "/bayplan/v1/*": ["get"],
        "/dashboard": ["get"],
        "/dashboard/*": ["get"],
        "/bayplan/v1/whatif": ["post"],
    }
