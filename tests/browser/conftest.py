"""A cluster with a scheduler, its dashboard on loopback, and a browser in front of it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bayplan.apiserver.simulation.devices import DeviceModel
from bayplan.app.settings import Settings, load_settings
from bayplan.explain.wiring import Explaining
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import SystemClock
from bayplan.server import ServerOptions, ServerParts, serve
from bayplan.sim.local import LocalCluster, LocalOptions

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Locator, LocatorAssertions, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
IMAGES = Path(os.environ.get("BAYPLAN_SCREENSHOTS") or tempfile.mkdtemp(prefix="bayplan-screenshots-"))
"""BAYPLAN_SCREENSHOTS=docs/images renews the pictures of the documentation."""


_PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "PodGroup": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups",
}


@dataclass
class Stage:
    """What a test drives."""

    local: LocalCluster
    recorder: DecisionRecorder
    explaining: Explaining
    url: str
    settings: list[Settings]

    async def create(self, *objects: dict[str, Any]) -> None:
        transport = self.local.transport()
        for item in objects:
            namespace = item["metadata"].get("namespace", "default")
            path = _PATHS.get(item["kind"], "/api/v1/namespaces/{namespace}/pods").format(namespace=namespace)
            response = await transport.request("POST", path, body=json.dumps(item).encode())
            assert response.status < 300, response.body

    def has_pods(self, *names: str) -> bool:
        """Whether the scheduler knows all of them."""
        return all(self.local.live.watching.pod("default", name) is not None for name in names)

    async def until(self, is_true: Callable[[], bool], seconds: float = 90.0) -> None:
        async with asyncio.timeout(seconds):
            while not is_true():  # noqa: ASYNC110 - the scheduler's state has no event for every question
                await asyncio.sleep(0.02)


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {"app": name.split("-")[0]}},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}], **spec},
    }


@asynccontextmanager
async def staged(
    nodes: Any = 12,
    *,
    plugins: list[str] | None = None,
    config: Path | None = None,
    devices: Sequence[DeviceModel] = (),
    objects: Sequence[dict[str, Any]] = (),
    token: str = "",
) -> AsyncIterator[Stage]:
    settings = [load_settings(config, plugins or [], enable=True)]
    explaining = Explaining(SystemClock(), settings=lambda: settings[-1])
    options = LocalOptions(nodes=nodes, objects=objects, listen=False, observers=explaining.observers, devices=devices)
    async with LocalCluster(settings[0], options) as local:
        explaining.attach(local.live)
        parts = ServerParts(routes=explaining.routes())
        async with serve(ServerOptions(port=0, is_plain_http=True, loopback_token=token), parts) as serving:
            running = asyncio.create_task(explaining.run())
            try:
                yield Stage(local, explaining.recorder, explaining, serving.url, settings)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


def expect(target: Locator) -> LocatorAssertions:
    """Playwright's own, imported when a browser is really asked for: collecting tests must not need one."""
    from playwright.async_api import expect as expected

    return expected(target)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright
    from playwright.async_api import expect as expected

    expected.set_options(timeout=60_000)  # a busy machine is no reason to fail
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@dataclass
class Visit:
    page: Page
    problems: list[str] = field(default_factory=list)
    """Console errors, failed requests, exceptions and dialogs."""

    def note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)


@asynccontextmanager
async def visiting(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visit]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = await context.new_page()
    visit = Visit(page)
    page.on("console", visit.note)
    page.on("pageerror", lambda error: visit.problems.append(str(error)))
    page.on("dialog", lambda dialog: visit.problems.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: request.url.startswith(url) or visit.problems.append(f"fetched {request.url}"))
    try:
        await page.goto(f"{url}/dashboard/")
        yield visit
    finally:
        await context.close()
