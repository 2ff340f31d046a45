"""/healthz, /livez and /readyz as in Kubernetes components, with a path for each check.

`?verbose` lists the checks, `?exclude=NAME` leaves one out, and a failure is 500 with the list. Probes come without
credentials, so the list says which check failed but not why; the reason is in the log and at the check's own path,
which is not open to everybody.

Results of checks are counted for /metrics/slis.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bayplan.observe.component_metrics import HEALTH_CHECK, HEALTH_CHECKS
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server.options import Check, HealthChecks

__all__ = ["HealthCounts", "health_routes"]

_log = logging.getLogger(__name__)
_LONGEST_NAME = 64
_MOST_NAMES = 10


def ping() -> None:
    """Succeeds whenever the event loop runs."""


class HealthCounts:
    """The numbers of /metrics/slis."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self._last = self.registry.gauge(HEALTH_CHECK)
        self._runs = self.registry.counter(HEALTH_CHECKS)

    def ran(self, name: str, endpoint: str, *, is_well: bool) -> None:
        self._last.labels(name, endpoint).set(float(is_well))
        self._runs.labels(name, endpoint, "success" if is_well else "error").inc()


def health_routes(checks: HealthChecks, counts: HealthCounts) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    for endpoint in ("healthz", "livez", "readyz"):
        by_name: Mapping[str, Check] = getattr(checks, endpoint) or {"ping": ping}
        page = _HealthPage(endpoint, by_name, counts)
        routes.append(Route(f"/{endpoint}", page.overview))
        routes.append(Route(f"/{endpoint}/{{name}}", page.single))
    return routes


class _HealthPage:
    def __init__(self, endpoint: str, checks: Mapping[str, Check], counts: HealthCounts) -> None:
        self._endpoint = endpoint
        self._checks = checks
        self._counts = counts
        self._problems: dict[str, str] = {}
        """Of checks that failed last time. Each is logged once: clients may ask thousands of times a second."""

    async def overview(self, request: Request) -> Response:
        excluded = {name for value in request.query_params.getlist("exclude") for name in value.split(",") if name}
        lines, failed = [], []
        for name, check in self._checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            problem = self._run(name, check)
            lines.append(f"[+]{name} ok" if problem is None else f"[-]{name} failed: reason withheld")
            if problem is not None:
                failed.append(name)
        unknown = sorted(excluded - self._checks.keys())
        if unknown:
            names = ", ".join(json.dumps(name[:_LONGEST_NAME]) for name in unknown[:_MOST_NAMES])
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            return _text("\n".join([*lines, f"{self._endpoint} check failed", ""]), 500)
        if "verbose" in request.query_params:
            return _text("\n".join([*lines, f"{self._endpoint} check passed", ""]))
        return _text("ok")

    async def single(self, request: Request) -> Response:
        name = request.path_params["name"]
        check = self._checks.get(name)
        if check is None:
            return _text("404 page not found\n", 404)
        problem = self._run(name, check)
        return _text("ok") if problem is None else _text(f"internal server error: {problem}\n", 500)

    def _run(self, name: str, check: Check) -> str | None:
        try:
            problem = check()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        self._counts.ran(name, self._endpoint, is_well=problem is None)
        if problem is None:
            if self._problems.pop(name, None) is not None:
                _log.info("/%s check `%s` passes again", self._endpoint, name)
        elif self._problems.get(name) != problem:
            self._problems[name] = problem
            _log.warning("/%s check `%s` failed: %s", self._endpoint, name, problem)
        return problem


def _text(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status_code=status)
