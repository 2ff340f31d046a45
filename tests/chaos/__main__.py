"""`python -m tests.chaos --seed 1 --minutes 6 [--server embedded]`: break everything, then look what is left."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import run
from tests.controlplane import ControlPlane
from tests.e2e.clusters import Cluster, EmbeddedPlane

SERVERS = {"kube-apiserver": ControlPlane, "embedded": EmbeddedPlane}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--server", choices=SERVERS, default="kube-apiserver")
    parser.add_argument("--other-version", type=Path, help="the `src` folder that the second replica runs from")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bayplan-chaos-"))
    with SERVERS[options.server]() as made:
        cluster: Cluster = made
        work = run(
            cluster,
            seed=options.seed,
            minutes=options.minutes,
            folder=folder,
            other_sources=options.other_version,
            say=lambda text: print(text, flush=True),
        )
        report = asyncio.run(work)
    if report.problems:
        print(*report.story, sep="\n")
    print(report.text())
    print(f"logs are in {folder}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
