"""`python -m bayplan.apiserver`: the embedded API server as a process of its own, without a scheduler.

For tests of other programs: it can be killed and started again on the same port and data directory, and with
`--bare` it equals a kube-apiserver without a controller manager. Users run `bayplan up` instead.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from bayplan.apiserver.cluster import EmbeddedCluster, UnsafeAddress
from bayplan.apiserver.storage.persistence import UnusableDataDir
from bayplan.apiserver.storage.private_files import write_private


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_serve(options))
    except (UnsafeAddress, UnusableDataDir, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bayplan.apiserver", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--address", default="127.0.0.1", help="to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="to listen on (any free one)")
    parser.add_argument("--nodes", type=int, default=0, help="how many nodes to make up (0)")
    parser.add_argument("--data-dir", type=Path, help="keep the objects there across restarts")
    parser.add_argument("--kubeconfig-out", type=Path, required=True, help="where to write the administrator's way in")
    parser.add_argument("--client-ca-file", type=Path, help="trust client certificates of this authority")
    parser.add_argument("--authorization", choices=("always-allow", "rbac"), default="always-allow")
    parser.add_argument("--bare", action="store_true", help="neither controllers nor simulated kubelets")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    cluster = EmbeddedCluster(
        nodes=options.nodes,
        data_dir=options.data_dir,
        host=options.address,
        port=options.port,
        client_authority=options.client_ca_file,
        authorization=options.authorization,
        simulate=not options.bare,
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await cluster.start()
        write_private(options.kubeconfig_out, yaml.safe_dump(cluster.kubeconfig(), sort_keys=False).encode())
        print(f"serving on {cluster.url}", flush=True)
        await stop.wait()
    finally:
        await cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
