"""`python -m tests.e2e.device_fleet`: 2,000 pods with claims from templates, on 500 nodes with 8 devices each.

A real kube-apiserver, slices as a driver publishes them, claims as the controller makes them, and `bayplan run` as a
process. At the end the API alone is read: every pod has a node and a device of it, and no device has two claims.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.controlplane import ControlPlane
from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import make_claims
from tests.e2e.device_objects import device_class, given, given_twice, published, template, templated
from tests.e2e.objects import node
from tests.e2e.scheduler_process import SchedulerProcess, write_config

_PATIENCE_SECONDS = 900.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--pods", type=int, default=2000)
    options = parser.parse_args()
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        problems = asyncio.run(_run(plane, Path(folder), options))
    print("\n".join(problems) or "no device was given twice, and every pod has its own on its node")
    return 1 if problems else 0


async def _run(plane: ControlPlane, folder: Path, options: argparse.Namespace) -> list[str]:
    names = [f"n{number:04}" for number in range(options.nodes)]
    async with api_session(plane.kubeconfig) as api:
        await api.create(device_class(), template(1), *map(node, names))
        await api.create(*(published(name, options.devices) for name in names))
        guard = Guard(remove=folder / "none")
        process = SchedulerProcess(
            folder,
            guard,
            f"--config={write_config(folder, clientConnection={'qps': -1})}",
            f"--kubeconfig={plane.kubeconfig}",
        )
        try:
            began = time.monotonic()
            await api.create(*(templated(f"p{number:05}") for number in range(options.pods)))
            await make_claims(api)
            made = time.monotonic()
            print(f"{options.pods} pods and their claims made in {made - began:.1f} s")
            await _all_bound(api, options.pods)
            print(f"all bound {time.monotonic() - made:.1f} s after the last claim")
        finally:
            await asyncio.to_thread(process.stop)
            guard.close()
        return await _problems(api, options.pods)


async def _all_bound(api: ApiSession, count: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while sum(bool(each["spec"].get("nodeName")) for each in await api.pods()) < count:
        assert time.monotonic() < deadline, f"not all bound after {_PATIENCE_SECONDS:g} s"
        await asyncio.sleep(1)


async def _problems(api: ApiSession, count: int) -> list[str]:
    places = {each["metadata"]["uid"]: each["spec"].get("nodeName", "") for each in await api.pods()}
    devices = await given(api)
    problems = [f"device {pool}/{name} was given to several claims" for pool, name in given_twice(devices)]
    problems += [
        f"pod {uid} has devices of {held} on {places.get(uid)}"
        for uid, held in devices.items()
        if [pool for pool, _ in held] != [places.get(uid)]
    ]
    if not len(places) == len(devices) == count:
        problems.append(f"{len(places)} pods, {len(devices)} of them with devices, {count} expected")
    return problems


if __name__ == "__main__":
    sys.exit(main())
