"""An admission webhook of a test, on a thread of its own."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.apiconformance.client import Json
from tests.controlplane.certificates import Authority

Answer = Callable[[Json], Json]


class Webhook:
    """A webhook that answers as its test says, and keeps what it was sent."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[Json] = []
        self.answer: Answer = lambda request: {"allowed": True}
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.requests.append(review["request"])
                response = {"uid": review["request"]["uid"]} | webhook.answer(review["request"])
                body = json.dumps({k: review[k] for k in ("apiVersion", "kind")} | {"response": response}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        authority = Authority(folder)
        pair = authority.server_pair()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self._server.server_port}/review"
        self.authority = base64.b64encode(authority.certificate_file.read_bytes()).decode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
