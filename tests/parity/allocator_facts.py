"""The tables of kube-scheduler's allocator as facts: what is asked of which devices, and what its own code allocates.

    python -m tests.parity.allocator_facts

runs the tests of `k8s.io/dynamic-resource-allocation` with a recorder around the allocator (`allocator_facts.go.txt`;
needs Go), and writes one case a line to `allocator.jsonl.gz`. The features are those that are on by default in 1.36,
also where a table turns some of them off; tables about features that are alpha are left out by upstream's own rule.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["FACTS", "read_facts"]

Json = dict[str, Any]

FACTS = Path(__file__).parent / "allocator.jsonl.gz"
RECORDER = Path(__file__).parent / "allocator_facts.go.txt"
MODULE = "k8s.io/dynamic-resource-allocation@v0.36.4"
PACKAGE = "structured/internal/incubating"
AMOUNTS = {"cpu": "8", "memory": "8Gi", "pods": "20"}


def read_facts() -> list[Json]:
    return [json.loads(line) for line in gzip.decompress(FACTS.read_bytes()).decode().splitlines()]


def record(folder: Path) -> list[Json]:
    """Run upstream's tests with the recorder in a copy of the module."""
    downloaded = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=True)
    shutil.copytree(json.loads(downloaded.stdout)["Dir"], folder / "module")
    for path in (folder / "module").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.copy(RECORDER, folder / "module" / PACKAGE / "facts_test.go")
    target = folder / "facts.jsonl"
    environment = os.environ | {"FACTS": str(target)}
    command = ["go", "test", "-p", "1", f"./{PACKAGE}", "-run", "TestFacts"]
    subprocess.run(command, cwd=folder / "module", env=environment, check=True, stdout=sys.stderr)
    return [json.loads(line) for line in target.read_text().splitlines()]


def is_decided_here(fact: Json) -> bool:
    """Not the tables about interrupted searches, nor those about missing classes, which PreFilter looks up before."""
    return "/interrupt/" not in fact["name"] and "could not retrieve device class" not in fact.get("error", "")


def case_of(fact: Json) -> Json:
    """A recorded call in the form of the golden cases: a pod with the claims, on a cluster of one node."""
    node = {"name": fact["node"]["metadata"]["name"], "labels": fact["node"]["metadata"].get("labels", {})}
    objects = [_object("Node", node, "v1", status={"allocatable": AMOUNTS, "capacity": AMOUNTS})]
    objects += [_object("DeviceClass", each["metadata"], spec=each["spec"]) for each in fact["classes"] or ()]
    objects += [_object("ResourceSlice", {"name": name}, spec=each["spec"]) for name, each in _named(fact["slices"])]
    objects += [_holder(number, results) for number, results in enumerate(_held(fact))]
    claims = [
        _object("ResourceClaim", {"name": name, "namespace": "default"}, spec=each["spec"])
        for name, each in _named(fact["claims"])
    ]
    names = [each["metadata"]["name"] for each in claims]
    spec = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "x"}],
        "resourceClaims": [{"name": f"pc{n}", "resourceClaimName": name} for n, name in enumerate(names)],
    }
    pod = _object("Pod", {"name": "target", "namespace": "default"}, "v1", spec=spec)
    name = fact["name"].removeprefix("TestFacts/")
    return {"id": name, "objects": [*objects, *claims], "pod": pod, "expect": _expected(fact, names)}


def _named(items: list[Json] | None) -> list[tuple[str, Json]]:
    """Objects with names of their own, in the order of the given ones: tables use a name several times."""
    seen: Counter[str] = Counter()
    found = []
    for each in items or ():
        name = each["metadata"]["name"]
        found.append((f"{name}-{seen[name]}" if seen[name] else name, each))
        seen[name] += 1
    return found


def _object(kind: str, metadata: Json, version: str = "resource.k8s.io/v1", **parts: Json) -> Json:
    known = {key: metadata[key] for key in ("name", "namespace", "labels") if metadata.get(key)}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": known | {"uid": f"uid-{kind}-{metadata['name']}", "resourceVersion": "1"},
        **parts,
    }


def _held(fact: Json) -> list[Json]:
    """Results of allocations that leave devices in use as the table says."""
    whole = sorted(fact["taken"], key=lambda each: sorted(each.items()))
    shares = sorted(fact["shared"], key=lambda each: sorted(each.items()))
    for number, each in enumerate(sorted(fact["capacity"] or (), key=lambda each: str(each["device"]))):
        place = {key: each[key] for key in ("driver", "pool", "device")}
        share = next((s for s in shares if place.items() <= s.items() and "consumedCapacity" not in s), None)
        if share is None:
            share = place | {"shareID": f"00000000-0000-4000-8000-{number:012}"}
            shares.append(share)
        share["consumedCapacity"] = each["amounts"]
    return [*whole, *shares]


def _holder(number: int, result: Json) -> Json:
    status = {
        "allocation": {"devices": {"results": [{"request": "held", **result}]}},
        "reservedFor": [{"resource": "pods", "name": f"user-{number}", "uid": f"uid-user-{number}"}],
    }
    request = {"name": "held", "exactly": {"deviceClassName": "held", "allocationMode": "ExactCount", "count": 1}}
    metadata = {"name": f"held-{number}", "namespace": "default"}
    return _object("ResourceClaim", metadata, spec={"devices": {"requests": [request]}}, status=status)


def _expected(fact: Json, names: list[str]) -> Json:
    if "error" in fact:
        return {"error": fact["error"].replace("claim claim-", "claim default/claim-")}
    if not fact["results"]:
        return {"allocations": {}}
    for allocation in fact["results"]:
        for result in allocation["devices"].get("results") or ():
            result.pop("shareID", None)
    return {"allocations": dict(zip(names, fact["results"], strict=True))}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        facts = record(Path(folder))
    cases = sorted(map(case_of, filter(is_decided_here, facts)), key=lambda case: str(case["id"]))
    text = "".join(json.dumps(case, sort_keys=True) + "\n" for case in cases)
    FACTS.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} cases in {FACTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
