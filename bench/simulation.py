"""How fast simulations are: many pods through a large cluster, and a month of a small one.

    python -m bench.simulation [large] [month]

CPU seconds of one run each, reading the inputs left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bayplan.app.settings import load_settings
from bayplan.sim.compare import RunPlan

_NODES = """\
apiVersion: bayplan.dev/v1alpha1
kind: NodePool
name: node
count: {nodes}
template: {{status: {{capacity: {{cpu: "32", memory: 128Gi, pods: "110"}}}}}}
"""
_HEAD = "apiVersion: bayplan.dev/v1alpha1\nkind: Workload\n"
_SPEC = (
    "template: {{metadata: {{labels: {{app: {app}}}}}, "
    "spec: {{containers: [{{name: main, resources: {{requests: {{cpu: {cpu}, memory: {memory}}}}}}}]}}}}"
)


def _large() -> str:
    """100,000 pods of 20 kinds in 200 seconds, each for 100 seconds."""
    items = []
    for kind in range(20):
        spec = _SPEC.format(app=f"app-{kind}", cpu=f"{250 + 250 * (kind % 8)}m", memory="1Gi")
        items.append(f"- {{name: app-{kind}, duration: 100s, arrivals: {{rate: 25/s, count: 5000}}, {spec}}}")
    return _HEAD + "items:\n" + "\n".join(items) + "\n"


def _month() -> str:
    """Cron jobs every few minutes, 40 deployments with weekly rollouts, and nodes that fail every two months."""
    items = []
    for number in range(12):
        spec = _SPEC.format(app=f"job-{number}", cpu="500m", memory="1Gi")
        job = "kind: Job, duration: {uniform: [1m, 9m]}, arrivals: {cron: '*/10 * * * *'}"
        items.append(f"- {{name: job-{number}, {job}, {spec}}}")
    for number in range(40):
        spec = _SPEC.format(app=f"web-{number}", cpu="2", memory="4Gi")
        items.append(
            f"- {{name: web-{number}, kind: Deployment, replicas: 20, rollout: {{every: 7d, surge: 5}}, {spec}}}"
        )
    return _HEAD + "until: 30d\nitems:\n" + "\n".join(items) + "\nnodes:\n- fail: {every: 60d, for: 2h}\n"


def main() -> None:
    cases = {"large": (5000, _large), "month": (200, _month)}
    for name in sys.argv[1:] or cases:
        nodes, text = cases[name]
        with tempfile.TemporaryDirectory() as folder:
            cluster, workload = Path(folder) / "cluster.yaml", Path(folder) / "workload.yaml"
            cluster.write_text(_NODES.format(nodes=nodes))
            workload.write_text(text())
            experiment = RunPlan(workload=workload, cluster=(cluster,)).experiment()
            began, wall = time.process_time(), time.monotonic()
            outcome = experiment.run(load_settings(None, ()))
            seconds, wall = time.process_time() - began, time.monotonic() - wall
        bound = int(outcome.measures["pods.bound"])
        print(f"{name}: {bound} pods bound, {len(outcome.decisions)} attempts, {outcome.seconds:,.0f} s simulated")
        print(f"  {seconds:.1f} s of CPU, {wall:.1f} s of wall time")


if __name__ == "__main__":
    main()
