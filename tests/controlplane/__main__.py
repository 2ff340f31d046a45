"""Run a control plane in the foreground for people: `python -m tests.controlplane [--scheduler] [--check]`."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.controlplane import ControlPlane, ProgramMissing, StartFailed
from tests.controlplane.programs import skip_reason


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane", description="a real control plane on loopback"
    )
    parser.add_argument("--scheduler", action="store_true", help="also run the real kube-scheduler")
    parser.add_argument("--check", action="store_true", help="only say whether end-to-end tests can run here")
    arguments = parser.parse_args()
    if arguments.check:
        print(skip_reason() or "e2e can run here: `make e2e`")
        return 0
    try:
        return _run_until_interrupted(with_scheduler=arguments.scheduler)
    except (ProgramMissing, StartFailed) as error:
        print(f"controlplane: {error}", file=sys.stderr)
        return 1


def _run_until_interrupted(*, with_scheduler: bool) -> int:
    # SIGTERM ends it as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ControlPlane() as cluster:
            if with_scheduler:
                cluster.start_kube_scheduler()
            print(f"API server {cluster.url}, logs in {cluster.folder}; Ctrl-C stops it", file=sys.stderr)
            print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
