"""New cases with devices from nothing: larger clusters, and values that people seldom write, all drawn from a seed.

Where `recombine_devices` puts golden cases together anew, this makes pools of every kind (local, of a zone, of all
nodes, chosen by each device; of several slices, with older generations left over, incomplete), devices with and without
attributes, shares, counters, taints and conditions, holders of devices, and claims that ask for all of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["generate_devices"]

Json = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
EXTENDED = "example.com/gpu"
AMOUNTS = ["0", "1", "1500m", "1Ki", "1G", "4Gi", "5Gi", "10Gi", "24Gi", "40Gi", "3333333333", "1e3", "8E", "512Mi"]
VERSIONS = ["1.0.0", "1.5.0-rc.1", "1.5.0", "1.5.0+build.7", "2.0.0-alpha", "10.2.3"]
STRINGS = ["", "a", "b", "h100", "H100", "ü", "a b", "0"]
NUMBERS = [0, 1, 2, -1, 2**31, -(2**62), 2**62]
ATTRIBUTES = ["model", "numa", "healthy", "driverVersion", "root"]
EXPRESSIONS = [
    f'device.attributes["{GPU}"].?model.orValue("") != "b"',
    f'"numa" in device.attributes["{GPU}"] && device.attributes["{GPU}"].numa >= 0',
    f'has(device.attributes["{GPU}"].healthy)',
    f'device.attributes["{GPU}"].?driverVersion.hasValue() '
    f'? device.attributes["{GPU}"].driverVersion.isGreaterThan(semver("1.4.0")) : true',
    f'device.capacity["{GPU}"].?memory.orValue(quantity("0")).compareTo(quantity("4Gi")) >= 0',
    'device.driver.matches("^(gpu|nic)[.]")',
    'device.attributes["other.example.com"].size() == 0',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    'device.attributes["topology.example.com"].?rack.orValue(1) in [0, 1]',
    f'device.attributes["{GPU}"].exists(name, name.startsWith("m"))',
]
FAILING = [
    f'device.attributes["{GPU}"].model == "a"',
    f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("1Gi"))',
]
CONSTRAINTS = [f"{GPU}/model", f"{GPU}/numa", f"{GPU}/root", "topology.example.com/rack", f"{NIC}/numa", f"{GPU}/none"]
TOLERATIONS = [
    {"operator": "Exists"},
    {"key": "odd", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "odd", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 30},
    {"key": "other", "operator": "Exists"},
]


def generate_devices(seed: int, count: int, *, with_taint_rules: bool = False) -> Iterator[Json]:
    """Rules are followed only where kube-scheduler has the feature gate DRADeviceTaintRules."""
    for number in range(count):
        case = _Case(random.Random(f"{seed}-{number}"), f"made-{seed}-{number:05}")
        made = case.make()
        for rule in range(case.dice.choice([0, 1, 2, 4]) if with_taint_rules and case.published else 0):
            case.taint_rule(rule)
        yield made


class _Case:
    def __init__(self, dice: random.Random, name: str) -> None:
        self.dice, self.name = dice, name
        self.objects: list[Json] = []
        self.published: list[tuple[Json, Json]] = []
        """(spec of the slice, device) of everything that may be held."""

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def make(self) -> Json:
        self.nodes = [self.node(number) for number in range(self.dice.choice([1, 3, 12, 40]))]
        for name, driver in (("gpu", GPU), ("nic", NIC), ("any", "")):
            self.device_class(name, driver)
        for driver in (GPU, NIC) if self.chance(0.5) else (GPU,):
            self.pools(driver)
        for number in range(self.dice.choice([0, 2, 10, 25]) if self.published else 0):
            self.holder(number)
        claims = [self.claim(number) for number in range(self.dice.choice([0, 1, 1, 1, 2, 3]))]
        return {
            "id": self.name,
            "category": "dra-made",
            "config": self.config(),
            "objects": self.objects,
            "pod": self.pod(claims),
        }

    def add(self, kind: str, name: str, version: str = "resource.k8s.io/v1", **parts: Any) -> Json:
        metadata = {"name": name, "uid": f"uid-{kind}-{name}", "resourceVersion": "1", **parts.pop("metadata", {})}
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}
        self.objects.append(made)
        return made

    def config(self) -> Json:
        config: Json = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
        }
        args: list[Json] = [self.args("DynamicResources", bindingTimeout="1s")]
        if self.chance(0.3):
            strategy = {
                "type": self.dice.choice(["LeastAllocated", "MostAllocated"]),
                "resources": [{"name": EXTENDED, "weight": 3}, {"name": "cpu", "weight": 1}],
            }
            args.append(self.args("NodeResourcesFit", scoringStrategy=strategy))
        return config | {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": args}]}

    def args(self, name: str, **given: Any) -> Json:
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args"}
        return {"name": name, "args": kind | given}

    # The cluster

    def node(self, number: int) -> str:
        name = f"node-{number:02}"
        labels = {"kubernetes.io/hostname": name, "zone": f"z{number % 3}", "rack": f"r{number % 5}"}
        amounts = {"cpu": self.dice.choice(["4", "16"]), "memory": "64Gi", "pods": "20"}
        if self.chance(0.15):
            amounts[EXTENDED] = self.dice.choice(["0", "1", "4"])
        self.add("Node", name, "v1", metadata={"labels": labels}, spec={}, status=_amounts(amounts))
        return name

    def device_class(self, name: str, driver: str) -> None:
        spec: Json = {"selectors": [_selector(f'device.driver == "{driver}"')] if driver else []}
        if self.chance(0.2):
            spec["selectors"].append(_selector(self.dice.choice(EXPRESSIONS)))
        if name == "gpu" and self.chance(0.6):
            spec["extendedResourceName"] = EXTENDED
        if self.chance(0.15):
            spec["config"] = [{"opaque": {"driver": driver or GPU, "parameters": {"class": name}}}]
        self.add("DeviceClass", name, spec=spec)

    def pools(self, driver: str) -> None:
        short = driver.partition(".")[0]
        for node in self.nodes:
            if self.chance(0.8):
                self.pool(driver, f"{short}-{node}" if self.chance(0.8) else node, {"nodeName": node}, 4)
        zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0", "z1"]}]}
        if self.chance(0.3):
            self.pool(driver, "zonal", {"nodeSelector": {"nodeSelectorTerms": [zone]}}, 3)
        if self.chance(0.3):
            self.pool(driver, "everywhere", {"allNodes": True}, 3)
        if self.chance(0.3):
            self.pool(driver, "each", {"perDeviceNodeSelection": True}, 6)

    def pool(self, driver: str, name: str, where: Json, most: int) -> None:
        generation = self.dice.choice([1, 1, 1, 7])
        slices = self.dice.choice([1, 1, 1, 2, 3])
        names = iter(range(100))
        uses_counters = self.chance(0.15)
        said = slices + uses_counters + (1 if self.chance(0.03) else 0)
        pool = {"name": name, "generation": generation, "resourceSliceCount": said}
        for number in range(slices):
            devices = [
                self.device(driver, f"d{next(names)}", where, uses_counters=uses_counters)
                for _ in range(self.dice.randint(1, most))
            ]
            if self.chance(0.01):
                devices.append(devices[0])
            spec = {"driver": driver, "pool": pool, **where, "devices": devices}
            self.add("ResourceSlice", f"{self.dice.randint(10, 99)}-{name}-{driver}-{number}", spec=spec)
            self.published += [(spec, device) for device in devices]
        if uses_counters:
            sets = [
                {"name": f"set{n}", "counters": {"units": {"value": self.dice.choice(["4", "8", "2500m"])}}}
                for n in (0, 1)
            ]
            spec = {"driver": driver, "pool": pool, **where, "sharedCounters": sets}
            self.add("ResourceSlice", f"{self.dice.randint(10, 99)}-{name}-{driver}-counters", spec=spec)
        if generation > 1 and self.chance(0.5):
            old = {"name": name, "generation": generation - 1, "resourceSliceCount": 1}
            spec = {"driver": driver, "pool": old, **where, "devices": [self.device(driver, "gone", where)]}
            self.add("ResourceSlice", f"{self.dice.randint(10, 99)}-{name}-{driver}-old", spec=spec)

    def device(self, driver: str, name: str, where: Json, *, uses_counters: bool = False) -> Json:
        made: Json = {"name": name, "attributes": self.attributes(driver), "capacity": {}}
        if self.chance(0.8):
            made["capacity"][self.dice.choice(["memory", f"{driver}/memory"])] = self.capacity()
        if self.chance(0.15):
            made["capacity"]["slots"] = self.capacity()
        if self.chance(0.15):
            made["allowMultipleAllocations"] = True
        if self.chance(0.12):
            effect = self.dice.choice(["NoSchedule", "NoExecute", "None"])
            taint = {"key": "odd", "value": "v", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"}
            made["taints"] = [taint]
        if self.chance(0.04):
            made["bindingConditions"], made["bindingFailureConditions"] = ["ready"], ["broken"]
        if self.chance(0.05):
            made["bindsToNode"] = True
        if uses_counters and self.chance(0.8):
            counters = {"units": {"value": self.dice.choice(["1", "2", "500m", "0"])}}
            made["consumesCounters"] = [{"counterSet": self.dice.choice(["set0", "set1"]), "counters": counters}]
        if where.get("perDeviceNodeSelection"):
            made |= self.place()
        return made

    def place(self) -> Json:
        term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0", "r3"]}]}
        return self.dice.choice(
            [
                {"nodeName": self.dice.choice(self.nodes)},
                {"allNodes": True},
                {"nodeSelector": {"nodeSelectorTerms": [term]}},
            ]
        )

    def attributes(self, driver: str) -> Json:
        values: dict[str, Json] = {
            "model": {"string": self.dice.choice(STRINGS)},
            "numa": {"int": self.dice.choice(NUMBERS)},
            "healthy": {"bool": self.chance(0.5)},
            "driverVersion": {"version": self.dice.choice(VERSIONS)},
            "root": {"string": self.dice.choice(["p0", "p1"])},
        }
        made = {
            name if self.chance(0.7) else f"{driver}/{name}": values[name] for name in ATTRIBUTES if self.chance(0.85)
        }
        if self.chance(0.5):
            made["topology.example.com/rack"] = {"int": self.dice.choice([0, 1])}
        return made

    def capacity(self) -> Json:
        made: Json = {"value": self.dice.choice(AMOUNTS)}
        if self.chance(0.2):
            made["requestPolicy"] = self.dice.choice(
                [
                    {"default": "1Gi", "validValues": ["1Gi", "2Gi", "4Gi"]},
                    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}},
                    {"default": "2Gi", "validRange": {"min": "512Mi"}},
                    {"default": "1"},
                ]
            )
        return made

    def result(self, request: str, spec: Json, device: Json) -> Json:
        return {"request": request, "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}

    def holder(self, number: int) -> None:
        spec, device = self.dice.choice(self.published)
        result: Json = {
            "request": "r0",
            "driver": spec["driver"],
            "pool": spec["pool"]["name"],
            "device": device["name"],
        }
        if self.chance(0.1):
            result["adminAccess"] = True
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-4000-8000-{number:012}"
            result["consumedCapacity"] = {name: self.dice.choice(["1Gi", "0", "500m"]) for name in device["capacity"]}
        self.add(
            "ResourceClaim",
            f"held-{number}",
            metadata={"namespace": "default"},
            spec={"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "any", "count": 1}}]}},
            status={
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": f"user-{number}", "uid": f"uid-user-{number}"}],
            },
        )

    def taint_rule(self, number: int) -> None:
        spec, device = self.dice.choice(self.published)
        known = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        selector = {name: each for name, each in known.items() if self.chance(0.6)}
        taint = {
            "key": self.dice.choice(["odd", "other"]),
            "value": self.dice.choice(["", "v"]),
            "effect": self.dice.choice(["NoSchedule", "NoExecute", "None"]),
            "timeAdded": "2026-01-01T00:00:00Z",
        }
        rule = {"deviceSelector": selector, "taint": taint}
        self.add("DeviceTaintRule", f"rule-{number}", "resource.k8s.io/v1beta2", spec=rule)

    # The pod

    def claim(self, number: int) -> str:
        requests = [self.request(f"r{n}") for n in range(self.dice.choice([1, 1, 2, 3]))]
        names = [each["name"] for each in requests]
        names += [f"{each['name']}/{sub['name']}" for each in requests for sub in each.get("firstAvailable", ())]
        devices: Json = {"requests": requests}
        if self.chance(0.3):
            constraint: Json = {
                self.dice.choice(["matchAttribute", "matchAttribute", "distinctAttribute"]): self.dice.choice(
                    CONSTRAINTS
                )
            }
            if self.chance(0.4):
                constraint["requests"] = sorted(set(self.dice.choices(names, k=2)))
            devices["constraints"] = [constraint]
        if self.chance(0.15):
            devices["config"] = [{"requests": [self.dice.choice(names)], "opaque": {"driver": GPU, "parameters": {}}}]
        made = self.add("ResourceClaim", f"c{number}", metadata={"namespace": "default"}, spec={"devices": devices})
        if self.chance(0.1) and self.published:
            made["status"] = self.allocated(requests[0])
        return f"c{number}"

    def allocated(self, request: Json) -> Json:
        """A claim that others use already, or nobody any more."""
        spec, device = self.dice.choice(self.published)
        name = request["name"]
        if request.get("firstAvailable"):
            name += f"/{self.dice.choice(request['firstAvailable'])['name']}"
        result = self.result(name, spec, device)
        field = {"key": "metadata.name", "operator": "In", "values": self.dice.sample(self.nodes, k=1)}
        selector = {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}} if self.chance(0.7) else {}
        users = [
            {"resource": "pods", "name": f"o{n}", "uid": f"uid-o{n}"} for n in range(self.dice.choice([0, 1, 3, 255]))
        ]
        return {"allocation": {"devices": {"results": [result]}, **selector}, "reservedFor": users}

    def request(self, name: str) -> Json:
        if self.chance(0.25):
            subs = [{"name": f"s{n}", **self.asked()} for n in range(self.dice.choice([1, 2, 3, 8]))]
            return {"name": name, "firstAvailable": subs}
        asked = self.asked()
        if self.chance(0.08):
            asked["adminAccess"] = True
        return {"name": name, "exactly": asked}

    def asked(self) -> Json:
        made: Json = {"deviceClassName": self.dice.choices(["gpu", "nic", "any"], weights=[6, 1, 2])[0]}
        if self.chance(0.12):
            made["allocationMode"] = "All"
        else:
            made |= {"allocationMode": "ExactCount", "count": self.dice.choices([1, 2, 3, 5, 33], [8, 4, 2, 1, 0.2])[0]}
        found = [self.dice.choice(EXPRESSIONS) for _ in range(self.dice.choice([0, 0, 0, 1, 2]))]
        if self.chance(0.04):
            found.append(self.dice.choice(FAILING))
        if found:
            made["selectors"] = [_selector(each) for each in found]
        if self.chance(0.2):
            made["tolerations"] = [self.dice.choice(TOLERATIONS)]
        if self.chance(0.12):
            made["capacity"] = {"requests": {self.dice.choice(["memory", "slots", "none"]): self.dice.choice(AMOUNTS)}}
        return made

    def pod(self, claims: list[str]) -> Json:
        amounts: Json = {"cpu": "100m"}
        if not claims or self.chance(0.25):
            name = self.dice.choice([EXTENDED, EXTENDED, "deviceclass.resource.kubernetes.io/gpu", "example.com/none"])
            amounts[name] = str(self.dice.choice([1, 1, 2, 3]))
        resources = {"requests": amounts, "limits": {key: each for key, each in amounts.items() if "/" in key}}
        spec = {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "x", "resources": resources}],
            "resourceClaims": [{"name": f"pc{n}", "resourceClaimName": name} for n, name in enumerate(claims)],
        }
        metadata = {"name": "target", "namespace": "default", "uid": "uid-target", "resourceVersion": "1"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _amounts(amounts: Json) -> Json:
    return {"allocatable": amounts, "capacity": dict(amounts)}


def _selector(expression: str) -> Json:
    return {"cel": {"expression": expression}}
