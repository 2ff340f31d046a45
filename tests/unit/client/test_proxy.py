from __future__ import annotations

import pytest

from bayplan.client.errors import KubeconfigError
from bayplan.client.proxy import proxy_for

SERVER = "https://api.cluster.example:6443"


def test_the_kubeconfig_comes_before_the_environment() -> None:
    assert proxy_for(SERVER, "http://a:1", {"HTTPS_PROXY": "http://b:2"}) == "http://a:1"
    assert proxy_for(SERVER, None, {"HTTPS_PROXY": "http://b:2"}) == "http://b:2"
    assert proxy_for(SERVER, None, {"https_proxy": "b:2"}) == "http://b:2"
    assert proxy_for(SERVER, None, {"HTTP_PROXY": "http://b:2"}) is None
    assert proxy_for("http://x.example", None, {"HTTP_PROXY": "http://b:2"}) == "http://b:2"
    assert proxy_for(SERVER, None, {}) is None


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://127.0.0.9:6443", "https://[::1]:6443"])
def test_this_machine_is_never_behind_a_proxy(server: str) -> None:
    assert proxy_for(server, None, {"HTTPS_PROXY": "http://b:2"}) is None


@pytest.mark.parametrize(
    ("server", "rules", "is_exempt"),
    [
        (SERVER, "cluster.example", True),
        (SERVER, ".cluster.example", True),
        (SERVER, "*.cluster.example", True),
        (SERVER, "other, API.CLUSTER.EXAMPLE", True),
        ("https://cluster.example", ".cluster.example", False),
        (SERVER, "ster.example", False),
        (SERVER, "api.cluster.example:6443", True),
        (SERVER, "api.cluster.example:443", False),
        (SERVER, "*", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "192.168.0.0/16,nonsense/99", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
    ],
)
def test_no_proxy_names_exceptions(server: str, rules: str, is_exempt: bool) -> None:
    found = proxy_for(server, None, {"HTTPS_PROXY": "http://b:2", "NO_PROXY": rules})

    assert (found is None) == is_exempt


@pytest.mark.parametrize("url", ["socks5://me:secret@b:2", "http://", "http://b:port", "ftp://b"])
def test_a_proxy_that_cannot_be_used_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(KubeconfigError, match="SOCKS is not supported") as caught:
        proxy_for(SERVER, url, {})
    assert "secret" not in str(caught.value)
