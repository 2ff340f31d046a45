"""The doctor's checks, each on the situation that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.client.support import ScriptedTransport, answer, page, refusal

from bayplan.api.devices import ResourceSlice
from bayplan.api.pod import PodCondition, PodResourceClaim
from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import Response
from bayplan.cluster.pod_info import parse_time
from bayplan.deploy.bundle import Bundle, load_bundle
from bayplan.deploy.crds import crd_document
from bayplan.deploy.doctor import Examination, Finding, Level, examine
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.definitions import schema_differences
from bayplan.deploy.doctor.devices import check_classes, check_devices, check_pools
from bayplan.deploy.doctor.workloads import check_nodes, check_pods, check_profiles, check_rivals
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.testing import node, pod

EXAMPLES = Path(__file__).parents[3] / "examples" / "references"
NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(EXAMPLES / "node-crd/scheduler.yaml", ())


def _levels(findings: list[Finding]) -> list[Level]:
    return [finding.level for finding in findings]


def _waiting(name: str, scheduler: str) -> Any:
    made = pod(name, scheduler=scheduler)
    made.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    return made


def test_a_pod_that_nobody_looked_at_is_found_and_the_name_that_was_meant(bundle: Bundle) -> None:
    [finding] = check_pods([_waiting("web", "secondary-schedular")], bundle, now=NOW)

    assert finding.level is Level.ERROR
    assert "default/web" in finding.what
    assert "schedulerName: secondary-scheduler" in finding.fix


def test_pods_that_wait_with_a_reason_or_for_a_gate_are_well(bundle: Bundle) -> None:
    refused = _waiting("refused", "secondary-scheduler")
    refused.status.conditions = [PodCondition(type="PodScheduled", status="False")]
    gated = pod("gated", gates=["later"])
    gated.metadata.creation_timestamp = "2026-01-01T00:00:00Z"

    assert _levels(check_pods([refused, gated], bundle, now=NOW)) == [Level.OK]


def test_pods_of_ours_that_nobody_looked_at_ask_for_the_scheduler_to_be_started(bundle: Bundle) -> None:
    [finding] = check_pods([_waiting("web", "secondary-scheduler")], bundle, now=NOW)

    assert finding.level is Level.WARNING
    assert finding.fix.startswith("bayplan render manifests --config ")


def test_pods_of_a_default_scheduler_that_is_away_are_not_told_to_name_it(bundle: Bundle) -> None:
    [finding] = check_pods([_waiting("web", "default-scheduler")], bundle, now=NOW)

    assert "schedulerName: default-scheduler" not in finding.fix
    assert finding.fix.startswith("start the cluster's own scheduler again, or create the pods with schedulerName: sec")


def test_a_pod_that_nobody_looks_at_is_mentioned_soon_and_an_error_later(bundle: Bundle) -> None:
    made = parse_time("2026-01-01T00:00:00Z")
    pods = [_waiting("web", "some-scheduler")]

    levels = [_levels(check_pods(pods, bundle, now=made + seconds))[0] for seconds in (1, 5, 60)]

    assert levels == [Level.OK, Level.WARNING, Level.ERROR]


def test_a_profile_without_pods_is_mentioned(bundle: Bundle) -> None:
    assert check_profiles([pod("web", scheduler="secondary-scheduler")], bundle) == []
    [finding] = check_profiles([pod("web")], bundle)
    assert "secondary-scheduler" in finding.what


def test_one_open_node_means_that_scores_do_not_matter() -> None:
    boss = node("boss", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])

    [finding] = check_nodes([node("worker"), boss])

    assert "scores never matter" in finding.what
    assert finding.fix == "kubectl taint node boss node-role.kubernetes.io/control-plane:NoSchedule-"
    assert _levels(check_nodes([node("a"), node("b")])) == [Level.OK]
    assert check_nodes([node("a", unschedulable=True)])[0].fix == "kubectl uncordon a"
    assert check_nodes([])[0].fix == "add a node"


def test_schedulers_that_share_nodes_or_pods_are_rivals(bundle: Bundle) -> None:
    pods = [pod("ours", scheduler="secondary-scheduler", node="n1"), pod("theirs", node="n1"), pod("far", node="n2")]
    default = load_bundle(EXAMPLES / "timestamp/scheduler.yaml", ())

    [shared] = check_rivals(pods, bundle, default_is_running=True)
    [twice] = check_rivals([], default, default_is_running=True)

    assert shared.what == "1 node(s) run pods of this scheduler and of others: n1"
    assert twice.level is Level.ERROR
    assert check_rivals([], default, default_is_running=False) == []


def test_schemas_differ_where_the_server_would_drop_or_refuse() -> None:
    ours = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}},
    }
    theirs = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    }

    assert list(schema_differences(ours, theirs)) == [
        "`a` is string there, integer here",
        "`b[]` is integer there, string here",
    ]
    assert list(schema_differences(ours, {"type": "object"})) == ["`a` is missing there", "`b` is missing there"]
    assert list(schema_differences(ours, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})) == []
    assert list(schema_differences(ours, {"x-kubernetes-preserve-unknown-fields": True})) == []


class _Cluster:
    """Answers the doctor's questions."""

    def __init__(self, **changes: Response) -> None:
        self.changes = changes
        self.allowed = True
        self.definition: Any = crd_document(ClusterScopedResource)
        self.objects: list[Any] = []

    def __call__(self, call: Any) -> Response:
        if call.path == "/version":
            return answer(200, {"gitVersion": "v1.36.4", "minor": "36"})
        if call.path.endswith("accessreviews"):
            return answer(201, {"status": {"allowed": self.allowed}})
        if "customresourcedefinitions" in call.path:
            return answer(200, self.definition) if self.definition else refusal(404, "NotFound")
        if "clusterscopedresources" in call.path:
            return page(self.objects, 1)
        if "leases" in call.path:
            return refusal(404, "NotFound")
        return page([msgspec.to_builtins(node(name)) for name in "ab"] if call.path.endswith("nodes") else [], 1)


async def _findings(cluster: Any, bundle: Bundle, **changes: Any) -> list[Finding]:
    return await examine(ScriptedTransport(cluster), Examination(bundle=bundle, now=NOW, **changes))


async def test_a_healthy_cluster_has_no_errors(bundle: Bundle) -> None:
    findings = await _findings(_Cluster(), bundle)

    assert Level.ERROR not in _levels(findings)
    assert {finding.check for finding in findings if finding.level is Level.OK} >= {"api", "rbac", "crd", "nodes"}


async def test_every_missing_verb_is_named_with_the_plugin_that_needs_it(bundle: Bundle) -> None:
    cluster = _Cluster()
    cluster.allowed = False

    findings = await _findings(cluster, bundle, user="system:serviceaccount:sched:x")

    missing = [finding for finding in findings if finding.check == "rbac"]
    watch = next(finding for finding in missing if "watch clusterscopedresources" in finding.what)
    assert watch.why == "NodeCRDResourceFit needs it"
    assert watch.fix.endswith("--namespace sched | kubectl apply -f -")


async def test_what_only_explanations_read_is_a_warning_and_the_fix_grants_this_user(bundle: Bundle) -> None:
    """As kube-scheduler's own user, whose role lacks priority classes, the scheduler starts."""

    class Default(_Cluster):
        def __call__(self, call: Any) -> Response:
            if call.path.endswith("selfsubjectreviews"):
                return answer(201, {"status": {"userInfo": {"username": "system:kube-scheduler"}}})
            if call.path.endswith("accessreviews"):
                asked = msgspec.json.decode(call.body)["spec"]["resourceAttributes"]
                return answer(201, {"status": {"allowed": asked["resource"] != "priorityclasses"}})
            return super().__call__(call)

    missing = [each for each in await _findings(Default(), bundle) if each.check == "rbac"]

    assert _levels(missing) == [Level.WARNING] * len(missing)
    assert missing[0].what.startswith("system:kube-scheduler may not ")
    assert missing[0].why == "explanations go without these objects; decisions need none of them"
    assert missing[0].fix.endswith("--user=system:kube-scheduler")
    assert "--resource=priorityclasses.scheduling.k8s.io" in missing[0].fix


async def test_a_definition_may_be_absent_of_another_version_scope_or_shape(bundle: Bundle) -> None:
    async def complaint(definition: Any) -> str:
        cluster = _Cluster()
        cluster.definition = definition
        found = [f.what for f in await _findings(cluster, bundle) if f.check == "crd" and f.level is not Level.OK]
        return found[0] if found else ""

    def changed(**spec: Any) -> Any:
        document = crd_document(ClusterScopedResource)
        return {**document, "spec": {**document["spec"], **spec}}

    version = crd_document(ClusterScopedResource)["spec"]["versions"][0]
    narrow = {**version, "schema": {"openAPIV3Schema": {"type": "object"}}}
    assert "is not installed" in await complaint(None)
    assert "does not serve v1alpha1, only v9" in await complaint(changed(versions=[{**version, "name": "v9"}]))
    assert "is Namespaced" in await complaint(changed(scope="Namespaced"))
    assert "`apiVersion` is missing there" in await complaint(changed(versions=[narrow]))


async def test_a_definition_with_more_fields_than_ours_is_warned_about(bundle: Bundle) -> None:
    cluster = _Cluster()
    schema = cluster.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["owner"] = {"type": "string"}

    found = [finding for finding in await _findings(cluster, bundle) if finding.check == "crd"]

    assert [finding.level for finding in found] == [Level.WARNING]
    assert found[0].what.endswith("has fields that the plugin's type lacks: `spec.owner`")
    assert "would make the API server drop them" in found[0].why


async def test_objects_that_do_not_fit_are_named(bundle: Bundle) -> None:
    cluster = _Cluster()
    cluster.objects = [{"metadata": {"name": "odd"}, "spec": {"resourcesFilter": 3}}]

    findings = await _findings(cluster, bundle)

    [odd] = [finding for finding in findings if finding.check == "crd"]
    assert odd.what.startswith("ClusterScopedResources `odd` does not fit its type")


async def test_a_cluster_that_does_not_answer_is_the_only_finding(bundle: Bundle) -> None:
    [finding] = await _findings(lambda call: ConnectionFailed("refused", may_have_been_processed=False), bundle)

    assert (finding.level, finding.check) == (Level.ERROR, "api")


async def test_an_old_cluster_is_mentioned(bundle: Bundle) -> None:
    class Old(_Cluster):
        def __call__(self, call: Any) -> Response:
            if call.path == "/version":
                return answer(200, {"gitVersion": "v1.23.1", "minor": "23+"})
            return super().__call__(call)

    findings = await _findings(Old(), bundle)

    assert findings[0].level is Level.WARNING


async def test_what_may_not_be_read_is_a_finding_and_the_rest_goes_on(bundle: Bundle) -> None:
    class Closed(_Cluster):
        def __call__(self, call: Any) -> Response:
            return refusal(403, "Forbidden") if call.path == "/api/v1/pods" else super().__call__(call)

    findings = await _findings(Closed(), bundle)

    assert any(finding.what.startswith("could not be checked") for finding in findings)


@pytest.mark.parametrize(
    ("spec", "level", "text"),
    [
        ({"holderIdentity": "me", "renewTime": "2027-01-15T07:59:55Z"}, Level.OK, "me leads"),
        ({"holderIdentity": "me", "renewTime": "2027-01-15T07:00:00Z"}, Level.ERROR, "was last renewed"),
        ({}, Level.WARNING, "no process holds the lease"),
    ],
)
async def test_the_lease_says_who_leads(spec: dict[str, Any], level: Level, text: str) -> None:
    named = load_bundle(EXAMPLES / "name-score/scheduler.yaml", ())

    class Led(_Cluster):
        def __call__(self, call: Any) -> Response:
            if call.path.endswith("leases/namescore-scheduler"):
                return answer(200, {"spec": spec})
            return super().__call__(call)

    findings = await _findings(Led(), named)

    [lease] = [finding for finding in findings if finding.check == "lease"]
    assert (lease.level, text in lease.what) == (level, True)


def _slice(name: str, *, pool: str = "p", generation: int = 1, count: int = 1) -> ResourceSlice:
    spec = {"driver": "gpu.example.com", "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def test_classes_that_claims_name_and_nobody_made_are_found() -> None:
    alternatives = [{"name": "x", "deviceClassName": "small"}, {"name": "y", "deviceClassName": "tiny"}]
    spec = {
        "devices": {
            "requests": [
                {"name": "r", "exactly": {"deviceClassName": "gpu"}},
                {"name": "s", "firstAvailable": alternatives},
            ]
        }
    }
    findings = check_classes([spec, {}], {"gpu", "tiny"})

    assert [finding.what for finding in findings] == ["claims ask for devices of class `small`, which does not exist"]


def test_pools_without_all_of_their_slices_are_found() -> None:
    findings = check_pools([_slice("old"), _slice("a", generation=2, count=2), _slice("b", pool="whole")])

    assert [finding.what for finding in findings] == ["pool gpu.example.com/p has 1 of 2 slices"]


def _claiming() -> Any:
    made = pod("trains")
    made.spec.resource_claims = [PodResourceClaim(name="gpu", resource_claim_name="c")]
    return made


async def test_claims_on_an_api_server_that_knows_none_are_an_error() -> None:
    reading = ClusterReader(ScriptedTransport(lambda *_: refusal(404, "NotFound")))
    [finding] = await check_devices(reading, [_claiming()])

    assert finding.level is Level.ERROR
    assert "does not serve resource.k8s.io/v1: default/trains" in finding.what
