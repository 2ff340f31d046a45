"""With `serving.reviewPods`, explanations are for those who may read the pods: at the socket, by what users may do."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.unit.server.support import Reviewer, serving

from bayplan.explain.http.pod_access import pods_in
from bayplan.server.options import AuthorizationOptions, PodAccess, ServerOptions, ServerParts

ALL = PodAccess("list")


@pytest.mark.parametrize(
    ("path", "query", "wanted"),
    [
        ("explain/pod/shop/web-1", "full=true", PodAccess("get", "shop", "web-1")),
        ("explain/pod/shop/web-1/changes", "", PodAccess("get", "shop", "web-1")),
        ("explain/node/n1", "", ALL),
        ("pending", "namespace=shop", PodAccess("list", "shop")),
        ("pending", "namespace=shop&namespace=bank", PodAccess("list", "bank")),
        ("pending", "namespace=shop&change=true", ALL),
        ("pending", "", ALL),
        ("decisions", "pod=shop/web-1", PodAccess("get", "shop", "web-1")),
        ("decisions", "pod=web-1", ALL),
        ("decisions", "", ALL),
        ("pods", "namespace=shop", ALL),
        ("overview", "", ALL),
        ("whatif", "", ALL),
        ("something/new", "", ALL),
        ("config", "", None),
    ],
)
def test_an_answer_is_about_the_pods_that_it_shows(path: str, query: str, wanted: PodAccess | None) -> None:
    assert pods_in(f"/bayplan/v1/{path}", query) == wanted


def test_other_pages_are_about_no_pods() -> None:
    assert pods_in("/metrics", "") is None
    assert pods_in("/dashboard/", "") is None


async def _answer(request: Request) -> Response:
    return PlainTextResponse("an explanation")


async def test_who_may_ask_and_may_not_read_the_pods_is_refused() -> None:
    reviewer = Reviewer()
    paths = ["/bayplan/v1/pending", "/bayplan/v1/explain/pod/shop/web", "/bayplan/v1/explain/pod/bank/vault"]
    reviewer.may |= {("reader", "get", path) for path in paths}
    reviewer.may |= {("reader", "list", "pods in shop"), ("reader", "get", "pods in shop")}
    routes = [Route(path, _answer) for path in paths]
    options = ServerOptions(port=0, authorization=AuthorizationOptions(pods_in=pods_in))
    async with serving(options, ServerParts(review=reviewer, routes=routes)) as client:
        got = {
            path: await client.get(path, token="token-of-reader")
            for path in (*paths, "/bayplan/v1/pending?namespace=shop", "/bayplan/v1/pending?namespace=bank")
        }
        metrics = await client.get("/metrics", token="token-of-reader")

    assert {path: answer.status for path, answer in got.items()} == {
        "/bayplan/v1/pending": 403,
        "/bayplan/v1/explain/pod/shop/web": 200,
        "/bayplan/v1/explain/pod/bank/vault": 403,
        "/bayplan/v1/pending?namespace=shop": 200,
        "/bayplan/v1/pending?namespace=bank": 403,
    }
    assert 'cannot get resource \\"pods\\" in API group' in got["/bayplan/v1/explain/pod/bank/vault"].text
    assert metrics.status == 200
