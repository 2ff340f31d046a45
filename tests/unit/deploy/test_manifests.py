"""Manifests: derived, least privilege, and safe to apply twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.app.settings import SettingsError
from bayplan.config.loading import load_config
from bayplan.deploy.bundle import Bundle, load_bundle
from bayplan.deploy.manifests import ManifestOptions, manifests
from bayplan.deploy.rbac import core_permissions, merged_rules, needed_permissions
from bayplan.deploy.static_pod import static_pod_files
from bayplan.framework import Permission
from bayplan.plugins.community.scheduling_timestamp import SchedulingTimestamp

EXAMPLES = Path(__file__).parents[3] / "examples" / "references"
PLUGIN = """
from bayplan.framework import Permission, Plugin

class Tagger(Plugin):
    permissions = (Permission("example.com", "tags", ("list",)),)

    def score(self, state, pod, node):
        return 0
"""


def _bundle(reference: str) -> Bundle:
    return load_bundle(EXAMPLES / reference / "scheduler.yaml", ())


def _by_kind(bundle: Bundle, **options: Any) -> dict[str, Any]:
    return {document["kind"]: document for document in manifests(bundle, ManifestOptions(**options))}


def _verbs(documents: dict[str, Any], resource: str) -> set[str]:
    rules = [rule for rule in documents["ClusterRole"]["rules"] if resource in rule["resources"]]
    return {verb for rule in rules for verb in rule["verbs"]}


def test_pods_may_be_patched_only_where_a_plugin_patches_them() -> None:
    assert "patch" in _verbs(_by_kind(_bundle("timestamp")), "pods")
    assert "patch" not in _verbs(_by_kind(_bundle("score-by-label")), "pods")


def test_definitions_come_with_the_plugins_that_watch_them() -> None:
    assert "CustomResourceDefinition" in _by_kind(_bundle("node-crd"))
    assert "CustomResourceDefinition" not in _by_kind(_bundle("score-by-label"))
    assert _verbs(_by_kind(_bundle("node-crd")), "clusterscopedresources") == {"get", "list", "watch"}


def test_no_rule_has_a_wildcard() -> None:
    text = yaml.safe_dump_all(manifests(_bundle("node-crd"), ManifestOptions()))

    assert "'*'" not in text.replace("name: '*'", "")


def test_the_pod_is_locked_down() -> None:
    spec = _by_kind(_bundle("score-by-label"))["Deployment"]["spec"]["template"]["spec"]
    [container] = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["requests"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_pod_has_a_limit_of_memory_and_one_port_that_can_be_reached() -> None:
    documents = _by_kind(_bundle("timestamp"))
    template = documents["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    policy = documents["NetworkPolicy"]["spec"]

    assert container["resources"]["limits"]["memory"]
    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 10259}]}]


def test_two_replicas_elect_a_leader_under_a_lease_of_their_own() -> None:
    documents = _by_kind(_bundle("score-by-label"), replicas=2, namespace="sched")
    config = load_config(documents["ConfigMap"]["data"]["config.yaml"])

    assert config.leader_election.leader_elect
    assert (config.leader_election.resource_name, config.leader_election.resource_namespace) == (
        "scorebylabel",
        "sched",
    )
    assert documents["Role"]["rules"][1]["resourceNames"] == ["scorebylabel"]
    assert documents["PodDisruptionBudget"]["spec"]["minAvailable"] == 1


def test_one_replica_without_election_needs_no_lease() -> None:
    documents = _by_kind(_bundle("score-by-label"))

    assert "Role" not in documents
    assert "PodDisruptionBudget" not in documents


def test_the_path_of_a_kubeconfig_does_not_go_into_the_cluster() -> None:
    assert "kubeconfig" not in _by_kind(_bundle("node-crd"))["ConfigMap"]["data"]["config.yaml"]


def test_a_plugin_file_travels_in_the_config_map(tmp_path: Path) -> None:
    file = tmp_path / "tagger.py"
    file.write_text(PLUGIN)
    bundle = load_bundle(None, [str(file)], name="tagging")

    documents = _by_kind(bundle)

    assert documents["ConfigMap"]["data"]["tagger.py"] == PLUGIN
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert "--plugin=/etc/bayplan/tagger.py" in container["args"]
    assert _verbs(documents, "tags") == {"list"}
    config = load_config(documents["ConfigMap"]["data"]["config.yaml"])
    assert [profile.scheduler_name for profile in config.profiles] == ["tagging"]


def test_two_plugin_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(PLUGIN.replace("Tagger", f"Tagger{folder}"))

    with pytest.raises(SettingsError, match="rename one of them"):
        load_bundle(None, [str(tmp_path / "one/same.py"), str(tmp_path / "two/same.py")])


def test_a_changed_configuration_changes_the_pods() -> None:
    digests = [
        _by_kind(bundle)["Deployment"]["spec"]["template"]["metadata"]["annotations"]["bayplan/config-digest"]
        for bundle in (_bundle("score-by-label"), _bundle("score-by-label"), _bundle("block-all"))
    ]

    assert digests[0] == digests[1] != digests[2]


def test_permissions_of_one_resource_are_merged_in_a_fixed_order() -> None:
    needed = {(p.group, p.resource): p.verbs for p in needed_permissions([SchedulingTimestamp])}

    assert needed["", "pods"] == ("get", "list", "watch", "patch")
    assert len(needed) == len(core_permissions())


def test_resources_with_the_same_verbs_share_a_rule() -> None:
    rules = merged_rules([Permission("", "b", ("get",)), Permission("", "a", ("get",)), Permission("x", "a", ("get",))])

    assert rules == [
        {"apiGroups": [""], "resources": ["a", "b"], "verbs": ["get"]},
        {"apiGroups": ["x"], "resources": ["a"], "verbs": ["get"]},
    ]


def test_a_static_pod_uses_the_nodes_disk_and_the_default_lease() -> None:
    files = static_pod_files(_bundle("timestamp"), image="bayplan:test")
    config = load_config(files["bayplan/config.yaml"])
    pod = yaml.safe_load(files["kube-scheduler.yaml"])

    assert config.leader_election.resource_name == "kube-scheduler"
    assert config.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert all("hostPath" in volume for volume in pod["spec"]["volumes"])
    binding = list(yaml.safe_load_all(files["cluster.yaml"]))[-1]
    assert binding["subjects"][0]["name"] == "system:kube-scheduler"


def test_the_account_may_read_whose_client_certificates_the_cluster_trusts() -> None:
    """By a binding in kube-system that carries the namespace in its name, so that two installations do not share it."""
    documents = manifests(_bundle("timestamp"), ManifestOptions(namespace="sched"))
    [binding] = [d for d in documents if d["kind"] == "RoleBinding"]

    assert binding["roleRef"]["name"] == "extension-apiserver-authentication-reader"
    assert binding["metadata"]["namespace"] == "kube-system"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "bayplan", "namespace": "sched"}]
    assert "sched" in binding["metadata"]["name"]


def test_a_namespace_that_clusters_do_not_have_comes_first() -> None:
    documents = manifests(_bundle("timestamp"), ManifestOptions(namespace="scheduling"))

    assert documents[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "scheduling"}}
    assert all(each["kind"] != "Namespace" for each in manifests(_bundle("timestamp"), ManifestOptions()))


def test_the_check_of_a_static_pod_loads_the_plugins_that_it_runs_with(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from bayplan.framework import Plugin\n\n\nclass Mine(Plugin):\n"
        "    def score(self, state, pod, node):\n        return 1\n"
    )
    text = static_pod_files(load_bundle(None, [str(plugin)]), image="bayplan:test")["README.txt"]

    folder = "/etc/kubernetes/bayplan"
    assert f"bayplan run --config={folder}/config.yaml --plugin={folder}/mine.py --write-config-to -" in text
