"""The dashboard: pages, style sheets and scripts, served as static files of this package.

The pages fetch everything they show from /bayplan/v1; nothing is rendered here, so nothing needs escaping here. Their
content security policy allows scripts, styles and connections from this server only, and no inline code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

__all__ = ["DASHBOARD_PATH", "dashboard_routes"]

DASHBOARD_PATH = "/dashboard/"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {"content-security-policy": _POLICY, "cache-control": "no-cache"}


def dashboard_routes() -> list[BaseRoute]:
    """The page at /dashboard/ and its files; `/dashboard` and `/` lead there."""
    routes: list[BaseRoute] = [Route(DASHBOARD_PATH + name, _file(name)) for name in _names()]
    routes.append(Route(DASHBOARD_PATH, _file("index.html")))
    return [*routes, Route("/dashboard", _to_dashboard), Route("/", _to_dashboard)]


def _names() -> list[str]:
    """Of the files, those of the pages by their folder."""
    folder = files("bayplan.server") / "static"
    found = [item.name for item in folder.iterdir()]
    found += [f"pages/{item.name}" for item in (folder / "pages").iterdir()]
    return [name for name in found if _suffix(name) in _TYPES]


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(_content(name), headers=_HEADERS, media_type=_TYPES[_suffix(name)])

    return answer


@cache
def _content(name: str) -> bytes:
    return (files("bayplan.server") / "static" / name).read_bytes()


async def _to_dashboard(request: Request) -> Response:
    return RedirectResponse(DASHBOARD_PATH, status_code=302)
