"""The run's own certificate authority, checked by a TLS handshake of the standard library."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.controlplane.certificates import Authority
from tests.controlplane.rest import RestClient


class _WhoIsThere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.connection, ssl.SSLSocket)
        subject = str(self.connection.getpeercert()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(subject)))
        self.end_headers()
        self.wfile.write(subject)

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the answer says it all."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


@pytest.fixture
def server_url(authority: Authority) -> Iterator[str]:
    pair = authority.server_pair()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_file))
    context.load_cert_chain(str(pair.certificate), str(pair.key))
    context.verify_mode = ssl.CERT_OPTIONAL
    server = HTTPServer(("127.0.0.1", 0), _WhoIsThere)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_server_and_client_certificates_pass_a_handshake(authority: Authority, server_url: str) -> None:
    pair = authority.client_pair("ann", ["team-a", "team-b"])

    answer = RestClient(server_url, ca_file=authority.certificate_file, pair=pair).request("GET", "/")

    assert answer.status == 200
    assert "'ann'" in answer.body
    assert "'team-b'" in answer.body


def test_a_server_of_another_authority_is_not_trusted(tmp_path: Path, server_url: str) -> None:
    stranger = Authority(tmp_path / "other")

    assert not RestClient(server_url, ca_file=stranger.certificate_file).is_healthy("/")


def test_groups_are_organizations_and_the_user_is_the_common_name(authority: Authority) -> None:
    pair = authority.client_pair("system:kube-scheduler", ["system:masters"])

    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:kube-scheduler"]
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["system:masters"]


def test_one_user_in_other_groups_gets_another_file(authority: Authority) -> None:
    assert authority.client_pair("ann", ["a"]).certificate != authority.client_pair("ann", ["b"]).certificate


def test_private_keys_are_readable_by_their_owner_only(authority: Authority) -> None:
    keys = [authority.client_pair("ann").key, authority.signing_key("service-accounts")]

    assert [key.stat().st_mode & 0o777 for key in keys] == [0o600, 0o600]
