"""Binding for real: what is written, what is waited for, what counts as failure."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import (
    SELECTED,
    VolumeCluster,
    claim,
    csi_node,
    reasons,
    started,
    storage_class,
    terms,
    volume,
)

from bayplan.framework import Code, CycleState, Status
from bayplan.plugins.intree.volume_binding.binder import bound_volume
from bayplan.plugins.intree.volume_binding.plugin import BINDING, VolumeBinding

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class Attempt:
    """A pod with claim `static` (volume `v`) and claim `made` (to be provisioned), reserved on node n."""

    def __init__(self, *, timeout: int = 600, claims: tuple[str, ...] = ("static", "made")) -> None:
        self.cluster = VolumeCluster(node("n", labels={"zone": "a"}))
        self.cluster.put(storage_class(), volume("v"), claim("static"), claim("made", size="50Gi"))
        self.plugin = self.cluster.plugin(VolumeBinding, bindTimeoutSeconds=timeout)
        self.pod = self.cluster.pod_with(*claims)
        self.state, status = started(self.plugin, self.pod, self.cluster)
        assert status is None
        self.cluster.cache.assume(self.pod, "n")
        assert self.plugin.reserve(self.state, self.pod, "n") is None
        self.task: asyncio.Task[Status | None] | None = None

    async def start(self) -> None:
        self.task = asyncio.create_task(self.plugin.pre_bind(self.state, self.pod, "n"))
        await self.cluster.clock.run_for(0)

    async def after(self, seconds: float = 1) -> Status | str | None:
        """What PreBind answers within the time; `waiting` while it does not."""
        assert self.task is not None
        await self.cluster.clock.run_for(seconds)
        if not self.task.done():
            return "waiting"
        return self.task.result()

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def failure(self) -> str:
        """The text with which PreBind fails at the next look."""
        status = await self.after()
        assert isinstance(status, Status), status
        assert status.code is Code.ERROR
        return status.message

    def written(self) -> None:
        """The API server shows what was written."""
        self.cluster.put(volume("v", claim="static:uid-static", version="2"))
        self.cluster.put(claim("made", size="50Gi", annotations={SELECTED: "n"}, version="2"))

    def bound(self) -> None:
        self.written()
        self.cluster.put(claim("static", bound_to="v"), volume("new", claim="made"))
        self.cluster.put(claim("made", bound_to="new", annotations={SELECTED: "n"}, version="3"))


async def test_volumes_are_written_before_claims() -> None:
    attempt = Attempt()
    await attempt.start()
    await attempt.stop()

    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "static",
        "uid": "uid-static",
        "resourceVersion": "1",
    }
    assert attempt.cluster.api.changes == [
        (
            "v",
            {
                "metadata": {"resourceVersion": "1", "annotations": {BY_CONTROLLER: "yes"}},
                "spec": {"claimRef": reference},
            },
        ),
        ("made", {"metadata": {"resourceVersion": "1", "annotations": {SELECTED: "n"}}}),
    ]


async def test_it_waits_until_all_is_bound() -> None:
    attempt = Attempt()
    await attempt.start()

    assert await attempt.after() == "waiting"
    attempt.written()
    assert await attempt.after() == "waiting"
    attempt.bound()
    assert await attempt.after() is None


async def test_a_claim_that_got_another_volume_fails_the_binding() -> None:
    """A write whose answer was lost reserved that one, for another node perhaps."""
    attempt = Attempt(claims=("static",))
    await attempt.start()
    attempt.cluster.put(volume("v", claim="static:uid-static", version="2"), volume("w", claim="static:uid-static"))
    attempt.cluster.put(claim("static", bound_to="w"))

    assert 'pvc "static" is bound to pv "w", not to "v"' in await attempt.failure()


async def test_the_first_look_is_after_a_second() -> None:
    attempt = Attempt()
    attempt.bound()
    await attempt.start()

    assert await attempt.after(0.9) == "waiting"
    assert await attempt.after(0.1) is None


async def test_news_of_a_claim_is_looked_at_at_once() -> None:
    attempt = Attempt()
    await attempt.start()
    assert await attempt.after(0.1) == "waiting"
    attempt.written()
    assert await attempt.after(0.1) == "waiting"
    attempt.bound()

    assert await attempt.after(0.1) is None
    assert attempt.plugin._binder._waits == {}


async def test_news_of_a_volume_may_come_after_news_of_its_claim() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    assert await attempt.after(0.1) == "waiting"
    attempt.cluster.put(claim("made", size="50Gi", bound_to="new", annotations={SELECTED: "n"}, version="3"))
    assert await attempt.after(0.1) == "waiting"
    attempt.cluster.put(volume("elsewhere", claim="another"), volume("new", claim="made"))

    assert await attempt.after(0.1) is None


async def test_a_claim_that_goes_away_is_noticed_at_once() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    assert await attempt.after(0.1) == "waiting"
    attempt.cluster.cache.remove_object(claim("made"))

    status = await attempt.after(0.1)
    assert isinstance(status, Status)
    assert "not found" in status.message


async def test_a_wait_that_is_given_up_leaves_nothing() -> None:
    attempt = Attempt()
    await attempt.start()
    assert await attempt.after(0.1) == "waiting"
    await attempt.stop()
    attempt.bound()

    assert attempt.plugin._binder._waits == {}


async def test_the_wait_ends_at_the_timeout() -> None:
    attempt = Attempt(timeout=3)
    await attempt.start()

    assert await attempt.after(2.9) == "waiting"
    assert await attempt.failure() == "binding volumes: context deadline exceeded"


async def test_a_timeout_of_zero_does_not_look_at_all() -> None:
    attempt = Attempt(timeout=0)
    attempt.bound()
    await attempt.start()

    assert await attempt.failure() == "binding volumes: context deadline exceeded"


async def test_nothing_to_bind_is_success() -> None:
    attempt = Attempt()

    assert await attempt.plugin.pre_bind(CycleState(), attempt.pod, "n") is None
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n")
    assert await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n") is None
    assert attempt.cluster.api.changes == []


@pytest.mark.parametrize("refused", ["v", "made"])
async def test_a_refused_write_fails_and_frees_what_was_not_written(refused: str) -> None:
    attempt = Attempt()
    attempt.cluster.api.refuses = refused
    status = await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n")

    assert (status.code, status.message) == (Code.ERROR, f"{refused} was changed by somebody else")
    attempt.cluster.put(claim("other"))
    other = attempt.cluster.pod_with("other", name="q")
    state, _ = started(attempt.plugin, other, attempt.cluster)
    assert attempt.plugin.reserve(state, other, "n") is None
    assert len(state[BINDING].reserved.bindings) == (1 if refused == "v" else 0)


async def test_an_answer_of_another_kind_is_a_failure() -> None:
    attempt = Attempt()
    attempt.cluster.api.answer = storage_class()
    status = await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n")

    assert status.message == "the API server answered with StorageClass where PersistentVolume was written"


async def test_a_node_that_is_gone_fails_the_binding() -> None:
    attempt = Attempt()
    await attempt.start()
    attempt.cluster.cache.remove_node("n")

    assert await attempt.failure() == 'binding volumes: failed to get node "n": node "n" not found'


async def test_a_pod_that_is_gone_fails_the_binding() -> None:
    attempt = Attempt()
    await attempt.start()
    attempt.cluster.cache.forget(attempt.pod.uid)

    assert await attempt.failure() == 'binding volumes: pod does not exist any more: pod "p" not found'


GONE: list[tuple[Any, str]] = [
    (volume("v"), 'failed to check binding: persistentvolumes "v" not found'),
    (claim("static"), 'failed to check binding: persistentvolumeclaims "default/static" not found'),
]


@pytest.mark.parametrize(("item", "text"), GONE)
async def test_an_object_that_is_gone_fails_the_binding(item: Any, text: str) -> None:
    attempt = Attempt()
    await attempt.start()
    attempt.written()
    attempt.cluster.cache.remove_object(item)

    assert await attempt.failure() == f"binding volumes: {text}"


async def test_a_claim_to_provision_that_is_gone_fails_the_binding() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    attempt.cluster.cache.remove_object(claim("made"))

    missing = 'persistentvolumeclaims "default/made" not found'
    assert await attempt.failure() == f"binding volumes: failed to check provisioning pvc: {missing}"


async def test_a_volume_out_of_reach_fails_the_binding() -> None:
    attempt = Attempt()
    await attempt.start()
    attempt.written()
    attempt.cluster.put(volume("v", claim="static:uid-static", affinity=terms("zone", "b"), version="2"))

    mismatch = 'pv "v" node affinity doesn\'t match node "n": no matching NodeSelectorTerms'
    assert await attempt.failure() == f"binding volumes: {mismatch}"


@pytest.mark.parametrize("reference", ["", "static:"])
async def test_a_reference_that_was_taken_away_fails_the_binding(reference: str) -> None:
    attempt = Attempt()
    await attempt.start()
    attempt.cluster.put(volume("v", claim=reference, version="3"))

    assert await attempt.failure() == 'binding volumes: ClaimRef got reset for pv "v"'


RESETS = [
    ({}, 'selectedNode annotation reset for PVC "made"'),
    ({"x": "y"}, 'provisioning failed for PVC "made"'),
    ({SELECTED: "other"}, 'provisioning failed for PVC "made"'),
]


@pytest.mark.parametrize(("annotations", "text"), RESETS)
async def test_an_annotation_that_was_taken_away_fails_the_binding(annotations: dict[str, str], text: str) -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    attempt.cluster.put(claim("made", annotations=annotations, version="3"))

    assert await attempt.failure() == f"binding volumes: {text}"


async def test_a_provisioned_volume_may_be_seen_later_than_its_claim() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    attempt.cluster.put(claim("made", bound_to="new", annotations={SELECTED: "n"}, version="3"))

    assert await attempt.after() == "waiting"
    attempt.cluster.put(volume("new"))
    assert await attempt.after() is None


async def test_a_provisioned_volume_out_of_reach_fails_the_binding() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    attempt.cluster.put(volume("new", affinity=terms("zone", "b")))
    attempt.cluster.put(claim("made", bound_to="new", annotations={SELECTED: "n"}, version="3"))

    assert (await attempt.failure()).startswith('binding volumes: pv "new" node affinity')


async def test_a_volume_that_cannot_be_translated_fails_the_binding() -> None:
    attempt = Attempt(claims=("made",))
    await attempt.start()
    attempt.cluster.put(csi_node("n", migrated="kubernetes.io/aws-ebs"))
    attempt.cluster.put(volume("new", awsElasticBlockStore={"volumeID": "aws://z/x"}))
    attempt.cluster.put(claim("made", bound_to="new", annotations={SELECTED: "n"}, version="3"))

    assert (await attempt.failure()).startswith("binding volumes: could not translate pv: ")


async def test_cancelling_keeps_the_promise_until_unreserve() -> None:
    attempt = Attempt()
    await attempt.start()
    await attempt.stop()
    attempt.cluster.put(claim("other"), storage_class(provisioner=""))
    other = attempt.cluster.pod_with("other", name="q")

    assert reasons(attempt.plugin, other, attempt.cluster)
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n")
    assert reasons(attempt.plugin, other, attempt.cluster) == {}


def test_binding_a_volume_that_is_set_aside_adds_what_is_missing() -> None:
    """The owner set it aside by name, so no controller did it; only the uid is new."""
    after, is_changed = bound_volume(volume("v", claim="c"), claim("c"))

    assert is_changed
    assert after.spec.claim_ref is not None
    assert after.spec.claim_ref.uid == "uid-c"
    assert BY_CONTROLLER not in after.annotations


def test_binding_a_volume_that_is_bound_changes_nothing() -> None:
    before = volume("v", claim="c:uid-c")
    after, is_changed = bound_volume(before, claim("c"))

    assert not is_changed
    assert after == before


def test_an_annotation_that_is_there_stays() -> None:
    before = volume("v")
    metadata = msgspec.structs.replace(before.metadata, annotations={BY_CONTROLLER: "who"})
    after, _ = bound_volume(msgspec.structs.replace(before, metadata=metadata), claim("c"))

    assert after.annotations == {BY_CONTROLLER: "who"}
    assert before.annotations == {}


async def test_a_volume_that_is_bound_already_is_written_as_it_is() -> None:
    cluster = VolumeCluster(node("n"))
    cluster.put(storage_class(), volume("v", claim="c:uid-c"), claim("c"))
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with("c")
    state, _ = started(plugin, pod, cluster)
    assert plugin.reserve(state, pod, "n") is None
    task = asyncio.create_task(plugin.pre_bind(state, pod, "n"))
    await cluster.clock.run_for(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    (name, change), *rest = cluster.api.changes
    assert (name, change["metadata"], rest) == ("v", {"resourceVersion": "1"}, [])
