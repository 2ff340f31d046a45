"""Simulated controllers, each kept to its promise."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod, template, workload

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers import event_expiry
from bayplan.apiserver.simulation.controllers.base import ControllerClient
from bayplan.apiserver.simulation.kubelets.pod_status import EXIT_CODE, RUN_SECONDS

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def names(driver: Driver, path: str = PODS) -> list[str]:
    return [one["metadata"]["name"] for one in await driver.items(path)]


async def test_a_replica_set_keeps_its_number_of_pods(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "web", replicas=3))
    await driver.settle()
    first = await names(driver)
    assert len(first) == 3
    await driver.call("DELETE", f"{PODS}/{first[0]}")
    await driver.settle()
    assert len(await names(driver)) == 3
    await driver.patch(f"{APPS}/replicasets/web", {"spec": {"replicas": 1}})
    await driver.settle()

    assert len(await names(driver)) == 1
    status = (await driver.get(f"{APPS}/replicasets/web"))["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (1, 1, 1)


async def test_a_replication_controller_works_the_same(driver: Driver) -> None:
    body = {"metadata": {"name": "old"}, "spec": {"replicas": 2, "template": template({"app": "old"})}}
    await driver.create("/api/v1/namespaces/default/replicationcontrollers", body)
    await driver.settle()

    assert len(await names(driver)) == 2


async def test_a_deployment_rolls_out_without_losing_availability(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=4))
    await driver.settle()
    change = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    await driver.patch(f"{APPS}/deployments/web", change)
    fewest = 4
    for _ in range(20):
        await driver.wait(0.3)
        await driver.bind_pending()
        ready = [p for p in await driver.items(PODS) if p["status"]["phase"] == "Running"]
        fewest = min(fewest, len([p for p in ready if "deletionTimestamp" not in p["metadata"]]))
    await driver.settle()

    assert fewest >= 3, "a quarter may be missing, no more"
    pods = await driver.items(PODS)
    assert len(pods) == 4
    assert {one["metadata"]["annotations"].get("v") for one in pods} == {"2"}
    deployment = await driver.get(f"{APPS}/deployments/web")
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert deployment["status"]["updatedReplicas"] == deployment["status"]["availableReplicas"] == 4
    assert deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]


async def test_an_old_template_is_found_again(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=1))
    await driver.settle()
    await driver.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    await driver.settle()
    await driver.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": None}}}}})
    await driver.settle()

    assert len(await names(driver, f"{APPS}/replicasets")) == 2


@pytest.mark.parametrize(
    ("before", "after"), [("3546343826724305832", "3546343826724305833"), ("9" * 30, "1"), ("x", "1")]
)
async def test_a_revision_follows_the_largest_of_64_bits(driver: Driver, before: str, after: str) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web"))
    await driver.settle()
    (old,) = await driver.items(f"{APPS}/replicasets")
    marked = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": before}}}
    await driver.patch(f"{APPS}/replicasets/{old['metadata']['name']}", marked)
    await driver.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    await driver.settle()
    deployment = await driver.get(f"{APPS}/deployments/web")

    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == after


async def test_recreate_stops_everything_first(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    await driver.settle()
    await driver.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    await driver.settle()

    pods = await driver.items(PODS)
    assert [one["metadata"]["annotations"].get("v") for one in pods] == ["2", "2"]


async def test_a_stateful_set_starts_in_order_with_its_claims(driver: Driver) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    await driver.create(classes, {"metadata": {"name": "fast"}, "provisioner": "example.com/fast"})
    body = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    await driver.create(f"{APPS}/statefulsets", body)
    await driver.wait(1)
    assert await names(driver) == ["db-0"]
    await driver.settle()

    assert await names(driver) == ["db-0", "db-1"]
    claims = await driver.items(CLAIMS)
    assert {one["metadata"]["name"]: one["status"]["phase"] for one in claims} == {
        "data-db-0": "Bound",
        "data-db-1": "Bound",
    }
    volumes = (await driver.get(f"{PODS}/db-1"))["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    await driver.patch(f"{APPS}/statefulsets/db", {"spec": {"replicas": 1}})
    await driver.settle()
    assert await names(driver) == ["db-0"]
    await driver.patch(f"{APPS}/statefulsets/db", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    await driver.settle()
    assert (await driver.get(f"{PODS}/db-0"))["metadata"]["annotations"] == {"v": "2"}


async def test_a_daemon_set_runs_once_on_each_node_that_takes_it(driver: Driver) -> None:
    await driver.patch("/api/v1/nodes/node-2", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
    await driver.create(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    await driver.settle()
    assert {p["spec"]["nodeName"] for p in await driver.items(PODS)} == {"node-1", "node-3"}
    await driver.create("/api/v1/nodes", {"metadata": {"name": "node-4"}})
    await driver.patch("/api/v1/nodes/node-2", {"spec": {"taints": None}})
    await driver.settle()

    assert {p["spec"]["nodeName"] for p in await driver.items(PODS)} == {"node-1", "node-2", "node-3", "node-4"}
    status = (await driver.get(f"{APPS}/daemonsets/agent"))["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (4, 4)


def job(name: str, annotations: Json, **spec: object) -> Json:
    pods = template({}, **annotations)
    pods["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name}, "spec": {"template": pods, **spec}}


async def test_a_job_runs_until_enough_pods_succeeded(driver: Driver) -> None:
    await driver.create(JOBS, job("sums", {RUN_SECONDS: "1"}, completions=3, parallelism=2))
    await driver.settle(12)

    status = (await driver.get(f"{JOBS}/sums"))["status"]
    assert status["succeeded"] == 3
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {"Complete"}
    assert status["completionTime"]


async def test_a_job_keeps_the_conditions_of_others(driver: Driver) -> None:
    await driver.create(JOBS, job("sums", {RUN_SECONDS: "5"}))
    await driver.settle(1)
    mark = {"type": "Example", "status": "True", "reason": "R", "message": "m"}
    await driver.patch(f"{JOBS}/sums/status", {"status": {"conditions": [mark]}})
    await driver.settle(12)

    types = {one["type"] for one in (await driver.get(f"{JOBS}/sums"))["status"]["conditions"]}
    assert types >= {"Example", "Complete"}


async def test_a_job_fails_when_too_many_pods_failed(driver: Driver) -> None:
    await driver.create(JOBS, job("bad", {RUN_SECONDS: "1", EXIT_CODE: "1"}, backoffLimit=1))
    await driver.settle(12)

    conditions = (await driver.get(f"{JOBS}/bad"))["status"]["conditions"]
    failed = next(c for c in conditions if c["type"] == "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"


async def test_an_indexed_job_gives_each_pod_its_number(driver: Driver) -> None:
    body = job("parts", {RUN_SECONDS: "1"}, completions=3, parallelism=3, completionMode="Indexed")
    await driver.create(JOBS, body)
    await driver.settle(8)

    assert sorted(one["spec"]["hostname"] for one in await driver.items(PODS)) == ["parts-0", "parts-1", "parts-2"]
    assert (await driver.get(f"{JOBS}/parts"))["status"]["completedIndexes"] == "0-2"


async def test_a_suspended_job_waits(driver: Driver) -> None:
    await driver.create(JOBS, job("later", {RUN_SECONDS: "1"}, suspend=True))
    await driver.settle(3)
    assert await names(driver) == []
    await driver.patch(f"{JOBS}/later", {"spec": {"suspend": False}})
    await driver.settle(6)

    assert (await driver.get(f"{JOBS}/later"))["status"]["succeeded"] == 1


async def test_a_finished_job_is_removed_when_its_time_is_up(driver: Driver) -> None:
    await driver.create(JOBS, job("brief", {RUN_SECONDS: "1"}, ttlSecondsAfterFinished=30))
    await driver.settle(6)
    assert await driver.exists(f"{JOBS}/brief")
    await driver.wait(60)

    assert not await driver.exists(f"{JOBS}/brief")
    assert await names(driver) == []


async def test_a_budget_counts_what_may_go(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "web", replicas=4))
    spec: Json = {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "web"}}}
    await driver.create(BUDGETS, {"metadata": {"name": "web"}, "spec": spec})
    await driver.settle()
    status = (await driver.get(f"{BUDGETS}/web"))["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["desiredHealthy"]) == (4, 4, 3)
    assert status["disruptionsAllowed"] == 1
    victim, second = (await names(driver))[:2]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}}
    await driver.create(f"{PODS}/{victim}/eviction", eviction)
    refused = await driver.transport.request(
        "POST", f"{PODS}/{second}/eviction", body=eviction | {"metadata": {"name": second}}
    )

    assert refused.status == 429
    await driver.settle()
    assert (await driver.get(f"{BUDGETS}/web"))["status"]["disruptionsAllowed"] == 1


async def test_a_claim_is_bound_to_the_smallest_volume_that_fits(driver: Driver) -> None:
    for name, size in (("large", "10Gi"), ("medium", "5Gi"), ("small", "1Gi")):
        spec: Json = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        await driver.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "resources": {"requests": {"storage": "3Gi"}},
    }
    await driver.create(CLAIMS, {"metadata": {"name": "data"}, "spec": claim})
    await driver.wait(1)

    bound = await driver.get(f"{CLAIMS}/data")
    assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", "medium")
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    volume = await driver.get("/api/v1/persistentvolumes/medium")
    assert (volume["status"]["phase"], volume["spec"]["claimRef"]["name"]) == ("Bound", "data")
    assert (await driver.get("/api/v1/persistentvolumes/small"))["status"]["phase"] == "Available"
    await driver.call("DELETE", f"{CLAIMS}/data")
    await driver.wait(1)
    assert (await driver.get("/api/v1/persistentvolumes/medium"))["status"]["phase"] == "Released"


async def test_a_waiting_claim_is_provisioned_where_its_pod_goes(driver: Driver) -> None:
    storage: Json = {"provisioner": "example.com/fast", "volumeBindingMode": "WaitForFirstConsumer"}
    await driver.create("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "late"}, **storage})
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await driver.create(CLAIMS, {"metadata": {"name": "data"}, "spec": claim})
    await driver.wait(1)
    assert (await driver.get(f"{CLAIMS}/data"))["status"]["phase"] == "Pending"
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-2"}}}
    await driver.patch(f"{CLAIMS}/data", selected)
    await driver.wait(1)

    bound = await driver.get(f"{CLAIMS}/data")
    assert bound["status"]["phase"] == "Bound"
    volume = await driver.get(f"/api/v1/persistentvolumes/{bound['spec']['volumeName']}")
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["zone-b"]


async def test_dependents_go_with_their_owner(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=2))
    await driver.settle()
    await driver.call("DELETE", f"{APPS}/deployments/web")
    await driver.settle()

    assert await names(driver, f"{APPS}/replicasets") == []
    assert await names(driver) == []


async def test_orphans_stay_and_lose_their_owner(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "web", replicas=2))
    await driver.settle()
    await driver.call("DELETE", f"{APPS}/replicasets/web", propagationPolicy="Orphan")
    await driver.settle()

    pods = await driver.items(PODS)
    assert len(pods) == 2
    assert all("ownerReferences" not in one["metadata"] for one in pods)
    assert not await driver.exists(f"{APPS}/replicasets/web")


async def test_a_foreground_deletion_leaves_dependents_to_their_other_owners(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "going", replicas=2))
    stays = await driver.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "stays"}})
    await driver.settle()
    shared = (await names(driver))[0]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": stays["metadata"]["uid"]}
    owners = (await driver.get(f"{PODS}/{shared}"))["metadata"]["ownerReferences"]
    await driver.patch(f"{PODS}/{shared}", {"metadata": {"ownerReferences": [*owners, reference]}})
    await driver.call("DELETE", f"{APPS}/replicasets/going", propagationPolicy="Foreground")
    await driver.settle()

    assert await names(driver, f"{APPS}/replicasets") == []
    assert await names(driver) == [shared]
    assert (await driver.get(f"{PODS}/{shared}"))["metadata"]["ownerReferences"] == [reference]


async def test_a_foreground_deletion_waits_for_dependents(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "web", replicas=1))
    await driver.settle()
    await driver.call("DELETE", f"{APPS}/replicasets/web", propagationPolicy="Foreground")
    waiting = await driver.get(f"{APPS}/replicasets/web")
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await driver.settle()

    assert not await driver.exists(f"{APPS}/replicasets/web")
    assert await names(driver) == []


async def test_a_pod_whose_owner_never_was_is_collected(driver: Driver) -> None:
    body = pod("lost")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "no-such-uid"}
    body["metadata"]["ownerReferences"] = [owner]
    await driver.create(PODS, body)
    await driver.wait(1)

    assert not await driver.exists(f"{PODS}/lost")


async def test_a_namespace_takes_everything_with_it(driver: Driver) -> None:
    await driver.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    await driver.wait(1)
    assert await driver.exists("/api/v1/namespaces/x/serviceaccounts/default")
    await driver.create("/api/v1/namespaces/x/pods", pod("a"))
    await driver.create("/api/v1/namespaces/x/configmaps", {"metadata": {"name": "c", "finalizers": ["x.io/hold"]}})
    await driver.call("DELETE", "/api/v1/namespaces/x")
    await driver.wait(2)
    assert (await driver.get("/api/v1/namespaces/x"))["status"]["phase"] == "Terminating"
    refused = await driver.transport.request("POST", "/api/v1/namespaces/x/pods", body=pod("b"))
    assert (refused.status, refused.json()["reason"]) == (403, "Forbidden")
    await driver.patch("/api/v1/namespaces/x/configmaps/c", {"metadata": {"finalizers": None}})
    await driver.wait(2)

    assert not await driver.exists("/api/v1/namespaces/x")
    assert await driver.items("/api/v1/pods") == []


async def test_custom_objects_go_with_their_definition(driver: Driver) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "e.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}
    await driver.create(definitions, {"metadata": {"name": "foos.e.com"}, "spec": spec})
    await driver.create("/apis/e.com/v1/foos", {"metadata": {"name": "a"}})
    await driver.call("DELETE", f"{definitions}/foos.e.com")
    await driver.wait(1)

    assert not await driver.exists("/apis/e.com/v1/foos")
    assert driver.cluster.store.count("foos.e.com") == 0


async def test_a_stopped_controller_leaves_things_alone_until_it_is_started(driver: Driver) -> None:
    await driver.cluster.controllers.stop("replicaset-controller")
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "web", replicas=2))
    await driver.wait(5)
    assert await names(driver) == []
    assert driver.cluster.controllers.running["replicaset-controller"] is False
    driver.cluster.controllers.start("replicaset-controller")
    await driver.wait(1)

    assert len(await names(driver)) == 2


async def test_an_unknown_controller_is_a_clear_error(cluster: EmbeddedCluster) -> None:
    with pytest.raises(KeyError, match="no controller is called 'nope'; there are"):
        cluster.controllers.start("nope")


async def test_a_cordoned_node_is_tainted_until_it_is_uncordoned(driver: Driver) -> None:
    await driver.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}})
    await driver.wait(1)
    taints = (await driver.get("/api/v1/nodes/node-1"))["spec"]["taints"]
    assert [(taint["key"], taint["effect"]) for taint in taints] == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    await driver.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": None}})
    await driver.wait(1)

    assert not (await driver.get("/api/v1/nodes/node-1"))["spec"].get("taints")


async def test_events_expire_after_an_hour(driver: Driver) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "R", "type": "Normal"}
    await driver.create("/api/v1/namespaces/default/events", event)
    await driver.wait(3000)
    assert await driver.exists("/api/v1/namespaces/default/events/e")
    await driver.wait(700)

    assert not await driver.exists("/api/v1/namespaces/default/events/e")


async def test_only_so_many_events_are_kept(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_expiry, "MAX_EVENTS", 3)
    for number in range(5):
        event = {"metadata": {"name": f"e{number}"}, "involvedObject": {"namespace": "default"}, "reason": "R"}
        await driver.create("/api/v1/namespaces/default/events", event)
    await driver.wait(1)

    assert await names(driver, "/api/v1/namespaces/default/events") == ["e2", "e3", "e4"]


async def told(driver: Driver, name: str) -> list[tuple[str, str]]:
    """Reason and message of the events about an object, oldest first."""
    events = await driver.items("/api/v1/namespaces/default/events", fieldSelector=f"involvedObject.name={name}")
    found = sorted(events, key=lambda event: (event["lastTimestamp"], int(event["metadata"]["resourceVersion"])))
    return [(event["reason"], event["message"]) for event in found]


async def test_controllers_tell_what_they_did(driver: Driver) -> None:
    await driver.create(f"{APPS}/deployments", workload("Deployment", "web", replicas=2))
    await driver.create(f"{APPS}/statefulsets", workload("StatefulSet", "db", replicas=1, serviceName="db"))
    await driver.create(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    labelled = template({"app": "sums"}, **{RUN_SECONDS: "0.5"})
    labelled["spec"]["restartPolicy"] = "Never"
    await driver.create(JOBS, {"metadata": {"name": "sums"}, "spec": {"template": labelled}})
    await driver.settle()
    [replica_set] = await names(driver, f"{APPS}/replicasets")
    await driver.patch(f"{APPS}/deployments/web", {"spec": {"replicas": 1}})
    await driver.settle()

    assert await told(driver, "web") == [
        ("ScalingReplicaSet", f"Scaled up replica set {replica_set} from 0 to 2"),
        ("ScalingReplicaSet", f"Scaled down replica set {replica_set} from 2 to 1"),
    ]
    assert [reason for reason, _ in await told(driver, replica_set)] == [*["SuccessfulCreate"] * 2, "SuccessfulDelete"]
    assert await told(driver, "db") == [("SuccessfulCreate", "create Pod db-0 in StatefulSet db successful")]
    assert [reason for reason, _ in await told(driver, "agent")] == ["SuccessfulCreate"] * 3
    sums = await told(driver, "sums")
    assert sums[0][1].startswith("Created pod: sums-")
    assert sums[-1] == ("Completed", "Job completed")


async def test_a_claim_that_waits_for_a_pod_and_a_node_that_fell_silent_say_so(driver: Driver) -> None:
    name, classes = "later", "/apis/storage.k8s.io/v1/storageclasses"
    body = {"metadata": {"name": name}, "provisioner": "x.test/y", "volumeBindingMode": "WaitForFirstConsumer"}
    await driver.create(classes, body)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": name}
    await driver.create(CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
    driver.cluster.kubelets.stop_node("node-1")
    await driver.wait(60)

    assert ("WaitForFirstConsumer", "waiting for first consumer to be created before binding") in await told(
        driver, "data"
    )
    assert ("NodeNotReady", "Node node-1 status is now: NodeNotReady") in await told(driver, "node-1")


async def test_large_sets_do_not_drown_others_in_events(driver: Driver) -> None:
    await driver.create(f"{APPS}/replicasets", workload("ReplicaSet", "many", replicas=120))
    await driver.settle()

    events = await told(driver, "many")
    assert len(events) == 11
    assert sum(message.startswith("(combined from similar events): Created pod: ") for _, message in events) == 1
    all_events = await driver.items("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=many")
    assert sum(event["count"] for event in all_events) == 25


async def test_daemon_sets_jobs_and_stateful_sets_decode_no_pods_to_count_them(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await driver.create(f"{APPS}/statefulsets", workload("StatefulSet", "db", replicas=2, serviceName="db"))
    await driver.create(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    labelled = template({"app": "sums"})
    labelled["spec"]["restartPolicy"] = "Never"
    await driver.create(JOBS, {"metadata": {"name": "sums"}, "spec": {"template": labelled, "parallelism": 2}})
    real = ControllerClient.owned

    def owned(client: ControllerClient, resource: str, uid: str) -> list[Json]:
        assert resource != "pods", "all pods were decoded"
        return real(client, resource, uid)

    monkeypatch.setattr(ControllerClient, "owned", owned)
    await driver.settle()

    assert (await driver.get(f"{APPS}/statefulsets/db"))["status"]["readyReplicas"] == 2
    assert (await driver.get(f"{APPS}/daemonsets/agent"))["status"]["numberReady"] == 3
    assert (await driver.get(f"{JOBS}/sums"))["status"]["ready"] == 2
