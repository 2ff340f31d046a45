"""How fast and how large the embedded API server is: `python -m bench.apiserver`.

The server runs in a process of its own. This process holds the clients: keep-alive connections that create pods as
fast as they are answered, and ten watchers that must each see every one of them. Then 5,000 nodes and 50,000 pods
are held and the server's memory is read. Figures go to standard output and, with `--json FILE`, to a file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import ssl
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import encode

TOKEN = "bench"
_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "", "labels": {"app": "bench", "tier": "web"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/app:1.0",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "ports": [{"containerPort": 8080}],
            }
        ]
    },
}


def serve(pipe: Connection, nodes: int, tls: bool) -> None:
    """The server process: says where it listens, ends when the pipe says so."""

    async def run() -> None:
        cluster = EmbeddedCluster(nodes=nodes, token=TOKEN, tls=tls)
        await cluster.start()
        pipe.send(cluster.url)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await cluster.stop()

    uvloop.run(run())


class Client:
    """One keep-alive connection without any ceremony."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, url: str) -> Client:
        scheme, _, address = url.partition("://")
        host, _, port = address.partition(":")
        context = ssl._create_unverified_context() if scheme == "https" else None  # loopback, a certificate of our own
        return cls(*await asyncio.open_connection(host, int(port), ssl=context, limit=1 << 24))

    async def post(self, path: str, body: bytes) -> int:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        self._writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(answer[9:12])

    async def count_events(self, path: str, wanted: int) -> float:
        """Read a watch until `wanted` events came; answers when the last one did."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")
        seen = 0
        while seen < wanted:
            seen += (await self._reader.read(1 << 20)).count(b'"type":"ADDED"')
        return time.perf_counter()

    async def close(self) -> None:
        self._writer.close()


async def create_pods(url: str, count: int, *, connections: int, prefix: str, watchers: int) -> dict[str, float]:
    """Create pods over some connections while watchers look on."""
    watching = [await Client.connect(url) for _ in range(watchers)]
    path = "/api/v1/pods?watch=true&labelSelector=app%3Dbench" if watchers > 5 else "/api/v1/pods?watch=true"
    tasks = [asyncio.create_task(client.count_events(path, count)) for client in watching]
    await asyncio.sleep(0.2)
    clients = [await Client.connect(url) for _ in range(connections)]
    names = iter(range(count))
    begin = time.perf_counter()

    async def work(client: Client) -> None:
        for number in names:
            pod = _POD | {"metadata": _POD["metadata"] | {"name": f"{prefix}-{number}"}}
            status = await client.post("/api/v1/namespaces/default/pods", encode(pod))
            if status != 201:
                raise RuntimeError(f"a create was answered {status}")

    await asyncio.gather(*(work(client) for client in clients))
    created = time.perf_counter()
    seen = max(await asyncio.gather(*tasks)) if tasks else created
    for client in (*clients, *watching):
        await client.close()
    return {"creates_per_second": count / (created - begin), "seconds_until_all_seen": seen - begin}


def cpu_seconds(process: int) -> float:
    """The CPU time that the process took so far, its own and the kernel's for it."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(process: int) -> float:
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def measure(*, nodes: int, pods: int, tls: bool, watchers: int, connections: int, label: str) -> dict[str, Any]:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there, nodes, tls), daemon=True)
    server.start()
    try:
        url = here.recv()
        settings = {"connections": connections, "prefix": label, "watchers": watchers}
        before = cpu_seconds(server.pid or os.getpid())
        result: dict[str, Any] = dict(uvloop.run(create_pods(url, pods, **settings)))
        result["cpu_us_per_create"] = (cpu_seconds(server.pid or os.getpid()) - before) / pods * 1e6
        result |= {"label": label, "nodes": nodes, "pods": pods, "watchers": watchers, "tls": tls}
        result["server_memory_mib"] = memory_mib(server.pid or os.getpid())
    finally:
        here.send("stop")
        server.join(10)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=15_000, help="pods created in the throughput runs")
    parser.add_argument("--run", action="append", help="only these runs (http, https, large)")
    parser.add_argument("--json", default="", help="also write the figures to this file")
    options = parser.parse_args()
    runs = [
        {"label": "http", "nodes": 100, "pods": options.pods, "tls": False, "watchers": 10, "connections": 16},
        {"label": "https", "nodes": 100, "pods": options.pods, "tls": True, "watchers": 10, "connections": 16},
        {"label": "large", "nodes": 5_000, "pods": 50_000, "tls": False, "watchers": 0, "connections": 16},
    ]
    results = []
    for run in [run for run in runs if not options.run or run["label"] in options.run]:
        print(f"{run['label']}: {run['pods']} pods, {run['watchers']} watchers …", file=sys.stderr, flush=True)
        results.append(measure(**run))
    print(f"{'run':<8}{'creates/s':>12}{'all seen after':>16}{'CPU/create':>14}{'memory':>12}")
    for one in results:
        print(
            f"{one['label']:<8}{one['creates_per_second']:>12,.0f}{one['seconds_until_all_seen']:>14.1f} s"
            f"{one['cpu_us_per_create']:>11,.0f} µs"
            f"{one['server_memory_mib']:>8,.0f} MiB"
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
